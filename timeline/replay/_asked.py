"""A summariser for replays that calls a real model through the official client and records its calls."""

from typing import Any

import attrs

from blocks import Provenance
from render import Summary
from timeline.replay._cache import CacheStep
from timeline.replay._price import SummaryCall
from timeline.summarizers._model import ModelSummarizer
from timeline.summarizers._summarizer import SummaryFailedError, SummaryRequest


@attrs.define
class Asked:
    """Passes requests on to a model; `taken` returns the calls made."""

    _inner: ModelSummarizer
    _calls: list[SummaryCall] = attrs.field(init=False, factory=list[SummaryCall])

    @classmethod
    def at(cls, base_url: str) -> "Asked":
        """Create it with the client's own key; an empty `base_url` means the client's default address."""
        from anthropic import Anthropic

        given: dict[str, Any] = {"base_url": base_url} if base_url else {}
        return cls(ModelSummarizer(client=Anthropic(**given)))

    @property
    def name(self) -> str:
        """The name under which prepared summaries are stored."""
        return self._inner.name

    def sent(self, ts: float, step: CacheStep) -> None:
        """Do nothing: the real provider does its own caching."""

    def taken(self) -> tuple[SummaryCall, ...]:
        """The calls since the last `taken`."""
        calls, self._calls = tuple(self._calls), []
        return calls

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
            self._calls.append(call)
