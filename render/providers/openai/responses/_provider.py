"""The Responses API as a provider."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from blocks import BlockId, Part, TurnId, UsageRecorded
from blocks.formats import usage_in
from render.policy._model import Limits, Model, Rates
from render.policy._provider import (
    Answer,
    Encoder,
    Overflow,
    Piece,
    Segment,
    TokenCounter,
    Violation,
    Where,
)
from render.providers._definitions import definition_of, open_definitions
from render.providers._names import MIDWAY, tool_name
from render.providers._read import usage_in_response
from render.providers._rounds import assembled
from render.providers.openai._count import definition_tokens
from render.providers.openai._flatten import segment_of, text_of_content
from render.providers.openai._limits import limits_of
from render.providers.openai._overflow import overflow_of
from render.providers.openai._parts import refusal
from render.providers.openai._prices import rates_of
from render.providers.openai._rounds import cache_options, marked, with_mark
from render.providers.openai._tools import response_tool
from render.providers.openai.responses._encode import Encoding
from render.providers.openai.responses._read import FIELD, answer_of, stop_of
from render.providers.openai.responses._rules import check_request
from render.view._provider_blocks import Json

PROMPT: Final = "developer"
"""The role of the system prompt; `instructions` is not used, because it can carry no cache mark, and newer
models place it after the conversation."""


@attrs.frozen
class OpenAIResponses:
    """The Responses API of OpenAI, as of November 2026, with nothing stored on the server; see `Provider`."""

    name: str = attrs.field(default="openai.responses", init=False)

    def limits(self, model: Model) -> Limits:
        """Newer models cache at marks, and find an entry only at a mark that is still in the request;
        others cache every prefix."""
        return limits_of(model)

    def encoder(self, counter: TokenCounter, model: Model, *, keep_thinking: bool) -> Encoder:
        """An encoder into input items."""
        listed = limits_of(model).marks_max > 0
        encoding = Encoding(counter=counter, keep_thinking=keep_thinking, listed=listed)
        return Encoder((self.name, counter.name, keep_thinking, listed), encoding.encode)

    def tool_tokens(self, tool: Json, counter: TokenCounter) -> int:
        """Tokens of a definition in the form in which the model is documented to see it."""
        return definition_tokens(definition_of(tool), counter)

    def prefix(
        self, system: Sequence[Json], tools: Sequence[Json], ttl: str | None
    ) -> tuple[list[Json], list[Json]]:
        """One developer message, whose last part carries the mark; tools cannot carry one."""
        parts: list[Json] = [{"type": "input_text", "text": text["text"]} for text in system]
        if parts and ttl:
            parts[-1] = with_mark(parts[-1])
        message = {"type": "message", "role": PROMPT, "content": parts}
        return [message] if parts else [], list(map(response_tool, tools))

    def messages(
        self, pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
    ) -> list[Json]:
        """Input items, at least one; those without a mark are the pieces' own objects and must not be
        changed."""
        items = assembled(pieces, marks, marked) or [_said(MIDWAY)]
        return [*items, *map(_said, texts)]

    def request(
        self,
        system: Sequence[Json],
        tools: Sequence[Json],
        messages: Sequence[Json],
        cache_key: str = "",
    ) -> Json:
        """The keyword arguments `input` and `tools`, with `store=False`; if there are marks, the cache is
        written only at them."""
        request: Json = {"input": [*system, *messages], "store": False}
        if tools:
            request["tools"] = list(tools)
        return request | cache_options(request["input"], cache_key)

    def sections(
        self, request: Mapping[str, Any]
    ) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
        """Instructions come first; an input that is a string is a user message."""
        text, given = request.get("instructions"), request.get("input")
        items = [_said(given)] if isinstance(given, str) else given or []
        return [_said(text, role=PROMPT)] if text else [], request.get("tools") or (), items

    def rates(self, model: Model, prompt_tokens: int) -> Rates:
        """A cache write costs 1.25 times the input (30 minutes), a read 0.1 times; writes of older models
        cost nothing extra."""
        return rates_of(model, prompt_tokens)

    def contents(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> Iterator[tuple[str, Json]]:
        """Tools, then the items; messages are divided into their parts. A deferred tool is in no prompt until a search
        loads it, and then it is added at the end. (Provider documentation: tool search.)"""
        yield from (("tools", tool) for tool in tools if not tool.get("defer_loading"))
        for item in (*system, *messages):
            content: object = item.get("content")
            role = str(item.get("role") or "")
            if isinstance(content, list) and item.get("type", "message") == "message":
                yield from ((role, part) for part in cast("list[Json]", content))
            else:
                yield role, item

    def segment(self, place: str, content: Json) -> Segment:
        """The segment of a content, in which its cache mark is not content."""
        return segment_of(place, content)

    def text(self, content: Json) -> str:
        """The text of a content; arguments are given as names and values, not as JSON."""
        return text_of_content(content)

    def open_tools(self, names: Iterable[str]) -> list[Json]:
        """One for each name as it is sent, in the order of names."""
        return open_definitions(map(tool_name, names))

    def violations(self, request: Mapping[str, Any], model: Model) -> tuple[Violation, ...]:
        """By the rules in `_rules`, which are independent of the encoder."""
        return check_request(request, model)

    def extended(self, request: Json, text: str) -> Json:
        """The text is added as a message."""
        return {**request, "input": [*request["input"], _said(text)]}

    def quoting(self, texts: Sequence[str]) -> Json:
        """One user message."""
        return {"input": [_said(*texts)]}

    def without_thinking(self, request: Json) -> Json:
        """The request without reasoning items, to which no other item refers."""
        items = [item for item in request["input"] if item.get("type") != "reasoning"]
        return {**request, "input": items}

    def refusal(self, part: Part, where: Where) -> str:
        """The reason that the rules would give."""
        return refusal(part, where)

    def read(self, response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
        """A response; items of tools that the provider ran itself are kept whole."""
        return answer_of(response, new_id, turn)

    def stop(self, response: object) -> str:
        """Derived from the response's status and its items."""
        return stop_of(response)

    def usage(self, response: object) -> UsageRecorded | None:
        """The response's `usage`, in which cached tokens count as input."""
        return usage_in_response(response, FIELD, usage_in)

    def overflow(self, status: int | None, kind: str, message: str) -> Overflow | None:
        """From the error's code; for other servers, from the text."""
        return overflow_of(status, kind, message)


def _said(*texts: str, role: str = "user") -> Json:
    """A message, by default the user's."""
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": parts}
