"""`foldline replay --tune`: a policy file, what was tried, and one line for what cannot be."""

import json
from pathlib import Path

import pytest

from tests._table import for_each
from tests.timeline.cli.conftest import Run
from tests.timeline.replay.invented import invented, session_file
from timeline import policy_named

SMALL = ("--window", 3000, "--counter", "estimate", "--trials", 3)
EASY = ("--at-least", "far=0.1,far_context=0.1")


@pytest.fixture
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session that uses names of more than five calls ago."""
    return session_file(tmp_path_factory.mktemp("sessions") / "long.jsonl", invented(rounds=8))


def test_the_file_is_the_policy_that_was_found(run: Run, long: Path) -> None:
    ran = run("replay", "--tune", long, *SMALL, *EASY, "--json")
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(ran.out)
    assert data["is_kept"] is True
    written = policy_named("tuned.toml")
    default = policy_named("default")
    changes = data["best"]["changes"]
    assert changes
    assert changes == {f: getattr(written, f) for f in changes}
    assert all(getattr(default, field) != value for field, value in changes.items())
    again = run("replay", long, *SMALL[:4], "--policy", "tuned.toml", "--json")
    assert json.loads(again.out)["units_ratio"] == data["best"]["cost"]


def test_people_are_told_what_was_tried_and_what_came_of_it(
    run: Run, long: Path, session: Path
) -> None:
    ran = run("replay", "--tune", long, session, long, *SMALL, *EASY, "--output", "mine.toml")
    assert (ran.code, ran.err) == (0, "")
    guess, *lines = ran.out.splitlines()
    assert guess.startswith("the session names no model")
    assert lines[0].startswith(
        "As cheap as possible at far >= 0.1, far_context >= 0.1; window 3,000"
    )
    assert sum(" best " in line for line in lines) == 1
    assert any("unchanged" in line for line in lines)
    assert "Chosen on the other sessions, the bounds hold on the one left out in" in ran.out
    assert lines[-1].startswith("mine.toml: cost ")
    assert "\x1b" not in ran.out
    head = Path("mine.toml").read_text(encoding="utf-8").splitlines()[:3]
    assert all(line.startswith("# ") for line in head)


def test_no_file_where_no_policy_keeps_the_bounds(run: Run, long: Path) -> None:
    Path("deaf.toml").write_text(
        "user_ratio = 0.0\nsummary_tokens = 0\npage_tokens = 0\nworking_ratio = 0.0\n"
    )
    bounds = ("--trials", 1, "--at-least", "far=0.1,rules=1")
    ran = run("replay", "--tune", long, *SMALL, "--policy", "deaf.toml", *bounds)
    assert ran.code == 1
    expected = "no policy of 1 keeps far >= 0.1, rules >= 1; tuned.toml is not written"
    assert ran.err == f"foldline: {expected}\n"
    assert " best " in ran.out
    assert not Path("tuned.toml").exists()


def test_a_file_that_is_there_stays_as_it_is(run: Run, long: Path) -> None:
    Path("tuned.toml").write_text("keep_ratio = 0.3\n")
    ran = run("replay", "--tune", long, *SMALL)
    assert (ran.code, ran.out) == (2, "")
    assert "tuned.toml exists already: remove it, or give another --output" in ran.err
    assert Path("tuned.toml").read_text() == "keep_ratio = 0.3\n"


@for_each(
    ("arguments", "message"),
    [
        (("--trials", "3"), "--trials works only with --tune"),
        (("--output", "a.toml"), "--output works only with --tune"),
        (("--tune", "--at-least", "far"), "--at-least far: write it as far=0.95,quotes=0.85"),
        (("--tune", "--at-least", "fra=0.9"), "no measure 'fra'; did you mean 'far'?"),
        (("--tune", "--dump", "a"), "--dump cannot be used with --tune"),
        (("--tune", "--output", "a.json"), "--output a.json: give the name of a .toml file"),
        (
            ("--tune", "--policy", "default", "--policy", "frugal"),
            "--tune starts from one policy: give --policy once",
        ),
        (("--tune", "--window", "100000"), "nothing to tune on: no session exceeds the window"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    run: Run, session: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = run("replay", session, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"foldline: {message}")
    assert ran.err.count("\n") == 1
