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
from blocks.formats._message import Answer
from render import Entry, Group, Json, Model, Place, Provider, Rates, TokenCounter, Where
from render.policy._context import Limits, Piece, Segment, Spot, ThinkingRule, Violation
from render.summary._text import format_summary
from render.view._view import Encoder

KEPT = 600
"""Seconds."""
LONG = 5_000
"""Tokens of a prompt from which on everything costs more."""
SPOKEN = {Place.RESPONSE: "assistant", Place.RESULT: "result"}


def empty_lines(request: Mapping[str, Any], model: Model | None) -> tuple[Violation, ...]:
    """Every request is fine that is made of lines."""
    spoken = enumerate(map(str, request["prompt"]))
    wrong = (n for n, line in spoken if not line.partition(":")[2].strip() and ":" in line)
    name = model.name if model else "any"
    return tuple(Violation("empty", f"{name}.{n}", "an empty line") for n in wrong)


def plain_text(
    name: str = "anthropic", thinking: frozenset[ThinkingRule] = frozenset()
) -> Provider:
    """`name` is the other's, whose place in the table it takes, unless told otherwise."""

    def limits(model: Model) -> Limits:
        return Limits(
            result_tokens=0,
            pictures_max=0,
            picture_bytes_max=0,
            marks_max=0,
            cache_tokens_min=model.cache_tokens_min,
            lookback=1,
            thinking=thinking,
        )

    return Provider(
        name=name,
        limits=limits,
        rates=rates,
        encoder=encoder,
        refusal=refusal,
        violations=empty_lines,
        prefix=prefix,
        messages=messages,
        request=request,
        extended=extended,
        without_thinking=without_thinking,
        sections=sections,
        contents=contents,
        segment=segment,
        text=text_of_line,
        tool_tokens=tool_tokens,
        open_tools=open_tools,
        read=read,
        stop=stop,
        usage=usage,
    )


def encoder(
    counter: TokenCounter, model: Model, *, keep_thinking: bool, **_: object
) -> Encoder[Piece]:
    del model, keep_thinking
    return Encoder(("plain", counter.name), lambda group: _encoded(group, counter))


def tool_tokens(tool: Json, counter: TokenCounter) -> int:
    return counter.count(str(tool["name"]))


def prefix(
    system: Sequence[Json], tools: Sequence[Json], ttl: str | None
) -> tuple[list[Json], list[Json]]:
    del ttl
    return list(system), list(tools)


def messages(
    pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
) -> list[Json]:
    assert not list(marks)
    lines = chain.from_iterable(piece.items for piece in pieces)
    return [*lines, *({"role": "user", "text": text} for text in texts)]


def request(
    system: Sequence[Json],
    tools: Sequence[Json],
    messages: Sequence[Json],
    cache_key: str = "",
) -> Json:
    del cache_key
    head = [*(block["text"] for block in system), *(f"tool {tool['name']}" for tool in tools)]
    return {"prompt": [*head, *(f"{line['role']}: {line['text']}" for line in messages)]}


def sections(request: Mapping[str, Any]) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
    return (), (), [{"role": "user", "text": text} for text in request["prompt"]]


def rates(model: Model, prompt_tokens: int) -> Rates:
    price = model.price_input * (3 if prompt_tokens > LONG else 1)
    return Rates(input=price, output=model.price_output, read=price / 2, writes={KEPT: price})


def contents(
    system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
) -> Iterator[tuple[str, Json]]:
    yield from (("system", text) for text in system)
    yield from (("tool", tool) for tool in tools)
    yield from ((line["role"], line) for line in messages)


def segment(place: str, content: Json) -> Segment:
    text = str(content["name"] if place == "tool" else content["text"])
    return Segment((place, text), "text", KEPT, lambda counter: counter.count(text))


def text_of_line(content: Json) -> str:
    return str(content["text"])


def open_tools(names: Iterable[str]) -> list[Json]:
    return [{"name": name} for name in sorted(set(names))]


def extended(request: Json, texts: Sequence[str]) -> Json:
    return {"prompt": [*request.get("prompt", ()), *(f"user: {text}" for text in texts)]}


def without_thinking(request: Json) -> Json:
    return request


def refusal(part: Part, where: Where) -> str:
    return "" if type(part).__name__ == "TextPart" else f"no {where} has anything but text"


def read(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    said = AssistantCompletion(id=new_id(), turn=turn, text=str(response))
    return Answer(id="", blocks=(said,), usage=usage(response))


def stop(response: object) -> str:
    assert response
    return "end_turn"


def usage(response: object) -> UsageRecorded | None:
    assert response
    return None


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
    answered = {entry.pair for entry in group.placed[Place.RESULT]}
    for entry in group.entries:
        block = entry.block
        texts = (format_summary(block),) if isinstance(block, RangeSummary) else (_text(entry),)
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
