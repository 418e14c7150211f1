"""A timeline's lock: a flow holds it, but not while it waits for other people's code.

A hook, an observer or a summariser may use the timeline that called it, from its own thread or task or
from another one that it waits for.  So the lock is free meanwhile, and the flow finds out afterwards
whether the timeline has moved on.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import attrs


@attrs.define
class Hold:
    """One flow's hold on a `threading` lock; without one there is nothing to hold."""

    lock: Any
    _is_held: bool = attrs.field(default=False, init=False)

    def __enter__(self) -> Self:
        if self.lock is not None:
            self.lock.acquire()
            self._is_held = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_held:
            self._is_held = False
            self.lock.release()

    @contextmanager
    def away(self) -> Generator[None]:
        """Others may go on.  An interrupt ends the flow, so that it needs the lock no more."""
        self.__exit__()
        try:
            yield
        except Exception:
            self.__enter__()
            raise
        self.__enter__()


@attrs.define
class AsyncHold:
    """The same for an `asyncio` lock."""

    lock: Any
    _is_held: bool = attrs.field(default=False, init=False)

    async def __aenter__(self) -> Self:
        if self.lock is not None:
            await self.lock.acquire()
            self._is_held = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_held:
            self._is_held = False
            self.lock.release()

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """See `Hold.away`; being cancelled ends the flow, too."""
        await self.__aexit__()
        try:
            yield
        except Exception:
            await self.__aenter__()
            raise
        await self.__aenter__()
