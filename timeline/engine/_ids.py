"""Ids that sort by time, as UUIDs of version 7 do."""

import os
import time
import uuid
from collections.abc import Callable
from itertools import count
from typing import TypeAlias

IdFactory: TypeAlias = Callable[[], str]


def time_ordered() -> str:
    """A UUID whose first 48 bits are milliseconds since the epoch (RFC 9562, version 7)."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def counted() -> IdFactory:
    """Ids 1, 2, 3, ... in the form of UUIDs: the same on every machine."""
    numbers = count(1)
    return lambda: str(uuid.UUID(int=next(numbers)))
