"""The load generator of `benchmarks/load` does what its figures say, on a store of each kind."""

from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.load import growth
from benchmarks.load.fill import fill
from benchmarks.load.growth import WINDOW, grown
from benchmarks.load.picture import points
from benchmarks.load.work import Figures, Load
from blocks import TimelineId
from persistence import open_store, verify
from tests.persistence.contract import many


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("url"))
    return f"{request.param}:///{tmp_path}/load.{request.param}"


def test_every_append_that_was_counted_is_there(place: str) -> None:
    load = Load(url=place, writers=3, seconds=0.1, timelines=2, mix=(2, 1, 1), tag="now")
    times = load.run()
    assert set(times) <= {"append", "window", "read"}
    with closing(open_store(place)) as store:
        assert sum(info.version for info in store.list()) == 2 * len(times["append"])
        assert verify(store).ok


def test_a_store_that_was_filled_is_as_if_it_had_been_appended_to(place: str) -> None:
    open_store(place).close()
    fill(place, "long ", 300, 1, 300)
    fill(place, "many ", 0, 20, 10)
    with closing(open_store(place)) as store:
        assert verify(store).ok
        sizes = {info.id: info.version for info in store.list()}
        assert sizes == {"long 300": 300} | {f"many {n}": 10 for n in range(20)}
        assert len(store.load_window(TimelineId("long 300")).events) == 300
        assert store.append(TimelineId("many 7"), many(2), expected_version=10) == 12


def test_a_store_is_measured_as_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "ROUNDS", 1)
    place = f"sqlite:///{tmp_path}/load.sqlite"
    rows = list(grown(place, [300], [10, 20]))
    assert [row["at"] for row in rows if row["what"] == "open"] == [0, 10, 20]
    with closing(open_store(place)) as store:
        window = store.load_window(TimelineId("long 300"))
        assert len(window.events) == WINDOW + 1
        assert len(store.list()) == 22, "the log, its fork, and the many"


def test_figures_are_of_the_time_that_they_were_measured_in() -> None:
    figures = Figures.of([0.001] * 50 + [0.003] * 51, seconds=2.0)
    assert (figures.a_second, figures.p50, figures.p99) == (50.5, 3.0, 3.0)


def test_a_curve_has_the_best_figure_of_each_size() -> None:
    found = ((0, 1.0), (1_000, 4.0), (100, 3.0), (1_000, 2.0), (1_000, 5.0))
    rows = [{"store": "sqlite", "what": "open", "at": at, "best": best} for at, best in found]
    curve = points(rows, "sqlite", "open")
    assert [(at, row["best"]) for at, row in curve] == [(100, 3.0), (1_000, 2.0)]
