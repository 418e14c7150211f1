"""The real command, in a process of its own: exit codes, pipes, interrupts, start-up."""

import json
import subprocess
import sys
from pathlib import Path

from tests._sizes import PATIENCE
from tests.timeline.replay.invented import invented, session_file

INTERRUPTED = """
import os, signal, sys
from timeline.cli import main

def opened(event, given):
    if event == "open" and ".d." in str(given[0]):
        sys.setprofile(called)

def called(*_):
    global calls
    calls += 1
    if calls == 5000:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

calls = 0
sys.addaudithook(opened)
sys.exit(main())
"""
"""Ctrl-C five thousand calls and returns after the file of a dump was opened."""
FOLDLINE = (sys.executable, "-c", "import sys; from timeline.cli import main; sys.exit(main())")


def foldline(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*FOLDLINE, *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


def test_replay_into_a_store_and_read_it_back(session: Path, tmp_path: Path) -> None:
    arguments = ("--window", 3000, "--counter", "estimate", "--store", "s.duckdb", "--json")
    ran = foldline("replay", session, *arguments, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    events = json.loads(ran.stdout)["events"]
    verified = foldline("verify", "--store", "s.duckdb", cwd=tmp_path)
    assert f"{events} events" in verified.stdout


def test_exit_codes(tmp_path: Path) -> None:
    assert foldline("replay", "missing.jsonl", cwd=tmp_path).returncode == 1
    assert foldline("replay", cwd=tmp_path).returncode == 2
    assert foldline("nonsense", cwd=tmp_path).returncode == 2
    helped = foldline("--help", cwd=tmp_path)
    assert helped.returncode == 0
    for command in [
        "replay",
        "import",
        "list",
        "show",
        "stats",
        "render",
        "export",
        "fork",
        "verify",
    ]:
        assert command in helped.stdout
    assert foldline("--version", cwd=tmp_path).stdout.startswith("foldline ")


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from timeline.cli import main; main(['--help']); "
        "print(*({'anthropic', 'duckdb', 'rich', 'tiktoken'} & sys.modules.keys()), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert ran.stderr.strip() == b""


def test_a_reader_that_goes_away_is_no_error(session: Path, tmp_path: Path) -> None:
    shell = " ".join(["exec 3>&1;", *(f"'{word}'" for word in FOLDLINE)])
    foldline("import", session, cwd=tmp_path)
    pipe = f"{shell} export invented | head -n 1"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", pipe], cwd=tmp_path, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.startswith(b'{"foldline_export"')


def test_an_interrupt_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = session_file(tmp_path / "big.jsonl", invented())
    arguments = ["replay", "big.jsonl", "--window", "3000", "--dump", "d", "--store", "s.duckdb"]
    command = [sys.executable, "-c", INTERRUPTED, *arguments]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (ran.returncode, ran.stderr) == (130, "foldline: interrupted\n")
    assert [*tmp_path.iterdir()] == [path]
