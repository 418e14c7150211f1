"""`verify` finds each kind of damage, says where it is, and changes nothing."""

from pathlib import Path

import duckdb
import pytest

from blocks import MisuseError, StoreLockedError, TimelineId
from persistence import DuckDBStore, verify
from persistence._store import StoreProblem
from tests.persistence.contract import T, U, compacted, expanded, forked, many


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "talks.duckdb"
    with DuckDBStore(path) as store:
        store.append(T, [*many(5), compacted("c", cut=3), expanded("x", 6)], expected_version=0)
        store.fork(T, U, forked(T, 6), at=6)
    return path


def damage(path: Path, statement: str) -> list[StoreProblem]:
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)
    return list(verify(path).problems)


def test_a_sound_store_has_no_problems_open_or_closed(path: Path) -> None:
    report = verify(path)
    assert (report.ok, report.timelines, report.events) == (True, 2, 14)
    with DuckDBStore(path) as store:
        assert verify(store) == report


def test_a_gap_in_the_versions(path: Path) -> None:
    [problem] = damage(path, "UPDATE events SET seq = 9 WHERE seq = 5 AND timeline = 1")
    assert problem.timeline == T
    assert "versions are not 1 to 7" in problem.what


def test_a_version_given_twice(path: Path) -> None:
    problems = damage(path, "INSERT INTO events FROM events WHERE seq = 2 AND timeline = 2")
    assert {problem.timeline for problem in problems} == {U}
    assert "7 different ones" in problems[0].what


def test_an_event_that_cannot_be_read(path: Path) -> None:
    statement = """UPDATE events SET payload = '[1]' WHERE seq = 4 AND timeline = 1"""
    [problem] = damage(path, statement)
    assert (problem.timeline, problem.version) == (T, 4)
    assert "not a JSON object" in problem.what


def test_a_block_id_used_twice(path: Path) -> None:
    statement = """UPDATE events SET payload = replace(payload, 'block 2', 'block 1')
                   WHERE seq = 2 AND timeline = 1"""
    twice, altered = damage(path, statement)
    assert (twice.timeline, twice.version) == (altered.timeline, altered.version) == (T, 2)
    assert "'block 1' was already used at version 1" in twice.what
    assert "its checksum" in altered.what


def test_a_lost_mark_and_a_mark_too_many(path: Path) -> None:
    [problem] = damage(path, "DELETE FROM marks WHERE timeline = 1 AND seq = 6")
    assert (problem.timeline, problem.version) == (T, 6)
    problems = damage(path, "INSERT INTO marks VALUES (2, 1, 'RangeCompacted', 1)")
    assert (U, 1) in {(problem.timeline, problem.version) for problem in problems}


@pytest.mark.parametrize("together", [1, 7, 1_000])
def test_damage_is_found_in_every_timeline_however_many_are_read_together(
    path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """Rows of several timelines lie between each other's."""
    monkeypatch.setattr("persistence.duckdb._verify.TOGETHER", together)
    names = [TimelineId(f"talk {n}") for n in range(6)]
    with DuckDBStore(path) as store:
        for version in range(4):
            for name in names:
                store.append(name, many(1, first=version + 1), expected_version=version)
        assert verify(store).ok
    problems = damage(
        path,
        """UPDATE events SET payload = CASE WHEN timeline % 2 = 0 THEN '[1]'
           ELSE replace(payload, 'block 3', 'block 1') END WHERE seq = 3 AND timeline > 2""",
    )
    assert {(problem.timeline, problem.version) for problem in problems} == {
        (name, 3) for name in names
    }


def test_lost_events_below_the_high_water_mark(path: Path) -> None:
    problems = damage(path, "DELETE FROM events WHERE timeline = 2 AND seq = 7")
    assert problems == [
        StoreProblem(what="the file holds 13 events but 14 were acknowledged; was a .wal deleted?"),
        StoreProblem(timeline=U, what="events 7 to 7, which were written, are missing"),
    ]


def test_events_of_no_name_and_a_name_of_two_timelines(path: Path) -> None:
    problems = damage(path, "UPDATE timelines SET name = 'my talk'")
    assert any("given 2 times" in problem.what for problem in problems)
    problems = damage(path, "DELETE FROM timelines WHERE timeline = 2")
    assert any("number 2, which has no name" in problem.what for problem in problems)


def test_a_file_that_does_not_open_is_described_not_raised(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 + 20)
        file.write(b"\xff" * 300)
    [problem] = verify(path).problems
    assert "is damaged" in problem.what


def test_it_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    verify(path)
    assert path.read_bytes() == before


def test_a_missing_or_a_held_file_is_no_damage(path: Path, tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="no file"):
        verify(tmp_path / "nothing.duckdb")
    with DuckDBStore(path), pytest.raises(StoreLockedError):
        verify(path)
