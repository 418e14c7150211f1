"""Where a store that many processes share may be."""

from pathlib import Path

import pytest

from persistence.sessions import read_session
from timeline.replay import ReplayOptions, replay

EXAMPLE = Path(__file__).parents[3] / "docs/examples/invoice-service.jsonl"


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that is not there yet."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("url")
        return url
    return f"sqlite:///{tmp_path}/talks.sqlite"


@pytest.fixture(scope="session")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DuckDB file with a whole session, the timeline `invoice`; for reading."""
    path = tmp_path_factory.mktemp("replayed") / "invoice.duckdb"
    options = ReplayOptions(window=30_000, counter="estimate", name="invoice")
    replay(read_session(EXAMPLE), options, store=path)
    return path
