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
from render import Rendered, RequestValidator, View, open_view, show
from timeline.arguments._checks import checked_name, checked_text, checked_whole
from timeline.arguments._fixed import System, Tools
from timeline.engine._engine import Core
from timeline.engine._flow import Flow, Work
from timeline.engine._settings import Settings
from timeline.engine._snapshot import Shot

if TYPE_CHECKING:
    from persistence import Hit


@attrs.frozen(kw_only=True)
class Looking:
    """The verbs that leave a timeline as it is."""

    core: Core
    settings: Settings

    def at(self, version: int) -> Flow[View]:
        """The view as it was at a version."""
        checked_whole(version, "at()", "version")
        events: list[Recorded] = yield from self.core.events()
        if not 0 <= version <= len(events):
            raise MisuseError(f"version {version} is not in 0..{len(events)}")
        return open_view(window_of(events[:version]))

    def show_at(self, version: int, system: System, tools: Tools) -> Flow[Rendered]:
        """The request that the log renders to at a version; decides and records nothing."""
        view = yield from self.at(version)
        context = self.settings.context(system, tools, self.core.clock())
        return show(view, context, RequestValidator())

    def fork(self, name: str, at: int | None) -> Flow[None]:
        """A copy of the log's beginning under another name."""
        checked_name(name, "fork()")
        if at is not None:
            checked_whole(at, "fork()", "at")
        yield from self.core.flush()
        version = self.core.version if at is None else at
        event = TimelineForked(
            id=EventId(self.core.ids()),
            at=self.core.clock(),
            parent=self.core.id,
            version=version,
        )
        source, store, target = self.core.id, self.core.store, TimelineId(name)
        yield Work(lambda: store.fork(source, target, event, at=version))

    def snapshot(self) -> Flow[Shot]:
        """The timeline as it is now, for good."""
        version = yield from self.core.flush()
        return Shot(
            view=self.core.view, version=version, settings=self.settings, at=self.core.clock()
        )

    def search(self, query: str, limit: int) -> Flow[Sequence["Hit"]]:
        """The blocks that match a query."""
        checked_text(query, "search()", "query")
        checked_whole(limit, "search()", "limit", 1)
        from persistence import search_blocks

        store, name = self.core.store, self.core.id
        found: Sequence[Hit] = yield Work(lambda: search_blocks(store, query, name, limit))
        return found

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path."""
        checked_text(path, "read()", "path")
        return (yield from self.core.read(path))

    def events(self, after: int) -> Flow[Sequence[Recorded]]:
        """The log."""
        checked_whole(after, "events()", "after")
        return (yield from self.core.events(after))


def repr_of(timeline: object, looking: Looking) -> str:
    """Which timeline it is; nothing of what it holds."""
    core, settings = looking.core, looking.settings
    return (
        f"<{type(timeline).__name__} {core.id!r}: version {core.version}, "
        f"model {settings.model.name}, window {settings.limit:,}>"
    )
