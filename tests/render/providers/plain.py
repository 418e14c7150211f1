"""A provider of nothing but text, without cache marks or rules for thinking: what the seam has to allow.

It caches by itself what two requests have in common, for ten minutes, and charges a read at half the price.

user: Which files are there?
assistant: I will look.
call toolu_1: bash {"command": "ls"}
result toolu_1: README.md
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from json import dumps
from typing import Any

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    BlockId,
    Part,
    RangeSummary,
    ToolCall,
    ToolResult,
    TurnId,
    UsageRecorded,
    text_of,
)
from render import (
    Answer,
    Encoder,
    Entry,
    Group,
    Json,
    Limits,
    Model,
    Overflow,
    Piece,
    Place,
    Rates,
    Segment,
    Spot,
    ThinkingRule,
    TokenCounter,
    Violation,
    Where,
    summary_texts,
)

KEPT = 600
"""Seconds."""
LONG = 5_000
"""Tokens of a prompt from which on everything costs more."""
SPOKEN = {Place.RESPONSE: "assistant", Place.RESULT: "result"}


@attrs.frozen
class PlainText:
    name: str = "anthropic"
    """Of the other, whose place in the table it takes, unless told otherwise."""
    thinking: frozenset[ThinkingRule] = frozenset()

    def limits(self, model: Model) -> Limits:
        return Limits(
            result_tokens=0,
            pictures_max=0,
            picture_bytes_max=0,
            marks_max=0,
            cache_tokens_min=model.cache_tokens_min,
            lookback=1,
            thinking=self.thinking,
        )

    def encoder(self, counter: TokenCounter, model: Model, *, keep_thinking: bool) -> Encoder:
        del model, keep_thinking
        return Encoder(("plain", counter.name), lambda group: _encoded(group, counter))

    def tool_tokens(self, tool: Json, counter: TokenCounter) -> int:
        return counter.count(str(tool["name"]))

    def prefix(
        self, system: Sequence[Json], tools: Sequence[Json], ttl: str | None
    ) -> tuple[list[Json], list[Json]]:
        del ttl
        return list(system), list(tools)

    def messages(
        self, pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
    ) -> list[Json]:
        assert not list(marks)
        lines = chain.from_iterable(piece.items for piece in pieces)
        return [*lines, *({"role": "user", "text": text} for text in texts)]

    def request(
        self,
        system: Sequence[Json],
        tools: Sequence[Json],
        messages: Sequence[Json],
        cache_key: str = "",
    ) -> Json:
        del cache_key
        head = [*(block["text"] for block in system), *(f"tool {tool['name']}" for tool in tools)]
        return {"prompt": [*head, *(f"{line['role']}: {line['text']}" for line in messages)]}

    def sections(
        self, request: Mapping[str, Any]
    ) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
        return (), (), [{"role": "user", "text": text} for text in request["prompt"]]

    def rates(self, model: Model, prompt_tokens: int) -> Rates:
        price = model.price_input * (3 if prompt_tokens > LONG else 1)
        return Rates(input=price, output=model.price_output, read=price / 2, writes={KEPT: price})

    def contents(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> Iterator[tuple[str, Json]]:
        yield from (("system", text) for text in system)
        yield from (("tool", tool) for tool in tools)
        yield from ((line["role"], line) for line in messages)

    def segment(self, place: str, content: Json) -> Segment:
        text = str(content["name"] if place == "tool" else content["text"])
        return Segment((place, text), "text", KEPT, lambda counter: counter.count(text))

    def text(self, content: Json) -> str:
        return str(content["text"])

    def open_tools(self, names: Iterable[str]) -> list[Json]:
        return [{"name": name} for name in sorted(set(names))]

    def violations(self, request: Mapping[str, Any], model: Model) -> tuple[Violation, ...]:
        """Every request is fine that is made of lines."""
        spoken = enumerate(map(str, request["prompt"]))
        wrong = (n for n, line in spoken if not line.partition(":")[2].strip() and ":" in line)
        return tuple(Violation("empty", f"{model.name}.{n}", "an empty line") for n in wrong)

    def extended(self, request: Json, text: str) -> Json:
        return {"prompt": [*request["prompt"], f"user: {text}"]}

    def quoting(self, texts: Sequence[str]) -> Json:
        return {"prompt": list(texts)}

    def without_thinking(self, request: Json) -> Json:
        return request

    def refusal(self, part: Part, where: Where) -> str:
        return "" if type(part).__name__ == "TextPart" else f"no {where} has anything but text"

    def read(self, response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
        said = AssistantCompletion(id=new_id(), turn=turn, text=str(response))
        return Answer(id="", blocks=(said,), usage=self.usage(response))

    def stop(self, response: object) -> str:
        assert response
        return "end_turn"

    def usage(self, response: object) -> UsageRecorded | None:
        assert response
        return None

    def overflow(self, status: int | None, kind: str, message: str) -> Overflow | None:
        return Overflow() if "too much text" in (status, kind, message) else None


def _encoded(group: Group, counter: TokenCounter) -> Piece:
    said = list(_lines(group))
    spots = tuple(
        Spot(version=v, role=line["role"], tokens=counter.count(line["text"]), kind="text")
        for v, line in said
    )
    lines = tuple(line for _, line in said)
    return Piece(
        contents=lines,
        items=lines,
        spots=spots,
        tokens=sum(spot.tokens for spot in spots),
        digest=sha256(dumps(lines).encode()).digest(),
    )


def _lines(group: Group) -> Iterator[tuple[int, Json]]:
    answered = {entry.pair for entry in group.placed(Place.RESULT)}
    for entry in group.entries:
        block = entry.block
        texts = summary_texts(block) if isinstance(block, RangeSummary) else (_text(entry),)
        for text in texts:
            if text.strip() and entry.place not in (Place.SILENT, Place.ORPHAN):
                yield entry.version, {"role": SPOKEN.get(entry.place, "user"), "text": text}
        if isinstance(entry.block, ToolCall) and entry.pair not in answered:
            yield entry.version, {"role": "result", "text": f"{entry.pair}: interrupted"}


def _text(entry: Entry) -> str:
    match entry.block:
        case AssistantThinking():
            return ""
        case ToolCall(name=name, input=given):
            return f"call {entry.pair}: {name} {dumps(given)}"
        case ToolResult() as block:
            return f"{entry.pair}: {text_of(block)}"
        case block:
            return text_of(block)
