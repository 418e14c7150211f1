"""`foldline propose`: look at a compaction, keep it, carry it out once."""

import json
from pathlib import Path

import pytest

from render import CompactionDraft
from tests.timeline.cli.conftest import Run

SMALL = ("--window", 3000, "--counter", "estimate")


@pytest.fixture(autouse=True)
def imported(run: Run, session: Path) -> None:
    assert run("import", session).code == 0


def test_it_shows_each_proposal_and_what_they_come_to(run: Run) -> None:
    ran = run("propose", "invented", *SMALL)
    assert (ran.code, ran.err) == (0, "")
    assert "summarize" in ran.out
    assert "everything before the verbatim tail" in ran.out
    assert "tokens in a window of 3,000" in ran.out


def test_looking_changes_nothing(run: Run) -> None:
    before = run("show", "invented", "--json").out
    version = json.loads(run("list", "--json").out)[0]["version"]
    run("propose", "invented", *SMALL)
    assert run("show", "invented", "--json").out == before
    assert json.loads(run("list", "--json").out)[0]["version"] == version


def test_a_draft_that_was_kept_is_carried_out_once(run: Run) -> None:
    kept = run("propose", "invented", *SMALL, "--json").out
    Path("draft.json").write_text(kept)
    draft = CompactionDraft.from_json(kept)
    first = run("propose", "invented", *SMALL, "--commit", "draft.json")
    assert first.out.startswith("invented: committed, version ")
    assert int(first.out.split()[-1]) >= draft.version + len(draft.rungs)
    again = run("propose", "invented", *SMALL, "--commit", "draft.json")
    assert (again.code, again.out) == (0, "invented: already committed\n")
    folded = json.loads(run("show", "invented", "--json").out)
    assert "folded" in {row["state"] for row in folded}


def test_a_draft_for_another_version_is_refused_in_one_line(run: Run) -> None:
    kept = json.loads(run("propose", "invented", *SMALL, "--json").out)
    Path("draft.json").write_text(json.dumps({**kept, "version": kept["version"] - 1}))
    ran = run("propose", "invented", *SMALL, "--commit", "draft.json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert "make a new draft" in ran.err


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"format": 9, "version": 1}'])
def test_what_is_no_draft_is_refused_in_one_line(run: Run, text: str) -> None:
    Path("draft.json").write_text(text)
    ran = run("propose", "invented", "--commit", "draft.json")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


def test_a_short_timeline_has_nothing_to_compact(run: Run, session: Path) -> None:
    lines = session.read_text().splitlines()[:2]
    Path("short.jsonl").write_text("\n".join(lines))
    assert run("import", "short.jsonl", "--name", "short").code == 0
    said = run("propose", "short", "--model", "claude-sonnet-5-5").out
    assert said == "short: a compaction would change nothing\n"
