"""What was done: one line for each call, with what came of it, in order.

    [v5] $ go test ./... -> 3 failed, 40 passed: FAIL TestX
    [v9] edit src/cart.py x2; src/tax.py
    [v12] read src/cart.py 1-80, 120-200; tax.py
    [v14] search "total" in src -> 12 matches
    [v20] web https://example.com/rates -> Exchange rates

A call's arguments are told only as far as they say what was done: its command, file or query on one line. What came of
it is told in few words: the outcome of tests, the error of a failure, the number of lines, or a short output itself.

A call that was made again is told once, at its newest place, with its last outcome. Adjacent looks and edits share a line.
In the room given stand the newest actions, and of the older ones those that tell most: tests, commits, edits,
failures, and commands whose names are used again. The others are a number.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, cast

import attrs
from msgspec import structs

from blocks import (
    Action,
    CommandRecord,
    Envelope,
    ToolCall,
    ToolResult,
    asks_user,
    is_sealed,
    label_of,
    text_of,
    tool_kind,
    tool_target,
    written_paths,
)
from render.summary._commands import (
    ALL,
    COMMAND_MAX,
    WENT_WELL,
    Command,
    command_of,
    outcome,
    script_of,
    shown_command,
    status_of,
    telling_error,
)
from render.summary._files import changes_of, shown_by
from render.summary._identifiers import identifiers, one_line, output_of
from render.view._group import Entry

TARGET_MAX: Final = 120
"""Characters of a command or another target."""
PATH_MAX: Final = 300
"""Characters of a file's name, of which the folder that most share is left out."""
OUTCOME_MAX: Final = 100
"""Characters of an outcome."""
LINE_MAX: Final = 220
"""Characters after which a line that tells of several calls ends."""
SHORT_LINES: Final = 3
"""An output of at most so many lines is told itself if it is short; a longer one as the number of its lines."""
SHORT_CHARACTERS: Final = 80
NEWEST_SHARE: Final = 0.5
"""Share of the room in which the newest actions stand, whatever they are."""
USES_MIN: Final = 2
"""A name that the actions mention so often comes back."""
BACK_MAX: Final = 2
"""What an action's names that come back add to its weight at most."""
JOINED: Final = frozenset({"read", "edit", "write", "delete", "search", "list"})
"""Verbs whose adjacent actions share a line if they went well."""
FILES: Final = frozenset({"read", "edit", "write", "delete"})
"""Verbs whose target is a file."""
ROOT_PARTS_MIN: Final = 3
ROOT_USES_MIN: Final = 2
CHANGES: Final = frozenset({"edit", "write", "delete"})
_COMMITS: Final = re.compile(
    r"\b(?:git|jj|hg|svn) (?:-\S+ \S+ )?"
    r"(?:commit|push|merge|rebase|revert|reset|tag|cherry-pick|stash|checkout -b|switch -c)\b"
    r"|\bgh (?:pr|issue|release) (?:create|merge|close|comment)\b"
)
"""Commands that change a repository's history, or what others see of it."""
_MESSAGE: Final = re.compile(r"\bgit commit\b[^|;&]*? -\w*m\s*(\"[^\"]*\"|'[^']*')")
_LOOKS: Final = re.compile(
    r"\W*(?:cat|ls|ll|tree|find|fd|grep|egrep|rg|ag|sed -n|awk|head|tail|less|wc|nl|stat|file|du|pwd|which|jq|sort|echo|ps"
    r"|git (?:-\S+ \S+ )?(?:log|show|diff|status|grep|blame|branch|ls-files|ls-tree|rev-parse|remote)"
    r"|gh (?:\w+ (?:view|list|status|checks|diff)|api (?!.*(?:-X|--method|-f|-F)\b)))\b"
)
"""Commands that only print what there is."""
_NO_OUTPUT: Final = re.compile(r"\W*(?:\w+ )*no output\W*", re.IGNORECASE)
"""What clients write for an empty output: Claude Code, pi."""
_ESCAPES: Final = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|</?\w*error>")
"""Colours of a terminal, and tags around an error."""
_COMMITTED: Final = re.compile(r"^\[([\w./-]+(?: \([\w-]+\))? [0-9a-f]{7,40})\] ", re.MULTILINE)
"""What git prints of a new commit: its branch and its id."""
_FOUND: Final = re.compile(
    r"found (\d{1,7})\b|(?:showing )?(\d{1,7}) (?:match|file|result)", re.IGNORECASE
)
"""The count that a search tool puts before its matches: Claude Code, Gemini CLI, Qwen Code, opencode."""
_NOTHING: Final = re.compile(
    r"no (?:\w+ )?(?:match|file|result)|found 0\b|0 match|not found", re.IGNORECASE
)
_QUERIES: Final = ("pattern", "query", "regex", "search_term", "keyword", "include_pattern")
"""The arguments in which search tools take what they look for."""
_WHERES: Final = ("path", "dir_path", "directory", "dir", "folder", "glob", "include")
_TITLE: Final = re.compile(
    r"^\s*(?:#{1,3} +|<title>|Title: *)(?P<title>[^<\n]*\w[^<\n]*)", re.MULTILINE
)


# From the log.


def advance(previous: Sequence[Action], entries: Sequence[Entry]) -> tuple[Action, ...]:
    """The actions after those of newly folded entries; calls without a result in the entries count as open."""
    results = {e.pair: e for e in entries if isinstance(e.block, ToolResult)}
    done = (
        action_of(entry.block, results.get(entry.pair), entry.version)
        for entry in entries
        if isinstance(entry.block, ToolCall) and entry.original is None
    )
    return tuple(_each_once([*previous, *done]))


def of_commands(records: Iterable[CommandRecord]) -> tuple[Action, ...]:
    """The actions of a digest of an older release, which had commands instead."""
    return tuple(
        Action(
            verb="$",
            target=one_line(record.command, TARGET_MAX),
            outcome=one_line(
                ": ".join(filter(None, (record.tests or record.status, record.error))), OUTCOME_MAX
            ),
            runs=record.runs,
            weight=3 if record.tests_first else 1,
        )
        for record in records
    )


def _each_once(actions: Sequence[Action]) -> Iterable[Action]:
    """Each action once, at its newest place with its newest outcome; edits of a file only if nothing is between them."""
    known = dict[tuple[object, ...], Action]()
    for number, action in enumerate(actions):
        key: tuple[object, ...] = (action.verb, action.target, action.part, action.folder)
        if action.verb in CHANGES:
            last = next(reversed(known), None)
            same = last is not None and last[:4] == key
            key = last if same and last is not None else (*key, number)
        before = known.pop(key, None)
        runs = action.runs + (before.runs if before else 0)
        known[key] = structs.replace(action, runs=runs) if before else action
    return known.values()


def action_of(call: ToolCall, answer: Entry | None, version: int) -> Action:
    """The action of a call; of a result that is forgotten or kept elsewhere only whether it failed is told."""
    result = answer.block if answer is not None and isinstance(answer.block, ToolResult) else None
    told = _Told.of(call, result, is_quotable=answer is not None and answer.original is None)
    files = _file_actions(told)
    action = files or _other_action(told)
    return structs.replace(
        action,
        seen=version,
        target=one_line(action.target, PATH_MAX if action.verb in FILES else TARGET_MAX),
        outcome=one_line(action.outcome, OUTCOME_MAX),
    )


@attrs.frozen(kw_only=True)
class _Told:
    """A call and what its result says."""

    call: ToolCall
    result: ToolResult | None
    known: Envelope | None
    has_failed: bool
    text: str
    """The text of the result; empty if it must not be quoted."""
    output: str
    """The part of it that is the tool's output."""

    @classmethod
    def of(cls, call: ToolCall, result: ToolResult | None, *, is_quotable: bool) -> "_Told":
        is_told = result is not None and is_quotable and not is_sealed(result)
        text = _ESCAPES.sub("", text_of(result)) if result is not None and is_told else ""
        start, end = output_of(text)
        return cls(
            call=call,
            result=result,
            known=result.envelope if result else None,
            has_failed=result is not None
            and (result.is_error or result.envelope.outcome == "failure"),
            text=text,
            output=text[start:end],
        )

    @property
    def kind(self) -> str:
        return tool_kind(self.call.name, self.call.input, self.known)

    @property
    def failure(self) -> str:
        """Why the call failed; empty if it did not."""
        if not self.has_failed:
            return "" if self.result else "no result"
        return telling_error(self.output or self.text) or "failed"


def _file_actions(told: _Told) -> Action | None:
    """The action of a call that only reads or changes files, by a tool or by plain shell commands."""
    call, kind, failure = told.call, told.kind, told.failure
    script = script_of(call, told.known)
    if kind == "command" and not (script.is_all and not told.has_failed and _is_well(told)):
        return None
    if kind == "write" or script.written:
        changes = list(changes_of(call, told.known))
        files = dict.fromkeys(change.file for change in changes) or dict.fromkeys(
            written_paths(call.name, call.input, told.known)
        )
        is_new = bool(changes) and all(change.old is None for change in changes)
        is_gone = is_new and not any(change.new for change in changes)
        verb = "delete" if is_gone and kind != "write" else "write" if is_new else "edit"
        if not files:
            return None
        return Action(verb=verb, target=", ".join(files), outcome=failure, weight=2)
    if kind == "read" and (file := tool_target(call.input, told.known)):
        return Action(
            verb="read",
            target=file,
            part=_lines_read(call.input),
            outcome=failure,
            weight=int(bool(failure)),
        )
    shown = shown_by(call, told.result) if told.result and kind == "command" else None
    if shown is None:
        return None
    first, lines = shown.line, shown.lines
    whole = first <= 1 and lines == ALL
    part = "" if whole or not first else f"{first}-{'' if lines == ALL else first + lines - 1}"
    return Action(verb="read", target=shown.file, part=part, outcome=failure)


def _is_well(told: _Told) -> bool:
    return told.result is not None and status_of(told.result) in WENT_WELL


def _lines_read(arguments: Mapping[str, Any]) -> str:
    """The lines that a reading tool was asked for, `1-80`; empty: all."""
    span: Any = arguments.get("view_range")
    if isinstance(span, list) and len(items := cast("list[Any]", span)) > 1:
        return f"{items[0]}-{items[1]}"
    first = _number(arguments, ("offset", "start_line", "line_start", "startLine"))
    last = _number(arguments, ("end_line", "line_end", "endLine"))
    limit = _number(arguments, ("limit", "line_count", "num_lines"))
    if not last and limit:
        last = max(first, 1) + limit - 1
    return f"{max(first, 1)}-{last or ''}" if first > 1 or last else ""


def _number(arguments: Mapping[str, Any], names: Iterable[str]) -> int:
    values = (arguments.get(name) for name in names)
    return next(
        (v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 < v < ALL), 0
    )


def _other_action(told: _Told) -> Action:
    """The action of a command, a search, a look at the web, or any other tool."""
    call, failure = told.call, told.failure
    match told.kind:
        case "command" if command := command_of(call, told.known):
            return _ran(command, told)
        case "search":
            return Action(
                verb="search" if _first(call.input, _QUERIES) else "list",
                target=_searched_for(call.input) or tool_target(call.input, told.known),
                outcome=failure or _matches(told.output),
                weight=int(bool(failure)),
            )
        case "web":
            title = _TITLE.search(told.output)
            said = title["title"].strip() if title else _first_line(told.output)
            return Action(
                verb="web",
                target=tool_target(call.input, told.known) or _argument(call.input),
                outcome=failure or one_line(said, SHORT_CHARACTERS),
                weight=1,
            )
        case _:
            is_plan = any(map(_is_steps, call.input.values()))
            is_told = is_plan or asks_user(call.name)  # elsewhere: the steps, the user's words
            return Action(
                verb=call.name,
                target=""
                if is_plan
                else tool_target(call.input, told.known) or _argument(call.input),
                outcome=failure or ("" if is_told else _short(told.output, 0)),
                weight=2 if failure else int(not is_told),
            )


def _ran(command: Command, told: _Told) -> Action:
    """A command with the outcome of its tests, its error, or its output."""
    status, tests = status_of(told.result), outcome(told.output)
    is_bad = told.result is not None and (told.has_failed or status not in WENT_WELL)
    is_look = bool(_LOOKS.match(command.text))
    is_commit = bool(_COMMITS.search(command.text))
    if is_bad or tests:
        said = _failure(status, tests, told.output) if is_bad else tests
    elif made := _COMMITTED.search(told.output) if is_commit else None:
        said = made[1]
    else:
        said = _short(told.output, None if is_look else -1) if told.result else status
    return Action(
        verb="$",
        target=_command_line(command, told.call.input.get("description")),
        folder=command.folder,
        outcome=said,
        weight=3 if tests or (is_commit and not is_bad) else 2 if is_bad else int(not is_look),
    )


def _failure(status: str, tests: str, output: str) -> str:
    """How a command failed: its tests or else its status, and the error."""
    error = telling_error(output)
    ended = f"exit {status}" if status.lstrip("-").isdigit() else "" if error else status
    return ": ".join(filter(None, (tests or ended, error)))


def _command_line(command: Command, about: object) -> str:
    """The command; of a long one with a commit its message, or a part and what the call says of it."""
    line = shown_command(command, TARGET_MAX)
    if "…" not in line:
        return line
    if message := _MESSAGE.search(shown_command(command, COMMAND_MAX)):
        return f"git commit -m {one_line(message[1], TARGET_MAX)}"
    if isinstance(about, str) and about.strip():
        half = TARGET_MAX // 2
        return f"{shown_command(command, half)}  # {one_line(about, half)}"
    return line


def _short(output: str, telling: int | None = None) -> str:
    """An output in few words: itself if it is short, else the number of its lines and the telling one of them: 0 for the
    first, -1 for the last."""
    lines = [line.strip() for line in output.split("\n") if re.search(r"\w", line)]
    whole = " / ".join(lines[:SHORT_LINES])
    if len(lines) <= SHORT_LINES and len(whole) <= SHORT_CHARACTERS:
        return "" if _NO_OUTPUT.fullmatch(whole) else whole
    if lines[0][0] in "{[" and lines[-1][-1] in "]}":
        return f"JSON, {len(output)} characters"
    if len(lines) == 1:
        return one_line(lines[0], SHORT_CHARACTERS)
    number = f"{len(lines)} lines"
    return number if telling is None else f"{number}: {one_line(lines[telling], SHORT_CHARACTERS)}"


def _matches(output: str) -> str:
    """The number of matches, and where they are if they are few."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    if not lines or (len(lines) == 1 and _NOTHING.search(lines[0])):
        return "no matches"
    counted = _FOUND.match(lines[0])
    found = lines[1:] if counted else lines
    number = int(counted[1] or counted[2]) if counted else len(found)
    whole = " / ".join(found)
    few = whole if len(found) <= SHORT_LINES and len(whole) <= SHORT_CHARACTERS else ""
    return few or f"{number} match{'es' * (number != 1)}"


def _searched_for(arguments: Mapping[str, Any]) -> str:
    """What a search looked for, and where."""
    query, where = _first(arguments, _QUERIES), _first(arguments, _WHERES)
    if not query:
        return where
    return f'"{query}"' + (f" in {where}" if where else "")


def _first(arguments: Mapping[str, Any], names: Iterable[str]) -> str:
    values = (arguments.get(name) for name in names)
    return next((" ".join(v.split()) for v in values if isinstance(v, str) and v.strip()), "")


def _argument(arguments: Mapping[str, Any]) -> str:
    """The argument that tells most of a call of an unknown tool: the first text, as a tool's main parameter is its
    first."""
    stack: list[Any] = [arguments]
    while stack:
        item = stack.pop()
        if isinstance(item, str) and item.strip():
            return _first_line(item)
        if isinstance(item, dict):
            stack += reversed(list(cast("dict[Any, Any]", item).values()))
        elif isinstance(item, list):
            stack += reversed(cast("list[Any]", item)[:1])
    return ""


def _is_steps(value: Any) -> bool:
    """Whether an argument is a list of steps with a status, as tools for plans and to-do lists take."""
    rows: list[Any] = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(rows) and all(isinstance(row, dict) and "status" in row for row in rows)


def _first_line(text: str) -> str:
    lines = (line.strip() for line in text.split("\n"))
    return next((line for line in lines if re.search(r"\w", line)), "")


# In the room given.


def fitted(
    actions: Sequence[Action], tokens_max: int, count: Callable[[str], int]
) -> tuple[Action, ...]:
    """The newest actions and the older ones that tell most, in their order; the first stands for all others."""
    untold = sum(action.runs for action in actions if not action.verb)
    told = [action for action in actions if action.verb]
    ranked = _ranked(told)
    sizes = [count(f"{line}\n") for line in map(line_of, told)]
    kept = _within(told, ranked, sizes, tokens_max)
    while kept:
        shown = [told[place] for place in sorted(kept)]
        left = untold + sum(a.runs for a in told) - sum(a.runs for a in shown)
        if left:
            shown.insert(0, Action(verb="", runs=left))
        if count(text_of_actions(shown)) <= tokens_max:
            return tuple(shown)
        kept = kept[: -1 - len(kept) // 16]
    return ()


def _within(
    actions: Sequence[Action], ranked: Sequence[int], sizes: Sequence[int], tokens_max: int
) -> list[int]:
    """The places of the actions that fit, the newest first, then by rank."""
    left, kept = tokens_max, list[int]()
    for place in reversed(range(len(actions))):
        if sizes[place] > left - (1 - NEWEST_SHARE) * tokens_max:
            break
        left -= sizes[place]
        kept.append(place)
    chosen = set(kept)
    for place in ranked:
        if place not in chosen and sizes[place] <= left:
            left -= sizes[place]
            kept.append(place)
    return kept


def names_used(actions: Iterable[Action]) -> Mapping[str, int]:
    """How often the agent wrote each name in the calls that the actions tell of."""
    uses = Counter[str]()
    for action in actions:
        runs = action.runs if action.verb else 0
        for name in identifiers(f"{action.target} {action.folder}"):
            uses[name] += runs
    return uses


def _ranked(actions: Sequence[Action]) -> list[int]:
    """The places of the actions, those that tell most first, the newest first among equals.

    A name that several actions mention speaks for the newest of them.
    """
    names = [identifiers(f"{action.target} {action.folder}") for action in actions]
    uses = names_used(actions)
    told = set[str]()
    worths = [0] * len(actions)
    for place in reversed(range(len(actions))):
        back = {name for name in names[place] if uses[name] >= USES_MIN} - told
        told |= back
        worths[place] = actions[place].weight + min(len(back), BACK_MAX)
    return sorted(range(len(actions)), key=lambda place: (-worths[place], -place))


# As text.


def text_of_actions(actions: Sequence[Action]) -> str:
    """One line for each action, or for adjacent ones of one kind; paths are relative to the folder that most share."""
    root = _root(actions)
    lines = [line.replace(f"{root}/", "") if root else line for line in _lines(actions)]
    return "\n".join([f"(paths in {root})", *lines] if root else lines)


def _root(actions: Iterable[Action]) -> str:
    """The folder whose name, left out, shortens the paths most; empty if that is not worth a line."""
    files = {action.target for action in actions if action.verb in FILES}
    saved = Counter[str]()
    for path in (*files, *(action.folder for action in actions)):
        parts = path.split("/")
        if path.startswith("/") and " " not in path:
            for number in range(ROOT_PARTS_MIN, len(parts)):
                saved["/".join(parts[:number])] += 1
    worth = {
        root: len(root) * (number - 1) for root, number in saved.items() if number > ROOT_USES_MIN
    }
    return max(worth, key=lambda root: (worth[root], root), default="")


def _lines(actions: Sequence[Action]) -> Iterator[str]:
    folder = ""
    for is_joined, alike in groupby(actions, key=_joined_as):
        some = list(alike)
        if is_joined:
            yield from _joined_lines(some)
            continue
        for action in some:
            if not action.verb:
                yield f"({action.runs} more, not listed)"
                continue
            yield line_of(action, folder)
            if action.verb == "$" and action.folder:
                folder = action.folder


def _joined_as(action: Action) -> str:
    return (
        action.verb
        if action.verb in JOINED and (not action.outcome or action.verb in {"search", "list"})
        else ""
    )


def _joined_lines(actions: Sequence[Action]) -> Iterator[str]:
    """Lines that each tell of several actions of one kind; parts of one file stand together."""
    line = ""
    for _, alike in groupby(actions, key=attrgetter("target")):
        some = list(alike)
        parts = ", ".join(filter(None, map(attrgetter("part"), some)))
        told = _with_runs(
            f"{some[0].target} {parts}".strip(), sum(a.runs for a in some) if not parts else 1
        )
        outcome = f" -> {some[-1].outcome}" if some[-1].outcome else ""
        if line and len(line) + len(told) + len(outcome) < LINE_MAX:
            line += f"; {told}{outcome}"
            continue
        if line:
            yield line
        line = f"{_label(some[0])}{some[0].verb} {told}{outcome}"
    yield line


def line_of(action: Action, folder: str = "") -> str:
    """The line of one action; a command names the folder that it ran in unless it is this one."""
    target = action.target
    if action.folder and action.folder != folder:
        target = f"cd {action.folder} && {target}"
    told = " ".join(filter(None, (action.verb, target, action.part)))
    ended = f" -> {action.outcome}" if action.outcome else ""
    return f"{_label(action)}{_with_runs(told, action.runs)}{ended}"


def _with_runs(told: str, runs: int) -> str:
    return f"{told} x{runs}" if runs > 1 else told


def _label(action: Action) -> str:
    return f"[{label_of(action.seen)}] " if action.seen else ""
