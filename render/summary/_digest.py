"""What a page counts: how much was folded, and what was dropped without a summary.

It is merged with that of the page before, so it always covers everything that is no longer visible. The list is bounded;
entries that are left out are counted.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from blocks import Digest, DroppedSpan
from render.summary._text import dropped_text
from render.view._group import Entry

SPANS_MAX: Final = 20
"""The most dropped spans that are listed."""


def counted(previous: Digest, folded: Sequence[Entry]) -> Digest:
    """The counts and the list of everything folded so far."""
    dropped = [entry.dropped for entry in folded if entry.dropped and not entry.artifact]
    digest = replace(
        previous,
        blocks=previous.blocks + len(folded),
        turns=previous.turns + len({entry.block.turn for entry in folded}),
        rounds=previous.rounds + len({entry.round for entry in folded if entry.round}),
        compactions=previous.compactions + 1,
    )
    spans = tuple(dict.fromkeys((*previous.dropped, *dropped)))
    return _with(digest, spans[-SPANS_MAX:], len(spans))


def fitted(digest: Digest, tokens_max: int, count: Callable[[str], int]) -> Digest:
    """The digest with the newest dropped spans that fit into so many tokens."""
    while (spans := digest.dropped) and count(dropped_text(digest)) > tokens_max:
        digest = _with(digest, spans[len(spans) // 3 + 1 :], len(spans))
    return digest


def _with(digest: Digest, spans: tuple[DroppedSpan, ...], all_spans: int) -> Digest:
    """The digest with these spans; the others of all are counted."""
    forgotten = dict(digest.forgotten)
    if gone := all_spans - len(spans):
        forgotten["dropped"] = forgotten.get("dropped", 0) + gone
    return replace(digest, dropped=spans, forgotten=forgotten)
