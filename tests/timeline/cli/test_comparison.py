"""`foldline replay` of several: rows, means, the front, a plot in the terminal."""

import json
from pathlib import Path

import pytest

from tests.timeline.cli.conftest import Run
from tests.timeline.replay.invented import invented, session_file
from timeline.cli._results import Scale, letter, scatter
from timeline.replay import Means

SMALL = ("--window", 3000, "--counter", "estimate")
TIGHT = "name = 'tight'\ntrigger_ratio = 0.6\ntarget_ratio = 0.5\npage_tokens = 0\n"


@pytest.fixture
def policies() -> tuple[str, ...]:
    """Two of them, as arguments; needs the folder of `run`."""
    Path("tight.toml").write_text(TIGHT)
    return ("--policy", "default", "--policy", "tight.toml")


@pytest.fixture
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session that uses names of more than five calls ago."""
    return session_file(tmp_path_factory.mktemp("sessions") / "long.jsonl", invented(rounds=8))


def means(cost: float, far: float, *, front: bool) -> Means:
    return Means(
        policy="p",
        sessions=1,
        cost=cost,
        far=far,
        far_context=far,
        far_wide=far,
        quotes=far,
        surroundings=far,
        rules=1.0,
        busts=0.0,
        is_front=front,
    )


def test_recall_and_rules_are_lines_of_the_story_and_fields_of_the_object(
    run: Run, long: Path
) -> None:
    lines = run("replay", long, *SMALL).out.splitlines()
    names = next(line for line in lines if line.startswith("older names"))
    assert "of those that the agent used next were still in its request" in names
    rules = next(line for line in lines if line.startswith("user's words"))
    assert "of the user's texts were in the request, word for word" in rules
    data = json.loads(run("replay", long, *SMALL, "--json").out)
    measures = ["near", "far", "far_context", "far_wide", "quotes", "surroundings"]
    assert list(data["recall"]) == measures
    assert names.split()[2] == f"{data['recall']['far']:.2f}"
    assert 0 <= data["rules"] <= 1
    assert list(data["handover"]) == ["edits", "standing", "prompts"]
    assert f"; {data['handover']['prompts']:.2f} of them whole" in rules
    assert data["units_ratio"] > 0


def test_nothing_is_said_about_recall_when_everything_fits(run: Run, session: Path) -> None:
    out = run("replay", session, "--window", 100_000, "--counter", "estimate").out
    assert "older names" not in out
    data = json.loads(run("replay", session, "--window", 100_000, "--json").out)
    assert data["recall"]["far"] is data["rules"] is None


def test_a_comparison_ends_in_means_a_front_and_a_plot(
    run: Run, policies: tuple[str, ...], long: Path
) -> None:
    out = run("replay", long, long, *SMALL, *policies).out
    assert "means over 2 sessions\n" in out
    rows = [line.split() for line in out.splitlines()]
    averages = [row for row in rows if row[:1] in (["A"], ["B"])]
    assert [row[1] for row in averages] == ["default", "tight"]
    assert any(row[-1] == "●" for row in averages)
    plot = out[out.index("\nfar\n") :]
    assert "A" in plot
    assert "│" in plot
    assert "cost" in plot.splitlines()[-1]


def test_one_policy_needs_no_plot(run: Run, long: Path) -> None:
    out = run("replay", long, long, *SMALL).out
    assert "means over 2 sessions" in out
    assert "\nfar\n" not in out


def test_sessions_that_fit_are_left_out_of_the_means(
    run: Run, policies: tuple[str, ...], long: Path
) -> None:
    short = Path("short.jsonl")
    lines = long.read_text(encoding="utf-8").splitlines(keepends=True)
    short.write_text("".join(lines[:12]), encoding="utf-8")
    out = run("replay", long, short, *SMALL, *policies).out
    assert "means over 1 session of 2; each of the others fits the window" in out
    out = run("replay", short, short, *SMALL, *policies).out
    assert "No recall to compare: every session fits the window" in out


# The plot itself.


def test_a_scale_covers_its_values_in_steps_of_a_twentieth() -> None:
    scale = Scale.over([0.33, 0.41, 0.58], 10)
    assert scale.low == pytest.approx(0.3)
    assert scale.high == pytest.approx(0.6)
    assert [scale.cell(value) for value in (0.3, 0.4, 0.6)] == [0, 3, 9]
    single = Scale.over([0.5], 10)
    assert single.low <= 0.5 <= single.high
    assert single.high > single.low


def test_cheaper_is_further_left_and_more_is_higher() -> None:
    plot = scatter([means(0.3, 0.6, front=True), means(0.6, 0.9, front=True)], (), width=60)
    lines = plot.plain.splitlines()
    assert all(len(line) <= 60 for line in lines)
    (low,) = [n for n, line in enumerate(lines) if "A" in line]
    (high,) = [n for n, line in enumerate(lines) if "B" in line]
    assert high < low
    assert lines[low].index("A") < lines[high].index("B")


def test_of_two_policies_in_one_place_the_first_is_seen() -> None:
    plot = scatter([means(0.4, 0.8, front=True)] * 2, ()).plain
    assert "A" in plot
    assert "B" not in plot


def test_letters_run_out_without_a_failure() -> None:
    assert (letter(0), letter(25), letter(26)) == ("A", "Z", "*")
