"""Where the work stands: the user's goal, the steps, changes by file, tests and builds, open errors, processes, commits.

It is a state, not a history: what a later call replaces, closes or ends is gone. It is computed from calls and results by
the kind of tool and the shape of arguments (`_edits`: files; `_runs`: commands), so it says what happened, whatever the
agent said about it. A call that failed changed nothing, a call without a result counts as unknown.

    goal        [v812] Make the shading smoother on narrow segments.
    steps       - [in_progress] Wire file clicks
    changes     - src/color/gradient.go (4 edits, [v145]): added autoShade; changed Blend
    tests       - [v120] go test ./... -> 3 failed, 40 passed: TestX, TestY (before the last edits)
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, cast

import attrs
from msgspec.structs import replace

from blocks import (
    CheckRecord,
    FileChange,
    OpenError,
    Process,
    Progress,
    Repository,
    Step,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserAttachment,
    label_of,
    standing_of,
    text_of,
)
from render.summary._checks import checks_after, errors_after
from render.summary._edits import (
    FILES_MAX,
    NAMES_MAX,
    SCRATCH,
    Views,
    changes_after,
    is_plain,
    less,
)
from render.summary._extractive import words_of
from render.summary._identifiers import one_line
from render.summary._runs import (
    COMMITS_MAX,
    Run,
    noticed,
    processes_after,
    repositories_after,
    run_of,
)
from render.view._group import Entry, Place


def advance(previous: Progress, entries: Sequence[Entry]) -> Progress:
    """The state after `entries`, which are newer than `previous`, in log order."""
    if not entries:
        return previous
    calls = {entry.pair: entry for entry in entries if isinstance(entry.block, ToolCall)}
    state = _dropped(previous)
    views = Views()
    for entry in entries:
        if entry.original is not None or standing_of(entry.source):
            continue
        block = entry.block
        if isinstance(block, ToolResult):
            asked = calls.get(entry.pair) if entry.place is Place.RESULT else None
            if asked is not None and asked.original is None and isinstance(asked.block, ToolCall):
                state = _after(state, run_of(asked.block, block, entry.version), views)
        elif words := words_of(entry):
            state = _asked(state, entry, words)
        elif isinstance(block, UserAttachment | SystemMessage):
            state = replace(state, processes=tuple(noticed(state.processes, text_of(block))))
    return replace(state, seen=entries[-1].version)


def _dropped(progress: Progress) -> Progress:
    """The state without a list of steps that was shown when all of it was done."""
    is_over = bool(progress.steps) and all(_state(step) == DONE for step in progress.steps)
    return replace(progress, steps=()) if is_over else progress


def _after(state: Progress, run: Run, views: Views) -> Progress:
    """The state after one call and its result."""
    processes, run = processes_after(state.processes, run)
    committed = max((c.seen for each in state.repositories for c in each.commits), default=0)
    changes, others = changes_after(state.changes, run, views, committed)
    steps = steps_after(state.steps, run)
    return replace(
        state,
        processes=tuple(processes),
        changes=tuple(changes),
        others=state.others + others,
        steps=tuple(steps) if steps is not None else state.steps,
        steps_seen=state.steps_seen if steps is None else run.version,
        checks=tuple(checks_after(state.checks, run)),
        errors=tuple(errors_after(state.errors, run)),
        repositories=tuple(repositories_after(state.repositories, run)),
    )


# The goal.


GOAL_MIN: Final = 60
"""Characters: a first sentence that is shorter ("Two things.") is followed by the next one."""
GOAL_CHARACTERS: Final = 240
_ASSENT: Final = frozenset(
    [
        "a",
        "ahead",
        "all",
        "alright",
        "and",
        "agree",
        "agreed",
        "also",
        "amazing",
        "awesome",
        "both",
        "can",
        "carry",
        "continue",
        "cool",
        "correct",
        "do",
        "does",
        "done",
        "exactly",
        "excellent",
        "fine",
        "go",
        "good",
        "got",
        "great",
        "hm",
        "hmm",
        "i",
        "is",
        "it",
        "just",
        "keep",
        "keeping",
        "know",
        "let",
        "lets",
        "like",
        "looks",
        "me",
        "much",
        "need",
        "nice",
        "no",
        "now",
        "of",
        "ok",
        "okay",
        "on",
        "one",
        "perfect",
        "please",
        "pls",
        "proceed",
        "resume",
        "right",
        "same",
        "see",
        "so",
        "sounds",
        "sure",
        "t",
        "thank",
        "thanks",
        "that",
        "the",
        "them",
        "then",
        "there",
        "these",
        "think",
        "this",
        "those",
        "to",
        "try",
        "u",
        "up",
        "very",
        "want",
        "we",
        "well",
        "works",
        "would",
        "y",
        "yea",
        "yeah",
        "yep",
        "yes",
        "you",
        "your",
    ]
)
"""Words with which a user only agrees, or tells the agent to go on; a text of nothing else is no goal."""
_ELEMENT: Final = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]*)?>")
_NOTICE: Final = re.compile(r"\s*<(?:task-notification|local-command|system|bash-)")
"""How a text begins that a client writes in the user's place: Claude Code."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n\s*")


def _asked(state: Progress, entry: Entry, words: str) -> Progress:
    """The state after a text of the user: its goal, unless it only agrees."""
    state = replace(state, processes=tuple(noticed(state.processes, words[:2000])))
    if entry.block.author != "user" or _NOTICE.match(words):
        return state
    spoken = set(re.findall(r"[^\W\d_]+", words[:400].lower()))
    if spoken <= _ASSENT:
        return state
    return replace(
        state,
        goal=_beginning(words),
        goal_turn=str(entry.block.turn),
        goal_seen=entry.version,
        errors=tuple(e for e in state.errors if e.turn == entry.block.turn),
    )


def _beginning(words: str) -> str:
    """The first sentences of a text, on one line."""
    plain = _ELEMENT.sub("\n", words[:4000]).strip()
    said = ""
    for sentence in _SENTENCE_END.split(plain):
        said = f"{said} {sentence.strip('# ')}".strip()
        if len(said) >= GOAL_MIN:
            break
    return one_line(said, GOAL_CHARACTERS)


# The steps.


STEPS_MAX: Final = 40
STEP_CHARACTERS: Final = 160
DONE: Final = "done"
DOING: Final = "doing"
OPEN: Final = "open"
GONE: Final = "gone"
_STATES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("completed", "complete", "done", "finished", "closed", "resolved", "x"), DONE),
    **dict.fromkeys(("in_progress", "doing", "active", "started", "running", "current"), DOING),
    **dict.fromkeys(
        ("pending", "todo", "to_do", "open", "not_started", "blocked", "waiting", "planned", "new"),
        OPEN,
    ),
    **dict.fromkeys(("cancelled", "canceled", "deleted", "removed", "skipped", "abandoned"), GONE),
}
"""What the states of steps mean, by the words of the tools: Claude Code and Codex (pending, in_progress, completed),
opencode and Gemini CLI (also cancelled, blocked), OpenHands (todo, in_progress, done), Copilot (not-started)."""
_STATUS_KEYS: Final = ("status", "state")
_FLAG_KEYS: Final = ("done", "completed", "checked", "is_done")
_TEXT_KEYS: Final = ("content", "step", "subject", "title", "description", "text", "task", "name")
"""The argument that says what a step is, the shortest first where a tool has two."""
_ID_KEYS: Final = ("id", "taskId", "task_id", "todo_id", "todoId", "item_id")
_BOX: Final = re.compile(
    r"[ \t]*(?:[-*+]|\d+[.)])?[ \t]*\[(?P<mark>[ xX~/-])\][ \t]+(?P<text>\S.*)"
)
_MARKS: Final = {
    "x": "completed",
    "X": "completed",
    "-": "in_progress",
    "~": "in_progress",
    "/": "in_progress",
}
_CREATED: Final = re.compile(
    r"\b(?:task|todo|item|step)\s+#?([\w-]+)(?:\s+\w+)?\s*(?:created|added|:)|(?:created|added)\s+(?:task|todo|item|step)\s+#?([\w-]+)",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(
    r"^[ \t]*#(?P<id>\w+)\.?:? +\[(?P<status>[\w -]+)\] +(?P<text>\S.*)$", re.MULTILINE
)


def _state(step: Step) -> str:
    return _meaning(step.status)


def _meaning(status: str) -> str:
    return _STATES.get(re.sub(r"[\s-]+", "_", status.strip().lower()), "")


def steps_after(before: Sequence[Step], run: Run) -> list[Step] | None:
    """The steps after one more call; None if it says nothing about them."""
    if run.failed or run.kind in {"write", "command", "web"}:
        return None
    arguments = run.call.input
    for value in arguments.values():
        if rows := _rows(value):
            is_part = arguments.get("merge") is True and all(row.id for row in rows)
            return _merged(before, rows) if is_part else rows[:STEPS_MAX]
    if run.kind != "other":
        return None
    return _single(before, run)


def _rows(value: Any) -> list[Step]:
    """The steps that an argument lists: objects with a text and a state, or lines with a box before each."""
    if isinstance(value, str):
        lines = [line for line in value.splitlines() if line.strip()]
        boxes = [found for line in lines if (found := _BOX.fullmatch(line))]
        is_list = len(boxes) > 1 and len(boxes) == len(lines)
        return [
            Step(
                text=one_line(box["text"], STEP_CHARACTERS),
                status=_MARKS.get(box["mark"], "pending"),
            )
            for box in (boxes if is_list else ())
        ]
    if not isinstance(value, list) or not value:
        return []
    rows = [
        _step(cast("dict[str, Any]", row))
        for row in cast("list[Any]", value)
        if isinstance(row, dict)
    ]
    steps = [step for step in rows if step is not None]
    is_list = len(steps) == len(cast("list[Any]", value)) and any(map(_state, steps))
    return [step for step in steps if _state(step) != GONE] if is_list else []


def _step(row: Mapping[str, Any]) -> Step | None:
    status = next((row[key] for key in _STATUS_KEYS if isinstance(row.get(key), str)), None)
    flag = next((row[key] for key in _FLAG_KEYS if isinstance(row.get(key), bool)), None)
    text = next(
        (row[key] for key in _TEXT_KEYS if isinstance(row.get(key), str) and row[key].strip()), ""
    )
    if (status is None and flag is None) or not text:
        return None
    said = status if status is not None else "completed" if flag else "pending"
    return Step(text=one_line(text, STEP_CHARACTERS), status=one_line(str(said), 20), id=_id(row))


def _id(row: Mapping[str, Any]) -> str:
    given = next((row[key] for key in _ID_KEYS if isinstance(row.get(key), str | int)), "")
    return one_line(str(given).lstrip("#"), 40)


def _merged(before: Sequence[Step], rows: Iterable[Step]) -> list[Step]:
    steps = {step.id or step.text: step for step in before}
    steps.update({row.id: row for row in rows})
    return list(steps.values())[-STEPS_MAX:]


def _single(before: Sequence[Step], run: Run) -> list[Step] | None:
    """The steps after a call that creates or updates one of them, or lists them in its result."""
    arguments = run.call.input
    listed = [
        Step(text=one_line(m["text"], STEP_CHARACTERS), status=m["status"], id=m["id"])
        for m in _LISTED.finditer(run.text[:20_000])
        if _meaning(m["status"])
    ]
    if listed:
        return listed[:STEPS_MAX]
    status = next((v for key in _STATUS_KEYS if isinstance(v := arguments.get(key), str)), "")
    texts: Iterator[str] = (v for key in _TEXT_KEYS if isinstance(v := arguments.get(key), str))
    text = next(filter(str.strip, texts), "")
    given = _id(arguments)
    if given and any(step.id == given for step in before):
        return _updated(before, given, status, text) if status or text else None
    created = _CREATED.search(run.text[:200])
    if text and created and text.split("\n", 1)[0][:40] in run.text:
        ended = bool(before) and all(_state(step) == DONE for step in before)
        new = Step(
            text=one_line(text, STEP_CHARACTERS),
            status=status or "pending",
            id=created[1] or created[2],
        )
        return [*(() if ended else before), new][-STEPS_MAX:]
    return None


def _updated(before: Sequence[Step], given: str, status: str, text: str) -> list[Step]:
    is_gone = _meaning(status) == GONE
    known = bool(_meaning(status))
    return [
        replace(
            step,
            status=one_line(status, 20) if known else step.status,
            text=one_line(text, STEP_CHARACTERS) if text else step.text,
        )
        if step.id == given
        else step
        for step in before
        if step.id != given or not is_gone
    ]


# The text.


def text(progress: Progress) -> str:
    """The body of the section; empty if nothing is known."""
    parts = [
        _goal(progress),
        _steps(progress),
        _changes(progress),
        _listed("Tests and builds:", [_check(c, progress) for c in progress.checks]),
        _listed("Open errors:", map(_error, progress.errors)),
        _listed("Running in the background:", map(_process, progress.processes)),
        _repositories(progress),
    ]
    return "\n".join(filter(None, parts))


def _listed(title: str, lines: Iterable[str]) -> str:
    found = list(lines)
    return "\n".join([title, *(f"- {line}" for line in found)]) if found else ""


def _at_version(version: int) -> str:
    return f"[{label_of(version)}]"


def _goal(progress: Progress) -> str:
    if not progress.goal:
        return ""
    return f"Goal, as the user last put it ({progress.goal_turn} {_at_version(progress.goal_seen)}): {progress.goal}"


def _steps(progress: Progress) -> str:
    """The steps: those that are done on one line, the others one by one."""
    if not progress.steps:
        return ""
    done = [
        f"{n} {_short(step)}" for n, step in enumerate(progress.steps, 1) if _state(step) == DONE
    ]
    left = [
        f"- {n} [{step.status}] {step.text}"
        for n, step in enumerate(progress.steps, 1)
        if _state(step) != DONE
    ]
    said = [f"- done: {'; '.join(done)}"] if done else []
    later = ", before the newest request" if progress.goal_seen > progress.steps_seen else ""
    return "\n".join([f"Steps, as of {_at_version(progress.steps_seen)}{later}:", *said, *left])


def _short(step: Step) -> str:
    return one_line(step.text, 60)


def _changes(progress: Progress) -> str:
    if not progress.changes:
        return ""
    root = _root(change.path for change in progress.changes)
    title = f"Changes by file{f' (in {root})' if root else ''}, the newest last:"
    older = (
        [f"({progress.others} files that were changed earlier are not listed)"]
        if progress.others
        else []
    )
    plain = [change for change in progress.changes if is_plain(change)]
    written = ", ".join(f"{c.path.removeprefix(root)} {_at_version(c.seen)}" for c in plain)
    lines = [_change(change, root) for change in progress.changes if change not in plain]
    return _listed(title, [*older, *([f"written once: {written}"] if written else []), *lines])


def _root(paths: Iterable[str]) -> str:
    """The folder that most files with a whole path share; those in folders for scratch files do not count."""
    whole = [p for p in paths if _WHOLE.match(p) and not p.startswith(SCRATCH)]
    parts = [tuple(_FOLDER.findall(path)[:-1]) for path in whole]
    homes = Counter(each[:HOME] for each in parts)
    home = max(homes, key=homes.__getitem__, default=())
    split = [each for each in parts if each[:HOME] == home]
    shared = [
        parts[0]
        for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*split, strict=False))
    ]
    return "".join(shared) if len(split) > 1 and len(shared) > 1 else ""


HOME: Final = 3
"""Parts of a path that tell one place of work from another: `/`, `home/`, `me/`."""
_WHOLE: Final = re.compile(r"/|[A-Za-z]:[\\/]")
_FOLDER: Final = re.compile(r"[^\\/]*[\\/]|[^\\/]+$")


def _change(change: FileChange, root: str) -> str:
    times = f"{change.edits} edits" if change.edits > 1 else ""
    was = f"renamed from {change.was.removeprefix(root)}" if change.was else ""
    how = change.how if change.how != "renamed" else ""
    details = ", ".join(filter(None, (was, how, times, _at_version(change.seen))))
    told = [
        f"{word} {', '.join(names)}"
        for word, names in (
            ("added" if change.how not in {"created", "written"} else "with", change.added),
            ("changed", change.changed),
            ("removed", change.removed),
        )
        if names
    ]
    told += [f"`{line}`" for line in change.lines]
    told += [f"{change.more} more names"] if change.more else []
    about = f": {'; '.join(told)}" if told else ""
    return f"{change.path.removeprefix(root)} ({details}){about}"


def _check(check: CheckRecord, progress: Progress) -> str:
    edited = max((change.seen for change in progress.changes), default=0)
    before = " (before the last edits)" if check.seen < edited else ""
    failing = f": {', '.join(check.failing)}" if check.failing else ""
    lines = [f"{_at_version(check.seen)} {check.command} -> {check.result}{failing}{before}"]
    return "\n  ".join([*lines, *check.error.splitlines()])


def _error(error: OpenError) -> str:
    return "\n  ".join([f"{_at_version(error.seen)} {error.command}", *error.error.splitlines()])


def _process(process: Process) -> str:
    name = f" (id {process.id})" if process.id else ""
    return f"{_at_version(process.seen)} {process.command}{name}"


def _repositories(progress: Progress) -> str:
    return _listed(
        "Branch and commits:",
        (line for each in progress.repositories for line in _repository(each)),
    )


def _repository(repository: Repository) -> Iterator[str]:
    folder = f"in {repository.folder}: " if repository.folder else ""
    branch = f"branch {repository.branch}" if repository.branch else ""
    tree = repository.tree
    state = "nothing uncommitted" if tree == "clean" else f"uncommitted: {tree}" if tree else ""
    state = f"{state} {_at_version(repository.told)}" if state else ""
    said = "; ".join(filter(None, (branch, state)))
    if said:
        yield f"{folder}{said}"
    if repository.commits:
        made = (f"{c.hash} {c.subject} {_at_version(c.seen)}" for c in repository.commits)
        yield f"{folder if not said else ''}commits: {'; '.join(made)}"
    if repository.pushed_at:
        newer = [c for c in repository.commits if c.seen > repository.pushed_at]
        later = f", before {len(newer)} of these commits" if newer else ""
        yield f"pushed {repository.pushed} {_at_version(repository.pushed_at)}{later}".replace(
            "  ", " "
        )
    if repository.links:
        yield f"pull requests: {', '.join(repository.links)}"


# The room.


@attrs.frozen(kw_only=True)
class _Size:
    """How much of each list there may be."""

    files: int = FILES_MAX
    names: int = NAMES_MAX
    steps: int = STEPS_MAX
    checks: int = 8
    errors: int = 3
    processes: int = 6
    commits: int = COMMITS_MAX


_SIZES: Final = (
    _Size(),
    _Size(files=30, names=6),
    _Size(files=24, names=5, steps=30),
    _Size(files=18, names=4, steps=24, checks=6, commits=6),
    _Size(files=12, names=3, steps=16, checks=5, errors=2, processes=4, commits=4),
    _Size(files=8, names=2, steps=10, checks=4, errors=2, processes=3, commits=3),
    _Size(files=5, names=1, steps=8, checks=3, errors=1, processes=2, commits=2),
    _Size(files=3, names=1, steps=5, checks=2, errors=1, processes=1, commits=1),
    _Size(files=1, names=0, steps=3, checks=1, errors=0, processes=1, commits=1),
    _Size(files=0, names=0, steps=0, checks=1, errors=0, processes=0, commits=0),
)
"""What there is, from all to nearly nothing: details of files give way first, then what is oldest."""


def fitted(progress: Progress, tokens_max: int, count: Callable[[str], int]) -> Progress:
    """The state with as much of each list as fits into `tokens_max`."""
    for size in _SIZES:
        smaller = _sized(progress, size)
        if count(text(smaller)) <= tokens_max:
            return smaller
    goal = replace(
        Progress(),
        goal=progress.goal,
        goal_turn=progress.goal_turn,
        goal_seen=progress.goal_seen,
        seen=progress.seen,
    )
    return goal if count(text(goal)) <= tokens_max else Progress(seen=progress.seen)


def _sized(progress: Progress, size: _Size) -> Progress:
    gone = max(len(progress.changes) - size.files, 0)
    open_steps = [step for step in progress.steps if _state(step) != DONE][: size.steps]
    done = [step for step in progress.steps if _state(step) == DONE]
    kept = [*done[max(len(done) - (size.steps - len(open_steps)), 0) :], *open_steps]
    kept_ids = set(map(id, kept))
    return replace(
        progress,
        steps=tuple(step for step in progress.steps if id(step) in kept_ids),
        changes=tuple(less(change, size.names) for change in progress.changes[gone:]),
        others=progress.others + gone,
        checks=progress.checks[-size.checks :],
        errors=progress.errors[len(progress.errors) - min(size.errors, len(progress.errors)) :],
        processes=progress.processes[
            len(progress.processes) - min(size.processes, len(progress.processes)) :
        ],
        repositories=tuple(
            replace(
                each,
                commits=each.commits[len(each.commits) - min(size.commits, len(each.commits)) :],
            )
            for each in progress.repositories
        ),
    )
