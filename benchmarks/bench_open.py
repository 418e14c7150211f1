"""Measures opening a timeline: only the window is read, however long the history."""

from pathlib import Path

import attrs

from benchmarks.figures import Meter
from benchmarks.logs import NAME, fill
from blocks import LogWindow, TimelineId
from persistence import DuckDBStore
from timeline import Timeline

RATIO_MAX = 1.5
WINDOW = 300
ROUNDS = 30


class CountingStore(DuckDBStore):
    """A store that counts the events it returns."""

    events = 0

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        window = super().load_window(timeline_id)
        self.events += len(window.events)  # includes the compaction, which follows its cut
        return window


@attrs.frozen
class Logs:
    """Two files that differ only in the length of their history."""

    short: Path
    long: Path


def logs(folder: Path) -> Logs:
    found = Logs(folder / "short.duckdb", folder / "long.duckdb")
    for path, folded in ((found.short, 1_000), (found.long, 100_000)):
        with DuckDBStore(path) as store:
            fill(store, folded, WINDOW)
    return found


def opened(store: DuckDBStore) -> Timeline:
    return Timeline.open(NAME, store=store, counter="estimate")


def test_opening_a_timeline_reads_its_window(meter: Meter, tmp_path: Path) -> None:
    files = logs(tmp_path)
    with CountingStore(files.long) as long, DuckDBStore(files.short) as short:
        timeline = opened(long)
        assert long.events == long.head(NAME) - 100_000 <= WINDOW + 5
        assert len(timeline.view.entries) == long.events - 1
        sample = meter.compare(opened, opened, lambda: (long, short), rounds=ROUNDS)
    meter.note(
        f"open timeline, {WINDOW} blocks in the window",
        "100,000 folded",
        sample,
        against="1,000 folded",
        target=f"<= {RATIO_MAX}",
    )
    assert sample.ratio <= RATIO_MAX


def cold(path: Path) -> None:
    with DuckDBStore(path) as store:
        opened(store)


def test_opening_the_file_as_well(meter: Meter, tmp_path: Path) -> None:
    files = logs(tmp_path)
    sample = meter.compare(cold, cold, lambda: (files.long, files.short), rounds=10)
    meter.note("open file and timeline, close", "100,000 folded", sample, against="1,000 folded")
