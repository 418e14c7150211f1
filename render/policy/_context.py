"""The context: everything that a stage may use in addition to the view."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import attrs

from render.policy._policy import Policy
from render.policy._provider import Encoder, Limits, Model, Provider, TokenCounter
from render.view._provider_blocks import Json

_T = TypeVar("_T")


@attrs.frozen(eq=False)
class Fixed:
    """System prompt and tools, which no event changes, with values computed from them: tokens, marks, hash.

    As long as they are the same, all renders use the same object.
    """

    system: tuple[Json, ...]
    tools: tuple[Json, ...]
    _memo: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)

    def memo(self, key: object, make: Callable[[], _T]) -> _T:
        """The value that `make` returned at the first call with this key."""
        if key not in self._memo:
            self._memo[key] = make()
        found: _T = self._memo[key]
        return found


@attrs.frozen(kw_only=True)
class Context:
    """What one render may use: policy, model, provider, counter, system prompt and tools, and the current time."""

    policy: Policy
    model: Model
    provider: Provider = attrs.field(repr=False)
    counter: TokenCounter
    now: float
    limit: int
    """Tokens that the prompt may have: the window less the output reserve."""
    output_tokens: int = 0
    """The output reserve; 0: the limit was given directly."""
    notices: tuple[str, ...] = ()
    """Notices about guessed values."""
    system: tuple[Json, ...] = attrs.field(default=(), repr=False)
    """Text blocks of the system prompt."""
    tools: tuple[Json, ...] = attrs.field(default=(), repr=False)
    overhead_tokens: int = 0
    """Tokens that the provider adds to a request with tools."""
    calibrate: bool = False
    """Whether counts are corrected by the provider's reports."""
    keep_thinking: bool = True
    """Whether recorded thinking is shown at all."""
    cache_key: str = ""
    """A key that all requests of one timeline share, for the provider's cache; empty: none."""
    validate: bool = False
    """Whether each request is checked against the rules of its provider."""
    can_externalize: bool = False
    """Whether there is an artifact store for large content."""
    can_encrypt: bool = False
    """Whether that store accepts confidential and restricted content."""
    fixed: Fixed = attrs.field(
        default=attrs.Factory(lambda self: Fixed(self.system, self.tools), takes_self=True),
        eq=False,
        repr=False,
    )
    """System prompt and tools with values computed from them; pass it on while they stay the same."""

    latest_account: list[Any] = attrs.field(factory=list[Any], init=False, eq=False, repr=False)
    """The view that was last accounted for, and its account, because several stages need it."""

    @cached_property
    def capacity(self) -> int:
        """Tokens of which the policy's shares are taken: the limit, or `trigger_tokens` if that is less."""
        return min(self.limit, self.policy.trigger_tokens or self.limit)

    @cached_property
    def encoder(self) -> Encoder:
        """Turns groups of blocks into pieces of this context's requests."""
        return self.provider.encoder(self.counter, self.model, keep_thinking=self.keep_thinking)

    @cached_property
    def ttl_seconds(self) -> float:
        """How long the provider keeps a cached request."""
        return max(self.policy.ttl_seconds, self.limits.ttl_seconds)

    @cached_property
    def limits(self) -> Limits:
        """What the provider accepts and caches."""
        return self.provider.limits(self.model)
