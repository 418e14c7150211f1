"""What a replay says to a stranger: plain words, no promise beside its breach, notes once."""

import re
from pathlib import Path

import attrs
import pytest

from persistence.sessions import read_session
from tests.timeline.cli.conftest import Run
from tests.timeline.replay.invented import invented, session_file
from timeline.cli._results import tell
from timeline.cli._sessions import grouped_notes, grouped_notices
from timeline.replay import ReplayOptions, ReplayResult, replay

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
