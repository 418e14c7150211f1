"""How the work came to stand where it does: the newest state of everything that calls and results tell about it.

It is a state, not a history: what a later call replaces, closes or ends is gone. It is computed from calls and results by
the kind of tool and the shape of arguments (`_edits`: files; `_runs`: commands, processes, repositories; `_checks`: tests
and errors), so it says what happened, whatever the agent said about it. A call that failed changed nothing, a call without
a result counts as unknown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from blocks import (
    Progress,
    Step,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserAttachment,
    standing_of,
    text_of,
)
from render.summary._checks import checks_after, errors_after
from render.summary._edits import Views, changes_after
from render.summary._findings import words_of
from render.summary._identifiers import one_line
from render.summary._runs import Run, listed, noticed, processes_after, repositories_after, run_of
from render.summary._state import GONE, STEPS_MAX, is_done, meaning
from render.view._group import Entry, Place


def advance(previous: Progress, entries: Sequence[Entry], before: Sequence[Entry] = ()) -> Progress:
    """The state after `entries`, which are newer than `previous`, in log order.

    `before` are entries that `previous` covers and that are still at hand: calls whose result is new, and what was read.
    """
    if not entries:
        return previous
    calls = {e.pair: e for e in (*before, *entries) if isinstance(e.block, ToolCall)}
    state = _dropped(previous)
    views = Views()
    for entry in before:
        if run := _run(entry, calls):
            views.see(run)
    for entry in entries:
        if entry.original is not None or standing_of(entry.source):
            continue
        block = entry.block
        if isinstance(block, ToolResult):
            if run := _run(entry, calls):
                state = _after(state, run, views)
        elif words := words_of(block):
            state = _asked(state, entry, words)
        elif isinstance(block, UserAttachment | SystemMessage):
            state = replace(state, processes=tuple(noticed(state.processes, text_of(block))))
    return state


def _run(entry: Entry, calls: Mapping[str, Entry]) -> Run | None:
    """The call that an entry is the result of, with it; None if it is no result, or either is hidden."""
    asked = calls.get(entry.pair) if entry.place is Place.RESULT else None
    if asked is None or asked.original is not None or entry.original is not None:
        return None
    if not isinstance(asked.block, ToolCall) or not isinstance(entry.block, ToolResult):
        return None
    return run_of(asked.block, entry.block, entry.version)


def _dropped(progress: Progress) -> Progress:
    """The state without a list of steps that was shown when all of it was done."""
    is_over = bool(progress.steps) and all(is_done(step) for step in progress.steps)
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
_ASSENT: Final = listed(
    "a ahead all alright and agree agreed also amazing awesome both can carry continue cool correct do does"
    " done exactly excellent fine go good got great hm hmm i is it just keep keeping know let lets like looks"
    " me much need nice no now of ok okay on one perfect please pls proceed resume right same see so sounds"
    " sure t thank thanks that the them then there these think this those to try u up very want we well worked working works fixed"
    " would y yea yeah yep yes you your"
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


STEP_CHARACTERS: Final = 160
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
    is_list = len(steps) == len(cast("list[Any]", value)) and any(
        meaning(step.status) for step in steps
    )
    return [step for step in steps if meaning(step.status) != GONE] if is_list else []


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
    found = [
        Step(text=one_line(m["text"], STEP_CHARACTERS), status=m["status"], id=m["id"])
        for m in _LISTED.finditer(run.text[:20_000])
        if meaning(m["status"])
    ]
    if found:
        return found[:STEPS_MAX]
    status = next((v for key in _STATUS_KEYS if isinstance(v := arguments.get(key), str)), "")
    texts: Iterator[str] = (v for key in _TEXT_KEYS if isinstance(v := arguments.get(key), str))
    text = next(filter(str.strip, texts), "")
    given = _id(arguments)
    if given and any(step.id == given for step in before):
        return _updated(before, given, status, text) if status or text else None
    created = _CREATED.search(run.text[:200])
    if text and created and text.split("\n", 1)[0][:40] in run.text:
        ended = bool(before) and all(is_done(step) for step in before)
        new = Step(
            text=one_line(text, STEP_CHARACTERS),
            status=status or "pending",
            id=created[1] or created[2],
        )
        return [*(() if ended else before), new][-STEPS_MAX:]
    return None


def _updated(before: Sequence[Step], given: str, status: str, text: str) -> list[Step]:
    is_gone = meaning(status) == GONE
    known = bool(meaning(status))
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
