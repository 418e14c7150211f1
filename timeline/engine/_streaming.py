"""A response that is recorded while it comes: what arrived whole is in the log, however the stream ends."""

from collections.abc import Awaitable, Callable
from typing import Any, Self

import attrs

from blocks.formats import Format, Json, Stream, event_of
from render import Rendered


@attrs.define(kw_only=True)
class Arriving:
    """A response on its way."""

    format: Format
    rendered: Rendered | None = None
    stream: Stream


@attrs.define(kw_only=True, eq=False)
class _Recording:
    """Takes the events of a stream, and records what they came to when it ends."""

    _arriving: Arriving = attrs.field(alias="arriving")
    _record: Callable[..., Any] = attrs.field(alias="record")
    version: int | None = attrs.field(default=None, init=False)
    """The version of the timeline once it is recorded; None: it is not, or nothing came."""

    def add(self, event: object) -> None:
        """Take the next event, as the SDK gives it, or its JSON.

        Raises:
            ArgumentError: it is no event.
        """
        self._arriving.stream.add(event_of(event))

    @property
    def _response(self) -> Json | None:
        return self._arriving.stream.response()


class Recording(_Recording):
    """Takes the events of a stream; leaving its `with` block records what they came to, once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        response = self._response
        if response is not None and self.version is None:
            known = self._arriving
            self.version = self._record(response, known.rendered, format=known.format)


class AsyncRecording(_Recording):
    """The same for asyncio: `async with`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        response = self._response
        if response is not None and self.version is None:
            known = self._arriving
            recorded: Awaitable[int] = self._record(response, known.rendered, format=known.format)
            self.version = await recorded
