"""The model of the tutorial: it looks at what was mentioned, and summarises when asked to."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anthropic
import msgspec
import pytest

from blocks import MisuseError, StructuredSummary
from render.compaction import _prompt as prompts
from tests._table import for_each
from timeline.fake_provider import (
    Call,
    Fault,
    Player,
    Reply,
    summary_reply,
    tutorial_responder,
    wants_summary,
)
from timeline.fake_provider.__main__ import main
from timeline.fake_provider._responder import MARKER

from .requests import TOOL, assistant, request, result, user

FILES = {
    "job.py": "reads settings.toml and conf/disk.toml and job.py",
    "settings.toml": "log = nightly.log",
    "conf/disk.toml": "size = 0",
    "nightly.log": "No space left on device",
}


def played(prompt: str, **more: Any) -> list[Reply]:
    """What the responder says until it is done, with tools that read `FILES`."""
    asked = request(user(prompt), tools=[TOOL], **more)
    said: list[Reply] = []
    while not said or said[-1].calls:
        said.append(tutorial_responder(asked))
        calls = [
            {"type": "tool_use", "id": f"t{len(said)}_{n}", "name": call.name, "input": call.input}
            for n, call in enumerate(said[-1].calls)
        ]
        paths = [str(call.input["path"]) for call in said[-1].calls]
        results = [
            result(f"t{len(said)}_{n}", FILES[path])["content"][0] for n, path in enumerate(paths)
        ]
        asked["messages"] += [assistant(*calls), {"role": "user", "content": results}]
    return said


def test_it_reads_on_from_file_to_file_and_says_what_it_found() -> None:
    *rounds, last = played("Why does job.py fail? (It is v1.2.)")
    paths = [[call.input["path"] for call in said.calls] for said in rounds]
    assert paths == [["job.py"], ["settings.toml", "conf/disk.toml"], ["nightly.log"]]
    assert last.text.endswith("The last thing I found: No space left on device")
    assert played("Why does job.py fail? (It is v1.2.)") == [*rounds, last]


def test_it_thinks_only_when_asked_to() -> None:
    assert played("See job.py.")[0].thinking is None
    assert played("See job.py.", thinking={"type": "adaptive"})[0].thinking == "job.py may tell."


@for_each("tools", [[], [{"name": "now", "input_schema": {"type": "object"}}]])
def test_without_a_tool_that_takes_a_text_it_answers(tools: list[dict[str, Any]]) -> None:
    said = tutorial_responder(request(user("What of job.py?"), tools=tools))
    assert said == Reply(text="You said: What of job.py?")


def test_it_does_not_go_on_for_ever() -> None:
    asked = request(user("See 0.txt."), tools=[TOOL])
    for number in range(1, 100):
        if not tutorial_responder(asked).calls:
            break
        call = {"type": "tool_use", "id": f"t{number}", "name": "f", "input": {"path": f"{number}"}}
        asked["messages"] += [assistant(call), result(f"t{number}", f"see {number}.txt")]
    assert number == 13


# Summaries.

CONVERSATION = [
    user("Find out why the job fails."),
    assistant(
        {"type": "text", "text": "I look at the log."},
        {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a.log"}},
    ),
    result("t1", "No space left on device"),
]


def summarised(**more: Any) -> dict[str, Any]:
    instruction = {"type": "text", "text": f"{MARKER} Answer with one JSON object."}
    last = {**CONVERSATION[-1], "content": [*CONVERSATION[-1]["content"], instruction]}
    return request(*CONVERSATION[:-1], last, **more)


def test_a_summary_request_is_recognised() -> None:
    assert wants_summary(summarised())
    assert wants_summary(
        request(output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}})
    )
    assert not wants_summary(request(user("Summarise this as JSON.")))
    assert not wants_summary(request(user(MARKER), assistant({"type": "text", "text": "Yes."})))
    assert not wants_summary(request(output_config={"effort": "low"}))


def test_the_marker_is_that_of_our_summariser() -> None:
    assert prompts.MARKER == MARKER


def test_the_summary_is_ours_and_quotes_the_conversation() -> None:
    summary = msgspec.json.decode(tutorial_responder(summarised()).text, type=StructuredSummary)
    assert summary.task == "Find out why the job fails."
    assert summary.state == "I look at the log."
    assert summary.tool_outcomes[0].tool == "read_file"


def test_a_schema_is_obeyed() -> None:
    shape = {
        "$ref": "#/$defs/Answer",
        "$defs": {
            "Answer": {
                "type": "object",
                "properties": {
                    "task": {"type": "string"},
                    "title": {"type": "string"},
                    "mood": {"enum": ["good", "bad"]},
                    "steps": {"type": "array"},
                    "version": {"default": 3},
                },
            }
        },
    }
    asked = summarised(output_config={"format": {"type": "json_schema", "schema": shape}})
    assert json.loads(summary_reply(asked).text) == {
        "task": "Find out why the job fails.",
        "title": "",
        "mood": "good",
        "steps": [],
        "version": 3,
    }


def test_a_summary_uses_up_nothing_of_a_script() -> None:
    script = Player([Reply(text="Hello.")])
    assert json.loads(summary_text(script(summarised())))
    assert script(request()) == Reply(text="Hello.")
    assert script(request()) == Reply(text="The script is over.")


def summary_text(said: object) -> str:
    assert isinstance(said, Reply)
    return said.text


# The command `python -m timeline.fake_provider`, and the scripts it plays.


LINES = [
    {"thinking": "Hm.", "text": "I look.", "calls": [{"name": "f", "input": {"a": 1}}]},
    {"fault": "overloaded"},
    {"text": "Done.", "stop_reason": "max_tokens", "delay_seconds": 0.5},
]


def written(folder: Path, text: str) -> Path:
    path = folder / "script.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    script = Player.read(written(tmp_path, json.dumps(LINES)))
    assert [script(request()) for _ in LINES] == [
        Reply(thinking="Hm.", text="I look.", calls=[Call("f", {"a": 1})]),
        Fault.overloaded(),
        Reply(text="Done.", stop_reason="max_tokens", delay_seconds=0.5),
    ]


@for_each(
    "text",
    [
        "",
        "{}",
        '[{"txt": "a"}]',
        '[{"fault": "flood"}]',
        '[{"delay_seconds": 99}]',
        '[{"text": 1}]',
    ],
)
def test_a_file_that_is_no_script_is_one_clear_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(MisuseError, match=r"script\.json is not a valid script: "):
        Player.read(path)
    assert main(["--script", str(path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_script_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--script", str(tmp_path / "none.json")]) == 1
    assert capsys.readouterr().err.endswith("none.json: No such file or directory\n")


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps([{"text": "Hello."}]))
    options = ["--port", "0", "--window", "500", "--script", str(path)]
    command = [sys.executable, "-m", "timeline.fake_provider", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split()[3]
            with anthropic.Anthropic(base_url=url, api_key="any", max_retries=2) as client:
                answer = client.messages.create(**request(tools=[TOOL]))
                with pytest.raises(anthropic.BadRequestError, match="500 maximum"):
                    client.messages.create(**request(system="word " * 900))
            assert answer.content[0].to_dict()["text"] == "Hello."
            process.send_signal(signal.SIGINT)
            said = process.stdout.read().splitlines()
        finally:
            process.kill()
    assert process.returncode == 0
    assert said[0].startswith("end_turn: prompt ")
    assert said[1].startswith("refused: 400 prompt is too long: ")


def test_a_port_that_is_taken_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"cannot listen on port {port} of ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("window", ["0", "many"])
def test_a_window_is_a_number_of_tokens(window: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--window", window])
    assert stop.value.code == 2
    assert "--window" in capsys.readouterr().err


def test_the_library_does_not_load_the_server() -> None:
    code = "import sys, timeline, timeline.fake_provider; print({'starlette', 'uvicorn', 'anthropic'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
