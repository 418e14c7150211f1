"""What a render hands out: the request, and everything worth knowing about it."""

import attrs

from blocks import (
    ArtifactId,
    Event,
    MisuseError,
    checked_call,
    in_words,
)
from render.policy._provider import Provider, Violation
from render.stages._budget import Account
from render.stages._cache_points import CachePoint
from render.stages._misfit import CannotFit
from render.view._group import number
from render.view._provider_blocks import Json


@attrs.frozen(kw_only=True)
class Rendered:
    """A request, and everything worth knowing about it."""

    messages: tuple[Json, ...] = attrs.field(repr=number)
    system: tuple[Json, ...] = attrs.field(repr=number)
    tools: tuple[Json, ...] = attrs.field(repr=number)
    model: str
    provider: Provider = attrs.field(repr=False)
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

    @checked_call
    def anthropic(self, *, max_tokens: int) -> Json:
        """The keyword arguments of `client.messages.create`.

        Messages and lists are fresh, so that callers may add to them; content blocks are shared
        with later renders and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_tokens` is no number of tokens;
                0 only warms the provider's cache.
        """
        if self.provider.name != "anthropic":
            raise MisuseError(f"anthropic(): this request was rendered for {self.provider.name!r}")
        if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 0:  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
            raise MisuseError(
                f"anthropic(): max_tokens is a whole number, 0 or more, not {in_words(max_tokens)}"
            )
        return {"model": self.model, "max_tokens": max_tokens, **self.request()}

    @checked_call
    def request(self) -> Json:
        """System, tools and messages: the part of the request that depends on the log."""
        return self.provider.request(self.system, self.tools, self.messages)
