"""What the sync and the async timeline have in common, and how both are bound to the operations."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import attrs

from blocks import CallId, TimelineId, misfit
from persistence import EventStore
from render import View
from timeline.engine._flow import Flow
from timeline.engine._operations import Operations
from timeline.engine._settings import Settings

if TYPE_CHECKING:
    from persistence import ArtifactStore, Requester


@attrs.define(kw_only=True, eq=False, repr=False)
class Shell:
    """A timeline, whoever drives its operations."""

    _operations: Operations = attrs.field(alias="operations")
    _owned: EventStore | None = attrs.field(default=None, alias="owned")
    """The store, if it was made for this timeline."""

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.id!r}: version {self.version}, "
            f"model {self.settings.model.name}, window {self.settings.limit:,}>"
        )

    @property
    def id(self) -> TimelineId:
        """Its name in the store."""
        return self._operations.engine.id

    @property
    def settings(self) -> Settings:
        """What it was opened with: model, policy, limit, counter."""
        return self._operations.settings

    @property
    def artifacts(self) -> "ArtifactStore | None":
        """Where large results go; None: there is no such place. Opened when first asked for."""
        return self._operations.engine.artifact_service.store

    @property
    def requester(self) -> "Requester":
        """In whose name artifacts are stored and read."""
        return self._operations.engine.artifact_service.reader

    @property
    def version(self) -> int:
        """Events that are durable."""
        return self._operations.engine.version

    @property
    def view(self) -> View:
        """The log as it stands, from the latest summary onward."""
        return self._operations.engine.view

    @property
    def open_calls(self) -> tuple[CallId, ...]:
        """Tool calls that wait for a result."""
        return self._operations.open_calls()


_P = ParamSpec("_P")
_S = TypeVar("_S", bound=Shell)
_T = TypeVar("_T")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., object])


def documented_as(other: Callable[..., object]) -> Callable[[_F], _F]:
    """A function that does for asyncio what another one does: it is documented in the same words."""

    def decorate(function: _F) -> _F:
        function.__doc__ = other.__doc__
        return function

    return decorate


def bound(
    run: Callable[[_S, Flow[_T]], _R],
    operation: Callable[Concatenate[Operations, _P], Flow[_T]],
) -> Callable[Concatenate[_S, _P], _R]:
    """A method of a shell: it takes what an operation takes, says what it says, and returns what `run`
    makes of its flow.

    Raises, when called:
        ArgumentError: the operation does not take these arguments.
    """
    shell, _, _ = run.__qualname__.rpartition(".")
    name = f"{shell}.{operation.__name__}"

    @wraps(operation)
    def method(self: _S, *args: _P.args, **named: _P.kwargs) -> _R:
        try:
            flow = operation(self._operations, *args, **named)  # pyright: ignore[reportPrivateUsage] -- its own
        except TypeError as wrong:  # Python's, about the arguments: no flow has begun yet
            raise misfit(operation, f"{name}()", named, wrong) from None
        return run(self, flow)

    @wraps(operation)
    async def amethod(self: _S, *args: _P.args, **named: _P.kwargs) -> Any:
        return await cast("Any", method(self, *args, **named))

    found: Any = amethod if inspect.iscoroutinefunction(run) else method
    found.__qualname__, found.__module__ = name, run.__module__
    signature = inspect.signature(operation)
    result = signature.return_annotation.__args__[-1]  # of Flow[result]
    found.__signature__ = signature.replace(return_annotation=result)
    found.__annotations__ = {**operation.__annotations__, "return": result}
    return cast("Callable[Concatenate[_S, _P], _R]", found)
