"""A store for a timeline that is still to come."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from blocks import MisuseError, StoreLockedError, TimelineId
from persistence import DuckDBStore

_LEFTOVERS = ("", ".wal", ".lock")


@contextmanager
def reserve_store(path: Path | None, name: TimelineId) -> Generator[DuckDBStore | None]:
    """The store at `path`, free for a timeline of this name; None without a path.

    When the file was made for this and the timeline did not come, it goes again.

    Raises:
        MisuseError: it has such a timeline already, or it is a folder.
    """
    if path is None:
        yield None
        return
    if path.is_dir():
        raise MisuseError(f"{path} is a folder; give the path of a file in it")
    is_new = not path.exists()
    try:
        with DuckDBStore(path) as store:
            is_new = is_new and not store.list()
            _check_free(store, name)
            yield store
    except StoreLockedError:
        raise
    except BaseException:
        if is_new:
            for ending in _LEFTOVERS:
                path.with_name(path.name + ending).unlink(missing_ok=True)
        raise


def _check_free(store: DuckDBStore, name: TimelineId) -> None:
    if store.head(name):
        raise MisuseError(
            f"{store.path} already has a timeline {name!r}; give another name, or another store"
        )
