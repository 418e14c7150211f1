"""kill -9 in a loop, of who writes, of who removes and of a server: nothing acknowledged is lost, nothing is doubled
or torn."""

import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.kills import KINDS, survived
from persistence import DuckDBStore, open_store, verify
from persistence.sql._store import SQLStore
from tests._sizes import sized
from tests.persistence.contract import T, versions

KILLS = {"server": sized(3, 60)}
SERVERS = {"postgres": "postgres", "server": "victim"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_before_a_kill_is_there_once_and_whole(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(SERVERS[kind]) if kind in SERVERS else None
    toll = survived(kind, tmp_path, KILLS.get(kind, sized(6, 200)), 1, server)
    assert (toll.lost, toll.doubled, toll.torn, toll.problems) == (0, 0, 0, ())
    assert toll.acknowledged > toll.kills
    assert toll.artifacts


# Appends, compacts, removes or archives, and erases at times; prints a version once it is acknowledged.
REMOVER = """
import sys
from persistence import DuckDBStore, open_store
from persistence.testing._events import T, compacted, prompt

store, folder = open_store(sys.argv[1]), sys.argv[2]
large = 20_000 if isinstance(store, DuckDBStore) else 700
version = store.head(T)
while True:
    batch = [prompt(f"{version + n} " + "x" * (large if n == 3 else 700)) for n in range(1, 9)]
    store.append(T, batch, expected_version=version)
    start = store.kept(T).first
    store.append(T, [compacted(f"c{version}", start=start, cut=version + 6)], expected_version=version + 8)
    version += 9
    print(version, flush=True)
    store.trim(T, version - 3, archive=folder or None)
    if not version % 4 and isinstance(store, DuckDBStore):
        store.erase()
"""


@pytest.mark.parametrize("archived", [False, True], ids=["forgotten", "archived"])
@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_a_process_that_is_killed_leaves_all_or_nothing_of_a_removal(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, *, archived: bool
) -> None:
    where: str = f"{kind}:///{tmp_path}/talks.{kind}"
    if kind == "postgres":
        where = request.getfixturevalue("url")
    old = tmp_path / "old"
    old.mkdir()
    for round_ in range(5):
        arguments = [sys.executable, "-c", REMOVER, where, str(old) if archived else ""]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as remover:
            assert remover.stdout is not None
            lines = [remover.stdout.readline(), remover.stdout.readline()]  # it has removed once
            time.sleep(0.03 + 0.09 * round_)  # any moment will do
            remover.send_signal(signal.SIGKILL)
            lines += remover.stdout.read().splitlines(keepends=True)
        acknowledged = [int(line) for line in lines if line.endswith("\n")]
        with closing(open_store(where)) as store:
            assert isinstance(store, DuckDBStore | SQLStore)
            assert store.head(T) >= acknowledged[-1]
            assert verify(store).ok
            kept, window = store.kept(T), store.load_window(T)
            assert kept.first <= window.events[0][0]
            assert (kept.forgotten == 0) == archived
            found = store.read(T, after=kept.forgotten, limit=10_000)
            assert versions(found) == list(range(kept.forgotten + 1, store.head(T) + 1))
    assert verify(where).ok
