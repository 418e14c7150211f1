"""The iterators that `follow` returns: the events of a timeline as they come, for threads and for asyncio."""

from typing import Self

import attrs

from blocks import Recorded
from timeline._flow import arun, run
from timeline.engine._following import Following


@attrs.define(eq=False)
class _Followed:
    _following: Following

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._following.engine.id!r}: version {self.version}>"

    @property
    def version(self) -> int:
        """Version of the last event that the iterator returned: `follow(after=version)` continues from there."""
        return self._following.version

    def close(self) -> None:
        """End the iteration, even while a thread waits for the next event. Idempotent, callable from any thread."""
        self._following.close()


class Follower(_Followed):
    """An iterator over events with their versions, closed at the end of a `with` block."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Recorded:
        found = self._following.at_hand() or run(self._following.next())
        if found is None:
            raise StopIteration
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncFollower(_Followed):
    """A `Follower` for `async for` and `async with`."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Recorded:
        found = self._following.at_hand() or await arun(self._following.next())
        if found is None:
            raise StopAsyncIteration
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
