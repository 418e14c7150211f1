"""Rendering: the steps from the view of a log to the next request.

    decide:  prune -> clip -> limit images -> compact -> strip unbound thinking -> bring artifacts back
    show:    slice -> replace hidden, encode -> account -> cache points, notices -> assemble -> check, if the context
             asks for it

Decisions are recorded as events, so the next render repeats them. The second step is a pure function of the
log and of the returned artifacts. Nothing here waits: a compaction that is due, and artifacts that are named, may
need I/O or a model, and are yielded to the caller as a `Need`.
"""

from collections.abc import Generator, Iterable, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

import attrs

from blocks import (
    ArtifactId,
    CompactionSkipped,
    EventId,
    InvalidRequestError,
    RequestRendered,
    Trigger,
)
from render.policy._context import Context
from render.stages._budget_and_compaction_due import (
    account,
    cannot_fit,
    compaction_due,
    total_tokens,
)
from render.stages._hide_and_bring_back import (
    Returned,
    clip_misfits,
    clip_oversized,
    limit_images,
    prune_expired,
    sent_hash,
    strip_unbound,
    wanted,
)
from render.stages._rendered_and_cache_points import (
    CachePoint,
    Rendered,
    notices_of,
    place_cache_points,
)
from render.view._view import View


@attrs.frozen
class Compact:
    """A compaction is due; hooks and a model may be involved. The answer is the view afterwards."""

    view: View
    trigger: Trigger


@attrs.frozen
class BringBack:
    """The agent has named artifacts. The answer is those that come back, as `Returned`."""

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
    returned: Sequence[Returned] = ()
    if context.can_externalize and (named := wanted(view, context.policy)):
        returned = yield BringBack(view, named)
    rendered = show(view, context, returned)
    return Decided(view=view, tokens=tokens, rendered=rendered)


def show(view: View, context: Context, returned: Sequence[Returned] = ()) -> Rendered:
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
    sent = sent_hash(shown, pieces, returned, context)
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
        sent=sent,
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
    returned: Sequence[Returned],
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
