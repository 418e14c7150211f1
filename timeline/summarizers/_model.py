"""A summariser that calls a model through its provider's client, sync or async.

It calls the model once, and a second time if the first answer is not usable. Then it gives up with a
`SummaryFailedError`, and the timeline's policy decides what is used instead.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final

import attrs
from attrs.validators import optional

from blocks import (
    AssistantCompletion,
    BlockId,
    CodecError,
    MisuseError,
    Provenance,
    StructuredSummary,
    TurnId,
    checked_calls,
    in_words,
)
from blocks.formats import Answer, as_json
from render import (
    PROMPT_VERSION,
    Asking,
    Context,
    Model,
    Overflow,
    Prompt,
    RejectedAnswerError,
    Summary,
    SummaryRoom,
    continued,
    parse_answer,
    provider_of,
    summary_prompts,
    without_thinking,
)
from timeline._apis import APIS, api_of, overflow_in
from timeline._arguments import COUNT, is_kind, valid
from timeline._flow_drivers import Calls, adrive, drive
from timeline._models import model_named
from timeline.billing import usage_price
from timeline.summarizers._summarizer import SummaryFailedError, SummaryRequest
from timeline.tokens import counter_for

log = logging.getLogger("foldline")

TRIES_MAX: Final = 2
FORMS_MAX: Final = 4
"""Forms in which a range is asked about, each shorter than the one before: as an extension of the live prompt, of what is
folded of it, in chunks, and in smaller ones."""
JSON_SHARE: Final = 1.5
"""Tokens of an answer for each token of the written part: an update may replace all of it, with the JSON around it."""
ANSWER_MIN: Final = 1000
"""The least tokens of an answer."""
_WINDOW: Final = "model_context_window_exceeded"
_STOPPED: Final = frozenset({"refusal", "max_tokens", _WINDOW})


@attrs.define
class _Spent:
    """The cost of the calls for one summary so far."""

    model: Model
    calls_max: float
    calls: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    dollars: float = 0.0
    """Dollars at the model's list prices."""
    stop_reason: str = ""

    def add(self, answer: Answer, stop: str, response: object) -> None:
        usage, self.stop_reason = answer.usage, stop
        if usage:
            self.input += usage.input
            self.cached += usage.cache_read
            self.output += usage.output
            self.dollars += usage_price(usage, self.model, as_json(response))

    def failed(self, request: SummaryRequest, failure: Exception | None) -> SummaryFailedError:
        error = SummaryFailedError(
            f"no summary after {self.calls} tries: {type(failure).__name__}: {failure}"
        )
        error.provenance = self.provenance(request.range.source_hash)
        return error

    def provenance(self, source_hash: str) -> Provenance:
        return Provenance(
            source_hash=source_hash,
            model=self.model.name,
            prompt=PROMPT_VERSION,
            stop_reason=self.stop_reason,
            calls=self.calls,
            input_tokens=self.input,
            cached_tokens=self.cached,
            output_tokens=self.output,
            cost_usd=self.dollars,
        )


class _TooLongError(Exception):
    """A prompt was too long for the provider, or left no room for the answer."""

    def __init__(self, prompt: Prompt, answer_tokens: int, overflow: Overflow) -> None:
        super().__init__(f"a prompt of {prompt.tokens} tokens is too long")
        self.window = prompt.tokens + answer_tokens - 1
        """Tokens that prompt and answer may have together, as far as is known; at least those of two answers."""
        if overflow.tokens and overflow.tokens_max:
            named = prompt.tokens * overflow.tokens_max // overflow.tokens
            self.window = max(min(self.window, named), 2 * answer_tokens)


_CLIENTS: Final = "the client of a provider, such as anthropic.Anthropic() or openai.OpenAI()"


@checked_calls
@attrs.frozen(kw_only=True)
class ModelSummarizer:
    """Calls a model for the structured summary; with an async client, use it in an `AsyncTimeline`.

    Raises, when called:
        SummaryFailedError: two tries gave no usable answer, or the policy leaves too few calls.
    """

    client: Any = attrs.field()
    """The client of the model's provider: an `anthropic.Anthropic`, an `openai.OpenAI`, or their async versions."""
    model: str = attrs.field(default="", validator=is_kind(str, "a model's name"))
    """Another model than the timeline's; it cannot read the timeline's cache. Empty: the timeline's model."""
    answer_tokens: int | None = attrs.field(
        default=None, validator=optional(valid(COUNT, "ModelSummarizer()"))
    )
    """Largest number of tokens of an answer; None: by the room of the written part."""
    options: Mapping[str, Any] = attrs.field(
        factory=dict[str, Any], validator=is_kind(Mapping, "a dict of arguments")
    )
    """Further arguments of every call. Pass those of the agent's own calls (thinking, effort) here, because the
    provider's cache depends on them, too."""

    @client.validator
    def _is_client(self, _: object, client: object) -> None:
        if not any(api.accepts(client) for api in APIS.values()):
            raise MisuseError(f"client must be {_CLIENTS}, not {in_words(client)}")

    @property
    def name(self) -> str:
        """The name under which prepared summaries are kept."""
        return self.model or "timeline"

    def __call__(self, request: SummaryRequest, /) -> Any:
        """A `Summary`, or with an async client an awaitable of one."""
        api = api_of(self._model(request.context).provider)
        api.check(self.client)
        return (adrive if api.is_async(self.client) else drive)(self._calls(request))

    def _calls(self, request: SummaryRequest) -> Calls[Summary]:
        """Yields the calls to be made, one after the other, and receives their answers."""
        context = request.context
        model = self._model(context)
        spent = _Spent(model, inf if request.calls_max is None else request.calls_max)
        answer_tokens = self._answer_tokens(context)
        asking = Asking.of(request.view, request.range, context)
        model = attrs.evolve(model, tokens_window=self._window(request, model))
        failure: Exception | None = None
        for _ in range(FORMS_MAX):
            reading = self._reading(context, model, answer_tokens)
            prompts = summary_prompts(asking, request.view, reading, answer_tokens)
            try:
                return (yield from self._summary(prompts, request, spent))
            except _TooLongError as error:
                failure = error
                model = attrs.evolve(model, tokens_window=error.window)
        raise spent.failed(request, failure)

    def _summary(
        self, prompts: Sequence[Prompt], request: SummaryRequest, spent: _Spent
    ) -> Calls[Summary]:
        merged: StructuredSummary | None = None
        left = spent.calls_max - spent.calls
        if len(prompts) > left:
            raise SummaryFailedError(
                f"it takes {len(prompts)} calls, and `summaries_max` leaves {left}"
            )
        for prompt in prompts:
            following = continued(prompt, merged) if merged else prompt
            merged = yield from self._ask(following, merged, request, spent)
        if merged is None:
            raise SummaryFailedError("nothing to summarise")
        return Summary(summary=merged, provenance=spent.provenance(request.range.source_hash))

    def _model(self, context: Context) -> Model:
        return model_named(self.model) if self.model else context.model

    def _window(self, request: SummaryRequest, model: Model) -> int:
        """The window of the model: what is known of it; otherwise what the timeline was given; or what the provider named
        when it refused a prompt."""
        context = request.context
        calibration = request.view.state.calibrations.get(model.name)
        windows = [model.tokens_window]
        if model == context.model and not model.known:
            windows.append(context.limit + context.output_tokens)
        if calibration and calibration.limit:
            windows.append(calibration.limit)
        return min(windows)

    def _answer_tokens(self, context: Context) -> int:
        room = SummaryRoom.of(context)
        needed = max(int(JSON_SHARE * (room.history + room.prefix)), ANSWER_MIN)
        return needed if self.answer_tokens is None else self.answer_tokens

    def _reading(self, context: Context, model: Model, answer_tokens: int) -> Context:
        """The context for the prompt; with `model=`, that of the other model, which has its own window, tokenizer
        and rules."""
        if model == context.model:
            return context
        return attrs.evolve(
            context,
            model=model,
            provider=provider_of(model),
            counter=counter_for("model", model) if context.calibrate else context.counter,
            limit=min(context.limit, model.tokens_window - answer_tokens),
        )

    def _ask(
        self,
        prompt: Prompt,
        so_far: StructuredSummary | None,
        request: SummaryRequest,
        spent: _Spent,
    ) -> Calls[StructuredSummary]:
        """The written part after one answer; if the first try fails, there is a second one, if the policy leaves a call
        for it."""
        limit = self._answer_tokens(request.context)
        failure: Exception | None = None
        api, model = api_of(spent.model.provider), spent.model.name
        tries = 0
        while tries < TRIES_MAX and spent.calls < spent.calls_max:
            tries, spent.calls = tries + 1, spent.calls + 1
            try:
                arguments = api.arguments(prompt.request, model, limit, self.options)
                response: object = yield partial(api.create, self.client, arguments)
            except Exception as error:  # clients share no class of errors: tried again, then raised
                failure = error
                if overflow := overflow_in(error):
                    raise _TooLongError(prompt, limit, overflow) from error
                if "thinking" in str(error):  # a signature of another organisation, or too old
                    prompt = without_thinking(prompt)
                continue
            try:
                summary, notices = parse_answer(_text(response, spent), prompt.asking, so_far)
            except RejectedAnswerError as error:
                failure = error
                if spent.stop_reason == _WINDOW:
                    raise _TooLongError(prompt, limit, Overflow()) from error
                continue
            for notice in notices:
                log.info("a part of a model's update of a summary is ignored: %s", notice)
            return summary
        raise spent.failed(request, failure) from failure


def _text(response: object, spent: _Spent) -> str:
    """The text of the model's answer; its cost is added to `spent`.

    Raises:
        RejectedAnswerError: it is not a response (some proxies answer with HTML pages), or the model refused, was
            cut off, or said nothing.
    """
    provider = provider_of(spent.model)
    try:
        answer = provider.read(response, lambda: BlockId(""), TurnId(""))
        stop = provider.stop(response)
    except (MisuseError, CodecError) as error:
        raise RejectedAnswerError(f"no message: {error}") from error
    spent.add(answer, stop, response)
    if stop in _STOPPED:
        raise RejectedAnswerError(f"stopped with {stop}")
    texts = (block.text for block in answer.blocks if isinstance(block, AssistantCompletion))
    text = "\n".join(texts)
    if not text.strip():
        raise RejectedAnswerError("an empty answer")
    return text
