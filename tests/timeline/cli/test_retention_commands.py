"""The commands that remove: retain and forget, and what the others say afterwards."""

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest

from tests._table import for_each
from tests.timeline.cli.conftest import Run

PATH = "ar:t1.user.prompt"
SAYS = "line_t1.0_50"
"""In a block that is folded."""


@pytest.fixture(autouse=True)
def _replayed(run: Run, replayed_store: Path) -> None:
    del run  # has gone to the folder
    shutil.copy(replayed_store, "foldline.duckdb")


def test_what_is_archived_is_shown_as_before(run: Run) -> None:
    Path("old").mkdir()
    before = [run(*asked).out for asked in (("show", "invented", "--json"), ("search", SAYS))]
    ran = run("retain", "invented", "--archive", "old")
    assert (ran.code, ran.err) == (0, "")
    assert "events archived in old; the store still has the events from" in ran.out
    assert len(list(Path("old").iterdir())) == 1
    after = [run(*asked).out for asked in (("show", "invented", "--json"), ("search", SAYS))]
    assert after == before
    assert "holds together" in run("verify").out
    [file] = Path("old").iterdir()
    file.unlink()
    ran = run("show", "invented")
    assert (ran.code, ran.out) == (1, "")
    assert file.name in ran.err
    assert run("verify").code == 1


def test_what_is_forgotten_is_said_in_one_line(run: Run) -> None:
    done = json.loads(run("retain", "invented", "--forget", "--erase", "--json").out)
    assert done["erased"]
    assert done["events"] == done["first"] - 1
    said = f"foldline: invented: events 1 to {done['first'] - 1} are forgotten"
    for command in ("show", "stats", "export"):
        ran = run(command, "invented")
        assert ran.code == 0
        assert ran.out
        assert ran.err.startswith(said)
        assert ran.err.count("\n") == 1
    for asked in (("search", SAYS), ("search", SAYS, "--timeline", "invented")):
        ran = run(*asked)
        assert ran.err.startswith(said)
        assert "part_t1" not in ran.out
    [row] = json.loads(run("list", "--json").out)
    assert row["first"] == done["first"]
    assert f"{done['first']} to " in run("list").out
    rows = json.loads(run("show", "invented", "--json").out)
    assert rows[0]["version"] >= done["first"]
    assert run("show", "invented", rows[0]["path"]).code == 0
    assert run("render", "invented").code == 0
    assert run("render", "invented", "--at", 3).code == 1
    assert run("fork", "invented", "early", "--at", 3).code == 1
    assert run("fork", "invented", "late").code == 0
    assert run("export", "invented", "--out", "left.jsonl").code == 0
    again = run("import", "left.jsonl", "--name", "again")
    assert again.code == 0
    assert f"the log begins at version {done['first']}" in again.err
    assert run("render", "again").code == 0
    assert "holds together" in run("verify").out
    assert SAYS.encode() not in Path("foldline.duckdb").read_bytes()


def test_what_was_archived_is_forgotten_with_its_file(run: Run) -> None:
    Path("old").mkdir()
    moved = json.loads(run("retain", "invented", "--archive", "old", "--json").out)
    done = json.loads(run("retain", "invented", "--forget", "--json").out)
    assert (done["events"], done["unused"], done["may_remain"]) == (moved["events"], [], [])
    assert list(Path("old").iterdir()) == []


def test_an_archive_that_is_elsewhere_may_remain(run: Run) -> None:
    Path("old").mkdir()
    run("retain", "invented", "--archive", "old")
    [file] = Path("old").iterdir()
    Path("old").rename("moved")
    ran = run("retain", "invented", "--forget")
    assert f"may remain: the archive {file.absolute()}, which could not be removed\n" in ran.out


def test_a_folder_of_archives_that_was_moved_is_named_once(run: Run) -> None:
    Path("old").mkdir()
    run("retain", "invented", "--archive", "old")
    before = run("export", "invented").out
    Path("elsewhere").mkdir()
    Path("old").rename("elsewhere/moved")
    assert "foldline retain ID --archive PLACE" in run("export", "invented").err
    ran = run("retain", "invented", "--archive", "elsewhere/moved")
    assert "0 events archived in elsewhere/moved, 1 archive found there;" in ran.out
    assert run("export", "invented").out == before
    assert run("verify").code == 0


def test_commands_that_need_no_archive_go_on_without_it(run: Run, session: Path) -> None:
    run("import", session, "--name", "other")
    Path("old").mkdir()
    run("retain", "invented", "--archive", "old")
    [path, *_] = [row["path"] for row in json.loads(run("show", "invented", "--json").out)][-1:]
    Path("old").rename("moved")
    for alone in (("render", "invented"), ("account", "invented"), ("show", "other")):
        ran = run(*alone)
        assert (ran.code, "archive" in ran.err, bool(ran.out)) == (0, False, True)
    for part in (("show", "invented", path), ("show", "invented", "--tail", 3)):
        ran = run(*part)
        assert (ran.code, "invented: archive" in ran.err, bool(ran.out)) == (0, True, True)
    for every in (("list",), ("search", "e"), ("savings",), ("copy", "bak.duckdb")):
        ran = run(*every)
        assert (ran.code, "invented: archive" in ran.err) == (1, True)
        assert bool(ran.out) == (every[0] != "copy")
    assert json.loads(run("list", "--json", "--store", "bak.duckdb").out)[0]["id"] == "other"
    for whole in (("show", "invented"), ("stats", "invented"), ("export", "invented")):
        ran = run(*whole)
        assert (ran.code, ran.out) == (1, ""), "what is not whole is not shown as if it were"
    assert run("forget", "invented", "--yes").code == 0
    assert run("list").code == 0


def test_a_block_is_forgotten_with_a_statement(run: Run) -> None:
    ran = run("forget", "invented", PATH)
    assert ran.code == 0
    first, *places = ran.out.splitlines()
    assert first.startswith(f"invented: {PATH} is forgotten: 1 block, ")
    assert all(place.startswith("may remain: ") for place in places)
    assert len(places) > 1
    assert b"never touch settings_1" not in Path("foldline.duckdb").read_bytes()
    assert run("show", "invented", PATH).out == "[forgotten on request]\n"
    assert "holds together" in run("verify").out


def test_the_next_copy_says_that_it_is_gone_from_the_backup(run: Run) -> None:
    run("copy", "bak.sqlite")
    run("forget", "invented", PATH)
    assert "what was forgotten since is gone from" in run("copy", "bak.sqlite").err
    shown = run("show", "invented", PATH, "--hidden", "--store", "bak.sqlite")
    assert shown.out == "[forgotten on request]\n"


def test_a_timeline_is_forgotten(run: Run) -> None:
    done = json.loads(run("forget", "invented", "--yes", "--json").out)
    assert done["events"] > 90
    assert "no timelines yet" in run("list").out
    assert b"settings_1" not in Path("foldline.duckdb").read_bytes()


class Terminal(StringIO):
    """Somebody who answers."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "code"), [("yes\n", 0), ("y\n", 2), ("", 2)])
def test_a_whole_timeline_goes_after_a_yes(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    ran = run("forget", "invented")
    assert ran.code == code
    assert "removes all of 'invented' permanently" in ran.err
    assert ("nothing was removed" in ran.err) == bool(code)
    assert ("no timelines yet" in run("list").out) == (not code)


@for_each(
    ("arguments", "code", "said"),
    [
        (("retain", "nobody", "--forget"), 1, "no timeline 'nobody'"),
        (("retain", "invented"), 2, "give --archive FOLDER or --forget"),
        (("retain", "invented", "--archive", "missing"), 2, "create it"),
        (("forget", "nobody"), 1, "no timeline 'nobody'"),
        (("forget", "invented", "ar:t99.x"), 2, "no block at path"),
        (("forget", "invented"), 2, "confirm with --yes"),
        (("forget", "invented", "--artifact", "x"), 2, "artifact 'x' of timeline"),
        (("forget", "invented", PATH, "--artifact", "x"), 2, "cannot be used together"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    run: Run, arguments: tuple[str, ...], code: int, said: str
) -> None:
    before = run("export", "invented").out
    ran = run(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert run("export", "invented").out == before
