"""Where events are kept. Anything that passes `tests/persistence/contract.py` is a store.

The DuckDB store, what checks it and what searches load when they are first asked for.
"""

from typing import TYPE_CHECKING

from persistence._memory import MemoryStore as MemoryStore
from persistence._store import EventStore as EventStore
from persistence._store import TimelineInfo as TimelineInfo

if TYPE_CHECKING:
    from persistence._duckdb import DuckDBStore as DuckDBStore
    from persistence._search import Hit as Hit
    from persistence._search import search_blocks as search_blocks
    from persistence._verify import StoreProblem as StoreProblem
    from persistence._verify import StoreReport as StoreReport
    from persistence._verify import verify as verify

_LATER = {
    "DuckDBStore": "persistence._duckdb",
    "Hit": "persistence._search",
    "StoreProblem": "persistence._verify",
    "StoreReport": "persistence._verify",
    "search_blocks": "persistence._search",
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
