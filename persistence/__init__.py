"""Where events are kept. Anything that passes `tests/persistence/contract.py` is a store."""

from persistence._duckdb import DuckDBStore as DuckDBStore
from persistence._memory import MemoryStore as MemoryStore
from persistence._store import EventStore as EventStore
from persistence._store import TimelineInfo as TimelineInfo
from persistence._verify import StoreProblem as StoreProblem
from persistence._verify import StoreReport as StoreReport
from persistence._verify import verify as verify
