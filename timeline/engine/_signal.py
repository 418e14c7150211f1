"""A signal from any thread to a waiting thread or task."""

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial

import attrs


@attrs.define(eq=False)
class Signal:
    """A signal that wakes waiting threads and asyncio tasks; it may be given from any thread."""

    _said: threading.Event = attrs.field(factory=threading.Event, init=False)
    _listener: Callable[[], object] | None = attrs.field(default=None, init=False)

    def say(self) -> None:
        """Give the signal."""
        self._said.set()
        if listener := self._listener:
            with contextlib.suppress(RuntimeError):  # the event loop was closed
                listener()

    def forget(self) -> None:
        """Reset the signal."""
        self._said.clear()

    def wait(self, seconds: float) -> float:
        """Wait for the signal, at most this many seconds; return the seconds waited."""
        begun = time.monotonic()
        self._said.wait(seconds)
        return time.monotonic() - begun

    async def await_(self, seconds: float) -> float:
        """The same for asyncio, without blocking a thread."""
        import asyncio

        begun, heard = time.monotonic(), asyncio.Event()
        self._listener = partial(asyncio.get_running_loop().call_soon_threadsafe, heard.set)
        try:
            if not self._said.is_set():
                async with asyncio.timeout(seconds):
                    await heard.wait()
        except TimeoutError:
            pass
        finally:
            self._listener = None
        return time.monotonic() - begun
