"""Retention: what happens to events that the window no longer needs.

    keep      all events stay in the store
    archive   older events are moved into files in a folder, and are read from there
    forget    older events are removed

Retention is applied after a compaction is committed.  An error is logged and reported to observers; the
compaction stays valid, and the next one tries again.
"""

import logging
from collections.abc import Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import attrs

from blocks import (
    Event,
    FoldlineError,
    LogWindow,
    MisuseError,
    RangeCompacted,
    Recorded,
    TimelineId,
    in_short,
    window_of,
)
from persistence import EventStore, Kept, Removed
from timeline._flow import CallHook, Flow, RunBlocking
from timeline.observe._steps import Observer, Step

log = logging.getLogger("foldline")

Keeping: TypeAlias = Literal["keep", "archive", "forget"]
"""What to do with events that the window no longer needs."""
STEP: Final = 10_000
"""Largest number of events in one archive file, because these are in memory together."""


@attrs.frozen(kw_only=True)
class Retention:
    """What to do with older events, and the folder for archived ones."""

    keeping: Keeping = "keep"
    folder: str = ""
    observers: tuple[Observer, ...] = ()
    """Functions that are called when retention fails."""

    @classmethod
    def of(
        cls, keeping: str | None, archive: "str | PathLike[str] | None", store: EventStore
    ) -> "Retention":
        """The retention for these options of `Timeline.open`.

        Raises:
            MisuseError: no such retention; an archive without a folder, or the reverse; or the store cannot remove
                events.
        """
        if keeping not in (None, *get_args(Keeping)):
            kinds = ", ".join(get_args(Keeping))
            raise MisuseError(f"retention={in_short(repr(keeping))}: give one of {kinds}")
        if (keeping == "archive") != (archive is not None):
            raise MisuseError('retention="archive" and archive=FOLDER go together')
        if archive is not None and not Path(archive).is_dir():
            raise MisuseError(f"no folder {archive} to archive in; create it")
        if keeping in ("archive", "forget") and not store.can_remove:
            raise MisuseError(f"retention={keeping!r}: this store cannot remove events")
        folder = "" if archive is None else fspath(archive)
        return cls(keeping=keeping or "keep", folder=folder)  # type: ignore[arg-type]  # one of them

    def after(
        self, store: EventStore, timeline: TimelineId, decided: Sequence[Event]
    ) -> Flow[None]:
        """After these decisions are committed: archive or forget the events that they have folded."""
        folds = [event for event in decided if isinstance(event, RangeCompacted)]
        if self.keeping == "keep" or not folds or not store.can_remove:
            return
        try:
            yield RunBlocking(partial(self.trim, store, timeline, folds[-1].cut))
        except (FoldlineError, OSError) as error:
            log.warning("%r: retention is to be repeated", timeline, exc_info=True)
            for observer in self.observers:
                yield CallHook(observer, _failed(timeline, folds[-1], error))

    def trim(self, store: EventStore, timeline: TimelineId, before: int) -> Removed:
        """Archive or forget all events before version `before`."""
        if self.keeping == "forget":
            return store.trim(timeline, before)
        done = Removed()
        while (first := store.kept(timeline).first) < before:
            step = store.trim(timeline, min(first + STEP, before), archive=self.folder)
            done = Removed(events=done.events + step.events, size=done.size + step.size)
        return done


def _failed(timeline: TimelineId, fold: RangeCompacted, error: Exception) -> Step:
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


def window_until(
    log: Sequence[Recorded], last: int, kept: Kept, timeline: TimelineId, what: str
) -> LogWindow:
    """The window of a log up to version `last`; `log` has all events that are still stored.

    Raises:
        ForgottenError: the window needs events that were forgotten; `what` names the operation for the message.
    """
    window = window_of([recorded for recorded in log if recorded[0] <= last])
    compaction = window.compaction[1] if window.compaction else None
    first = compaction.cut if isinstance(compaction, RangeCompacted) else 1
    kept.refuse_forgotten(timeline, first, what)
    return window
