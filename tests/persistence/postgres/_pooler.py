"""A pooler in transaction mode: each transaction goes to the next of its few connections to the server.

Like those that people run, it answers the start of a connection itself, with a process that it makes up, and
ignores `options`. It knows as much of the protocol as the store uses: one question at a time, no COPY.
"""

import asyncio
import shutil
import struct
from asyncio import Queue, StreamReader, StreamWriter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any, Final

import attrs

from tests._sizes import PATIENCE

SOCKET: Final = ".s.PGSQL.5432"
CONNECTIONS: Final = 3
"""For each user; odd, so that clients that take turns meet all of them."""
VERSION: Final = 196608
HELLO: Final = b"R\0\0\0\x08\0\0\0\0"
MADE_UP: Final = b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x01"
READY: Final = b"Z\0\0\0\x05I"
ENDS: Final = b"QS"
"""Messages that the server answers with READY."""


@attrs.define
class _Lent:
    """A connection to the server."""

    reader: StreamReader
    writer: StreamWriter
    greeting: bytes = b""
    """What it told about itself."""


async def _message(reader: StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


async def _closed(writer: StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@attrs.define
class _Pooler:
    server: Path
    _free: dict[str, Queue[_Lent]] = attrs.field(factory=dict[str, Queue[_Lent]])
    _clients: set[asyncio.Task[None]] = attrs.field(factory=set[asyncio.Task[None]])

    async def listening(self, place: Path) -> asyncio.Server:
        """Take clients."""
        return await asyncio.start_unix_server(self._arrived, place)

    def _arrived(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._clients.add(asyncio.ensure_future(self._client(reader, writer)))

    async def _client(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one, from its first message to its last."""
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                user = await self._started(reader, writer)
                while (message := await _message(reader))[:1] != b"X":
                    await self._transaction(user, message, reader, writer)
        finally:
            await _closed(writer)

    async def _started(self, reader: StreamReader, writer: StreamWriter) -> str:
        size = int.from_bytes(await reader.readexactly(4), "big")
        words = (await reader.readexactly(size - 4))[4:].decode().split("\0")
        user = dict(zip(words[::2], words[1::2], strict=False))["user"]
        if user not in self._free:
            queue = self._free[user] = Queue[_Lent]()
            for _ in range(CONNECTIONS):
                queue.put_nowait(await self._connected(user))
        lent = await self._free[user].get()
        self._free[user].put_nowait(lent)
        writer.write(HELLO + lent.greeting + MADE_UP + READY)
        return user

    async def _connected(self, user: str) -> _Lent:
        lent = _Lent(*await asyncio.open_unix_connection(self.server / SOCKET))
        words = f"user\0{user}\0database\0postgres\0client_encoding\0UTF8\0\0".encode()
        lent.writer.write(struct.pack("!ii", 8 + len(words), VERSION) + words)
        while (message := await _message(lent.reader))[:1] != b"Z":
            lent.greeting += message if message[:1] == b"S" else b""
        return lent

    async def _transaction(
        self, user: str, message: bytes, reader: StreamReader, writer: StreamWriter
    ) -> None:
        lent = await self._free[user].get()
        try:
            while not await self._is_over(lent, message, writer):
                message = await _message(reader)
        except BaseException:
            lent.writer.close()  # the client has gone in the middle of it
            lent = await self._connected(user)
            raise
        finally:
            self._free[user].put_nowait(lent)

    async def _is_over(self, lent: _Lent, message: bytes, writer: StreamWriter) -> bool:
        lent.writer.write(message)
        if message[:1] not in ENDS:
            return False
        while (answer := await _message(lent.reader))[:1] != b"Z":
            writer.write(answer)
        writer.write(answer)
        return answer == READY

    async def ended(self, listening: asyncio.Server) -> None:
        """Hang up on those who are left, and go."""
        listening.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        for queue in self._free.values():
            while not queue.empty():
                await _closed(queue.get_nowait().writer)


@contextmanager
def pooler(server: Path) -> Iterator[Path]:
    """Before the server whose socket is in this folder; the folder of its own."""
    folder = Path(mkdtemp(prefix="foldline-pooler-"))
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def done(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE)

    try:
        pooler = _Pooler(server)
        listening = done(pooler.listening(folder / SOCKET))
        yield folder
        done(pooler.ended(listening))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()
        shutil.rmtree(folder)
