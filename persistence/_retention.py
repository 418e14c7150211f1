"""Retention: which events a store may remove from a log, what it reports about them, and what it refuses.

    versions   1 .. forgotten     removed; reading them raises a `ForgottenError`
               .. first - 1       in archive files, read through the store like all others
               first .. head      in the store itself

A log loses only its oldest events, and never one that its window needs.  The marks of compactions
stay, so the version, the window and the time at which a timeline began stay the same.
"""

from collections.abc import Iterable, Iterator

import attrs

from blocks import (
    Event,
    ForgottenError,
    MisuseError,
    TimelineId,
    UnknownTimelineError,
    kind_of,
)
from persistence._log import Head, StoredEvent, ref_of, store_event


@attrs.frozen(kw_only=True)
class ArchivedRange:
    """Events in an archive file: a row of the store's manifest."""

    first: int
    last: int
    file: str
    """Its absolute path."""
    sha256: str
    """Hash of the whole file."""


@attrs.frozen(kw_only=True)
class Kept:
    """Which part of a log is left; the default is the whole log."""

    forgotten: int = 0
    """The newest forgotten version; 0: none."""
    archives: tuple[ArchivedRange, ...] = ()
    """Oldest first; they follow one another without a gap, up to `first`."""
    began_at: float = 0.0
    """When the first event of the timeline happened; 0: nothing was removed."""

    @property
    def first(self) -> int:
        """The oldest version in the store itself."""
        return (self.archives[-1].last if self.archives else self.forgotten) + 1

    @property
    def removed(self) -> int:
        """Events that are no longer in the store itself."""
        return self.first - 1

    def archiving(self, archive: ArchivedRange, began_at: float) -> "Kept":
        """The same after the oldest events were moved to one more archive file."""
        return attrs.evolve(self, archives=(*self.archives, archive), began_at=began_at)

    def forgetting(self, before: int, began_at: float) -> "Kept":
        """The same after the events older than `before` were forgotten.

        An archive file is given up as a whole or not at all.
        """
        left = tuple(archive for archive in self.archives if archive.last >= before)
        gone = before - 1 if not left else left[0].first - 1
        return Kept(forgotten=max(gone, self.forgotten), archives=left, began_at=began_at)

    def cut_to(self, version: int) -> "Kept":
        """What is left of a fork at a version."""
        archives = (
            attrs.evolve(archive, last=min(archive.last, version))
            for archive in self.archives
            if archive.first <= version
        )
        return attrs.evolve(self, archives=tuple(archives))

    def within(self, first: int, last: int) -> Iterator[ArchivedRange]:
        """The archives that hold some of these versions."""
        return (a for a in self.archives if a.first <= last and first <= a.last)

    def refuse_forgotten(self, timeline: TimelineId, first: int, what: str = "") -> None:
        """Check that no event from version `first` on was forgotten; `what` begins the message of the error.

        Raises:
            ForgottenError: the event of version `first` was forgotten.
        """
        if first <= self.forgotten:
            raise ForgottenError(timeline, self.forgotten + 1, what)


@attrs.frozen(kw_only=True)
class Removed:
    """The result of a removal."""

    events: int = 0
    """The number of events that were removed or replaced."""
    size: int = 0
    """Bytes of their JSON."""
    unused: tuple[str, ...] = ()
    """Archive files to which this store no longer refers; the caller decides whether to delete them."""


def checked_trim(timeline: TimelineId, before: int, head: Head) -> None:
    """Refuse a `trim` that would remove events that the window needs; every store's `trim` must call this first.

    Raises:
        UnknownTimelineError: the timeline has no events.
        MisuseError: `before` is not a version, or is greater than the start of the window.
    """
    if not head.version:
        raise UnknownTimelineError(timeline)
    if not 1 <= before <= head.window_start():
        raise MisuseError(
            f"cannot remove the events before version {before} of {timeline!r}: its window begins"
            f" at version {head.window_start()}"
        )


def checked_marks(timeline: TimelineId, head: Head, kept: Kept) -> None:
    """Refuse an append after which the window would begin among forgotten events; `head` is the head after it.

    Raises:
        ForgottenError: it would.
    """
    kept.refuse_forgotten(timeline, head.window_start(), "nothing was appended")


def checked_kept_fork(source: TimelineId, at: int, head: Head, kept: Kept) -> None:
    """Refuse a fork whose window was forgotten; `head` is the head with which the fork begins.

    Raises:
        ForgottenError: the window at version `at` needs forgotten events.
    """
    kept.refuse_forgotten(source, head.window_start(), f"cannot fork {source!r} at {at}")


def unused_archives(before: Kept, left: Iterable[Kept]) -> tuple[str, ...]:
    """The archive files of `before` to which no log refers any more."""
    files = dict.fromkeys(archive.file for archive in before.archives)
    for kept in left:
        for archive in kept.archives if files else ():
            files.pop(archive.file, None)
    return tuple(files)


def checked_rewrite(version: int, old: Event, new: Event) -> StoredEvent:
    """The new event as bytes; every `rewrite` must call this.

    Raises:
        MisuseError: it is not the same event with other content.
    """
    for name, of in (("id", old.id), ("kind", kind_of(old)), ("ref", ref_of(old)), ("at", old.at)):
        stored = {"id": new.id, "kind": kind_of(new), "ref": ref_of(new), "at": new.at}[name]
        if of != stored:
            raise MisuseError(
                f"event {version} has the {name} {of!r}, which must not change, but {stored!r} was given"
            )
    return store_event(new)
