"""Counting tokens for both APIs: o200k tokens, and the additional tokens of messages, calls and tools.

Documented (cookbook, "How to count tokens with tiktoken") are 3 tokens per message, and the tokens of a
tool's definition, which is not sent to the model as JSON. The additional tokens of calls and results are
not documented; the constants are the tokens of their channel names.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

from blocks import DocumentPart, ImagePart, ProviderPart
from render.policy._provider import TokenCounter
from render.providers._definitions import Definition
from render.providers._media import DOCUMENT_TEXT
from render.view._provider_blocks import Json

MESSAGE_TOKENS: Final = 3
CALL_TOKENS: Final = 8
RESULT_TOKENS: Final = 8
"""Tokens of an empty result."""

FUNCTION_TOKENS: Final = 7
PROPERTY_TOKENS: Final = 3
CHOICE_TOKENS: Final = 3
"""Additional tokens of a function, of each of its properties, and of each value of an enumeration.
(Cookbook.)"""

_SEALED: Final = 650
_CHARACTERS_A_TOKEN: Final = 4
"""Reasoning is encrypted base64: `_SEALED` bytes are its envelope, the others are text. (Codex, the
provider's own agent, estimates it in this way.)"""


def content_tokens(content: Json, counter: TokenCounter) -> int:
    """Tokens of one content part, item or message, including its envelope."""
    match content.get("type") or content.get("role"):
        case "input_text" | "output_text" | "text" | "reasoning_content":
            return counter.count(_string(content.get("text")))
        case "message" | "assistant" | "user" | "system" | "developer":
            return counter.count(_string(content.get("content")))
        case "refusal":
            return counter.count(_string(content.get("refusal")))
        case "function_call" | "custom_tool_call" | "function" | "custom":
            return CALL_TOKENS + sum(map(counter.count, call_texts(content)))
        case "function_call_output" | "custom_tool_call_output" | "tool":
            output: object = content.get("output", content.get("content"))
            return RESULT_TOKENS + _output_tokens(output, counter)
        case "reasoning" if "text" in content:
            return counter.count(_string(content["text"]))
        case "reasoning" | "compaction":
            return _sealed_tokens(content)
        case "input_image" | "image_url" | "input_file" | "file":
            return counter.part(picture_of(content))
        case _:
            return counter.part(ProviderPart(value=content))


def call_texts(call: Json) -> tuple[str, str]:
    """The name of a call and its arguments as text, for either API."""
    found: object = call.get("function") or call.get("custom") or call
    known = cast("Json", found) if isinstance(found, dict) else {}
    arguments = known.get("arguments", known.get("input"))
    return _string(known.get("name")), _string(arguments)


def picture_of(content: Json) -> ImagePart | DocumentPart | ProviderPart:
    """The image or file of a content part, as a part of `blocks`."""
    if content.get("type") in ("input_image", "image_url"):
        found: object = content.get("image_url")
        url = _string(cast("Json", found).get("url") if isinstance(found, dict) else found)
        media_type, data = opened(url)
        return ImagePart(media_type=media_type or "image/png", data=data, url="" if data else url)
    found = content.get("file") or content
    known = cast("Json", found) if isinstance(found, dict) else {}
    media_type, data = opened(_string(known.get("file_data")))
    if not data:
        return ProviderPart(value=content)
    return DocumentPart(media_type=media_type, data=data)


def opened(url: str) -> tuple[str, str]:
    """The media type and the base64 of a `data:` URL; empty texts if it is not one."""
    head, comma, data = url.partition(";base64,")
    return (head.removeprefix("data:"), data) if comma and head.startswith("data:") else ("", "")


def definition_tokens(tool: Definition, counter: TokenCounter) -> int:
    """Tokens of one tool definition, as far as the form sent to the model is known."""
    if tool.other:
        return counter.part(ProviderPart(value=tool.other))
    named = counter.count(f"{tool.name}:{tool.description.removesuffix('.')}")
    return FUNCTION_TOKENS + named + _schema_tokens(tool.schema, counter)


def _schema_tokens(schema: Json, counter: TokenCounter) -> int:
    tokens, waiting = 0, [schema]
    while waiting:
        found = waiting.pop()
        for name, value in _pairs(found.get("properties")):
            inner = cast("Json", value) if isinstance(value, dict) else {}
            said = _string(inner.get("description")).removesuffix(".")
            tokens += PROPERTY_TOKENS + counter.count(f"{name}:{inner.get('type')}:{said}")
            waiting.append(inner)
        choices: object = found.get("enum")
        if isinstance(choices, list):
            each = (counter.count(str(choice)) for choice in cast("list[object]", choices))
            tokens += sum(CHOICE_TOKENS + count for count in each)
        waiting += (inner for inner in _nested(found) if isinstance(inner, dict))
    return tokens


def _nested(schema: Json) -> Sequence[Any]:
    found: list[Any] = [schema.get("items")]
    for name in ("anyOf", "oneOf", "allOf"):
        inner: object = schema.get(name)
        found += cast("list[Any]", inner) if isinstance(inner, list) else []
    return [*found, *(value for _, value in _pairs(schema.get("$defs")))]


def _pairs(value: object) -> Sequence[tuple[str, Any]]:
    return tuple(cast("Json", value).items()) if isinstance(value, dict) else ()


def _output_tokens(output: object, counter: TokenCounter) -> int:
    if isinstance(output, str):
        return counter.count(output)
    parts = cast("list[Json]", output) if isinstance(output, list) else []
    return sum(content_tokens(part, counter) for part in parts)


def _sealed_tokens(item: Json) -> int:
    sealed = len(_string(item.get("encrypted_content"))) * 3 // 4
    return max(sealed - _SEALED, 0) // _CHARACTERS_A_TOKEN


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def is_text(part: DocumentPart) -> bool:
    """Whether a document is plain text, not a file."""
    return part.media_type == DOCUMENT_TEXT and not part.url
