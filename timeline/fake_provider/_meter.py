"""Tokens of requests and answers, and what the prompt cache has of them, for one model."""

from collections.abc import Sequence
from typing import Self

import attrs

from render import Json, Model, provider_of
from timeline.replay._cache import CacheStep, FlatBlock, PromptCache
from timeline.replay._flatten import Flattener
from timeline.tokens import ModelCounter

_SECONDS = {"5m": 300, "1h": 3_600}
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


@attrs.define
class Meter:
    """Remembers the prompts it has seen, as the provider's cache does."""

    counter: ModelCounter
    _flattener: Flattener
    _cache: PromptCache

    @classmethod
    def of(cls, model: Model, factor: float) -> Self:
        """A meter; `factor`: the provider's tokens for each that our own counter finds."""
        counted = attrs.evolve(model, token_factor=model.token_factor * factor)
        counter = ModelCounter(counted)
        cache = PromptCache.of(model)
        return cls(counter, Flattener(counter, provider_of(model)), cache)

    def flat(self, request: Json) -> list[FlatBlock]:
        """The blocks of a request in cache order; their tokens are those of the prompt."""
        flat = self._flattener.flatten(request)
        if request.get("tools"):  # what the provider itself says about tools comes first
            overhead = self.counter.model.tool_overhead_tokens
            flat[0] = flat[0]._replace(tokens=flat[0].tokens + overhead)
        control = request.get("cache_control")
        if control:  # automatic caching: a mark on the last block that takes one
            seconds = _SECONDS[control.get("ttl") or "5m"]
            last = max(i for i, block in enumerate(flat) if block.kind not in _UNMARKABLE)
            flat[last] = flat[last]._replace(ttl=seconds)
        return flat

    def bill(self, flat: Sequence[FlatBlock], at: float) -> Json:
        """The usage of an accepted request, all but its output; the cache remembers it."""
        step: CacheStep = self._cache.step(at, flat)
        written = {
            f"ephemeral_{ttl}_input_tokens": step.written.get(seconds, 0)
            for ttl, seconds in _SECONDS.items()
        }
        return {
            "input_tokens": step.uncached,
            "cache_creation_input_tokens": step.write,
            "cache_read_input_tokens": step.read,
            "cache_creation": written,
            "service_tier": "standard",
        }
