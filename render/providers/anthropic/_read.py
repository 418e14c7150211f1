"""Checks of an Anthropic message: whether it is one, and whether all its content can be shown again."""

from collections.abc import Callable
from typing import Final

from blocks import BlockId, MisuseError, TurnId, in_words
from blocks.formats import Answer, Json
from render.providers._read import answer_in, check_name, check_text, response_json
from render.providers.anthropic._server_tools import REPLAYED

FIELD: Final = "content"
_OWN: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"}) | REPLAYED
_SENT: Final = frozenset({"tool_result", "image", "document", "search_result", "tool_reference"})
"""Types of content that occur only in requests."""


def answer_of(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of an Anthropic message (the SDK's object, or its JSON), and its usage.

    Raises:
        MisuseError: it is no such message.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    message = response_json(response, FIELD, type=("message",), role=("assistant",))
    for number, item in enumerate(message[FIELD]):
        _check(item, f"record(): {FIELD}.{number}", message.get("type"))
    return answer_in(message, FIELD, "anthropic", new_id, turn)


def _check(content: Json, where: str, message: object) -> None:
    """Refuse content that would be recorded but never shown.

    An unknown type is accepted in a response that calls itself a `message`, because it may be a new type of
    the provider; a notice says that it is not sent back.
    """
    kind: object = content.get("type")
    if not isinstance(kind, str) or kind in _SENT or (kind not in _OWN and message != "message"):
        raise MisuseError(f"{where}: no content of a response has the type {in_words(kind)}")
    if kind in ("text", "thinking"):
        check_text(content, kind, f"{where}: {kind}")
    for name in ("id", "name") if kind == "tool_use" else ():
        check_name(content, name, f"{where}: {kind}")
