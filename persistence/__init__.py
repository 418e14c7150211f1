"""Stores of events. A subclass of `EventStore` that passes `persistence.testing.StoreContract` is a store.

The stores in databases, the checks and the search load on first use.
"""

from typing import TYPE_CHECKING

from persistence._log import EVENT_BYTES_MAX as EVENT_BYTES_MAX
from persistence._log import ArchivedRange as ArchivedRange
from persistence._log import Head as Head
from persistence._log import Kept as Kept
from persistence._log import Removed as Removed
from persistence._log import StoredEvent as StoredEvent
from persistence._log import TimelineInfo as TimelineInfo
from persistence._log import checked_bytes as checked_bytes
from persistence._log import checked_events as checked_events
from persistence._log import checked_fork as checked_fork
from persistence._log import checked_page as checked_page
from persistence._log import timeline_infos as timeline_infos
from persistence._memory import MemoryStore as MemoryStore
from persistence._open import locate_store as locate_store
from persistence._open import open_store as open_store
from persistence._store import BlockIndex as BlockIndex
from persistence._store import EventStore as EventStore
from persistence._store import Skim as Skim
from persistence._store import StoreLocation as StoreLocation
from persistence._store import StoreProblem as StoreProblem
from persistence._store import StoreReport as StoreReport
from persistence._store import TurnChange as TurnChange

if TYPE_CHECKING:
    from persistence._copy import CopyReport as CopyReport
    from persistence._copy import copy_store as copy_store
    from persistence._open import look as look
    from persistence._open import looking as looking
    from persistence._verify import RepairReport as RepairReport
    from persistence._verify import repair as repair
    from persistence._verify import verify as verify
    from persistence.artifacts import ArtifactDescription as ArtifactDescription
    from persistence.artifacts import ArtifactMetadata as ArtifactMetadata
    from persistence.artifacts import ArtifactStore as ArtifactStore
    from persistence.artifacts import AuditRecord as AuditRecord
    from persistence.artifacts import KeyRing as KeyRing
    from persistence.artifacts import Keys as Keys
    from persistence.artifacts import MemoryArtifacts as MemoryArtifacts
    from persistence.artifacts import Requester as Requester
    from persistence.artifacts import open_artifacts as open_artifacts
    from persistence.duckdb._quality import quality_rows as quality_rows
    from persistence.duckdb._store import DuckDBStore as DuckDBStore
    from persistence.postgres._store import PostgresStore as PostgresStore
    from persistence.search._paths import block_at as block_at
    from persistence.search._paths import source_at as source_at
    from persistence.search._search import Hit as Hit
    from persistence.search._search import search_blocks as search_blocks
    from persistence.sqlite._store import SQLiteStore as SQLiteStore

_LATER = {
    "ArtifactDescription": "persistence.artifacts",
    "ArtifactMetadata": "persistence.artifacts",
    "ArtifactStore": "persistence.artifacts",
    "AuditRecord": "persistence.artifacts",
    "CopyReport": "persistence._copy",
    "DuckDBStore": "persistence.duckdb._store",
    "Hit": "persistence.search._search",
    "KeyRing": "persistence.artifacts",
    "Keys": "persistence.artifacts",
    "MemoryArtifacts": "persistence.artifacts",
    "PostgresStore": "persistence.postgres._store",
    "RepairReport": "persistence._verify",
    "Requester": "persistence.artifacts",
    "SQLiteStore": "persistence.sqlite._store",
    "block_at": "persistence.search._paths",
    "copy_store": "persistence._copy",
    "look": "persistence._open",
    "looking": "persistence._open",
    "open_artifacts": "persistence.artifacts",
    "quality_rows": "persistence.duckdb._quality",
    "repair": "persistence._verify",
    "search_blocks": "persistence.search._search",
    "source_at": "persistence.search._paths",
    "verify": "persistence._verify",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER} - {"TYPE_CHECKING"})
