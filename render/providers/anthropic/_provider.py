"""The Messages API as a provider, and the assembly of pieces into one request."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final

import attrs

from blocks import BlockId, Part, TurnId, UsageRecorded
from blocks.formats import anthropic_usage_in, as_json
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
from render.providers._definitions import FREE_SCHEMA, definition_of, open_definitions
from render.providers._names import MIDWAY, tool_name
from render.providers._read import usage_in_response, wanted_of
from render.providers._rounds import assembled, behind, joined
from render.providers.anthropic._count import RESULT_TOKENS, tool_tokens
from render.providers.anthropic._encode import Encoding
from render.providers.anthropic._flatten import contents_of, segment_of, text_of_content
from render.providers.anthropic._kinds import (
    IMAGES_MAX,
    IMAGES_MAX_SMALL_WINDOW,
    SMALL_WINDOW_TOKENS,
    THINKING_TYPES,
)
from render.providers.anthropic._overflow import overflow_of
from render.providers.anthropic._parts import refusal
from render.providers.anthropic._prices import rates_of
from render.providers.anthropic._read import FIELD, answer_of
from render.providers.anthropic._rules import refusal_of, validate_request
from render.view._provider_blocks import Json

PICTURE_BYTES_MAX: Final = 24_000_000
"""Bytes of base64; the provider accepts 32 MB for the whole request."""
_SECTIONS: Final = ("system", "tools", "messages")
RUNS: Final = frozenset({"tool_use", "tool_result"})
OPERATOR: Final = "system"
"""The role of an operator's messages."""


@attrs.frozen
class Anthropic:
    """The Messages API of Anthropic, as of October 2026; see `Provider`."""

    name: str = attrs.field(default="anthropic", init=False)

    def limits(self, model: Model) -> Limits:
        """The limits of a model; one of the four cache marks is reserved for the end of system and tools."""
        small = model.tokens_window <= SMALL_WINDOW_TOKENS
        return Limits(
            result_tokens=RESULT_TOKENS,
            pictures_max=IMAGES_MAX_SMALL_WINDOW if small else IMAGES_MAX,
            picture_bytes_max=PICTURE_BYTES_MAX,
            marks_max=max(model.cache_marks - 1, 0),
            cache_tokens_min=model.cache_tokens_min,
            lookback=model.cache_lookback,
            runs=RUNS,
            unmarkable=THINKING_TYPES,
            thinking=_thinking_rules(model),
        )

    def encoder(self, counter: TokenCounter, model: Model, *, keep_thinking: bool) -> Encoder:
        """An encoder into messages of assistant and user."""
        leads = keep_thinking and "leads" in _thinking_rules(model)
        roles = frozenset({OPERATOR}) if model.system_messages else frozenset[str]()
        encoding = Encoding(
            counter=counter,
            refuses=refusal_of,
            keep_thinking=keep_thinking,
            thinking_leads=leads,
            roles=roles,
        )
        key = (self.name, counter.name, keep_thinking, leads, bool(roles))
        return Encoder(key, encoding.encode)

    def tool_tokens(self, tool: Json, counter: TokenCounter) -> int:
        """Tokens of its JSON; the text that explains all tools is counted by `Model.tool_overhead_tokens`."""
        return tool_tokens(own_tool(tool), counter)

    def prefix(
        self, system: Sequence[Json], tools: Sequence[Json], ttl: str | None
    ) -> tuple[list[Json], list[Json]]:
        """One cache mark, at the end of system or, without a system prompt, of the tools, which precede it
        in the cache."""
        system_blocks, tool_blocks = list(system), list(map(own_tool, tools))
        marked = system_blocks or tool_blocks
        if marked and ttl:
            marked[-1] = with_mark(marked[-1], ttl)
        return system_blocks, tool_blocks

    def messages(
        self, pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
    ) -> list[Json]:
        """Alternating messages, beginning with the user's; adjacent messages of one role are joined.

        Messages without a mark are the pieces' own objects and must not be changed.
        """
        messages = joined(_in_place(assembled(pieces, marks, _marked)), _as_one)
        if not messages or not _may_open(messages[0]):
            messages.insert(0, {"role": "user", "content": [{"type": "text", "text": MIDWAY}]})
        return appended(messages, texts)

    def request(
        self,
        system: Sequence[Json],
        tools: Sequence[Json],
        messages: Sequence[Json],
        cache_key: str = "",
    ) -> Json:
        """The keyword arguments `system`, `tools` and `messages`; this cache needs no key."""
        del cache_key
        request: Json = {"system": list(system)} if system else {}
        if tools:
            request["tools"] = list(tools)
        request["messages"] = list(messages)
        return request

    def sections(
        self, request: Mapping[str, Any]
    ) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
        """As they are; texts may be strings instead of text blocks."""
        system, tools, messages = (request.get(name) or () for name in _SECTIONS)
        return system, tools, messages

    def rates(self, model: Model, prompt_tokens: int) -> Rates:
        """A cache write costs 1.25 times the input (5 minutes) or 2 times (an hour), a read 0.1 times."""
        return rates_of(model, prompt_tokens)

    def contents(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> Iterator[tuple[str, Json]]:
        """Tools, then system, then messages; texts may be strings."""
        return contents_of(system, tools, messages)

    def segment(self, place: str, content: Json) -> Segment:
        """The segment of a block, in which its cache mark is not content."""
        return segment_of(place, content)

    def text(self, content: Json) -> str:
        """The text of a block; arguments are given as names and values, not as JSON."""
        return text_of_content(content)

    def open_tools(self, names: Iterable[str]) -> list[Json]:
        """One for each name as it is sent, in the order of names."""
        return open_definitions(map(tool_name, names))

    def violations(self, request: Mapping[str, Any], model: Model) -> tuple[Violation, ...]:
        """By the rules in `_rules`, which are independent of the encoder."""
        return validate_request(request, model)

    def extended(self, request: Json, text: str) -> Json:
        """The text is added to the last message if that is the user's."""
        return {**request, "messages": appended(request["messages"], [text])}

    def quoting(self, texts: Sequence[str]) -> Json:
        """One user message."""
        return {"messages": appended([], texts)}

    def without_thinking(self, request: Json) -> Json:
        """The documented remedy when a signature is refused."""
        messages: list[Json] = []
        for message in request["messages"]:
            kept = [c for c in message["content"] if c.get("type") not in THINKING_TYPES]
            messages.append(
                {**message, "content": kept or [{"type": "text", "text": "[thinking]"}]}
            )
        return {**request, "messages": messages}

    def refusal(self, part: Part, where: Where) -> str:
        """The reason that the rules would give."""
        return refusal(part, where, refusal_of)

    def read(self, response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
        """A message; blocks of server tools are kept whole."""
        return answer_of(response, new_id, turn)

    def stop(self, response: object) -> str:
        """The response's `stop_reason`."""
        return str(as_json(response, wanted_of(FIELD)).get("stop_reason") or "")

    def usage(self, response: object) -> UsageRecorded | None:
        """The response's `usage`, in which cached tokens are counted separately."""
        return usage_in_response(response, FIELD, anthropic_usage_in)

    def overflow(self, status: int | None, kind: str, message: str) -> Overflow | None:
        """From the text of the error, because the API has no code for it."""
        return overflow_of(status, kind, message)


def _thinking_rules(model: Model) -> frozenset[ThinkingRule]:
    """The rules for thinking; type `enabled` requires thinking before calls. The caller chooses the type."""
    rules: dict[ThinkingRule, bool] = {
        "whole": True,
        "leads": "enabled" in model.thinking_modes,
        "bound": model.thinking_bound,
    }
    return frozenset(rule for rule, holds in rules.items() if holds)


def own_tool(tool: Json) -> Json:
    """A definition in the shape of the Messages API; one that has it is returned unchanged."""
    if tool.get("type") not in ("function", "custom") and "function" not in tool:
        return tool
    found = definition_of(tool)
    if "input_schema" in tool or found.other:
        return tool
    said = {"description": found.description} if found.description else {}
    schema = FREE_SCHEMA if found.free else found.schema or {"type": "object"}
    return {"name": tool_name(found.name), **said, "input_schema": schema}


# Assembling pieces.


def appended(messages: list[Json], texts: Sequence[str]) -> list[Json]:
    """The messages with texts after all other content."""
    contents = [{"type": "text", "text": text} for text in texts]
    return behind(messages, {"role": "user", "content": contents}, _as_one) if texts else messages


def _in_place(messages: list[Json]) -> list[Json]:
    """The messages with each operator's message after the user's message beside it: the API accepts one only there,
    before the model's next message."""
    if not any(message["role"] == OPERATOR for message in messages):
        return messages
    runs = groupby(messages, key=lambda message: message["role"] == "assistant")
    by_rank = (sorted(run, key=lambda message: message["role"] == OPERATOR) for _, run in runs)
    return list(chain.from_iterable(by_rank))


def _may_open(message: Json) -> bool:
    """Whether a message may be first: a user's, or one that begins with the provider's own summary."""
    opening: str = message["content"][0].get("type", "")
    return message["role"] == "user" or opening == "compaction"


def _as_one(run: Sequence[Json]) -> Json:
    contents = chain.from_iterable(map(itemgetter("content"), run))
    return {"role": run[0]["role"], "content": list(contents)}


def _marked(piece: Piece, spots: frozenset[int]) -> Iterator[Json]:
    """The piece's messages with marks; messages without marks are the same objects."""
    spot = 0
    for message in piece.items:
        content: list[Json] = message["content"]
        places = range(spot, spot + len(content))
        spot += len(content)
        if spots.isdisjoint(places):
            yield message
        else:
            marked = [
                with_mark(part) if place in spots else part
                for place, part in zip(places, content, strict=True)
            ]
            yield {**message, "content": marked}


def with_mark(content: Json, ttl: str = "5m") -> Json:
    """The content block with a cache mark; 5 minutes is the provider's default and is left out."""
    control = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    return {**content, "cache_control": control}
