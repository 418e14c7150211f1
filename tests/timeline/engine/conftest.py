"""Some tests of the engine talk to the fake provider, on a loopback port."""

from pathlib import Path

import pytest

from tests._practice import practice

__all__ = ["practice"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Allow loopback sockets to those that take servers."""
    for item in items:
        if HERE in item.path.parents and "practice" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.network)
