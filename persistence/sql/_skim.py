"""Reads a small part of a timeline in one query, without transferring the events in between."""

from collections.abc import Callable, Collection, Iterator, Sequence

import attrs

from blocks import TimelineId, kind_of
from persistence._store import Skim
from persistence.sql._database import Rows
from persistence.sql._rows import SKIM, VERSION_MAX, column, events_of


@attrs.frozen
class Skimmer:
    """Reads small parts of timelines, with queries by `ask`; see `EventStore.skim`."""

    ask: Callable[[str, Sequence[object]], Rows]
    first: int
    kinds: Collection[str]

    def skimmed(self, timelines: Sequence[TimelineId]) -> Iterator[tuple[TimelineId, Skim]]:
        """The parts of the timelines, one query for each."""
        kinds = [column(kind) for kind in self.kinds]
        statement = SKIM.format(kinds=", ".join(["?"] * len(kinds)) or "NULL")
        first = min(self.first, VERSION_MAX)
        for name in timelines:
            yield name, self._skim(name, self.ask(statement, [name, name, first, name, *kinds]))

    def _skim(self, name: TimelineId, rows: Rows) -> Skim:
        first = [(seq, payload) for seq, payload, is_first, _ in rows if is_first]
        window = [row for row in rows if not row[2]]
        fold = window[0][3] if window else None
        events = events_of(name, [(seq, payload) for seq, payload, *_ in window])
        return Skim(
            first=events_of(name, first),
            compaction=next((each for each in events if each[0] == fold), None),
            window=[each for each in events if kind_of(each[1]) in self.kinds],
        )
