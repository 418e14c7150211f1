"""Session files as people name them: several, folders, patterns, standard input; windows as 30k or auto."""

import io
import json
from pathlib import Path

import attrs
import pytest

from tests.timeline.cli.conftest import Run
from tests.timeline.replay.invented import invented, session_file

SMALL = ("--window", "3k", "--counter", "estimate")


def put(path: Path, turns: int = 1) -> None:
    """A session that is called as its file."""
    session_file(path, attrs.evolve(invented(turns=turns), name=path.stem))


@pytest.fixture
def folder(run: Run) -> Path:
    """Two sessions, one of them deeper, and what is none; in the empty folder of `run`."""
    del run
    found = Path("logs")
    (found / "deep").mkdir(parents=True)
    (found / ".hidden").mkdir()
    put(found / "one.jsonl")
    put(found / ".hidden" / "not-seen.jsonl")
    put(found / "deep" / "two.jsonl", turns=2)
    (found / "package.json").write_text('{"name": "no session"}')
    (found / "notes.txt").write_text("no session either")
    return found


def names(run: Run) -> list[str]:
    return sorted(row["id"] for row in json.loads(run("list", "--json").out))


@pytest.mark.parametrize("given", [["logs"], ["logs/**/*.json*"], ["logs/*.jsonl", "logs/deep"]])
@pytest.mark.usefixtures("folder")
def test_folders_and_patterns_are_imported(run: Run, given: list[str]) -> None:
    ran = run("import", *given)
    assert ran.code == 0
    assert names(run) == ["one", "two"]
    assert ("1 file passed over: logs/package.json: unknown session format" in ran.err) is (
        given != ["logs/*.jsonl", "logs/deep"]
    )
    again = run("import", *given)
    assert again.code == 1
    assert "already has a timeline" in again.err


def test_a_session_that_came_by_is_imported_beside_those_that_are_there(
    run: Run, folder: Path
) -> None:
    run("import", folder)
    put(folder / "three.jsonl")
    assert run("import", folder).code == 0
    assert names(run) == ["one", "three", "two"]


def test_a_named_file_that_cannot_be_read_fails_and_does_not_stop_the_others(
    run: Run, folder: Path
) -> None:
    ran = run("import", folder / "package.json", folder / "one.jsonl")
    assert ran.code == 1
    assert "package.json: unknown session format" in ran.err
    assert names(run) == ["one"]
    assert run("import", folder / "one.jsonl", folder / "deep", "--name", "x").code == 2


def test_a_folder_is_replayed_session_by_session(run: Run, folder: Path) -> None:
    lines = run("replay", folder, *SMALL, "--json").out.splitlines()
    assert [json.loads(line)["session"] for line in lines] == ["one", "two"]
    assert "1 file passed over: logs/package.json" in run("replay", folder, *SMALL).err


@pytest.mark.parametrize(
    ("given", "said"),
    [("none/*.jsonl", "no file matches this pattern"), ("empty", "no session file in this folder")],
)
def test_where_there_is_nothing_it_is_said(run: Run, given: str, said: str) -> None:
    Path("empty").mkdir()
    for command in ("import", "replay"):
        ran = run(command, given)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
        assert ran.err.count("\n") == 1


@pytest.mark.parametrize("command", ["import", "replay"])
def test_a_session_may_be_piped_in(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    piped = io.TextIOWrapper(io.BytesIO(session.read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    more = SMALL if command == "replay" else ()
    ran = run(command, "-", *more, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["calls"] == 24


@pytest.mark.parametrize("written", ["3000", "3k", "3K", "3,000", "3_000", "0.003m"])
def test_a_window_may_be_written_as_people_do(run: Run, session: Path, written: str) -> None:
    ran = run("replay", session, "--window", written, "--counter", "estimate", "--json")
    assert json.loads(ran.out)["window"] == 3000


def test_a_window_can_be_chosen_in_which_something_happens(run: Run) -> None:
    long = session_file(Path("long.jsonl"), invented(turns=8, rounds=8))
    ran = run("replay", long, "--window", "auto", "--json")
    result = json.loads(ran.out)
    assert result["compactions"] > 0
    assert result["over_window_calls"] == 0
    assert f"--window auto uses {result['window']:,}" in ran.err
    short = session_file(Path("short.jsonl"), invented(turns=1, rounds=1))
    ran = run("replay", short, "--window", "auto", "--json")
    assert json.loads(ran.out)["compactions"] == 0
    assert "too small for a compaction; --window auto uses its own window, 992,000" in ran.err
