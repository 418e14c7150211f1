"""Where events are kept. Anything that passes `tests/persistence/contract.py` is a store."""

from persistence._store import EventStore as EventStore
from persistence._store import TimelineInfo as TimelineInfo
