"""Removing quotations of hidden blocks: a summary, a pointer or a dropped span may quote a block that is
hidden on request later.

Quotations are found by their words, because a model's prose does not name its sources:

    suspect     a word, or two adjacent words, that a hidden block and the quoting text share
    cleared     a suspect that a visible block contains, too
    masked      a remaining suspect, with the characters around it up to the next white space

So a text loses only what no visible block says.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from blocks import (
    ArtifactPointer,
    Block,
    DroppedSpan,
    Excerpt,
    HiddenRecord,
    OpaqueBlock,
    OpenItem,
    RangeSummary,
    ToolCall,
    ToolResult,
    leaves,
    path_stem,
    text_of,
)

_T = TypeVar("_T")
_Span: TypeAlias = tuple[int, int]
_Pair: TypeAlias = tuple[str, str]

MASK: Final = "[hidden]"
"""Replaces masked words."""
_ALONE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Characters of scripts without spaces between words; each counts as a word."""
_WORD: Final = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+")
_CHUNK: Final = re.compile(r"\S+")
_CUT: Final = re.compile(r"\W*(?:…|$)")
"""Follows a word that may have been cut short."""
_ADDRESSES: Final[dict[type, frozenset[str]]] = {
    RangeSummary: frozenset(
        {"id", "turn", "covered_turn_ids", "split_turn_id", "turn_range", "begun_turn_id"}
    ),
    Excerpt: frozenset({"path"}),
    HiddenRecord: frozenset({"path"}),
    ArtifactPointer: frozenset({"path", "artifact"}),
    DroppedSpan: frozenset({"paths", "turns"}),
    OpenItem: frozenset({"priority"}),
}
"""By record type: fields that say where something is; they are never masked."""
_UNSAID: Final = frozenset({"id", "turn", "author", "response"})
"""The same for fields of an unknown block."""


def said_by(block: Block) -> str:
    """Everything that a block says, without its address."""
    match block:
        case ToolCall():
            return leaves(block.input)
        case ToolResult() if block.artifact:
            return ""  # a placeholder sentence
        case OpaqueBlock():
            return leaves({k: v for k, v in block.fields.items() if k not in _UNSAID})
        case _:
            return text_of(block)


class Redaction:
    """The words that only the hidden blocks say, among those in the quoting texts."""

    def __init__(self, hidden: Iterable[Block], quoting: Iterable[object]) -> None:
        self._words, self._starts, self._pairs = _suspects(hidden, quoting)

    def clear(self, block: Block) -> None:
        """Clear the words of a visible block; for a hidden block, call `clear_address` instead."""
        self.clear_address(block)
        self._clear(said_by(block))

    def clear_address(self, block: Block) -> None:
        """Clear the names in a block's path and a tool's name, which say nothing of its content."""
        self._clear(path_stem(block))
        if isinstance(block, ToolCall):
            self._clear(block.name)

    def _clear(self, text: str) -> None:
        if self.is_empty:
            return
        words = _words(text)
        self._words.difference_update(words)
        self._pairs.difference_update(pairwise(words))
        listed = "\n".join(["", *words])
        self._starts = {start for start in self._starts if f"\n{start}" not in listed}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to mask."""
        return not (self._words or self._starts or self._pairs)

    def masked(self, text: str) -> str:
        """The text with the words masked that only hidden blocks say."""
        for start, end in reversed([] if self.is_empty else self._found(text)):
            text = f"{text[:start]}{MASK}{text[end:]}"
        return text

    def _found(self, text: str) -> list[_Span]:
        """The spans of a text to mask, disjoint and in order."""
        places = [match.span() for match in _WORD.finditer(text)]
        words = [text[start:end].casefold() for start, end in places]
        hits = {index for index, word in enumerate(words) if word in self._words}
        if self._starts:
            cut = enumerate(places)
            hits |= {i for i, (_, end) in cut if words[i] in self._starts and _CUT.match(text, end)}
        for index, pair in enumerate(pairwise(words)):
            hits |= {index, index + 1} if pair in self._pairs else set()
        wanted = deque(places[index] for index in sorted(hits))
        found: list[_Span] = []
        for chunk in _CHUNK.finditer(text) if wanted else ():
            start, end = chunk.span()
            if not (wanted and wanted[0][0] < end):
                continue
            while wanted and wanted[0][0] < end:
                wanted.popleft()
            if found and not text[found[-1][1] : start].strip(" \t"):  # join neighbours
                start, _ = found.pop()
            found.append((start, end))
        return found

    def redacted(self, record: _T) -> _T:
        """A record (a summary, a dropped span) with all its texts masked; the same object if nothing
        changes.

        List entries that would consist only of a mask are removed.
        """
        return record if self.is_empty else cast("_T", self._redacted(record))

    def _redacted(self, value: object) -> object:
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            new = tuple(n for item in items if not _is_gone(item, n := self._redacted(item)))
            return items if new == items else new
        if isinstance(value, msgspec.Struct):
            kept = _ADDRESSES.get(type(value), frozenset())
            fields = {f: getattr(value, f) for f in value.__struct_fields__ if f not in kept}
            new_fields = {name: self._redacted(field) for name, field in fields.items()}
            changed: dict[str, Any] = {n: v for n, v in new_fields.items() if v != fields[n]}
            return msgspec.structs.replace(value, **changed) if changed else value
        return value


def redaction_of(
    hidden: Collection[Block], quoting: Iterable[object], said: Iterable[Block]
) -> Redaction:
    """The redaction of what only these hidden blocks say, among the quoting records."""
    redaction = Redaction(hidden, quoting)
    for block in hidden:
        redaction.clear_address(block)
    for block in () if redaction.is_empty else said:
        redaction.clear(block)
    return redaction


def without_excerpts(summary: RangeSummary, versions: Iterable[int]) -> RangeSummary:
    """The summary without index excerpts of the blocks with these versions."""
    gone, index = frozenset(versions), summary.digest.index
    layers = tuple(
        msgspec.structs.replace(layer, excerpts=_seen_elsewhere(layer.excerpts, gone))
        for layer in index.layers
    )
    left = msgspec.structs.replace(
        index, excerpts=_seen_elsewhere(index.excerpts, gone), layers=layers
    )
    if left == index:
        return summary
    digest = msgspec.structs.replace(summary.digest, index=left)
    return msgspec.structs.replace(summary, digest=digest)


def _seen_elsewhere(excerpts: Iterable[Excerpt], gone: Collection[int]) -> tuple[Excerpt, ...]:
    return tuple(excerpt for excerpt in excerpts if excerpt.seen not in gone)


def _is_gone(old: object, new: object) -> bool:
    """Whether a list entry was masked as a whole; for a record, its first field decides."""
    left = getattr(new, new.__struct_fields__[0]) if isinstance(new, msgspec.Struct) else new
    return left == MASK and new != old


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _suspects(
    hidden: Iterable[Block], quoting: Iterable[object]
) -> tuple[set[str], set[str], set[_Pair]]:
    """Words, beginnings of words, and word pairs that both a hidden block and a quoting text contain."""
    words, pairs = set[str](), set[_Pair]()
    for block in hidden:
        said = _words(said_by(block))
        words.update(said)
        pairs.update(pairwise(said))
    in_order = sorted(words)
    found, starts, found_pairs = set[str](), set[str](), set[_Pair]()
    for text in _texts(quoting):
        quoted = _words(text)
        found |= words.intersection(quoted)
        starts |= {word for word in _cut_short(text) if _begins_one_of(word, in_order)}
        found_pairs |= pairs.intersection(pairwise(quoted))
    return found, starts, found_pairs


def _texts(records: Iterable[object]) -> Iterator[str]:
    """Every text in these records."""
    stack = list(records)
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            stack += cast("tuple[object, ...]", value)
        elif isinstance(value, msgspec.Struct):
            stack += (getattr(value, name) for name in value.__struct_fields__)


def _cut_short(text: str) -> Iterator[str]:
    """The words of a text that may be beginnings of longer ones."""
    for match in _WORD.finditer(text):
        if _CUT.match(text, match.end()):
            yield match[0].casefold()


def _begins_one_of(word: str, in_order: list[str]) -> bool:
    index = bisect_left(in_order, word)
    return index < len(in_order) and in_order[index].startswith(word)
