"""The effects that the loop yields, which a sync and an async shell perform.

Everything that takes time is an `Effect`: the loop yields it and is sent the result, or has the
error thrown in.  Exceptions that are not an `Exception` (Ctrl-C, a cancelled task) end the generator; the shell
then leaves the log in order.

A response is requested whole or streamed, and once more if it broke off.  The SDK's client itself retries
requests that fail before a response begins (429, 500, 529, a refused connection), but it cannot repair a stream
that breaks off later.  Nothing of such a response is recorded.
"""

import logging
from collections.abc import Callable, Generator
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from blocks import ToolCall
from render import Json
from timeline._apis import Api
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
    """Run these calls and append their results."""

    calls: tuple[ToolCall, ...]


@attrs.frozen
class Notify:
    """Call hooks."""

    hooks: tuple[Hook, ...]
    argument: object


Use: TypeAlias = Callable[[], Any]
"""A call on the timeline; with an async timeline, its result is awaited."""
Effect: TypeAlias = Use | Ask | RunTools | Notify
Flow: TypeAlias = Generator[Effect, Any, _T]


log = logging.getLogger("foldline")

LOSSES_MAX: Final = 1
"""Times that one request is sent again because its response broke off."""
_REFUSED: Final = 400
"""From this HTTP status on, the provider refused the request."""


def asked(arguments: Json, on_lost: tuple[Hook, ...]) -> Flow[Any]:
    """The response to a request. If the response breaks off, the request is sent again."""
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
    """Sends one request through a client of the model's provider."""

    client: Any
    api: Api
    settings: AgentSettings

    def ask(self, arguments: Json) -> Any:
        """The response; streams it if the settings say so."""
        if not self.settings.stream:
            return self.api.create(self.client, arguments)
        telling = self.api.telling()
        for text in telling.texts(self.client, arguments):
            for hook in self.settings.hooks.on_text:
                call(hook, text)
        return telling.response

    async def aask(self, arguments: Json) -> Any:
        """The same with an async client."""
        if not self.settings.stream:
            return await self.api.create(self.client, arguments)
        telling = self.api.telling()
        async for text in telling.atexts(self.client, arguments):
            for hook in self.settings.hooks.on_text:
                await acall(hook, text)
        return telling.response


def is_lost(error: Exception) -> bool:
    """Whether a response began but did not arrive completely, as opposed to a refused or wrong request."""
    status: object = getattr(error, "status_code", getattr(error, "code", None))
    if isinstance(status, int):
        return status < _REFUSED
    return not isinstance(error, TypeError | AttributeError)
