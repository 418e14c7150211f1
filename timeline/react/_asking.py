"""Asking the model: whole or streamed, once more when the response broke off on its way.

The SDK's client retries by itself what fails before a response begins (429, 500, 529, a connection
that was refused); a stream that breaks off later it cannot mend.  Nothing of such a response is
recorded.
"""

import logging
from typing import Any, Final

import attrs

from render import Json
from timeline.observe._hooks import acall, call
from timeline.react._hooks import AgentHooks, StreamLost

log = logging.getLogger("foldline")

LOSSES_MAX: Final = 1
"""Times that one request is sent again because its response broke off."""
_REFUSED: Final = 400
"""From this HTTP status on, it was not the response that went wrong."""


class ResponseLostError(Exception):
    """A stream ended without saying how the message ends."""


@attrs.frozen(kw_only=True)
class Asker:
    """Asks through a client, `anthropic.Anthropic` or `AsyncAnthropic`."""

    client: Any
    hooks: AgentHooks
    stream: bool

    def ask(self, arguments: Json) -> Any:
        """The response."""
        for _ in range(LOSSES_MAX):
            try:
                return self._ask(arguments)
            except Exception as error:
                if not is_lost(error):
                    raise
                log.warning("a response broke off, asking again: %s", error)
                for hook in self.hooks.on_lost:
                    call(hook, StreamLost(error=error))
        return self._ask(arguments)

    def _ask(self, arguments: Json) -> Any:
        if not self.stream:
            return self.client.messages.create(**arguments)
        with self.client.messages.stream(**arguments) as stream:
            for text in stream.text_stream:
                for hook in self.hooks.on_text:
                    call(hook, text)
            return _whole(stream.get_final_message())

    async def aask(self, arguments: Json) -> Any:
        """The response, from an async client."""
        for _ in range(LOSSES_MAX):
            try:
                return await self._aask(arguments)
            except Exception as error:
                if not is_lost(error):
                    raise
                log.warning("a response broke off, asking again: %s", error)
                for hook in self.hooks.on_lost:
                    await acall(hook, StreamLost(error=error))
        return await self._aask(arguments)

    async def _aask(self, arguments: Json) -> Any:
        if not self.stream:
            return await self.client.messages.create(**arguments)
        async with self.client.messages.stream(**arguments) as stream:
            async for text in stream.text_stream:
                for hook in self.hooks.on_text:
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
