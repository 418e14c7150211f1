"""Collects all measurements in one table, printed at the end of the run."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.figures import HEADER, Figures, Meter
from benchmarks.results import keep

TABLE = pytest.StashKey[Figures]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep", action="store_true", help="keep the figures in benchmarks/results")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TABLE] = Figures()


@pytest.fixture
def meter(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> Meter:
    """A meter that adds its measurements to the table of this run."""
    return Meter(benchmark=benchmark, figures=request.config.stash[TABLE])


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """The table of this run, for figures that are not times."""
    return request.config.stash[TABLE]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash[TABLE].lines():
        terminalreporter.write_line(line)
    rows = [dict(zip(HEADER, row, strict=True)) for row in config.stash[TABLE].rows]
    if config.getoption("--keep") and rows:
        keep("bench", rows)
