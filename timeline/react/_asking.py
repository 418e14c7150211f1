"""What the loop asks for: effects that a sync and an async shell perform.

Everything that takes time is an `Effect` that the loop yields; it is sent the result, or has the
error thrown in.  What is no `Exception` (Ctrl-C, a cancelled task) ends the generator; the shell
then leaves the log in order.

The model is asked for a response whole or streamed, and once more when the response broke off on its way.
The SDK's client retries by itself what fails before a response begins (429, 500, 529, a connection that
was refused); a stream that breaks off later it cannot mend.  Nothing of such a response is recorded.
"""

import logging
from collections.abc import Callable, Generator
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from blocks import ToolCall
from render import Json
from timeline.observe._hooks import acall, call
from timeline.react._hooks import Hook, StreamLost
from timeline.react._settings import AgentSettings

_T = TypeVar("_T")


@attrs.frozen
class Ask:
    """Send the model one request; the answer is its response."""

    arguments: Json


@attrs.frozen
class RunTools:
    """Run these calls and append what they give."""

    calls: tuple[ToolCall, ...]


@attrs.frozen
class Notify:
    """Call hooks."""

    hooks: tuple[Hook, ...]
    argument: object


Use: TypeAlias = Callable[[], Any]
"""Do something with the timeline; with an async one it is to be awaited."""
Effect: TypeAlias = Use | Ask | RunTools | Notify
Flow: TypeAlias = Generator[Effect, Any, _T]


log = logging.getLogger("foldline")

LOSSES_MAX: Final = 1
"""Times that one request is sent again because its response broke off."""
_REFUSED: Final = 400
"""From this HTTP status on, it was not the response that went wrong."""


class ResponseLostError(Exception):
    """A stream ended without saying how the message ends."""


def asked(arguments: Json, on_lost: tuple[Hook, ...]) -> Flow[Any]:
    """The response to a request, which is sent again when a response broke off."""
    for _ in range(LOSSES_MAX):
        try:
            return (yield Ask(arguments))
        except Exception as error:
            if not is_lost(error):
                raise
            log.warning("a response broke off, asking again: %s", error)
            yield Notify(on_lost, StreamLost(error=error))
    return (yield Ask(arguments))


@attrs.frozen
class Asker:
    """Asks once, through a client, `anthropic.Anthropic` or `AsyncAnthropic`."""

    client: Any
    settings: AgentSettings

    def ask(self, arguments: Json) -> Any:
        """The response."""
        if not self.settings.stream:
            return self.client.messages.create(**arguments)
        with self.client.messages.stream(**arguments) as stream:
            for text in stream.text_stream:
                for hook in self.settings.hooks.on_text:
                    call(hook, text)
            return _whole(stream.get_final_message())

    async def aask(self, arguments: Json) -> Any:
        """The response, from an async client."""
        if not self.settings.stream:
            return await self.client.messages.create(**arguments)
        async with self.client.messages.stream(**arguments) as stream:
            async for text in stream.text_stream:
                for hook in self.settings.hooks.on_text:
                    await acall(hook, text)
            return _whole(await stream.get_final_message())


def _whole(message: Any) -> Any:
    if message.stop_reason is None:
        raise ResponseLostError("the stream ended before the message did")
    return message


def is_lost(error: Exception) -> bool:
    """Whether a response had begun and did not arrive; not: the request was refused or wrong."""
    status: object = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status < _REFUSED
    return not isinstance(error, TypeError | AttributeError)
