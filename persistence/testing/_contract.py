"""The whole contract of a store, and a way to run it without a test runner."""

from collections.abc import Callable
from contextlib import closing
from traceback import format_exception_only

from persistence._store import EventStore
from persistence.testing._append import AppendContract
from persistence.testing._concurrency import ConcurrencyContract
from persistence.testing._content import CloseContract, ContentContract
from persistence.testing._copy import CopyContract
from persistence.testing._interrupt import InterruptContract
from persistence.testing._read import ForkContract, ReadContract
from persistence.testing._retention import RetentionContract
from persistence.testing._search import SearchContract
from persistence.testing._skim import SkimContract


class StoreContract(
    AppendContract,
    ReadContract,
    ForkContract,
    ContentContract,
    CopyContract,
    SearchContract,
    RetentionContract,
    SkimContract,
    ConcurrencyContract,
    InterruptContract,
    CloseContract,
):
    """All promises of a store, a test each; `store` is a new, empty store, which is closed after the test."""


def broken_promises(open_store: Callable[[], EventStore]) -> dict[str, str]:
    """The tests of the contract that a store fails, with the reasons; empty: it keeps all promises.

    `open_store` is called for each test, and must return a new, empty store.
    """
    contract, broken = StoreContract(), dict[str, str]()
    for name in filter(_is_test, dir(contract)):
        with closing(open_store()) as store:
            try:
                getattr(contract, name)(store)
            except Exception as error:  # noqa: BLE001 -- whatever the store raises
                broken[name] = "".join(format_exception_only(error)).strip()
    return broken


def _is_test(name: str) -> bool:
    return name.startswith("test_")
