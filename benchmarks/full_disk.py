"""Tests a PostgreSQL server on a full disk: no acknowledged event is lost, and work resumes with free space.

    sudo .venv/bin/python -m benchmarks.full_disk [--seconds 5]

Needs root and `unshare`, for a small file system in memory that only this program sees.  The server's data and
write-ahead log are on it.  Each writer appends to its own timeline; then the rest of the disk is filled, and freed
after some seconds.  A writer repeats an append until it succeeds, and records each error.
"""

import argparse
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from threading import Event as Flag
from threading import Thread

import attrs

from blocks import BlockAppended, BlockId, EventId, StoreError, TimelineId, TurnId, UserPrompt
from persistence import EventStore, open_store, verify
from tests._postgres import Server, running

WRITERS = 4
DISK = "200m"
ROOM_LEFT = 3_000_000
"""The free bytes left on the full disk."""
STEP = 500_000
TEXT = 8_000
WAIT_SECONDS = 5
INSIDE = "inside"
SETTINGS = ("fsync=on", "full_page_writes=on", "max_wal_size=48MB", "min_wal_size=32MB")


@attrs.define
class Writer:
    """Appends to one timeline and records the outcomes."""

    name: TimelineId
    acknowledged: int = 0
    is_refused: Flag = attrs.field(factory=Flag)
    """Set when an append was refused because the disk is full."""
    errors: Counter[str] = attrs.field(factory=Counter[str])
    """The number of errors by type and text."""

    def run(self, store: EventStore, over: Flag) -> None:
        """Append until `over` is set."""
        chance = Random(self.name)  # noqa: S311 -- texts that cannot be packed
        while not over.is_set():
            name, version = f"{self.name} {self.acknowledged}", self.acknowledged
            block = UserPrompt(
                id=BlockId(name), turn=TurnId("t"), text=chance.randbytes(TEXT // 2).hex()
            )
            event = BlockAppended(id=EventId(name), at=0.0, block=block)
            while not self._appended(store, event, version) and not over.is_set():
                time.sleep(0.005)

    def _appended(self, store: EventStore, event: BlockAppended, version: int) -> bool:
        try:
            self.acknowledged = store.append(self.name, [event], expected_version=version)
        except StoreError as error:
            self.errors[f"{type(error).__name__}: {error}"] += 1
            if "No space left" in str(error):
                self.is_refused.set()
            return False
        return True


def fill(disk: Path) -> Path:
    """Fill the disk except for `ROOM_LEFT`; returns the file that fills it."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        while (free := os.statvfs(disk)).f_bavail * free.f_frsize > ROOM_LEFT:
            os.posix_fallocate(file.fileno(), file.tell(), STEP)
            file.seek(STEP, os.SEEK_CUR)
    return filler


def written(server: Server, disk: Path, url: str, seconds: float) -> list[Writer]:
    """Run writers while the disk is full for some seconds and then has space again; returns them."""
    from persistence import PostgresStore

    over, writers = Flag(), [Writer(TimelineId(f"writer {n}")) for n in range(WRITERS)]
    with PostgresStore(url, wait_seconds=WAIT_SECONDS) as store:
        threads = [Thread(target=writer.run, args=(store, over)) for writer in writers]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        filler = fill(disk)
        for writer in writers:
            assert writer.is_refused.wait(60), "the disk was not full"
        time.sleep(seconds / 2)
        if use_up_log(url):
            print("the write-ahead log finds no room, and the server ends itself")
        time.sleep(seconds / 2)
        full = [writer.acknowledged for writer in writers]
        filler.unlink()
        if not is_up(url):
            print("the server had ended itself; it is started again")
            server.kill()
        end = time.monotonic() + 60
        while any(w.acknowledged < n + 20 for w, n in zip(writers, full, strict=True)):
            assert time.monotonic() < end, "it does not go on"
            time.sleep(0.05)
        over.set()
        for thread in threads:
            thread.join()
    return writers


def use_up_log(url: str) -> bool:
    """Write until the write-ahead log needs more space than there is; returns whether the server stopped."""
    import psycopg

    message = "SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000), true)"
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            for _ in range(200):
                connection.execute(message)
    except psycopg.OperationalError:
        return True
    return False


def is_up(url: str) -> bool:
    """Whether the server answers."""
    import psycopg

    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def lost_or_doubled(url: str, writers: list[Writer]) -> int:
    """The number of acknowledged events that are missing or misplaced, plus the problems found by `verify`."""
    wrong = len(verify(url).problems)
    with closing(open_store(url)) as store:
        for writer in writers:
            ids: list[str] = []
            while page := store.read(writer.name, after=len(ids)):
                ids += [event.id for _, event in page]
            due = [f"{writer.name} {n}" for n in range(writer.acknowledged)]
            wrong += ids[: len(due)] != due or len(ids) > len(due) + 1
    return wrong


def inside(seconds: float) -> int:
    """Run the test inside a separate mount namespace; returns the exit code."""
    logging.disable()
    disk = Path(mkdtemp(prefix="foldline-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", disk], check=True)
    disk.chmod(0o755)
    os.environ["TMPDIR"] = str(disk)
    try:
        with running(*SETTINGS) as server:
            url = server.new_url()
            open_store(url).close()
            writers = written(server, disk, url, seconds)
            wrong = lost_or_doubled(url, writers)
    finally:
        subprocess.run(["umount", disk], check=False)
        disk.rmdir()
    errors = sum((writer.errors for writer in writers), Counter[str]())
    for text, count in errors.most_common():
        print(f"{count:5} x {text.replace(str(disk), '…')}")
    print(f"acknowledged {sum(w.acknowledged for w in writers):,} events; wrong: {wrong}")
    return int(wrong > 0)


def main() -> int:
    """Run the test; returns 0 if no acknowledged event is lost or duplicated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("where", nargs="?", choices=[INSIDE])
    given = parser.parse_args()
    if given.where == INSIDE:
        return inside(given.seconds)
    again = [sys.executable, "-m", "benchmarks.full_disk", INSIDE]
    return subprocess.call(["unshare", "-m", *again, f"--seconds={given.seconds}"])


if __name__ == "__main__":
    sys.exit(main())
