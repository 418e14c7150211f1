"""Reserves a store for a timeline that is created later."""

from collections.abc import Generator
from contextlib import closing, contextmanager

from blocks import MisuseError, StoreLockedError, TimelineId
from persistence import EventStore, StoreLocation


@contextmanager
def reserve_store(where: StoreLocation, name: TimelineId) -> Generator[EventStore]:
    """The store at a location, free for a timeline of this name.

    When the store was made for this and the timeline did not come, it goes again.

    Raises:
        MisuseError: it has such a timeline already, or no store can be there.
        StoreError: it cannot be opened.
    """
    is_new = not where.exists()
    try:
        with closing(where.open()) as store:
            is_new = is_new and not store.list()
            _check_free(store, where, name)
            yield store
    except StoreLockedError:
        raise
    except BaseException:
        if is_new:
            where.remove()
        raise


def _check_free(store: EventStore, where: StoreLocation, name: TimelineId) -> None:
    if store.head(name):
        raise MisuseError(
            f"{where} already has a timeline {name!r}; give another name, or another store"
        )
