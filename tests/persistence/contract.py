"""What tests of stores write; the contract itself is `persistence.testing`."""

from persistence.testing._events import (
    TURN,
    T,
    U,
    compacted,
    expanded,
    forked,
    many,
    said,
    versions,
)

__all__ = ["TURN", "T", "U", "compacted", "expanded", "forked", "many", "said", "versions"]
