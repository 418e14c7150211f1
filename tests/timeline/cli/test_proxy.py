"""`foldline proxy`: serves until it is interrupted, and says what was saved."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests._sizes import PATIENCE
from tests.timeline.gateway._agents import Agent, provider, working
from timeline.cli import main

pytestmark = pytest.mark.network
PROXY = (sys.executable, "-c", "import sys; from timeline.cli import main; sys.exit(main())")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped_and_then_says_what_was_saved(
    tmp_path: Path, stop: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "agent.duckdb")
    with provider(working(4)) as up:
        command = [*PROXY, "proxy", "--port", "0", "--store", store, "--upstream", up.url]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]  # the same two
            assert process.stderr is not None
            url = process.stderr.readline().split()[3].rstrip(";")
            assert Agent(url).work() == 5
            process.send_signal(stop)
            said, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaints
    assert "\n5 calls, " in said
    assert "without foldline: " in said
    assert not complaints
    assert main(["list", "--store", store]) == 0
    assert "agent-" in capsys.readouterr().out


def test_what_cannot_be_served_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path / "a.duckdb")]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["proxy", "--port", port, *store]) != 0
    said = capsys.readouterr().err
    assert f"port {port} of '127.0.0.1': another program listens there" in said
    for wrong, said in [
        (["--port", "99999"], "a port is a number from 0 to 65535"),
        (["--port", "-1"], "a port is a number from 0 to 65535"),
        (["--host", "999.1.1.1", "--token", "x"], "999.1.1.1"),
        (["--upstream", "http://"], "and a host"),
        (["--upstream", "https://x.example/v1/messages"], "give https://x.example/v1\n"),
        (["--host", "0.0.0.0"], "only with a token"),  # noqa: S104 -- refused
        (["--upstream", "localhost"], "is not a URL"),
        (["--policy", "frugl"], "frugal"),
    ]:
        assert main(["proxy", "--port", "0", *store, *wrong]) != 0, wrong
        assert said in capsys.readouterr().err
