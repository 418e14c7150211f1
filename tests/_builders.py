"""Fakes and short names that the engine's tests share: blocks, logs, contexts, timelines."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    CallId,
    DocumentPart,
    Event,
    EventId,
    ImagePart,
    Note,
    OpaqueBlock,
    Part,
    Plan,
    ProviderPart,
    Recorded,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
)
from persistence import EventStore, MemoryStore
from render import Context, Model, Policy, Rendered, View, fold, provider_of, show
from timeline import Options, Timeline

SIGNED = {"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"}


@attrs.frozen
class CharCounter:
    """A token is four characters; a part that is no text has a hundred."""

    name: str = "chars/4"

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4

    def part(self, part: ImagePart | DocumentPart | ProviderPart) -> int:  # noqa: ARG002 -- flat
        return 100


@attrs.define
class Clock:
    """Stands still until it is moved."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@attrs.define
class Ids:
    """Ids 1, 2, 3, ... with a prefix."""

    prefix: str = ""
    last: int = 0

    def __call__(self) -> str:
        self.last += 1
        return f"{self.prefix}{self.last}"


LOOSE = Model(name="loose", cache_tokens_min=0, thinking_bound=False)
"""Caches any prefix, and does not bind thinking to what precedes it."""
BOUND = attrs.evolve(LOOSE, name="bound", thinking_bound=True)


STEADY = Policy(
    trigger_ratio=0.9,
    target_ratio=0.4,
    keep_ratio=0.2,
    page_tokens=8_000,
    working_ratio=0.05,
    user_ratio=0.1,
    clip_ratio=0.2,
    cold_ratio=0.5,
)
"""Numbers that no measurement tunes, so that examples stay what they are."""


def steady(**changes: Any) -> Policy:
    return attrs.evolve(STEADY, **changes)


def context(**changes: Any) -> Context:
    """A context with a large window in which each request is checked, unless told otherwise."""
    given = {
        "policy": STEADY,
        "model": LOOSE,
        "provider": provider_of(LOOSE),
        "counter": CharCounter(),
        "now": 1_000_000.0,
        "limit": 100_000,
        "validate": True,
        **changes,
    }
    return Context(**given)


# Blocks.

_ids = Ids("b")


_B = TypeVar("_B")


def _new(kind: Callable[..., _B], turn: str, **fields: Any) -> _B:
    return kind(id=BlockId(_ids()), turn=TurnId(turn), **fields)


def header(turn: str = "t1") -> TurnHeader:
    return _new(TurnHeader, turn)


def prompt(text: str, turn: str = "t1", *parts: Part) -> UserPrompt:
    return _new(UserPrompt, turn, text=text, parts=parts)


def steer(text: str, turn: str = "t1") -> UserSteer:
    return _new(UserSteer, turn, text=text)


def followup(text: str, turn: str = "t1") -> UserFollowup:
    return _new(UserFollowup, turn, text=text)


def attachment(name: str, text: str, turn: str = "t1", standing: str = "") -> UserAttachment:
    part = TextPart(text=text)
    return _new(UserAttachment, turn, name=name, part=part, standing=standing)


def said(text: str, turn: str = "t1", response: str = "") -> AssistantCompletion:
    return _new(AssistantCompletion, turn, text=text, response=response)


def thought(
    turn: str = "t1", response: str = "", provider: dict[str, Any] | None = None
) -> AssistantThinking:
    block: AssistantThinking = _new(
        AssistantThinking, turn, response=response, provider=provider or dict(SIGNED)
    )
    return block


def call(
    call_id: str, turn: str = "t1", response: str = "", name: str = "bash", **arguments: Any
) -> ToolCall:
    block: ToolCall = _new(
        ToolCall, turn, call_id=CallId(call_id), name=name, input=arguments, response=response
    )
    return block


def result(call_id: str, text: str = "ok", turn: str = "t1", **fields: Any) -> ToolResult:
    parts = (TextPart(text=text),)
    block: ToolResult = _new(
        ToolResult, turn, call_id=CallId(call_id), **{"parts": parts, **fields}
    )
    return block


def note(text: str, turn: str = "t1") -> Note:
    return _new(Note, turn, text=text)


def plan(text: str, turn: str = "t1") -> Plan:
    return _new(Plan, turn, text=text)


def notice(text: str, turn: str = "t1") -> SystemMessage:
    return _new(SystemMessage, turn, text=text)


def opaque(tag: str, turn: str = "t1", **fields: Any) -> OpaqueBlock:
    return OpaqueBlock(tag, {"id": _ids(), "turn": turn, **fields})


# Logs and views.


def appended(block: Block, at: float = 1_000_000.0) -> BlockAppended:
    return BlockAppended(id=EventId(f"e.{block.id}"), at=at, block=block)


def log(*items: Block | Event) -> list[Recorded]:
    """A log: blocks are wrapped in the events that append them."""
    events = (appended(item) if isinstance(item, Block | OpaqueBlock) else item for item in items)
    return list(enumerate(events, 1))


def view_of(*items: Block | Event) -> View:
    return fold(View(), log(*items))


def grown(view: View, *blocks: Block) -> View:
    """The view once its decisions are committed and more blocks have come."""
    events = [(version, appended(b)) for version, b in enumerate(blocks, view.version + 1)]
    return fold(view.settled(), events)


def valid(given: Context, *items: Block | Event, **changes: Any) -> Rendered:
    """What these blocks are shown as, which the provider takes."""
    rendered = shown(view_of(*items), attrs.evolve(given, **changes))
    assert rendered.violations == ()
    return rendered


def deep(levels: int) -> Any:
    """An object in an object, and so on."""
    found: Any = {}
    for _ in range(levels):
        found = {"x": found}
    return found


def shown(view: View, with_context: Context | None = None) -> Rendered:
    """The request of a view, decided nothing."""
    return show(view, with_context or context())


def request_bytes(rendered: Rendered) -> bytes:
    """The request as the provider would get it."""
    return json.dumps(rendered.anthropic(max_tokens=1000), ensure_ascii=False).encode()


def flat(rendered: Rendered) -> list[tuple[str, str]]:
    """Every content block of the messages with its role, cache marks aside."""
    return [
        (message["role"], json.dumps(unmarked(content), sort_keys=True))
        for message in rendered.messages
        for content in message["content"]
    ]


def unmarked(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != "cache_control"}


def quotations(text: str, tag: str) -> list[tuple[str, str]]:
    """The attributes and the text of each quotation in this tag, the outer ones only."""
    form = rf"<{tag}-(?P<mark>\w+)(?P<given>[^>\n]*)>\n(?P<text>.*?)\n</{tag}-(?P=mark)>"
    found = re.finditer(form, text, re.DOTALL)
    return [(each["given"].strip(), each["text"]) for each in found]


def text_in(rendered: Rendered) -> str:
    """All text of the messages, as the model reads it, one content block after the other."""
    pieces: list[str] = []
    for message in rendered.messages:
        for content in message["content"]:
            pieces += _texts(content)
    return "\n".join(pieces)


def _texts(content: dict[str, Any]) -> Iterable[str]:
    inner = content.get("content")
    if isinstance(inner, list):
        for part in inner:
            yield from _texts(part)
    elif isinstance(inner, str):
        yield inner
    if "text" in content:
        yield str(content["text"])
    if "input" in content:
        yield json.dumps(content["input"], ensure_ascii=False)
    if "thinking" in content:
        yield str(content["thinking"])


# Timelines.


def open_timeline(
    name: str = "talk",
    *,
    store: EventStore | Path | str | None = None,
    clock: Clock | None = None,
    **more: Any,
) -> Timeline:
    """A timeline with a fake clock, counted ids and the fast counter, which checks each request."""
    options: Options = {
        "store": store or MemoryStore(),
        "clock": clock or Clock(),
        "counter": CharCounter(),
        "model": LOOSE,
        "window": 100_000,
        "policy": STEADY,
        "validate": True,
        **more,  # type: ignore[typeddict-item]
    }
    return Timeline.open(name, **options)


def blocks_in(timeline: Timeline) -> list[tuple[int, Block]]:
    """Every block that was ever appended, with its version."""
    return [(v, e.block) for v, e in timeline.events() if isinstance(e, BlockAppended)]


def events_of(timeline: Timeline, kind: type[Any]) -> list[Any]:
    return [event for _, event in timeline.events() if isinstance(event, kind)]


def response(*contents: dict[str, Any], id: str = "", **fields: Any) -> dict[str, Any]:  # noqa: A002 -- the provider's name
    """A model's answer, as the provider's JSON."""
    return {"id": id, "content": list(contents), "stop_reason": "end_turn", **fields}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def tool_use(call_id: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def roles(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [str(message["role"]) for message in messages]
