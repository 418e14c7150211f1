"""Where the work stands: goal, steps, changes by file, tests, open errors, processes, branch and commits.

    Goal, as the user last put it (t4 [v812]): Make the shading smoother on narrow segments.
    Steps, as of [v700]:
    - done: 1 Read the shader; 2 Add a test
    - 3 [in_progress] Wire the clicks
    Changes by file (in /home/ann/app/), the newest last:
    - src/color/gradient.go (4 edits, [v145]): added autoShade; changed Blend
    Tests, builds, open errors:
    - [v120] go test ./... -> 3 failed, 40 passed: TestX, TestY (changed since: gradient.go)

It is a state, not a history: what a later call replaces, closes or ends is gone. It is computed from calls and results, so
it says what happened, whatever the agent said about it. Lines of which nothing is known are not written.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, takewhile
from posixpath import basename, join, normpath, splitext
from typing import Any, Final

import attrs
from msgspec.structs import replace

from blocks import (
    CheckRecord,
    Commit,
    FileChange,
    Process,
    Progress,
    Repository,
    Step,
    SystemMessage,
    ToolResult,
    UserAttachment,
    label_of,
    text_of,
    words_of,
)
from blocks.formats import command_in, items, objs
from render.summary._calls import (
    NO_OUTPUT,
    PROGRAM,
    Run,
    edits_of,
    outcome,
    shared_folder,
    telling_error,
    without_folder,
)
from render.summary._prose import is_assent, one_line, searched, table
from render.summary._shell import Command, CommandLine, commands_in, name_of, shown_command
from render.view._view import Entry


def advance(previous: Progress, entries: Sequence[Entry], runs: Mapping[str, Run]) -> Progress:
    """The state after `entries`, which are newer than `previous`, in log order; `runs` has the calls of their results."""
    state = replace(previous, steps=()) if entries and _is_over(previous.steps) else previous
    for entry in entries:
        if entry.original is not None or entry.standing:
            continue
        block, run = entry.block, runs.get(entry.pair)
        if isinstance(block, ToolResult):
            state = _after(state, run) if run and not run.is_hidden else state
        elif words := words_of(block):
            state = _after_text(state, entry, words)
        elif isinstance(block, UserAttachment | SystemMessage):
            state = replace(state, processes=noticed(state.processes, text_of(block)))
    return state


def _after(state: Progress, run: Run) -> Progress:
    processes, run = processes_after(state.processes, run)
    changes, others = changes_after(state.changes, run)
    if (steps := _steps_after(state.steps, run)) is not None:
        state = replace(state, steps=tuple(steps[-STEPS_MAX:]), steps_seen=run.version)
    return replace(
        state,
        processes=tuple(processes),
        changes=tuple(changes),
        others=state.others + others,
        checks=tuple(checks_after(state.checks, run)),
        repository=git_after(state.repository, run),
    )


# The goal.


GOAL_CHARACTERS: Final = 240
CHOICE_BYTES: Final = 3
"""A text of the user that is no longer chooses from what the agent offers: `c`, `12`. In UTF-8: one character of Chinese."""
ELEMENT: Final = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]*)?>")


def _after_text(state: Progress, entry: Entry, words: str) -> Progress:
    """The state after a text of the user: its goal, unless it only agrees or chooses."""
    words = command_in(words) or words
    state = replace(state, processes=noticed(state.processes, words))
    if len(words.strip().encode()) <= CHOICE_BYTES or is_assent(words):
        return state
    goal = one_line(ELEMENT.sub(" ", words[:4000]).strip("# \n"), GOAL_CHARACTERS)
    is_left = state.steps_seen < state.goal_seen < max((c.seen for c in state.changes), default=0)
    # The work on the last request did not touch the plan, or ended it.
    if is_left or _is_over(state.steps):
        state = replace(state, steps=())
    return replace(
        state,
        goal=goal,
        goal_turn=str(entry.block.turn),
        goal_seen=entry.version,
        # Errors of the work before are closed; a check ends by itself, and nobody waits for it any more.
        checks=tuple(check for check in state.checks if _suites(check.command)),
        processes=tuple(each for each in state.processes if not _suites(each.command)),
    )


# The steps.


STEPS_MAX: Final = 40
_STATES: Final = re.compile(
    r"(?P<done>completed?|done|finished|closed|resolved)|(?P<gone>cancell?ed|deleted|removed|skipped)"
    r"|(?P<open>in_progress|doing|active|started|pending|todo|open|not_started|blocked)"
)
"""What the states of steps mean, by the words of the tools: Claude Code and Codex (pending, in_progress, completed),
opencode and Gemini CLI (also cancelled, blocked), OpenHands (todo, in_progress, done), Copilot (not-started)."""
_FLAG_KEYS: Final = ("done", "completed", "checked")
_TEXT_KEYS: Final = ("content", "step", "subject", "title", "description", "text", "task", "name")
"""The argument that says what a step is, the shortest first where a tool has two."""
_ID_KEYS: Final = ("id", "taskId", "task_id", "todo_id")
_CREATED: Final = re.compile(r"(?i)\b(?:task|todo|item|step)\s+#?([\w-]+)\s+(?:created|added)")
_TASK: Final = re.compile(r"(?m)^#(\d+) \[(\w+)\] (.+)$")
_NO_TASK: Final = re.compile(r"(?P<none>No tasks found)|Task\b.{0,40} not found")
"""What Claude Code's tools answer: a row of `TaskList`, which has no arguments; that there is none, or not this one."""


def _meaning(status: str) -> str:
    """What a state of a step means: `done`, `open`, `gone`; empty if that is not known."""
    state = _STATES.fullmatch(re.sub(r"[\s-]+", "_", status.strip().lower()))
    return (state and state.lastgroup) or ""


def _is_over(steps: Iterable[Step]) -> bool:
    return all(_meaning(step.status) == "done" for step in steps)


def _steps_after(before: Sequence[Step], run: Run) -> list[Step] | None:
    """The steps after one more call, which lists them all, or creates or updates one; None if it says nothing of them."""
    answer = _NO_TASK.match(run.text)
    if run.failed or run.kind in {"write", "command", "web"} or (answer and not answer["none"]):
        return None
    arguments, update = run.call.input, _step(run.call.input)
    old = next((step for step in before if step.id and step.id == update.id), None)
    created = _CREATED.search(run.text[:200]) if run.kind == "other" and update.text else None
    if lists := [rows for value in arguments.values() if (rows := _rows(value))]:
        earlier = before if arguments.get("merge") is True else ()
        steps = [*{step.id or step.text: step for step in (*earlier, *lists[0])}.values()]
    elif old and (update.text or _meaning(update.status)):
        status = update.status if _meaning(update.status) else old.status
        new = replace(old, text=update.text or old.text, status=status)
        steps = [new if step is old else step for step in before]
    elif not arguments and ((tasks := _TASK.findall(run.text)) or answer):
        tasks = sorted(tasks, key=lambda task: int(task[0]))
        steps = [Step(text=one_line(text, 160), status=how, id=name) for name, how, text in tasks]
    elif created:
        new = replace(update, id=created[1], status=update.status or "pending")
        steps = [*(() if _is_over(before) else before), new]
    else:
        return None
    return [step for step in steps if _meaning(step.status) != "gone"]


def is_plan(run: Run) -> bool:
    """Whether a call only changes the plan: it lists the steps, creates one, or says how one stands."""
    is_named = any(key in run.call.input for key in _ID_KEYS[1:])
    is_one = is_named and _meaning(_step(run.call.input).status)
    return bool(is_one) or _steps_after((), run) is not None


def _rows(value: Any) -> list[Step]:
    """The steps that an argument lists: objects with a text and a state."""
    rows = [*map(_step, objs(value))]
    is_list = len(rows) == len(items(value)) and all(row.text and row.status for row in rows)
    return rows if is_list and any(_meaning(row.status) for row in rows) else []


def _step(row: Mapping[str, Any]) -> Step:
    texts = (v for key in _TEXT_KEYS if isinstance(v := row.get(key), str) and v.strip())
    status = next((v for key in ("status", "state") if isinstance(v := row.get(key), str)), "")
    flag = next((v for key in _FLAG_KEYS if isinstance(v := row.get(key), bool)), None)
    identity = next((v for key in _ID_KEYS if isinstance(v := row.get(key), str | int)), "")
    status = status or {True: "completed", False: "pending", None: ""}[flag]
    text, name = one_line(next(texts, ""), 160), one_line(str(identity).lstrip("#"), 40)
    return Step(text=text, status=one_line(status, 20), id=name)


# The changes by file: how often, and the most telling line of the newest.


FILES_MAX: Final = 40
LINE_CHARACTERS: Final = 100
SCRATCH: Final = re.compile(r"(?:/private|/var)?/tmp/(?P<folder>(?!claude)[^/]+/)?")
"""Folders whose files are not the work, unless the agent changes in a folder there, as in a clone, what it did not write.
Claude Code keeps its own scratch files in `/tmp/claude-501/`."""
WHOLE: Final = frozenset({"created", "written"})
"""How a file came to be whose text the agent wrote as a whole."""
MOVED: Final = "moved from "
"""How a file came to be that was another before, which follows."""


def changes_after(before: Sequence[FileChange], run: Run) -> tuple[list[FileChange], int]:
    """The changes by file after one more call, and how many are no longer listed. A failed call changed nothing."""
    if run.failed:
        return list(before), 0
    used = "\n".join(c.text for c in run.commands if c.words[0] not in {*_LOOKING, "git"})
    # What was deleted and is used is there again.
    changes = {each.path: each for each in before if each.how != "deleted" or each.path not in used}
    line = run.command or CommandLine("")
    folder = "" if re.search(r"\bcd\s", line.text) else line.folder  # unless they leave it
    for edit in chain(_by_arguments(run), *(_by_command(each, folder) for each in run.commands)):
        if edit.how == "added":
            new = changes.get(_path_among(edit.path, changes)) or FileChange(path=edit.path)
            if new.added > new.seen:  # it is added again, so another has changed it
                new = replace(new, line="")
            changes[new.path] = replace(new, added=run.version, seen=new.seen or run.version)
            continue
        old = changes.pop(_path_among(edit.path, changes), None) or FileChange(path=edit.path)
        if edit.how.startswith(MOVED):
            source = changes.pop(_path_among(edit.how.removeprefix(MOVED), changes), None)
            how = source.how if source and source.how in WHOLE else edit.how
            changes[edit.path] = replace(source or old, path=edit.path, how=how, seen=run.version)
            continue
        is_untold = edit.how == "restored"
        if edit.how == "deleted":  # a folder, of which nothing is told, with all that is in it
            changes = {p: c for p, c in changes.items() if not p.startswith(f"{edit.path}/")}
            is_file = old.edits or _FILE.fullmatch(basename(edit.path))
            is_untold = old.how in WHOLE or not is_file
        scratch = SCRATCH.match(edit.path)
        is_work = not scratch or old.edits or (edit.line and scratch["folder"])
        if is_work and not is_untold:
            new = _change_with(old, edit, run.version)
            changes[new.path] = new
    left = sorted(changes.values(), key=lambda each: bool(each.edits or each.how))[-FILES_MAX:]
    return left, len(changes) - len(left)


def _path_among(file: str, paths: Iterable[str]) -> str:
    """The path under which a file is listed: the same, or the only one that has the same end, as a relative path has."""
    plain = f"/{file}".replace("\\", "/")
    ends = ((path, f"/{path}".replace("\\", "/")) for path in paths)
    alike = [path for path, end in ends if plain.endswith(end) or end.endswith(plain)]
    return alike[0] if len(alike) == 1 else file


def _by_arguments(run: Run) -> Iterator[FileChange]:
    """The changes that a call's arguments show, each with what it replaced in its most telling line."""
    is_patch = "*** Begin Patch" in str(run.call.input)
    verb = "created" if "created" in run.text[:200].lower() else "written"
    for edit in edits_of(run):
        new = edit.new or ""
        if edit.old is not None or edit.is_added:
            yield FileChange(path=edit.file, line=_difference(edit.old or "", new))
        else:
            how = verb if re.search(r"\w", new) or not is_patch else "deleted"
            yield FileChange(path=edit.file, how=how)


_FILE: Final = re.compile(r"(?!-)(?:[A-Za-z]:)?(?:[\w./@+-]|\\(?=\w))*[\w@+-]\.\w{1,10}")
_NAME: Final = re.compile(r"(?!-|s/.*/)[\w./@+-]+")
"""What may name a file without an ending, or a folder, and is no script of sed."""


def _by_command(command: Command, folder: str) -> Iterator[FileChange]:
    """The changes of a command that moves, deletes, restores or edits files in place, or adds to a commit what others may have
    changed: a sub-agent, a generator."""
    how = "added" if command.words[:2] == ("git", "add") else command.change
    words = command.words[1:]
    folder = join(folder, *(x.strip("'\"") for o, x in pairwise(command.literal) if o == "-C"))
    plain = words if how == "deleted" else command.literal[-1:] if how == "edited" else ()
    names = [x for x in words if _FILE.fullmatch(x) or (x in plain and _NAME.fullmatch(x))]
    files = [name_of(normpath(x if x[1:2] == ":" else join(folder, x))) for x in names]
    if how == "moved" and files:
        target = name_of(normpath(join(folder, words[-1])))
        for file in files if files[-1] != target else files[:-1]:
            new = target if files[-1] == target else normpath(join(target, basename(file)))
            yield FileChange(path=new, how=f"{MOVED}{file}")
    elif how in {"deleted", "restored", "edited", "added"}:
        yield from (FileChange(path=file, how="" if how == "edited" else how) for file in files)


def _change_with(change: FileChange, edit: FileChange, version: int) -> FileChange:
    """The change of a file with one more edit."""
    path, edits = max(change.path, edit.path, key=len), change.edits + 1
    is_new = change.how == "deleted" or not (change.how or change.edits)
    how = edit.how if is_new or edit.how in {"created", "deleted"} else change.how or edit.how
    line = "" if how == "deleted" else edit.line or change.line
    return replace(change, path=path, edits=edits, seen=version, how=how, line=line)


_AROUND: Final = re.compile(
    r"(?:import|from|use|using|require|include|package|end|else)\b.*|#\s*include\b.*|.*\brequire\(.*"
    r"|export\s*[{*].*|['\"`][\w./@:-]+['\"`][,;]?|[\w$]{1,2}\W*"
)
"""A line that says little of what an edit is about: an import, a part of a block."""
_WORDED: Final = re.compile(r"(?![<>]{7} ).*\w")
"""A line that has words, and is none that git puts around the sides of a conflict."""


def _difference(before: str, after: str) -> str:
    """What an edit replaced in its most telling line: `old → new` where both are short and have a word in common, or are all,
    else the line that came (`+ x`) or went (`- x`). Lines that differ only in signs tell less than others."""
    texts = [
        {x.strip(): re.sub(r"\W", "", x) for x in text.split("\n") if _WORDED.match(x)}
        for text in (before, after)
    ]
    pairs = texts, texts[::-1]
    sides = [[x for x in one if one[x] not in other.values()] for one, other in pairs]
    if not any(sides):
        sides = [[x for x in one if x not in other] for one, other in pairs]
    old, new = (min(lines, key=lambda x: bool(_AROUND.fullmatch(x)), default="") for lines in sides)
    shared = {*re.findall(r"\w+", old)}.intersection(re.findall(r"\w+", new))
    is_near = shared or max(map(len, sides)) == 1
    if new and not (is_near and len(old) + len(new) <= LINE_CHARACTERS):
        old = ""
    line = f"{old} → {new}" if old and new else f"+ {new}" if new else f"- {old}" if old else ""
    return one_line(line, LINE_CHARACTERS)


# Tests, builds, linters, and open errors.


CHECKS_MAX: Final = 6
CHECK_VERSIONS: Final = 300
"""A check that did not run again for this many blocks, some hundred calls, belongs to other work."""
OPEN_VERSIONS: Final = 60
"""An error that the agent has left alone for this many blocks, some twenty calls, is one that it went around."""
FAILING_MAX: Final = 6
COMMAND_CHARACTERS: Final = 160
STORED_CHARACTERS: Final = 2000
"""Of a command that is told in `COMMAND_CHARACTERS` so many are kept: it is divided again when it ends, or runs again."""
_CHECK: Final = re.compile(
    r"(?:[\w.-]*[:_-])?(?:(?:run)?tests?|--test|checks?|--check|build|--build|lint|type-?check|compile|vet|clippy|verify"
    r"|validate|ci|e2e|unit|spec|nextest|analyze)(?:[:_-][\w:.-]*)?"
    r"|make|pytest|unittest|tox|nox|mypy|pyright|ruff|flake8|pylint|tsc|vue-tsc|svelte-check|eslint|biome|jest|vitest"
    r"|mocha|playwright|cypress|ctest|ninja|golangci-lint|staticcheck|rubocop|rspec|phpunit|phpstan|shellcheck|ktlint"
    r"|detekt|xcodebuild|bats|clang-tidy|rustc|gcc|g\+\+|cc|clang|clang\+\+|javac|webpack|rollup|vite|msbuild|pre-commit"
)
"""Names of tasks, scripts and programs that check or build; from the documentation of each language's tools."""
_LOOKS: Final = table(
    "cat head tail grep egrep rg ag find fd ls ll tree stat file wc nl awk cut tr sort uniq jq less which diff cmp"
    " echo printf pwd du date ps pgrep true false sleep xargs"
)
"""Programs that only print what there is, or nothing."""
_LOOK: Final = re.compile(
    r"\W*(?:(?:sed -n|git (?:-\S+ \S+ )?(?:log|show|diff|status|grep|blame|branch|ls-files|ls-tree|rev-parse|remote)"
    r"|gh (?:\w+ (?:view|list|status|diff)|api (?!.*(?:-X|--method|-f|-F)\b)))\b"
    r"|(?:Get|Select|Measure|Where|Sort|Format|Compare)-[A-Z])"  # PowerShell
)
"""Other commands that do no more."""
_LOOKING: Final = _LOOKS | table(
    "sed type test [ [[ wait kill pkill killall mkdir touch cp mv rm ln chmod export source . set read tee exit if for"
    " while until case fi done esac"
)
"""Programs that say or do nothing about whether the work is right: their failure is an answer, or a trifle."""
_OTHERS: Final = table(
    "write git gh glab curl wget ssh pip install add clean fmt format --write --version --help"
)
"""Programs, tasks and options with which a word like `test` is a name, or files change."""
_FAULT: Final = re.compile(
    r"(?i)error|fail|fatal|panic|undefined|not found|cannot|denied|:\d+:\d+:"
)
_ENDED: Final = re.compile(
    r"(?i)\bexit(?:ed)?(?: with)?(?: code| status)?\W{0,3}0\b|\[no test files\]"
)
"""A line that only says that the command ended well, or that a package of go has no tests."""
_NOWHERE: Final = re.compile(r"(?i)does not exist|no such file|file not found")
_FAILED: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^[ \t]*--- FAIL: (\S+)",  # go test
        r"^(?:FAILED|ERROR) (\S+::[^\n]+?)(?: - |$)",  # pytest
        r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))",  # unittest
        r"^test (\S+) \.\.\. FAILED$",  # cargo
        r"^ +● (.+ › .+)$",  # jest
        r"^ *(?:FAIL|×|✗|✖) +(\S.* > .*\S)",  # vitest
        r"^not ok \d+ -? ?(.+)$",  # TAP: node, bats, prove
        r"^[ \t]+\d+ - (\S+) \((?:Failed|Timeout)\)",  # ctest
        r"^\[ERROR\] +(\w[\w.]+\.\w+:\d+)",  # Maven
        r"^rspec (\./\S+:\d+)",  # RSpec
        r"^FAIL[ \t]+([\w.-]+(?:/[\w.-]+)+)(?:[ \t]|$)",  # go test, a package; jest, a file
    )
)
"""How each runner names a test that failed, the more exact form first; see the table in `_calls`."""


def checks_after(before: Sequence[CheckRecord], run: Run) -> list[CheckRecord]:
    """The checks and open errors after one more call: without those that it replaces or closes, and with its own. One goes when
    all that it tells of ran again, at once or one by one."""
    telling, tests = _telling_commands(run), outcome(run.text)
    checking = [c for c in telling if suite_of(c)] or (telling[-1:] if tests or run.failed else [])
    texts = dict.fromkeys(c.text for c in checking or telling)
    command = one_line(" && ".join(texts), STORED_CHARACTERS)
    left, newer = list[CheckRecord](), list(commands_in(command))
    for old in reversed(before):
        age_max = CHECK_VERSIONS if _suites(old.command) else OPEN_VERSIONS
        parts = commands_in(old.command)
        is_again = all(any(_is_again(c, part, old.result) for c in newer) for part in parts)
        if run.version - old.seen <= age_max and not is_again:
            left.insert(0, old)
        newer += parts
    if checking and checking[-1].end != "&":
        result = _result(run, tests, checking[-1])
        left.append(CheckRecord(command=command, result=result, seen=run.version))
    checks = [check for check in left if _suites(check.command)]
    errors = [check for check in left if check not in checks]
    return sorted([*checks[-CHECKS_MAX:], *errors[-3:]], key=lambda check: check.seen)


def _telling_commands(run: Run) -> Sequence[Command]:
    """The commands of a call whose result says something; of a tool that is none, its name with its target."""
    if run.kind in {"write", "other"}:
        verb = run.kind if run.kind == "write" else run.call.name
        return commands_in(f"{verb} {run.target}")[:1]
    return [c for c in run.commands if c.words[0] not in _LOOKING and not is_look(c)]


def is_look(command: Command) -> bool:
    """Whether a command only prints what there is, or itself, as a text does in PowerShell."""
    is_text = len(command.literal) == 1 and command.text[:1] in {"'", '"'}
    return is_text or command.words[0] in _LOOKS or bool(_LOOK.match(command.text))


def suite_of(command: Command) -> str:
    """Program and task of a command that checks or builds; empty if it does neither."""
    program, *others = (_FIX.sub("", word) for word in command.words)
    plain = [word for word in others[:6] if word[:1] != "-" or _CHECK.fullmatch(word)][:2]
    if program in _LOOKING or is_look(command) or not _OTHERS.isdisjoint((program, *others[:2])):
        return ""
    is_named = plain[1:] and plain[0] != "run" and "-" in plain[1]
    if is_named and _CHECK.fullmatch(plain[1].partition("-")[0]):
        del plain[1]  # a name that only begins like a task: `capture verify-sums`
    names = [splitext(basename(word))[0] for word in (program, *plain) if "://" not in word]
    tasks = plain if program == "make" else [*filter(_CHECK.fullmatch, names)]
    return " ".join(dict.fromkeys([program, *tasks[:1]])) if tasks or program == "make" else ""


def _is_again(new: Command, old: Command, result: str) -> bool:
    """Whether a command checks what an older one did, of the same packages: with no more arguments than then, or if something
    had failed, with none that is new. How it is run, and what of it is shown, makes no difference."""
    suite, before = suite_of(new), suite_of(old)
    if not before:  # if there was no file at its path, another one may have been meant
        name = basename if _NOWHERE.search(result) else str
        return [*map(name, new.words[:2])] == [*map(name, old.words[:2])]
    is_fault = bool(not result.startswith("ok") and _FAULT.search(result))
    is_same = suite == before or (is_fault and suite == _COMPILES.sub(r"\1 test", before))
    packages, packages_before = (_PACKAGE.findall(" ".join(each.words)) for each in (new, old))
    words, words_before = (
        [x for x in each.words if (is_fault or x[:1] != "-") and not _ASIDE.fullmatch(x)]
        for each in (new, old)
    )
    wider = {x[: at.start()] for x in words_before for at in re.finditer(r"\b[/:]|_", x)}
    others = {_FIX.sub("", word) for word in words} - {*words_before, *wider, *suite.split()}
    is_narrow = others if is_fault else len(words) > len(words_before)
    return is_same and packages in ([], packages_before) and not is_narrow


_ASIDE: Final = re.compile(
    r"run|--|-[qsvx]+|-j\d*|-count=\d+|--?timeout=\w+|--(?:fix|quiet|silent|verbose|no-colou?r|colou?r(?:=\S*)?)"
    r"|\.(?:/\.\.\.)?|--workspace"
)
"""Words of a command that do not say what is checked, or that it is everything."""
_FIX: Final = re.compile(r"(?<=\w)[:-]fix$")
"""The end of a task's name if it also mends what it can: `npm run lint:fix`."""
_COMPILES: Final = re.compile(r"(cargo|go|swift|dotnet|mvn) (?:check|build|vet|compile)")
"""Tasks of programs that do the same first when they test. Those of npm and make are free names."""
_PACKAGE: Final = re.compile(r" (?:-[pCF]|--(?:filter|workspace|package|prefix))[ =]((?!-|no:)\S+)")
"""Which package of several a command is about: npm, pnpm, yarn, bun, cargo, make. In pytest, `-p no:x` turns x off."""


def _suites(command: str) -> list[str]:
    """The suites that a command runs; none if its record is an open error."""
    return list(filter(None, map(suite_of, commands_in(command))))


def _result(run: Run, tests: str, check: Command) -> str:
    """What came of a check. Where a pipe or a program hides its status, that is the line that tells of a fault, or the last one;
    this is not told if it is that of another command."""
    why, status = telling_error(run.text), run.status
    if run.failed or "failed" in tests or "errors" in tests:
        how = "failed" if status in {"ok", "failed"} else f"failed ({status})"
        return f"{tests or how}: {', '.join(failing_in(run.text)) or why}"
    is_hidden = check.end == "|" or run.whole.startswith(PROGRAM)
    if tests or (is_hidden and _FAULT.search(why)):
        return tests or why
    behind = run.commands[run.commands.index(check) :] if check in run.commands else ()
    is_last = all(c.end == "|" or other.words[0] == "echo" for c, other in pairwise(behind))
    lines = (x for x in reversed(run.text.splitlines()) if is_last and re.search(r"\w", x))
    last = next((x for x in lines if not (_ENDED.search(x) or NO_OUTPUT.fullmatch(x))), "")
    line = one_line(last, COMMAND_CHARACTERS // 2)
    if is_hidden:
        return line or ("no fault seen" if run.text.strip() else "no output")
    return f"ok: {line}" if line else "ok"


def failing_in(text: str) -> list[str]:
    """The tests that failed, as an output names them."""
    for form in _FAILED:
        names = (name for part in searched(text) for name in form.findall(part))
        if tests := list(dict.fromkeys(one_line(name, 100) for name in names)):
            left = len(tests) - FAILING_MAX
            return [*tests[:FAILING_MAX], *([f"{left} more"] if left > 0 else [])]
    return []


# Processes.


PROCESSES_MAX: Final = 8
_STARTED: Final = re.compile(
    r"(?im)^(?:Command|Process|Script|Task|Shell)\b[^\n]{0,40}\b(?:running|started|moved)\b[^\n]{0,60}?\bID:? *([\w-]+)"
)
"""How a tool says that the command runs on, and under which id: Claude Code, Codex."""
_EXITED: Final = re.compile(
    r"(?i)\b(?:exited|completed|finished|failed|stopped|killed|terminated|not found|no longer)\b"
)
_CELL: Final = re.compile(r"Script completed\nWall time (?:(?P<long>[5-9]|\d\d)|\d)")
"""How the answer of a program of Codex begins. If it prints only the output, nothing says whether the session goes on that it
asked for: then it has waited for five seconds or more, Codex's least for a poll that writes nothing. What `wait` tells is the end of the program alone."""


def processes_after(before: Sequence[Process], run: Run) -> tuple[list[Process], Run]:
    """The processes after one more call, and what the call counts as: one that asks for a process is a run of its command,
    which has no result before it exits."""
    left, started = list(before), _STARTED.search(run.head)
    if process := next((p for p in before if not run.names.isdisjoint(p.id.split())), None):
        ids, poll = process.id.split(), run.of(CommandLine(process.command, process.folder))
        # A program of Codex that asks for a session may go on, too, under an id of its own.
        if started:
            ids = [*(name for name in ids if name in run.names and name != started[1]), started[1]]
            left[left.index(process)] = replace(process, id=" ".join(ids))
        is_session, cell = "session_id" in run.call.input, _CELL.match(run.head)
        is_open = cell and (cell["long"] if is_session else ids[1:])
        if started or is_open or not _EXITED.search(run.head):
            return left, attrs.evolve(poll, commands=())
        left.remove(process)
        return left, poll
    if started and run.command and run.commands:
        text, folder = run.command.text[:STORED_CHARACTERS], run.command.folder
        left.append(Process(command=text, folder=folder, id=started[1], seen=run.version))
        return left[-PROCESSES_MAX:], attrs.evolve(run, commands=())
    for command in run.commands:
        program, *others = command.words
        if command.end == "&":
            left.append(Process(command=command.text[:STORED_CHARACTERS], seen=run.version))
        elif program in {"kill", "pkill", "killall", "wait"}:
            name = " ".join(word for word in others if word[:1] != "-")
            is_named = bool(name) and program in {"pkill", "killall"}
            left = [p for p in left if p.id and not (is_named and name in p.command)]
    return left[-PROCESSES_MAX:], run


def noticed(processes: Sequence[Process], text: str) -> tuple[Process, ...]:
    """The processes after a notice of the client: it names one, and says that it ended."""
    words = set(re.findall(r"[\w-]+", text[:2000])) if _EXITED.search(text[:2000]) else set[str]()
    return tuple(p for p in processes if words.isdisjoint(p.id.split()))


# Branch and commits.


COMMITTED: Final = re.compile(r"(?m)^\[([^\]\n]+?)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$")
_ON: Final = re.compile(
    r"(?m)^(?:On branch |(?:##|📌) (?:No commits yet on )?|Switched to (?:a new )?branch '|Already on '|\* )"
    r"([^\s'.(][^\s']*?)(?:\.\.\.\S+|')?(?: \[.*\])?$"
)
_PUSHED: Final = re.compile(
    r"(?m)^ [ *+!=-] ?\S*(?: ?\[new \w+\])? +(\S+ +-> +\S+)(?: \(forced update\))?$"
)
_FETCHED: Final = re.compile(r"(?m)^From .*\n(?: .*\n?)*")
_TRACKED: Final = re.compile(
    r"(?m)^(?:Your branch is (?:up to date with|ahead of) '|(?:##|📌) \S+?\.\.\.)([^\s']{1,90})'?"
    r"(?:\.?$|(?: by | \[ahead )(\d+))"
)
_LINK: Final = re.compile(
    r"(?m)(?:^[ \t]*|url\W{1,5})(https?://(?!api\.)[^\s\"'<>)\]]+/(?:pull|merge_requests|pulls)/\d+)"
)
"""What git prints (`git commit`, `status`, `switch`, `push`, `fetch`; 📌: rtk), and the addresses of GitHub, GitLab, Gitea,
where a line begins with one, or a field `url` has it."""
_PULLED: Final = re.compile(
    r"(?:gh|glab) (?:-\S+ \S+ )*(?:pr|mr) (?:create|edit|merge|view(?!.* (?:#?\d+|\$\S*|https?:\S+)(?: |$)))\b"
    r"|(?i:[\w.-]*create[_-]?(?:pull|merge)[_-]?request)"
)
"""Commands, and tools of servers for GitHub and GitLab; a request that is viewed by its number may be another's."""
_QUIET: Final = re.compile(
    r"(?s)git\0commit(?!.*\0(?:--dry-run|--fixup|-F|--file))\0(?:(?!-\w*m\0)[^\0]*\0)*+[^\0]*\0([^@$`\\\0\n]+)(?:[\0\n]|\Z)"
)
"""The words of a `git commit`, with the first line of its message if that is in them."""


_BRANCH: Final = re.compile(r"(?![0-9a-f]{7,40}\Z|origin/|upstream/)[\w/-]+")
"""A name that is no commit, no remote branch, and no file with an ending."""
_BRANCHING: Final = re.compile(r"-\w*[bBq]\w*|--quiet")
"""Options with which `git checkout` tells nothing, or goes to a new branch."""


def git_after(old: Repository, run: Run) -> Repository:
    """What is known of branch and commits after one more call, as far as the output of git tells."""
    commands = [c for c in run.commands if c.words[0] in {"git", "gh", "glab"}]
    verbs = {word for c in commands for word in c.words[1 : 2 if c.words[0] == "git" else 3]}
    options = {word for c in commands for word in c.words[2:]}
    text = "" if run.failed else run.text[:40_000]
    if any(map(_PULLED.match, [run.call.name, *(" ".join(c.words) for c in commands)])):
        links = dict.fromkeys([*old.links, *_LINK.findall(text)])
        old = replace(old, links=tuple(links)[-3:])
    if not commands:
        return old
    names = _ON.findall(text) if verbs & {"status", "switch", "checkout", "branch"} else []
    if options & {"--show-current", "--abbrev-ref"} and len(run.commands) == 1:
        names = text.split()
    if not (names or run.failed or _FAULT.search(text)):  # quietly
        names = [name for command in commands if (name := _gone_to(command.words))]
    name = one_line(names[-1], 80) if names else ""
    branch = name or old.branch
    base = run.command.folder if run.command else ""
    folder = next((join(base, c.literal[2]) for c in commands if c.literal[1:2] == ["-C"]), "")
    is_here = folder in {"", base, old.folder} or not (old.branch or old.commits)
    new = _new_commits(run, branch if is_here else "")
    if not (new or is_here):  # a look at another folder
        return old
    commits = [c for c in old.commits if c.branch or not (new or branch != old.branch)]
    if not is_here:  # where a branch of the same name is another
        commits = [commit for commit in commits if commit.branch != new[-1].branch]
    for command in () if run.failed else commands:
        if command.words[1:2] == ("reset",):
            commits = _after_reset(commits, command.words[2:])
    is_rebased = "rebase" in verbs or {"pull", "--rebase"} <= verbs | options
    is_rebased |= "Successfully rebased" in text or (not new and "--amend" in options)
    if is_rebased and not run.failed:
        # Their ids are others now, which a log may tell.
        commits = [replace(commit, hash="") for commit in commits]
        new = [replace(each, hash="") if "commit" in verbs else each for each in new]
    for commit in new:
        earlier = commits[: -1 if "--amend" in options else None]
        commits = [*(each for each in earlier if each.subject != commit.subject), commit]
    branch = new[-1].branch if new and not name else branch
    script = "".join(f"{' '.join(c.words)} {c.end}\n" for c in run.commands)
    if len(_LISTS.findall(script)) == 1 and _LOG.search(script):
        commits = _in_log(commits, [_commit(h, s, run) for h, s in _LOGGED.findall(text)], branch)
    folder = folder if name or new else old.folder
    old = replace(old, branch=branch, folder=folder, commits=tuple(commits[-8:]))
    is_own = "push" in verbs or (not new and branch in {commit.branch for commit in commits})
    pushed = "" if run.failed or not is_own else _pushed(text, is_push="push" in verbs)
    return replace(old, pushed=pushed, pushed_at=run.version) if pushed else old


def _gone_to(words: Sequence[str]) -> str:
    """The branch that a git command goes to; empty: it does not, or may mean a file or a commit."""
    verb, name = words[1:2], next((word for word in words[2:] if word[:1] != "-"), "")
    is_quiet = verb == ("checkout",) and any(map(_BRANCHING.fullmatch, words))
    is_other = {"--", "-d", "--detach"} & {*words}
    is_branch = (is_quiet or verb == ("switch",)) and not is_other and _BRANCH.fullmatch(name)
    return name if is_branch else ""


def _pushed(text: str, *, is_push: bool) -> str:
    """What git tells of the remote branch: what was pushed, how many commits it has not; empty if nothing."""
    if is_push and (refs := _PUSHED.findall(_FETCHED.sub("", text))):
        return one_line(f"pushed {', '.join(refs[:2])}", 90)
    if track := _TRACKED.search(text):
        where, number = track.groups()
        return f"commits not in {where}: {number}" if number else f"all commits are in {where}"
    return "git push ran" if is_push else ""


def _new_commits(run: Run, branch: str) -> list[Commit]:
    """The commits that git tells; else those of a quiet `git commit`, if a log shows its message, or, without a hash, if the
    status of the call is its own."""
    matches = COMMITTED.findall(run.text[:40_000])
    is_told = bool(matches) or run.failed or run.whole.startswith(PROGRAM)
    for n, command in enumerate(() if is_told else run.commands):
        if quiet := _QUIET.match("\0".join(command.words)):
            shown = re.search(rf"(?m)^([0-9a-f]{{7,40}}) {re.escape(quiet[1])}$", run.text)
            is_own = {c.end for c in run.commands[n:-1]} <= {"&&", "|"} and command.end != "|"
            is_doubtful = " to commit" in run.text or _FAULT.search(run.text)
            is_made = shown or (is_own and not is_doubtful)
            matches += [(branch, shown[1] if shown else "", quiet[1])] if is_made else []
    return [_commit(number, subject, run, where) for where, number, subject in matches]


def _commit(number: str, subject: str, run: Run, branch: str = "") -> Commit:
    subject = one_line(subject, 100)
    return Commit(subject=subject, hash=number[:10], branch=branch, seen=run.version)


_LOG: Final = re.compile(
    r"(?m)^git log(?: (?:--oneline|--(?:no-)?decorate|--(?:format|pretty)=(?:oneline|(?:t?format:)?%[hH] %s)|-n?\d*|\d+|HEAD"
    r"|\S+\.\.(?:HEAD)?))* (?:\|\n(?:head|cat) |(?:&&|\|\||[;&])?$)"
)
"""A `git log` that lists the newest commits without a gap, and that no other command filters."""
_LISTS: Final = re.compile(r"(?m)^git (?:log|reflog|show|rev-list|blame) ")
_LOGGED: Final = re.compile(
    r"(?m)^(?:commit )?([0-9a-f]{7,40})(?: \([^)\n]*\))?(?: |\n(?:\w+: .*\n)+\n {4})(.+)$"
)
"""A commit in a log: on one line, or with its author, date and message."""
_BACK: Final = re.compile(r"(?:HEAD|@)(?:~(\d*)|(\^*))")


def _after_reset(commits: list[Commit], words: Sequence[str]) -> list[Commit]:
    """The commits that `git reset` leaves: those before the one it goes back to; none if that is not known."""
    target = next((word for word in words if word[:1] not in {"", "-"}), "HEAD")
    places = [n for n, c in enumerate(commits, 1) if c.hash and c.hash[:7] == target[:7]]
    if back := _BACK.fullmatch(target):
        steps = len(back[2]) if back[1] is None else int(back[1] or 1)
        places = [max(len(commits) - steps, 0)]
    if not places and any(re.match("--.", word) for word in words):
        return []  # with `--hard` it is no file
    return commits[: places[-1]] if places else commits


def _in_log(commits: list[Commit], logged: Sequence[Commit], branch: str) -> list[Commit]:
    """The commits as a log lists them from the oldest known one on; if it lists none of them, with its newest, which is
    HEAD. What it does not list is gone, unless it ends there and the missing commits are older, or of another branch."""
    subjects, before = [c.subject for c in logged], {c.subject: c for c in commits}
    first = next((n for n, commit in enumerate(commits) if commit.subject in subjects), None)
    if first is None:
        return [*commits, *logged[:1]]
    last = subjects.index(commits[first].subject) + 1
    older = commits[: first if last == len(logged) else 0]
    others = [c for c in commits if c.branch not in {"", branch} and c.subject not in subjects]
    older += [c for c in others if c not in older]
    branch = commits[first].branch and branch
    newer = ((before.get(c.subject, c), c.hash) for c in logged[:last][::-1])
    return [*older, *(replace(c, hash=number, branch=branch) for c, number in newer)]


# The text.


def text(progress: Progress) -> str:
    """The body of the section; empty if nothing is known."""
    is_shown = progress.fewer < len(_MOST)
    changes = [each for each in progress.changes if each.edits or each.how]  # by the agent's calls
    progress = _smaller(progress, _MOST[progress.fewer]) if is_shown else Progress()
    checks = (
        f"{_at(each.seen)} {one_line(each.command, COMMAND_CHARACTERS)} -> {each.result}"
        + _since(each.seen, changes)
        for each in progress.checks
    )
    processes = (
        f"{_at(p.seen)} {shown_command(CommandLine(p.command), COMMAND_CHARACTERS)}"
        + (f" (id {' or '.join(p.id.split())})" if p.id else "")
        for p in progress.processes
        if not all(map(is_look, commands_in(p.command)))
    )
    goal = f"Goal, as the user last put it ({progress.goal_turn} {_at(progress.goal_seen)}): "
    parts = [
        goal + progress.goal if progress.goal else "",
        _steps(progress),
        _changes(progress),
        _section("Tests, builds, open errors:", checks),
        _section("Started in the background, not seen to end:", processes),
        _section("Branch and commits:", _git(progress.repository)),
    ]
    return "\n".join(filter(None, parts))


def _since(version: int, changes: Iterable[FileChange]) -> str:
    """Which files were changed after a check."""
    names = [re.split(r"[\\/]", each.path)[-1] for each in changes if each.seen > version]
    files = "more than 3 files" if names[3:] else ", ".join(names)
    return f" (changed since: {files})" if names else ""


def _section(title: str, lines: Iterable[str]) -> str:
    listed = "".join(f"\n- {line}" for line in lines if line)
    return f"{title}{listed}" if listed else ""


def _at(version: int) -> str:
    return f"[{label_of(version)}]"


def _steps(progress: Progress) -> str:
    """The steps: those that are done on one line, the others one by one."""
    steps = list(enumerate(progress.steps, 1))
    done = [f"{n} {one_line(s.text, 60)}" for n, s in steps if _meaning(s.status) == "done"]
    left = [f"{n} [{s.status}] {s.text}" for n, s in steps if _meaning(s.status) != "done"]
    later = ", before the newest request" if progress.goal_seen > progress.steps_seen else ""
    head = f"done: {'; '.join(done)}" if done else ""
    return _section(f"Steps, as of {_at(progress.steps_seen)}{later}:", [head, *left])


def _changes(progress: Progress) -> str:
    root = shared_folder(change.path for change in progress.changes)
    changes = [replace(c, path=_path_beside(c.path, root)) for c in progress.changes]
    plain = [change for change in changes if is_plain(change)]
    more = ", ".join(f"{each.path} {_at(each.seen)}" for each in plain)
    lines = [
        f"(changed and not listed: {progress.others})" * (progress.others > 0),
        f"also: {more}" if plain else "",
        *(_change(change) for change in changes if change not in plain),
    ]
    place = f" (in {root})" if root else ""
    return _section(f"Changes by file{place}, the newest last:", lines)


def is_plain(change: FileChange) -> bool:
    """Whether nothing more is known of a file than that it was written, moved or changed."""
    is_once = change.edits == 0 or (change.how in WHOLE and change.edits == 1)
    return (is_once or change.how == "") and not change.line


def _path_beside(path: str, root: str) -> str:
    """A path as it is told beside others in this folder: of one that was relative it is not known whether it is there."""
    is_relative = root and not re.match(r"[/~]|[A-Za-z]:", path)
    return f"…/{path}" if is_relative else without_folder(path, root)


def _change(change: FileChange) -> str:
    times = f"{change.edits} edits" if change.edits > 1 else ""
    details = ", ".join(filter(None, (change.how, times, _at(change.seen))))
    line = f": `{change.line}`" if change.line else ""
    return f"{change.path} ({details}){line}"


def _git(repository: Repository) -> Iterator[str]:
    here = {"", repository.branch, "detached HEAD"}
    if repository.branch:
        yield f"branch {repository.branch}" + f" in {repository.folder}" * bool(repository.folder)
    commits = [
        f"{c.hash} {c.subject}{f' (on {c.branch})' * (c.branch not in here)} {_at(c.seen)}".strip()
        for c in repository.commits
    ]
    if commits:
        yield f"newest commits: {'; '.join(commits)}"
    if repository.pushed_at:
        versions = [commit.seen for commit in repository.commits]  # those before one are in it
        newer = sum(1 for _ in takewhile(repository.pushed_at.__lt__, reversed(versions)))
        later = f", before {newer} of these commits" if newer else ""
        yield f"{repository.pushed} {_at(repository.pushed_at)}{later}"
    elif any(commit.branch for commit in repository.commits):
        yield "no push seen"
    if repository.links:
        yield f"pull requests: {', '.join(repository.links)}"


# The room.


_MOST: Final = (40, 24, 16, 12, 8, 5, 2, 1, 0)
"""How many entries of each list are shown, step by step; as many as in the first are kept. Of files of which nothing more is
known than that they were changed, a third as many; of commits, which are short and say what was done, at least `COMMITS_LEAST`."""
COMMITS_LEAST: Final = 5


def fitted(progress: Progress, tokens_max: int, count: Callable[[str], int]) -> Progress:
    """The state, of which as much is shown as fits into `tokens_max`: what is oldest gives way."""
    progress = _smaller(progress, _MOST[0])
    steps = (replace(progress, fewer=step) for step in range(len(_MOST)))
    fitting = (state for state in steps if count(text(state)) <= tokens_max)
    return next(fitting, replace(progress, fewer=len(_MOST)))


def _smaller(progress: Progress, most: int) -> Progress:
    """The state with at most so many files, steps, ...: the newest, and of the steps those that are left."""
    if not most:
        return Progress(
            goal=progress.goal, goal_turn=progress.goal_turn, goal_seen=progress.goal_seen
        )
    plain = [change for change in progress.changes if is_plain(change)]
    gone = plain[: max(len(plain) - most // 3, 0)]
    changes = [change for change in progress.changes if change not in gone][-most:]
    commits = progress.repository.commits
    steps = sorted(progress.steps, key=lambda step: _meaning(step.status) == "done")[: 2 * most]
    return replace(
        progress,
        steps=tuple(step for step in progress.steps if step in steps),
        changes=tuple(changes),
        others=progress.others + len(progress.changes) - len(changes),
        checks=progress.checks[-most:],
        processes=progress.processes[-most:],
        repository=replace(progress.repository, commits=commits[-max(most, COMMITS_LEAST) :]),
    )
