"""The contract of every store, as tests.

With pytest, derive from `StoreContract` and give it a fixture `store`; without pytest, call its
`broken_promises`.
"""

import sys

if "pytest" in sys.modules:  # so that pytest shows compared values
    import pytest

    for _part in ("concurrency", "contract", "derived", "retention"):
        pytest.register_assert_rewrite(f"{__name__}._{_part}")

from persistence.testing._contract import StoreContract
from persistence.testing._recording import RecordingStore

__all__ = [
    "RecordingStore",
    "StoreContract",
]
