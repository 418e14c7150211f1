"""A summariser that calls no model and records what a model call would have read and written.

It prices a policy with a model without calling one.  The simulated call extends the live prompt: it
sends the previous request followed by an instruction, and reads the part that is still cached.
"""

from collections.abc import Callable

import attrs
import msgspec

from blocks import StructuredSummary, leaves
from render import Context, Policy, Summary, extractive
from timeline.replay._cache import CacheStep
from timeline.replay._price import SummaryCall
from timeline.summarizers._summarizer import SummaryRequest

NAME = "stand-in"
INSTRUCTION_TOKENS = 60


@attrs.define
class StandIn:
    """Returns the extractive summary; `taken` returns the simulated calls."""

    _last: tuple[float, CacheStep] | None = attrs.field(init=False, default=None)
    _calls: list[SummaryCall] = attrs.field(init=False, factory=list[SummaryCall])

    def sent(self, ts: float, step: CacheStep) -> None:
        """Note a request that was sent; the next summary call would extend it."""
        self._last = (ts, step)

    def taken(self) -> tuple[SummaryCall, ...]:
        """The simulated calls since the last `taken`."""
        calls, self._calls = tuple(self._calls), []
        return calls

    def __call__(self, request: SummaryRequest, /) -> Summary:
        summary = extractive(request.plan)
        context = request.context
        call = SummaryCall(
            input_tokens=self._input(request.plan.tokens_before) + INSTRUCTION_TOKENS,
            cached_prefix_tokens=self._warm(context),
            output_tokens=_written(summary.summary, context.policy, context.counter.count),
        )
        self._calls.append(call)
        known = summary.provenance and msgspec.structs.replace(
            summary.provenance,
            model=NAME,
            input_tokens=call.input_tokens,
            cached_tokens=call.cached_prefix_tokens,
            output_tokens=call.output_tokens,
        )
        return attrs.evolve(summary, provenance=known)

    def _input(self, tokens_before: int) -> int:
        return self._last[1].total if self._last else tokens_before

    def _warm(self, context: Context) -> int:
        """The tokens of the previous request that are still in the cache."""
        kept_seconds = min(context.provider.rates(context.model, 0).writes, default=0)
        if self._last is None or context.now - self._last[0] >= kept_seconds:
            return 0
        step = self._last[1]
        return step.total - step.uncached


def _written(summary: StructuredSummary, policy: Policy, count: Callable[[str], int]) -> int:
    """The tokens that a model would write, at most its limit."""
    text = leaves(msgspec.to_builtins(summary))
    return min(count(text), policy.summary_tokens + policy.prefix_tokens)
