"""A shared store is opened by its URL wherever stores are, and a timeline in it renders what it does elsewhere."""

from contextlib import closing
from pathlib import Path

import pytest

from blocks import TimelineId
from persistence import (
    ArtifactDescription,
    DuckDBStore,
    Requester,
    open_store,
    repair,
    verify,
)
from tests.persistence.contract import T, U, many, opened
from timeline import Timeline
from timeline.cli import main


@pytest.fixture
def filled(where: str, replayed: Path) -> str:
    with opened(where) as store, DuckDBStore(replayed) as session:
        session.copy_to(store)
    return where


def test_the_command_takes_its_url(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command, said in (
        (["list"], "invoice"),
        (["show", "invoice"], "prompt"),
        (["search", "invoice"], "invoice"),
        (["verify"], "holds together"),
    ):
        assert main([*command, "--store", filled]) == 0, command
        assert said in capsys.readouterr().out, command


def test_a_timeline_renders_the_same_from_every_store(filled: str, tmp_path: Path) -> None:
    copy, name = f"duckdb:///{tmp_path}/copy.duckdb", TimelineId("invoice")
    with opened(filled) as store, closing(open_store(copy)) as other:
        assert store.load_window(name).compaction is not None
        events = [event for _, event in store.read(name, limit=100_000)]
        assert len(events) == store.head(name)
        other.append(name, events, expected_version=0)
        assert other.load_window(name) == store.load_window(name)
    requests: list[object] = []
    for where in (filled, filled, copy):
        with Timeline.open(name, store=where, counter="estimate", clock=lambda: 2e9) as t:
            requests.append(t.render().messages)
    assert requests[0] == requests[1] == requests[2]


def test_what_one_process_began_another_goes_on_with(where: str) -> None:
    with Timeline.open("talk", store=where) as one, Timeline.open("talk", store=where) as other:
        one.user("Hello.")
        other.steer("And be quick.")
        one.steer("And friendly.")
        assert one.render().messages == other.render().messages


def test_a_store_is_copied_and_saved_byte_for_byte_with_its_artifacts(
    filled: str, tmp_path: Path
) -> None:
    name = TimelineId("invoice")
    with opened(filled) as store:
        artifact = store.artifacts().put(b"abc", ArtifactDescription(timeline=name))
        copies = [f"{kind}:///{tmp_path}/copy.{kind}" for kind in ("duckdb", "sqlite")]
        for where in copies:
            with closing(open_store(where)) as copy:
                assert store.copy_to(copy).artifacts == 1
                assert copy.read_bytes(name, limit=9) == store.read_bytes(name, limit=9)
    saved = f"sqlite:///{tmp_path}/saved.sqlite"
    report = repair(filled, saved)
    assert (report.lost, report.artifacts) == ((), 1)
    with opened(filled) as store, opened(saved) as other:
        assert other.load_window(name) == store.load_window(name)
        assert other.artifacts().read(artifact, Requester("me")) == b"abc"
    assert verify(saved).ok


def test_repair_keeps_what_is_around_the_damage(where: str, tmp_path: Path) -> None:
    with opened(where) as store:
        store.append(T, many(5), expected_version=0)
        store.append(U, many(3), expected_version=0)
        with store._database.writing() as connection:
            connection.run("DELETE FROM events WHERE timeline = 'my talk' AND seq = 4")
    saved = f"sqlite:///{tmp_path}/saved.sqlite"
    report = repair(where, saved)
    assert (report.timelines, report.events) == (2, 7)
    assert "events 4 to 4" in report.lost[0]
    assert verify(saved).ok


def test_the_command_removes_by_its_url(
    filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--store", filled)
    assert main(["retain", "invoice", "--archive", str(tmp_path), *at]) == 0
    assert "events archived in" in capsys.readouterr().out
    assert main(["retain", "invoice", "--forget", "--erase", *at]) == 0
    remains = capsys.readouterr().out.splitlines()[1:]
    assert [line.startswith("may remain: the write-ahead log") for line in remains] == [True] * (
        filled.startswith("postgres")
    )
    assert main(["list", *at]) == 0
    assert main(["forget", "invoice", "--yes", *at]) == 0
    assert "the whole timeline is forgotten" in capsys.readouterr().out
    assert main(["list", *at]) == 0
    assert "no timelines yet" in capsys.readouterr().out
    assert verify(filled).ok
