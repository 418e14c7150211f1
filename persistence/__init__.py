"""Where events are kept. Anything that passes `tests/persistence/contract.py` is a store.

The DuckDB store, what checks it and what searches load when they are first asked for.
"""

from typing import TYPE_CHECKING

from persistence._memory import MemoryStore as MemoryStore
from persistence._store import EventStore as EventStore
from persistence._store import TimelineInfo as TimelineInfo

if TYPE_CHECKING:
    from persistence._asking import asked_for as asked_for
    from persistence._asking import questions_in as questions_in
    from persistence._asking import said_in as said_in
    from persistence._asking import words_in as words_in
    from persistence._block_at import block_at as block_at
    from persistence._duckdb import DuckDBStore as DuckDBStore
    from persistence._search import Hit as Hit
    from persistence._search import search_blocks as search_blocks
    from persistence._verify import StoreProblem as StoreProblem
    from persistence._verify import StoreReport as StoreReport
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

_LATER = {
    "ArtifactDescription": "persistence.artifacts",
    "ArtifactMetadata": "persistence.artifacts",
    "ArtifactStore": "persistence.artifacts",
    "AuditRecord": "persistence.artifacts",
    "DuckDBStore": "persistence._duckdb",
    "Hit": "persistence._search",
    "KeyRing": "persistence.artifacts",
    "Keys": "persistence.artifacts",
    "MemoryArtifacts": "persistence.artifacts",
    "Requester": "persistence.artifacts",
    "StoreProblem": "persistence._verify",
    "StoreReport": "persistence._verify",
    "asked_for": "persistence._asking",
    "block_at": "persistence._block_at",
    "open_artifacts": "persistence.artifacts",
    "questions_in": "persistence._asking",
    "said_in": "persistence._asking",
    "search_blocks": "persistence._search",
    "verify": "persistence._verify",
    "words_in": "persistence._asking",
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
