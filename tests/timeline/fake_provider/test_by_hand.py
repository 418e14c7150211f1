"""The command `python -m timeline.fake_provider`, and the scripts it plays."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import anthropic
import pytest

from blocks import MisuseError
from timeline.fake_provider import Call, Fault, Reply, Script
from timeline.fake_provider.__main__ import main

from .requests import TOOL, request

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
    script = Script.read(written(tmp_path, json.dumps(LINES)))
    assert [script(request()) for _ in LINES] == [
        Reply(thinking="Hm.", text="I look.", calls=[Call("f", {"a": 1})]),
        Fault.overloaded(),
        Reply(text="Done.", stop_reason="max_tokens", delay_seconds=0.5),
    ]


@pytest.mark.parametrize(
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
        Script.read(path)
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
    assert said.startswith(f"{port}: Address already in use")
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
