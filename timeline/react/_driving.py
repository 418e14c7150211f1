"""What the loop asks for, and who does it: one generator, driven by a sync and an async shell.

Everything that takes time is an `Effect` that the loop yields; it is sent the result, or has the
error thrown in.  What is no `Exception` (Ctrl-C, a cancelled task) ends the generator; the shell
then leaves the log in order.
"""

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, TypeAlias, TypeVar

import attrs

from blocks import ToolCall
from render import Rendered
from timeline.react._hooks import Hook

_T = TypeVar("_T")


@attrs.frozen
class Use:
    """Do something with the timeline; with an async one it is to be awaited."""

    do: Callable[[], Any]


@attrs.frozen
class Ask:
    """Render, ask the model, compact when the prompt was too long."""

    take: Callable[[Rendered, Any], Any]
    """Given the request and its response; what it returns is the answer."""


@attrs.frozen
class RunTools:
    """Run these calls and append what they give."""

    calls: tuple[ToolCall, ...]


@attrs.frozen
class Notify:
    """Call hooks."""

    hooks: tuple[Hook, ...]
    argument: object


Effect: TypeAlias = Use | Ask | RunTools | Notify
Flow: TypeAlias = Generator[Effect, Any, _T]


def drive(flow: Flow[_T], perform: Callable[[Effect], Any]) -> _T:
    """Run a flow to its end."""
    step: Callable[[], Effect] = partial(next, flow)
    while True:
        try:
            effect = step()
        except StopIteration as stop:
            result: _T = stop.value
            return result
        try:
            step = partial(flow.send, perform(effect))
        except Exception as error:  # noqa: BLE001 -- the flow decides; it re-raises what it cannot mend
            step = partial(flow.throw, error)


async def adrive(flow: Flow[_T], perform: Callable[[Effect], Awaitable[Any]]) -> _T:
    """Run a flow to its end, awaiting what it asks for."""
    step: Callable[[], Effect] = partial(next, flow)
    while True:
        try:
            effect = step()
        except StopIteration as stop:
            result: _T = stop.value
            return result
        try:
            step = partial(flow.send, await perform(effect))
        except Exception as error:  # noqa: BLE001 -- as above
            step = partial(flow.throw, error)
