"""What a render hands out, and the showing half of the pipeline."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import chain
from operator import attrgetter

import attrs

from blocks import (
    ArtifactId,
    CompactionSkipped,
    Event,
    EventId,
    MisuseError,
    RequestRendered,
    checked_calls,
    in_words,
)
from render.policy._context import Context, Json
from render.providers.anthropic import Encoder, RequestValidator, Violation, appended, assemble
from render.stages._budget import Account, account, fixed_tokens, with_returned
from render.stages._cache_points import CachePoint, place_cache_points
from render.stages._misfit import CannotFit, cannot_fit
from render.stages._prefix import prefix_of
from render.stages._rehydrate import Returned
from render.stages._sent import sent_hash
from render.view._group import number
from render.view._view import View
from render.view._visible import slice_visible


@checked_calls()
@attrs.frozen(kw_only=True)
class Rendered:
    """A request, and everything worth knowing about it."""

    messages: tuple[Json, ...] = attrs.field(repr=number)
    system: tuple[Json, ...] = attrs.field(repr=number)
    tools: tuple[Json, ...] = attrs.field(repr=number)
    model: str
    account: Account
    cache_points: tuple[CachePoint, ...] = attrs.field(repr=number)
    content_hash: str
    """SHA-256 over the request, cache marks included, as hexadecimal text."""
    prefix_hash: str
    sent: str
    """Hash of system, tools and all content, cache marks aside: what an answer's thinking is bound to."""
    shown: int
    """Version of the view that was rendered."""
    decisions: tuple[Event, ...] = attrs.field(default=(), repr=False)
    """What this render decided, in order: prunes, clips, compactions, skips."""
    rehydrated: tuple[ArtifactId, ...] = ()
    """Artifacts that came back, behind the tail."""
    notices: tuple[str, ...] = attrs.field(default=(), repr=number)
    """What had to be guessed, and repairs that the log made necessary."""
    violations: tuple[Violation, ...] = ()
    """What the provider would refuse; empty unless there is a bug of ours."""
    cannot_fit: CannotFit | None = None

    @property
    def tokens(self) -> int:
        """The whole prompt, calibrated."""
        return self.account.total

    @property
    def fits(self) -> bool:
        """Whether the prompt is within its limit."""
        return self.account.total <= self.account.limit

    def anthropic(self, *, max_tokens: int) -> Json:
        """The keyword arguments of `client.messages.create`.

        Messages and lists are fresh, so that callers may add to them; content blocks are shared
        with later renders and must not be changed.

        Raises:
            MisuseError: `max_tokens` is no number of tokens; 0 only warms the provider's cache.
        """
        if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 0:  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
            raise MisuseError(
                f"anthropic(): max_tokens is a whole number, 0 or more, not {in_words(max_tokens)}"
            )
        return {"model": self.model, "max_tokens": max_tokens, **self.request()}

    def request(self) -> Json:
        """System, tools and messages: the part of the request that depends on the log."""
        request: Json = {"system": [dict(text) for text in self.system]} if self.system else {}
        if self.tools:
            request["tools"] = [dict(tool) for tool in self.tools]
        request["messages"] = [
            {"role": m["role"], "content": list(m["content"])} for m in self.messages
        ]
        return request

    def event(self, at: float, ttl: float) -> RequestRendered:
        """The fact that this request was handed out."""
        return RequestRendered(
            id=EventId(""),
            at=at,
            content_hash=self.content_hash,
            tokens=self.account.estimated,
            shown=self.shown,
            cache_points=tuple(point.version for point in self.cache_points),
            prefix_hash=self.prefix_hash,
            sent=self.sent,
            ttl=ttl,
            rehydrated=self.rehydrated,
        )


def show(
    view: View,
    context: Context,
    validator: RequestValidator,
    returned: Sequence[Returned] = (),
) -> Rendered:
    """The request that a view is rendered to: a pure function of the log, and of what came back.

    slice -> replace hidden, encode -> place cache points -> assemble -> append what came back
    -> validate
    """
    shown = slice_visible(view)
    encoder = Encoder.of(context)
    pieces = encoder.pieces(shown)
    points = place_cache_points(shown, pieces, fixed_tokens(context), context)
    messages = assemble(pieces, [(point.piece, point.spot) for point in points])
    messages = appended(messages, [artifact.text for artifact in returned])
    prefix = prefix_of(context)
    request = {"system": prefix.system, "tools": prefix.tools, "messages": messages}
    sizes = with_returned(account(view, context), sum(artifact.tokens for artifact in returned))
    return Rendered(
        messages=tuple(messages),
        system=prefix.system,
        tools=prefix.tools,
        model=context.model.name,
        account=sizes,
        cache_points=points,
        content_hash=_hash(prefix.digest, map(attrgetter("digest"), pieces), points, returned),
        prefix_hash=prefix.digest,
        sent=sent_hash(shown, pieces, returned, context),
        shown=view.version,
        decisions=view.decisions,
        rehydrated=tuple(artifact.artifact for artifact in returned),
        notices=(*context.notices, *chain.from_iterable(map(attrgetter("notices"), pieces))),
        violations=validator.check(request, context.model),
        cannot_fit=cannot_fit(pieces, sizes, context, _not_compacted(view, context)),
    )


def _hash(
    prefix_hash: str,
    pieces: Iterable[bytes],
    points: Sequence[CachePoint],
    returned: Sequence[Returned],
) -> str:
    """One hash for the whole request, from those of its pieces: a piece is hashed once."""
    digest = sha256(prefix_hash.encode() + b"".join(pieces))
    for point in points:
        digest.update(b"%d.%d;" % (point.piece, point.spot))
    for artifact in returned:
        digest.update(artifact.text.encode(errors="surrogatepass"))
    return digest.hexdigest()


def _not_compacted(view: View, context: Context) -> str:
    """Why nothing made room, where that was somebody's will."""
    if not context.policy.compacts:
        return "compaction is switched off; switch it on or take a larger window"
    skips = (event for event in view.decisions if isinstance(event, CompactionSkipped))
    vetoed = any(skip.reason == "vetoed" for skip in skips)
    return "a hook vetoed the compaction; let it happen or take a larger window" if vetoed else ""
