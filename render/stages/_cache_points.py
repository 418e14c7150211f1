"""Cache points: positions in a rendered request up to which the provider may cache.

A provider writes its cache only at marks. From each mark it looks back over a limited number of positions
(`Limits.lookback`; a run of tool results may be one position) for an entry that an earlier request wrote.
So each point should remain a prefix of the next request, and one of the next request's points must be near
enough to it.

There are at most three points in the messages; another is at the end of system and tools.

    [ turn A ][ turn B ][ turn C: prompt, round, round, round, round, round, round ]
                      ^ previous turn            ^ pre-tail (round N-4)           ^ tail

    [ standing instructions, the user's words | page ][ turn C: round, round, round, round, round, round ]
                                              ^ laid down              ^ pre-tail                 ^ tail
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import attrgetter

import attrs

from blocks import RangeSummary
from render.policy._context import Context, Limits, Piece
from render.view._view import Group, Shown


@attrs.frozen(kw_only=True, order=True)
class CachePoint:
    """One position: a content block in a piece, and why it was chosen."""

    piece: int
    """Index of the piece."""
    spot: int
    """Index of the content block in the piece, over both messages."""
    version: int = attrs.field(order=False)
    """Version of the block that it shows."""
    reason: str = attrs.field(order=False)


def place_cache_points(
    shown: Shown, pieces: Sequence[Piece], context: Context
) -> tuple[CachePoint, ...]:
    """The cache points of this request, oldest first; none where the prefix is below the provider's minimum."""
    limits = context.limits
    if not limits.marks_max or not pieces:
        return ()
    tail = _at_or_before(pieces, (len(pieces) - 1, len(pieces[-1].spots) - 1), limits)
    if tail is None:
        return ()
    places = (
        (tail, "tail"),
        (_pre_tail(shown, pieces, tail, context), "pre-tail"),
        (_laid_down(shown, pieces, limits), "laid down"),
        (_previous_turn(shown, pieces, limits), "previous turn"),
    )
    candidates = [(place, reason) for place, reason in places if place is not None]
    reasons = dict(reversed(candidates[: limits.marks_max]))
    minimum = limits.cache_tokens_min - context.prefix.tokens
    return tuple(
        CachePoint(piece=p, spot=s, version=pieces[p].spots[s].version, reason=reason)
        for (p, s), reason in sorted(reasons.items())
        if _has_tokens(pieces, (p, s), minimum)
    )


_Place = tuple[int, int]


def _at_or_before(pieces: Sequence[Piece], place: _Place, limits: Limits) -> _Place | None:
    """The nearest content block that can carry a mark, going back from `place`."""
    may_carry = (at for at, kind in _backwards(pieces, place) if kind not in limits.unmarkable)
    return next(may_carry, None)


def _previous_turn(shown: Shown, pieces: Sequence[Piece], limits: Limits) -> _Place | None:
    """The last block before the current turn's header."""
    index = _piece_of(shown.groups, shown.turn_start)
    if index is None:
        return None
    spots = pieces[index].spots
    first = next((i for i, s in enumerate(spots) if s.version >= shown.turn_start), len(spots))
    return _at_or_before(pieces, (index, first - 1), limits)


def _laid_down(shown: Shown, pieces: Sequence[Piece], limits: Limits) -> _Place | None:
    """The end of what stands before a summary (standing instructions, the user's words), which stays there when the
    summary is written anew; without a summary, of the standing instructions at the front."""
    head = shown.groups[0]
    blocks = [entry.block for entry in head.entries]
    summary = next((n for n, block in enumerate(blocks) if isinstance(block, RangeSummary)), None)
    laid_down = head.standing if summary is None else {e.version for e in head.entries[:summary]}
    spots = pieces[0].spots
    end = next((n for n, spot in enumerate(spots) if spot.version not in laid_down), len(spots))
    return _at_or_before(pieces, (0, end - 1), limits) if end else None


def _pre_tail(
    shown: Shown, pieces: Sequence[Piece], tail: _Place, context: Context
) -> _Place | None:
    """The end of round N-4; or the last request's tail, if the look-back would miss it."""
    limits = context.limits
    last = _last_tail(shown, pieces, tail, limits)
    if last is not None and _distance(pieces, last, tail, limits) >= limits.lookback > 0:
        return last
    policy = context.policy
    if shown.rounds < max(policy.cache_point_min_rounds, policy.cache_point_offset_rounds + 1):
        return None
    index = len(pieces) - 1 - policy.cache_point_offset_rounds
    return _at_or_before(pieces, (index, len(pieces[index].spots) - 1), limits)


def _last_tail(
    shown: Shown, pieces: Sequence[Piece], tail: _Place, limits: Limits
) -> _Place | None:
    """The place of the last request's tail point, if it is still shown.

    If nothing was appended since, this request repeats the last one and needs the same points, so the tail
    of the request before that is used.
    """
    last = _place_of(shown, pieces, shown.tail, limits)
    return _place_of(shown, pieces, shown.tail_before, limits) if last == tail else last


def _place_of(shown: Shown, pieces: Sequence[Piece], version: int, limits: Limits) -> _Place | None:
    """The place of the last content block of this version that can carry a mark. (A filler line behind the model's
    words had their version, and is gone.)"""
    index = _piece_of(shown.groups, version)
    if not version or index is None:
        return None
    spots = pieces[index].spots
    indexes = (i for i in reversed(range(len(spots))) if spots[i].version == version)
    return next(((index, i) for i in indexes if spots[i].kind not in limits.unmarkable), None)


def _piece_of(groups: Sequence[Group], version: int) -> int | None:
    """Index of the group that contains this version; None for the head, whose versions are older."""
    index = bisect_left(groups, version, key=attrgetter("last"))
    if index == len(groups) or groups[index].first > version:
        return None
    return index


def _distance(pieces: Sequence[Piece], older: _Place, newer: _Place, limits: Limits) -> int:
    """Positions from `older` to `newer`, as the provider counts them; counting stops beyond the look-back."""
    positions, last = -1, ""
    for place, kind in _backwards(pieces, newer):
        if kind != last or kind not in limits.runs:
            positions += 1
        last = kind
        if place <= older or positions >= limits.lookback:
            break
    return positions


def _backwards(pieces: Sequence[Piece], place: _Place) -> Iterator[tuple[_Place, str]]:
    piece, spot = place
    while piece >= 0:
        while spot >= 0:
            yield (piece, spot), pieces[piece].spots[spot].kind
            spot -= 1
        piece -= 1
        spot = len(pieces[piece].spots) - 1


def _has_tokens(pieces: Sequence[Piece], place: _Place, minimum: int) -> bool:
    """Whether the messages up to `place` have at least this many tokens; counting stops once they have."""
    piece, spot = place
    before = sum(s.tokens for s in pieces[piece].spots[: spot + 1])
    sizes = accumulate((each.tokens for each in pieces[:piece]), initial=before)
    return any(tokens >= minimum for tokens in sizes)
