"""Tests kill -9 in a loop: acknowledged batches are stored once and whole, and the next process can go on.

    python -m benchmarks.kills duckdb|sqlite|postgres|server [--kills 200] [--seed 1] [--keep]

`server` kills the PostgreSQL server while the writers live; the others kill the writing processes: one for DuckDB,
two otherwise.  Each process has threads with a timeline of their own and threads that share one with all others,
and stores artifacts.
"""

import argparse
import logging
import os
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread

import attrs

from benchmarks.results import keep, kept
from blocks import BlockAppended, BlockId, Event, EventId, TimelineId, TurnId, UserPrompt
from blocks import VersionConflictError as Conflict
from persistence import (
    ArtifactDescription,
    EventStore,
    Requester,
    open_store,
    verify,
)
from tests._postgres import Server, running

KINDS = {
    "duckdb": "DuckDB",
    "sqlite": "SQLite",
    "postgres": "PostgreSQL, who writes",
    "server": "PostgreSQL, the server",
}
"""The kinds of run, and their names in the table."""
BATCH = 3
LARGE, SMALL = 20_000, 300
ARTIFACT_EVERY = 8
CHECKED_EVERY = 25
UP_SECONDS = 60
# The fork server has the slow imports done, so that a writer starts at once.
FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["persistence", "duckdb", "psycopg"])


@attrs.define(kw_only=True)
class Toll:
    """The results of a run."""

    kills: int = 0
    acknowledged: int = 0
    """The number of acknowledged events."""
    artifacts: int = 0
    """The number of acknowledged artifacts."""
    lost: int = 0
    doubled: int = 0
    torn: int = 0
    """The number of batches of which only a part is stored."""
    problems: tuple[str, ...] = ()
    """The problems found by `verify`."""


def write(where: str, told: str, name: str) -> None:
    """Write until killed; each acknowledgement is recorded as a line in the file `told`."""
    logging.disable()  # the driver logs every broken connection
    store, file = open_store(where), os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for n, timeline in enumerate(
        (f"own {name[-1]} 1", f"own {name[-1]} 2", "together", "together")
    ):
        given = (store, file, TimelineId(timeline), f"{name}.{n}", SMALL if n else LARGE)
        Thread(target=_talk, args=given).start()


def _talk(store: EventStore, file: int, timeline: TimelineId, name: str, size: int) -> None:
    version = store.head(timeline)
    for n in count():
        batch = [_said(id_, size) for id_ in _ids(f"{name}.{n}")]
        version = _appended(store, timeline, batch, version)
        os.write(file, f"{timeline}\t{version}\t{name}.{n}\n".encode())
        if n % ARTIFACT_EVERY == 0:
            content = f"{name}.{n} ".encode() * 100
            artifact = store.artifacts().put(content, ArtifactDescription(timeline=timeline))
            os.write(file, f"{timeline}\t0\t{artifact}\n".encode())


def _appended(store: EventStore, timeline: TimelineId, batch: Sequence[Event], version: int) -> int:
    while True:
        try:
            return store.append(timeline, batch, expected_version=version)
        except Conflict as conflict:
            version = conflict.found


def _ids(batch: str) -> list[str]:
    return [f"{batch}.{part}" for part in range(BATCH)]


def _said(name: str, size: int) -> Event:
    block = UserPrompt(id=BlockId(f"b{name}"), turn=TurnId("t1"), text="x" * size)
    return BlockAppended(id=EventId(name), at=0.0, block=block)


@attrs.define
class Killing:
    """Kills processes and compares what was acknowledged with what is stored."""

    where: str
    folder: Path
    processes: int
    chance: Random
    toll: Toll = attrs.field(factory=Toll)
    _told: dict[tuple[str, int], str] = attrs.field(factory=dict[tuple[str, int], str])
    """The acknowledged batches by timeline and version."""
    _artifacts: set[str] = attrs.field(factory=set[str])

    def writers(self, kills: int) -> None:
        """Kill the writing processes `kills` times."""
        for _ in range(kills):
            with self.writing() as files:
                time.sleep(self.chance.uniform(0.0, 0.2))
            self.toll.kills += 1
            if is_time := self.toll.kills % CHECKED_EVERY == 0:
                self.verified()  # verify the store right after the kill
            self.heard(files)
            if is_time:
                self.checked()

    def server(self, server: Server, kills: int) -> None:
        """Kill the server `kills` times while processes write."""
        with self.writing() as files:
            for _ in range(kills):
                time.sleep(self.chance.uniform(0.05, 0.3))
                server.kill()
                self.toll.kills += 1
                _wait_until_grown(files)
        self.heard(files)

    @contextmanager
    def writing(self) -> Generator[Sequence[Path]]:
        """Start writing processes; they are killed at the end."""
        names = [f"{self.toll.kills}-{n}" for n in range(self.processes)]
        files = [self.folder / f"told {name}" for name in names]
        started = list[BaseProcess]()
        try:
            for name, file in zip(names, files, strict=True):
                process = FORKS.Process(target=write, args=(self.where, str(file), name))
                process.start()
                started.append(process)
            _wait_until_grown(files)
            yield files
        finally:
            for each in started:
                each.kill()
            for each in started:
                each.join()

    def heard(self, files: Sequence[Path]) -> None:
        """Read what was acknowledged, and check that a new process sees all of it."""
        with closing(open_store(self.where)) as store:
            for line in (line for file in files for line in file.read_text().splitlines()):
                timeline, version, what = line.split("\t")
                if int(version):
                    self._told[timeline, int(version)] = what
                    self.toll.acknowledged += BATCH
                else:
                    self._artifacts.add(what)
            for timeline in {timeline for timeline, _ in self._told}:
                due = max(version for name, version in self._told if name == timeline)
                assert store.head(TimelineId(timeline)) >= due, f"the end of {timeline} is lost"
        for file in files:
            file.unlink()

    def verified(self) -> None:
        """Record the problems that `verify` finds."""
        self.toll.problems += tuple(problem.what for problem in verify(self.where).problems)

    def checked(self) -> Toll:
        """Read everything that is stored, and return the results."""
        toll = self.toll
        toll.lost = toll.doubled = toll.torn = 0
        toll.artifacts = len(self._artifacts)
        self.verified()
        with closing(open_store(self.where)) as store:
            for info in store.list():
                self._check(info.id, _log(store, info.id))
            about = store.artifacts().list(Requester("kills"))
            held = {str(metadata.id) for metadata in about}
            toll.lost += len(self._artifacts - held)
        return toll

    def _check(self, timeline: TimelineId, log: Sequence[str]) -> None:
        toll = self.toll
        for (name, version), batch in self._told.items():
            if name == timeline and log[version - BATCH : version] != _ids(batch):
                toll.lost += BATCH
        toll.doubled += len(log) - len(set(log))
        for at in range(0, len(log), BATCH):
            toll.torn += log[at : at + BATCH] != _ids(log[at].rpartition(".")[0])


def _log(store: EventStore, name: TimelineId) -> list[str]:
    found: list[str] = []
    while page := store.read(name, after=len(found)):
        found += [event.id for _, event in page]
    return found


def _wait_until_grown(files: Sequence[Path]) -> None:
    """Wait until each of the files has another line."""
    sizes = [_size(file) for file in files]
    end = time.monotonic() + UP_SECONDS
    while any(_size(file) <= size for file, size in zip(files, sizes, strict=True)):
        assert time.monotonic() < end, "nothing is written any more"
        time.sleep(0.002)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def survived(kind: str, folder: Path, kills: int, seed: int, server: Server | None = None) -> Toll:
    """Kill `kills` times, with a new store of this kind; a PostgreSQL store is on `server`."""
    where = server.new_url() if server else f"{kind}:///{folder}/talks.{kind}"
    open_store(where).close()
    killing = Killing(where, folder, 1 if kind == "duckdb" else 2, Random(seed))  # noqa: S311 -- moments
    if kind == "server" and server:
        killing.server(server, kills)
    else:
        killing.writers(kills)
    return killing.checked()


def main() -> None:
    """Print the results of one kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures in benchmarks/results"
    )
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        is_served = given.kind in {"postgres", "server"}
        server = stack.enter_context(running()) if is_served else None
        begun = time.perf_counter()
        toll = survived(given.kind, folder, given.kills, given.seed, server)
        seconds = time.perf_counter() - begun
    print(
        f"{given.kind}: {toll.kills} kills in {seconds:.0f} s; acknowledged {toll.acknowledged:,} events and"
        f" {toll.artifacts:,} artifacts; lost {toll.lost}, doubled {toll.doubled}, torn {toll.torn}; verify:"
        f" {len(toll.problems)} problems {list(toll.problems[:3]) or ''}"
    )
    if given.keep:
        keep("kills", [row(given.kind, toll)])


def row(kind: str, toll: Toll) -> dict[str, str]:
    """The row of one kind on the page about reliability."""
    counts = (
        toll.kills,
        toll.acknowledged,
        toll.artifacts,
        toll.lost,
        toll.doubled,
        toll.torn,
        len(toll.problems),
    )
    cells = (KINDS[kind], *(f"{count:,}" for count in counts))
    return dict(zip(kept("kills").columns, cells, strict=True))


if __name__ == "__main__":
    main()
