"""Measures a durable append of a round, against the bare database with the same bytes.

Two baselines: an INSERT in autocommit, and the appender, which is what the store itself uses. Both
write one column of a table without keys; the store writes four, numbers them and keeps its heads.
"""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import duckdb
import pytest

from benchmarks.figures import Meter
from benchmarks.logs import NAME, fill
from benchmarks.material import Writer, appended
from blocks import Block, BlockAppended, encode_event
from persistence import DuckDBStore
from timeline import Timeline

RATIO_MAX = 1.3
ROUNDS = 150
SIZES = (1_000, 10_000, 100_000)


class Bare:
    """A DuckDB file with one table that has one column."""

    def __init__(self, path: Path) -> None:
        self.connection = duckdb.connect(str(path), config={"threads": 1})
        self.connection.execute("CREATE TABLE log(payload VARCHAR)")
        self.appender = self.connection.cursor().appender("log")

    def insert(self, texts: Sequence[str]) -> None:
        """Insert with one statement and one commit."""
        rows = ", ".join(["(?)"] * len(texts))
        self.connection.execute("INSERT INTO log VALUES " + rows, list(texts))  # noqa: S608 -- (?)

    def append(self, texts: Sequence[str]) -> None:
        """Append with one flush and one commit."""
        self.appender.append_rows([(text,) for text in texts])
        self.appender.flush()


@pytest.mark.parametrize("blocks", SIZES)
@pytest.mark.parametrize("baseline", ["insert", "append"])
def test_a_durable_append_is_nearly_a_bare_commit(
    meter: Meter, tmp_path: Path, blocks: int, baseline: str
) -> None:
    """The store's own append: encode, check the version, commit, keep the heads."""
    writer, versions = Writer(seed=blocks), count(1)
    bare, at = Bare(tmp_path / "bare.duckdb"), [0]

    def prepare() -> tuple[list[BlockAppended], list[str]]:
        events = list(appended(writer.round(), next(versions)))
        return events, [encode_event(event).decode() for event in events]

    with DuckDBStore(tmp_path / "store.duckdb") as store:
        at[0] = fill(store, 0, blocks)

        def append(events: Sequence[BlockAppended]) -> None:
            at[0] = store.append(NAME, events, expected_version=at[0])

        sample = meter.compare(append, getattr(bare, baseline), prepare, rounds=ROUNDS)
    is_insert = baseline == "insert"
    against, target = ("bare INSERT", f"<= {RATIO_MAX}") if is_insert else ("bare appender", "")
    meter.note("append + commit", f"{blocks:,} before", sample, against=against, target=target)
    assert not is_insert or sample.ratio <= RATIO_MAX


@pytest.mark.parametrize("blocks", SIZES)
def test_what_a_timeline_adds(meter: Meter, tmp_path: Path, blocks: int) -> None:
    """The same through `Timeline.append`, which also checks and folds the blocks."""
    writer, versions = Writer(seed=blocks), count(1)
    bare = Bare(tmp_path / "bare.duckdb")

    def prepare() -> tuple[list[Block], list[str]]:
        found = writer.round()
        return found, [encode_event(e).decode() for e in appended(found, next(versions))]

    with DuckDBStore(tmp_path / "store.duckdb") as store:
        fill(store, 0, blocks)
        timeline = Timeline.open("appended", store=store, counter="o200k")
        sample = meter.compare(
            lambda found: timeline.append(*found), bare.insert, prepare, rounds=ROUNDS
        )
    meter.note("Timeline.append", f"{blocks:,} before", sample, against="bare INSERT")
