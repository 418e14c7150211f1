"""The timeline for the model that a framework calls, which may be another one than the timeline's, such as a fallback."""

from collections.abc import Awaitable, Collection
from typing import TypeVar, cast

import attrs

from timeline import AsyncTimeline, Timeline, model_named

_T = TypeVar("_T", bound=Timeline | AsyncTimeline)
_R = TypeVar("_R")


async def finished(result: Awaitable[_R] | _R) -> _R:
    """The result of an operation of a `Timeline` or an `AsyncTimeline`."""
    if isinstance(result, Awaitable):
        return await cast("Awaitable[_R]", result)
    return result


def timeline_for(timeline: _T, name: str, apis: Collection[str] = ()) -> _T:
    """The timeline, rendered for the model of this name, if a table knows it, and for one of these APIs.

    Args:
        name: The model's name in requests.
        apis: The APIs to which the caller can send a request as it was rendered; none: it converts requests of any.
    """
    own, called = timeline.settings.model, model_named(name)
    fits = not apis or own.provider in apis
    if fits and (not called.known or called.name == own.name):
        called = own
    elif apis and called.provider not in apis:
        provider = own.provider if fits else next(iter(apis))
        called = attrs.evolve(called, provider=provider)
    return cast("_T", timeline.for_model(called))
