"""The APIs of the fake provider; a new one is a module here and an entry in this table."""

from typing import Final

from render import Json
from timeline.fake_provider.wires._anthropic import MESSAGES as MESSAGES
from timeline.fake_provider.wires._chat import CHAT as CHAT
from timeline.fake_provider.wires._gemini import GEMINI as GEMINI
from timeline.fake_provider.wires._responses import RESPONSES as RESPONSES
from timeline.fake_provider.wires._wire import Outgoing as Outgoing
from timeline.fake_provider.wires._wire import Purpose as Purpose
from timeline.fake_provider.wires._wire import Wire as Wire
from timeline.fake_provider.wires._wire import blocks_of

WIRES: Final[tuple[Wire, ...]] = (MESSAGES, RESPONSES, CHAT, GEMINI)


def wire_of(request: Json) -> Wire:
    """The API of a request, recognized by its fields."""
    if "input" in request:
        return RESPONSES
    if "contents" in request:
        return GEMINI
    messages = blocks_of(request.get("messages"))
    opened = bool(messages) and messages[0].get("role") in {"developer", "system"}
    called = any(message.get("role") == "tool" or "tool_calls" in message for message in messages)
    offered = any(tool.get("type") == "function" for tool in blocks_of(request.get("tools")))
    is_chat = opened or called or offered or "max_tokens" not in request
    return CHAT if is_chat else MESSAGES
