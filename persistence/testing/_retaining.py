"""Promises of stores that can remove events."""

from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar, cast

from persistence._retention import Retains
from persistence._store import EventStore


class RetainingStore(EventStore, Retains, Protocol):
    """A store that can remove events."""


_C = TypeVar("_C")


def where_it_can(
    promise: Callable[[_C, RetainingStore], None],
) -> Callable[[_C, EventStore], None]:
    """A test that runs only for stores that can remove events."""

    @wraps(promise)
    def test(self: _C, store: EventStore) -> None:
        if isinstance(store, Retains):
            promise(self, cast("RetainingStore", store))

    return test
