"""The store for several processes on one machine: one SQLite file, no server."""

import os
from typing import Final

from persistence._file import database_path
from persistence.sql._patience import Patience
from persistence.sql._store import SQLStore
from persistence.sqlite._schema import open_database

WAIT_SECONDS: Final = 30.0


class SQLiteStore(SQLStore):
    """Timelines in the file `path`, which several processes may have open.  Its methods raise the errors of
    `EventStore`.

    An append waits up to `wait_seconds` while other processes write.

    Raises:
        DamagedStoreError: the file is damaged.
        MisuseError: there is no such folder, or the file is not a store.
        StoreError: a later version has changed the file, or the operating system denies access.
    """

    def __init__(
        self, path: "str | os.PathLike[str]", *, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self.path = database_path(path)
        super().__init__(open_database(self.path, wait_seconds), Patience())
