"""Driving a generator: do what it asks for, send it the answer or throw in the error.

Everything in this package that takes time is written once, as a generator that yields what it needs;
one of these two runs it, the sync one doing the work itself, the async one awaiting it.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

_E = TypeVar("_E")
_T = TypeVar("_T")


def drive(flow: Generator[_E, Any, _T], perform: Callable[[_E], Any]) -> _T:
    """Run a flow to its end; what it returned."""
    step: Callable[[], _E] = partial(next, flow)
    with closing(flow):  # an interrupt ends it half way
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


async def adrive(flow: Generator[_E, Any, _T], perform: Callable[[_E], Awaitable[Any]]) -> _T:
    """Run a flow to its end, awaiting what it asks for."""
    step: Callable[[], _E] = partial(next, flow)
    with closing(flow):
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
