"""`foldline account`: where the tokens are; and that an unknown model is said to be one, by every command."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from blocks import EventId, TimelineId, UsageRecorded
from persistence import open_store
from render import CompactionDraft
from tests.timeline.cli.conftest import Run
from timeline import Timeline

UNKNOWN = (
    "model 'gpt-9' is not in the table: its window, its counts and its prices are guesses"
    ", those of gpt-6.2-sol"
)


@pytest.fixture(autouse=True)
def imported(run: Run, session: Path) -> None:
    assert run("import", session).code == 0


def test_it_says_what_there_is_and_what_is_left(run: Run) -> None:
    ran = run("account", "invented", "--model", "claude-haiku-4-5")
    assert (ran.code, ran.err) == (0, "")
    size, _, first, *rows = ran.out.splitlines()
    assert size == "invented: no request yet"
    assert first == "model claude-haiku-4-5"
    told = {row.split()[0]: row for row in rows}
    assert told["limit"].split(maxsplit=2)[1:] == ["192,000", "besides 8,000 for the answer"]
    assert {"system", "tools", "summary", "messages", "estimated", "total", "available"} < {*told}


def test_machines_get_the_same_and_the_shares(run: Run) -> None:
    found = json.loads(run("account", "invented", "--window", 50_000, "--json").out)
    assert (found["limit"], found["output"], found["known"]) == (50_000, 0, True)
    assert found["available"] == 50_000 - found["total"]
    assert found["utilisation"] == round(found["messages"] / (50_000 - found["system"]), 4)


def test_looking_records_nothing(run: Run) -> None:
    before = run("show", "invented", "--json").out
    run("account", "invented", "--window", 3_000)
    assert run("show", "invented", "--json").out == before


@pytest.mark.parametrize("window", [(), ("--window", 9_000)])
def test_an_unknown_model_is_said_to_be_one_first(run: Run, window: tuple[object, ...]) -> None:
    said = run("account", "invented", "--model", "gpt-9", *window).out.splitlines()[2:]
    assert said[0] == "model gpt-9: unknown, so the counts are guesses"
    assert ("the window is a guess" in said[1]) is (not window)
    assert (
        json.loads(run("account", "invented", "--model", "gpt-9", "--json").out)["known"] is False
    )
    assert run("propose", "invented", "--model", "gpt-9", *window).out.splitlines()[0] == UNKNOWN


@pytest.mark.parametrize("command", ["propose", "render"])
def test_where_the_output_is_a_document_it_is_said_beside_it(run: Run, command: str) -> None:
    ran = run(command, "invented", "--model", "gpt-9", "--json")
    assert UNKNOWN in ran.err
    assert json.loads(ran.out)
    assert UNKNOWN not in run(command, "invented", "--json").err


def test_a_replay_of_an_unknown_model_is_a_guess_and_so_is_its_money(
    run: Run, session: Path
) -> None:
    small = ("--window", 3000, "--counter", "estimate", "--model", "gpt-9")
    lines = run("replay", session, *small).out.splitlines()
    assert lines[3] == UNKNOWN
    assert "about $" in next(line for line in lines if line.startswith("cost"))
    assert json.loads(run("replay", session, *small, "--json").out)["guess"] == lines[3]
    several = run("replay", session, session, *small).out.splitlines()
    assert several[0] == lines[3]
    assert all("about" in line for line in several if line.split()[:1] == ["invented"])


def test_a_session_that_names_no_model_is_priced_by_a_guess(run: Run, session: Path) -> None:
    small = ("--window", 3000, "--counter", "estimate")
    first, _, third, fourth = run("replay", session, *small).out.splitlines()[:4]
    assert third == "no bill: 24 calls whose usage the log lacks"
    assert first == "invented  a foldline session, recorded with a model that it does not name"
    assert fourth == (
        "the session names no model: the window and the prices are those of claude-sonnet-5-5, a guess"
    )
    named = run("replay", session, *small, "--model", "claude-sonnet-5-5", "--json")
    assert json.loads(named.out)["guess"] == ""


def test_the_recorded_model_and_window_are_taken_unless_others_are_named(run: Run) -> None:
    """A GPT session of a client with a window of its own; `propose` and `render` take the same."""
    with Timeline.open("codex", store="foldline.duckdb") as timeline:
        timeline.user("Go on.")
    used = UsageRecorded(id=EventId("u"), at=1.0, model="gpt-5.5", window=258_400, uncached=900)
    with closing(open_store("foldline.duckdb")) as store:
        store.append(TimelineId("codex"), [used], expected_version=store.head(TimelineId("codex")))
    why = "those of the newest answer in the log; --model and --window choose others"
    own = run("account", "codex")
    assert own.out.splitlines()[1] == f"model gpt-5.5, window 258,400: {why}"
    found = json.loads(run("account", "codex", "--json").out)
    assert (found["model"], found["limit"]) == ("gpt-5.5", 258_400)
    wide = json.loads(run("account", "codex", "--window", "1m", "--json").out)
    assert (wide["model"], wide["limit"]) == ("gpt-5.5", 1_000_000)
    other = run("account", "codex", "--model", "claude-haiku-4-5", "--json")
    assert json.loads(other.out)["limit"] == 192_000
    assert why not in other.err
    assert why in run("propose", "codex").out
    rendered = run("render", "codex", "--json")
    assert "input" in json.loads(rendered.out), "in the request format of the model's provider"
    assert "model gpt-5.5: that of the newest answer in the log" in rendered.err
    chat = run("render", "codex", "--provider", "openai.chat", "--json")
    assert "messages" in json.loads(chat.out)
    assert "model gpt-5.5: that of the newest answer in the log" in chat.err


def test_a_log_without_a_model_is_said_to_be_one(run: Run) -> None:
    said = "model claude-sonnet-5-5: a guess, as the log names none; --model chooses another"
    assert said in run("account", "invented").out
    assert said in run("propose", "invented").out
    assert said in run("render", "invented").err


# `foldline propose`: look at a compaction, keep it, carry it out once.


SMALL = ("--window", 3000, "--counter", "estimate")


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
