"""Where the work stands, as it is read: goal, steps, changes by file, tests, open errors, processes, commits.

    Goal, as the user last put it (t4 [v812]): Make the shading smoother on narrow segments.
    Steps, as of [v700]:
    - done: 1 Read the shader; 2 Add a test
    - 3 [in_progress] Wire the clicks
    Changes by file (in /home/ann/app/), the newest last:
    - src/color/gradient.go (4 edits, [v145]): added autoShade; changed Blend
    Tests and builds:
    - [v120] go test ./... -> 3 failed, 40 passed: TestX, TestY (before the last edits)

Lines of which nothing is known are not written. If there is too little room, details of files give way first, then what
is oldest. `_progress` computes the state.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, TypeVar

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
    label_of,
)
from render.summary._identifiers import one_line

_T = TypeVar("_T")

FILES_MAX: Final = 40
PLAIN_MAX: Final = 12
"""The most files of which only that is known that they were written once; many are scratch files."""
NAMES_MAX: Final = 8
"""The most names of a kind for one file."""
LINES_MAX: Final = 2
STEPS_MAX: Final = 40
CHECKS_MAX: Final = 6
ERRORS_MAX: Final = 3
PROCESSES_MAX: Final = 6
COMMITS_MAX: Final = 8
WHOLE: Final = frozenset({"created", "written"})
"""How a file came to be whose text the agent wrote as a whole."""
SCRATCH: Final = ("/tmp/", "/private/tmp/", "/var/tmp/")  # noqa: S108 -- compared only
"""Folders of which a deletion says nothing."""
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


def meaning(status: str) -> str:
    """What a state of a step means: `DONE`, `DOING`, `OPEN`, `GONE`; empty if that is not known."""
    return _STATES.get(re.sub(r"[\s-]+", "_", status.strip().lower()), "")


def is_done(step: Step) -> bool:
    """Whether a step is done."""
    return meaning(step.status) == DONE


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
    done = [f"{n} {_short(step)}" for n, step in enumerate(progress.steps, 1) if is_done(step)]
    left = [
        f"- {n} [{step.status}] {step.text}"
        for n, step in enumerate(progress.steps, 1)
        if not is_done(step)
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
    homes = Counter(each[: HOME - (each[0] != "/")] for each in parts)
    home = max(homes, key=homes.__getitem__, default=())
    split = [each for each in parts if each[: len(home)] == home]
    shared = [
        parts[0]
        for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*split, strict=False))
    ]
    return "".join(shared) if len(split) > 1 and len(shared) > 1 else ""


HOME: Final = 3
"""Parts of a path that tell one place of work from another: `/`, `home/`, `me/`; one less after a drive."""
_WHOLE: Final = re.compile(r"/|[A-Za-z]:[\\/]")
_FOLDER: Final = re.compile(r"[^\\/]*[\\/]|[^\\/]+$")


def _change(change: FileChange, root: str) -> str:
    times = f"{change.edits} edits" if change.edits > 1 else ""
    was = f"renamed from {change.was.removeprefix(root)}" if change.was else ""
    how = change.how if change.how != "renamed" else ""
    details = ", ".join(filter(None, (was, how, change.about, times, _at_version(change.seen))))
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
    told += [f"{change.more} other names"] if change.more else []
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
    checks: int = CHECKS_MAX
    errors: int = ERRORS_MAX
    processes: int = PROCESSES_MAX
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
    )
    return goal if count(text(goal)) <= tokens_max else Progress()


def _sized(progress: Progress, size: _Size) -> Progress:
    waiting = [step for step in progress.steps if not is_done(step)][: size.steps]
    done = [step for step in progress.steps if is_done(step)]
    steps = [*waiting, *_newest(done, size.steps - len(waiting))]
    spare = max(len(progress.changes) - size.files, 0)
    gone = sorted(progress.changes, key=lambda change: (not is_plain(change), change.seen))[:spare]
    return replace(
        progress,
        steps=tuple(step for step in progress.steps if step in steps),
        changes=tuple(less(c, size.names) for c in progress.changes if c not in gone),
        others=progress.others + spare,
        checks=_newest(progress.checks, size.checks),
        errors=_newest(progress.errors, size.errors),
        processes=_newest(progress.processes, size.processes),
        repositories=tuple(
            replace(each, commits=_newest(each.commits, size.commits))
            for each in progress.repositories
        ),
    )


def _newest(items: Sequence[_T], most: int) -> tuple[_T, ...]:
    return tuple(items[max(len(items) - most, 0) :])


def less(change: FileChange, names_max: int) -> FileChange:
    """The change with at most so many names of each kind: the newest, but of a new file the first, which say what it is."""
    more = change.more
    cut = dict[str, tuple[str, ...]]()
    for kind in ("added", "changed", "removed"):
        names: tuple[str, ...] = getattr(change, kind)
        more += max(len(names) - names_max, 0)
        is_first = kind == "added" and change.how in WHOLE
        cut[kind] = names[:names_max] if is_first else names[max(len(names) - names_max, 0) :]
    return replace(change, more=more, **cut)


def is_plain(change: FileChange) -> bool:
    """Whether nothing more is known of a file than that it was written."""
    return (
        change.how in WHOLE
        and change.edits <= 1
        and not (change.added or change.was or change.about)
    )
