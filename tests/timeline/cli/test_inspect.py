"""`list` and `show` for people: what a timeline is about, which blocks, on any screen, in any pipe."""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from blocks import Bill, Event, EventId, TimelineId, UsageRecorded
from persistence import open_store
from tests import _builders as make
from tests._sizes import PATIENCE
from tests.persistence.test_look import HOLD, other_process
from tests.timeline.cli.conftest import Run
from tests.timeline.cli.test_main import FOLDLINE
from timeline import Options, Timeline
from timeline.cli import main

EXAMPLE = str(Path(__file__).parents[3] / "docs" / "examples" / "invoice-service.jsonl")
COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-9]|9[0-7]|38;[0-9;]*)m")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(scope="module")
def replayed_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("example") / "foldline.duckdb"
    assert main(["replay", EXAMPLE, "--window", "30k", "--store", str(path)]) == 0
    return path


@pytest.fixture
def example(run: Run, replayed_example: Path) -> None:
    """The example, replayed into the default store."""
    del run  # has gone to the folder
    shutil.copy(replayed_example, "foldline.duckdb")


def on_a_terminal(*arguments: str, columns: int = 80, **environment: str) -> str:
    """What a terminal of so many columns is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    given = {**inherited, "TERM": "xterm", "PAGER": "cat", "HOME": str(Path.cwd()), **environment}
    process = subprocess.Popen([*FOLDLINE, *arguments], stdin=theirs, stdout=theirs, env=given)
    os.close(theirs)
    sent = b""
    try:
        while piece := os.read(ours, 65_536):
            sent += piece
    except OSError:  # the terminal was closed at the other end
        pass
    os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0
    return sent.decode().replace("\r\n", "\n")


def lines_of(sent: str) -> list[str]:
    return [line.rstrip() for line in ESCAPES.sub("", sent).splitlines()]


# ---------------------------------------------------------------- which blocks


@pytest.mark.usefixtures("example")
def test_blocks_are_chosen_by_kind_turn_and_state(run: Run) -> None:
    every = json.loads(run("show", "invoice-service", "--json").out)

    def shown(*options: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(
            run("show", "invoice-service", *options, "--json").out
        )
        return found

    assert shown("--kind", "result") == [r for r in every if r["kind"] == "react.tool.result"]
    assert shown("--kind", "react.tool.result") == shown("--kind", "result")
    assert shown("--kind", "tool") == [r for r in every if r["kind"].startswith("react.tool.")]
    assert shown("--turn", "t2", "--turn", "t3") == [r for r in every if r["turn"] in {"t2", "t3"}]
    assert shown("--state", "hidden") == [r for r in every if r["state"] == "hidden"]
    both = [r for r in every if r["turn"] == "t6" and r["kind"] == "react.tool.call"]
    assert shown("--turn", "t6", "--kind", "call") == both
    assert shown("--tail", "3") == every[-3:]
    assert (
        shown("--kind", "user", "--tail", "2")
        == [r for r in every if r["kind"].startswith("user.")][-2:]
    )


@pytest.mark.usefixtures("example")
def test_a_filter_that_makes_no_sense_is_one_line(run: Run) -> None:
    for wrong in (
        ("--tail", "0"),
        ("--kind", "nothing"),
        ("--turn", "t99"),
        ("--state", "gone"),
        ("v3", "--tail", "1"),
        ("--follow", "--kind", "call"),
    ):
        ran = run("show", "invoice-service", *wrong)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.count("\n") == 1


@pytest.mark.usefixtures("example")
def test_a_text_that_is_cut_says_so_and_its_version_gives_it_whole(run: Run) -> None:
    rows = json.loads(run("show", "invoice-service", "--json").out)
    assert {row["cut"] for row in rows} == {True, False}
    for row in rows[:40]:
        whole = run("show", "invoice-service", f"v{row['version']}", "--hidden").out
        if row["text"]:
            assert (" ".join(whole.split()) != row["text"]) is row["cut"]


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_fits_the_screen_and_leaves_room_for_the_texts(columns: int) -> None:
    sent = lines_of(on_a_terminal("show", "invoice-service", "--tail", "40", columns=columns))
    assert max(map(len, sent)) <= columns
    heading = next(line for line in sent if line.startswith("version"))
    assert columns - heading.index("text") >= 34
    assert sum(line.strip().startswith("v") for line in sent) == 41, "no row is broken in two"
    assert re.match(r"invoice-service  \d+ blocks, \S+ tokens in its newest request; ", sent[0])
    assert sent[0].endswith("; 40 blocks shown")


# ---------------------------------------------------------------- what is listed


@pytest.mark.usefixtures("example")
def test_a_list_says_what_each_is_about(run: Run) -> None:
    run("import", EXAMPLE, "--name", "imported")
    replayed, imported = json.loads(run("list", "--json").out)
    assert replayed["prompt"] == imported["prompt"]
    assert imported["prompt"].startswith("The nightly job has reported failed feeds")
    assert replayed["tokens"] > 1_000
    out = run("list").out
    assert "The nightly job has reported" in out
    [brief, _] = json.loads(run("list", "--json", "--brief").out)
    assert brief.keys() == replayed.keys()
    assert brief["prompt"] is brief["model"] is brief["tokens"] is brief["dollars"] is None


def test_a_list_has_the_model_and_the_size_that_the_provider_reported(run: Run) -> None:
    usage = {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 7}
    with Timeline.open("live", store="foldline.duckdb", model="claude-haiku-4-5") as timeline:
        timeline.user("Begin.")
        said = [{"type": "text", "text": "Done."}]
        timeline.record({"id": "m", "model": "claude-haiku-4-5", "content": said, "usage": usage})
    [row] = json.loads(run("list", "--json").out)
    assert (row["prompt"], row["model"], row["tokens"]) == ("Begin.", "claude-haiku-4-5", 1_000)


def used(number: int, model: str = "claude-opus-4-6", **fields: Any) -> UsageRecorded:
    return UsageRecorded(id=EventId(f"u{number}"), at=5.0, model=model, **fields)


def kept(name: str, *events: Event) -> None:
    """A timeline with these events after a prompt."""
    with closing(open_store("foldline.duckdb")) as store:
        store.append(
            TimelineId(name), [make.appended(make.prompt("Go")), *events], expected_version=0
        )


def test_a_list_has_what_each_has_cost_and_stats_say_it_as_a_replay_does(run: Run) -> None:
    kept("known", used(1, uncached=1_000_000), used(2, output=100_000, aside=True))
    kept("like-another", used(1, "gpt-77", uncached=1_000_000))
    kept("nobodys", used(1, "nobodys-model", uncached=1_000_000))
    bill = Bill(paid=1.0, full=4.0, rewritten=True)
    kept("through-a-gateway", used(1, uncached=1_000_000, bill=bill))
    dearer = Bill(paid=3.0, full=2.0, rewritten=True)
    kept("dearer", used(1, uncached=1_000_000, bill=dearer))
    rows = {row["id"]: row for row in json.loads(run("list", "--json").out)}
    assert (rows["known"]["dollars"], rows["known"]["guess"]) == (7.5, False)
    assert (rows["nobodys"]["dollars"], rows["through-a-gateway"]["dollars"]) == (None, 1.0)
    assert rows["like-another"]["guess"] is True
    table = {row.split()[0]: row for row in run("list").out.splitlines() if row.strip()}
    assert " $7.50 " in table["known"]
    assert f" about ${rows['like-another']['dollars']:.2f} " in table["like-another"]
    for name, words in {
        "known": "bill $7.50 recorded",
        "nobodys": "no bill: 1 call at unknown prices (nobodys-model)",
        "through-a-gateway": "bill $1.00 recorded; without foldline $4.00: saved $3.00 (75%)",
        "dearer": "bill $3.00 recorded; with foldline it cost $1.00 more (50%)",
    }.items():
        assert run("stats", name).out.splitlines()[:2] == [name, words]
        found = json.loads(run("stats", name, "--json").out)["recorded_bill"]
        assert found["headline"] == words
    parts = run("stats", "known").out.splitlines()[2]
    assert parts.startswith(
        "2 calls, 1 of them outside the conversation; dollars (tokens): input $5.00"
    )


def test_a_bill_has_what_was_paid_before_a_compaction(run: Run) -> None:
    small: Options = {
        "store": "foldline.duckdb",
        "model": "claude-opus-4-6",
        "window": 3_000,
        "counter": "estimate",
    }
    with Timeline.open("folded", **small) as timeline:
        for turn in range(12):
            timeline.user(f"Look at file {turn}. " + "and its lines " * 100)
            timeline.render()
            usage = {"input_tokens": 100_000, "output_tokens": 0}
            said = [{"type": "text", "text": "Done. " * 100}]
            answer = {"id": f"m{turn}", "model": "claude-opus-4-6", "content": said, "usage": usage}
            timeline.record(answer)
        assert timeline.view.compaction is not None
    [row] = json.loads(run("list", "--json").out)
    assert (row["dollars"], row["model"]) == (6.0, "claude-opus-4-6")


def test_a_timeline_has_one_size(run: Run) -> None:
    kept(
        "sized",
        used(1, uncached=40_000),
        used(2, cache_read=107_234),
        used(3, uncached=9, aside=True),
    )
    [row] = json.loads(run("list", "--json").out)
    account = json.loads(run("account", "sized", "--json").out)
    assert row["tokens"] == account["tokens"] == 107_234
    assert " 107k " in run("list").out
    for command in ("show", "account"):
        assert "107k tokens in its newest request" in run(command, "sized").out.splitlines()[0]


@pytest.mark.parametrize("events", [31, 200])
def test_a_prompt_behind_long_instructions_is_found(run: Run, events: int) -> None:
    log = [make.appended(make.attachment(f"rules {n}", "Be kind.")) for n in range(events)]
    log += [make.appended(make.prompt("At last.")), make.appended(make.prompt("And more."))]
    with closing(open_store("foldline.duckdb")) as store:
        store.append(TimelineId("late"), log, expected_version=0)
    [row] = json.loads(run("list", "--json").out)
    assert row["prompt"] == "At last."


def test_a_list_does_not_show_what_is_hidden_on_request(run: Run) -> None:
    with Timeline.open("secrets", store="foldline.duckdb") as timeline:
        timeline.user("The word is xyzzy.")
        timeline.hide("ar:t1.user.prompt")
    for more in ([], ["--json"]):
        ran = run("list", *more)
        assert "secrets" in ran.out
        assert "xyzzy" not in ran.out


def test_people_get_the_newest_and_are_told_of_the_others(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timeline.cli._inspect.LISTED", 2)
    for name in ("a", "b", "c"):
        with Timeline.open(name, store="foldline.duckdb") as timeline:
            timeline.user(f"This is {name}.")
    out = run("list").out
    assert "This is a." not in out
    assert out.endswith("1 older timeline not shown; --all shows all\n")
    assert "This is a." in run("list", "--all").out
    assert len(json.loads(run("list", "--json").out)) == 3


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_list_fits_the_screen(columns: int) -> None:
    sent = lines_of(on_a_terminal("list", columns=columns))
    assert max(map(len, sent)) <= columns
    assert any("The nightly job" in line for line in sent)


# ---------------------------------------------------------------- terminals and pipes


@pytest.mark.usefixtures("example")
def test_a_long_table_goes_through_the_pager_of_the_user() -> None:
    sent = lines_of(on_a_terminal("show", "invoice-service", FOLDLINE_PAGER="cat -n"))
    assert sent[0].strip().startswith("1\tinvoice-service")
    assert int(sent[-1].split()[0]) > 286


@pytest.mark.usefixtures("example")
def test_a_terminal_is_left_without_colours_where_the_user_wants_none() -> None:
    for command in (("show", "invoice-service"), ("list",), ("stats", "invoice-service")):
        assert not COLOUR.search(on_a_terminal(*command, NO_COLOR="1"))
    assert COLOUR.search(on_a_terminal("show", "invoice-service"))


@pytest.mark.usefixtures("example")
def test_a_pipe_gets_no_escapes_and_no_blanks_at_the_ends_of_lines(run: Run) -> None:
    for command in (
        ("show", "invoice-service"),
        ("list",),
        ("stats", "invoice-service"),
        ("account", "invoice-service"),
        ("propose", "invoice-service", "--window", "15k"),
        ("models",),
        ("bill",),
        ("search", "invoice"),
        ("replay", EXAMPLE, "--window", "30k"),
    ):
        out = run(*command).out
        assert "\x1b" not in out
        assert [line for line in out.splitlines() if line != line.rstrip()] == [], command


# ---------------------------------------------------------------- a store in use


READ = (
    ("list",),
    ("show", "my talk"),
    ("stats", "my talk"),
    ("account", "my talk"),
    ("propose", "my talk"),
    ("render", "my talk"),
    ("export", "my talk"),
    ("verify",),
    ("copy", "backup.duckdb"),
    ("search", "text"),
)


def test_a_store_that_another_process_has_open_is_read(run: Run) -> None:
    where = str(Path("held.duckdb").resolve())
    with other_process(HOLD, where):
        ran = [run(*command, "--store", where) for command in READ]
    said = f"foldline: {where} is in use or read-only: this is what it holds at this moment\n"
    assert [each.code for each in ran] == [0] * len(READ)
    assert all(each.err.startswith(said) for each in ran)
    assert all(each.out for each in ran)
    assert "no timelines" not in ran[0].out


def test_what_would_write_to_it_is_refused(run: Run, session: Path) -> None:
    where = str(Path("held.duckdb").resolve())
    with other_process(HOLD, where):
        for command in (
            ("import", session),
            ("fork", "my talk", "new"),
            ("show", "my talk", "--follow"),
        ):
            ran = run(*command, "--store", where)
            assert ran.code == 1
            assert "held.duckdb is open in process" in ran.err
