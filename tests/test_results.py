"""Figures that benchmarks keep: what was measured again takes the place of what was there."""

from pathlib import Path

import msgspec
import pytest

from benchmarks import results as module
from benchmarks.results import FOLDER, Results, keep_all, kept
from tests._table import for_each

SPEEDS = Results(
    command="make bench",
    measured="today",
    key=("what",),
    columns=("what", "p50"),
    rows=(("append", "2 ms"), ("render", "1 ms")),
)


def test_a_row_about_the_same_is_replaced_in_its_place_and_a_new_one_comes_last() -> None:
    rows = [{"what": "open", "p50": "9 ms"}, {"what": "append", "p50": "3 ms"}]
    assert SPEEDS.with_rows(rows).rows == (("append", "3 ms"), ("render", "1 ms"), ("open", "9 ms"))


def test_a_row_that_lacks_a_column_is_refused() -> None:
    with pytest.raises(KeyError, match="p50"):
        SPEEDS.with_rows([{"what": "open"}])


def test_a_table_of_all_has_no_row_of_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    (tmp_path / "speeds.json").write_bytes(msgspec.json.encode(SPEEDS))
    keep_all("speeds", [{"what": "open", "p50": "9 ms", "p99": "12 ms"}], "3 stores")
    found = kept("speeds")
    assert (found.command, found.columns) == (SPEEDS.command, ("what", "p50", "p99"))
    assert found.rows == (("open", "9 ms", "12 ms"),)
    assert found.measured.startswith("3 stores; ")


def test_a_table_has_the_columns_that_are_asked_for() -> None:
    assert SPEEDS.table(["p50"]) == "| p50 |\n| --- |\n| 2 ms |\n| 1 ms |\n"


@for_each("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_a_file_says_how_it_was_measured_and_its_rows_are_about_different_things(name: str) -> None:
    results = kept(name)
    assert results.command
    assert results.measured
    assert (
        results.with_rows(dict(zip(results.columns, row, strict=True)) for row in results.rows)
        == results
    )
