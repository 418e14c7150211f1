"""Reads a small part of many timelines of a DuckDB file: one query for each batch of neighbouring timelines."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, TypeVar

import attrs

from blocks import Recorded, TimelineId, kind_of
from persistence._store import Skim
from persistence.duckdb._heads import Known
from persistence.duckdb._large_events import Row
from persistence.duckdb._reader import Reader

_Item = TypeVar("_Item")

BATCH: Final = 256
"""Timelines in one query."""
SKIM: Final = """
WITH windows AS (SELECT unnest($1) AS timeline, unnest($2) AS cut, unnest($3) AS fold, unnest($4) AS last)
SELECT timeline, seq, payload FROM events JOIN windows USING (timeline)
WHERE timeline BETWEEN $5 AND $6 AND seq <= last
  AND (seq <= $7 OR seq = fold OR (seq >= cut AND list_contains($8, json_extract_string(payload, '$.event'))))
ORDER BY timeline, seq
"""


@attrs.frozen
class Skimmer:
    """Reads small parts of timelines; see `EventStore.skim`."""

    reader: Reader
    first: int
    kinds: Collection[str]

    def skimmed(self, timelines: Sequence[TimelineId]) -> Iterator[tuple[TimelineId, Skim]]:
        """The parts of all timelines, ordered by their number in the file; one batch at a time is in memory."""
        known = [each for batch in _batches(timelines) for each in self.reader.all_known(batch)]
        for batch in _batches(sorted(known, key=_number)):
            rows = self._rows([each for each in batch if each.head.version])
            for each in batch:
                yield each.name, self._skim(each, rows.get(each.number, ()))

    def _rows(self, known: Sequence[Known]) -> dict[int, list[Row]]:
        if not known:
            return {}
        numbers = [each.number for each in known]
        given = [
            numbers,
            [each.head.window_start() for each in known],
            [_fold(each) for each in known],
            [each.head.version for each in known],
            min(numbers),
            max(numbers),
            self.first,
            list(self.kinds),
        ]
        found: dict[int, list[Row]] = {}
        with self.reader.cursor() as cursor:
            for number, seq, payload in cursor.execute(SKIM, given).fetchall():
                found.setdefault(number, []).append((seq, payload))
        return found

    def _skim(self, known: Known, rows: Sequence[Row]) -> Skim:
        events = self.reader.decoded(known, rows)
        start, fold = known.head.window_start(), _fold(known)
        return Skim(
            first=[each for each in events if each[0] <= self.first],
            compaction=next((each for each in events if each[0] == fold), None),
            window=[each for each in events if each[0] >= start and self._is_asked_for(each)],
        )

    def _is_asked_for(self, recorded: Recorded) -> bool:
        return kind_of(recorded[1]) in self.kinds


def _batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _number(known: Known) -> int:
    return known.number


def _fold(known: Known) -> int:
    """The version of the compaction in force; 0 if there is none."""
    mark = known.head.in_force()
    return mark.version if mark else 0
