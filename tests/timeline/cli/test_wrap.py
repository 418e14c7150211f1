"""`foldline wrap`: a client runs as it would without, and is told nothing; its requests go through the gateway.

The clients are stand-ins (`fake_client.py`) that find the gateway as the real ones do.
"""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from persistence import open_store
from tests._sizes import PATIENCE, until
from timeline.fake_provider import FakeProvider, FakeServer, Fault, Reply

pytestmark = pytest.mark.network

ROOT = Path(__file__).parents[3]
FOLDLINE = (sys.executable, "-c", "import sys; from timeline.cli import main; sys.exit(main())")
PRESSED = 20
"""Two signals may become one when they come together, so once is not enough to see that there were two."""
CLIENTS = ("claude", "codex", "opencode", "pi")
SECRET = "sk-secret"  # noqa: S105 -- as `fake_client` sends it


@attrs.frozen
class Desk:
    """A folder to work in, with clients that are installed, and a provider."""

    folder: Path
    provider: FakeServer
    environment: Mapping[str, str]

    @property
    def kept(self) -> list[Path]:
        """The files that are left of stores, which are not in the folder of the project."""
        assert not any(self.folder.iterdir())
        return [path for path in (self.folder.parent / "data").rglob("*") if path.is_file()]

    def command(self, *arguments: str) -> list[str]:
        return [*FOLDLINE, "wrap", "--upstream", self.provider.url, *arguments]

    def wrap(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.command(*arguments), **more)

    def run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def start(self, *arguments: str, ignoring: str = "") -> "subprocess.Popen[str]":
        """In the background; `ignoring` are signals, in the words of a shell."""
        line = self.command(*arguments)
        shell = ["/bin/sh", "-c", f"trap '' {ignoring}; exec \"$@\"", "sh"]
        return subprocess.Popen(
            [*shell, *line] if ignoring else line,
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # away from the terminal that the tests may run in
        )


@pytest.fixture(autouse=True)
def hangups() -> Iterator[None]:
    """A program inherits what is ignored, as by the nohup that the tests may run under."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    programs, home, folder = (tmp_path / name for name in ("bin", "home", "project"))
    for each in (programs, home, folder, tmp_path / "tmp"):
        each.mkdir()
    source = Path(__file__).with_name("fake_client.py").read_text(encoding="utf-8")
    for name in CLIENTS:
        (programs / name).write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(home),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "FOLDLINE_MODELS": os.devnull,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with FakeServer(FakeProvider(responder=lambda _: Reply(text="So it is."))) as provider:
        yield Desk(folder, provider, environment)


def facts(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.splitlines()[-1])
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_runs_as_without_and_its_requests_go_through(desk: Desk, client: str) -> None:
    ran = desk.wrap(client, "all", "3", "7")
    assert ran.returncode == 7, ran.stderr
    tools, *strangers, said = map(json.loads, ran.stdout.splitlines())
    assert tools == {"tools": ["read_timeline", "read_artifact", "search"]}
    assert strangers == [{"status": 401}] * 3
    assert said["answer"] == "So it is."
    assert len(desk.provider.requests) == 3
    assert not desk.provider.refused
    first, *rest = ran.stderr.splitlines()
    assert first.startswith("foldline: bill $")
    assert any("without foldline: " in line for line in rest)
    (kept,) = desk.kept
    assert rest[-1] == (
        f"foldline: kept in {kept}: `foldline list` shows it, `foldline savings` adds up its costs"
    )
    listed = desk.run([*FOLDLINE, "list"])
    assert listed.returncode == 0, "the same folder, the same store"
    check_nothing_is_left(desk, said["url"])


def check_nothing_is_left(desk: Desk, url: str) -> None:
    """But the store, and there no secret."""
    assert not any((desk.folder.parent / "home").rglob("*"))
    assert not any((desk.folder.parent / "tmp").rglob("*"))
    assert not is_served(url)
    for path in desk.kept:
        assert SECRET.encode() not in path.read_bytes()
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def is_served(url: str) -> bool:
    import socket

    host, port = url.split("/")[2].split(":")
    with socket.socket() as asked:
        return asked.connect_ex((host, int(port))) == 0


def test_record_only_changes_nothing_and_offers_nothing(desk: Desk) -> None:
    ran = desk.wrap("--record-only", "--window", "2000", "claude", "all", "6", "0")
    assert json.loads(ran.stdout.splitlines()[0]) == {"tools": []}
    assert "would have" in ran.stderr, ran.stderr
    counts = [len(request["messages"]) for request in desk.provider.requests]
    assert counts == [1, 3, 5, 7, 9, 11], "all that was said, each time"


def test_in_a_small_window_the_provider_gets_less_than_everything(desk: Desk) -> None:
    ran = desk.wrap("--window", "2500", "--json", "claude", "ask", "12", "0")
    told = facts(ran.stderr)
    assert told["calls"] == 12
    assert told["compactions"] > 0
    assert told["tokens"] < told["full_tokens"]
    assert not desk.provider.refused


def test_options_of_ours_may_stand_behind_the_client_before_two_dashes(desk: Desk) -> None:
    ran = desk.wrap("claude", "--store", "sqlite:///kept.sqlite", "--", "ask", "1", "3")
    assert ran.returncode == 3, ran.stderr
    with closing(open_store(f"sqlite:///{desk.folder}/kept.sqlite")) as store:
        assert len(store.list()) == 1
    wrong = desk.wrap("claude", "--nonsense", "--", "ask", "1", "3")
    assert wrong.returncode == 2


@pytest.mark.parametrize(
    ("client", "given"),
    [
        ("claude", {"ANTHROPIC_CUSTOM_HEADERS": "x-mine: 1"}),
        ("opencode", {"OPENCODE_CONFIG_CONTENT": '{"provider": {"anthropic": {"name": "Mine"}}}'}),
    ],
)
def test_what_the_user_has_set_stays(desk: Desk, client: str, given: dict[str, str]) -> None:
    ran = desk.wrap(client, "ask", "1", "0", **given)
    assert ran.returncode == 0, ran.stderr
    assert len(desk.provider.requests) == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reaches_the_gateway_past_a_proxy_of_the_users(desk: Desk, client: str) -> None:
    """A proxy on another machine cannot; this one reaches nobody."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    proxies = {each: "http://127.0.0.1:9" for name in names for each in (name, name.lower())}
    ran = desk.wrap(client, "all", "1", "0", NO_PROXY="intranet.example", **proxies)
    assert ran.returncode == 0, ran.stderr
    assert len(desk.provider.requests) == 1


@pytest.mark.parametrize("end", ["", "/v1"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_base_url_in_the_environment_works_with_and_without_the_version(
    desk: Desk, client: str, end: str
) -> None:
    url = f"{desk.provider.url}{end}"
    command = [*FOLDLINE, "wrap", client, "ask", "1", "0"]
    given = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": url}
    ran = desk.run(command, **given)
    assert ran.returncode == 0, ran.stderr
    assert len(desk.provider.requests) == 1


def test_a_client_that_is_not_installed_is_named_with_how_to_get_it(desk: Desk) -> None:
    shutil.rmtree(desk.folder.parent / "bin")
    ran = desk.wrap("codex", "ask", "1", "0")
    assert ran.returncode == 2
    assert ran.stderr == "foldline: codex is not installed here: npm install -g @openai/codex\n"
    assert not desk.kept


@contextmanager
def another(desk: Desk, *arguments: str) -> Iterator[None]:
    """An agent that has asked once and waits."""
    running = desk.start(*arguments, "wait")
    assert running.stdout
    running.stdout.readline()
    yield
    running.terminate()
    running.communicate(timeout=PATIENCE)


def test_several_agents_at_once_share_the_store_of_a_folder(desk: Desk) -> None:
    with another(desk, "pi"):
        both = [desk.start(client, "ask", "3", "0") for client in ("claude", "codex")]
        for ran in both:
            _, told = ran.communicate(timeout=PATIENCE)
            assert ran.returncode == 0, told
    (kept,) = desk.kept
    with closing(open_store(kept)) as store:
        assert len(store.list()) == 2


def test_a_store_that_another_one_holds_is_told_with_what_to_do(desk: Desk) -> None:
    held = ("--store", "held.duckdb", "claude")
    with another(desk, *held):
        second = desk.wrap(*held, "ask", "1", "0")
        third = desk.wrap("--store", "sqlite:///foldline.sqlite", "claude", "ask", "1", "0")
    assert second.returncode == 1
    assert "--store sqlite:///foldline.sqlite" in second.stderr
    assert third.returncode == 0, third.stderr


def test_a_client_that_asks_nobody_is_told(desk: Desk) -> None:
    ran = desk.wrap("claude", "idle")
    assert "no request came by" in ran.stderr
    assert not desk.kept, "no store for nothing"


def test_a_client_whose_requests_all_fail_is_not_told_that_none_came_by(desk: Desk) -> None:
    desk.provider.fault(Fault.overloaded())
    ran = desk.wrap("claude", "ask", "1", "0")
    assert ran.returncode == 1
    assert "no request came by" not in ran.stderr
    assert "no calls to a model; 0 other requests forwarded, 1 refused or failed" in ran.stderr


def test_the_last_lines_are_those_of_the_command_that_adds_up(desk: Desk) -> None:
    ran = desk.wrap("claude", "ask", "3", "0")
    summed = subprocess.run(
        [*FOLDLINE, "savings"],
        cwd=desk.folder,
        env=dict(desk.environment),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    said = [line.removeprefix("foldline: ") for line in ran.stderr.splitlines()]
    assert summed.stdout.splitlines() == said[:-1]


def test_a_client_that_calls_no_model_leaves_no_store_that_it_is_told_of(desk: Desk) -> None:
    ran = desk.wrap("claude", "models")
    assert ran.stderr == "foldline: no calls to a model; 1 other request forwarded\n"
    assert not desk.kept


# Signals and the terminal.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_goes_on_to_the_client_whose_exit_code_is_told(
    desk: Desk, number: signal.Signals
) -> None:
    running = desk.start("claude", "wait")
    assert running.stdout
    client = json.loads(running.stdout.readline())
    running.send_signal(number)
    out, told = running.communicate(timeout=PATIENCE)
    assert out, (running.returncode, told)
    assert facts(out) == {"signal": number.name}
    assert running.returncode == 50
    check_nothing_is_left(desk, client["url"])


def test_of_an_agent_whose_gateway_is_killed_nothing_goes_on(desk: Desk) -> None:
    running = desk.start("claude", "wait")
    assert running.stdout
    client = json.loads(running.stdout.readline())
    guards = children(running.pid) - {client["pid"]}
    running.kill()
    out, _ = running.communicate(timeout=PATIENCE)  # to the end of what the client says
    assert facts(out) == {"signal": "SIGTERM"}
    assert guards
    wait_until_gone({client["pid"], *guards})
    assert not any((desk.folder.parent / "tmp").rglob("*"))
    assert not is_served(client["url"])
    assert desk.wrap("claude", "ask", "1", "0").returncode == 0, "the store is free again"


def test_a_signal_that_comes_again_does_not_end_the_tidying_up(desk: Desk) -> None:
    """A terminal that is closed sends SIGHUP, and so does the shell in it."""
    running = desk.start("claude", "wait")
    assert running.stdout
    client = json.loads(running.stdout.readline())
    while running.poll() is None:
        running.send_signal(signal.SIGHUP)
        time.sleep(0.005)  # again and again
    running.communicate(timeout=PATIENCE)
    check_nothing_is_left(desk, client["url"])
    assert not desk.kept, "no store for nothing"


def test_a_signal_that_is_ignored_is_not_passed_on(desk: Desk) -> None:
    """As by `nohup`, or by a shell for what runs in the background."""
    running = desk.start("claude", "wait", ignoring="HUP INT")
    assert running.stdout
    running.stdout.readline()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        running.send_signal(number)
        time.sleep(0.05)  # was it passed on, it is told before the next
    out, _ = running.communicate(timeout=PATIENCE)
    assert out.splitlines() == ['{"signal": "SIGTERM"}']


def test_an_interrupt_is_for_the_client_to_understand(desk: Desk) -> None:
    running = desk.start("claude", "wait")
    assert running.stdout
    client = json.loads(running.stdout.readline())
    running.send_signal(signal.SIGINT)
    assert json.loads(running.stdout.readline()) == {"signal": "SIGINT"}
    assert running.poll() is None, "it goes on"
    running.terminate()
    running.communicate(timeout=PATIENCE)
    assert running.returncode == 50
    check_nothing_is_left(desk, client["url"])


def test_of_a_client_that_is_killed_the_rest_goes_as_always(desk: Desk) -> None:
    running = desk.start("claude", "wait")
    assert running.stdout
    os.kill(json.loads(running.stdout.readline())["pid"], signal.SIGKILL)
    _, told = running.communicate(timeout=PATIENCE)
    assert running.returncode == 137
    assert told.startswith("foldline: ")
    assert desk.wrap("claude", "ask", "1", "0").returncode == 0, "the store is free again"


def test_at_a_terminal_one_ctrl_c_is_one_interrupt(desk: Desk) -> None:
    with terminal(desk, "claude", "wait") as (running, screen):
        said = read_until(screen, b'"pid"')
        for _ in range(PRESSED):
            os.write(screen, b"\x03")
            said += read_until(screen, b"SIGINT")
            time.sleep(0.05)  # is there a second one, it is told before the next
        os.kill(running, signal.SIGTERM)
        said += read_until(screen, b"SIGTERM")
        assert said.count(b"SIGINT") == PRESSED
        assert os.waitstatus_to_exitcode(os.waitpid(running, 0)[1]) == 50


def test_of_a_terminal_that_is_closed_nothing_is_left(desk: Desk) -> None:
    with terminal(desk, "claude", "wait") as (running, screen):
        client = json.loads(read_until(screen, b"}"))
        others = children(running)
    assert os.waitstatus_to_exitcode(os.waitpid(running, 0)[1]) == 50
    assert client["pid"] in others
    wait_until_gone(others)
    check_nothing_is_left(desk, client["url"])


def test_a_terminal_is_as_it_was_after_a_client_left_it_raw(desk: Desk) -> None:
    with terminal(desk, "claude", "raw") as (running, screen):
        read_until(screen, b"came by")
        _, _, _, local, *_ = termios.tcgetattr(screen)
        assert local & termios.ICANON
        assert os.waitstatus_to_exitcode(os.waitpid(running, 0)[1]) == 137


def test_who_stops_a_client_stops_both_and_both_go_on(desk: Desk) -> None:
    with terminal(desk, "claude", "wait") as (running, screen):
        client = json.loads(read_until(screen, b"}"))["pid"]
        os.kill(client, signal.SIGSTOP)
        _, status = os.waitpid(running, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        os.kill(running, signal.SIGCONT)
        os.kill(client, signal.SIGCONT)
        os.kill(running, signal.SIGTERM)
        read_until(screen, b"SIGTERM")
        assert os.waitstatus_to_exitcode(os.waitpid(running, 0)[1]) == 50


def children(pid: int) -> set[int]:
    """Of a process, those that it has now."""
    asked = ["ps", "-A", "-o", "ppid=,pid="]
    pairs = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    return {int(child) for parent, child in map(str.split, pairs) if int(parent) == pid}


def wait_until_gone(pids: set[int]) -> None:
    until(lambda: not any(map(is_running, pids)))


def is_running(pid: int) -> bool:
    """Whether it does anything; who is dead may still be in the list."""
    asked = ["ps", "-p", str(pid), "-o", "stat="]
    state = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return bool(state) and not state.startswith("Z")


@contextmanager
def terminal(desk: Desk, *arguments: str) -> Iterator[tuple[int, int]]:
    """The command at a terminal of its own: its process id, and the other end of the terminal."""
    command = desk.command(*arguments)
    running, screen = pty.fork()
    if running == 0:
        os.chdir(desk.folder)
        os.execve(command[0], command, dict(desk.environment))  # noqa: S606 -- the child's half
    try:
        yield running, screen
    finally:
        os.close(screen)


def read_until(screen: int, wanted: bytes) -> bytes:
    said = b""
    end = time.monotonic() + PATIENCE
    while wanted not in said:
        assert time.monotonic() < end, said
        said += os.read(screen, 4_096)
    return said
