"""Opening and closing a timeline; both shells do it the same way."""

import time
from hashlib import sha256
from os import PathLike
from typing import Final, cast

import attrs

from blocks import MisuseError, TimelineId
from persistence import EventStore, MemoryStore, open_store
from timeline._flow import Flow, RunBlocking
from timeline.arguments._checks import checked_name
from timeline.arguments._options import checked_options
from timeline.engine._artifacts import ArtifactService, opener_of
from timeline.engine._compaction import Compactor
from timeline.engine._engine import Engine
from timeline.engine._observers import Observers
from timeline.engine._operations import Operations
from timeline.engine._retention import Retention
from timeline.engine._sealing import Sealing
from timeline.engine._settings import Options, Settings, time_ordered
from timeline.observe._hooks import Hooks
from timeline.observe._traces import Traces
from timeline.summarizers._summarizer import ExtractiveSummarizer

CACHE_KEY_LENGTH: Final = 32
"""Number of characters of the hash of a timeline's name. The name itself is not sent to the provider."""


@attrs.define
class Opening:
    """A timeline that is being opened. If `flow` fails, its driver must call `give_up`."""

    name: str
    options: Options
    operations: Operations = attrs.field(init=False)
    owned: EventStore | None = attrs.field(default=None, init=False)
    """The store, if it was opened for this timeline."""

    def flow(self) -> Flow[None]:
        """Open the store, then read the window."""
        yield RunBlocking(self._prepare)
        yield from self.operations.engine.load()

    def _prepare(self) -> None:
        name = TimelineId(checked_name(self.name, "open()"))
        options = cast("Options", checked_options(self.options))
        settings = Settings.of(options)
        store = _store_of(options)
        if isinstance(store, str | PathLike):
            store = self.owned = open_store(store)
        self.operations = verbs_of(name, store, settings, options)

    def give_up(self) -> None:
        """Close the store if it was opened here. Safe to call more than once."""
        if self.owned is not None:
            self.owned.close()


def _store_of(options: Options) -> "EventStore | str | PathLike[str]":
    """The given store, or its path or URL.

    Raises:
        MisuseError: it is neither a store nor a path or URL.
    """
    store = cast("object", options.get("store"))
    if store is None:
        return MemoryStore()
    if isinstance(store, type) or not isinstance(store, str | PathLike | EventStore):
        raise MisuseError(
            f"store={store!r:.80}: give the path or the URL of a store, or a store such as"
            " MemoryStore() or DuckDBStore(path); your own is a subclass of EventStore"
        )
    return cast("EventStore | str | PathLike[str]", store)


def verbs_of(
    name: TimelineId, store: EventStore, settings: Settings, options: Options
) -> Operations:
    """The operations of a timeline that is not loaded yet."""
    clock = options.get("clock", time.time)
    artifact_service = ArtifactService(
        timeline=name,
        opener=opener_of(store, options.get("artifacts", ""), options.get("keys"), clock),
        requester=options.get("requester"),
        probe=options.get("probe"),
        clock=clock,
        seconds=settings.policy.artifact_seconds,
    )
    can_externalize = artifact_service.opener is not None
    sealing = Sealing(
        service=artifact_service,
        ids=options.get("ids", time_ordered),
        policy=settings.policy,
        is_possible=can_externalize and settings.can_encrypt,
        is_needed=not isinstance(store, MemoryStore),
    )
    settings = attrs.evolve(
        settings,
        can_externalize=can_externalize,
        can_seal=sealing.is_possible or not sealing.is_needed,
        cache_key=sha256(f"foldline:{name}".encode()).hexdigest()[:CACHE_KEY_LENGTH],
    )
    retention = Retention.of(options.get("retention"), options.get("archive"), store)
    observers, traces = tuple(options.get("observers", ())), Traces(name, options.get("tracer"))
    engine = Engine(
        id=name,
        store=store,
        ids=options.get("ids", time_ordered),
        clock=clock,
        sealing=sealing,
        retention=attrs.evolve(retention, observers=observers),
        traces=traces,
        artifact_service=artifact_service,
        compactor=Compactor(
            hooks=options.get("hooks", Hooks()),
            summarizer=options.get("summarizer", ExtractiveSummarizer()),
            artifact_service=artifact_service,
            traces=traces,
        ),
    )
    watch = Observers(observers=observers, traces=traces) if observers or traces.are_on else None
    return Operations(engine=engine, settings=settings, observers=watch)
