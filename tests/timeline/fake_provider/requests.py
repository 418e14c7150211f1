"""Requests that the practice tests send."""

from typing import Any

MODEL = "claude-sonnet-5-5"
OLD = "claude-sonnet-4"
UNBOUND = "claude-opus-4-8"
TOOL: dict[str, Any] = {
    "name": "read_file",
    "description": "Read a file.",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def result(call_id: str, text: str = "done") -> dict[str, Any]:
    content = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {"role": "user", "content": [content]}


def request(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "model": MODEL,
        "max_tokens": 1_000,
        "messages": list(messages) or [user("Hello.")],
        **more,
    }
