"""Rendering: the steps from the view of a log to the next request.

    decide:  prune -> clip -> limit images -> compact -> strip unbound thinking -> bring artifacts back
    show:    slice -> replace hidden, encode -> account -> cache points, notices -> assemble -> check, if the context
             asks for it

Decisions are recorded as events, so the next render repeats them. The second step is a pure function of the
log and of the returned artifacts. Nothing here waits: a compaction that is due, and artifacts that are named, may
need I/O or a model, and are yielded to the caller as a `Need`.

`Rendered` is the result: the request, information about it, and its notices.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cached_property, partial
from hashlib import sha256
from itertools import chain
from typing import Any, TypeAlias, cast

import attrs

from blocks import (
    ArtifactId,
    CompactionSkipped,
    DocumentPart,
    Event,
    EventId,
    ImagePart,
    InvalidRequestError,
    MisuseError,
    ProviderPart,
    RequestRendered,
    Trigger,
    checked_call,
    images_of,
    in_words,
)
from render.policy._context import Context, Model, Piece, Provider, Violation
from render.stages._budget import (
    Account,
    CannotFit,
    account,
    cannot_fit,
    compaction_due,
    total_tokens,
)
from render.stages._cache_points import CachePoint, place_cache_points
from render.stages._visibility import (
    ReturnedArtifact,
    clip_misfits,
    clip_oversized,
    limit_images,
    prune_expired,
    sent_hash,
    strip_unbound,
    wanted,
)
from render.view._view import Group, Json, Place, View, number


@attrs.frozen
class Compact:
    """A compaction is due; hooks and a model may be involved. The answer is the view afterwards."""

    view: View
    trigger: Trigger


@attrs.frozen
class BringBack:
    """The agent has named artifacts. The answer is those that come back, as `ReturnedArtifact`."""

    view: View
    artifacts: tuple[ArtifactId, ...]


Need: TypeAlias = Compact | BringBack
"""What the pipeline yields to its caller, because it may take time."""


@attrs.frozen(kw_only=True)
class Decided:
    """A request, with the decisions made for it."""

    view: View
    """The view with all decisions, which the caller commits."""
    tokens: int
    """Tokens of the request before a compaction."""
    rendered: Rendered


def render(
    view: View, context: Context, trigger: Trigger | None = None
) -> Generator[Need, Any, Decided]:
    """The next request; yields each `Need` and is sent the answer. With a trigger, a compaction is due in any case."""
    view = prune_expired(view, context)
    view = clip_oversized(view, context)
    view = limit_images(view, context) if view.pictured else view
    tokens, trigger = total_tokens(view, context), trigger or compaction_due(view, context)
    if trigger and context.policy.compacts:
        view = yield Compact(view, trigger)
        view = clip_misfits(view, context)
    view = strip_unbound(view, context) if view.thought else view
    returned: Sequence[ReturnedArtifact] = ()
    if context.can_externalize and (artifacts := wanted(view, context.policy)):
        returned = yield BringBack(view, artifacts)
    return Decided(view=view, tokens=tokens, rendered=show(view, context, returned))


def show(view: View, context: Context, returned: Sequence[ReturnedArtifact] = ()) -> Rendered:
    """The request for a view: a pure function of the log and of the returned artifacts.

    Raises:
        InvalidRequestError: the context asks for a check, and the provider would refuse the request.
    """
    provider, shown, prefix = context.provider, view.shown, context.prefix
    pieces = context.encoder.pieces(shown)
    sizes = account(view, context, sum(artifact.tokens for artifact in returned))
    misfit = cannot_fit(shown, sizes, context, _not_compacted(view, context))
    points = place_cache_points(shown, pieces, context)
    notices = notices_of(view, pieces, sizes, context)
    marks = [(point.piece, point.spot) for point in points]
    messages = provider.messages(pieces, marks, [artifact.text for artifact in returned])
    rendered = Rendered(
        messages=tuple(messages),
        system=prefix.system,
        tools=prefix.tools,
        model=context.model.name,
        spec=context.model,
        provider=provider,
        cache_key=context.cache_key,
        account=sizes,
        cache_points=points,
        content_hash=_hash(prefix.digest, [piece.digest for piece in pieces], points, returned),
        prefix_hash=prefix.digest,
        sent=sent_hash(shown, pieces, returned, context),
        shown=view.version,
        decisions=view.decisions,
        rehydrated=tuple(artifact.artifact for artifact in returned),
        notices=(*context.notices, *notices),
        cannot_fit=misfit,
    )
    if context.validate and rendered.violations:
        raise InvalidRequestError(provider.name, rendered.violations)
    return rendered


def handed_out(rendered: Rendered, context: Context) -> RequestRendered:
    """The event that says that a request was handed out."""
    return RequestRendered(
        id=EventId(""),
        at=context.now,
        content_hash=rendered.content_hash,
        tokens=rendered.account.estimated,
        shown=rendered.shown,
        cache_points=tuple(point.version for point in rendered.cache_points),
        prefix_hash=rendered.prefix_hash,
        sent=rendered.sent,
        ttl=context.ttl_seconds,
        rehydrated=rendered.rehydrated,
    )


def _hash(
    prefix_hash: str,
    pieces: Iterable[bytes],
    points: Sequence[CachePoint],
    returned: Sequence[ReturnedArtifact],
) -> str:
    """One hash for the whole request, computed from the cached hashes of its pieces."""
    digest = sha256(prefix_hash.encode() + b"".join(pieces))
    for point in points:
        digest.update(b"%d.%d;" % (point.piece, point.spot))
    for artifact in returned:
        digest.update(artifact.text.encode(errors="surrogatepass"))
    return digest.hexdigest()


def _not_compacted(view: View, context: Context) -> str:
    """Why nothing made room, if that was deliberate: by policy or by a hook; otherwise empty."""
    if not context.policy.compacts:
        return "compaction is switched off; switch it on or take a larger window"
    skips = (event for event in view.decisions if isinstance(event, CompactionSkipped))
    vetoed = any(skip.reason == "vetoed" for skip in skips)
    return "a hook vetoed the compaction; let it happen or take a larger window" if vetoed else ""


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
    """Hash of system prompt, tools and all content without cache marks, to which an answer's thinking is bound; empty: another is sent."""
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
        options = {} if max_output_tokens is None else {"max_output_tokens": max_output_tokens}
        self._check("openai.responses", "openai_responses()", **options)
        return {"model": self.model, **self.request(), **options}

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
        options = {} if limit is None else {"max_completion_tokens": limit}
        self._check("openai.chat", "openai_chat()", **options)
        return {"model": self.model, **self.request(), **options}

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
        options = {} if max_output_tokens is None else {"max_output_tokens": max_output_tokens}
        self._check("gemini", "gemini()", **options)
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
        f"{_description(part)} is replaced by its name: {reason}: {entry.path}"
        for entry, part, reason in refusals
        if reason
    )


def _description(part: ImagePart | DocumentPart | ProviderPart) -> str:
    match part:
        case ImagePart():
            return "an image"
        case DocumentPart():
            return f"the document {part.name!r}" if part.name else "a document"
        case ProviderPart(value=value):
            return f"a part of the type {value.get('type') or value.get('kind') or 'part'!r}"
