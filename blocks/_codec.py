"""Encodes events and blocks as JSON, without loss for known and unknown kinds, and decodes them.

Decoding handles three cases:

* the JSON of a known kind becomes its struct;
* an older form of a known kind first goes through the upcasters of its kind;
* anything else becomes an `OpaqueEvent` or an `OpaqueBlock`, which encodes to an equal value again.

JSON cannot represent every Python value.  NaN, infinities, lone surrogates and keys that are not strings are
*visibly* replaced (by `"NaN"`, or the characters `\\udc80`); integers of any size and NUL characters stay unchanged.

A confidential result is written without its content:

    in the log      stands_for(block): a sentence instead of the parts, and the artifact's id
    in memory       the block with its parts and the id; `sealed` returns the form for the log
    artifact        `SealedContent` as JSON: the parts, and a random salt. The id is a hash of both, so that short
                    content cannot be found by trying.

Every event is sealed before it is written, and every block is opened before it is shown to a model.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct

from blocks._block import Block, KnownBlock, OpaqueBlock, Part, TextPart, ToolResult, tag_of
from blocks._errors import CodecError
from blocks._events import BlockAppended, Carried, Event, KnownEvent, OpaqueEvent, RangeCompacted

Fields: TypeAlias = dict[str, Any]
Upcaster: TypeAlias = Callable[[Fields], Fields]
_T = TypeVar("_T")
_B = TypeVar("_B", BlockAppended, Carried)

UPCASTERS: Mapping[str, Sequence[Upcaster]] = {}
"""By event kind or block tag: functions that convert an older form into the next newer one."""


def _opaque(value: object) -> Fields:
    """Called by msgspec to encode the classes that are not structs."""
    if isinstance(value, OpaqueBlock):
        return {"type": value.tag, **value.fields}
    if isinstance(value, OpaqueEvent):
        return {"event": value.kind, **value.fields}
    # msgspec expects this error for unknown types; `_encode` turns it into a CodecError.
    raise NotImplementedError(f"cannot encode {type(value).__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_opaque)
_NULL = re.compile(rb"null(?<=[:,\[]null)[,\]}]")
"""Finds every null that is a value, and seldom one inside a text.  It begins with letters, because searching for
letters is much faster than searching for punctuation, which texts are full of."""
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
_events: msgspec.json.Decoder[KnownEvent] = msgspec.json.Decoder(KnownEvent)
_blocks: msgspec.json.Decoder[KnownBlock] = msgspec.json.Decoder(KnownBlock)
_event_kinds = frozenset(t.__struct_config__.tag for t in KnownEvent.__args__)
_block_tags = frozenset(t.__struct_config__.tag for t in KnownBlock.__args__)


def kind_of(event: Event) -> str:
    """The wire name of an event's kind."""
    if isinstance(event, OpaqueEvent):
        return event.kind
    return str(event.__struct_config__.tag)


def encode_event(event: Event) -> bytes:
    """The event as JSON text in UTF-8.

    Raises:
        CodecError: the event has a value that is not data (a function, an open file), or is nested too deeply.
    """
    return _encode(event)


def stored_form(event: Event) -> tuple[str, str, bytes]:
    """The id and the kind of an event as they are stored, and its JSON.

    Raises:
        CodecError: as from `encode_event`.
    """
    return clean_json(event.id), clean_json(kind_of(event)), _encode(event)


def encode_block(block: Block) -> bytes:
    """The block as JSON text in UTF-8.

    Raises:
        CodecError: the block has a value that is not data, or is nested too deeply.
    """
    return _encode(block)


def _encode(value: object) -> bytes:
    try:
        data = _encoder.encode(value)
        # msgspec writes NaN as null, which would lose it silently; nulls are rare, so checking them is cheap.
        may_have_null = b"null" in data and _NULL.search(data)
        has_null = may_have_null and b"null" in _STRING.sub(b"", data)
        return _encode_cleaned(value) if has_null else data
    except (ValueError, NotImplementedError, TypeError, RecursionError):
        return _encode_cleaned(value)


def _encode_cleaned(value: object) -> bytes:
    try:
        return _encoder.encode(_cleaned(msgspec.to_builtins(value, enc_hook=_opaque)))
    except (ValueError, NotImplementedError, TypeError, RecursionError) as error:
        reason = fault_in(value) or error
        raise CodecError(f"cannot store {type(value).__name__}: {reason}") from error


_SCALAR: Final = (str, int, float, NoneType)


def clean_json(value: Any) -> Any:
    """`value`, in which text replaces everything that JSON cannot represent.

    Raises:
        CodecError: it is nested too deeply, or has an integer of thousands of digits.
    """
    if isinstance(value, _SCALAR):
        return _cleaned(value)
    if fault := fault_in(value):
        raise CodecError(fault)
    try:
        return _cleaned(value)
    except RecursionError as error:
        raise CodecError(
            "it is nested too deeply to be encoded at this depth of the call stack"
        ) from error


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else _without_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value).replace("nan", "NaN")
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {_cleaned(str(key)): _cleaned(inner) for key, inner in items}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in cast("Sequence[Any]", value)]
    if value is None or isinstance(value, bool | int):
        return value
    return _cleaned(str(value))


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def canonical_block(block: Block) -> Block:
    """The block as it will be read back: the block itself, unless it has values that JSON cannot represent.

    Raises:
        CodecError: the block has a value that is not data, or is nested too deeply; the message says where.
    """
    try:
        data = encode_block(block)
        back = decode_block(data)
        is_same = back == block
    except (CodecError, RecursionError) as error:
        raise _refusal(block, fault_in(block) or str(error)) from error
    may_be_deep = data.count(b"[") + data.count(b"{") > NESTING_MAX
    if may_be_deep and (fault := fault_in(block)):
        raise _refusal(block, fault)
    return block if is_same else back


def _refusal(block: Block, reason: str) -> CodecError:
    return CodecError(f"cannot store the {tag_of(block)} {block.id!r}: {reason}")


def decode_event(
    data: bytes | str, upcasters: Mapping[str, Sequence[Upcaster]] = UPCASTERS
) -> Event:
    """The event that `data` holds; an event of an unknown kind is an `OpaqueEvent`.

    Raises:
        CodecError: `data` is not a JSON object, or is nested too deeply.
    """
    try:
        return _events.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(_fields(data), upcasters)


def decode_block(
    data: bytes | str, upcasters: Mapping[str, Sequence[Upcaster]] = UPCASTERS
) -> Block:
    """The block that `data` holds; a block of an unknown kind is an `OpaqueBlock`.

    Raises:
        CodecError: `data` is not a JSON object, or is nested too deeply.
    """
    try:
        return _blocks.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _block(_fields(data), upcasters)


def _fields(data: bytes | str) -> Fields:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except RecursionError as error:
        raise CodecError("the JSON is nested too deeply to be decoded") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fields = _lenient(data)
        if fields is None:
            raise CodecError(f"not a JSON object: {error}") from error
        return fields


def _lenient(data: bytes | str) -> Fields | None:
    """The object that Python's JSON reader finds; it accepts more, for example lone surrogates. None: not an object."""
    try:
        fields: object = json.loads(data)
        return cast("Fields", clean_json(fields)) if isinstance(fields, dict) else None
    except (ValueError, RecursionError):
        return None


def _decode_slowly(fields: Fields, upcasters: Mapping[str, Sequence[Upcaster]]) -> Event:
    """Decode unknown kinds, older forms, and blocks of an application's own kinds."""
    kind = str(fields.get("event", ""))
    opaque = OpaqueEvent(kind, {k: v for k, v in fields.items() if k != "event"})
    if kind not in _event_kinds:
        return opaque
    for upcast in upcasters.get(kind, ()):
        fields = upcast(fields)
    if kind == "BlockAppended":
        return _with_block(fields, BlockAppended, upcasters) or opaque
    if kind == "RangeCompacted":
        return _compacted(fields, upcasters) or opaque
    return _convert(fields, KnownEvent) or opaque  # type: ignore[arg-type]


def _compacted(fields: Fields, upcasters: Mapping[str, Sequence[Upcaster]]) -> Event | None:
    raw = fields.get("carried", [])
    if not isinstance(raw, list):
        return None
    carried = [_with_block(item, Carried, upcasters) for item in cast("list[Any]", raw)]
    frame = _convert({**fields, "carried": []}, RangeCompacted)
    if frame is None or None in carried:
        return None
    return msgspec.structs.replace(frame, carried=tuple(carried))


def _with_block(item: Any, to: type[_B], upcasters: Mapping[str, Sequence[Upcaster]]) -> _B | None:
    """What has a block of any kind; None: it is not one."""
    if not isinstance(item, dict) or not isinstance(cast("Fields", item).get("block"), dict):
        return None
    fields = cast("Fields", item)
    frame = _convert({**fields, "block": _STAND_IN}, to)
    return frame and msgspec.structs.replace(frame, block=_block(fields["block"], upcasters))


_STAND_IN: Fields = {"type": "turn.header", "id": "", "turn": ""}


def _block(fields: Fields, upcasters: Mapping[str, Sequence[Upcaster]]) -> Block:
    tag = str(fields.get("type", ""))
    opaque = OpaqueBlock(tag, {k: v for k, v in fields.items() if k != "type"})
    if tag not in _block_tags:
        return opaque
    for upcast in upcasters.get(tag, ()):
        fields = upcast(fields)
    return _convert(fields, KnownBlock) or opaque  # type: ignore[arg-type]


def _convert(fields: Fields, to: type[_T]) -> _T | None:
    try:
        return msgspec.convert(fields, to)
    except msgspec.ValidationError:
        return None


def is_known(block: Block) -> bool:
    """Whether this version knows the block's kind."""
    return tag_of(block) in _block_tags


# Values that cannot be stored, and their places; found with a loop, so no value is too deep for it.


NESTING_MAX: Final = 200
"""Levels of lists and objects that a block may have. JSON readers fail at some depth, and the limit must not depend on
the depth of the caller's stack."""
_INTEGER_MAX: Final = 10**4300
"""Python neither prints nor parses integers from this size on."""
_SHOWN_MAX: Final = 6
"""Names of a place that a message shows."""

_Trail: TypeAlias = "tuple[_Trail, object] | None"
"""The way to a value: the way to its container, and its name there; None: the outermost value."""


def fault_in(value: object) -> str | None:
    """The first part of a value that cannot be stored: its place (`input.a.0`), and what is wrong with it; None:
    everything can be stored."""
    stack: list[tuple[object, int, _Trail]] = [(value, 0, None)]
    while stack:
        item, depth, trail = stack.pop()
        if isinstance(item, int) and abs(item) >= _INTEGER_MAX:
            return f"{_spelled(trail)} is an integer of more than 4300 digits"
        children = _children(item)
        if children is None:
            continue
        if depth >= NESTING_MAX:
            return f"{_spelled(trail)} is nested deeper than {NESTING_MAX} levels"
        for name, inner in children:
            if isinstance(name, int) and abs(name) >= _INTEGER_MAX:
                return f"{_spelled(trail)} has a key of more than 4300 digits"
            stack.append((inner, depth + 1, (trail, name)))
    return None


def _children(item: object) -> Iterator[tuple[object, Any]] | None:
    """The values inside a value, with their names or positions; None: it is not a container."""
    match item:
        case Struct():
            return ((name, getattr(item, name)) for name in item.__struct_fields__)
        case OpaqueBlock():
            return iter(item.fields.items())
        case Mapping():
            return iter(cast("Mapping[object, Any]", item).items())
        case list() | tuple():
            return enumerate(cast("list[Any]", item))
        case _:
            return None


def _spelled(trail: _Trail) -> str:
    names: list[str] = []
    while trail is not None:
        trail, name = trail
        names.append(str(name))
    names.reverse()
    path = ".".join(names[:_SHOWN_MAX]) or "it"
    return f"{path}.…" if len(names) > _SHOWN_MAX else path


# The content of confidential results.


STANDS_FOR: Final = "[confidential: kept apart from the log, as artifact {}]"
GONE: Final = "[confidential: its content is not shown any more ({}); it was artifact {}]"


class SealedContent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a confidential result, as stored in an artifact."""

    parts: tuple[Part, ...]
    salt: str
    expires_at: float = 0.0
    """When its artifact expires, in seconds since the epoch; 0: never."""


def is_sealed(block: Block) -> bool:
    """Whether a block is a result whose content is not in the log."""
    return isinstance(block, ToolResult) and bool(block.artifact)


def stands_for(block: Block) -> Block:
    """The form of a block that may be written and quoted: for a sealed result, a sentence and the artifact's id."""
    if not isinstance(block, ToolResult) or not block.artifact:
        return block
    parts = (TextPart(text=STANDS_FOR.format(block.artifact)),)
    return block if block.parts == parts else msgspec.structs.replace(block, parts=parts)


def without_content(block: ToolResult, reason: str) -> ToolResult:
    """A sealed result whose content is not available."""
    parts = (TextPart(text=GONE.format(reason, block.artifact)),)
    return msgspec.structs.replace(block, parts=parts)


def sealed(event: Event) -> Event:
    """The event as it is written to the log."""
    if not isinstance(event, BlockAppended) or not is_sealed(event.block):
        return event
    return msgspec.structs.replace(event, block=stands_for(event.block))


def encode_content(content: SealedContent) -> bytes:
    """The bytes of the artifact."""
    return msgspec.json.encode(content)


def decode_content(data: bytes) -> SealedContent:
    """The content in the bytes of an artifact.

    Raises:
        CodecError: the artifact has other content.
    """
    try:
        return msgspec.json.decode(data, type=SealedContent)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CodecError(f"this is not the content of a confidential result: {error}") from error
