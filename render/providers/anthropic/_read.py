"""A message of Anthropic's: is it one, of which nothing would be in the log and never be shown?"""

from collections.abc import Callable
from typing import Final

from blocks import BlockId, MisuseError, TurnId, in_words
from blocks.formats import Answer, Json
from render.providers._read import answer_in, check_name, check_text, response_json
from render.providers.anthropic._server_tools import REPLAYED

FIELD: Final = "content"
_OWN: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"}) | REPLAYED
_SENT: Final = frozenset({"tool_result", "image", "document", "search_result", "tool_reference"})
"""Kinds of content that only a request has."""


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
    """Refuse what would be in the log and never be shown.

    A kind that we do not know is kept in what calls itself a `message`: it is the provider's, of
    tomorrow; the request's notices tell that it is not sent back.
    """
    kind: object = content.get("type")
    if not isinstance(kind, str) or kind in _SENT or (kind not in _OWN and message != "message"):
        raise MisuseError(f"{where}: no content of a response has the type {in_words(kind)}")
    if kind in ("text", "thinking"):
        check_text(content, kind, f"{where}: {kind}")
    for name in ("id", "name") if kind == "tool_use" else ():
        check_name(content, name, f"{where}: {kind}")
