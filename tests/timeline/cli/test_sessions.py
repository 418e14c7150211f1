"""`foldline` alone finds the sessions of agents on this machine, and says what to do with the newest."""

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.timeline.cli.conftest import Run
from timeline.cli._sessions import offer

FOLDERS = {
    "Claude Code": ".claude/projects/-home-me/1.jsonl",
    "Codex": ".codex/sessions/2026/07/01/rollout-1.jsonl",
    "pi": ".pi/agent/sessions/--me--/1.jsonl",
    "Gemini CLI": ".gemini/tmp/abc/chats/session-1.json",
}
VARIABLES = {
    "CLAUDE_CONFIG_DIR": "projects/p/1.jsonl",
    "CODEX_HOME": "sessions/rollout-1.jsonl",
    "PI_CODING_AGENT_DIR": "sessions/1.jsonl",
    "PI_CODING_AGENT_SESSION_DIR": "1.jsonl",
    "GEMINI_CLI_HOME": ".gemini/tmp/x/chats/1.json",
}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any session."""
    found = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(found))
    for name in (*VARIABLES, "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return found


def put(session: Path, path: Path, at: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(session, path)
    os.utime(path, (at, at))


def test_the_newest_of_all_agents_is_offered_with_the_command_to_run(
    run: Run, session: Path, home: Path
) -> None:
    for at, path in enumerate(FOLDERS.values()):
        put(session, home / path, 1.7e9 + at)
    put(session, home / ".claude/projects/-home-me/agent-1.jsonl", 1.8e9)
    ran = run()
    assert (ran.code, ran.err) == (0, "")
    for agent in FOLDERS:
        row = next(line for line in ran.out.splitlines() if line.startswith(agent))
        assert "1 session" in row, "and a subagent's is part of another"
    newest = home / FOLDERS["Gemini CLI"]
    assert f"  foldline replay {newest} --window auto --provider gemini\n" in ran.out
    found = json.loads(run("sessions", "--json", "--limit", 2).out)["newest"]
    assert [each["agent"] for each in found] == ["Gemini CLI", "pi"]


def test_the_command_that_is_printed_can_be_run(run: Run, session: Path, home: Path) -> None:
    put(session, home / ".claude/projects/it's here/1.jsonl", 1.7e9)
    out = run().out
    command = next(line for line in out.splitlines() if line.startswith("  foldline "))
    ran = run(*shlex.split(command)[1:], "--format", "foldline", "--json")
    assert json.loads(ran.out)["calls"] == 24


@pytest.mark.parametrize("variable", VARIABLES)
def test_agents_may_have_been_told_another_folder(
    run: Run, session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    put(session, tmp_path / "there" / VARIABLES[variable], 1.7e9)
    assert json.loads(run("sessions", "--json").out)["newest"] == []
    monkeypatch.setenv(variable, str(tmp_path / "there"))
    [found] = json.loads(run("sessions", "--json").out)["newest"]
    assert found["path"] == str(tmp_path / "there" / VARIABLES[variable])


def test_where_there_is_none_it_says_where_it_looked(run: Run) -> None:
    ran = run()
    assert ran.code == 0
    assert "~/.claude/projects" in ran.out
    assert "No session found" in ran.out


@pytest.mark.parametrize(("answer", "is_run"), [("y\n", True), ("\n", False), ("", False)])
def test_it_asks_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, answer: str, is_run: object
) -> None:
    obeyed: list[list[str]] = []

    def obey(words: list[str]) -> int:
        obeyed.append(words)
        return 0

    monkeypatch.setattr("timeline.cli._main.obey", obey)

    class Terminal:
        """Somebody who answers."""

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    monkeypatch.setattr("sys.stdin", Terminal())
    command = ["replay", "x"]
    assert offer(command) == 0
    assert obeyed == [], "standard output is no terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert offer(command) == 0
    assert obeyed == ([command] if is_run else [])
