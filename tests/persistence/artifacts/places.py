"""The places where artifacts can lie, and a process that puts into one until it is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Protocol

import attrs
import pytest

from blocks import ArtifactId, Sensitivity, TimelineId
from persistence import (
    ArtifactDescription,
    ArtifactStore,
    DuckDBStore,
    KeyRing,
    Keys,
    MemoryStore,
    Requester,
    SQLiteStore,
    open_artifacts,
)
from persistence._bucket import Objects
from persistence.artifacts._files import UrlBackend
from persistence.sql._store import SQLStore

T = TimelineId("my talk")
U = TimelineId("another talk")
NOW = 1_000_000.0
KEYS = Keys({"k1": b"1" * 32}, current="k1")
LATER_KEYS = Keys({"k1": b"1" * 32, "k2": b"2" * 32}, current="k2")
EVERYTHING = frozenset({"read", "read:confidential", "read:restricted"})
SENSITIVITIES: tuple[Sensitivity, ...] = ("public", "internal", "confidential", "restricted")
ALICE = Requester("alice", tenant="acme", permissions=EVERYTHING)


def noise(seed: str, size: int) -> bytes:
    """Bytes that no compression can shorten, the same on every run."""
    return Random(seed).randbytes(size)  # noqa: S311 -- content, not a key


def about(sensitivity: Sensitivity = "internal", expires_at: float = 0.0) -> ArtifactDescription:
    """Something of Alice's tenant."""
    return ArtifactDescription(
        timeline=T, tenant="acme", sensitivity=sensitivity, expires_at=expires_at
    )


@attrs.define
class Clock:
    """Stands still until it is told."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


class Place(Protocol):
    """Opens its store as often as a test likes; what was put stays."""

    clock: Clock

    def open(self, keys: KeyRing | None = KEYS) -> ArtifactStore: ...

    def lying(self) -> bytes:
        """Every byte that lies there, after which nothing is open any more."""
        ...

    def slots(self) -> int:
        """How many contents lie there, whether anything says so or not."""
        ...

    def close(self) -> None: ...


@attrs.define
class InMemory:
    clock: Clock = attrs.field(factory=Clock)
    _store: MemoryStore = attrs.field(factory=MemoryStore)

    def open(self, keys: KeyRing | None = KEYS) -> ArtifactStore:
        return self._store.artifacts(keys=keys, clock=self.clock)

    def lying(self) -> bytes:
        backend = self._store._backend
        assert backend is not None
        pieces = [piece for pieces in backend._content.values() for piece in pieces]
        entries = [data for slots in backend._entries.values() for data in slots.values()]
        return b"|".join([*pieces, *entries, *backend._records])

    def slots(self) -> int:
        backend = self._store._backend
        return len(backend._content) if backend else 0

    def close(self) -> None:
        pass


@attrs.define
class InDuckDB:
    path: Path
    clock: Clock = attrs.field(factory=Clock)
    _store: DuckDBStore | None = None

    def open(self, keys: KeyRing | None = KEYS) -> ArtifactStore:
        self.close()
        self._store = DuckDBStore(self.path)
        return self._store.artifacts(keys=keys, clock=self.clock)

    def lying(self) -> bytes:
        wal = self.path.with_name(self.path.name + ".wal")
        written = wal.read_bytes() if wal.exists() else b""
        self.close()
        return written + self.path.read_bytes()

    def slots(self) -> int:
        assert self._store is not None
        with self._store.inspect() as (cursor, _):
            rows = cursor.execute("SELECT DISTINCT slot FROM artifact_pieces").fetchall()
        return len(rows)

    def close(self) -> None:
        if self._store:
            self._store.close()


@attrs.define
class InSQL:
    """Beside the log of a store that many processes share."""

    _make: Callable[[], SQLStore]
    clock: Clock = attrs.field(factory=Clock)
    _store: SQLStore | None = None

    def open(self, keys: KeyRing | None = KEYS) -> ArtifactStore:
        self.close()
        self._store = self._make()
        return self._store.artifacts(keys=keys, clock=self.clock)

    def lying(self) -> bytes:
        columns = (
            "entry FROM artifacts",
            "piece FROM artifact_pieces",
            "record FROM artifact_audit",
        )
        rows = [row for column in columns for row in self._rows(f"SELECT {column}")]
        self.close()
        return b"|".join(row for (row,) in rows)

    def slots(self) -> int:
        return len(self._rows("SELECT DISTINCT slot FROM artifact_pieces"))

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        assert self._store is not None
        with self._store._database.lent() as connection:
            return connection.rows(query)

    def close(self) -> None:
        if self._store:
            self._store.close()


@attrs.define
class Opened:
    """What `open_artifacts` opens: a folder or a URL."""

    where: str | Path
    _files: Callable[[], dict[str, bytes]]
    clock: Clock = attrs.field(factory=Clock)
    _stores: list[ArtifactStore] = attrs.field(factory=list[ArtifactStore])

    def open(self, keys: KeyRing | None = KEYS) -> ArtifactStore:
        self.close()
        self._stores.append(open_artifacts(self.where, keys=keys, clock=self.clock))
        return self._stores[-1]

    def lying(self) -> bytes:
        return b"|".join(self._files().values())

    def slots(self) -> int:
        return sum("/content/" in path for path in self._files())

    def close(self) -> None:
        for store in self._stores:
            store.close()


def in_sqlite(folder: Path) -> Place:
    return InSQL(lambda: SQLiteStore(folder / "talks.sqlite"))


def in_folder(root: Path) -> Place:
    def files() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    return Opened(root, files)


@attrs.define
class AsObjects:
    """As in a bucket, but in memory: the library's own store, which needs no server."""

    clock: Clock = attrs.field(factory=Clock)
    _objects: Objects = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        reason = "nothing here reaches buckets: pip install obstore"
        store = pytest.importorskip("obstore.store", reason=reason).MemoryStore()
        self._objects = Objects("s3://memory", store)

    def open(self, keys: KeyRing | None = KEYS) -> ArtifactStore:
        return ArtifactStore(
            UrlBackend(self._objects, os.urandom(4).hex()), keys=keys, clock=self.clock
        )

    def lying(self) -> bytes:
        names = [found["path"] for found in self._objects.list("")]
        return b"|".join(self._objects.get(name) or b"" for name in names)

    def slots(self) -> int:
        return len(self._objects.list("content"))

    def close(self) -> None:
        pass


def in_bucket(url: str) -> Place:
    def files() -> dict[str, bytes]:
        objects = Objects.at(url)
        found = [found["path"] for found in objects.list("")]
        return {f"/{name}": objects.get(name) or b"" for name in found}

    return Opened(url, files)


WRITER = """
import sys
from itertools import count
from threading import Thread
from persistence import ArtifactDescription, DuckDBStore, Keys, open_artifacts

keys = Keys({"k1": b"1" * 32}, current="k1")
if sys.argv[1].endswith(".duckdb"):
    store = DuckDBStore(sys.argv[1]).artifacts(keys=keys)
else:
    store = open_artifacts(sys.argv[1], keys=keys)

def put(worker):
    sensitivity = ("internal", "restricted")[worker % 2]
    about = ArtifactDescription(timeline="t", tenant="acme", sensitivity=sensitivity)
    for n in count():
        content = f"{sys.argv[2]}.{worker}.{n} ".encode() * 50_000
        sys.stdout.write(store.put(content, about) + "\\n")  # in one piece, unlike print
        sys.stdout.flush()

for worker in range(4):
    Thread(target=put, args=(worker,)).start()
"""


def put_until_killed(path: Path, round_: int) -> list[ArtifactId]:
    """What was acknowledged to a process that was killed while it put."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(round_)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        time.sleep(0.05 + 0.06 * round_)  # any moment will do
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.read().splitlines(keepends=True)
    whole = "".join(line for line in lines if line.endswith("\n"))
    return [ArtifactId(name) for name in whole.split()]
