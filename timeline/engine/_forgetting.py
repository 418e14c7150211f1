"""Forgetting on request: a timeline, a block or an artifact is removed from the store, not only hidden.

A block is hidden first, so that the view and all other writers of this timeline are in the same state as after
`hide`; then every stored event that contains or quotes the block is replaced.  Last, the store's files are rewritten.
Copies are not reached; the result says where there may be one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from blocks import BlockAppended, MisuseError, TimelineId, is_sealed, withheld_after
from persistence import EventStore, Removed, TimelineInfo
from timeline._flow import Flow, RunBlocking
from timeline.engine._engine import Engine
from timeline.engine._hiding import content_id, hide, targets_of
from timeline.engine._sharing import taken_back
from timeline.engine._withholding import FORGOTTEN, is_forgotten

if TYPE_CHECKING:
    from persistence import ArtifactMetadata

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
    """Remove a timeline with its archives and artifacts."""
    engine.check_open()
    store = _retaining(engine)
    log = yield from engine.events()
    blocks = sum(isinstance(event, BlockAppended) for _, event in log)
    kept = yield from engine.kept()
    copies = yield from _copies(engine)
    artifacts, size, lasting = yield from _forget_artifacts(engine)
    remove = partial(store.remove, engine.id)
    removed, left = yield from _erased(store, remove)
    engine.pending = ()
    yield from engine.load()
    shared = [archive.file for archive in kept.archives if archive.file not in removed.unused]
    return Forgotten(
        timeline=engine.id,
        events=removed.events,
        blocks=blocks,
        artifacts=artifacts,
        size=removed.size + size,
        may_remain=(
            *copies,
            *(f"the archive {file}" for file in shared),
            *lasting,
            *left,
            *OUTSIDE,
        ),
    )


def forget_block(engine: Engine, key: str) -> Flow[Forgotten]:
    """Replace a block by a placeholder in every stored event, and remove all quotations of it.

    Raises:
        UnknownPathError: no block has this path or id.
        ForgottenError: it was forgotten already.
    """
    store = _retaining(engine)
    [target] = yield from targets_of(engine, [key])
    yield from hide(engine, [key], FORGOTTEN)
    log = yield from engine.events()
    gone = {} if is_forgotten(target.block) else {target.block.id: FORGOTTEN}  # repeated call
    withheld = {block: item.replacement for block, item in withheld_after(log).items()}
    after = taken_back(log, gone, withheld)
    changed = {v: new for (v, old), (_, new) in zip(log, after, strict=True) if new != old}
    found = content_id(target.block)
    artifacts, size, lasting = (
        (yield from _forget_artifacts(engine, found)) if found else (0, 0, ())
    )
    rewrite = partial(store.rewrite, engine.id, changed)
    removed, left = yield from _erased(store, rewrite)
    yield from engine.load()
    copies = yield from _copies(engine)
    return Forgotten(
        timeline=engine.id,
        events=removed.events,
        blocks=1,
        artifacts=artifacts,
        size=removed.size + size,
        may_remain=(*copies, *lasting, *left, REPEATED, *OUTSIDE),
    )


def forget_artifact(engine: Engine, artifact: str) -> Flow[Forgotten]:
    """Remove an artifact that was stored for this timeline.

    Raises:
        MisuseError: there is no such artifact, or it belongs to another timeline.
    """
    engine.check_open()
    number, size, lasting = yield from _forget_artifacts(engine, artifact)
    log = yield from engine.events()
    is_all = any(
        isinstance(e, BlockAppended) and content_id(e.block) == artifact and is_sealed(e.block)
        for _, e in log
    )
    if not number:
        why = (
            "; ".join(lasting)
            or "its metadata names another timeline, or there is no such artifact"
        )
        raise MisuseError(f"no artifact {artifact!r} of timeline {engine.id!r} was removed: {why}")
    left: tuple[str, ...] = yield RunBlocking(engine.store.erase)
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


def _erased(
    store: EventStore, remove: Callable[[], Removed]
) -> Flow[tuple[Removed, tuple[str, ...]]]:
    """Remove events, and rewrite the store's files so that nothing of them is left; return what was removed, and
    where copies may remain."""

    def erased() -> tuple[Removed, tuple[str, ...]]:
        removed = remove()
        for file in removed.unused:
            Path(file).unlink(missing_ok=True)
        return removed, store.erase()

    done: tuple[Removed, tuple[str, ...]] = yield RunBlocking(erased)
    return done


def _forget_artifacts(
    engine: Engine, artifact: str | None = None
) -> Flow[tuple[int, int, tuple[str, ...]]]:
    """The number of artifacts that were removed, their size in bytes, and the reasons why some may remain."""
    service = engine.artifact_service
    store = service.store
    if store is None:
        return 0, 0, ()
    found: Sequence[ArtifactMetadata] = yield RunBlocking(
        partial(store.forget, engine.id, artifact)
    )
    service.drop()
    engine.sealing.drop()
    yield from engine.load()
    return len(found), sum(metadata.size for metadata in found), ()


def _copies(engine: Engine) -> Flow[tuple[str, ...]]:
    """The names of forks of this timeline, and of the timeline that it was forked from."""

    def found() -> tuple[str, ...]:
        infos = engine.store.list()
        began = [info.created_at for info in infos if info.id == engine.id]
        alike = [info for info in infos if info.id != engine.id and info.created_at in began]
        return tuple(f"timeline {each.id!r}" for each in alike if _is_copy(engine, each))

    names: tuple[str, ...] = yield RunBlocking(found)
    return names


def _is_copy(engine: Engine, info: TimelineInfo) -> bool:
    """Whether another timeline shares its first event with this one; also True if one of them has no events."""
    store = engine.store
    gone = max(store.kept(name).forgotten for name in (engine.id, info.id))
    mine, other = (store.read(name, after=gone, limit=1) for name in (engine.id, info.id))
    return not mine or not other or mine[0][1].id == other[0][1].id
