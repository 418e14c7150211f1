"""The command, run in this process: quick, and with what it said."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tests.timeline.replay.invented import invented, session_file
from timeline.cli import main


@attrs.frozen
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the terminal of who runs the tests."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `foldline` with these arguments, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FOLDLINE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session file of 24 calls, outside the folder that the command runs in."""
    return session_file(tmp_path_factory.mktemp("sessions") / "invented.jsonl", invented())


@pytest.fixture(scope="session")
def replayed_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with that session, replayed in a window of 3,000; to be copied before it is changed."""
    return _replayed_in(tmp_path_factory.mktemp("replayed") / "foldline.duckdb")


@pytest.fixture(scope="session")
def replayed_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in SQLite, which opens in a hundredth of the time: for commands that say the same of any store."""
    return _replayed_in(tmp_path_factory.mktemp("replayed") / "foldline.sqlite")


def _replayed_in(store: Path) -> Path:
    path = session_file(store.parent / "invented.jsonl", invented())
    small = ("--window", "3000", "--counter", "estimate", "--store", store)
    assert main(["replay", str(path), *map(str, small)]) == 0
    return store
