"""Taking back quotations: a summary, a pointer, a line for a dropped span may quote a block that is
hidden on request only later.

A quotation is found by its words, because a model's prose does not say where it came from:

    suspect     a word, or two words in a row, that a hidden block and the quoting text have in common
    cleared     what some block that is not hidden says as well
    masked      what is left, together with the characters around it up to the next white space

So a text loses what only the hidden blocks said, and keeps the rest.
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
"""What stands for words that were taken back."""
_ALONE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Characters of scripts that put no space between words: each counts as one."""
_WORD: Final = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+")
_CHUNK: Final = re.compile(r"\S+")
_CUT: Final = re.compile(r"\W*(?:…|$)")
"""What follows a word that may have been cut short."""
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
"""By record: fields that say where something is, and nothing of what it says."""
_UNSAID: Final = frozenset({"id", "turn", "author", "response"})
"""The same of an unknown block."""


def said_by(block: Block) -> str:
    """Everything that a block says, its address apart."""
    match block:
        case ToolCall():
            return leaves(block.input)
        case ToolResult() if block.artifact:
            return ""  # a sentence that stands for it
        case OpaqueBlock():
            return leaves({k: v for k, v in block.fields.items() if k not in _UNSAID})
        case _:
            return text_of(block)


class Redaction:
    """Knows which words only the hidden blocks say, as far as some quoting texts are concerned."""

    def __init__(self, hidden: Iterable[Block], quoting: Iterable[object]) -> None:
        self._words, self._starts, self._pairs = _suspects(hidden, quoting)

    def clear(self, block: Block) -> None:
        """Clear what a block says that is not hidden; of a hidden one, call `clear_address` instead."""
        self.clear_address(block)
        self._clear(said_by(block))

    def clear_address(self, block: Block) -> None:
        """Clear the names in a block's path, and a tool's name: they say where, and not what."""
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
        """Whether there is nothing to be taken back."""
        return not (self._words or self._starts or self._pairs)

    def masked(self, text: str) -> str:
        """The text without what only hidden blocks say."""
        for start, end in reversed([] if self.is_empty else self._found(text)):
            text = f"{text[:start]}{MASK}{text[end:]}"
        return text

    def _found(self, text: str) -> list[_Span]:
        """The stretches of a text to be masked, apart from each other, in order."""
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
            if found and not text[found[-1][1] : start].strip(" \t"):  # neighbours become one
                start, _ = found.pop()
            found.append((start, end))
        return found

    def redacted(self, record: _T) -> _T:
        """A record (a summary, a dropped span) with all its texts masked; itself if none is touched.

        Entries of lists of which nothing else is left go.
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
    """What only these hidden blocks say of what is quoted."""
    redaction = Redaction(hidden, quoting)
    for block in hidden:
        redaction.clear_address(block)
    for block in () if redaction.is_empty else said:
        redaction.clear(block)
    return redaction


def without_excerpts(summary: RangeSummary, versions: Iterable[int]) -> RangeSummary:
    """A summary whose index has no excerpts of these blocks, given by their versions."""
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
    """Whether nothing is left of an entry of a list: of a record, its first field tells."""
    left = getattr(new, new.__struct_fields__[0]) if isinstance(new, msgspec.Struct) else new
    return left == MASK and new != old


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _suspects(
    hidden: Iterable[Block], quoting: Iterable[object]
) -> tuple[set[str], set[str], set[_Pair]]:
    """What a hidden block and a quoting text both say: words, beginnings of words, pairs of words."""
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
    """The words of a text that may be the beginnings of longer ones."""
    for match in _WORD.finditer(text):
        if _CUT.match(text, match.end()):
            yield match[0].casefold()


def _begins_one_of(word: str, in_order: list[str]) -> bool:
    index = bisect_left(in_order, word)
    return index < len(in_order) and in_order[index].startswith(word)
