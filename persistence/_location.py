"""The location of a store: what a path or a URL names, before it is opened."""

from typing import TYPE_CHECKING, Protocol

from persistence._store import EventStore, StoreReport

if TYPE_CHECKING:
    from pathlib import Path

    from persistence.artifacts import KeyRing


class StoreLocation(Protocol):
    """The place that a path or a URL names, whether a store exists there or not; `str` of it is for people."""

    def exists(self) -> bool:
        """Whether a store exists here."""
        ...

    def open(self) -> EventStore:
        """The store; a new one, if there is none.

        Raises:
            StoreError: it cannot be opened, for instance because somebody else holds it.
            DamagedStoreError: it does not hold together, or lost what was acknowledged.
            MisuseError: it cannot be a store.
        """
        ...

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        """Read a store that nobody has open, change nothing, and report what does not hold together.

        Raises:
            StoreLockedError: somebody else has it open.
            MisuseError: there is none.
        """
        ...

    def readable_copy(self, folder: "Path") -> "tuple[StoreLocation, str]":
        """A copy of a store that nobody has open, in an empty folder, that can be opened; and a sentence
        on what had to be left out for that, empty if nothing.  Where there are no files of ours, itself.

        Raises:
            StoreLockedError: somebody else has it open.
            DamagedStoreError: nothing of it can be opened.
        """
        ...

    def is_writable(self) -> bool:
        """Whether the system lets us write to a store that is there, and to its folder."""
        ...

    def moment(self, folder: "Path") -> "StoreLocation":
        """A copy of the store as it is at this moment, in an empty folder, whoever has it open; where there
        are no files of ours, itself.

        Raises:
            StoreLockedError: this process has it open; or others rewrite it all the time.
            StoreError: the system does not let us read it.
        """
        ...

    def remove(self) -> None:
        """Remove a store that was created by `open` but not used, and is closed again."""
        ...
