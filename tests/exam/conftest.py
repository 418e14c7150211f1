"""Every test here may talk to a server on a loopback port."""

import pytest

from tests._practice import practice

__all__ = ["practice"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Allow loopback sockets."""
    for item in items:
        if "practice" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.network)
