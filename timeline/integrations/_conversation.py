"""A conversation of a framework: its timeline, which agrees with the framework's history and is rendered for the model
that the framework calls."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeAlias, TypeVar, cast

import attrs

from blocks import MisuseError, install_command
from timeline import AsyncTimeline, Timeline, model_named

AnyTimeline: TypeAlias = Timeline | AsyncTimeline
_T = TypeVar("_T", bound=AnyTimeline)
_R = TypeVar("_R")


def timeline_of(source: AnyTimeline | Callable[[str], AnyTimeline], name: str) -> Any:
    """The given timeline; or what the given function returns for the conversation of this name."""
    return source if isinstance(source, AnyTimeline) else source(name)


@attrs.define(eq=False)
class Conversation:
    """A history of a framework, and the timeline that has it."""

    timeline: Any
    """The given timeline, or a fork of it if the history was edited."""
    after: int | None = None
    """Version of the timeline after which the history begins; None: there was no history yet."""

    async def begin(self, *, is_new: bool) -> None:
        """Begin with a history that has the whole conversation; or, if it is new, with one that continues it."""
        self.after = 0
        if is_new:
            await finished(self.timeline.close_calls())  # calls that a killed process left open
            self.after = self.timeline.version

    async def sync(self, history: Any, format: str) -> Any:  # noqa: A002 -- as `Timeline.sync`
        """Make the timeline agree with the history; if that was edited, in a fork."""
        synced: Any = await finished(
            self.timeline.sync(history, format=format, after=self.after, on_divergence="fork")
        )
        self.timeline = synced.timeline
        return synced


async def finished(result: Awaitable[_R] | _R) -> _R:
    """The result of an operation of a `Timeline` or an `AsyncTimeline`."""
    if isinstance(result, Awaitable):
        return await cast("Awaitable[_R]", result)
    return result


def timeline_for(timeline: _T, name: str, apis: Collection[str] = ()) -> _T:
    """The timeline, rendered for the model of this name, if a table knows it, and for one of these APIs.

    Args:
        name: The model's name in requests; it may be another one than the timeline's, such as a fallback.
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


def lacking(extra: str, error: ModuleNotFoundError) -> MisuseError:
    """The error for an adapter whose framework cannot be imported; `extra` is the extra that installs it."""
    return MisuseError(
        f"timeline.integrations needs {error.name} for this: {install_command(extra)}"
    )
