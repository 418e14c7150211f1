"""What was done: one line for each call, with what came of it, in order.

    [v5] $ go test ./... -> 3 failed, 40 passed: FAIL TestX
    [v9] edit src/cart.py x2; src/tax.py
    [v12] read src/cart.py 1-80, 120-200; tax.py
    [v14] search "total" in src -> 12 lines: src/cart.py:9: total = 0
    [v20] web https://example.com/rates -> Exchange rates
    [v22] commit Round totals half up -> main 3f2a1b0c

A call's arguments are told only as far as they say what was done: its command, file or query on one line. What came of
it is told in few words: the outcome of tests, the error of a failure, a short output itself, of a longer one a line.

A call that was made again is told once, at its newest place, with its last outcome. Adjacent looks and edits share a line.
In the room given stand the newest actions, and of the older ones those that tell most: tests, commits, edits, failures.
The others are a number. A command is told in full if it is new or was run again: agents repeat commands word for word.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any, Final, Literal

from msgspec import structs

from blocks import Action, Process, ToolCall, asks_user, label_of
from render.summary._calls import (
    NO_OUTPUT,
    REJECTED,
    Run,
    edits_of,
    file_part,
    lines_asked,
    nodes,
    outcome,
    shared_folder,
    telling_error,
    without_folder,
)
from render.summary._findings import is_delegated
from render.summary._prose import one_line
from render.summary._shell import ALL, CommandLine, commands_in, shown_command, without_middle
from render.summary._state import COMMITTED, is_look, is_plan, processes_after
from render.view._view import Entry

TARGET_MAX: Final = 300
"""Characters of a command or another target."""
OLD_MAX: Final = 120
"""Characters of a command that is neither new nor was run again."""
NEW: Final = 10
"""So many of the newest actions are new."""
ABOUT: Final = " # "
"""Between a long command and what the call says of it."""
OUTCOME_MAX: Final = 240
"""Characters of an outcome: an output that is no longer is told itself."""
ANSWER_MAX: Final = 400
"""The same of an answer of a tool that is no command and looks at no file: a task, an issue, a record."""
REPEATED_SHARE: Final = 0.2
"""The most of its words that are new in an output that repeats its call."""
LINE_SAID_MAX: Final = 120
"""Characters of a line that is told of a longer output, and of an outcome that is no longer new."""
LAST: Final = ", the last: "
"""Between the number of lines of an output and its last lines."""
NOTHING: Final = "no matches"
"""The outcome of a search that found nothing."""
LINE_MAX: Final = 220
"""Characters after which a line that tells of several calls ends."""
NEWEST_SHARE: Final = 0.5
"""Share of the room in which the newest actions stand, whatever they are."""
CHANGES: Final = frozenset({"edit", "write", "delete"})
FILES: Final = CHANGES | {"read"}
"""Verbs whose target is a file."""
_COMMITS: Final = re.compile(
    r"\b(?:git|jj|hg|svn) (?:-\S+ \S+ )?"
    r"(?:commit|push|merge|rebase|revert|reset|tag|cherry-pick|stash|checkout -b|switch -c)\b"
    r"|\bgh (?:pr|issue|release) (?:create|merge|close|comment)\b"
)
"""Commands that change a repository's history, or what others see of it."""
COMMITTING: Final = {("git", verb) for verb in ("add", "rm", "commit", "status", "diff")}
"""Commands that do nothing beside a commit that its subject does not tell better."""
_NOTHING: Final = re.compile(r"\Ano (?:(?:\w+ )?(?:were )?found|match(?:es)?)\W*\Z", re.IGNORECASE)
"""What search tools say if they find nothing."""
_BESIDE: Final = re.compile(r"(?m)^### (?:Ran Playwright code|Snapshot)\n(?:(?!### ).*\n?)*+")
"""What Playwright's server adds to an answer: the call as code, and the elements of the page."""
_QUERIES: Final = ("pattern", "query", "regex", "search_term", "keyword", "include_pattern")
"""The arguments in which search tools take what they look for."""
_WHERES: Final = ("path", "dir_path", "directory", "dir", "folder", "glob", "include")


# From the log.


def advance(
    previous: Sequence[Action],
    entries: Sequence[Entry],
    runs: Mapping[str, Run],
    running: Sequence[Process] = (),
) -> tuple[Action, ...]:
    """The actions after newly folded entries; `runs` has their calls. A change of the plan is none: the page has it. A call that
    asks for one of the `running` processes is a run of its command."""
    actions = list(previous)
    for entry in entries:
        if not isinstance(entry.block, ToolCall) or entry.original is not None:
            continue
        running, run = processes_after(running, runs[entry.pair])
        if not is_plan(run):
            actions.append(_action_of(run, entry.version))
    return tuple(_each_once(actions))


def _each_once(actions: Sequence[Action]) -> Iterable[Action]:
    """Each action once; changes of a file only if nothing is between them but looks at it, which belong to the next change."""
    newest = dict[tuple[object, ...], Action]()
    for number, action in enumerate(actions):
        key: tuple[object, ...] = (action.verb, _old(action.target), action.part, action.folder)
        if action.verb in CHANGES:
            while (last := next(reversed(newest), ()))[:2] == ("read", key[1]):
                del newest[last]
            key = last if last[:4] == key else (*key, number)
        before = newest.pop(key, None)
        newest[key] = _run_again(before, action) if before else action
    return newest.values()


def _run_again(before: Action, action: Action) -> Action:
    """The newest of several runs, with what came of the first one if that was something else."""
    first = before.first or _end_of(before.outcome)
    is_other = action.weight > 0 and first != _end_of(action.outcome)
    runs = before.runs + action.runs
    return structs.replace(action, runs=runs, first=first if is_other else "")


def _action_of(run: Run, version: int) -> Action:
    """The action of a call of this version; of a result that is forgotten or kept elsewhere only whether it failed is told."""
    output, failure = run.text, "" if run.version else "no result"
    if run.failed:
        failure = telling_error(output or run.whole) or "failed"
    if REJECTED.match(run.whole):
        failure = output = "not run: the user stopped it"
    action = _of_files(run, failure) or _of_others(run, output, failure)
    return structs.replace(
        action,
        seen=version if action.verb in CHANGES else run.version or version,
        target=one_line(action.target, TARGET_MAX),
        outcome=one_line(action.outcome, ANSWER_MAX),
    )


def _of_files(run: Run, failure: str) -> Action | None:
    """The action of a call that only reads or changes files, by a tool or by plain shell commands."""
    is_command = run.kind == "command"
    is_patch = {c.words[0] for c in run.commands} == {"apply_patch"}
    if is_command and not (is_patch or (run.script.is_all and not failure)):
        return None
    if edits := list(edits_of(run)):
        is_new = all(edit.old is None and not edit.is_added for edit in edits)
        is_gone = is_new and all(edit.new == "" for edit in edits)
        verb = "delete" if is_gone else "write" if is_new else "edit"
        files = ", ".join(dict.fromkeys(edit.file for edit in edits))
        return Action(verb=verb, target=files, outcome=failure, weight=2)
    if run.kind == "read" and run.target:
        file, (line, end) = run.target, lines_asked(run.call.input)
    elif is_command and run.version and (view := file_part(run)):
        file, line = view.file, view.line
        end = 0 if view.lines == ALL else line + view.lines - 1
    else:
        return None
    part = f"{line}-{end or ''}" if line > 1 or (line and end) else ""
    return Action(verb="read", target=file, part=part, outcome=failure)


def _of_others(run: Run, output: str, failure: str) -> Action:
    """The action of a command, a search, a look at the web, or any other tool."""
    if run.command:
        return _ran(run.command, run, output)
    arguments, target, name = run.call.input, run.target, run.call.name
    verb = "web" if run.kind == "web" else name
    output = _BESIDE.sub("", output)
    text = failure or _short(output, "answer" if run.kind == "other" else "look")
    if run.kind == "search":
        query, where = _first(arguments, _QUERIES), _first(arguments, _WHERES)
        target = " in ".join(filter(None, (f'"{query}"' if query else "", where))) or target
        verb, text = "search" if query else "list", _NOTHING.sub(NOTHING, text) or NOTHING
    elif not failure and (
        asks_user(name) or is_delegated(run) or _repeats(output, f"{name} {arguments}")
    ):
        text = ""  # the user's words and reports stand elsewhere
    weight = 0 if run.kind == "search" else 1 + bool(failure)
    return Action(verb=verb, target=target or main_argument(arguments), outcome=text, weight=weight)


def _repeats(output: str, call: str) -> bool:
    """Whether an output says hardly more than the call, as that of a tool that notes something does."""
    words, earlier = (Counter(re.findall(r"\d+|\w{4,}", each.lower())) for each in (output, call))
    return bool(words) and (words - earlier).total() <= REPEATED_SHARE * words.total()


def _ran(command: CommandLine, run: Run, output: str) -> Action:
    """A command with the outcome of its tests, its error, or its output."""
    status, tests = run.status, outcome(output)
    only_looks = all(map(is_look, commands_in(command.text)))
    is_commit = _COMMITS.search(command.text)
    error = telling_error(output) if run.failed else ""
    if run.failed and only_looks and status == "1" and not error:
        text = NOTHING
    elif run.failed:
        ending = "" if error and status in {"ok", "failed"} else status
        ending = f"exit {status}" if status.lstrip("-").isdigit() else ending
        text = ": ".join(filter(None, (tests or ending, error)))
    elif is_commit and (commit := COMMITTED.search(output)):
        text = f"{commit[1]} {commit[2]}"
        if {c.words[:2] for c in run.commands} <= COMMITTING and not COMMITTED.search(
            output, commit.end()
        ):
            return Action(verb="commit", target=commit[3], outcome=text, weight=3)
    else:
        words = _short(output, "look" if only_looks else "end") if run.version else status
        text = tests or words
    line, about = shown_command(command, TARGET_MAX), run.call.input.get("description")
    if len(line) > OLD_MAX and isinstance(about, str) and about.strip():
        about = ABOUT + one_line(about, OLD_MAX // 2)
        line = without_middle(line, TARGET_MAX - len(about)) + about
    weight = 3 if tests or (is_commit and not run.failed) else 0 if only_looks else 1 + run.failed
    return Action(verb="$", target=line, folder=command.folder, outcome=text, weight=weight)


def _old(target: str) -> str:
    """A target as it is told when it is no longer new."""
    line, mark, about = target.partition(ABOUT)
    return without_middle(line, OLD_MAX // 2 if mark else OLD_MAX) + mark + about


def _short(output: str, form: Literal["look", "answer", "end"]) -> str:
    """An output in few words: itself if it is short, else the number of its lines; with the last ones of a program, which
    says its results there. Of an answer in words, its beginning."""
    lines = [" ".join(line.split()) for line in output.split("\n") if re.search(r"\w", line)]
    whole, most = " / ".join(lines), ANSWER_MAX if form == "answer" else OUTCOME_MAX
    if len(whole) <= most:
        return "" if NO_OUTPUT.fullmatch(whole) else whole
    if form == "answer" or re.fullmatch(r"\s*[{\[].*[\]}]\s*", output, re.DOTALL):
        return one_line(whole, most)
    if len(lines) == 1:
        return one_line(whole, LINE_SAID_MAX)
    head = f"{len(lines)} lines"
    if form == "look":
        return head
    room = most - len(head + LAST)
    sizes = accumulate(len(line) + 3 for line in reversed(lines))
    last = max(sum(size - 3 <= room for size in sizes), 1)
    return f"{head}{LAST}{one_line(' / '.join(lines[-last:]), room)}"


def _end_of(outcome: str) -> str:
    """An outcome as it is told when it is no longer new: its end says most, unless it was cut there."""
    if len(outcome) <= LINE_SAID_MAX:
        return outcome
    head, mark, tail = outcome.rpartition(LAST)
    room = LINE_SAID_MAX - len(head + mark)
    return f"{head}{mark}{one_line(tail, room) if tail[-1:] == '…' else f'…{tail[1 - room :]}'}"


def _first(arguments: Mapping[str, Any], names: Iterable[str]) -> str:
    values = (arguments.get(name) for name in names)
    return next((" ".join(v.split()) for v in values if isinstance(v, str) and v.strip()), "")


def main_argument(arguments: Mapping[str, Any]) -> str:
    """The argument that tells most of an unknown call: the `summary`, as of a message to another agent, or the first text."""
    if about := _first(arguments, ("summary",)):
        return about
    texts = (each for each in nodes(arguments) if isinstance(each, str))
    lines = (line.strip() for text in texts for line in text.split("\n"))
    return next((line for line in lines if re.search(r"\w", line)), "")


# In the room given.


def fitted(
    actions: Sequence[Action], tokens_max: int, count: Callable[[str], int]
) -> tuple[Action, ...]:
    """The actions; if they do not fit, the newest, and in fewer words the most telling older ones; the first counts the rest."""
    if count(text_of_actions(actions)) <= tokens_max:
        return tuple(actions)
    candidates = [action for action in actions if action.verb]
    for place, action in enumerate(candidates[:-NEW]):
        if action.verb not in FILES:
            target = _old(action.target) if action.runs == 1 else action.target
            ending = _end_of(action.outcome)
            candidates[place] = structs.replace(action, target=target, outcome=ending, first="")
    runs, places = sum(action.runs for action in actions), _within(candidates, tokens_max, count)
    while places:
        fitting = [candidates[place] for place in sorted(places)]
        if left := runs - sum(action.runs for action in fitting):
            fitting.insert(0, Action(verb="", runs=left))
        if count(text_of_actions(fitting)) <= tokens_max:
            return tuple(fitting)
        places = places[: -1 - len(places) // 16]
    return ()


def _within(actions: Sequence[Action], tokens_max: int, count: Callable[[str], int]) -> list[int]:
    """The places of the actions that fit, first the newest, then those that tell most."""
    sizes = [count(f"{line_of(action)}\n") for action in actions]
    newest = sum(used <= NEWEST_SHARE * tokens_max for used in accumulate(reversed(sizes)))
    order = list(reversed(range(len(actions))))
    places, left = order[:newest], tokens_max - sum(sizes[len(sizes) - newest :])
    for place in sorted(order[newest:], key=lambda place: (-actions[place].weight, -place)):
        if sizes[place] <= left:
            left -= sizes[place]
            places.append(place)
    return places


# As text.


def text_of_actions(actions: Sequence[Action]) -> str:
    """One line for each action, or for adjacent ones of one kind; paths are relative to the folder that most share."""
    files = {action.target for action in actions if action.verb in FILES}
    root = shared_folder([*sorted(files), *(action.folder for action in actions)])
    lines = [without_folder(line, root) for line in _lines(actions)]
    return "\n".join([f"(paths in {root})", *lines] if root else lines)


def _lines(actions: Sequence[Action]) -> Iterator[str]:
    folder = ""
    for is_joined, alike in groupby(actions, key=_joined_as):
        if is_joined:
            yield from _joined_lines(list(alike))
            continue
        for action in alike:
            yield line_of(action, folder) if action.verb else f"({action.runs} more, not listed)"
            folder = action.folder or folder


def _joined_as(action: Action) -> str:
    """The verb of actions that share a line if they are adjacent, as searches do that found nothing."""
    if action.outcome == NOTHING:
        return NOTHING
    return action.verb if action.verb in FILES and not action.outcome else ""


def _joined_lines(actions: Sequence[Action]) -> list[str]:
    """Lines that each tell of several actions of one kind; those of one file stand together."""
    lines, is_found = list[str](), actions[0].outcome != NOTHING
    by_target: dict[tuple[str, str], list[Action]] = {}
    for action in actions:
        by_target.setdefault((action.verb, action.target), []).append(action)
    for some in by_target.values():
        parts = ", ".join(filter(None, map(attrgetter("part"), some)))
        file = some[0].target if is_found else line_of(structs.replace(some[0], seen=0, outcome=""))
        runs = sum(action.runs for action in some) if is_found else 1
        text = f"{file} {parts}" if parts else f"{file} x{runs}" if runs > 1 else file
        if lines and len(lines[-1]) + len(text) < LINE_MAX:
            lines[-1] += f"; {text}"
        else:
            verb = some[0].verb if is_found else f"{NOTHING}:"
            lines.append(f"{_label(some[0])}{verb} {text}")
    return lines


def line_of(action: Action, folder: str = "") -> str:
    """The line of one action; a command names the folder that it ran in unless it is this one."""
    target = action.target
    if action.folder and action.folder != folder:
        target = f"cd {action.folder} && {target}"
    text = " ".join(filter(None, (action.verb, target, action.part)))
    times = f" ({action.runs} times)" if action.runs > 1 else ""
    first = f" -> first: {action.first}" if action.first else ""
    ending = f" -> {'last: ' if times else ''}{action.outcome}" if action.outcome else ""
    return f"{_label(action)}{text}{times}{first}{ending}"


def _label(action: Action) -> str:
    return f"[{label_of(action.seen)}] " if action.seen else ""
