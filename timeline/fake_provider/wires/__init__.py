"""The APIs of the fake provider; a new one is a module here and an entry in this table."""

from typing import Final

from render import Json
from timeline.fake_provider._json import blocks_of
from timeline.fake_provider.wires._chat import Chat
from timeline.fake_provider.wires._gemini import Gemini
from timeline.fake_provider.wires._messages import Messages
from timeline.fake_provider.wires._responses import Responses
from timeline.fake_provider.wires._wire import Spoken as Spoken
from timeline.fake_provider.wires._wire import Wire as Wire

MESSAGES: Final = Messages()
RESPONSES: Final = Responses()
CHAT: Final = Chat()
GEMINI: Final = Gemini()
WIRES: Final[tuple[Wire, ...]] = (MESSAGES, RESPONSES, CHAT, GEMINI)


def asked(request: Json) -> Json:
    """A request of any API in the form of the Messages API."""
    return wire_of(request).asked(request)


def wire_of(request: Json) -> Wire:
    """The API of a request, recognized by its fields."""
    if "input" in request:
        return RESPONSES
    if "contents" in request:
        return GEMINI
    said = blocks_of(request.get("messages"))
    opened = bool(said) and said[0].get("role") in {"developer", "system"}
    called = any(message.get("role") == "tool" or "tool_calls" in message for message in said)
    offered = any(tool.get("type") == "function" for tool in blocks_of(request.get("tools")))
    is_chat = opened or called or offered or "max_tokens" not in request
    return CHAT if is_chat else MESSAGES
