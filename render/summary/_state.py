"""Where the work stands: goal, steps, changes by file, tests, open errors, processes, branch and commits.

    Goal, as the user last put it (t4 [v812]): Make the shading smoother on narrow segments.
    Steps, as of [v700]:
    - done: 1 Read the shader; 2 Add a test
    - 3 [in_progress] Wire the clicks
    Changes by file (in /home/ann/app/), the newest last:
    - src/color/gradient.go (4 edits, [v145]): added autoShade; changed Blend
    Tests, builds, open errors:
    - [v120] go test ./... -> 3 failed, 40 passed: TestX, TestY (before the last edits)

It is a state, not a history: what a later call replaces, closes or ends is gone. It is computed from calls and results, so
it says what happened, whatever the agent said about it. Lines of which nothing is known are not written.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from blocks import (
    FileChange,
    Progress,
    Repository,
    Step,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserAttachment,
    label_of,
    text_of,
    tool_kind,
    words_of,
)
from render.summary._edits import WHOLE, changes_after
from render.summary._files import shared_folder
from render.summary._identifiers import listed, one_line
from render.summary._prose import is_assent
from render.summary._runs import (
    Run,
    checks_after,
    git_after,
    noticed,
    processes_after,
    run_of,
    without_checks,
    without_errors,
)
from render.view._view import Entry


def advance(previous: Progress, entries: Sequence[Entry], before: Sequence[Entry] = ()) -> Progress:
    """The state after `entries`, which are newer than `previous`, in log order.

    `before` are entries that `previous` covers and that are still at hand: calls whose result is new.
    """
    shown = [e for e in (*before, *entries) if e.original is None]
    calls = {e.pair: e.block for e in shown if isinstance(e.block, ToolCall)}
    is_over = entries and all(_meaning(step.status) == DONE for step in previous.steps)
    state = replace(previous, steps=()) if is_over else previous
    for entry in entries:
        if entry.original is not None or entry.standing:
            continue
        block, call = entry.block, calls.get(entry.pair)
        if isinstance(block, ToolResult):
            state = _after(state, run_of(call, block, entry.version)) if call else state
        elif words := words_of(block):
            state = _asked(state, entry, words)
        elif isinstance(block, UserAttachment | SystemMessage):
            state = replace(state, processes=noticed(state.processes, text_of(block)))
    return state


def _after(state: Progress, run: Run) -> Progress:
    """The state after one call and its result."""
    processes, run = processes_after(state.processes, run)
    changes, others = changes_after(state.changes, run)
    steps = _steps_after(state.steps, run)
    return replace(
        state,
        processes=tuple(processes),
        changes=tuple(changes),
        others=state.others + others,
        steps=state.steps if steps is None else tuple(steps[-STEPS_MAX:]),
        steps_seen=state.steps_seen if steps is None else run.version,
        checks=tuple(checks_after(state.checks, run)),
        repository=git_after(state.repository, run),
    )


# The goal.


GOAL_CHARACTERS: Final = 240
_ELEMENT: Final = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]*)?>")
_NOTICE: Final = re.compile(r"\s*<(?:task-notification|local-command|system|bash-)")
"""How a text begins that a client writes in the user's place: Claude Code."""


def _asked(state: Progress, entry: Entry, words: str) -> Progress:
    """The state after a text of the user: its goal, unless it only agrees."""
    state = replace(state, processes=noticed(state.processes, words))
    if entry.block.author != "user" or _NOTICE.match(words) or is_assent(words):
        return state
    goal = one_line(_ELEMENT.sub(" ", words[:4000]).strip("# \n"), GOAL_CHARACTERS)
    state = replace(state, goal=goal, goal_turn=str(entry.block.turn), goal_seen=entry.version)
    processes = without_checks(state.processes)
    return replace(state, checks=without_errors(state.checks), processes=processes)


# The steps.


STEPS_MAX: Final = 40
STEP_CHARACTERS: Final = 160
DONE: Final = "done"
OPEN: Final = "open"
GONE: Final = "gone"
_STATES: Final[Mapping[str, str]] = {
    **dict.fromkeys(listed("completed complete done finished closed resolved"), DONE),
    **dict.fromkeys(listed("cancelled canceled deleted removed skipped"), GONE),
    **dict.fromkeys(
        listed("in_progress doing active started pending todo open not_started blocked"), OPEN
    ),
}
"""What the states of steps mean, by the words of the tools: Claude Code and Codex (pending, in_progress, completed),
opencode and Gemini CLI (also cancelled, blocked), OpenHands (todo, in_progress, done), Copilot (not-started)."""
_STATUS_KEYS: Final = ("status", "state")
_FLAG_KEYS: Final = ("done", "completed", "checked")
_TEXT_KEYS: Final = ("content", "step", "subject", "title", "description", "text", "task", "name")
"""The argument that says what a step is, the shortest first where a tool has two."""
_ID_KEYS: Final = ("id", "taskId", "task_id", "todo_id")
_CREATED: Final = re.compile(
    r"\b(?:task|todo|item|step)\s+#?([\w-]+)\s+(?:created|added)", re.IGNORECASE
)


def _meaning(status: str) -> str:
    """What a state of a step means: `DONE`, `OPEN`, `GONE`; empty if that is not known."""
    return _STATES.get(re.sub(r"[\s-]+", "_", status.strip().lower()), "")


def _steps_after(before: Sequence[Step], run: Run) -> list[Step] | None:
    """The steps after one more call, which lists them all, or creates or updates one; None if it says nothing of them."""
    if run.failed or run.kind in {"write", "command", "web"}:
        return None
    arguments = run.call.input
    for value in arguments.values():
        if rows := _rows(value):
            earlier = before if arguments.get("merge") is True else ()
            merged = {step.id or step.text: step for step in (*earlier, *rows)}
            return [step for step in merged.values() if _meaning(step.status) != GONE]
    said, known = _step(arguments), [step.id for step in before if step.id]
    if said.id in known and (said.text or _meaning(said.status)):
        old = before[[step.id for step in before].index(said.id)]
        status = said.status if _meaning(said.status) else old.status
        new = replace(old, text=said.text or old.text, status=status)
        steps = [new if step is old else step for step in before]
        return [step for step in steps if _meaning(step.status) != GONE]
    created = _CREATED.search(run.text[:200]) if run.kind == "other" and said.text else None
    if not created:
        return None
    is_over = all(_meaning(step.status) == DONE for step in before)
    new = replace(said, id=created[1], status=said.status or "pending")
    return [*(() if is_over else before), new]


def is_plan(call: ToolCall, answer: str) -> bool:
    """Whether a call only changes the plan: it lists the steps, creates one, or says how one stands."""
    said, is_named = _step(call.input), any(key in call.input for key in _ID_KEYS[1:])
    is_new = tool_kind(call.name, call.input) == "other" and _CREATED.search(answer[:200])
    is_one = (is_named and _meaning(said.status)) or (said.text and is_new)
    return bool(is_one) or any(map(_rows, call.input.values()))


def _rows(value: Any) -> list[Step]:
    """The steps that an argument lists: objects with a text and a state."""
    given = cast("list[Any]", value) if isinstance(value, list) else []
    rows = [_step(cast("dict[str, Any]", row)) for row in given if isinstance(row, dict)]
    is_list = len(rows) == len(given) and all(row.text and row.status for row in rows)
    return rows if is_list and any(_meaning(row.status) for row in rows) else []


def _step(row: Mapping[str, Any]) -> Step:
    """What an object says of a step."""
    texts = (v for key in _TEXT_KEYS if isinstance(v := row.get(key), str) and v.strip())
    status = next((v for key in _STATUS_KEYS if isinstance(v := row.get(key), str)), "")
    flag = next((v for key in _FLAG_KEYS if isinstance(v := row.get(key), bool)), None)
    given = next((v for key in _ID_KEYS if isinstance(v := row.get(key), str | int)), "")
    said = status or {True: "completed", False: "pending", None: ""}[flag]
    return Step(
        text=one_line(next(texts, ""), STEP_CHARACTERS),
        status=one_line(said, 20),
        id=one_line(str(given).lstrip("#"), 40),
    )


# The text.


def text(progress: Progress) -> str:
    """The body of the section; empty if nothing is known."""
    progress = _shown(progress)
    edited = max((change.seen for change in progress.changes), default=0)
    checks = (
        f"{_at(each.seen)} {each.command} -> {each.result}"
        + (" (before the last edits)" if each.seen < edited else "")
        for each in progress.checks
    )
    processes = (
        f"{_at(each.seen)} {each.command}{f' (id {each.id})' if each.id else ''}"
        for each in progress.processes
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


def _section(title: str, lines: Iterable[str]) -> str:
    found = [f"- {line}" for line in lines]
    return "\n".join([title, *found]) if found else ""


def _at(version: int) -> str:
    return f"[{label_of(version)}]"


def _steps(progress: Progress) -> str:
    """The steps: those that are done on one line, the others one by one."""
    steps = list(enumerate(progress.steps, 1))
    done = [f"{n} {one_line(s.text, 60)}" for n, s in steps if _meaning(s.status) == DONE]
    left = [f"{n} [{s.status}] {s.text}" for n, s in steps if _meaning(s.status) != DONE]
    later = ", before the newest request" if progress.goal_seen > progress.steps_seen else ""
    said = [f"done: {'; '.join(done)}"] if done else []
    return _section(f"Steps, as of {_at(progress.steps_seen)}{later}:", [*said, *left])


def _changes(progress: Progress) -> str:
    root = shared_folder(change.path for change in progress.changes)
    plain = [change for change in progress.changes if is_plain(change)]
    more = ", ".join(f"{each.path.removeprefix(root)} {_at(each.seen)}" for each in plain)
    lines = [
        f"({progress.others} files that were changed earlier are not listed)"
        * (progress.others > 0),
        f"also: {more}" if plain else "",
        *(_change(change, root) for change in progress.changes if change not in plain),
    ]
    place = f" (in {root})" if root else ""
    return _section(f"Changes by file{place}, the newest last:", filter(None, lines))


def is_plain(change: FileChange) -> bool:
    """Whether nothing more is known of a file than that it was written, moved or changed."""
    is_once = change.edits == 0 or (change.how in WHOLE and change.edits == 1)
    return (is_once or change.how == "") and not change.line


def _change(change: FileChange, root: str) -> str:
    times = f"{change.edits} edits" if change.edits > 1 else ""
    details = ", ".join(filter(None, (change.how, times, _at(change.seen))))
    line = f": `{change.line}`" if change.line else ""
    return f"{change.path.removeprefix(root)} ({details}){line}"


def _git(repository: Repository) -> Iterator[str]:
    if repository.branch:
        yield f"branch {repository.branch}"
    if commits := [f"{c.hash} {c.subject} {_at(c.seen)}".strip() for c in repository.commits]:
        yield f"commits: {'; '.join(commits)}"
    if repository.pushed_at:
        newer = sum(commit.seen > repository.pushed_at for commit in repository.commits)
        later = f", before {newer} of these commits" if newer else ""
        yield f"pushed {repository.pushed} {_at(repository.pushed_at)}{later}"
    if repository.links:
        yield f"pull requests: {', '.join(repository.links)}"


# The room.


_MOST: Final = (40, 24, 16, 12, 8, 5, 2, 1, 0)
"""How many entries of each list are shown, step by step; as many as in the first are kept. Of files of which nothing more is
known than that they were changed, a third as many."""


def fitted(progress: Progress, tokens_max: int, count: Callable[[str], int]) -> Progress:
    """The state, of which as much is shown as fits into `tokens_max`: what is oldest gives way."""
    kept = _smaller(progress, _MOST[0])
    steps = (replace(kept, fewer=step) for step in range(len(_MOST)))
    fitting = (state for state in steps if count(text(state)) <= tokens_max)
    return next(fitting, replace(kept, fewer=len(_MOST)))


def _shown(progress: Progress) -> Progress:
    """What is shown of the state."""
    return _smaller(progress, _MOST[progress.fewer]) if progress.fewer < len(_MOST) else Progress()


def _smaller(progress: Progress, most: int) -> Progress:
    """The state with at most so many files, steps, ...: the newest, and of the steps those that are left."""
    if not most:
        told = progress
        return Progress(goal=told.goal, goal_turn=told.goal_turn, goal_seen=told.goal_seen)
    plain = [change for change in progress.changes if is_plain(change)]
    gone = plain[: max(len(plain) - most // 3, 0)]
    kept = [change for change in progress.changes if change not in gone][-most:]
    steps = sorted(progress.steps, key=lambda step: _meaning(step.status) == DONE)[: 2 * most]
    return replace(
        progress,
        steps=tuple(step for step in progress.steps if step in steps),
        changes=tuple(kept),
        others=progress.others + len(progress.changes) - len(kept),
        checks=progress.checks[-most:],
        processes=progress.processes[-most:],
        repository=replace(progress.repository, commits=progress.repository.commits[-most:]),
    )
