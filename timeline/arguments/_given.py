"""Parts as callers pass them: foldline's, or content blocks as the Messages API defines them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from blocks import DocumentPart, ImagePart, MisuseError, Part, ProviderPart, TextPart, in_words
from render import Where, refusal
from timeline.arguments._checks import checked_text, checked_words, fields_of

Given: TypeAlias = "Part | Mapping[str, Any]"
"""A part, or a content block of the Messages API."""
Output: TypeAlias = "str | Sequence[Given]"
"""What a tool returned: a text, or parts."""

_HINTS: Final[Mapping[type, str]] = {
    str: "; for a text give TextPart(text=...)",
    bytes: "; for bytes give ImagePart or DocumentPart(data=base64.b64encode(data).decode())",
}


def output_parts(output: object, call: str) -> tuple[Part, ...]:
    """The parts of a tool's return value.

    Raises:
        MisuseError: it is neither a text nor a list of parts, or the provider would refuse a part.
    """
    if isinstance(output, str):
        return (TextPart(text=output),) if output else ()
    if not isinstance(output, list | tuple):
        raise MisuseError(
            f"{call}: the output is a text, or a list of parts or content blocks, "
            f"not {in_words(output)}"
        )
    return given_parts(cast("Sequence[object]", output), "result", call)


def given_parts(items: Sequence[object], where: Where, call: str) -> tuple[Part, ...]:
    """The parts, if they can be shown at this place.

    Raises:
        MisuseError: an item is not a part, or the provider would refuse it; the message says why.
    """
    return tuple(_checked(item, where, f"{call}, part {n}") for n, item in enumerate(items, 1))


def checked_prompt(text: object, parts: Sequence[object], call: str) -> tuple[Part, ...]:
    """The parts of a user's prompt; without parts the text must not be empty.

    Raises:
        MisuseError: the prompt is empty, or a part of it cannot be shown.
    """
    found = given_parts(parts, "user", call)
    if found:
        checked_text(text, call)
    else:
        checked_words(text, call)
    return found


def _checked(item: object, where: Where, call: str) -> Part:
    part = _part(item, call)
    for name in part.__struct_fields__:
        kind = dict if isinstance(part, ProviderPart) else str
        value: object = getattr(part, name)
        if not isinstance(value, kind):
            raise MisuseError(
                f"{call}: {name} is a {kind.__name__}, not {in_words(value)}"
                + ("; base64 it first" if isinstance(value, bytes) else "")
            )
    if isinstance(part, ImagePart | DocumentPart) and part.url and part.data:
        raise MisuseError(f"{call}: give data or url, not both")
    if reason := refusal(part, where):
        raise MisuseError(f"{call}: {reason}")
    return part


def _part(item: object, call: str) -> Part:
    if isinstance(item, Part):
        return item
    if isinstance(item, Mapping):
        return _foreign(cast("Mapping[str, Any]", item), call)
    raise MisuseError(
        f"{call}: a part or a content block is wanted, not {in_words(item)}"
        f"{_HINTS.get(type(item), '')}"
    )


def _foreign(content: Mapping[str, Any], call: str) -> Part:
    """Our part if it can represent the whole content block; otherwise the block, verbatim."""
    if content.get("type") == "text":
        text: object = content.get("text")
        if not isinstance(text, str):
            raise MisuseError(f"{call}: a text block's text is a str, not {in_words(text)}")
        return TextPart(text=text)
    return _media(content) or ProviderPart(value=dict(content))


def _media(content: Mapping[str, Any]) -> ImagePart | DocumentPart | None:
    source = fields_of(content.get("source"))
    fields = {name: value for name, value in source.items() if name != "type"}
    form, more = source.get("type"), set(content) - {"type", "source", "cache_control"}
    is_known = (form == "base64" and set(fields) == {"media_type", "data"}) or (
        form == "url" and set(fields) == {"url"}
    )
    if content.get("type") == "image" and is_known and not more:
        return ImagePart(**fields)
    if content.get("type") == "document" and is_known and more <= {"title"}:
        return DocumentPart(**fields, name=content.get("title") or "")
    return None
