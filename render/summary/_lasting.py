"""What lasts of a summary: constraints, decisions and facts, each list in a room of its own.

What is carried stays, and what is new gets the room that is left; of constraints the user's own words go
before all others.  So no answer of a summariser, however long, pushes out what an earlier one said.

A sentence that is *the same* as an older one (the same words in the same order, whatever their case and
punctuation) is joined with it.  One that is only *near* to an older one (most words are shared) may differ
in the one word that matters: it stays as long as nothing that is not near needs its place; of those that
are near the older ones go first, but the oldest wording of all stays.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from blocks import Decision, StructuredSummary
from render.summary._room import SummaryRoom
from render.summary._text import Item, line_of

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


def lasting(old: StructuredSummary, new: StructuredSummary, room: SummaryRoom) -> dict[str, Any]:
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
