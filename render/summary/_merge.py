"""Merging summaries, by rule and not by a model: what must not drift is carried forward verbatim.

A summary has three parts, with a room each:

    history   task                          the oldest one
              constraints decisions facts   joined: what is carried stays, see below
              state plan                    the newest ones
              the other lists               joined: the newest entries stay
    found     statements of the agent's     those that are worth most, see `_statements`
    prefix    turn context                  how a split turn began, and what came last

Where history is still too long, the oldest tool outcomes go first, then completed work, artifacts, errors
and open items; then plan and state are cut; facts, decisions and constraints only after all of these.

Constraints, decisions and facts last, each list in a room of its own.  What is carried stays, and what is
new gets the room that is left; of constraints the user's own words go before all others.  So no answer of a
summariser, however long, pushes out what an earlier one said.

A sentence that is *the same* as an older one (the same words in the same order, whatever their case and
punctuation) is joined with it.  One that is only *near* to an older one (most words are shared) may differ
in the one word that matters: it stays as long as nothing that is not near needs its place; of those that
are near the older ones go first, but the oldest wording of all stays.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice, tee
from typing import Any, Final, TypeVar

import msgspec

from blocks import Decision, StructuredSummary, Work
from render.summary._artifacts import one_line
from render.summary._room import SummaryRoom
from render.summary._statements import by_worth
from render.summary._text import FOUND, Item, line_of, report_history, said_in_prose

_T = TypeVar("_T")

LASTING: Final = {"constraints": 0.35, "decisions": 0.2, "facts": 0.2}
"""The lists, and the share of the history's room that each may have."""
NEAR_SHARE: Final = 0.75
"""Of the words of the shorter sentence, what a near one has too."""
WORDS_MIN: Final = 3
"""A sentence with fewer words is near to no other."""
_WORD: Final = re.compile(r"\w(?:[\w.:/@#'’-]*\w)?")
_FILLERS: Final = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "by",
        "for",
        "from",
        "in",
        "is",
        "it",
        "its",
    }
    | {"of", "on", "or", "so", "that", "the", "these", "this", "those", "to", "was", "were", "with"}
)

EXPENDABLE: Final = ("tool_outcomes", "completed", "artifacts", "errors", "open_items")
"""Lists that may lose entries, in this order, oldest entry first."""
PROSE_SHARE: Final = 0.4
"""Of the history's room, what its task, its state, its plan may have each."""
ITEM_SHARE: Final = 0.25
"""Of the history's room, what one entry of a list may have."""
HEAD_SHARE: Final = 0.5
"""Of the prefix's room, what the beginning of the turn may have."""
LINE_CHARACTERS: Final = 160
"""Of a turn's context, once the turn is over."""
TURNS_MAX: Final = 3
"""Turns of which such a line is left."""
BEGINNING: Final = "its beginning"
"""What such a line says that it is about."""
GAP: Final = "[…]"
"""Stands for the middle of a turn's context."""


def merge_summaries(
    previous: StructuredSummary | None, new: StructuredSummary, room: SummaryRoom
) -> StructuredSummary:
    """One summary that covers both, each of its parts within its room."""
    old, new = _concise(previous or StructuredSummary(), room), _concise(new, room)
    merged = msgspec.structs.replace(
        new,
        task=old.task or new.task,
        state=new.state or old.state,
        plan=new.plan or old.plan,
        turn_context=_continued(old.turn_context, new.turn_context, room),
        **{name: _union(getattr(old, name), getattr(new, name)) for name in EXPENDABLE},
        **_lasting(old, new, room),
    )
    return _fitted(merged, room)


def as_history(summary: StructuredSummary, turn: str) -> StructuredSummary:
    """The summary once the turn that it tells the beginning of is over: a line is left of that, if
    nothing else tells of the turn."""
    line = one_line(summary.turn_context, LINE_CHARACTERS)
    if not line:
        return summary
    if any(work.component == turn and work.action == FOUND for work in summary.completed):
        return msgspec.structs.replace(summary, turn_context="")
    over = [work for work in summary.completed if work.action == BEGINNING]
    gone = over[: max(len(over) + 1 - TURNS_MAX, 0)]
    left = [work for work in summary.completed if work not in gone]
    begun = Work(component=turn, action=BEGINNING, description=line)
    return msgspec.structs.replace(summary, turn_context="", completed=(*left, begun))


def _union(old: Iterable[_T], new: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys([*old, *new]))


def _concise(summary: StructuredSummary, room: SummaryRoom) -> StructuredSummary:
    """Without long texts and endless lists: rules choose among entries, they do not write."""
    prose, each = int(PROSE_SHARE * room.history), int(ITEM_SHARE * room.history)
    changes: dict[str, Any] = {
        name: room.shortened(getattr(summary, name), prose) for name in ("task", "state", "plan")
    }
    for name in LASTING:
        changes[name] = room.first(getattr(summary, name), room.history, each)
    for name in EXPENDABLE:
        changes[name] = room.first(reversed(getattr(summary, name)), room.history, each)[::-1]
    written, found = _apart(summary.completed)
    changes["completed"] = (*room.first(written[::-1], room.history, each)[::-1], *found)
    quoted = min(summary.quoted, len(changes["constraints"]))
    return msgspec.structs.replace(summary, **changes, quoted=quoted)


def _apart(works: Sequence[Work]) -> tuple[list[Work], list[Work]]:
    """Completed work that somebody wrote down, and statements of the agent's."""
    found = [work for work in works if work.action == FOUND]
    return [work for work in works if work.action != FOUND], found


def _most_telling(found: Sequence[Work], prose: str, room: SummaryRoom) -> list[Work]:
    """Of the agent's statements those that are worth most, in their order; what stands in the prose of the
    summary takes no room."""
    told = {index for index, work in enumerate(found) if work.description in prose}
    best = by_worth([work.description for work in found])
    order, again = tee(index for index in best if index not in told)
    kept = room.first((found[index] for index in order), room.found, room.found)
    return [found[index] for index in sorted(told.union(islice(again, len(kept))))]


def _continued(old: str, new: str, room: SummaryRoom) -> str:
    """The context of a turn that went on: how it began, what came last, a gap between them."""
    text = f"{old}\n{new}".strip() if new.strip() not in old else old
    if room.count(text) <= room.prefix:
        return text
    lines = text.split("\n")
    head = _head(lines, room)
    tail = _tail(lines[len(head) :], room.prefix - room.count("\n".join([*head, GAP, ""])), room)
    return room.shortened("\n".join([*head, GAP, *tail]), room.prefix)


def _head(lines: Sequence[str], room: SummaryRoom) -> list[str]:
    """The first lines, up to the gap that an earlier merge left."""
    most = int(HEAD_SHARE * room.prefix)
    head: list[str] = []
    for line in lines:
        if line == GAP or room.count("\n".join([*head, line])) > most:
            break
        head.append(line)
    return head or [room.shortened(lines[0], most)]


def _tail(lines: Sequence[str], tokens_max: int, room: SummaryRoom) -> list[str]:
    """The last lines; of the first of them that does not fit, its beginning."""
    tail: list[str] = []
    for line in reversed([line for line in lines if line != GAP]):
        left = tokens_max - room.count("\n".join(["", *tail]))
        short = room.shortened(line, left)
        if short:
            tail.insert(0, short)
        if short != line:
            break
    return tail


def _fitted(summary: StructuredSummary, room: SummaryRoom) -> StructuredSummary:
    """The summary with a history that is within its room, whatever that takes."""
    written, found = _apart(summary.completed)
    summary = msgspec.structs.replace(summary, completed=tuple(written))
    for name in EXPENDABLE:
        summary = _fewer(summary, name, room)
    for name in ("plan", "state"):
        summary = _shorter(summary, name, room)
    for name in reversed(LASTING):
        summary = _fewer(summary, name, room)
    summary = _shorter(summary, "task", room)
    told = (*summary.completed, *_most_telling(found, said_in_prose(summary), room))
    return msgspec.structs.replace(summary, completed=told)


def _excess(summary: StructuredSummary, room: SummaryRoom) -> int:
    return room.count(report_history(summary)) - room.history


def _fewer(summary: StructuredSummary, name: str, room: SummaryRoom) -> StructuredSummary:
    """Without as many entries of a list as it takes: the oldest, or of what lasts the newest."""
    while (items := getattr(summary, name)) and _excess(summary, room) > 0:
        # An eighth at a time: a list of hundreds must not be counted hundreds of times.
        gone = max(1, len(items) // 8)
        left = items[:-gone] if name in LASTING else items[gone:]
        summary = msgspec.structs.replace(summary, **{name: left})
    return msgspec.structs.replace(summary, quoted=min(summary.quoted, len(summary.constraints)))


def _shorter(summary: StructuredSummary, name: str, room: SummaryRoom) -> StructuredSummary:
    """With less of a text, as much as it takes."""
    while (text := getattr(summary, name)) and (over := _excess(summary, room)) > 0:
        short = room.shortened(text, room.count(text) - over)
        summary = msgspec.structs.replace(summary, **{name: short})
    return summary


# What lasts.


def _lasting(old: StructuredSummary, new: StructuredSummary, room: SummaryRoom) -> dict[str, Any]:
    """The lasting lists of both summaries, as far as there is room, and how much of it is quoted."""
    own = _distinct((*old.constraints[: old.quoted], *new.constraints[: new.quoted]))
    others = (*old.constraints[old.quoted :], *new.constraints[new.quoted :])
    joined: dict[str, Sequence[Item]] = {
        "constraints": _distinct((*own, *others)),
        "decisions": _distinct((*old.decisions, *new.decisions)),
        "facts": _distinct((*old.facts, *new.facts)),
    }
    quoted = {"constraints": len(own)}
    chosen = {
        name: _let_in(items, quoted.get(name, 0), int(LASTING[name] * room.history), room)
        for name, items in joined.items()
    }
    lists = {name: tuple(joined[name][index] for index in chosen[name]) for name in LASTING}
    return {**lists, "quoted": sum(index < len(own) for index in chosen["constraints"])}


def _distinct(items: Iterable[Item]) -> Sequence[Item]:
    """Each sentence once, in its oldest wording."""
    found: dict[tuple[str, ...], Item] = {}
    for item in items:
        found.setdefault(_wording(item), item)
    return tuple(found.values())


def _let_in(items: Sequence[Item], quoted: int, tokens_max: int, room: SummaryRoom) -> list[int]:
    """Indices of those that there is room for; the first `quoted` are near to nothing."""
    left = tokens_max
    chosen: list[int] = []
    near: list[int] = []
    seen: list[frozenset[str]] = []
    for index, item in enumerate(items):
        words = frozenset(_wording(item)) - _FILLERS
        if index >= quoted and any(_is_near(words, other) for other in seen):
            near.append(index)
            continue
        seen.append(words)
        if (size := room.size(item)) <= left:
            chosen.append(index)
            left -= size
    for index in reversed(near):
        if (size := room.size(items[index])) <= left:
            chosen.append(index)
            left -= size
    return sorted(chosen)


def _is_near(one: frozenset[str], other: frozenset[str]) -> bool:
    least = min(len(one), len(other))
    return least >= WORDS_MIN and len(one & other) >= NEAR_SHARE * least


def _wording(item: Item) -> tuple[str, ...]:
    """What two sentences that are the same have in common; of a decision, without its reason."""
    text = item.decision if isinstance(item, Decision) else line_of(item)
    return tuple(_WORD.findall(text.casefold())) or (text,)
