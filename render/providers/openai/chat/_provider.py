"""Chat Completions as a provider."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, cast

import attrs

from blocks import BlockId, Part, TurnId, UsageRecorded
from blocks.formats import REASONING, usage_in
from render.policy._model import Limits, Model, Rates, ThinkingRule
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
from render.providers._rounds import assembled, behind
from render.providers.openai._count import definition_tokens
from render.providers.openai._flatten import segment_of, text_of_content
from render.providers.openai._kinds import OPERATORS
from render.providers.openai._limits import limits_of
from render.providers.openai._overflow import overflow_of
from render.providers.openai._parts import refusal
from render.providers.openai._prices import rates_of
from render.providers.openai._rounds import HEARD, cache_options, marked, with_mark
from render.providers.openai._tools import chat_tool
from render.providers.openai.chat._encode import SEPARATOR, Encoding
from render.providers.openai.chat._read import FIELD, answer_of, stop_of
from render.providers.openai.chat._rules import check_request
from render.view._provider_blocks import Json

PROMPT: Final = "system"
"""The role of the system prompt: OpenAI's newer models call it `developer` and accept both; many other
servers know only this one."""


@attrs.frozen
class OpenAIChat:
    """The Chat Completions API of OpenAI, as of November 2026, and of servers such as vLLM and llama.cpp;
    see `Provider`."""

    name: str = attrs.field(default="openai.chat", init=False)

    def limits(self, model: Model) -> Limits:
        """The same limits as in Responses; a model that gets its reasoning back refuses calls without it."""
        rules: frozenset[ThinkingRule] = frozenset({"paired"} if _returns_thinking(model) else ())
        return attrs.evolve(limits_of(model), thinking=rules)

    def encoder(self, counter: TokenCounter, model: Model, *, keep_thinking: bool) -> Encoder:
        """An encoder into messages."""
        listed = limits_of(model).marks_max > 0
        returns = _returns_thinking(model)
        encoding = Encoding(
            counter=counter, keep_thinking=keep_thinking, listed=listed, returns_thinking=returns
        )
        return Encoder((self.name, counter.name, keep_thinking, listed, returns), encoding.encode)

    def tool_tokens(self, tool: Json, counter: TokenCounter) -> int:
        """Tokens of a definition in the form in which the model is documented to see it."""
        return definition_tokens(definition_of(tool), counter)

    def prefix(
        self, system: Sequence[Json], tools: Sequence[Json], ttl: str | None
    ) -> tuple[list[Json], list[Json]]:
        """One message; its content is a string, unless it carries a mark."""
        texts = [text["text"] for text in system]
        content: str | list[Json] = SEPARATOR.join(texts)
        if texts and ttl:
            parts: list[Json] = [{"type": "text", "text": text} for text in texts]
            content = [*parts[:-1], with_mark(parts[-1])]
        message = {"role": PROMPT, "content": content}
        return [message] if texts else [], list(map(chat_tool, tools))

    def messages(
        self, pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
    ) -> list[Json]:
        """Messages, beginning with the user's; adjacent user messages are joined.

        Messages without a mark are the pieces' own objects and must not be changed.
        """
        messages = assembled(pieces, marks, marked)
        if not messages or messages[0]["role"] not in HEARD:
            messages.insert(0, {"role": "user", "content": MIDWAY})
        return appended(_joined(messages), texts)

    def request(
        self,
        system: Sequence[Json],
        tools: Sequence[Json],
        messages: Sequence[Json],
        cache_key: str = "",
    ) -> Json:
        """The keyword arguments `messages` and `tools`; cache options only with marks, because not every
        server accepts them."""
        request: Json = {"messages": [*system, *messages]}
        if tools:
            request["tools"] = list(tools)
        options = cache_options(request["messages"], cache_key)
        return request | options if "prompt_cache_options" in options else request

    def sections(
        self, request: Mapping[str, Any]
    ) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
        """The leading messages with the roles of a system prompt are the system part."""
        messages: list[Json] = request.get("messages") or []
        roles = (message.get("role") for message in messages)
        begin = next((n for n, role in enumerate(roles) if role not in OPERATORS), len(messages))
        return messages[:begin], request.get("tools") or (), messages[begin:]

    def rates(self, model: Model, prompt_tokens: int) -> Rates:
        """A cache write costs 1.25 times the input (30 minutes), a read 0.1 times; writes of older models
        cost nothing extra."""
        return rates_of(model, prompt_tokens)

    def contents(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> Iterator[tuple[str, Json]]:
        """Tools, then the contents of the messages: the user's parts, the assistant's texts and calls. The
        first user message, which may be a summary, is divided into paragraphs."""
        yield from (("tools", tool) for tool in tools)
        head = next((message for message in messages if message.get("role") == "user"), None)
        for message in (*system, *messages):
            role = str(message.get("role") or "")
            content: object = message.get("content")
            thoughts = ((name, message.get(name)) for name in REASONING)
            yield from ((role, {"type": name, "text": text}) for name, text in thoughts if text)
            if role == "tool":
                yield role, message
            elif isinstance(content, list):
                yield from ((role, part) for part in cast("list[Json]", content))
            elif isinstance(content, str) and content and message is head:
                yield from ((role, {"type": "text", "text": text}) for text in _pieces(content))
            elif isinstance(content, str) and content:
                yield role, message
            yield from ((role, call) for call in message.get("tool_calls") or ())

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
        """The text is added to the last message if that is the user's."""
        return {**request, "messages": appended(request["messages"], [text])}

    def quoting(self, texts: Sequence[str]) -> Json:
        """One user message."""
        return {"messages": appended([], texts)}

    def without_thinking(self, request: Json) -> Json:
        """The request itself: reasoning in this API has no signature that could be refused."""
        return request

    def refusal(self, part: Part, where: Where) -> str:
        """The reason that the rules would give."""
        return refusal(part, where)

    def read(self, response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
        """A response with one choice; a record of the model's reasoning is kept."""
        return answer_of(response, new_id, turn)

    def stop(self, response: object) -> str:
        """Derived from the choice's finish reason and its message."""
        return stop_of(response)

    def usage(self, response: object) -> UsageRecorded | None:
        """The response's `usage`, in which cached tokens count as input."""
        return usage_in_response(response, FIELD, usage_in)

    def overflow(self, status: int | None, kind: str, message: str) -> Overflow | None:
        """From the error's code; for other servers, from the text."""
        return overflow_of(status, kind, message)


def _returns_thinking(model: Model) -> bool:
    return "between_tools" in model.thinking_modes


def _pieces(content: str) -> Sequence[str]:
    """The joined texts of a content, separately, because the cache matches any prefix of it."""
    return [text for text in content.split(SEPARATOR) if text]


def appended(messages: list[Json], texts: Sequence[str]) -> list[Json]:
    """The messages with texts after all other content."""
    said: Json = {"role": "user", "content": SEPARATOR.join(texts)}
    return behind(messages, said, _as_one) if texts else messages


def _joined(messages: list[Json]) -> list[Json]:
    """The messages with adjacent user messages joined, for templates that require alternating roles; all
    other messages stay the same objects."""
    roles = "".join([message["role"][0] for message in messages])
    if "uu" not in roles:
        return messages
    runs = ((role, list(run)) for role, run in groupby(messages, itemgetter("role")))
    return [
        message
        for role, run in runs
        for message in ([_as_one(run)] if role == "user" and len(run) > 1 else run)
    ]


def _as_one(run: Sequence[Json]) -> Json:
    contents: list[Any] = [message["content"] for message in run]
    if all(isinstance(content, str) for content in contents):
        return {"role": "user", "content": SEPARATOR.join(contents)}
    parts = (_listed(content) for content in contents)
    return {"role": "user", "content": [part for content in parts for part in content]}


def _listed(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
