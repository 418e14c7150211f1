"""Suites whose framework is not installed are not collected; the end of the run says which."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.timeline.integrations._frameworks import missing, suite_of
from tests.timeline.integrations._play import WINDOW
from timeline.fake_provider import FakeProvider, FakeServer

collect_ignore = [suite_of(name) for name in missing()]


@pytest.fixture
def serve(record_property: Callable[[str, object], None]) -> Iterator[Callable[..., FakeServer]]:
    """Starts a provider; it takes what `FakeProvider` takes. `make adapters` is told how many requests it had, and how
    many it refused."""
    servers: list[FakeServer] = []
    with ExitStack() as stack:

        def started(**options: Any) -> FakeServer:
            given = {"window": WINDOW, **options}
            servers.append(stack.enter_context(FakeServer(FakeProvider(**given))))
            return servers[-1]

        yield started
    record_property("requests", sum(len(server.requests) for server in servers))
    record_property("refused", sum(len(server.refused) for server in servers))


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Tells `make adapters` what a test found; its columns are in `benchmarks/adapters.py`."""

    def told(**facts: object) -> None:
        for name, value in facts.items():
            record_property(name, value)

    return told
