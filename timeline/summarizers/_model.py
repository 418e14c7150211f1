"""A summariser that asks a model, through the client of its provider, sync or async.

It asks once, and once more when the first answer is no good; after that it gives up with
`SummaryFailedError`, and the timeline's policy decides what stands in.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

import attrs

from blocks import (
    AssistantCompletion,
    BlockId,
    CodecError,
    MisuseError,
    Provenance,
    StructuredSummary,
    TurnId,
    UsageRecorded,
)
from blocks.formats import Answer, as_json
from render import (
    PROMPT_VERSION,
    Context,
    Json,
    Model,
    Prompt,
    RejectedAnswerError,
    Summary,
    SummaryRoom,
    continued,
    merge_summaries,
    parse_answer,
    provider_of,
    show,
    summary_prompts,
    without_thinking,
)
from timeline._apis import api_of
from timeline._flow import Calls, adrive, drive
from timeline._models import model_named
from timeline.summarizers._summarizer import SummaryFailedError, SummaryRequest
from timeline.tokens import counter_for

TRIES_MAX: Final = 2
ANSWER_TOKENS: Final = 2400
"""Room for the answer: the two summaries, and the JSON around them."""
_HOUR: Final = 3_600
_STOPPED: Final = frozenset({"refusal", "max_tokens", "model_context_window_exceeded"})


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

    def add(self, answer: Answer, stop: str, response: object) -> None:
        usage, self.stop_reason = answer.usage, stop
        if usage:
            self.input += usage.input
            self.cached += usage.cache_read
            self.output += usage.output
            self.dollars += _dollars(usage, _kept_1h(response), self.model)

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
    written = {min(rates.writes): usage.cache_write - kept_1h} | (
        {_HOUR: kept_1h} if kept_1h else {}
    )
    return rates.cost(usage.uncached, usage.cache_read, written, usage.output) / 1_000_000


def _kept_1h(response: object) -> int:
    """Tokens that were written to Anthropic's cache for an hour, which costs more."""
    found: Json = as_json(response)
    for name in ("usage", "cache_creation"):
        inner: object = found.get(name)
        found = cast("Json", inner) if isinstance(inner, dict) else {}
    tokens: object = found.get("ephemeral_1h_input_tokens")
    return tokens if isinstance(tokens, int) else 0


@attrs.frozen(kw_only=True)
class ModelSummarizer:
    """Asks a model for the structured summary; with an async client it is for `AsyncTimeline`.

    Raises, when called:
        SummaryFailedError: two tries, and no usable answer.
    """

    client: Any
    """Of the provider of the model that is asked: an `anthropic.Anthropic`, an `openai.OpenAI`, or the async one."""
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
        api = api_of(self._model(request.context).provider)
        api.check(self.client)
        return (adrive if api.is_async(self.client) else drive)(self._calls(request))

    def _calls(self, request: SummaryRequest) -> Calls[Summary]:
        """The calls to make, one after the other; is sent their answers."""
        context = request.context
        model = self._model(context)
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

    def _model(self, context: Context) -> Model:
        return model_named(self.model) if self.model else context.model

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
        api, model = api_of(spent.model.provider), spent.model.name
        for _ in range(TRIES_MAX):
            try:
                arguments = api.arguments(prompt.request, model, self.answer_tokens, self.options)
                response: object = yield partial(api.create, self.client, arguments)
            except Exception as error:  # noqa: BLE001 -- the edge to a foreign client: tried again, then told
                failure = error
                if "thinking" in str(error):  # a signature of another organisation, or too old
                    prompt = without_thinking(prompt)
                continue
            try:
                return parse_answer(_text(response, spent), request.plan, request.context)
            except RejectedAnswerError as error:
                failure = error
        failed = SummaryFailedError(
            f"no summary after {TRIES_MAX} tries: {type(failure).__name__}: {failure}"
        )
        failed.provenance = spent.provenance(request.plan.source_hash)
        raise failed from failure


def _text(response: object, spent: _Spent) -> str:
    """What the model answered; what it cost is noted.

    Raises:
        RejectedAnswerError: it is no response (some proxies answer with pages), or the model refused, was cut
            off, or said nothing.
    """
    provider = provider_of(spent.model)
    try:
        answer, stop = (
            provider.read(response, lambda: BlockId(""), TurnId("")),
            provider.stop(response),
        )
    except (MisuseError, CodecError) as error:
        raise RejectedAnswerError(f"no message: {error}") from error
    spent.add(answer, stop, response)
    if stop in _STOPPED:
        raise RejectedAnswerError(f"stopped with {stop}")
    said = (block.text for block in answer.blocks if isinstance(block, AssistantCompletion))
    text = "\n".join(said)
    if not text.strip():
        raise RejectedAnswerError("an empty answer")
    return text


AnthropicSummarizer = ModelSummarizer
"""Its former name, when there was one provider."""
