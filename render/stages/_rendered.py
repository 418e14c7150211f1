"""The result of a render: the request, information about it, and its notices."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import (
    ArtifactId,
    DocumentPart,
    Event,
    ImagePart,
    MisuseError,
    ProviderPart,
    checked_call,
    images_of,
    in_words,
)
from render.policy._provider import Encoder, Model, Piece, Provider, Violation, Where
from render.stages._budget import Account, CannotFit
from render.stages._cache_points import CachePoint
from render.view._group import Entry, Group, Place, number
from render.view._provider_blocks import Json
from render.view._view import Shown


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


_Told: TypeAlias = Mapping[str, tuple[str, int]]
"""The first place and the number of occurrences, by the text of a notice."""
_NOTHING: Final[_Told] = {}


def notices_of(
    shown: Shown, encoder: Encoder, pieces: Sequence[Piece], missed: Sequence[Sequence[str]]
) -> Iterator[str]:
    """The notices of the pieces and of the parts that the provider does not accept; only new groups are
    read."""
    memo, key = shown.group_memo, encoder.key
    yield from _spelled(memo.chained(("notices", key), pieces, _NOTHING, _with_piece))
    yield from _spelled(memo.chained(("missed", key), missed, _NOTHING, _with))


def shortened(sizes: Account) -> Iterator[str]:
    """The notice that standing instructions had to be shortened."""
    if sizes.standing_cut:
        yield (
            f"standing instructions have room for {sizes.standing} tokens; {sizes.standing_cut} more were cut: take a "
            f"larger window, or a policy with a larger standing_ratio"
        )


def _with_piece(told: _Told, piece: Piece) -> _Told:
    return _with(told, piece.notices)


def _with(told: _Told, notices: Sequence[str]) -> _Told:
    if not notices:
        return told
    known = dict(told)
    for notice in notices:
        what, _, where = notice.rpartition(": ")
        first, often = known.get(what, (where, 0))
        known[what] = first, often + 1
    return known


def _spelled(chain: Sequence[_Told]) -> Iterator[str]:
    for what, (first, often) in chain[-1].items() if chain else ():
        yield f"{what}: {first} and {often - 1} more" if often > 1 else f"{what}: {first}"


# Parts that a provider does not accept.


def unread(shown: Shown, provider: Provider) -> Sequence[tuple[str, ...]]:
    """The notices of each group, one for each such part; the log keeps the original parts."""
    find = partial(_unread_of, provider=provider)
    return shown.group_memo.each(("unread", provider.name), shown.groups, find)


def _unread_of(group: Group, provider: Provider) -> tuple[str, ...]:
    shown = (entry for entry in group.entries if entry.replacement is None)
    return tuple(notice for entry in shown for notice in _unread_in(entry, provider))


def _unread_in(entry: Entry, provider: Provider) -> Iterator[str]:
    where: Where = "result" if entry.place is Place.RESULT else "user"
    for part in images_of(entry.block):
        if reason := provider.refusal(part, where):
            yield f"{_called(part)} is only told by name, {reason}: {entry.path}"


def _called(part: ImagePart | DocumentPart | ProviderPart) -> str:
    match part:
        case ImagePart():
            return "an image"
        case DocumentPart():
            return f"the document {part.name!r}" if part.name else "a document"
        case ProviderPart(value=value):
            return f"a part of the type {value.get('type') or value.get('kind') or 'part'!r}"
