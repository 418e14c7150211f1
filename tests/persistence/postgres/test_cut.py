"""A connection that breaks in the middle of a request: before it arrives, or before its answer does."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Lock, Thread
from urllib.parse import quote

import attrs
import pytest

from blocks import TimelineId
from persistence import ArtifactDescription, PostgresStore, verify
from tests._postgres import Server
from tests._sizes import sized
from tests.persistence.contract import T, forked, many, prompt, versions

SOCKET = ".s.PGSQL.5432"
ROUNDS = sized(40, 1000)


@attrs.define(eq=False)
class Proxy:
    """Passes everything on between clients and a server, until it is told to break a connection."""

    folder: Path
    server: Path
    cuts: int = 0
    _due: tuple[int, str] | None = None
    """How many requests to let pass first, and before what to cut: `request` or `answer`."""
    _lock: Lock = attrs.field(factory=Lock)
    _listening: socket.socket = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.folder / SOCKET))
        self._listening.listen()
        Thread(target=self._accept, daemon=True).start()

    def cut(self, after: int, before: str) -> None:
        self._due = after, before

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self.server / SOCKET))
                link = _Link(self, client, server)
                Thread(target=link.ask, daemon=True).start()
                Thread(target=link.answer, daemon=True).start()

    def is_due(self) -> str:
        """Asked at each request: before what it is to be cut, if it is."""
        with self._lock:
            if self._due is None:
                return ""
            after, before = self._due
            self._due = (after - 1, before) if after else None
            self.cuts += not after
            return "" if after else before


@attrs.define(eq=False)
class _Link:
    proxy: Proxy
    client: socket.socket
    server: socket.socket
    is_cut: bool = False

    def ask(self) -> None:
        with suppress(OSError):
            while data := self.client.recv(1 << 16):
                before = self.proxy.is_due()
                if before == "request":
                    break
                self.is_cut = self.is_cut or before == "answer"
                self.server.sendall(data)
        self._end()

    def answer(self) -> None:
        with suppress(OSError):
            while (data := self.server.recv(1 << 16)) and not self.is_cut:
                self.client.sendall(data)
        self._end()

    def _end(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def proxy(postgres: Server, tmp_path: Path) -> Iterator[Proxy]:
    folder = Path("/tmp") / f"fl{abs(hash(tmp_path)) % 10**8}"  # noqa: S108 -- a socket's path is short
    folder.mkdir()
    made = Proxy(folder, postgres.folder)
    yield made
    made.close()
    (folder / SOCKET).unlink()
    folder.rmdir()


@pytest.fixture
def store(proxy: Proxy, url: str) -> Iterator[PostgresStore]:
    """Which reaches its server through the proxy."""
    there, here = (quote(str(folder)) for folder in (proxy.server, proxy.folder))
    with PostgresStore(url.replace(there, here)) as store:
        yield store


def test_an_append_whose_connection_breaks_anywhere_happens_once(
    proxy: Proxy, store: PostgresStore, url: str
) -> None:
    chance, due = Random(5), list[str]()  # noqa: S311 -- moments
    for n in range(ROUNDS):
        batch = [prompt(f"{n}.{part}") for part in range(3)]
        due += [event.id for event in batch]
        proxy.cut(chance.randrange(2), chance.choice(["request", "answer"]))
        assert store.append(T, batch, expected_version=3 * n) == len(due)
    assert proxy.cuts >= ROUNDS // 3
    with PostgresStore(url) as direct:
        assert [event.id for _, event in direct.read(T, limit=len(due) + 1)] == due
        assert verify(direct).ok


def test_a_fork_and_an_artifact_whose_connection_breaks_anywhere_are_made_once(
    proxy: Proxy, store: PostgresStore, url: str
) -> None:
    store.append(T, many(5), expected_version=0)
    chance, count = Random(6), ROUNDS // 2  # noqa: S311 -- moments
    for n in range(count):
        proxy.cut(chance.randrange(5), chance.choice(["request", "answer"]))
        assert store.fork(T, TimelineId(f"fork {n}"), forked(T, 4), at=4) == 5
        proxy.cut(chance.randrange(8), chance.choice(["request", "answer"]))
        store.artifacts().put(f"content {n}".encode(), ArtifactDescription(timeline=T))
    assert proxy.cuts >= count // 2
    with PostgresStore(url) as direct:
        for n in range(count):
            assert versions(direct.read(TimelineId(f"fork {n}"))) == [1, 2, 3, 4, 5]
        report = verify(direct)
        assert (report.ok, report.timelines, report.artifacts) == (True, count + 1, count)
