"""Where a store that many processes share may be."""

from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that is not there yet."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("url")
        return url
    return f"sqlite:///{tmp_path}/talks.sqlite"
