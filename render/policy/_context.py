"""The context: all that a stage may know besides the view."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import attrs

from render.policy._model import Limits, Model
from render.policy._policy import Policy
from render.policy._provider import Encoder, Provider, TokenCounter
from render.view._provider_blocks import Json

_T = TypeVar("_T")


@attrs.frozen(eq=False)
class Fixed:
    """System prompt and tools, which no event changes, with what was computed for them: tokens, marks, hash.

    The same object goes from render to render for as long as they are the same.
    """

    system: tuple[Json, ...]
    tools: tuple[Json, ...]
    _memo: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)

    def memo(self, key: object, make: Callable[[], _T]) -> _T:
        """What `make` returned the first time it was asked for with this key."""
        if key not in self._memo:
            self._memo[key] = make()
        found: _T = self._memo[key]
        return found


@attrs.frozen(kw_only=True)
class Context:
    """What one render may know: policy, model, provider, counter, the fixed part, and what time it is."""

    policy: Policy
    model: Model
    provider: Provider = attrs.field(repr=False)
    counter: TokenCounter
    now: float
    limit: int
    """Tokens that the prompt may have: the window less the output reserve."""
    output_tokens: int = 0
    """That reserve; 0: the limit was given as it is."""
    notices: tuple[str, ...] = ()
    """What had to be guessed."""
    system: tuple[Json, ...] = attrs.field(default=(), repr=False)
    """Text blocks of the system prompt."""
    tools: tuple[Json, ...] = attrs.field(default=(), repr=False)
    overhead_tokens: int = 0
    """What the provider adds to a request with tools."""
    calibrate: bool = False
    """Whether counts are corrected by what the provider reported."""
    keep_thinking: bool = True
    """Whether recorded thinking is shown at all."""
    cache_key: str = ""
    """What the requests of one timeline have in common, for a provider's cache; empty: none."""
    can_externalize: bool = False
    """Whether there is an artifact store to move content to."""
    can_encrypt: bool = False
    """Whether that store takes what is confidential or restricted."""
    fixed: Fixed = attrs.field(
        default=attrs.Factory(lambda self: Fixed(self.system, self.tools), takes_self=True),
        eq=False,
        repr=False,
    )
    """System and tools with what is known about them; give it on while they stay the same."""

    latest_account: list[Any] = attrs.field(factory=list[Any], init=False, eq=False, repr=False)
    """The view that was accounted for last, and its account: several stages ask."""

    @cached_property
    def encoder(self) -> Encoder:
        """What turns groups of blocks into pieces of this context's requests."""
        return self.provider.encoder(self.counter, self.model, keep_thinking=self.keep_thinking)

    @cached_property
    def ttl_seconds(self) -> float:
        """How long the provider keeps what it has cached of a request."""
        return max(self.policy.ttl_seconds, self.limits.ttl_seconds)

    @cached_property
    def limits(self) -> Limits:
        """What the provider takes and caches."""
        return self.provider.limits(self.model)
