"""The DuckDB store keeps the contract, and what only a file can promise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import msgspec
import pytest

from blocks import (
    BlockId,
    ClosedError,
    DamagedStoreError,
    Event,
    MisuseError,
    StoreError,
    StoreLockedError,
    TimelineId,
    TurnId,
    UserPrompt,
    VersionConflictError,
    encode_event,
)
from persistence import DuckDBStore, verify
from persistence._log import store_event
from persistence.duckdb._writer import Append
from persistence.testing import StoreContract
from tests.persistence.contract import T, U, compacted, expanded, forked, many, prompt, versions


class TestDuckDBStore(StoreContract):
    """With the `store` of this folder."""


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )


DIE_WITH_A_WAL = """
import os, sys
from blocks import BlockAppended, UserPrompt
from persistence import DuckDBStore, verify
store = DuckDBStore(sys.argv[1])
for n in range(50):
    block = UserPrompt(id=f"b{n}", turn="t1", text="x" * 300)
    store.append("t", [BlockAppended(id=f"e{n}", at=0.0, block=block)], expected_version=n)
os._exit(0)
"""


@pytest.fixture
def died(path: Path) -> Path:
    """A store with 50 events whose process ended without closing it."""
    ended = run(DIE_WITH_A_WAL, path)
    assert ended.returncode == 0, ended.stderr
    return path


def wal(path: Path) -> Path:
    return path.with_name(path.name + ".wal")


# ---------------------------------------------------------------- reopening


def test_a_reopened_store_is_the_same_store(path: Path) -> None:
    log: list[Event] = [*many(5), compacted("c1", cut=3), compacted("c2", cut=5), expanded("x", 7)]
    with DuckDBStore(path) as store:
        store.append(T, log, expected_version=0)
        store.fork(T, U, forked(T, 6), at=6)
        before = store.load_window(T), store.load_window(U), store.list()
    with DuckDBStore(path) as store:
        assert (store.load_window(T), store.load_window(U), store.list()) == before
        assert store.append(T, [prompt("next")], expected_version=8) == 9
        assert store.append(T, [prompt("next")], expected_version=8) == 9, "still known as a retry"


def test_after_close_one_file_holds_everything(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, many(3), expected_version=0)
        assert wal(path).exists()
    assert not wal(path).exists()


def test_large_appends_leave_no_long_log_to_small_ones(path: Path) -> None:
    """Left to itself DuckDB would let 16 MB gather, and then hold up whoever commits next, however little."""
    with DuckDBStore(path) as store:
        for version in range(45):
            block = UserPrompt(id=BlockId(f"b{version}"), turn=TurnId("t1"), text="x" * 300_000)
            event = msgspec.structs.replace(prompt(str(version)), block=block)
            store.append(T, [event], expected_version=version)
        assert 0 < wal(path).stat().st_size < 8_500_000
    with DuckDBStore(path) as store:
        assert store.head(T) == 45


def test_a_process_that_never_closed_lost_nothing(died: Path) -> None:
    assert wal(died).exists()
    with DuckDBStore(died) as store:
        assert store.head(TimelineId("t")) == 50


def test_the_stored_bytes_are_those_of_the_codec_and_a_fork_copies_them(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, [prompt("a"), prompt("b")], expected_version=0)
        store.fork(T, U, forked(T, 2), at=2)
    with duckdb.connect(str(path)) as connection:
        rows = connection.execute("SELECT payload FROM log ORDER BY timeline, version").fetchall()
    texts = [encode_event(event).decode() for event in (prompt("a"), prompt("b"))]
    assert [text for (text,) in rows] == [*texts, encode_event(forked(T, 2)).decode(), *texts]


def test_a_file_is_as_large_as_its_blocks_plus_little(path: Path) -> None:
    words = [os.urandom(6).hex() for _ in range(300)]
    events = [prompt(" ".join(words[n % 97 : n % 97 + 60]) + str(n)) for n in range(2000)]
    with DuckDBStore(path) as store:
        for first in range(0, 2000, 200):
            store.append(T, events[first : first + 200], expected_version=first)
    content = sum(len(encode_event(event)) for event in events)
    assert path.stat().st_size <= 1.3 * content + 100 * len(events)


def test_duckdb_1_5_can_read_the_file(path: Path) -> None:
    DuckDBStore(path).close()
    with duckdb.connect(str(path)) as connection:
        [(version,)] = connection.execute(
            "SELECT tags['storage_version'] FROM duckdb_databases() WHERE NOT internal"
        ).fetchall()
    assert version == "v1.5.0+"


def test_the_window_reads_nothing_older_than_the_cut(path: Path) -> None:
    """Proven by damage: what lies before the cut may be unreadable."""
    with DuckDBStore(path) as store:
        store.append(T, [*many(6), compacted("c", cut=5)], expected_version=0)
    with duckdb.connect(str(path)) as connection:
        connection.execute("""UPDATE events SET payload = '"rot"' WHERE seq < 5""")
    with DuckDBStore(path) as store:
        assert versions(store.load_window(T).events) == [5, 6, 7]
        with pytest.raises(DamagedStoreError, match=r"event 1 .*verify"):
            store.read(T)


# ---------------------------------------------------------------- one process, one owner


def test_a_second_process_is_told_who_holds_the_file_and_what_to_do(
    store: DuckDBStore, path: Path
) -> None:
    code = "import sys; from persistence import DuckDBStore; DuckDBStore(sys.argv[1])"
    refused = run(code, path)
    assert "StoreLockedError" in refused.stderr
    assert f"open in process {os.getpid()}" in refused.stderr
    assert (
        "to read it meanwhile: `foldline list`, `show` and the other commands that only"
        in refused.stderr
    )
    store.append(T, many(1), expected_version=0)


def test_opening_twice_in_one_process_says_so(store: DuckDBStore, path: Path) -> None:
    with pytest.raises(StoreLockedError, match="already open in this process; share"):
        DuckDBStore(path)
    store.append(T, many(1), expected_version=0)


def test_another_program_on_the_file_is_named_too(path: Path) -> None:
    DuckDBStore(path).close()
    code = """if True:
        import duckdb, sys
        connection = duckdb.connect(sys.argv[1])
        print("open", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StoreLockedError, match=f"PID {other.pid}"):
            DuckDBStore(path)
        other.communicate()
    DuckDBStore(path).close()


FORK = """
import os, sys
from blocks import BlockAppended, ClosedError, UserPrompt
from persistence import DuckDBStore, verify
store = DuckDBStore(sys.argv[1])
def prompt(name):
    return BlockAppended(id=name, at=0.0, block=UserPrompt(id="b", turn="t1", text="x"))
store.append("t", [prompt("1")], expected_version=0)
if (child := os.fork()) == 0:
    refused = 0
    for use in (
        lambda: store.append("t", [prompt("2")], expected_version=1),
        lambda: store.load_window("t"),
        lambda: store.head("t"),
        lambda: store.list(),
    ):
        try:
            use()
        except ClosedError as error:
            refused += "forked" in str(error)
    store.close()
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
assert store.append("t", [prompt("2")], expected_version=1) == 2
store.close()
DuckDBStore(sys.argv[1]).close()
"""


def test_a_forked_child_is_refused_and_harms_nothing(path: Path) -> None:
    ended = run(FORK, path)
    assert ended.returncode == 0, ended.stderr


def test_a_closed_store_may_be_opened_by_anybody(path: Path) -> None:
    DuckDBStore(path).close()
    assert run("import sys, duckdb; duckdb.connect(sys.argv[1])", path).returncode == 0


# ---------------------------------------------------------------- damage


def test_a_missing_write_ahead_log_is_noticed(died: Path) -> None:
    wal(died).unlink()
    with pytest.raises(DamagedStoreError, match=r"has 0 events but 50 .*restore .*\.wal"):
        DuckDBStore(died)
    died.with_name(died.name + ".lock").unlink()
    with pytest.raises(DamagedStoreError, match=r"has no write-ahead log"):
        DuckDBStore(died)


def test_a_write_ahead_log_cut_short_is_noticed(died: Path) -> None:
    os.truncate(wal(died), wal(died).stat().st_size - 10)
    with pytest.raises(DamagedStoreError, match="49 events but 50"):
        DuckDBStore(died)


def test_an_older_copy_of_the_file_is_noticed(path: Path, tmp_path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, many(3), expected_version=0)
    shutil.copy(path, tmp_path / "old")
    with DuckDBStore(path) as store:
        store.append(T, many(3, first=4), expected_version=3)
    shutil.copy(tmp_path / "old", path)
    with pytest.raises(DamagedStoreError, match="3 events but 6"):
        DuckDBStore(path)


def test_a_deleted_store_may_be_started_anew(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, many(3), expected_version=0)
    path.unlink()
    with DuckDBStore(path) as store:
        assert store.head(T) == 0


def test_a_damaged_write_ahead_log_is_refused_with_the_recovery_step(died: Path) -> None:
    with wal(died).open("r+b") as file:
        file.seek(wal(died).stat().st_size // 2)
        file.write(b"\xff" * 10)
    with pytest.raises(
        DamagedStoreError, match=r"byte position \d+.*into another folder, truncate the"
    ):
        DuckDBStore(died)
    assert wal(died).exists(), "nothing was changed"


@pytest.mark.parametrize("position", [100, 4096 + 20, 20_000])
def test_a_damaged_file_is_refused_with_the_recovery_step(path: Path, position: int) -> None:
    DuckDBStore(path).close()
    with path.open("r+b") as file:
        file.seek(position)
        file.write(b"\xff" * 300)
    with pytest.raises(DamagedStoreError, match="restore it from a backup"):
        DuckDBStore(path)


def test_a_write_ahead_log_without_its_file_is_refused(died: Path) -> None:
    died.unlink()
    with pytest.raises(DamagedStoreError, match=r"\.wal exists, but"):
        DuckDBStore(died)


def test_versions_that_are_missing_are_not_skipped_over(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, many(5), expected_version=0)
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE events SET seq = 6 WHERE seq = 3")
    with DuckDBStore(path) as store, pytest.raises(DamagedStoreError, match="are missing"):
        store.read(T)


def test_a_database_of_somebody_else_is_left_alone(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine(a INTEGER)")
    with pytest.raises(MisuseError, match="another application"):
        DuckDBStore(path)


@pytest.mark.parametrize("other", [3, 99])
def test_a_file_of_another_format_is_left_alone(path: Path, other: int) -> None:
    DuckDBStore(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE foldline SET format = ?", [other])
    with pytest.raises(StoreError, match=rf"format {other}.*open it with the version"):
        DuckDBStore(path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="does not exist; create it"):
        DuckDBStore(tmp_path / "nowhere" / "talks.duckdb")


FULL_DISK = """
import resource, sys
from blocks import BlockAppended, StoreError, UserPrompt
from persistence import DuckDBStore, verify
store = DuckDBStore(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
version = 0
try:
    while version < 1000:
        block = UserPrompt(id=f"b{version}", turn="t1", text="x" * 3000)
        event = BlockAppended(id=f"e{version}", at=0.0, block=block)
        version = store.append("t", [event], expected_version=version)
except StoreError as error:
    print(version, error)
"""


def test_a_full_disk_is_an_error_and_loses_nothing_acknowledged(path: Path) -> None:
    ended = run(FULL_DISK, path)
    acknowledged = int(ended.stdout.partition(" ")[0])
    assert 10 < acknowledged < 1000
    with DuckDBStore(path) as store:
        assert store.head(TimelineId("t")) - acknowledged in (0, 1)


# ---------------------------------------------------------------- one bad append among good ones


def test_an_append_that_the_database_refuses_spares_its_neighbours(store: DuckDBStore) -> None:
    good = Append(timeline=T, expected=0, events=[store_event(prompt("a"))])
    broken = msgspec.structs.replace(store_event(prompt("b")), data=b"{broken")
    bad = Append(timeline=U, expected=0, events=[broken])
    store._writer.commit([good, bad])
    assert (good.committed, good.error) == (True, None)
    assert isinstance(bad.error, StoreError)
    assert store.head(T) == 1
    assert store.head(U) == 0
    store.append(U, [prompt("c")], expected_version=0)


def test_a_commit_that_was_interrupted_after_all_is_known_as_a_retry(
    store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(T, many(1), expected_version=0)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("persistence.duckdb._writer.Writer._publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.append(T, many(1, first=2), expected_version=1)
    assert store.head(T) == 2, "the file was asked again"
    assert store.append(T, many(1, first=2), expected_version=1) == 2
    with pytest.raises(VersionConflictError):
        store.append(T, [prompt("other")], expected_version=1)


def test_use_after_close_names_the_file(store: DuckDBStore, path: Path) -> None:
    store.close()
    with pytest.raises(ClosedError, match=path.name):
        store.head(T)


def test_importing_the_package_does_not_load_the_database() -> None:
    code = "import sys, persistence; sys.exit('duckdb' in sys.modules)"
    assert run(code, Path()).returncode == 0


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "is empty"), (b"{}\n" * 20, "is not a DuckDB")]
)
def test_a_file_of_another_kind_is_refused_and_nothing_is_left_beside_it(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "notes.json"
    path.write_bytes(content)
    with pytest.raises(MisuseError, match=said):
        DuckDBStore(path)
    with pytest.raises(MisuseError, match=said):
        verify(path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.json"]
    assert path.read_bytes() == content


def test_a_page_of_large_events_is_short(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, [prompt(f"{n} {'x' * 1_000_000}") for n in range(40)], expected_version=0)
        assert len(store.read(T, limit=40)) < 40
        assert len(store.read(T, after=39, limit=40)) == 1
