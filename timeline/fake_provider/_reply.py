"""The reply of the fake provider's model, cut where it exceeds the room for output."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs
from attrs.validators import ge, le

from render import Json

DELAY_SECONDS_MAX: Final = 30.0
"""Largest delay of an answer in seconds, whatever a script says."""


@attrs.frozen
class Call:
    """A tool call."""

    name: str
    input: Json = attrs.field(factory=dict[str, Any])
    id: str = ""
    """The id of the call; empty: the provider makes one."""


def _calls(calls: Iterable[Call]) -> tuple[Call, ...]:
    return tuple(calls)


def _blocks(blocks: Iterable[Json]) -> tuple[Json, ...]:
    return tuple(blocks)


@attrs.frozen(kw_only=True)
class Reply:
    """One response, in the order in which the model writes it: thinking, text, blocks, calls."""

    thinking: str | None = None
    """The thinking, which the provider signs; None: no thinking block."""
    text: str = ""
    blocks: tuple[Json, ...] = attrs.field(default=(), converter=_blocks)
    """Content blocks that are sent unchanged, for example of a server tool."""
    calls: tuple[Call, ...] = attrs.field(default=(), converter=_calls)
    stop_reason: str = ""
    """The stop reason; empty: `tool_use` if there are calls, otherwise `end_turn`."""
    delay_seconds: float = attrs.field(default=0.0, validator=[ge(0.0), le(DELAY_SECONDS_MAX)])
    """Seconds until the response begins."""

    @property
    def stopped(self) -> str:
        """The stop reason, with its default."""
        return self.stop_reason or ("tool_use" if self.calls else "end_turn")


Count: TypeAlias = Callable[[str], int]


@attrs.frozen(kw_only=True)
class Draft:
    """One content block, and the part of it that a stream sends piece by piece."""

    block: Json
    said: str = ""

    def cut(self, chars: int) -> "Draft":
        """The block with only the first characters of its streamed part; thinking then has no signature."""
        said = self.said[:chars]
        block = dict(self.block)
        match block["type"]:
            case "text":
                block["text"] = said
            case "thinking":
                block |= {"thinking": said, "signature": ""}
            case _:  # of a cut input, the complete fields
                block["input"] = dict(list(block["input"].items())[:-1])
        return Draft(block=block, said=said)


@attrs.frozen(kw_only=True)
class Answer:
    """The content of an answer, and the stop reason."""

    drafts: tuple[Draft, ...]
    stop_reason: str
    output_tokens: int


def drafts_of(
    reply: Reply, sign: Callable[[str], str], new_call_id: Callable[[], str]
) -> Iterator[Draft]:
    """The content blocks of a reply."""
    if reply.thinking is not None:
        signature = sign(reply.thinking)
        block: Json = {"type": "thinking", "thinking": reply.thinking, "signature": signature}
        yield Draft(block=block, said=reply.thinking)
    if reply.text:
        yield Draft(block={"type": "text", "text": reply.text}, said=reply.text)
    yield from (Draft(block=block) for block in reply.blocks)
    for call in reply.calls:
        yield _call(call, call.id or new_call_id())


def _call(call: Call, call_id: str) -> Draft:
    block = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.input}
    return Draft(
        block=block, said=json.dumps(call.input, ensure_ascii=False, separators=(",", ":"))
    )


def answer(reply: Reply, drafts: Sequence[Draft], rooms: dict[str, int], count: Count) -> Answer:
    """As much of a reply as fits; `rooms` has the tokens that are left, by the stop reason if they are used up."""
    reason = min(rooms, key=lambda name: rooms[name])
    kept, used = _fitting(drafts, rooms[reason], count)
    if used > rooms[reason]:
        return Answer(drafts=kept, stop_reason=reason, output_tokens=rooms[reason])
    if reply.stopped == "max_tokens" and kept and kept[-1].said:
        kept = (*kept[:-1], kept[-1].cut(len(kept[-1].said) // 2))
    return Answer(drafts=kept, stop_reason=reply.stopped, output_tokens=max(used, 1))


def _fitting(drafts: Sequence[Draft], room: int, count: Count) -> tuple[tuple[Draft, ...], int]:
    """The drafts that fit, the last one possibly cut, and the tokens of all drafts up to and including that one."""
    kept: list[Draft] = []
    used = 0
    for draft in drafts:
        tokens = count(draft.said or json.dumps(draft.block))
        if used + tokens > room:
            chars = len(draft.said) * (room - used) // tokens
            kept += [draft.cut(chars)] if chars else []
            return tuple(kept), used + tokens
        kept.append(draft)
        used += tokens
    return tuple(kept), used
