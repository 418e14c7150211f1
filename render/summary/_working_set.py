"""The working set: regions of the files that are being worked on, as they are now.

What the next edits need: an edit tool wants the old text exactly, and what was read ten thousand tokens ago is no longer in
the request. Of the copies of the files (see `_copies`), the regions are chosen that a next edit most likely touches. What
the request shows anyway has no place here.

    ### src/cart.py
    118→def total(cart):
    119→    return sum(item.price for item in cart)
    …
    240→def discount(cart, rate):
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple, TypeAlias

from blocks import Region, label_of
from render.summary._copies import Copy
from render.summary._files import Row, Stretch, without_number
from render.view._view import Entry

Shown: TypeAlias = Mapping[int, frozenset[str] | None]
"""The lines that a request shows of each block, by its version; None: all."""


def shown_lines(text: str) -> frozenset[str]:
    """The lines of a shortened result, without numbers."""
    return frozenset(map(without_number, text.split("\n")))


def working_set(
    copies: Mapping[str, Copy],
    visible: Shown,
    oldest: int,
    tokens_max: int,
    count: Callable[[str], int],
) -> tuple[Region, ...]:
    """The regions of these files that have room in so many tokens; `visible` is what the request shows anyway. What was
    not seen since version `oldest` is not worked on any more."""
    ranked = _ranked(copies, visible, oldest)
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


def oldest_of(entries: Sequence[Entry]) -> int:
    """The version since which a region must have been seen, by the entries of one window."""
    versions = [entry.version for entry in entries] or [0]
    return max(versions) - WINDOWS * (max(versions) - min(versions))


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


WINDOWS: Final = 2
"""A region that was not seen for so many windows is left out."""
SURROUNDINGS: Final = 20
"""Lines before and after a change that count as seen with it: about half a screen."""
OVERVIEW: Final = 60
"""A view of more lines, about a screen, is an overview: most of it is not needed. It counts as older."""
OVERVIEW_AGE: Final = 2
"""How many times as old."""
PATCHES: Final = (".patch", ".diff")
"""Endings of lists of changes: they are applied to the files that are worked on."""
GAP_MAX: Final = 8
"""So many lines that are visible elsewhere are shown again between lines that are not, so that they can be read as one."""
RUN_MIN: Final = 3
"""Fewer lines of a longer stretch are no region: they say nothing alone."""
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


def _is_shown(row: Row, visible: Shown) -> bool:
    lines = [visible.get(version, frozenset[str]()) for version in (row.seen, *row.sources)]
    return all(each is None or row.text in each for each in lines)


def _ranked(copies: Mapping[str, Copy], visible: Shown, oldest: int) -> list[_Known]:
    """The rows that are not visible, and seen or changed since version `oldest`; the most useful first."""
    now = max((row.seen for copy in copies.values() for row in _rows(copy)), default=0)
    ranked = list[tuple[int, _Known]]()
    for name, copy in copies.items():
        if is_scratch(name, copy):
            continue
        sizes = Counter(row.seen for row in _rows(copy))
        for number, stretch in enumerate(copy.stretches):
            changed = _changed_around(stretch.rows)
            for index, (row, edited) in enumerate(zip(stretch.rows, changed, strict=True)):
                if max(row.seen, edited) < oldest or _is_shown(row, visible):
                    continue
                is_overview = sizes[row.seen] > OVERVIEW
                age = (now - row.seen) * (OVERVIEW_AGE if is_overview else 1)
                known = _Known(name, number, index, row)
                ranked.append((min(age, now - edited), known))
    ranked.sort(key=itemgetter(0))
    return [known for _, known in ranked]


def is_scratch(name: str, copy: Copy) -> bool:
    """Whether a file is not being worked on: a list of changes, or a file that the agent wrote once as a whole and never
    touched again."""
    histories = {(row.seen, row.edited, row.sources) for row in _rows(copy)}
    return name.endswith(PATCHES) or (len(histories) == 1 and next(iter(histories))[1] > 0)


def _rows(copy: Copy) -> Iterator[Row]:
    return (row for stretch in copy.stretches for row in stretch.rows)


def _changed_around(rows: Sequence[Row]) -> list[int]:
    """For each row, the newest change within its surroundings; 0: none."""
    changed = [0] * len(rows)
    for index, row in enumerate(rows):
        if row.edited:
            first, end = max(index - SURROUNDINGS, 0), index + SURROUNDINGS + 1
            changed[first:end] = [max(each, row.edited) for each in changed[first:end]]
    return changed


def _regions(copies: Mapping[str, Copy], chosen: Sequence[_Known]) -> Iterator[Region]:
    """The chosen rows as regions, the file that was seen last first."""
    newest = dict[str, int]()
    places: dict[tuple[str, int], list[int]] = {}
    for file, number, place, row in chosen:
        newest[file] = max(newest.get(file, 0), row.seen)
        places.setdefault((file, number), []).append(place)
    for file, number in sorted(places, key=lambda key: (-newest[key[0]], key)):
        stretch, runs = copies[file].stretches[number], list[list[int]]()
        for place in sorted(places[file, number]):
            if runs and place - runs[-1][-1] - 1 <= GAP_MAX:
                runs[-1].append(place)
            else:
                runs.append([place])
        for run in runs:
            if run[-1] - run[0] + 1 >= min(RUN_MIN, len(stretch.rows)):
                yield from _of_run(file, copies[file].doubt, stretch, run)


def _of_run(file: str, doubt: int, stretch: Stretch, run: Sequence[int]) -> Iterator[Region]:
    """The regions of adjacent rows, from the first to the last of a run: one for each history."""
    rows = enumerate(stretch.rows[run[0] : run[-1] + 1], run[0])
    for (seen, edited, sources), group in groupby(rows, key=lambda each: each[1][1:]):
        (first, row), *others = group
        yield Region(
            file=file,
            line=stretch.line and stretch.line + first,
            text="\n".join([row.text, *(other.text for _, other in others)]),
            seen=seen,
            edited=edited,
            doubt=doubt if doubt > seen else 0,
            joins=first != run[0] and not stretch.line,
            sources=sources,
        )
