"""Putting a timeline together from its options; both shells do it the same way."""

import time
from pathlib import Path

import attrs

from blocks import MisuseError, TimelineId
from persistence import EventStore, MemoryStore
from timeline._compactor import Compactor
from timeline._core import Core
from timeline._hooks import Hooks
from timeline._ids import time_ordered
from timeline._keeper import Keeper, opener_of
from timeline._settings import Options, Settings
from timeline._steps import Watch
from timeline._summarize import ExtractiveSummarizer
from timeline._verbs import Verbs


def prepare(name: str, options: Options) -> tuple[Verbs, EventStore | None]:
    """The verbs of a timeline that is still to be loaded, and the store that it owns, if any."""
    if not name.strip():
        raise MisuseError("a timeline needs a name")
    settings = Settings.of(options)
    store = options.get("store") or MemoryStore()
    owned: EventStore | None = None
    if isinstance(store, Path | str):
        from persistence import DuckDBStore

        store = owned = DuckDBStore(store)
    clock = options.get("clock", time.time)
    keeper = Keeper(
        timeline=TimelineId(name),
        opener=opener_of(store, options.get("artifacts", ""), options.get("keys"), clock),
        requester=options.get("requester"),
        probe=options.get("probe"),
    )
    settings = attrs.evolve(settings, can_externalize=keeper.opener is not None)
    core = Core(
        id=TimelineId(name),
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
    return Verbs(core=core, settings=settings, watch=watch), owned
