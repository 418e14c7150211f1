"""The result of a render: where the provider shall cache it, the request, information about it, and its notices."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from typing import Any, cast

import attrs

from blocks import (
    ArtifactId,
    DocumentPart,
    Event,
    ImagePart,
    MisuseError,
    ProviderPart,
    RangeSummary,
    checked_call,
    images_of,
    in_words,
)
from render.policy._context import Context, Limits, Model, Piece, Provider, Violation
from render.stages._budget_and_compaction_due import Account, CannotFit
from render.view._view import Group, Json, Place, Shown, View, number

# Cache points: positions in a rendered request up to which the provider may cache.
#
# A provider writes its cache only at marks. From each mark it looks back over a limited number of positions
# (`Limits.lookback`; a run of tool results may be one position) for an entry that an earlier request wrote.
# So each point should remain a prefix of the next request, and one of the next request's points must be near
# enough to it.
#
# There are at most three points in the messages; another is at the end of system and tools.
#
#     [ turn A ][ turn B ][ turn C: prompt, round, round, round, round, round, round ]
#                       ^ previous turn            ^ pre-tail (round N-4)           ^ tail
#
#     [ standing instructions, the user's words | page ][ turn C: round, round, round, round, round, round ]
#                                               ^ laid down              ^ pre-tail                 ^ tail


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
    chosen = dict(reversed(candidates[: limits.marks_max]))
    minimum = limits.cache_tokens_min - context.prefix.tokens
    return tuple(
        CachePoint(piece=p, spot=s, version=pieces[p].spots[s].version, reason=reason)
        for (p, s), reason in sorted(chosen.items())
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
    tokens = sum(s.tokens for s in pieces[piece].spots[: spot + 1])
    for before in pieces[:piece]:
        if tokens >= minimum:
            return True
        tokens += before.tokens
    return tokens >= minimum


# The result.


@attrs.frozen(kw_only=True)
class Rendered:
    """A rendered request, and information about it."""

    messages: tuple[Json, ...] = attrs.field(repr=number)
    system: tuple[Json, ...] = attrs.field(repr=number)
    tools: tuple[Json, ...] = attrs.field(repr=number)
    model: str
    _spec: Model = attrs.field(alias="spec", repr=False, eq=False)
    """The model with the properties that the provider's rules use."""
    provider: Provider = attrs.field(repr=False)
    cache_key: str = attrs.field(default="", repr=False)
    """A key that all requests of one timeline share, for the provider's cache."""
    account: Account
    cache_points: tuple[CachePoint, ...] = attrs.field(repr=number)
    content_hash: str
    """SHA-256 over the request, cache marks included, as hexadecimal text."""
    prefix_hash: str
    sent: str
    """Hash of system prompt, tools and all content without cache marks, to which an answer's thinking is bound."""
    shown: int
    """Version of the view that was rendered."""
    decisions: tuple[Event, ...] = attrs.field(default=(), repr=False)
    """What this render decided, in order: prunes, clips, compactions, skips."""
    rehydrated: tuple[ArtifactId, ...] = ()
    """Artifacts that came back, after the tail."""
    notices: tuple[str, ...] = attrs.field(default=(), repr=number)
    """Guessed values, and repairs that the log made necessary."""
    cannot_fit: CannotFit | None = None

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """Violations of the provider's rules; empty unless foldline has a bug, or the request is larger than the provider
        takes. The request is checked when this is read for the first time, which takes some milliseconds."""
        return self.provider.violations(self._request(), self._spec)

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt, calibrated."""
        return self.account.total

    @property
    def fits(self) -> bool:
        """Whether the prompt is within its limit."""
        return self.account.total <= self.account.limit

    @checked_call
    def anthropic(self, *, max_tokens: int) -> Json:
        """The keyword arguments of `client.messages.create`.

        Messages and lists are fresh, so callers may add to them; content blocks are shared
        with later renders and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_tokens` is not a number of tokens
                (0 is allowed, and only warms the provider's cache).
        """
        self._check("anthropic", "anthropic()", max_tokens=max_tokens)
        return {"model": self.model, "max_tokens": max_tokens, **self.request()}

    @checked_call
    def openai_responses(self, *, max_output_tokens: int | None = None) -> Json:
        """The keyword arguments of `client.responses.create` of the OpenAI client: `model`, `input`,
        `tools`, `store=False`, the cache options and, unless None, `max_output_tokens`.

        Items and lists are fresh, so callers may add to them; their contents are shared with later renders
        and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_output_tokens` is not a number of
                tokens.
        """
        asked = {} if max_output_tokens is None else {"max_output_tokens": max_output_tokens}
        self._check("openai.responses", "openai_responses()", **asked)
        return {"model": self.model, **self.request(), **asked}

    @checked_call
    def openai_chat(self, *, max_completion_tokens: int | None = None) -> Json:
        """The keyword arguments of `client.chat.completions.create` of the OpenAI client: `model`,
        `messages`, `tools`, the cache options and, unless None, `max_completion_tokens`.

        Messages and lists are fresh, so callers may add to them; their contents are shared with later renders
        and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_completion_tokens` is not a number of
                tokens.
        """
        limit = max_completion_tokens
        asked = {} if limit is None else {"max_completion_tokens": limit}
        self._check("openai.chat", "openai_chat()", **asked)
        return {"model": self.model, **self.request(), **asked}

    @checked_call
    def gemini(self, *, max_output_tokens: int | None = None) -> Json:
        """The keyword arguments of `client.models.generate_content` of the Google client: `model`, `contents`,
        and `config` with `systemInstruction`, `tools` and, unless None, `maxOutputTokens`.

        Contents and lists are fresh, so callers may add to them; their contents are shared with later renders
        and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_output_tokens` is not a number of
                tokens.
        """
        asked = {} if max_output_tokens is None else {"max_output_tokens": max_output_tokens}
        self._check("gemini", "gemini()", **asked)
        request = self.request()
        limit = {} if max_output_tokens is None else {"maxOutputTokens": max_output_tokens}
        return {"model": self.model, **request, "config": {**request["config"], **limit}}

    def _check(self, provider: str, call: str, **limits: int) -> None:
        if self.provider.name != provider:
            raise MisuseError(
                f"{call}: this request was rendered for {self.provider.name!r}, not for {provider!r}"
            )
        for name, limit in limits.items():
            if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
                raise MisuseError(
                    f"{call}: {name} must be a whole number, 0 or more, not {in_words(limit)}"
                )

    @checked_call
    def request(self) -> Json:
        """The part of the request that depends on the log: system, tools, messages."""
        return {name: _fresh(value) for name, value in self._request().items()}

    def _request(self) -> Json:
        return self.provider.request(self.system, self.tools, self.messages, self.cache_key)


def _fresh(value: Any) -> Any:
    """A copy of a list, with copies of the lists inside its items; everything else is shared."""
    if isinstance(value, list):
        return [_fresh(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("Json", value).items()
    return {k: [*cast("list[Any]", v)] if isinstance(v, list) else v for k, v in fields}


# The notices of a request, each listed once with its first place and the number of other places.
#
# They come from the pieces, from standing instructions that were shortened, and from parts that the provider does not
# accept: the request contains only the names of these, and the log keeps the originals.


def notices_of(view: View, pieces: Sequence[Piece], sizes: Account, context: Context) -> list[str]:
    """The notices of a request, from these three sources."""
    notices: list[str] = []
    if sizes.standing_cut:
        notices.append(
            f"standing instructions have room for {sizes.standing} tokens; {sizes.standing_cut} more were cut: take a "
            f"larger window, or a policy with a larger standing_ratio"
        )
    notices += _once([piece.notices for piece in pieces if piece.notices])
    if view.pictured:
        find = partial(_unread_of, provider=context.provider)
        shown, key = view.shown, ("unread", context.provider.name)
        notices += _once(shown.group_memo.each(key, shown.groups, find))
    return notices


def _once(notices: Sequence[Sequence[str]]) -> Iterator[str]:
    """Each notice once, with the first place that it is about, and how many more there are."""
    places: dict[str, list[str]] = {}
    for notice in chain.from_iterable(notices):
        what, _, where = notice.rpartition(": ")
        places.setdefault(what, []).append(where)
    for what, (first, *more) in places.items():
        yield f"{what}: {first} and {len(more)} more" if more else f"{what}: {first}"


def _unread_of(group: Group, provider: Provider) -> tuple[str, ...]:
    """The notices of a group, one for each part that the provider does not accept."""
    parts = [
        (e, part) for e in group.entries if e.replacement is None for part in images_of(e.block)
    ]
    refusals = [
        (entry, part, provider.refusal(part, "result" if entry.place is Place.RESULT else "user"))
        for entry, part in parts
    ]
    return tuple(
        f"{_called(part)} is replaced by its name: {reason}: {entry.path}"
        for entry, part, reason in refusals
        if reason
    )


def _called(part: ImagePart | DocumentPart | ProviderPart) -> str:
    match part:
        case ImagePart():
            return "an image"
        case DocumentPart():
            return f"the document {part.name!r}" if part.name else "a document"
        case ProviderPart(value=value):
            return f"a part of the type {value.get('type') or value.get('kind') or 'part'!r}"
