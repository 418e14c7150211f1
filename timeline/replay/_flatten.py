"""A request as one flat list of blocks in cache order, each with its tokens.

Requests of one session share nearly all their blocks, so every distinct block is interned: it gets
one small key and is counted once.  The key holds what the provider's prefix hash covers, the order of
keys in a tool's input included, and leaves out `cache_control`, which is no content.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from json import JSONEncoder
from typing import Any

import attrs
import msgspec

from blocks import DocumentPart, ImagePart, Part, ProviderPart
from timeline.replay._cache import HOUR_SECONDS, FlatBlock
from timeline.tokens import TextCounter

BLOCK_OVERHEAD_TOKENS = 3
"""Envelope of a message block; not documented, a small constant."""
TOOL_TRAFFIC = frozenset({"tool_use", "tool_result"})
TOOL_OVERHEAD_TOKENS = 12
"""Ids and names around a tool use or its result, on top."""
_MINUTES_5_SECONDS = 300
_PLAIN_TEXT = frozenset({"type", "text", "cache_control"})

_Json = Mapping[str, Any]
_Known = tuple[int, int]
"""Key and tokens of a block."""
_dump = JSONEncoder(ensure_ascii=False).encode


@attrs.define
class Flattener:
    """Flattens the requests of one session; remembers every block it has seen."""

    counter: TextCounter
    _known: dict[Hashable, _Known] = attrs.field(init=False, factory=dict[Hashable, _Known])
    _seen: dict[tuple[str, int], tuple[_Json, FlatBlock]] = attrs.field(
        init=False, factory=dict[tuple[str, int], tuple[_Json, FlatBlock]]
    )
    """By identity: an unmarked block of the renderer's is the same object in every request."""

    def flatten(self, request: _Json) -> list[FlatBlock]:
        """The blocks of an Anthropic request: tools, system, messages."""
        flat = [self._tool(tool) for tool in request.get("tools") or ()]
        flat += [self._system(block) for block in _blocks(request.get("system"))]
        for message in request.get("messages") or ():
            role = message.get("role", "")
            content = message.get("content")
            flatten = self._block if isinstance(content, str) else self._shared
            flat += [flatten(role, block) for block in _blocks(content)]
        return flat

    def _shared(self, role: str, block: _Json) -> FlatBlock:
        """The block, flattened once; whoever changes one of ours breaks more than this."""
        key = (role, id(block))
        seen = self._seen.get(key)
        if seen is not None and seen[0] is block:
            return seen[1]
        flat = self._block(role, block)
        if not flat.ttl:
            self._seen[key] = (block, flat)
        return flat

    def _tool(self, tool: _Json) -> FlatBlock:
        plain = _unmarked(tool)
        known = self._intern(("tools", _exact(plain)), lambda: self.counter.count(_dump(plain)))
        return FlatBlock(known[0], "tool", known[1], _ttl(tool))

    def _system(self, block: _Json) -> FlatBlock:
        text = block.get("text") or ""
        known = self._intern(("system", text), lambda: self.counter.count(text))
        return FlatBlock(known[0], "system", known[1], _ttl(block))

    def _block(self, role: str, block: _Json) -> FlatBlock:
        kind = block.get("type") or ""
        known = self._intern((role, kind, _content(block)), lambda: self._tokens(block))
        return FlatBlock(known[0], kind, known[1], _ttl(block))

    def _intern(self, content: Hashable, count: Callable[[], int]) -> _Known:
        known = self._known.get(content)
        if known is None:
            known = self._known[content] = (len(self._known), count())
        return known

    def _tokens(self, block: _Json) -> int:
        overhead = BLOCK_OVERHEAD_TOKENS
        if block.get("type") in TOOL_TRAFFIC:
            overhead += TOOL_OVERHEAD_TOKENS
        return overhead + self._content_tokens(block)

    def _content_tokens(self, block: _Json) -> int:
        count = self.counter.count
        match block.get("type"):
            case "text":
                return count(block.get("text") or "")
            case "tool_use":
                return count(block.get("name") or "") + count(_dump(block.get("input")))
            case "tool_result":
                return sum(self._content_tokens(part) for part in _blocks(block.get("content")))
            case "thinking":  # the signature is not what the model reads
                return count(block.get("thinking") or "")
            case "redacted_thinking":
                return count(block.get("data") or "")
            case "compaction":
                return count(block.get("content") or "")
            case _:
                return self.counter.part(_part(block))


def _blocks(content: str | Sequence[_Json] | None) -> Sequence[_Json]:
    """Content as a list; a bare string stands for one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else ()
    return content or ()


def _content(block: _Json) -> Hashable:
    """What makes a block equal to another; long strings go in as they are, their hash is cached."""
    match block.get("type"):
        case "text" if block.keys() <= _PLAIN_TEXT:
            return block.get("text")
        case "tool_result":
            return (
                block.get("tool_use_id"),
                _inner(block.get("content")),
                bool(block.get("is_error")),
            )
        case "image" if isinstance(block.get("source"), dict):
            return tuple(_strings(block["source"]))
        case _:
            return _exact(_unmarked(block))


def _inner(content: str | Sequence[_Json] | None) -> Hashable:
    """Content of a tool result; a bare string equals one text block."""
    if isinstance(content, str):
        return (("text", content),)
    return tuple((part.get("type"), _content(part)) for part in content or ())


def _exact(value: object) -> str | bytes:
    """A value as JSON, its keys in their order."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair, cut by somebody's truncation
        return _dump(value)


def _strings(source: _Json) -> Iterator[tuple[str, str]]:
    for name, value in source.items():
        yield name, value if isinstance(value, str) else _dump(value)


def _unmarked(block: _Json) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _ttl(block: _Json) -> int:
    """Seconds that a block's mark asks for; 5 minutes unless it says an hour."""
    mark = block.get("cache_control")
    if not mark:
        return 0
    return HOUR_SECONDS if mark.get("ttl") == "1h" else _MINUTES_5_SECONDS


def _part(block: _Json) -> Part:
    """A request's image, document or foreign block as the part it was rendered from."""
    source: _Json = block.get("source") or {}
    if block.get("type") not in {"image", "document"}:
        return ProviderPart(value=_unmarked(block))
    fields = {name: _string(source, name) for name in ("media_type", "data", "url")}
    return ImagePart(**fields) if block["type"] == "image" else DocumentPart(**fields)


def _string(source: _Json, name: str) -> str:
    value = source.get(name)
    return value if isinstance(value, str) else ""
