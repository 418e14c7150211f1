"""Recording a response while it streams: however the stream ends, the complete parts are in the log."""

from collections.abc import Awaitable, Callable
from typing import Any, Self

import attrs

from blocks.formats import Format, Json, Stream, event_of
from render import Rendered


@attrs.define(kw_only=True)
class Arriving:
    """A response that is being streamed."""

    format: Format
    rendered: Rendered | None = None
    stream: Stream


@attrs.define(kw_only=True, eq=False)
class _Recording:
    """Takes the events of a stream, and records their content when it ends."""

    _arriving: Arriving = attrs.field(alias="arriving")
    _record: Callable[..., Any] = attrs.field(alias="record")
    version: int | None = attrs.field(default=None, init=False)
    """The version of the timeline after the recording; None: not recorded yet, or nothing arrived."""

    def add(self, event: object) -> None:
        """Take the next event of the stream: the SDK's object, or its JSON.

        Raises:
            ArgumentError: it is not an event of this format.
        """
        self._arriving.stream.add(event_of(event))

    @property
    def response(self) -> Json | None:
        """The JSON of the response as far as it arrived; None: nothing arrived."""
        return self._arriving.stream.response()


class Recording(_Recording):
    """Takes the events of a stream; leaving its `with` block records their content once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        response = self.response
        if response is not None and self.version is None:
            known = self._arriving
            self.version = self._record(response, known.rendered, format=known.format)


class AsyncRecording(_Recording):
    """A `Recording` for `async with`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        response = self.response
        if response is not None and self.version is None:
            known = self._arriving
            recorded: Awaitable[int] = self._record(response, known.rendered, format=known.format)
            self.version = await recorded
