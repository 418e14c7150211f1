"""Counting tokens of parts: text by the model's factor over o200k, images by the model's rule.

The additional cost of a content, a call or a response is not documented; the constants are the tokens of
their field names.
"""

from json import dumps
from typing import Any, Final, cast

from blocks import DocumentPart, ImagePart, ProviderPart, leaves
from render.policy._provider import TokenCounter
from render.providers._definitions import Definition
from render.providers._media import DOCUMENT_TEXT
from render.providers.gemini._kinds import SIGNATURE, kind_of
from render.view._provider_blocks import Json

MESSAGE_TOKENS: Final = 3
CALL_TOKENS: Final = 8
RESULT_TOKENS: Final = 8
"""Tokens of an empty result."""
FUNCTION_TOKENS: Final = 8
_SIGNATURE_CHARACTERS: Final = 4
"""Characters per token of a signature, which is base64 of encrypted thoughts; how it is billed is not
documented."""


def part_tokens(part: Json, counter: TokenCounter) -> int:
    """Tokens of one part, without the envelope of its content."""
    sealed: object = part.get(SIGNATURE)
    extra = len(sealed) // _SIGNATURE_CHARACTERS if isinstance(sealed, str) else 0
    return extra + _tokens(part, counter)


def _tokens(part: Json, counter: TokenCounter) -> int:
    kind = kind_of(part)
    inner = _fields(part.get(kind))
    match kind:
        case "text":
            text: object = part["text"]
            return counter.count(text) if isinstance(text, str) else 0
        case "functionCall":
            name = str(inner.get("name") or "")
            return CALL_TOKENS + counter.count(name) + counter.count(compact(inner.get("args")))
        case "functionResponse":
            return RESULT_TOKENS + counter.count(leaves(inner.get("response")))
        case "inlineData" | "fileData":
            return counter.part(picture_of(inner))
        case _:
            return counter.part(ProviderPart(value=part))


def picture_of(inner: Json) -> ImagePart | DocumentPart | ProviderPart:
    """The image or file of a part, as a part of `blocks`."""
    media_type, data, url = (str(inner.get(name) or "") for name in ("mimeType", "data", "fileUri"))
    if media_type.startswith("image/"):
        return ImagePart(media_type=media_type, data=data, url=url)
    if media_type == DOCUMENT_TEXT or media_type.startswith(("audio/", "video/")):
        return ProviderPart(value=inner)
    return DocumentPart(data=data, url=url)


def definition_tokens(tool: Definition, counter: TokenCounter) -> int:
    """Tokens of one tool definition, as its JSON."""
    if tool.other:
        return counter.part(ProviderPart(value=tool.other))
    said = f"{tool.name}\n{tool.description}\n{compact(tool.schema)}"
    return FUNCTION_TOKENS + counter.count(said)


def compact(value: object) -> str:
    """Compact JSON."""
    return dumps(value or {}, ensure_ascii=False, separators=(",", ":"), default=str)


def _fields(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
