"""Every test here talks to a server on a loopback port."""

from pathlib import Path

import pytest

from tests._practice import practice

__all__ = ["practice"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Allow loopback sockets."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.network)
