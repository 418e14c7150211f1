"""Checks of what callers pass, before anything is done with it.

A wrong argument raises a `MisuseError` that names the call and the argument, and says what is wanted and what was
given. `call` is the name of the called method in these messages, such as "note()". Checked is what would spoil the log
or a request; the rest is left to the types.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Annotated, Any, Final, Optional, TypeAlias, TypeVar, cast

import attrs
import msgspec

from blocks import (
    ArgumentError,
    Block,
    DocumentPart,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    Part,
    ProviderPart,
    TextPart,
    canonical_block,
    did_you_mean,
    encode_block,
    images_of,
    in_words,
    is_web_url,
    tag_of,
)
from render import Json, Model, Policy, Where, refusal
from timeline.observe._hooks import Hooks

_T = TypeVar("_T")

# Options of `open`.

_FUNCTION: Final = "__call__"
_OPTIONS: Final[Mapping[str, tuple[tuple[type, ...], str, str]]] = {
    "store": ((str, PathLike), "load_window", "a store, or the path or URL of one"),
    "model": ((str, Model), "", "a model's name, or a Model"),
    "policy": ((str, Policy), "", "a policy's name, or a Policy"),
    "window": ((int,), "", "a positive number of tokens"),
    "counter": ((str,), "count", "a counter, or one of model, o200k, estimate"),
    "count_tokens": ((), _FUNCTION, "a function from a request to a number of tokens"),
    "summarizer": ((), _FUNCTION, "a function from a SummaryRequest to a Summary"),
    "hooks": ((Hooks,), "", "Hooks(on_before_compaction=[...], on_after_compaction=[...])"),
    "observers": ((list, tuple), "", "a list of functions, each given a Step"),
    "tracer": ((), "start_span", "an OpenTelemetry tracer"),
    "meter": ((), "create_histogram", "an OpenTelemetry meter"),
    "clock": ((), _FUNCTION, "a function that returns seconds since the epoch"),
    "ids": ((), _FUNCTION, "a function that returns a new id"),
    "keep_thinking": ((bool,), "", "True or False"),
    "validate": ((bool,), "", "True or False"),
    "artifacts": ((str, PathLike), "describe", "an artifact store, a folder or a URL"),
    "keys": ((), "current", "a key ring, as Keys(...)"),
    "requester": ((), "permissions", "a Requester(...)"),
    "probe": ((), _FUNCTION, "a function from a ToolCall to a Determinism or None"),
    "retention": ((str,), "", "one of keep, archive, forget"),
    "archive": ((str, PathLike), "", "a folder"),
}
"""By name: the classes of a valid value, or an attribute by which one is recognized; and what is wanted, in words."""


def checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `open` that were given, without those that are None and so mean the default.

    Raises:
        ArgumentError: there is no such option, or its value is not valid; the message names it.
    """
    unknown = [f"{n!r}{did_you_mean(n, _OPTIONS)}" for n in options if n not in _OPTIONS]
    if unknown:
        raise ArgumentError(
            f"open() takes no option {', nor '.join(unknown)} (there are {', '.join(_OPTIONS)})"
        )
    for name, value in options.items():
        if value is not None and not _is_option(name, value):
            raise ArgumentError(
                f"open(): {name} must be {_OPTIONS[name][2]}, not {in_words(value)}"
            )
    # Only `artifacts=None` has a meaning of its own: no artifact store.
    return {n: value for n, value in options.items() if value is not None or n == "artifacts"}


def _is_option(name: str, value: Any) -> bool:
    classes, attribute, _ = _OPTIONS[name]
    match value:
        case bool():
            return bool in classes
        case str():
            return str in classes and bool(value.strip())
        case int():
            return int in classes and value > 0
        case list() | tuple():
            return list in classes and all(map(callable, cast("Sequence[Any]", value)))
        case _ if attribute == _FUNCTION:
            return callable(value)
        case _:
            kind, own = value.__class__, getattr(value, "__dict__", {})
            # A `__getattr__` is not called, because it may do anything.
            is_like = attribute and any(hasattr(kind, n) for n in (attribute, "__getattr__"))
            is_object = not isinstance(value, type)
            return isinstance(value, classes) or bool(is_object and (is_like or attribute in own))


# System prompt and tools, as they are passed to each render.

System: TypeAlias = str | Sequence[Json] | None
"""A text, text blocks (`text`, or OpenAI's `input_text`), or messages of the role system or developer."""
Tools: TypeAlias = Sequence[Json] | None
"""Tool definitions in the form of the Messages API, or of OpenAI's Responses or Chat Completions."""

# Parts of a prompt or of a result.

AnyPart: TypeAlias = "Part | Mapping[str, Any]"
"""A part, or a content block of the Messages API."""
Output: TypeAlias = "str | Sequence[AnyPart]"
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
            f"{call}: the output must be a text, or a list of parts or content blocks, "
            f"not {in_words(output)}"
        )
    return checked_parts(cast("Sequence[object]", output), "result", call)


def checked_prompt(text: object, parts: Sequence[object], call: str) -> tuple[Part, ...]:
    """The parts of a user's prompt; without parts the text must not be empty.

    Raises:
        MisuseError: the prompt is empty, or a part of it cannot be shown.
    """
    content = checked_parts(parts, "user", call)
    (checked_text if content else checked_words)(text, call)
    return content


def checked_parts(items: Sequence[object], where: Where, call: str) -> tuple[Part, ...]:
    """The parts, if they can be shown at this place.

    Raises:
        MisuseError: an item is not a part, or the provider would refuse it; the message says why.
    """
    return tuple(_part(item, where, f"{call}, part {n}") for n, item in enumerate(items, 1))


def _part(item: object, where: Where, call: str) -> Part:
    if not isinstance(item, Part | Mapping):
        raise MisuseError(
            f"{call}: expected a part or a content block, not {in_words(item)}"
            f"{_HINTS.get(type(item), '')}"
        )
    part = item if isinstance(item, Part) else _own_part(cast("Mapping[str, Any]", item), call)
    kind = dict if isinstance(part, ProviderPart) else str
    for name in part.__struct_fields__:
        value: object = getattr(part, name)
        if not isinstance(value, kind):
            advice = "; base64 it first" if isinstance(value, bytes) else ""
            wanted = f"{name} must be a {kind.__name__}, not {in_words(value)}{advice}"
            raise MisuseError(f"{call}: {wanted}")
    if isinstance(part, ImagePart | DocumentPart) and part.url and part.data:
        raise MisuseError(f"{call}: give data or url, not both")
    if reason := refusal(part, where):
        raise MisuseError(f"{call}: {reason}")
    return part


def _own_part(content: Mapping[str, Any], call: str) -> Part:
    """Our part if it can represent the whole content block; otherwise the block, verbatim."""
    match content:
        case {"type": "text", "text": text}:
            return TextPart(text=checked_text(text, call, "a text block's text"))
        case {"type": "text"}:
            raise MisuseError(f"{call}: a text block must have a text")
        case {"type": kind, "source": {"type": form, **fields}, **more}:
            is_ours = (form, {*fields}) in _SOURCES
            if kind == "image" and is_ours and more.keys() <= {"cache_control"}:
                return ImagePart(**cast("dict[str, str]", fields))
            if kind == "document" and is_ours and more.keys() <= {"cache_control", "title"}:
                return DocumentPart(**cast("dict[str, str]", fields), name=more.get("title") or "")
        case _:
            pass
    return ProviderPart(value=dict(content))


_SOURCES: Final = (("base64", {"media_type", "data"}), ("url", {"url"}))
"""Types of sources, and their fields, that an `ImagePart` or a `DocumentPart` can represent."""


# Blocks.


def checked_blocks(blocks: Sequence[Block]) -> list[Block]:
    """The blocks as the store will give them back.

    A block must be of a known kind, with fields of the right types. Nothing else is required, because content that was
    recorded elsewhere is also appended this way, and such logs have results without calls, repeated ids, and images
    that a redaction has made unreadable.

    Raises:
        MisuseError: an argument is not a block, or it has no id, a field of a wrong type, or an invalid URL.
        CodecError: a block holds a value that JSON cannot represent.
    """
    return [_block(block, f"block {n} of the append") for n, block in enumerate(blocks, 1)]


def _block(block: Any, call: str) -> Block:
    if not isinstance(block, Block | OpaqueBlock):
        raise MisuseError(
            f"{call} must be a block (see the classes in `blocks`), not {in_words(block)}"
        )
    if isinstance(block, OpaqueBlock):
        checked_words(block.tag, call, "the tag")
        if not isinstance(cast("object", block.fields), dict):
            raise MisuseError(f"{call}: the fields must be a dict, not {in_words(block.fields)}")
        ids: tuple[object, object] = block.fields.get("id"), block.fields.get("turn", "")
    else:
        ids = block.id, block.turn
    # Ids that would change when they are stored could not be found again.
    checked_words(ids[0], call, "the id")
    checked_text(ids[1], call, "the turn")
    stored = canonical_block(block)
    if isinstance(stored, OpaqueBlock) and not isinstance(block, OpaqueBlock):
        raise MisuseError(f"{call} is not a valid {tag_of(block)}: {_fault_of(block)}")
    for part in images_of(stored):
        if isinstance(part, ImagePart | DocumentPart) and part.url and not is_web_url(part.url):
            raise MisuseError(f"{call}: {in_words(part.url)} is not an http(s) URL")
    return stored


def _fault_of(block: Block) -> str:
    """The decoder's message about a block that it refuses."""
    try:
        msgspec.json.decode(encode_block(block), type=type(block))
    except msgspec.ValidationError as error:
        return str(error)
    return "it cannot be read back"


# Single values.


def checked_text(value: object, call: str, name: str = "text") -> str:
    """A text that can be stored and sent.

    Raises:
        MisuseError: it is not a string, or holds half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise MisuseError(f"{call}: {name} must be a text (str), not {in_words(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise MisuseError(
            f"{call}: {name} has half of a surrogate pair at character {error.start}, which "
            "nothing can store or send; drop it with text.encode(errors='ignore').decode()"
        ) from None
    return value


def checked_words(value: object, call: str, name: str = "text") -> str:
    """A text that is not empty, because providers refuse empty texts."""
    text = checked_text(value, call, name)
    if not text.strip():
        raise MisuseError(f"{call}: {name} is empty, and would not be shown")
    return text


def checked_name(value: object, call: str) -> str:
    """The name of a timeline."""
    name = checked_words(value, call, "name")
    if "\0" in name:
        raise MisuseError(f"{call}: {in_words(name)} cannot name a timeline; use printable text")
    return name


def checked_keys(keys: tuple[Any, ...], call: str) -> tuple[str, ...]:
    """Paths or ids of blocks, at least one."""
    if not keys:
        raise MisuseError(f"{call}: name at least one block, by path or id")
    for key in keys:
        if not isinstance(key, str):
            raise MisuseError(
                f"{call} takes paths or ids of blocks as separate arguments, not {in_words(key)}"
            )
    return keys


COUNT: Final = (Annotated[int, msgspec.Meta(ge=1)], "a whole number, 1 or more")
NUMBER: Final = (Annotated[int, msgspec.Meta(ge=0)], "a whole number, 0 or more")
TIME: Final = (Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)], "seconds since the epoch")
_Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
TIMEOUT: Final = (
    Optional[_Seconds],  # noqa: UP045 -- an annotated type has no `|`
    "seconds, 0 or more, or None",
)
_Pause: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e300)]
INTERVAL: Final = (tuple[_Pause, _Pause], "two numbers of seconds, at first and at most")


def checked(value: _T, kind: tuple[Any, str], call: str, name: str) -> _T:
    """A value of one of the types above.

    Raises:
        MisuseError: it is of another type, or out of range.
    """
    wanted, words = kind
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        raise MisuseError(f"{call}: {name} must be {words}, not {in_words(value)}") from None
    return value


def valid(kind: tuple[Any, str], call: str) -> Any:
    """A validator of attrs: the field has a value of one of the types above."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        checked(value, kind, call, attribute.name)

    return check


def must_be(what: str, is_right: Callable[[Any], bool]) -> Any:
    """A validator of attrs that accepts values for which `is_right` is true."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if not is_right(value):
            raise MisuseError(f"{attribute.name} must be {what}, not {in_words(value)}")

    return check


def is_kind(kind: type, what: str) -> Any:
    """A validator of attrs that accepts instances of `kind`."""
    return must_be(what, lambda value: isinstance(value, kind))


def checked_kind(value: object, kind: type[_T], call: str, name: str) -> _T:
    """An instance of a class."""
    if not isinstance(value, kind):
        raise MisuseError(f"{call}: {name} must be a {kind.__name__}, not {in_words(value)}")
    return value


def checked_struct(value: object, kind: type[_T], call: str, name: str) -> _T:
    """A struct of a class whose fields all have the declared types."""
    struct = checked_kind(value, kind, call, name)
    try:
        msgspec.json.decode(msgspec.json.encode(struct), type=kind)
    except (msgspec.ValidationError, UnicodeEncodeError, TypeError) as error:
        raise MisuseError(f"{call}: {name} is not a valid {kind.__name__}: {error}") from error
    return struct
