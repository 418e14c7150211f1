"""Conversations that are nobody's in particular, and how each format writes them down."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
from hypothesis import strategies as st

from blocks.formats import Format

Json: TypeAlias = dict[str, Any]


@attrs.frozen
class User:
    """The user says something."""

    text: str


@attrs.frozen
class Model:
    """The model says something, asks for tools, or both."""

    text: str
    calls: tuple[str, ...] = ()


@attrs.frozen
class Tool:
    """A tool answers."""

    call: str
    text: str


LONG = "Look at each of the files again, please, and then tell me. " * 5
Line: TypeAlias = User | Model | Tool
Talk: TypeAlias = tuple[Line, ...]


def _chat(line: Line, _: str) -> Json:
    match line:
        case User(text):
            return {"role": "user", "content": text}
        case Tool(call, text):
            return {"role": "tool", "tool_call_id": call, "content": text}
        case Model(text, calls):
            asked = [
                {"id": c, "type": "function", "function": {"name": "bash", "arguments": "{}"}}
                for c in calls
            ]
            return {"role": "assistant", "content": text or None, "tool_calls": asked}


def _anthropic(line: Line, _: str) -> Json:
    match line:
        case User(text):
            return {"role": "user", "content": text}
        case Tool(call, text):
            content = [{"type": "tool_result", "tool_use_id": call, "content": text}]
            return {"role": "user", "content": content}
        case Model(text, calls):
            said = [{"type": "text", "text": text}] if text else []
            asked = [{"type": "tool_use", "id": c, "name": "bash", "input": {}} for c in calls]
            return {"role": "assistant", "content": [*said, *asked]}


def _langchain(line: Line, own: str) -> Json:
    match line:
        case User(text):
            return {"type": "human", "content": text, "id": own}
        case Tool(call, text):
            known = {"tool_call_id": call, "status": "success", "id": own}
            return {"type": "tool", "content": text, **known}
        case Model(text, calls):
            asked = [{"name": "bash", "args": {}, "id": c, "type": "tool_call"} for c in calls]
            return {"type": "ai", "content": text, "tool_calls": asked, "id": own}


def _pydantic_ai(line: Line, _: str) -> Json:
    match line:
        case User(text):
            parts: list[Json] = [{"part_kind": "user-prompt", "content": text}]
        case Tool(call, text):
            known = {"tool_call_id": call, "tool_name": "bash", "content": text}
            parts = [{"part_kind": "tool-return", **known}]
        case Model(text, calls):
            said = [{"part_kind": "text", "content": text}] if text else []
            asked = [
                {"part_kind": "tool-call", "tool_name": "bash", "args": {}, "tool_call_id": c}
                for c in calls
            ]
            return {"kind": "response", "parts": [*said, *asked]}
    return {"kind": "request", "parts": parts}


def _gemini(line: Line, _: str) -> Json:
    match line:
        case User(text):
            return {"role": "user", "parts": [{"text": text}]}
        case Tool(call, text):
            returned = {"id": call, "name": "bash", "response": {"output": text}}
            return {"role": "user", "parts": [{"functionResponse": returned}]}
        case Model(text, calls):
            said = [{"text": text}] if text else []
            asked = [{"functionCall": {"id": c, "name": "bash", "args": {}}} for c in calls]
            return {"role": "model", "parts": [*said, *asked]}


def _items(line: Line, own: str) -> list[Json]:
    match line:
        case User(text):
            return [{"role": "user", "content": text}]
        case Tool(call, text):
            return [{"type": "function_call_output", "call_id": call, "output": text}]
        case Model(text, calls):
            content = [{"type": "output_text", "text": text}]
            said = {"type": "message", "role": "assistant", "id": f"{own}m", "content": content}
            thought = {
                "type": "reasoning",
                "id": f"{own}r",
                "encrypted_content": "x",
                "summary": [],
            }
            asked = [
                {"type": "function_call", "call_id": c, "name": "bash", "arguments": "{}"}
                for c in calls
            ]
            return [thought, *([said] if text else []), *asked]


def _whole(message: Callable[[Line, str], Json]) -> Callable[[Line, str], list[Json]]:
    return lambda line, name: [message(line, f"m{name}")]


EXAMPLES: Mapping[Format, Callable[[Line, str], list[Json]]] = {
    "anthropic": _whole(_anthropic),
    "openai.chat": _whole(_chat),
    "openai.responses": lambda line, name: _items(line, f"i{name}"),
    "gemini": _whole(_gemini),
    "langchain": _whole(_langchain),
    "pydantic_ai": _whole(_pydantic_ai),
}
"""What a line of a conversation is in each format."""


def written(talk: Sequence[Line], name: Format) -> list[Json]:
    """The messages of a conversation."""
    return [item for n, line in enumerate(talk) for item in EXAMPLES[name](line, str(n))]


def responded(line: Model, name: Format, own: str) -> Json:
    """What the model said as the response that brought it."""
    message = written([line], name)
    match name:
        case "anthropic":
            return {"id": own, "type": "message", **message[0]}
        case "openai.chat":
            return {"id": own, "choices": [{"message": message[0], "finish_reason": "stop"}]}
        case "openai.responses":
            return {"id": own, "output": message}
        case "gemini":
            return {"responseId": own, "candidates": [{"content": message[0]}]}
        case "langchain":
            return {**message[0], "id": own}
        case _:
            return {**message[0], "provider_response_id": own}


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """Conversations: a few words that repeat, and ids of calls that do not."""
    words = st.sampled_from(["yes", "go on", "look again", LONG])
    lines: list[Line] = []
    calls = 0
    for _ in range(draw(st.integers(1, 6))):
        lines.append(User(draw(words)))
        for _ in range(draw(st.integers(0, 3))):
            asked = tuple(f"c{calls + n}" for n in range(draw(st.integers(1, 3))))
            calls += len(asked)
            lines.append(Model(draw(st.sampled_from(["", "let me see"])), asked))
            lines += [Tool(call, draw(words)) for call in asked]
        if draw(st.booleans()):
            lines.append(Model(draw(words)))
    return tuple(lines)


def told(talk: Sequence[Line]) -> list[tuple[str, ...]]:
    """What a log has to hold of it, line for line."""
    found: list[tuple[str, ...]] = []
    for line in talk:
        match line:
            case User(text):
                found.append(("user", text))
            case Tool(call, text):
                found.append(("result", call, text))
            case Model(text, calls):
                found += [("said", text)] if text else []
                found += [("call", call) for call in calls]
    return found
