"""Removing events from the store: on request, and after compactions.

A timeline, a block or an artifact is forgotten on request (`forget_timeline`, `forget_block`, `forget_artifact`). A
block is hidden first, so that the view and all other writers of this timeline are in the same state as after `hide`;
then every stored event that contains or quotes the block is replaced.  Last, the store's files are rewritten.  Copies
are not reached; the result says where there may be one.

`Retention` says what happens to events that the window no longer needs:

    keep      all events stay in the store
    archive   older events are moved into files in a folder or a bucket, and are read from there
    forget    older events are removed

It is applied after a compaction is committed.  An error is logged and reported to observers; the compaction stays
valid, and the next one tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import attrs

import persistence
from blocks import (
    ArtifactId,
    BlockAppended,
    BlocksHidden,
    Event,
    FoldlineError,
    MisuseError,
    RangeCompacted,
    Recorded,
    TimelineId,
    in_short,
    is_sealed,
    withheld_after,
)
from persistence import EventStore, Removed
from timeline._flow_drivers import CallHook, Flow, blocking
from timeline.engine._artifacts import sealed_in
from timeline.engine._hiding import (
    FORGOTTEN,
    content_id,
    hide,
    is_forgotten,
    taken_back,
    targets_of,
)

if TYPE_CHECKING:
    from timeline.engine._engine import Engine
    from timeline.observe._steps import Step

log = logging.getLogger("foldline")


# Forgetting on request.


OUTSIDE: Final = (
    "backups and copies of the store's files, and blocks of the disk that they used",
    "what the provider keeps of requests that were sent",
)
MADE_OF: Final = "the block that it was made of; forget that, too"
REPEATED: Final = "other blocks that say the same, and a model's words for it"


@attrs.frozen(kw_only=True)
class Forgotten:
    """What was removed, and where copies may remain."""

    timeline: TimelineId
    events: int = 0
    """Number of events that were removed, or replaced because they held or quoted the content."""
    blocks: int = 0
    artifacts: int = 0
    size: int = 0
    """Bytes: the JSON of events that were removed or replaced, and the content of artifacts."""
    may_remain: tuple[str, ...] = ()
    """Places where a copy may remain."""


def forget_timeline(engine: Engine) -> Flow[Forgotten]:
    """Remove a timeline with its archives and artifacts.

    Raises:
        MisuseError: an artifact is in another store.
    """
    engine.check_open()
    store = _retaining(engine)
    log = yield from engine.events_at_hand()
    elsewhere = yield from _checked_artifacts(engine, log)
    blocks = sum(isinstance(event, BlockAppended) for _, event in log)
    rest = yield from engine.rest_of_log()
    copies = yield from blocking(_copies, engine.store, engine.id)
    artifacts, size = yield from _forget_artifacts(engine)
    removed, left = yield from blocking(_erased, store, partial(store.remove, engine.id))
    engine.pending = ()
    yield from engine.load()
    shared = [archive.file for archive in rest.archives if archive.file not in removed.unused]
    return Forgotten(
        timeline=engine.id,
        events=removed.events,
        blocks=blocks,
        artifacts=artifacts,
        size=removed.size + size,
        may_remain=(
            *copies,
            *(f"the archive {file}" for file in shared),
            *elsewhere,
            *left,
            *OUTSIDE,
        ),
    )


def forget_block(engine: Engine, key: str) -> Flow[Forgotten]:
    """Replace a block by a placeholder in every stored event, and remove all quotations of it.

    Raises:
        UnknownPathError: no block has this path or id.
        ForgottenError: it was forgotten already.
        MisuseError: its artifact is in another store.
    """
    store = _retaining(engine)
    [(_, block)] = yield from targets_of(engine, [key])
    artifact = content_id(block)
    log = (yield from engine.events()) if artifact else []
    elsewhere = yield from _checked_artifacts(engine, log, artifact)
    yield from hide(engine, [key], FORGOTTEN)
    log = yield from engine.events()
    texts = {} if is_forgotten(block) else {block.id: FORGOTTEN}  # repeated call
    withheld = {hidden: item.replacement for hidden, item in withheld_after(log).items()}
    after = taken_back(log, texts, withheld)
    changed = {v: new for (v, old), (_, new) in zip(log, after, strict=True) if new != old}
    artifacts, size = (yield from _forget_artifacts(engine, artifact)) if artifact else (0, 0)
    removed, left = yield from blocking(_erased, store, partial(store.rewrite, engine.id, changed))
    yield from engine.load()
    copies = yield from blocking(_copies, engine.store, engine.id)
    return Forgotten(
        timeline=engine.id,
        events=removed.events,
        blocks=1,
        artifacts=artifacts,
        size=removed.size + size,
        may_remain=(*copies, *elsewhere, *left, REPEATED, *OUTSIDE),
    )


def forget_artifact(engine: Engine, artifact: str) -> Flow[Forgotten]:
    """Remove an artifact that was stored for this timeline.

    Raises:
        MisuseError: there is no such artifact, or it belongs to another timeline.
    """
    engine.check_open()
    number, size = yield from _forget_artifacts(engine, artifact)
    log = yield from engine.events()
    is_all = any(
        isinstance(e, BlockAppended) and content_id(e.block) == artifact and is_sealed(e.block)
        for _, e in log
    )
    if not number:
        raise MisuseError(
            f"artifact {artifact!r} of timeline {engine.id!r} was not removed: its metadata names another"
            " timeline, or there is no such artifact"
        )
    left = yield from blocking(engine.store.erase)
    return Forgotten(
        timeline=engine.id,
        artifacts=number,
        size=size,
        may_remain=(*(() if is_all else (MADE_OF,)), *left, *OUTSIDE),
    )


def _retaining(engine: Engine) -> EventStore:
    if not engine.store.can_remove:
        raise MisuseError("this store cannot remove events, so nothing can be forgotten in it")
    return engine.store


def _erased(store: EventStore, remove: Callable[[], Removed]) -> tuple[Removed, tuple[str, ...]]:
    """Remove events, and rewrite the store's files so that nothing of them is left; return what was removed, and
    where copies may remain."""
    removed = remove()
    left = tuple(f"the archive {file}, which could not be removed" for file in _undeleted(removed))
    return removed, (*left, *store.erase())


def _undeleted(removed: Removed) -> tuple[str, ...]:
    """Delete the archives to which no log refers any more; return those that could not be deleted."""
    return tuple(file for file in removed.unused if not persistence.remove_archive(file))


def _checked_artifacts(
    engine: Engine, log: Sequence[Recorded], only: ArtifactId | None = None
) -> Flow[tuple[str, ...]]:
    """The artifacts into which the timeline has put results, or only this one, that its artifact store never had; they
    may be in another.

    Raises:
        MisuseError: one of them is all that there is of a confidential result.
    """
    events = [event for _, event in log]
    sealed, service = sealed_in(events), engine.artifact_service
    moves = (e.hidden for e in events if isinstance(e, BlocksHidden) and e.reason == "externalized")
    stored = sealed.union(item.artifact for hidden in moves for item in hidden)
    stored = stored if only is None else stored & {only}
    absent = stored - (yield from blocking(service.ever_put)) if stored else stored
    if service.opener and (lost := absent & sealed):
        raise MisuseError(
            f"nothing was forgotten: artifact {min(lost)} is not in this artifact store, and would remain;"
            f" open {engine.id!r} with artifacts=WHERE, or with artifacts=None if it is gone for good"
        )
    return tuple(f"artifact {each}, if it is in another store" for each in sorted(absent))


def _forget_artifacts(engine: Engine, artifact: str | None = None) -> Flow[tuple[int, int]]:
    """The number of artifacts that were removed, and their size in bytes."""
    service = engine.artifact_service
    store = service.store
    if store is None:
        return 0, 0
    forgotten = yield from blocking(store.forget, engine.id, artifact)
    service.drop()
    engine.sealing.drop()
    yield from engine.load()
    return len(forgotten), sum(metadata.size for metadata in forgotten)


def _copies(store: EventStore, timeline: TimelineId) -> tuple[str, ...]:
    """The names of forks of a timeline, and of the timeline that it was forked from."""
    infos = store.list()
    began = [info.created_at for info in infos if info.id == timeline]
    alike = [info.id for info in infos if info.id != timeline and info.created_at in began]
    return tuple(f"timeline {name!r}" for name in alike if _is_copy(store, timeline, name))


def _is_copy(store: EventStore, timeline: TimelineId, name: TimelineId) -> bool:
    """Whether two timelines share their first event; also True if one of them has no events, or it cannot be read."""
    left, away = zip(*(store.at_hand(each) for each in (timeline, name)), strict=True)
    after = max(rest.forgotten for rest in left)
    mine, other = (store.read(each, after=after, limit=1) for each in (timeline, name))
    return any(away) or not mine or not other or mine[0][1].id == other[0][1].id


# Retention after a compaction.


Keeping: TypeAlias = Literal["keep", "archive", "forget"]
"""What to do with events that the window no longer needs."""
STEP: Final = 10_000
"""Largest number of events in one archive file, because these are in memory together."""


@attrs.frozen(kw_only=True)
class Retention:
    """Archiving or forgetting the events that a compaction has folded."""

    folder: str | None
    """Folder or URL for archived events; None: they are forgotten."""

    @classmethod
    def of(
        cls, keeping: str | None, archive: str | PathLike[str] | None, store: EventStore
    ) -> Retention | None:
        """The retention for these options of `Timeline.open`; None: all events are kept.

        Raises:
            MisuseError: no such retention; an archive without a folder, or the reverse; or the store cannot remove
                events.
        """
        if keeping not in (None, *get_args(Keeping)):
            kinds = ", ".join(get_args(Keeping))
            raise MisuseError(f"retention={in_short(repr(keeping))}: give one of {kinds}")
        if (keeping == "archive") != (archive is not None):
            raise MisuseError('retention="archive" and archive=FOLDER must be given together')
        folder = None if archive is None else persistence.checked_place(archive)
        if keeping in (None, "keep"):
            return None
        if not store.can_remove:
            raise MisuseError(f"retention={keeping!r}: this store cannot remove events")
        return cls(folder=folder)

    def after(self, engine: Engine, decided: Sequence[Event]) -> Flow[None]:
        """After these decisions are committed: archive or forget the events that they have folded."""
        folds = [event for event in decided if isinstance(event, RangeCompacted)]
        if not folds:
            return
        try:
            yield from blocking(self.trim, engine.store, engine.id, folds[-1].cut)
        except (FoldlineError, OSError) as error:
            log.warning("%r: retention must be repeated", engine.id, exc_info=True)
            for observer in engine.observers:
                yield CallHook(observer, _failed(engine.id, folds[-1], error))

    def trim(self, store: EventStore, timeline: TimelineId, before: int) -> Removed:
        """Archive or forget all events before version `before`; `unused` are archives that could not be deleted."""
        if self.folder is None:
            removed = store.trim(timeline, before)
            return attrs.evolve(removed, unused=_undeleted(removed))
        until, done = 0, Removed()
        while until < before:
            until = min(store.kept(timeline).first + STEP, before)
            step = store.trim(timeline, until, archive=self.folder)
            done = Removed(events=done.events + step.events, size=done.size + step.size)
        return done


def _failed(timeline: TimelineId, fold: RangeCompacted, error: Exception) -> Step:
    from timeline.observe._steps import Step  # here, because only a failure needs it

    return Step(
        timeline=timeline,
        kind="unretained",
        at=fold.at,
        tokens_before=fold.tokens_after,
        tokens_after=fold.tokens_after,
        limit=0,
        last=fold.cut - 1,
        detail=str(error),
    )
