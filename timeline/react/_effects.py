"""What the loop asks for: effects that a sync and an async shell perform.

Everything that takes time is an `Effect` that the loop yields; it is sent the result, or has the
error thrown in.  What is no `Exception` (Ctrl-C, a cancelled task) ends the generator; the shell
then leaves the log in order.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

import attrs

from blocks import ToolCall
from render import Json
from timeline.react._hooks import Hook

_T = TypeVar("_T")


@attrs.frozen
class Use:
    """Do something with the timeline; with an async one it is to be awaited."""

    do: Callable[[], Any]


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


Effect: TypeAlias = Use | Ask | RunTools | Notify
Flow: TypeAlias = Generator[Effect, Any, _T]
