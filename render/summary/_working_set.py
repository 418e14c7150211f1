"""The working set: regions of the files that are being worked on, as they are now.

What the next edits need: an edit tool wants the old text exactly, and a line that was read ten thousand tokens ago is no
longer in the request. Copies of the files are kept (see `_copy`) from what the log shows and changes; of these, the regions
are chosen that a next edit most likely touches. What the request shows anyway has no place here.

    ### src/cart.py
    118→def total(cart):
    119→    return sum(item.price for item in cart)
    …
    240→def discount(cart, rate):
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from blocks import Region, label_of
from render.summary._copy import Copy, Row, Stretch


def working_set(
    copies: Mapping[str, Copy],
    visible: Collection[int],
    tokens_max: int,
    count: Callable[[str], int],
) -> tuple[Region, ...]:
    """The regions of these files that have room in so many tokens; `visible` are the versions of the blocks that the
    request shows as they are."""
    ranked = _ranked(copies, visible)
    characters = CHARACTERS * tokens_max
    for _ in range(TRIES):
        sizes = accumulate(len(place.row.text) + NUMBER_CHARACTERS for place in ranked)
        ranked = ranked[: sum(size <= characters for size in sizes)]
        chosen = tuple(_regions(copies, ranked))
        tokens = count(working_text(chosen)) if chosen else 0
        if tokens <= tokens_max:
            return chosen
        characters = int(characters * tokens_max / tokens * SLACK)
    return ()


def working_text(regions: Iterable[Region]) -> str:
    """The regions as they are shown; empty if there are none."""
    parts = list[str]()
    for file, group in groupby(regions, key=attrgetter("file")):
        those, doubt, after = list(group), 0, -1
        width = max(len(str(region.line + region.text.count("\n"))) for region in those)
        parts.append(f"### {file}")
        for region in those:
            lines, joined = region.text.split("\n"), region.joins or region.line == after
            if after >= 0 and not joined:
                parts.append("…")
            if region.doubt and region.doubt != doubt:
                parts.append(f"(may have changed since: [{label_of(region.doubt)}])")
            doubt = region.doubt
            numbered = (f"{n:{width}}→{line}" for n, line in enumerate(lines, region.line))
            parts += numbered if region.line else lines
            after = region.line + len(lines) if region.line else 0
    return "\n".join(parts)


# What the next edits need: what was read or changed last, first. In recorded sessions (thirty of several clients) nothing
# tells more than the age: not that a file is named in the newest messages, nor that it was changed before or how often.


SURROUNDINGS: Final = 20
"""Lines before and after a change that count as seen with it: about half a screen."""
OVERVIEW: Final = 60
"""A view of more lines, about a screen, is an overview: most of it is not needed, so it counts as older."""
OVERVIEW_AGE: Final = 2
"""How many times as old; but not its heads: imports, and the lines with which definitions begin, say what is there."""
HEADS_SHARE: Final = 0.4
"""Where more of the lines are heads, indentation does not tell what is one: prose, tables."""
_WORD: Final = re.compile(r"\w{2}")
LINES_MIN: Final = 3
"""Of a file of which not so many adjacent lines are known, nothing is shown: a search has found a word there."""
GAP_MAX: Final = 8
"""So many lines that are visible elsewhere are shown again between lines that are not, so that they can be read as one."""
CHARACTERS: Final = 4
"""Characters of a token, at most, of code with line numbers."""
NUMBER_CHARACTERS: Final = 5
TRIES: Final = 6
"""How often the regions are counted, each time with fewer rows."""
SLACK: Final = 0.98


class _Known(NamedTuple):
    """A row with its place: the file, and the indices of the stretch in its copy and of the row in it."""

    file: str
    stretch: int
    place: int
    row: Row


def _ranked(copies: Mapping[str, Copy], visible: Collection[int]) -> list[_Known]:
    """The rows that are not visible, the most useful first."""
    now = max((row.seen for copy in copies.values() for row in _rows(copy)), default=0)
    ranked = list[tuple[int, _Known]]()
    for name, copy in copies.items():
        if all(len(stretch.rows) < LINES_MIN for stretch in copy.stretches):
            continue
        sizes = Counter(row.seen for row in _rows(copy))
        for number, stretch in enumerate(copy.stretches):
            changed, heads = _changed_around(stretch.rows), _heads(stretch.rows)
            for index, (row, edited) in enumerate(zip(stretch.rows, changed, strict=True)):
                age = now - row.seen
                if sizes[row.seen] > OVERVIEW and index not in heads:
                    age *= OVERVIEW_AGE
                if not _is_visible(row, visible):
                    ranked.append((min(age, now - edited), _Known(name, number, index, row)))
    ranked.sort(key=itemgetter(0))
    return [known for _, known in ranked]


def _is_visible(row: Row, visible: Collection[int]) -> bool:
    """Whether one visible block shows the row as a whole."""
    source, *others = row.sources or (row.seen,)
    return source in visible and not others


def _rows(copy: Copy) -> Iterator[Row]:
    return (row for stretch in copy.stretches for row in stretch.rows)


def _heads(rows: Sequence[Row]) -> set[int]:
    """The indices of the rows that stand at the left edge, or open an indented block there."""
    depths = [len(row.text) - len(row.text.lstrip()) if row.text.strip() else -1 for row in rows]
    edges = sorted({depth for depth in depths if depth >= 0})[:2]
    below, heads = -1, set[int]()
    for index in range(len(rows) - 1, -1, -1):
        depth = depths[index]
        if depth < 0:
            continue
        if _WORD.search(rows[index].text) and (
            depth == edges[0] or (depth in edges and below > depth)
        ):
            heads.add(index)
        below = depth
    return heads if len(heads) <= HEADS_SHARE * len(rows) else set()


def _changed_around(rows: Sequence[Row]) -> list[int]:
    """For each row, the newest change within its surroundings; 0: none."""
    changed = [0] * len(rows)
    for index, row in enumerate(rows):
        if row.edited:
            for place in range(
                max(index - SURROUNDINGS, 0), min(index + SURROUNDINGS + 1, len(rows))
            ):
                changed[place] = max(changed[place], row.edited)
    return changed


def _regions(copies: Mapping[str, Copy], chosen: Sequence[_Known]) -> Iterator[Region]:
    """The chosen rows as regions, the file that was seen last first."""
    files: dict[str, dict[int, list[int]]] = {}
    newest: dict[str, int] = {}
    for known in chosen:
        files.setdefault(known.file, {}).setdefault(known.stretch, []).append(known.place)
        newest[known.file] = max(newest.get(known.file, 0), known.row.seen)
    for file in sorted(files, key=lambda file: (-newest[file], file)):
        copy = copies[file]
        for number, indices in sorted(files[file].items()):
            for first, last in _runs(indices):
                yield from _of_run(file, copy, copy.stretches[number], range(first, last + 1))


def _runs(indices: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each run of indices, across small gaps."""
    run: tuple[int, int] | None = None
    for index in sorted(indices):
        if run and index - run[1] - 1 <= GAP_MAX:
            run = run[0], index
        else:
            if run:
                yield run
            run = index, index
    if run:
        yield run


def _of_run(file: str, copy: Copy, stretch: Stretch, run: range) -> Iterator[Region]:
    """The regions of adjacent rows: one for each history."""
    for history, indices in groupby(run, key=lambda index: stretch.rows[index][1:]):
        first, *_ = places = list(indices)
        seen, edited, sources = history
        yield Region(
            file=file,
            line=stretch.line and stretch.line + first,
            text="\n".join(stretch.rows[index].text for index in places),
            seen=seen,
            edited=edited,
            doubt=copy.doubt if copy.doubt > seen else 0,
            joins=first != run.start and not stretch.line,
            sources=sources,
        )
