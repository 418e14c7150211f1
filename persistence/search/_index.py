"""Finding blocks in a store: by its index and in its archives; what a database may look for; the blocks that are left."""

import re
import unicodedata
from collections.abc import Collection, Iterator
from typing import Final

from blocks import (
    Block,
    BlockAppended,
    Naming,
    RangeCompacted,
    Recorded,
    TimelineId,
    path_at,
    path_of,
)
from persistence._archive import archived_events
from persistence._store import BlockIndex, EventStore, Scan


def index_of(store: EventStore, timeline: TimelineId) -> BlockIndex:
    """The index of a store; for a timeline with archives, which it does not cover, a scan."""
    return Scan(store) if store.kept(timeline).archives else store.block_index()


def candidates_in(
    store: EventStore,
    words: Collection[str],
    kinds: Collection[str],
    timeline: TimelineId | None,
) -> Iterator[tuple[TimelineId, Recorded]]:
    """The candidates of the index of a store, and its archived blocks; of all timelines, those that can be read now."""
    yield from store.block_index().candidates(words, kinds, timeline)
    for name, rest in store.trimmed().items():
        left = rest if timeline else store.at_hand(name)[0]
        for archive in left.archives if timeline in (None, name) else ():
            for recorded in archived_events(archive, archive.first, archive.last):
                if isinstance(recorded[1], BlockAppended):
                    yield name, recorded


def names_left(
    store: EventStore, timeline: TimelineId, forgotten: int
) -> Iterator[tuple[int, Block, str]]:
    """The blocks and summaries that are left of a log whose first events are forgotten: version, block, path.

    The compaction that folded the forgotten events noted the paths given before.  If it is not the compaction in force,
    or did not note them, paths have versions instead of numbers.
    """
    fold, naming = store.load_window(timeline).compaction, None
    if fold and isinstance(fold[1], RangeCompacted) and fold[1].cut == forgotten + 1:
        naming = Naming(fold[1].state, fold[0]) if fold[1].state.named else None
    for version, event in Scan(store).related(timeline, (), after=forgotten):
        match event:
            case BlockAppended(block=block):
                yield version, block, (naming.path if naming else path_at)(block, version)
            case RangeCompacted(summary=summary, ordinal=ordinal):
                name = path_of(summary, ordinal) if ordinal else path_at(summary, version)
                yield version, summary, name
            case _:
                pass


# Pieces of text that every payload contains if it matches a word or a path, for which a database can search.
#
# An index may return more events than match, but never fewer.  What a database may search for follows from how
# an event is stored:
#
# * A run of characters that JSON does not escape, and of which case folding changes only A to Z,
#   is the same in the payload as in the text.
# * Exceptions: a few letters outside ASCII fold to letters inside (ß to ss), and JSON and Python write some
#   numbers differently; payloads with these are always possible matches.


FOLDED_TO_ASCII: Final = (
    "\u00df\u0130\u0149\u017f\u01f0\u1e96\u1e97\u1e98\u1e99\u1e9a\u1e9e\u212a"
    "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"
)
"""All letters outside ASCII whose case folding contains an ASCII letter."""
FOLDED_STARTS: Final = sorted({letter.encode()[:2].hex() for letter in FOLDED_TO_ASCII})
"""Their first two bytes, in hexadecimal: databases find these many times faster than one of several letters."""
CONDITIONS_MAX: Final = 32
"""With more conditions, a query takes the database longer than it saves in Python."""
SUMMARY: Final = "su:"
_CALL: Final = "tc:"
_NUMBER: Final = re.compile(r"[0-9.e+-]+")
_NAME: Final = re.compile(r"(?!None|True|False)(?=[\d-]*+[^\W\d])[\w-]++")


def runs_in(text: str) -> Iterator[str]:
    """The longest runs of characters in a text that a payload contains in the same form, apart from case."""
    start = 0
    for index, letter in enumerate((*text, '"')):
        if not _is_plain(letter):
            if index > start:
                yield text[start:index]
            start = index + 1


def _is_plain(letter: str) -> bool:
    if letter.isascii():
        return letter.isprintable() and letter not in '"\\'
    return unicodedata.category(letter) == "Lo"  # letters without case: 語, א, ก


def has_cases(run: str) -> bool:
    """Whether a payload may contain the run in another case."""
    return any(letter.isascii() and letter.isalpha() for letter in run)


def is_number(run: str) -> bool:
    """Whether the run may be part of a number, which JSON may write differently."""
    return bool(_NUMBER.fullmatch(run))


def needles_of(stem: str) -> tuple[str, ...]:
    """Texts that the payload of every block with this path stem contains.

    They are the names between the dots of the stem.  The first begins a turn and the last ends a call id or a name, so
    there the payload has a quotation mark.  Names that could be JSON values other than strings are left out.
    """
    inner = stem.rpartition(".")[0] if stem.startswith(_CALL) else stem
    names = inner.partition(":")[2].split(".")
    last = len(names) - 1
    needles = {
        ('"' if index == 0 else "") + name + ('"' if index == last else "")
        for index, name in enumerate(names)
        if is_needle(name)
    }
    return tuple(sorted(needles))


def is_needle(piece: str) -> bool:
    """Whether a payload contains this piece of a path stem in the same form."""
    return bool(_NAME.fullmatch(piece)) and not is_number(piece)
