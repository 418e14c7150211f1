"""What any version has stored, every later one reads: `formats/` only ever grows. (Nothing was released with files of
formats 1 to 3.)

    summary-N.jsonl.gz   the log of a replay with compactions, written when summaries had form N
    file-N.duckdb.gz     the DuckDB file of such a replay, in the file's format N
    file-N.sqlite.gz     the same in SQLite

When a shape changes, `test_this_version_writes_the_newest_form` fails: give the old shape an upcaster in
`blocks/_codec.py` and add a log of the new one, with `foldline export --hidden` and `gzip`.
"""

import gzip
from contextlib import closing
from pathlib import Path

import pytest

from blocks import OpaqueEvent, RangeCompacted, TimelineId, decode_event, encode_event
from persistence import MemoryStore, open_store, verify
from persistence.sessions import exported_events, read_session
from tests._builders import Clock, Ids, open_timeline
from tests._table import for_each

FORMATS = Path(__file__).parent / "formats"
LOGS = sorted(FORMATS.glob("summary-*.jsonl.gz"))
FILES = sorted(FORMATS.glob("file-*.gz"))
NAME = TimelineId("invoice-service")


def opened(log: list[bytes]) -> MemoryStore:
    store = MemoryStore()
    store.append_bytes(NAME, log, expected_version=0)
    return store


@for_each("path", LOGS, ids=lambda path: path.name)
def test_a_log_of_any_version_is_understood_and_goes_on(path: Path) -> None:
    log = exported_events(str(path))
    events = [decode_event(data) for data in log]
    assert not [event for event in events if isinstance(event, OpaqueEvent)]
    assert sum(isinstance(event, RangeCompacted) for event in events) > 3
    store = opened(log)
    assert verify(store).ok
    timeline = open_timeline(str(NAME), store=store, window=12_000, clock=Clock(9e9), ids=Ids("n"))
    before = timeline.render()
    summaries = [e for _, e in timeline.events() if isinstance(e, RangeCompacted)]
    timeline.user("And now?")
    timeline.compact()
    after = [e for _, e in timeline.events() if isinstance(e, RangeCompacted)]
    assert len(after) == len(summaries) + 1
    assert after[-1].summary.digest.blocks > summaries[-1].summary.digest.blocks
    timeline.expand()
    reopened = open_timeline(str(NAME), store=store, window=12_000, clock=Clock(9e9), ids=Ids("m"))
    assert before.tokens
    assert reopened.render().messages


@for_each("path", LOGS, ids=lambda path: path.name)
def test_an_export_of_any_version_is_a_session(path: Path) -> None:
    session = read_session(path)
    assert (len(session.calls), session.notices) == (63, ())


def test_this_version_writes_the_newest_form() -> None:
    for data in exported_events(str(LOGS[-1])):
        assert encode_event(decode_event(data)) == data


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_any_version_opens_and_goes_on(path: Path, tmp_path: Path) -> None:
    kind = path.stem.rpartition(".")[2]
    file = tmp_path / f"old.{kind}"
    file.write_bytes(gzip.decompress(path.read_bytes()))
    url = f"{kind}:///{file}"
    assert verify(url).ok
    with closing(open_store(url)) as store:
        held = store.read_bytes(NAME)
        with open_timeline(str(NAME), store=store, window=12_000) as timeline:
            timeline.user("And now?")
            assert timeline.render().messages
    with closing(open_store(url)) as store:
        assert list(store.read_bytes(NAME, limit=len(held))) == list(held)
        assert store.head(NAME) > len(held)
    assert verify(url).ok
