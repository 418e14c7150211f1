"""What one can ask a timeline without changing it: what it holds, what it held, a copy of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from blocks import (
    Block,
    EventId,
    MisuseError,
    Recorded,
    TimelineForked,
    TimelineId,
    window_of,
)
from render import Rendered, View, open_view, show
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

    def at(self, version: int) -> Flow[View]:
        """The view as it was at a version."""
        checked_whole(version, "at()", "version")
        events: list[Recorded] = yield from self.engine.events()
        if not 0 <= version <= len(events):
            raise MisuseError(f"version {version} is not in 0..{len(events)}")
        return open_view(window_of(events[:version]))

    def show_at(self, version: int, system: System, tools: Tools) -> Flow[Rendered]:
        """The request that the log renders to at a version; decides and records nothing."""
        view = yield from self.at(version)
        context = self.settings.context(system, tools, self.engine.clock())
        return show(view, context)

    def fork(self, name: str, at: int | None) -> Flow[None]:
        """A copy of the log's beginning under another name."""
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

    def snapshot(self) -> Flow[Shot]:
        """The timeline as it is now, for good."""
        version = yield from self.engine.flush()
        return Shot(
            view=self.engine.view, version=version, settings=self.settings, at=self.engine.clock()
        )

    def search(self, query: str, limit: int) -> Flow[Sequence["Hit"]]:
        """The blocks that match a query."""
        checked_text(query, "search()", "query")
        checked_whole(limit, "search()", "limit", 1)
        from persistence import search_blocks

        store, name = self.engine.store, self.engine.id
        found: Sequence[Hit] = yield RunBlocking(lambda: search_blocks(store, query, name, limit))
        return found

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path."""
        checked_text(path, "read()", "path")
        return (yield from self.engine.read(path))

    def events(self, after: int) -> Flow[Sequence[Recorded]]:
        """The log."""
        checked_whole(after, "events()", "after")
        return (yield from self.engine.events(after))


def repr_of(timeline: object, looking: Looking) -> str:
    """Which timeline it is; nothing of what it holds."""
    engine, settings = looking.engine, looking.settings
    return (
        f"<{type(timeline).__name__} {engine.id!r}: version {engine.version}, "
        f"model {settings.model.name}, window {settings.limit:,}>"
    )
