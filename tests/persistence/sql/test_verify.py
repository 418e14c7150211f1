"""`verify` finds each kind of damage, says where it is, and changes nothing."""

import pytest

from blocks import DamagedStoreError, MisuseError
from persistence import ArtifactDescription, block_at, verify
from persistence._store import StoreProblem
from tests.persistence.contract import T, U, compacted, expanded, forked, many, opened, prompt


@pytest.fixture
def filled(where: str) -> str:
    with opened(where) as store:
        store.append(T, [*many(5), compacted("c", cut=3), expanded("x", 6)], expected_version=0)
        store.fork(T, U, forked(T, 6), at=6)
    return where


def damage(where: str, statement: str) -> list[StoreProblem]:
    with opened(where) as store:
        with store._database.writing() as connection:
            connection.run(statement)
        open_report = verify(store)
    report = verify(where)
    assert report == open_report
    return list(report.problems)


def test_a_sound_store_has_no_problems(filled: str) -> None:
    report = verify(filled)
    assert (report.ok, report.timelines, report.events) == (True, 2, 14)


def test_a_gap_in_the_versions(filled: str) -> None:
    [problem] = damage(filled, "DELETE FROM events WHERE timeline = 'my talk' AND seq = 4")
    assert (problem.timeline, problem.version) == (T, 4)
    assert "version 4 is missing, version 5 is in its place" in problem.what
    with opened(filled) as store:
        with pytest.raises(DamagedStoreError, match=r"event 4 is missing.*restore"):
            store.read(T)
        with pytest.raises(DamagedStoreError):
            store.load_window(T)


def test_an_event_that_cannot_be_read(filled: str) -> None:
    [problem] = damage(
        filled, "UPDATE events SET payload = '[1]' WHERE timeline = 'my talk' AND seq = 4"
    )
    assert (problem.timeline, problem.version) == (T, 4)
    assert "not a JSON object" in problem.what
    with opened(filled) as store, pytest.raises(DamagedStoreError):
        store.read(T)


@pytest.mark.parametrize(
    ("change", "said_of_it"),
    [
        ("id = 'other'", "column id has 'other', the event has '4'"),
        ("kind = 'Other'", "column kind has 'Other'"),
        ("ts = 9", "column ts has 9.0, the event has 4.0"),
        ("ref = 2", "column ref has 2, the event has None"),
        ("made = 2", "column made is for the first event"),
    ],
)
def test_a_column_that_does_not_say_what_the_event_says(
    filled: str, change: str, said_of_it: str
) -> None:
    [problem] = damage(filled, f"UPDATE events SET {change} WHERE timeline = 'my talk' AND seq = 4")  # noqa: S608 -- constants
    assert (problem.timeline, problem.version) == (T, 4)
    assert said_of_it in problem.what


def test_a_letter_that_is_another(filled: str) -> None:
    with opened(filled) as store:
        [(payload,)] = store._rows(
            "SELECT payload FROM events WHERE timeline = 'my talk' AND seq = 4"
        )
        altered = bytes(payload).replace(b'"text 4"', b'"texu 4"')
        assert altered != payload
        with store._database.writing() as connection:
            change = "UPDATE events SET payload = ? WHERE timeline = 'my talk' AND seq = 4"
            connection.run(change, [altered])
    [problem] = verify(filled).problems
    assert (problem.timeline, problem.version) == (T, 4)
    assert "not what was written" in problem.what


def test_a_lost_mark(filled: str) -> None:
    [problem] = damage(
        filled, "UPDATE events SET ref = NULL WHERE timeline = 'my talk' AND seq = 6"
    )
    assert "column ref has None, the event has 3" in problem.what


def test_artifacts_that_are_gone_or_changed(filled: str) -> None:
    with opened(filled) as store:
        for content in (b"abc", b"def"):
            artifact = store.artifacts().put(content, ArtifactDescription(timeline=T))
    assert verify(filled).artifacts == 2
    piece = f"slot IN (SELECT slot FROM artifacts WHERE artifact = '{artifact}')"  # noqa: S608 -- constants
    [problem] = damage(filled, f"DELETE FROM artifact_pieces WHERE {piece}")  # noqa: S608 -- constants
    assert problem.artifact == artifact
    assert "3 bytes were put, 0 are there" in problem.what
    [problem] = damage(filled, f"DELETE FROM artifacts WHERE artifact = '{artifact}'")  # noqa: S608 -- constants
    assert "was put 1 times and is there 0 times" in problem.what


def test_a_search_in_a_damaged_store_says_that_it_is_damaged(filled: str) -> None:
    bad = 'UPDATE events SET payload = \'"BlockAppended" "t1" user prompt\' WHERE seq = 2'
    assert damage(filled, bad)
    with opened(filled) as store, pytest.raises(DamagedStoreError):
        block_at(store, T, "ar:t1.user.prompt.2")


def test_where_there_is_none_there_is_nothing_to_verify(where: str) -> None:
    with pytest.raises(MisuseError, match="to verify"):
        verify(where)


def test_it_changes_nothing(filled: str) -> None:
    with opened(filled) as store, store._database.lent() as connection:
        before = connection.rows("SELECT * FROM events ORDER BY timeline, seq")
        verify(store)
        assert connection.rows("SELECT * FROM events ORDER BY timeline, seq") == before
        store.append(T, [prompt("more")], expected_version=7)
