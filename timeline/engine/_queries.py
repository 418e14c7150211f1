"""What one can ask a timeline without changing it: what it holds, what it held, a copy of it.

Written once for both shells, as `_operations` is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import attrs

from blocks import (
    Block,
    CallId,
    EventId,
    MisuseError,
    Recorded,
    TimelineForked,
    TimelineId,
    window_of,
)
from render import Context, Rendered, View, open_view, show
from timeline.arguments._checks import checked_name, checked_text, checked_whole
from timeline.arguments._fixed import System, Tools
from timeline.engine._engine import Engine
from timeline.engine._flow import Flow, RunBlocking
from timeline.engine._settings import Settings
from timeline.engine._snapshot import Shot

if TYPE_CHECKING:
    from persistence import Hit


@attrs.frozen(kw_only=True)
class Looking:
    """The operations that leave a timeline as it is."""

    engine: Engine
    settings: Settings

    def open_calls(self) -> tuple[CallId, ...]:
        """Calls of the newest round that have no result yet, in order."""
        view = self.engine.view
        calls = view.groups[-1].open_calls if view.groups else ()
        return tuple(call_id for call_id in calls if view.unanswered(call_id))  # none came late

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path: visible, hidden or folded.

        Raises:
            UnknownPathError: nothing was ever appended there.
            MisuseError: the path is no text.
        """
        checked_text(path, "read()", "path")
        return (yield from self.engine.read(path))

    def search(self, query: str, *, limit: int = 20) -> Flow[Sequence["Hit"]]:
        """The blocks that match a query, visible or not, best first; see `search_blocks`.

        Raises:
            MisuseError: the query is no text, or asks for nothing, or the limit is not positive.
        """
        checked_text(query, "search()", "query")
        checked_whole(limit, "search()", "limit", 1)
        from persistence import search_blocks

        store, name = self.engine.store, self.engine.id
        found: Sequence[Hit] = yield RunBlocking(lambda: search_blocks(store, query, name, limit))
        return found

    def events(self, *, after: int = 0) -> Flow[Sequence[Recorded]]:
        """The log, with versions, oldest first.

        Raises:
            MisuseError: `after` is no version.
        """
        checked_whole(after, "events()", "after")
        return (yield from self.engine.events(after))

    def at(self, version: int) -> Flow[View]:
        """The view as it was at a version.

        Raises:
            MisuseError: the log has no such version.
        """
        checked_whole(version, "at()", "version")
        events: list[Recorded] = yield from self.engine.events()
        if not 0 <= version <= len(events):
            raise MisuseError(f"version {version} is not in 0..{len(events)}")
        return open_view(window_of(events[:version]))

    def render_at(
        self, version: int, *, system: System = None, tools: Tools = None
    ) -> Flow[Rendered]:
        """The request that the log renders to at a version; decides and records nothing.

        Raises:
            MisuseError: the log has no such version, or the system prompt or a tool's definition is none.
        """
        view = yield from self.at(version)
        return show(view, self._context(system, tools))

    def snapshot(self) -> Flow[Shot]:
        """The timeline as it is now: whatever is appended later, the snapshot stays the same."""
        version = yield from self.engine.flush()
        return Shot(
            view=self.engine.view, version=version, settings=self.settings, at=self.engine.clock()
        )

    def fork(self, name: str, *, at: int | None = None) -> Flow[Self]:
        """A new timeline in the same store that begins as a copy of this one.

        Raises:
            MisuseError: the name is none, or the log has no version `at`.
            TimelineExistsError: there is a timeline of this name.
            UnknownTimelineError: nothing was ever appended to this one.
        """
        checked_name(name, "fork()")
        if at is not None:
            checked_whole(at, "fork()", "at")
        yield from self.engine.flush()
        version = self.engine.version if at is None else at
        event = TimelineForked(
            id=EventId(self.engine.ids()),
            at=self.engine.clock(),
            parent=self.engine.id,
            version=version,
        )
        source, store, target = self.engine.id, self.engine.store, TimelineId(name)
        yield RunBlocking(lambda: store.fork(source, target, event, at=version))
        forked = attrs.evolve(self, engine=attrs.evolve(self.engine, id=target))
        yield from forked.engine.load()
        return forked

    def _context(self, system: System, tools: Tools) -> Context:
        """What a render at this moment may know."""
        return self.settings.context(system, tools, self.engine.clock())
