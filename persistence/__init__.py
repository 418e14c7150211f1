"""Stores of events. A subclass of `EventStore` that passes `persistence.testing.StoreContract` is a store.

The stores in databases, the checks and the search load on first use.
"""

from typing import TYPE_CHECKING

from blocks import later as _later
from persistence._log import Head
from persistence._memory import MemoryStore
from persistence._open import open_store
from persistence._store import EventStore

__all__ = [
    "ArtifactDescription",
    "DuckDBStore",
    "EventStore",
    "Head",
    "Keys",
    "MemoryStore",
    "PostgresStore",
    "Requester",
    "SQLiteStore",
    "look",
    "open_artifacts",
    "open_store",
    "repair",
    "verify",
]

# For the rooms of this house; not public.
from persistence._log import EVENT_BYTES_MAX as EVENT_BYTES_MAX
from persistence._log import Removed as Removed
from persistence._log import Rest as Rest
from persistence._log import TimelineInfo as TimelineInfo
from persistence._open import Share as Share
from persistence._open import locate_store as locate_store
from persistence._open import share_store as share_store
from persistence._store import Skim as Skim
from persistence._store import StoreLocation as StoreLocation

if TYPE_CHECKING:
    from persistence._archive import checked_place as checked_place
    from persistence._archive import remove_archive as remove_archive
    from persistence._open import look
    from persistence._open import looking as looking
    from persistence._verify import repair, verify
    from persistence.artifacts import ArtifactDescription, Keys, Requester, open_artifacts
    from persistence.artifacts import ArtifactMetadata as ArtifactMetadata
    from persistence.artifacts import ArtifactStore as ArtifactStore
    from persistence.artifacts import KeyRing as KeyRing
    from persistence.artifacts import MemoryArtifacts as MemoryArtifacts
    from persistence.duckdb._quality_signals import quality_rows as quality_rows
    from persistence.duckdb._store import DuckDBStore
    from persistence.postgres._store import PostgresStore
    from persistence.search._paths import block_at as block_at
    from persistence.search._paths import source_at as source_at
    from persistence.search._search import Hit as Hit
    from persistence.sqlite._store import SQLiteStore

__getattr__, __dir__ = _later(
    globals(),
    {
        "persistence._archive": "checked_place remove_archive",
        "persistence._open": "look looking",
        "persistence._verify": "repair verify",
        "persistence.artifacts": (
            "ArtifactDescription ArtifactMetadata ArtifactStore KeyRing Keys MemoryArtifacts "
            "Requester open_artifacts"
        ),
        "persistence.duckdb._quality_signals": "quality_rows",
        "persistence.duckdb._store": "DuckDBStore",
        "persistence.postgres._store": "PostgresStore",
        "persistence.search._paths": "block_at source_at",
        "persistence.search._search": "Hit",
        "persistence.sqlite._store": "SQLiteStore",
    },
)
