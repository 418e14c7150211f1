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
        """Open the store; create it if it does not exist.

        Raises:
            StoreError: it cannot be opened, for instance because another process has it open.
            DamagedStoreError: it is damaged, or acknowledged events are missing.
            MisuseError: it is not a store.
        """
        ...

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        """Read a store that is not open, change nothing, and report what is damaged or inconsistent.

        Raises:
            StoreLockedError: another process has it open.
            MisuseError: there is no store.
        """
        ...

    def readable_copy(self, folder: "Path") -> "tuple[StoreLocation, str]":
        """Copy a store that is not open into an empty folder, so that the copy can be opened; return the copy and a
        sentence about what had to be left out, which is empty if nothing was.  A store without files returns itself.

        Raises:
            StoreLockedError: another process has it open.
            DamagedStoreError: no part of it can be opened.
        """
        ...

    def is_writable(self) -> bool:
        """Whether the operating system permits writing to the existing store and its folder."""
        ...

    def moment(self, folder: "Path") -> "StoreLocation":
        """Copy the store as it is now into an empty folder, even while another process has it open.  A store
        without files returns itself.

        Raises:
            StoreLockedError: this process has it open; or other processes rewrite it all the time.
            StoreError: the operating system denies reading.
        """
        ...

    def remove(self) -> None:
        """Remove a store that was created by `open` but not used, and is closed again."""
        ...
