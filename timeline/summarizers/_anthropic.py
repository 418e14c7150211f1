"""A summariser that asks an Anthropic model, through the official client, sync or async.

It asks once, and once more when the first answer is no good; after that it gives up with
`SummaryFailedError`, and the timeline's policy decides what stands in.
"""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

import attrs
import msgspec

from blocks import MisuseError, Provenance, StructuredSummary, UsageRecorded
from render import (
    PROMPT_VERSION,
    Context,
    Json,
    Model,
    Prompt,
    RejectedAnswerError,
    Summary,
    SummaryRoom,
    as_json,
    continued,
    merge_summaries,
    parse_answer,
    provider_of,
    show,
    summary_prompts,
    without_thinking,
)
from timeline._flow import Calls, adrive, drive
from timeline._models import model_named
from timeline.summarizers._summarizer import SummaryFailedError, SummaryRequest
from timeline.tokens import counter_for

TRIES_MAX: Final = 2
ANSWER_TOKENS: Final = 2400
"""Room for the answer: the two summaries, and the JSON around them."""
_MINUTES_5, _HOUR = 300, 3_600


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """A content block of an answer; only text is read."""

    type: str
    text: str | None = None


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of an answer."""

    content: tuple[_Content, ...]
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None


@attrs.define
class _Spent:
    """What the calls of one summary cost so far."""

    model: Model
    input: int = 0
    cached: int = 0
    output: int = 0
    dollars: float = 0.0
    """At the model's list prices."""
    stop_reason: str = ""

    def add(self, message: _Answer) -> None:
        usage = provider_of(self.model).usage({"usage": message.usage})
        self.stop_reason = message.stop_reason or ""
        if usage:
            self.input += usage.input
            self.cached += usage.cache_read
            self.output += usage.output
            self.dollars += _dollars(usage, _kept_1h(message), self.model)

    def provenance(self, source_hash: str) -> Provenance:
        return Provenance(
            source_hash=source_hash,
            model=self.model.name,
            prompt=PROMPT_VERSION,
            stop_reason=self.stop_reason,
            input_tokens=self.input,
            cached_tokens=self.cached,
            output_tokens=self.output,
            cost_usd=self.dollars,
        )


def _dollars(usage: UsageRecorded, kept_1h: int, model: Model) -> float:
    """What one call cost."""
    rates = provider_of(model).rates(model, usage.input)
    written = {_MINUTES_5: usage.cache_write - kept_1h, _HOUR: kept_1h}
    return rates.cost(usage.uncached, usage.cache_read, written, usage.output) / 1_000_000


def _kept_1h(message: _Answer) -> int:
    """Tokens that were written to the cache for an hour, which costs more."""
    written: object = (message.usage or {}).get("cache_creation")
    known = cast("Json", written) if isinstance(written, dict) else {}
    tokens: object = known.get("ephemeral_1h_input_tokens")
    return tokens if isinstance(tokens, int) else 0


@attrs.frozen(kw_only=True)
class AnthropicSummarizer:
    """Asks a model for the structured summary; with an async client it is for `AsyncTimeline`.

    Raises, when called:
        SummaryFailedError: two tries, and no usable answer.
    """

    client: Any
    """An `anthropic.Anthropic` or `AsyncAnthropic`."""
    model: str = ""
    """Another model than the timeline's; it cannot read the timeline's cache."""
    answer_tokens: int = ANSWER_TOKENS
    options: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """Further arguments of every call. Those that the agent's own calls have (thinking, effort)
    belong here: the provider's cache is keyed by them, too."""

    @property
    def name(self) -> str:
        """What prepared summaries are kept under."""
        return self.model or "timeline"

    def __call__(self, request: SummaryRequest, /) -> Any:
        """A `Summary`, or with an async client an awaitable of one."""
        create = self.client.messages.create
        if inspect.iscoroutinefunction(inspect.unwrap(create)):
            return adrive(self._calls(request))
        return drive(self._calls(request))

    def _calls(self, request: SummaryRequest) -> Calls[Summary]:
        """The calls to make, one after the other; is sent their answers."""
        context = request.context
        model = model_named(self.model) if self.model else context.model
        spent = _Spent(model)
        merged: StructuredSummary | None = None
        reading = self._reading(context, model)
        live = show(request.view, reading)
        for prompt in summary_prompts(live, request.plan, reading, self.answer_tokens):
            asked = continued(prompt, merged) if merged else prompt
            part = yield from self._ask(asked, request, spent)
            merged = merge_summaries(merged, part, SummaryRoom.of(context))
        if merged is None:
            raise SummaryFailedError("nothing to summarise")
        return Summary(summary=merged, provenance=spent.provenance(request.plan.source_hash))

    def _reading(self, context: Context, model: Model) -> Context:
        """What the prompt is made with: another model has another window, tokenizer and rules."""
        if model == context.model:
            return context
        return attrs.evolve(
            context,
            model=model,
            provider=provider_of(model),
            counter=counter_for("model", model) if context.calibrate else context.counter,
            limit=min(context.limit, model.tokens_window - self.answer_tokens),
        )

    def _ask(
        self, prompt: Prompt, request: SummaryRequest, spent: _Spent
    ) -> Calls[StructuredSummary]:
        """One summary, with one more try when the first gave none."""
        failure: Exception | None = None
        for _ in range(TRIES_MAX):
            try:
                answer: object = yield partial(
                    self.client.messages.create,
                    **{
                        **self.options,
                        **prompt.request,
                        "model": spent.model.name,
                        "max_tokens": self.answer_tokens,
                    },
                )
            except Exception as error:  # noqa: BLE001 -- the edge to a foreign client: tried again, then told
                failure = error
                if "thinking" in str(error):  # a signature of another organisation, or too old
                    prompt = without_thinking(prompt)
                continue
            try:
                message = _message(answer)
                spent.add(message)
                return parse_answer(_text(message), request.plan, request.context)
            except RejectedAnswerError as error:
                failure = error
        failed = SummaryFailedError(
            f"no summary after {TRIES_MAX} tries: {type(failure).__name__}: {failure}"
        )
        failed.provenance = spent.provenance(request.plan.source_hash)
        raise failed from failure


def _message(answer: object) -> _Answer:
    """The message that a client returned.

    Raises:
        RejectedAnswerError: it is none; some proxies answer with pages.
    """
    try:
        return msgspec.convert(as_json(answer), _Answer)
    except (MisuseError, msgspec.ValidationError) as error:
        raise RejectedAnswerError(f"no message: {error}") from error


def _text(message: _Answer) -> str:
    """What the model answered.

    Raises:
        RejectedAnswerError: it refused, was cut off, or said nothing.
    """
    reason = message.stop_reason
    if reason in {"refusal", "max_tokens", "model_context_window_exceeded"}:
        raise RejectedAnswerError(f"stopped with {reason}")
    text = "\n".join(content.text or "" for content in message.content if content.type == "text")
    if not text.strip():
        raise RejectedAnswerError("an empty answer")
    return text
