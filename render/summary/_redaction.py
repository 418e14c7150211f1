"""Removing quotations of hidden blocks: a summary, a pointer or a dropped span may quote a block that is
hidden on request later.

Quotations are found by their characters, because a model's prose does not name its sources, and what is to be
hidden may be in any alphabet, and cut anywhere:

    mark        eight characters in a row, or a shorter word
    quotation   a stretch of a quoting text in which every mark is one of a hidden block
    cleared     a quotation that a visible block contains as a whole

The sentence, the line or the list entry with a quotation that is not cleared is removed, and all of the text if that is
not enough. So a text loses only what no visible block says.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, TypeVar, cast

import attrs
import msgspec

from blocks import (
    Block,
    DocumentPart,
    DroppedSpan,
    Finding,
    ImagePart,
    OpaqueBlock,
    OpenItem,
    ProviderPart,
    RangeSummary,
    Region,
    ToolCall,
    ToolResult,
    UserAttachment,
    images_of,
    leaves,
    path_stem,
    text_of,
)

_T = TypeVar("_T")

MASK: Final = "[hidden]"
"""Replaces a sentence or a line that quotes a hidden block."""
MARK_CHARACTERS: Final = 8
"""Characters in a row that make a quotation. A shorter word makes one only as a whole."""
_WORD: Final = re.compile(r"\b\w{4,7}\b")
_ENDS: Final = re.compile(r"(\n+|(?<=[.!?…;])[ \t]+|(?<=[。！？]))")
"""What separates the lines and sentences of a text."""
_MASKS: Final = re.compile(rf"{re.escape(MASK)}(?:\s*{re.escape(MASK)})+")
_CODE: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")
_MARKUP: Final = str.maketrans("", "", "\\*`")
AT_ONCE: Final = 1_000_000
"""Characters of quoting texts whose marks are in memory at the same time, 100 bytes or so for each."""
FEW: Final = 64
"""So many quotations are looked for one by one; more of them all at once, by their first characters."""
_EXEMPT: Final[dict[type, frozenset[str]]] = {
    RangeSummary: frozenset(
        {"id", "turn", "covered_turn_ids", "split_turn_id", "turn_range", "begun_turn_id"}
    ),
    Region: frozenset({"file", "text"}),
    Finding: frozenset({"turn", "kind"}),
    DroppedSpan: frozenset({"turns"}),
    OpenItem: frozenset({"priority"}),
}
"""By record type: fields that say where something is, and texts that are known by their version (see
`without_blocks`)."""
_UNSAID: Final = frozenset({"id", "turn", "author", "response"})
"""Fields of an unknown block that say where it belongs."""
_TEXT: Final = "text/plain"


def said_by(block: Block) -> str:
    """Everything that a block says, without its address."""
    match block:
        case ToolCall():
            return leaves(block.input)
        case ToolResult() if block.artifact:
            return ""  # a placeholder sentence
        case ToolResult():
            said = [text_of(block), leaves(block.envelope.key_fields)]
        case UserAttachment():
            said = [block.name, text_of(block)]
        case OpaqueBlock():
            return leaves({k: v for k, v in block.fields.items() if k not in _UNSAID})
        case _:
            said = [text_of(block)]
    return "\n".join([*said, *map(_said_by_part, images_of(block))])


def _said_by_part(part: ImagePart | DocumentPart | ProviderPart) -> str:
    """What a part says that its block's text may not have; the data of pictures is never quoted."""
    match part:
        case ProviderPart():
            return leaves(part.value)
        case DocumentPart(media_type="text/plain"):
            return f"{part.name}\n{part.url}\n{part.data}"
        case DocumentPart():
            return f"{part.name}\n{part.url}"
        case ImagePart():
            return part.url


class Redaction:
    """The quotations of hidden blocks in quoting texts, less those that are cleared."""

    def __init__(self, hidden: Iterable[str], quoting: Iterable[object]) -> None:
        said = [text for text in hidden if text]
        texts = list(dict.fromkeys(_pieces(quoting))) if said else []
        self._readings = [_Reading(read, said, texts) for read in (_as_written, _as_meant)]
        self.clear(MASK)

    def clear(self, text: str) -> None:
        """Clear what a visible text says."""
        for reading in self._readings:
            reading.clear(text)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not any(reading.left for reading in self._readings)

    def quotes(self, text: str) -> bool:
        """Whether a text, or a piece of one, has a quotation that is not cleared."""
        return any(reading.quotes(text) for reading in self._readings)

    def masked(self, text: str) -> str:
        """The text with a mask in place of each sentence or line that quotes a hidden block."""
        if self.is_empty or not self.quotes(text):
            return text
        pieces = (MASK if self.quotes(piece) else piece for piece in _ENDS.split(text))
        left = _MASKS.sub(MASK, "".join(pieces))
        return MASK if self.quotes(left) else left

    def redacted(self, record: _T) -> _T:
        """A record (a summary, a dropped span) with all its texts masked; the same object if nothing
        changes.

        List entries of which only a mask would be left are removed.
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
            fields = {name: getattr(value, name) for name in _telling(value)}
            new_fields = {name: self._redacted(field) for name, field in fields.items()}
            changed: dict[str, Any] = {n: v for n, v in new_fields.items() if v != fields[n]}
            return msgspec.structs.replace(value, **changed) if changed else value
        return value


@attrs.frozen
class _Said:
    """What a text says, in one way of reading it."""

    text: str
    words: Sequence[str] = ()
    """The words that are shorter than a mark."""

    def marks(self) -> Iterator[str]:
        """All that could be a part of a quotation."""
        for start in self.starts:
            yield self.text[start : start + MARK_CHARACTERS]
        yield from self.words

    @property
    def starts(self) -> range:
        return range(len(self.text) - MARK_CHARACTERS + 1)


class _Reading:
    """The quotations in one way of reading texts."""

    def __init__(
        self, read: Callable[[str], _Said], hidden: Collection[str], texts: Iterable[str]
    ) -> None:
        self._read = read
        self._shared = set[str]()
        for part in _parts(texts) if hidden else ():
            marks = {mark for text in part for mark in read(text).marks()}
            for said in hidden:
                self._shared |= marks.intersection(read(said).marks())
        self.left = {quotation for text in texts for quotation in self._quotations(text)}
        """The quotations that are not cleared."""
        self._cleared = set[str]()
        self._sizes = defaultdict[str, set[int]](set)
        """The lengths of quotations by their first mark."""
        for quotation in self.left:
            self._sizes[quotation[:MARK_CHARACTERS]].add(len(quotation))

    def clear(self, text: str) -> None:
        if not self.left:
            return
        said = self._read(text)
        if len(self.left) <= FEW:
            found = {
                each for each in self.left if len(each) >= MARK_CHARACTERS and each in said.text
            }
        else:
            found = {
                said.text[start : start + size]
                for start, mark in zip(said.starts, said.marks(), strict=False)
                for size in self._sizes.get(mark, ())
            }
        found = self.left.intersection(found.union(said.words))
        self.left -= found
        self._cleared |= found

    def quotes(self, text: str) -> bool:
        return any(quotation not in self._cleared for quotation in self._quotations(text))

    def _quotations(self, text: str) -> Iterator[str]:
        """The longest stretches of a text of which every mark is one of a hidden block."""
        if not self._shared:
            return
        said = self._read(text)
        found = zip(said.starts, said.marks(), strict=False)
        marked = (start for start, mark in found if mark in self._shared)
        for _, run in groupby(enumerate(marked), lambda numbered: numbered[1] - numbered[0]):
            starts = [start for _, start in run]
            yield said.text[starts[0] : starts[-1] + MARK_CHARACTERS]
        yield from self._shared.intersection(said.words)


def _as_written(text: str) -> _Said:
    """What a text says, whatever white space it has."""
    return _Said(" ".join(text.split()))


def _as_meant(text: str) -> _Said:
    """What a text says without the escapes of JSON, marks of emphasis, white space, case, and forms of one letter."""
    if "\\u" in text:
        decoded = _CODE.sub(_decoded, text).encode("utf-16", "surrogatepass")
        text = decoded.decode("utf-16", "replace")
    text = text.translate(_MARKUP)
    plain = (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()
    return _Said("".join(plain.split()), _WORD.findall(plain))


def _decoded(code: re.Match[str]) -> str:
    return chr(int(code[1], 16))


def redaction_of(
    hidden: Iterable[Block], quoting: Iterable[object], shown: Iterable[Block]
) -> Redaction:
    """The redaction of what only these hidden blocks say, among the quoting records; `shown` are all blocks as they
    are shown, hidden ones as their replacements."""
    redaction = Redaction(map(said_by, hidden), quoting)
    for block in () if redaction.is_empty else shown:
        said, text = said_by(block), text_of(block)
        for each in (path_stem(block), said, "" if text in said else text):
            redaction.clear(each)
        if redaction.is_empty:
            break
    return redaction


def without_blocks(summary: RangeSummary, versions: Iterable[int]) -> RangeSummary:
    """The summary without what its findings and its working set have of the blocks with these versions."""
    gone, digest = frozenset(versions), summary.digest
    regions = tuple(r for r in digest.regions if gone.isdisjoint((r.seen, *r.sources)))
    findings = tuple(each for each in digest.findings if each.version not in gone)
    if (regions, findings) == (digest.regions, digest.findings):
        return summary
    digest = msgspec.structs.replace(digest, regions=regions, findings=findings)
    return msgspec.structs.replace(summary, digest=digest)


def _is_gone(old: object, new: object) -> bool:
    """Whether a list entry was masked as a whole; for a record, its first text decides."""
    left = getattr(new, _telling(new)[0]) if isinstance(new, msgspec.Struct) else new
    return left == MASK and new != old


def _telling(record: msgspec.Struct) -> list[str]:
    """The names of the fields whose texts may quote a block."""
    exempt = _EXEMPT.get(type(record), frozenset())
    return [name for name in record.__struct_fields__ if name not in exempt]


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in parts of `AT_ONCE` characters or a little more."""
    part, size = list[str](), 0
    for text in texts:
        part.append(text)
        size += len(text)
        if size >= AT_ONCE:
            yield part
            part, size = [], 0
    yield part


def _pieces(records: Iterable[object]) -> Iterator[str]:
    """Every text in these records, and each of its sentences and lines."""
    stack = list(records)
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
            yield from _ENDS.split(value)
        elif isinstance(value, tuple):
            stack += cast("tuple[object, ...]", value)
        elif isinstance(value, msgspec.Struct):
            stack += (getattr(value, name) for name in _telling(value))
