"""`foldline replay`, as people and machines see it."""

import json
import shutil
from pathlib import Path

import pytest

from tests._table import for_each
from tests.timeline.cli.conftest import Run

SMALL = ("--window", 3000, "--counter", "estimate")


def test_one_object_of_json(run: Run, session: Path) -> None:
    ran = run("replay", session, *SMALL, "--json")
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(ran.out)
    assert (data["session"], data["calls"], data["window"]) == ("invented", 24, 3000)
    assert data["reopened_equal"] is True


def test_a_story_for_people_with_a_curve_and_no_colours_in_a_pipe(run: Run, session: Path) -> None:
    ran = run("replay", session, *SMALL)
    assert (ran.code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    for word in (
        "calls",
        "compactions",
        "prompt cache",
        "cost",
        "promises",
        "▲ summary written",
        "█",
    ):
        assert word in ran.out


def test_several_sessions_and_policies_side_by_side(
    run: Run, session: Path, tmp_path: Path
) -> None:
    (tmp_path / "tight.toml").write_text("trigger_ratio = 0.6\ntarget_ratio = 0.5\n")
    arguments = (session, session, *SMALL, "--policy", "default", "--policy", "tight.toml")
    rows = [line.split() for line in run("replay", *arguments).out.splitlines()]
    assert [row[1] for row in rows if row and row[0] == "invented"] == ["default", "tight"] * 2
    lines = run("replay", *arguments, "--json").out.splitlines()
    assert [json.loads(line)["policy"] for line in lines] == ["default", "tight"] * 2


def test_a_file_that_cannot_be_read_does_not_stop_the_others(run: Run, session: Path) -> None:
    ran = run("replay", "missing.jsonl", session, *SMALL, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["calls"] == 24
    assert ran.err.startswith("foldline: missing.jsonl: no such file")


def test_a_dump_has_one_form_whoever_recorded_the_session(run: Run, tmp_path: Path) -> None:
    lines = [
        {"type": "session_meta", "payload": {"id": "x"}},
        {"type": "turn_context", "payload": {"model": "gpt-5.5"}},
        *(
            {
                "type": "response_item",
                "payload": {
                    "type": "message",
                    "role": role,
                    "content": [{"type": kind, "text": "x"}],
                },
            }
            for role, kind in (("user", "input_text"), ("assistant", "output_text"))
        ),
    ]
    log = tmp_path / "rollout-2026-11-20T10-00-00-x.jsonl"
    log.write_text(
        "".join(json.dumps({"timestamp": "2026-11-20T10:00:00Z", **line}) + "\n" for line in lines)
    )
    ran = run("replay", log, "--dump", "dump.jsonl", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert "messages" in json.loads(Path("dump.jsonl").read_text())["request"]
    assert run("replay", log, "--dump", "dump.jsonl", "--provider", "openai.responses").code == 0
    assert "input" in json.loads(Path("dump.jsonl").read_text())["request"]


def test_the_dump_appears_and_nothing_else(run: Run, session: Path, tmp_path: Path) -> None:
    assert run("replay", session, *SMALL, "--dump", "dump.jsonl").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["dump.jsonl"]
    lines = [json.loads(line) for line in Path("dump.jsonl").read_text().splitlines()]
    assert [line["call"] for line in lines] == list(range(24))


def test_system_and_tools_come_from_files(run: Run, session: Path) -> None:
    Path("system.json").write_text('"Be brief."')
    Path("tools.json").write_text('[{"name": "t", "input_schema": {"type": "object"}}]')
    files = ("--system", "system.json", "--tools", "tools.json", "--dump", "dump.jsonl")
    assert run("replay", session, *SMALL, *files).code == 0
    request = json.loads(Path("dump.jsonl").read_text().splitlines()[0])["request"]
    assert [block["text"] for block in request["system"]] == ["Be brief."]
    assert [tool["name"] for tool in request["tools"]] == ["t"]


def test_into_a_store_and_under_a_name(run: Run, session: Path) -> None:
    kept = ("--store", "s.duckdb", "--json")
    events = json.loads(run("replay", session, *SMALL, *kept).out)["events"]
    again = run("replay", session, *SMALL, *kept)
    assert (again.code, again.out) == (2, "")
    assert "already has a timeline 'invented'" in again.err
    assert run("replay", session, *SMALL, *kept, "--name", "second").code == 0
    listed = json.loads(run("list", *kept).out)
    assert [(row["id"], row["version"]) for row in listed] == [
        ("invented", events),
        ("second", events),
    ]


def test_what_is_wrong_with_one_of_several_files_takes_nothing_from_the_others(
    run: Run, session: Path
) -> None:
    Path("other").mkdir()
    shutil.copyfile(session, "other/invented.jsonl")
    ran = run("replay", session, "other/invented.jsonl", *SMALL, "--store", "s.duckdb", "--json")
    assert (ran.code, len(ran.out.splitlines())) == (1, 1)
    assert ran.err.startswith("foldline: other/invented.jsonl: s.duckdb already has a timeline")
    assert "give another store, or, to one session, another name" in ran.err
    alone = ("--name", "second", "--store", "s.duckdb")
    assert run("replay", "other/invented.jsonl", *SMALL, *alone).code == 0


@for_each(
    ("arguments", "message"),
    [
        (("--window", 10), "window 10: the system prompt and the tools alone need"),
        (("--window", 0), "window must be a positive number of tokens, not 0"),
        (("--window", -1), "window must be a positive number of tokens, not -1"),
        (("--window", "wide"), "'wide' is not a number of tokens; write 30000, 30k or 1m"),
        (("--policy", "nope"), "no policy 'nope'; known:"),
        (("--policy", "none.toml"), "policy file none.toml: No such file or directory"),
        (("--counter", "nope"), "no counter 'nope'; there are model, o200k and estimate"),
        (("--format", "nope"), "no session format 'nope'"),
        (("--base-url", "http://localhost"), "works only with --summarizer anthropic"),
        (("--thinking", "maybe"), "invalid choice: 'maybe'"),
        (("--system", "number.json"), "give a JSON string or a list of text blocks"),
        (("--tools", "number.json"), "give a JSON list of objects with a name"),
        (("--tools", "broken.json"), "broken.json: not valid JSON"),
        (("--store", "."), "is a folder"),
        (("--store", "none/s.duckdb"), "does not exist; create it"),
        (("--policy", "default", "--policy", "default", "--dump", "d"), "--dump works with one"),
        (("--unknown",), "unrecognized arguments: --unknown"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    run: Run, session: Path, arguments: tuple[object, ...], message: str
) -> None:
    Path("number.json").write_text("3")
    Path("broken.json").write_text("{")
    ran = run("replay", session, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("foldline: ")
    assert ran.err.count("\n") == 1
    assert message in ran.err
    assert {path.name for path in Path().iterdir()} == {"number.json", "broken.json"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"", "empty"),
        (b"\x00\x01\x02\xff" * 100, "binary"),
        (b'{"neither": "fish", "nor": "flesh"}', "unknown session format"),
        (b"just some words\n", "not readable as JSON"),
        (b'[{"role": "user", "content": "hi"}]', "there is nothing to replay"),
    ],
)
def test_a_bad_session_file_is_one_line_and_exit_code_1(
    run: Run, content: bytes | None, message: str
) -> None:
    if content is not None:
        Path("bad.jsonl").write_bytes(content)
    ran = run("replay", "bad.jsonl", "--dump", "dump.jsonl")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("foldline: bad.jsonl: ")
    assert ran.err.count("\n") == 1
    assert message in ran.err
    assert not Path("dump.jsonl").exists()


def test_a_truncated_file_is_replayed_as_far_as_it_goes(run: Run, session: Path) -> None:
    data = session.read_bytes()
    Path("cut.jsonl").write_bytes(data[: len(data) * 2 // 3])
    result = json.loads(run("replay", "cut.jsonl", *SMALL, "--json").out)
    assert 0 < result["calls"] < 24
    assert any("broken JSON, skipped" in notice for notice in result["notices"])


@pytest.mark.parametrize("target", [".", "none/dump.jsonl"])
def test_a_dump_that_cannot_be_written_is_one_line(run: Run, session: Path, target: str) -> None:
    ran = run("replay", session, *SMALL, "--dump", target)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"foldline: {target}: ")
    assert list(Path().iterdir()) == []


def test_debug_shows_the_traceback(run: Run) -> None:
    ran = run("replay", "missing.jsonl", "--debug")
    assert ran.code == 1
    assert ran.err.startswith("Traceback")
    assert ran.err.splitlines()[-1].startswith("foldline: missing.jsonl: no such file")
