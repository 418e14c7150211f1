"""`foldline replay` of several: rows, means, the front, a plot in the terminal."""

import json
import re
from pathlib import Path

import attrs
import pytest

from persistence.sessions import read_session
from tests._table import for_each
from tests.timeline.cli.conftest import Run
from tests.timeline.replay.invented import invented, session_file
from timeline.cli._replay_results import Axis, curve, letter, scatter, tell
from timeline.cli._sessions import grouped_notes, grouped_notices
from timeline.cli._terminal import short
from timeline.replay import Means, Point, ReplayOptions, ReplayResult, replay

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


def test_how_far_a_large_window_is_filled_is_told(run: Run, long: Path) -> None:
    lines = run("replay", long, "--window", "200000").out.splitlines()
    assert any("in a window of 200,000 tokens, filled up to 118,920" in line for line in lines)
    assert "filled" not in run("replay", long, "--window", "60000").out


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
    scale = Axis.over([0.33, 0.41, 0.58], 10)
    assert scale.low == pytest.approx(0.3)
    assert scale.high == pytest.approx(0.6)
    assert [scale.cell(value) for value in (0.3, 0.4, 0.6)] == [0, 3, 9]
    single = Axis.over([0.5], 10)
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


# The token curve fits its width and shows what happened.


def points(*tokens: int, full: int = 0, **events: str) -> list[Point]:
    """Points with these tokens; `c3="pruned"` marks the third."""
    return [
        Point(call=n, at=0.0, tokens=t, full_tokens=full or t, events=tuple(_of(events, n)))
        for n, t in enumerate(tokens)
    ]


def _of(events: dict[str, str], number: int) -> list[str]:
    return [events[f"c{number}"]] if f"c{number}" in events else []


@for_each("calls", [1, 2, 39, 80, 1_000])
def test_no_line_is_wider_than_the_screen(calls: int) -> None:
    drawn = curve(points(*range(1, calls + 1)), 1_000, width=80).plain.splitlines()
    assert all(len(line) <= 80 for line in drawn)
    assert len(drawn) == 10 + 2


def test_the_tallest_call_reaches_its_height_and_the_window_is_a_line() -> None:
    rows = curve(points(*[100] * 30, *[50] * 30), 100, width=80).plain.splitlines()
    assert rows[0].startswith("   100 │█")
    assert rows[0].endswith("─")
    assert rows[5].count("█") == 60


def test_what_happened_is_marked_under_its_call() -> None:
    drawn = curve(points(*[10] * 60, c5="compacted", c40="pruned"), 20, width=80).plain
    marks = drawn.splitlines()[-3]
    assert (marks.index("▲") - 8, marks.index("△") - 8) == (5, 40)
    assert "▲ summary written" in drawn
    assert "△ expired results hidden" in drawn
    assert "shortened" not in drawn


def test_everything_is_a_dot_while_it_is_in_sight() -> None:
    assert "·" in curve(points(*[50] * 60, full=85), 100, width=80).plain.splitlines()[1]
    assert "·" not in curve(points(*[10] * 60, full=900), 20, width=80).plain.splitlines()[1]


def test_a_small_session_in_a_huge_window_is_drawn_to_its_own_height() -> None:
    rows = curve(points(*range(10, 70)), 1_000_000, width=80).plain.splitlines()
    assert rows[0].startswith("    86 │")


@for_each(
    ("number", "text"), [(0, "0"), (999, "999"), (1_500, "1.5k"), (60_000, "60k"), (4.3e6, "4.3M")]
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


# What a replay says to a stranger: plain words, no promise beside its breach, notes once.


ROOT = Path(__file__).parents[3]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").replace("`", "")
MEANINGS = set(re.findall(r"^\| ([^|]+?) \|", GLOSSARY, re.MULTILINE))
"""What the page explains."""
EXAMPLE = ROOT / "docs" / "examples" / "invoice-service.jsonl"


@pytest.fixture(scope="module")
def result() -> ReplayResult:
    return replay(read_session(EXAMPLE), ReplayOptions(window=20_000, counter="estimate"))


def told(result: ReplayResult, capsys: pytest.CaptureFixture[str]) -> str:
    tell([result])
    return capsys.readouterr().out


def promises(out: str) -> str:
    return next(line for line in out.splitlines() if line.startswith("promises"))


def test_the_first_line_names_the_session_and_the_model_that_it_was_recorded_with(
    run: Run, result: ReplayResult, capsys: pytest.CaptureFixture[str]
) -> None:
    first = next(line for line in told(result, capsys).splitlines() if "session" in line)
    assert first == "invoice-service  a claude-code session, recorded with claude-sonnet-5-5"
    ran = run("replay", EXAMPLE, "--window", "20k", "--model", "gpt-5.6-sol")
    first, second = ran.out.splitlines()[4:6]
    assert first.endswith("recorded with claude-sonnet-5-5")
    assert second.endswith("priced as gpt-5.6-sol")


def test_promises_are_kept_only_where_none_is_broken(
    result: ReplayResult, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "kept" in promises(told(result, capsys))
    over = attrs.evolve(result, over_window_calls=2)
    line = promises(told(over, capsys))
    assert "kept" not in line
    assert "2 requests did not fit the window" in line
    broken = attrs.evolve(result, validity_violations=1, over_window_calls=2)
    line = promises(told(broken, capsys))
    assert "broken" in line
    assert "kept" not in line


def test_money_that_is_a_guess_says_about(
    result: ReplayResult, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "about" not in told(result, capsys)
    out = told(attrs.evolve(result, guess="nobody knows this model"), capsys)
    assert re.search(r"^cost +about \$", out, re.MULTILINE)
    assert "of sending everything, which nobody paid: about $" in out


def test_every_number_on_the_screen_is_explained(
    result: ReplayResult, capsys: pytest.CaptureFixture[str]
) -> None:
    every = attrs.evolve(
        result,
        prunes=1,
        clips=1,
        externalized=1,
        cleared=1,
        dropped=1,
        warm_busts=1,
        over_window_calls=1,
        coverage=attrs.evolve(result.coverage, hidden=1),
    )
    out = told(every, capsys)
    rows = out[out.index("model calls") :].splitlines()
    names = {row[: rows[0].index(next(iter(re.findall(r"\d", rows[0]))))].strip() for row in rows}
    assert {"tokens a call", "promises"} <= names
    assert names - {""} <= MEANINGS
    page = " ".join(GLOSSARY.split())
    said = " ".join(out.split())
    for words in (
        "over the window",
        "wrote a summary",
        "inside a turn",
        "into the artifact store",
        "emptied",
        "left out",
        "expired results hidden",
        "long results shortened",
        "unchanged in the last request",
        "shortened or hidden there",
        "folded into the summary",
        "carried over word for word",
        "lost a cache that was still warm",
        "sending everything",
        "with the whole line around them",
        "with the lines above and below",
        "of them whole",
    ):
        assert words in said
        assert f"| {words} |" in page


def test_the_columns_of_a_comparison_are_explained(run: Run) -> None:
    out = run("replay", EXAMPLE, EXAMPLE, "--window", "20k").out
    heading = next(line for line in out.splitlines() if line.split()[:2] == ["session", "policy"])
    assert set(heading.split()[2:]) <= MEANINGS
    for name in (
        "cost:",
        "far:",
        "line, wide:",
        "quotes:",
        "rules:",
        "edits:",
        "standing:",
        "whole:",
        "busts:",
        "front ●:",
    ):
        assert name in out


def test_notes_that_say_the_same_are_one_note() -> None:
    notes = [
        (3, "broken JSON, skipped"),
        (0, "thinking is not shown: ar:t3.assistant.thinking and 5 more"),
        (9, "broken JSON, skipped"),
        (0, "thinking is not shown: ar:t8.assistant.thinking.2 and 7 more"),
        (4, "no JSON object, skipped"),
    ]
    assert list(grouped_notes(notes)) == [
        "lines 3, 9: broken JSON, skipped (2 times like this)",
        "thinking is not shown: ar:t3.assistant.thinking and 5 more (2 times like this)",
        "line 4: no JSON object, skipped",
    ]
    many = grouped_notices([f"line {n}: bad" for n in range(1, 9)])
    assert list(many) == ["lines 1, 2, 3, 4, 5 and 3 more: bad (8 times like this)"]


def test_a_file_with_many_broken_lines_is_one_note(run: Run) -> None:
    path = session_file(Path("s.jsonl"), invented())
    path.write_text(path.read_text() + "not JSON\n" * 30)
    ran = run("import", path)
    assert ran.err.count("\n") == 1
    assert "(30 times like this)" in ran.err
    out = run("replay", path, "--window", "3k", "--counter", "estimate").out
    assert out.count("note:") == 1
