"""Summarisers for replays, which record what their calls of a model read and wrote, or would have.

`SilentSummarizer` calls no model: it prices a policy with a model without calling one.  Its simulated call extends the
live prompt: it sends the previous request followed by an instruction, and reads the part that is still cached.
"""

import attrs
import msgspec

from blocks import Provenance
from render import Asking, Context, Summary, SummaryRoom, extractive
from timeline import ModelSummarizer, SummaryFailedError, SummaryRequest
from timeline.billing import CacheStep, SummaryCall

UPDATE_SHARE = 0.4
"""Share of the written part's room that an answer takes: it has what is new or different."""


@attrs.define
class SilentSummarizer:
    """Writes nothing, but counts calls whose answers are as long as they may be."""

    calls: list[SummaryCall] = attrs.field(factory=list[SummaryCall])
    last: tuple[float, CacheStep] | None = None
    """The time and the billing of the last request, which the next summary call would extend."""

    def __call__(self, request: SummaryRequest, /) -> Summary:
        summary = extractive(request.range)
        context = request.context
        room = SummaryRoom.of(context)
        sent = self.last[1].total if self.last else request.range.tokens_before
        asking = Asking.of(request.view, request.range, context)
        question = context.counter.count(asking.text(asking.before))
        call = SummaryCall(
            input_tokens=sent + question + room.history,  # the written part is full
            cached_prefix_tokens=self._warm(context),
            output_tokens=int(UPDATE_SHARE * (room.history + room.prefix)),
        )
        self.calls.append(call)
        provenance = summary.provenance and msgspec.structs.replace(
            summary.provenance,
            model="stand-in",
            input_tokens=call.input_tokens,
            cached_tokens=call.cached_prefix_tokens,
            output_tokens=call.output_tokens,
        )
        return attrs.evolve(summary, provenance=provenance)

    def _warm(self, context: Context) -> int:
        """The tokens of the previous request that are still in the cache."""
        kept_seconds = min(context.provider.rates(context.model, 0).writes, default=0)
        if self.last is None or context.now - self.last[0] >= kept_seconds:
            return 0
        step = self.last[1]
        return step.total - step.uncached


@attrs.define
class RecordingSummarizer:
    """Passes requests on to a model, and counts the calls made."""

    _inner: ModelSummarizer
    calls: list[SummaryCall] = attrs.field(factory=list[SummaryCall])

    @property
    def name(self) -> str:
        """The name under which prepared summaries are stored."""
        return self._inner.name

    def __call__(self, request: SummaryRequest, /) -> Summary:
        try:
            summary: Summary = self._inner(request)
        except SummaryFailedError as error:
            self._note(error.provenance)
            raise
        self._note(summary.provenance)
        return summary

    def _note(self, spent: Provenance | None) -> None:
        if spent and (spent.input_tokens or spent.output_tokens):
            call = SummaryCall(
                input_tokens=spent.input_tokens,
                cached_prefix_tokens=spent.cached_tokens,
                output_tokens=spent.output_tokens,
            )
            self.calls.append(call)
