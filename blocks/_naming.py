"""Logical paths: names of blocks for models and people, given in the order of the log.

    ar:<turn>.user.prompt              a block by its kind; .2, .3 for further ones of the turn
    ar:<turn>.assistant.completion.2
    tc:<turn>.<call id>.call           a tool call and its result, by the id of the call
    tc:<turn>.<call id>.result
    su:<turn>.conv.range.summary       a summary
    fi:<turn>.<name>                   a file that came with the user's text
    at:<version>.<turn>...             a block whose number in its turn is not certain
    v<version>                         any block: its label, the shortest path; shown as `[v57]`

A path is computed and never stored, so it costs nothing and cannot contradict the log. It names the same block
forever.

The blocks of a turn are counted from its first block until another turn begins.  A block that comes later (a late
result, a block of a turn that is resumed) has a path with its version.  So does a block that cannot be distinguished
with certainty from an older one: a compaction only keeps a filter of the folded names, which reports a few new names
as old.  A path with a number is therefore only given if the count over the whole log is known, and counting finds the
same block there whatever is appended later.

`Sources` is a second filter, of the foreign ids in the folded part of a log.
"""

import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from typing import Final, Self

from blocks._block import Block, RangeSummary, ToolCall, ToolResult, UserAttachment, tag_of
from blocks._fold_state import FoldState, Named
from blocks._ids import TurnId

_AT: Final = re.compile(r"at:([1-9][0-9]{0,14})\.")
_LABEL: Final = re.compile(r"\[?v([1-9][0-9]{0,14})\]?")
_NUMBERED: Final = re.compile(r"(.+)\.([1-9][0-9]{0,14})", re.DOTALL)
_NUMBER: Final = re.compile(r"t([1-9][0-9]{0,14})")
_CALLS: Final = "tc:"
_FILES: Final = "fi:"
_FILTER_BYTES: Final = 1024
"""With 1,000 names in it, a filter of this size seems to contain 20 of 1,000 others."""
_NUMBERS: Final = Struct(">6H")
_UNKNOWN: Final = 0
"""Instead of a count that is not known."""


def path_stem(block: Block) -> str:
    """The path of a block without its number: that of the first such block of its turn."""
    match block:
        case ToolCall():
            return f"tc:{block.turn}.{block.call_id}.call"
        case ToolResult():
            return f"tc:{block.turn}.{block.call_id}.result"
        case UserAttachment():
            return f"fi:{block.turn}.{block.name}"
        case RangeSummary():
            return f"su:{block.turn}.conv.range.summary"
        case _:
            return f"ar:{block.turn}.{tag_of(block)}"


def path_of(block: Block, ordinal: int = 1) -> str:
    """The path of the `ordinal`-th block (from 1) with this stem."""
    stem = path_stem(block)
    return stem if ordinal == 1 else f"{stem}.{ordinal}"


def path_at(block: Block, version: int) -> str:
    """The path of this block by its version; every block has such a path, besides the one with its number."""
    return f"at:{version}.{path_stem(block)[len('ar:') :]}"


def label_of(version: int) -> str:
    """The shortest path of the block of this version."""
    return f"v{version}"


def version_in(path: str) -> int:
    """The version that a path or a label (with or without brackets) names; 0: none."""
    match = _AT.match(path) or _LABEL.fullmatch(path)
    return int(match[1]) if match else 0


def is_label(path: str) -> bool:
    """Whether a path is only a version."""
    return _LABEL.fullmatch(path) is not None


def numbered(path: str) -> tuple[str, int]:
    """A path without the number at its end, and the number; 1 if there is none."""
    match = _NUMBERED.fullmatch(path) if path[-1:].isdigit() else None
    return (match[1], int(match[2])) if match else (path, 1)


def turn_in(path: str) -> str:
    """The turn in the path of a counted block."""
    return path.partition(":")[2].partition(".")[0]


# Naming.


class _Filter:
    """A filter of names: it contains all names that were added, and a few others by chance."""

    def __init__(self, encoded: str = "") -> None:
        self._bits = bytearray(b64decode(encoded, validate=True) or _FILTER_BYTES)
        if len(self._bits) != _FILTER_BYTES:
            raise ValueError(encoded)

    def add(self, name: str) -> None:
        _put(self._bits, _places(name, _NUMBERS, _FILTER_BYTES))

    def __contains__(self, name: str) -> bool:
        return _has(self._bits, _places(name, _NUMBERS, _FILTER_BYTES))

    def encoded(self) -> str:
        return b64encode(self._bits).decode() if any(self._bits) else ""

    @classmethod
    def of(cls, encoded: str | None) -> Self | None:
        """The filter with this encoding; None if it is None or invalid, because then the names are not known."""
        try:
            return None if encoded is None else cls(encoded)
        except ValueError:
            return None


def _places(name: str, numbers: Struct, size: int) -> list[int]:
    """The bits of a name in a filter of so many bytes; `numbers` is the part of its hash that they are made of."""
    digest = sha256(name.encode(errors="surrogatepass")).digest()
    return [number % (8 * size) for number in numbers.unpack_from(digest)]


def _put(bits: bytearray, places: list[int]) -> None:
    for place in places:
        bits[place >> 3] |= 1 << (place & 7)


def _has(bits: bytearray, places: list[int]) -> bool:
    return all(bits[place >> 3] & 1 << (place & 7) for place in places)


class Naming:
    """Computes paths, and knows which are free; it must be given every block of a log, or of the part after a cut, in
    order."""

    __slots__ = ("_calls", "_is_counted", "_ordinals", "_since", "_turn", "_turns", "last_turn")

    def __init__(self, state: FoldState | None = None, since: int = 0) -> None:
        """Begin with an empty log, or with the state at a cut; `since` is the version of the compaction."""
        before = state or FoldState(named=Named())
        names = before.named or _older(before)
        self.last_turn = names.last_turn
        """The largest n of turns t<n>."""
        self._turn = names.turn
        self._is_counted = names.is_counted
        self._turns = _Filter.of(names.turns)
        self._calls = _Filter.of(names.calls)
        self._ordinals = dict(before.ordinals)
        self._since = since

    def path(self, block: Block, version: int) -> str:
        """The path of the next block."""
        self.meet(block.turn, is_result=isinstance(block, ToolResult))
        if self.is_counted(block.turn) and not isinstance(block, RangeSummary):
            stem = path_stem(block)
            ordinal = self._count(stem, version)
            if ordinal and not self._is_taken(stem, ordinal):
                return stem if ordinal == 1 else f"{stem}.{ordinal}"
        return path_at(block, version)

    def skip(self, blocks: Iterable[tuple[int, Block]]) -> None:
        """As `path` for each of these blocks, but without their paths. Counts end with their turn, so blocks before the
        last change of turn are not counted."""
        last: list[tuple[int, Block]] = []
        for version, block in blocks:
            before = self._turn
            self.meet(block.turn, is_result=isinstance(block, ToolResult))
            if self._turn != before:
                last.clear()
            last.append((version, block))
        for version, block in last:
            self.path(block, version)

    def meet(self, turn: TurnId, *, is_result: bool) -> None:
        """Note a block of a turn.  A late result belongs to the turn of its call, but does not make that turn the
        current one again."""
        if turn == self._turn:
            return
        is_new = self._see(turn)
        if not is_result or not self._turn:
            self._turn, self._is_counted = turn, is_new and "." not in turn
            self._ordinals, self._calls = {}, _Filter()

    def is_counted(self, turn: TurnId) -> bool:
        """Whether the blocks of this turn are counted now."""
        return turn == self._turn and self._is_counted

    def named(self) -> Named:
        """The state that the next compaction has to store, after its folded blocks were named; see `cut`."""
        return Named(
            turn=self._turn,
            is_counted=self._is_counted,
            last_turn=self.last_turn,
            turns=None if self._turns is None else self._turns.encoded(),
            calls=None if self._calls is None else self._calls.encoded(),
        )

    def cut(self, rest: Iterable[tuple[int, Block]]) -> dict[str, int]:
        """The counts of a turn that continues after a cut; `rest` are the blocks from the cut on.

        Of calls, results and files, only those of these blocks are included, because a turn may have any number of them.
        The others are added to the filter.
        """
        again: dict[str, int] = {}
        for version, block in rest:
            if block.turn == self._turn:
                again.setdefault(path_stem(block), version)
            elif not isinstance(block, ToolResult):
                break
        counts = self._ordinals if again or self._is_counted else {}
        counts_left = {s: n for s, n in counts.items() if s in again or not self._may_filter(s)}
        doubtful = (
            s for s, version in again.items() if s not in counts and self._doubts(s, version)
        )
        if self._calls is not None:
            for stem in counts.keys() - counts_left.keys():
                self._calls.add(_filtered(stem))
        return {**counts_left, **dict.fromkeys(doubtful, _UNKNOWN)}

    # Which paths are free.

    def _see(self, turn: TurnId) -> bool:
        """Note a turn; return whether it is new."""
        if number := _NUMBER.fullmatch(turn):
            before, self.last_turn = self.last_turn, max(self.last_turn, int(number[1]))
            return self.last_turn > before
        if not turn or self._turns is None or turn in self._turns:
            return False
        self._turns.add(turn)
        return True

    def _count(self, stem: str, version: int) -> int:
        before = self._ordinals.get(stem)
        if before is None:
            before = 0
            if self._doubts(stem, version):
                self._ordinals[stem] = _UNKNOWN
                return _UNKNOWN
        elif before == _UNKNOWN:
            return _UNKNOWN
        self._ordinals[stem] = before + 1
        return before + 1

    def _doubts(self, stem: str, version: int) -> bool:
        """Whether a path that was not counted since the cut may have been given before it."""
        if not self._may_filter(stem) or version < self._since:
            return False
        return self._calls is None or _filtered(stem) in self._calls

    def _may_filter(self, stem: str) -> bool:
        """Whether the filter holds such names; one of an older version, which is not known, has no files."""
        return stem.startswith(_CALLS) or (stem.startswith(_FILES) and self._calls is not None)

    def _is_taken(self, stem: str, ordinal: int) -> bool:
        """Whether the path is already taken: a file named `a.2` and the second file `a` would have the same path."""
        folded = self._calls if stem.startswith(_FILES) and self._calls else ()
        if ordinal > 1:
            path = f"{stem}.{ordinal}"
            return path in self._ordinals or path in folded
        base, number = numbered(stem)
        return number > 1 and (self._ordinals.get(base, 0) >= number or base in folded)


def _older(state: FoldState) -> Named:
    """The names noted by a compaction of an older version: only its turn, and how many turns there were."""
    number = _NUMBER.fullmatch(state.turn)
    last = max(state.turns, int(number[1]) if number else 0)
    is_newest = number is not None and int(number[1]) == state.turns
    return Named(turn=state.turn, is_counted=is_newest, last_turn=last, turns=None, calls=None)


def _filtered(stem: str) -> str:
    """A name as the filter holds it: of a call and its result, their common beginning."""
    return stem.rpartition(".")[0] if stem.startswith(_CALLS) else stem


# Foreign ids.


_GENERATION_NAMES: Final = 256
"""Names in one generation."""
_GENERATION_BYTES: Final = 448
"""Bytes of one generation: of 1,000 names that are not in it, it seems to contain one."""
_SOURCE_NUMBERS: Final = Struct(">8H")
GENERATIONS_MAX: Final = 16
"""So the newest 4,096 names are remembered; of 100 others, the filter seems to contain two."""


class Sources:
    """A filter of names: it contains all names that were added recently, and a few others by chance."""

    __slots__ = ("_count", "_generations")

    def __init__(self, encoded: str = "") -> None:
        """Read the text that `encoded` returned; any other text gives an empty filter."""
        count, _, rest = encoded.partition(":")
        try:
            filters = [
                bytearray(b64decode(bits, validate=True)) for bits in rest.split(":") if bits
            ]
            self._count = int(count) if filters else _GENERATION_NAMES
        except ValueError:
            filters, self._count = [], _GENERATION_NAMES
        whole = (bits for bits in filters if len(bits) == _GENERATION_BYTES)
        self._generations = deque(whole, maxlen=GENERATIONS_MAX)

    def add(self, names: Iterable[str]) -> None:
        """Add names; the oldest names may be removed to make room."""
        for name in names:
            places = _places(name, _SOURCE_NUMBERS, _GENERATION_BYTES)
            if self._generations and _has(self._generations[-1], places):
                continue
            if self._count >= _GENERATION_NAMES or not self._generations:
                self._generations.append(bytearray(_GENERATION_BYTES))
                self._count = 0
            self._count += 1
            _put(self._generations[-1], places)

    def __contains__(self, name: str) -> bool:
        places = _places(name, _SOURCE_NUMBERS, _GENERATION_BYTES)
        return any(_has(bits, places) for bits in self._generations)

    def encoded(self) -> str:
        """The filter as text; empty if it has no names."""
        if not self._generations:
            return ""
        return ":".join((str(self._count), *(b64encode(b).decode() for b in self._generations)))
