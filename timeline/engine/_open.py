"""Opening and closing a timeline; both shells do it the same way."""

import time
from os import PathLike
from typing import cast

import attrs

from blocks import MisuseError, TimelineId
from persistence import EventStore, MemoryStore
from timeline.arguments._checks import checked_name
from timeline.arguments._options import checked_options
from timeline.engine._artifacts import Keeper, opener_of
from timeline.engine._compaction import Compactor
from timeline.engine._engine import Core
from timeline.engine._flow import Flow, Work
from timeline.engine._ids import time_ordered
from timeline.engine._operations import Verbs
from timeline.engine._settings import Options, Settings
from timeline.observe._hooks import Hooks
from timeline.observe._steps import Watch
from timeline.summarizers._summarizer import ExtractiveSummarizer


@attrs.define
class Opening:
    """A timeline on its way. Whoever drives `flow` calls `give_up` when it does not come through."""

    name: str
    options: Options
    verbs: Verbs = attrs.field(init=False)
    owned: EventStore | None = attrs.field(default=None, init=False)
    """The store, if it was made for this timeline."""

    def flow(self) -> Flow[None]:
        """Open the store, then read the window."""
        yield Work(self._prepare)
        yield from self.verbs.core.load()

    def _prepare(self) -> None:
        name = TimelineId(checked_name(self.name, "open()"))
        options = cast("Options", checked_options(self.options))
        settings = Settings.of(options)
        store = _store_of(options)
        if not isinstance(store, str | PathLike):
            self.verbs = verbs_of(name, store, settings, options)
            return
        from persistence import DuckDBStore

        self.owned = DuckDBStore(store)
        self.verbs = verbs_of(name, self.owned, settings, options)

    def give_up(self) -> None:
        """Let go of the file."""
        if self.owned is not None:
            self.owned.close()


def _store_of(options: Options) -> "EventStore | str | PathLike[str]":
    """The store, or the path of its file.

    Raises:
        MisuseError: it is neither.
    """
    store = cast("object", options.get("store"))
    if store is None:
        return MemoryStore()
    if isinstance(store, type) or not isinstance(store, str | PathLike | EventStore):
        raise MisuseError(
            f"store={store!r:.80}: give the path of a DuckDB file, or a store such as"
            " MemoryStore() or DuckDBStore(path)"
        )
    return cast("EventStore | str | PathLike[str]", store)


def verbs_of(name: TimelineId, store: EventStore, settings: Settings, options: Options) -> Verbs:
    """What one can do to the timeline, which is still to be loaded."""
    clock = options.get("clock", time.time)
    keeper = Keeper(
        timeline=name,
        opener=opener_of(store, options.get("artifacts", ""), options.get("keys"), clock),
        requester=options.get("requester"),
        probe=options.get("probe"),
    )
    settings = attrs.evolve(settings, can_externalize=keeper.opener is not None)
    core = Core(
        id=name,
        store=store,
        ids=options.get("ids", time_ordered),
        clock=clock,
        keeper=keeper,
        compactor=Compactor(
            hooks=options.get("hooks", Hooks()),
            summarizer=options.get("summarizer", ExtractiveSummarizer()),
            keeper=keeper,
        ),
    )
    watch = Watch(observers=tuple(options.get("observers", ())), tracer=options.get("tracer"))
    return Verbs(core=core, settings=settings, watch=watch)
