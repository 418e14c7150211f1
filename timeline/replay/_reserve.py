"""Opens a store for a timeline that will be created in it."""

from collections.abc import Generator
from contextlib import closing, contextmanager

from blocks import MisuseError, StoreLockedError, TimelineId
from persistence import EventStore, StoreLocation


@contextmanager
def reserve_store(where: StoreLocation, name: TimelineId) -> Generator[EventStore]:
    """Open the store at a location and check that the timeline's name is free.

    If the store is new and the timeline was not created, the store is deleted again.

    Raises:
        MisuseError: the store already has this timeline, or no store can be at that location.
        StoreError: the store cannot be opened.
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
