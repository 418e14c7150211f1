"""How much a test does: the usual amount, or the long one of `make test-long`.

The promise is the same; the long version goes on for longer, or tries more of them.
"""

import os
from typing import Final, TypeVar

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "default")
"""`default`, `full` (`make test-slow`), `long` (`make test-long`) or `few` (`make mutants`)."""

PATIENCE: Final = 120.0
"""Seconds that a test waits for something that must happen: a limit for what hangs, not for what is slow."""

_T = TypeVar("_T")


def sized(usual: _T, long: _T) -> _T:
    """The usual size, or the long one."""
    return long if PROFILE == "long" else usual
