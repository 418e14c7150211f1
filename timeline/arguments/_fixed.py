"""System prompt and tools as callers pass them to each render."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec

from blocks import MisuseError, did_you_mean, fault_in, in_words
from render import Fixed, Json

System: TypeAlias = str | Sequence[Json] | None
"""A text, text blocks (`text`, or OpenAI's `input_text`), or messages of the role system or developer."""
Tools: TypeAlias = Sequence[Json] | None
"""Tool definitions in the form of the Messages API, or of OpenAI's Responses or Chat Completions."""

_SPEAKERS: Final = ("system", "developer")
_TEXT_TYPES: Final = ("text", "input_text")
_TOOL_FIELDS: Final = ("name", "description", "input_schema", "parameters", "type", "cache_control")


def fixed_content(system: System, tools: Tools) -> bytes:
    """System prompt and tools as JSON, without cache marks, because the engine sets its own.

    Raises:
        MisuseError: one of them is not valid; the message says which and why.
    """
    texts = [plain(block) for block in _texts(system) if block["text"].strip()]
    definitions = [plain(tool) for tool in _definitions(tools)]
    try:
        return msgspec.json.encode([texts, definitions])
    except (ValueError, TypeError, RecursionError) as error:
        fault = fault_in({"system": texts, "tools": definitions}) or str(error)
        raise MisuseError(f"render(): system and tools are sent as JSON, but {fault}") from error


def fixed_of(content: bytes) -> Fixed:
    """System prompt and tools, read back from `fixed_content`.

    Raises:
        MisuseError: the JSON is nested too deeply.
    """
    try:
        system, tools = msgspec.json.decode(content)
    except RecursionError as error:
        raise MisuseError("render(): system and tools are nested too deeply") from error
    if fault := fault_in({"system": system, "tools": tools}):
        raise MisuseError(f"render(): system and tools are sent as JSON, but {fault}")
    return Fixed(tuple(system), tuple(tools))


def plain(block: Json) -> Json:
    """The block without its cache mark."""
    return {key: value for key, value in block.items() if key != "cache_control"}


def _texts(system: System) -> Sequence[Json]:
    if isinstance(system, str):
        return ({"type": "text", "text": system},)
    listed = _listed(system, "system", "a text, or a list of text blocks")
    return [text for n, block in enumerate(listed) for text in _texts_in(block, f"system.{n}")]


def _texts_in(block: object, where: str) -> Sequence[Json]:
    """The text blocks, in the form of the Messages API, of a text block or a message."""
    if not isinstance(block, Mapping):
        raise MisuseError(f"render(): {where} is a text block, not {in_words(block)}")
    content = cast("Json", block)
    if content.get("role") in _SPEAKERS:
        inner: object = content.get("content")
        if isinstance(inner, str):
            return ({"type": "text", "text": inner},)
        parts = _listed(inner, f"{where}.content", "a text, or a list of text blocks")
        return [text for n, part in enumerate(parts) for text in _texts_in(part, f"{where}.{n}")]
    if content.get("type") not in _TEXT_TYPES or not isinstance(content.get("text"), str):
        raise MisuseError(
            f"render(): {where} is no text block: "
            f'{{"type": "text", "text": ...}}, but of type {in_words(content.get("type"))}'
        )
    return (content if content["type"] == "text" else {"type": "text", "text": content["text"]},)


def _definitions(tools: Tools) -> Sequence[Json]:
    """The tool definitions. Each must have a name, except the provider's own tools."""
    for number, tool in enumerate(_listed(tools, "tools", "a list of definitions")):
        where = f"render(): tools.{number}"
        if not isinstance(tool, Mapping):
            advice = "; give its definition" if hasattr(tool, "definition") else ""
            raise MisuseError(f"{where} is a definition (a dict), not {in_words(tool)}{advice}")
        definition = cast("Mapping[str, Any]", tool)
        kind = definition.get("type", "custom")
        inner: object = definition.get(kind) if kind in ("custom", "function") else None
        named = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else definition
        name = named.get("name")
        if isinstance(name, str) and name.strip():
            continue
        if name is None and isinstance(kind, str) and kind not in {"custom", "function"}:
            continue
        if _is_google(definition):
            continue
        raise MisuseError(f"{where} has no name (a text){_near_name(named)}")
    return tools or ()


def _near_name(definition: Mapping[str, Any]) -> str:
    odd = [key for key in definition if key not in _TOOL_FIELDS]
    found = next((key for key in odd if did_you_mean(key, ("name",))), "")
    return f"; did you mean 'name' by {found!r}?" if found else ""


def _listed(value: object, name: str, wanted: str) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise MisuseError(f"render(): {name} is {wanted}, not {in_words(value)}")
    return cast("Sequence[object]", value)


def _is_google(definition: Mapping[str, Any]) -> bool:
    """Whether it is one of Gemini's own tools, which have their kind as the only field: `{"googleSearch": {}}`."""
    [(kind, value), *more] = definition.items() or [("", None)]
    return not more and kind not in _TOOL_FIELDS and isinstance(value, dict | list)
