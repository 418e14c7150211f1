"""Signed thinking, and the check that it still fits its conversation.

A signature contains the model, the thinking and, on models with `thinking_bound`, the content before it: system,
tools, all earlier messages (without cache marks), and the signature of the previous thinking.  So thinking may be
removed from the beginning or the end of a conversation, or completely, but not from the middle, and removed thinking
cannot come back.  (Provider docs: preserved thinking.)  These signatures are not secret; they only make
changes detectable.
"""

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import attrs
import msgspec

from blocks.formats import SHAPES
from render import Json, Model
from timeline.fake_provider.wires._wire import blocks_of, child, prompt_of

SHAPE: Final = SHAPES["anthropic"]
_INVALID: Final = "{place}: Invalid `signature` in `thinking` block."
_MODIFIED: Final = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)
_UNBOUND: Final = (
    " The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


class _Seal(msgspec.Struct, frozen=True, array_like=True):
    """The content of a signature."""

    model: str
    text: str
    before: str
    after: str
    """Hash of the previous signature; empty if there was none."""
    mac: str = ""

    def sealed(self) -> "_Seal":
        """The same with its check value."""
        text = f"fake\n{self.model}\n{self.text}\n{self.before}\n{self.after}"
        return msgspec.structs.replace(self, mac=_hash(text))


@attrs.frozen(kw_only=True)
class _ThinkingBlock:
    """A thinking block of a request."""

    place: str
    block: Json
    before: str
    """Hash of all content before it."""
    latest: bool
    """Whether it belongs to the latest assistant message."""

    @property
    def signature(self) -> str:
        return str(self.block.get("signature") or "")


def sign(text: str, request: Json, model: Model) -> str:
    """The signature of thinking in the answer to `request`."""
    *_, end = _walk(request)
    signatures = [thought.signature for thought in _thoughts(request)]
    own = [s for s in signatures if (seal := _read(s)) and seal.model == model.name]
    after = _hash(own[-1]) if own else ""
    bound = (end.before, after) if model.thinking_bound else ("", "")
    return sealed(text, model, *bound)


def sealed(text: str, model: Model, before: str = "", after: str = "") -> str:
    """The signature of thinking; without hashes of what was before, it is not bound to a conversation."""
    seal = _Seal(model.name, _hash(text), before, after).sealed()
    return b64encode(msgspec.json.encode(seal)).decode()


def is_signed(signature: str, text: str) -> bool:
    """Whether this is a valid signature of this thinking."""
    seal = _read(signature)
    return seal is not None and seal.text == _hash(text)


def check_thinking(request: Json, model: Model) -> str | None:
    """The reason for which the provider refuses the thinking in a request; None: it accepts it."""
    previous = ""
    for thought in _thoughts(request):
        seal = _read(thought.signature)
        if seal is None or seal.text != _hash(str(thought.block.get("thinking"))):
            return _MODIFIED if thought.latest else _INVALID.format(place=thought.place)
        if seal.model != model.name:  # of another model: silently dropped
            continue
        moved = seal.before != thought.before or (previous and seal.after != previous)
        if model.thinking_bound and moved:
            binding = child(child(request, "thinking"), "block_binding")
            dropped = binding.get("prefix_mismatch_behavior") == "drop_block"
            return None if dropped else _INVALID.format(place=thought.place) + _UNBOUND
        previous = _hash(thought.signature)
    return None


def _read(signature: str) -> _Seal | None:
    try:
        seal = msgspec.json.decode(b64decode(signature, validate=True), type=_Seal)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
    return seal if seal == seal.sealed() else None


def _thoughts(request: Json) -> Iterator[_ThinkingBlock]:
    return (thought for thought in _walk(request) if thought.block.get("type") == "thinking")


def _walk(request: Json) -> Iterator[_ThinkingBlock]:
    """All blocks of the messages, each with the hash of the content before it; last, the end of the request."""
    messages: list[Json] = request.get("messages") or []
    fixed = [*blocks_of(request.get("tools")), {}, *prompt_of(request)]
    digest = sha256(_canonical([_plain(block) for block in fixed]))
    replies = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    for index, message in enumerate(messages):
        for number, block in enumerate(blocks_of(message.get("content"))):
            yield _ThinkingBlock(
                place=f"messages.{index}.content.{number}",
                block=block,
                before=digest.hexdigest(),
                latest=index == replies[-1] if replies else False,
            )
            if block.get("type") not in SHAPE.thinking:
                digest.update(_canonical([message["role"], _plain(block)]))
    yield _ThinkingBlock(place="", block={}, before=digest.hexdigest(), latest=False)


def _canonical(value: list[Any]) -> bytes:
    """The JSON of a value, independent of the order of keys."""
    return json.dumps(value, sort_keys=True).encode()


def _plain(block: Json) -> Json:
    """A block without fields that are not content: its cache mark, and null fields."""
    fields = {name: item for name, item in block.items() if name != SHAPE.mark and item is not None}
    if block.get("type") == "tool_result":
        fields["content"] = [_plain(part) for part in blocks_of(block.get("content"))]
        fields["is_error"] = bool(block.get("is_error"))
    return fields


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
