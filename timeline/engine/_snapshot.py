"""A snapshot: the timeline as it was at one moment, so that several forks can start from the same version.

    snapshot = timeline.snapshot()
    for number in range(3):
        ReactAgent(snapshot.fork(f"part-{number}"), client, tools=tools).run(tasks[number])

Three sub-agents begin with the same bytes, whatever the parent appends meanwhile.
"""

from typing import Generic, Protocol, TypeVar

import attrs

from blocks import checked_calls
from render import Rendered, View, show
from timeline.arguments._fixed import System, Tools
from timeline.engine._settings import Settings

_Forked_co = TypeVar("_Forked_co", covariant=True)


@attrs.frozen(kw_only=True)
class Shot:
    """The state that a snapshot keeps."""

    view: View = attrs.field(repr=False)
    version: int
    settings: Settings = attrs.field(repr=False)
    at: float


class _Forkable(Protocol[_Forked_co]):
    def fork(self, name: str, *, at: int | None = None) -> _Forked_co: ...


@checked_calls()
@attrs.frozen(kw_only=True)
class Snapshot(Generic[_Forked_co]):
    """A timeline as it was at one moment. It decides nothing, writes nothing and never changes."""

    _shot: Shot = attrs.field(alias="shot")
    _timeline: _Forkable[_Forked_co] = attrs.field(alias="timeline", repr=False, eq=False)

    @property
    def version(self) -> int:
        """Events in the log at that moment."""
        return self._shot.version

    @property
    def view(self) -> View:
        """The log at that moment, from the latest summary onward."""
        return self._shot.view

    def render(self, *, system: System = None, tools: Tools = None) -> Rendered:
        """The request that the log rendered to at that moment: always the same bytes."""
        context = self._shot.settings.context(system, tools, self._shot.at)
        return show(self._shot.view, context)

    def fork(self, name: str) -> _Forked_co:
        """A new timeline that begins as a copy of that moment.

        Raises:
            TimelineExistsError: there is already a timeline of this name.
        """
        return self._timeline.fork(name, at=self._shot.version)
