"""The real command, in a process of its own: exit codes, pipes, interrupts, start-up."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests._sizes import PATIENCE
from tests._table import for_each
from tests.timeline.cli.conftest import Run
from tests.timeline.replay.invented import invented, session_file
from timeline import Timeline
from timeline.cli._main import COMMANDS, SHELLS

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


@pytest.mark.parametrize(
    "command",
    [
        ("models",),
        ("bill", "invented.jsonl", "--compare", "0"),
        ("bill", "invented.jsonl", "--compare", "0", "--json"),
        ("replay", "invented.jsonl", "--html", "report.html"),
        ("replay", "invented.jsonl", "--html", "report.html", "--json"),
    ],
)
def test_for_whatever_is_printed_and_what_is_written_is_written_all_the_same(
    session: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    shutil.copyfile(session, tmp_path / "invented.jsonl")
    gone, pipe = os.pipe()
    os.close(gone)
    ran = subprocess.run(
        [*FOLDLINE, *command], cwd=tmp_path, stdout=pipe, stderr=subprocess.PIPE, check=False
    )
    os.close(pipe)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert (tmp_path / "report.html").exists() == ("report.html" in command)


def test_an_interrupt_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = session_file(tmp_path / "big.jsonl", invented())
    arguments = ["replay", "big.jsonl", "--window", "3000", "--dump", "d", "--store", "s.duckdb"]
    command = [sys.executable, "-c", INTERRUPTED, *arguments]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (ran.returncode, ran.stderr) == (130, "foldline: interrupted\n")
    assert [*tmp_path.iterdir()] == [path]


# What was mistyped is answered with what was meant; a shell completes the rest.


ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "docs" / "examples" / "invoice-service.jsonl")


@pytest.fixture
def example(run: Run) -> None:
    """A store with the example, and a policy file with a mistake."""
    Path("p.toml").write_text("triger_ratio = 0.5\n")
    assert run("import", EXAMPLE, "--name", "example").code == 0


@for_each(
    ("words", "meant"),
    [
        (("repaly",), "there is no command 'repaly'; did you mean 'replay'? see foldline --help"),
        (("list", "--limt", "3"), "did you mean '--limit'? see foldline list --help"),
        (("list", "--limt=3"), "did you mean '--limit'?"),
        (("replay", EXAMPLE, "--thinking", "kep"), "did you mean 'keep'?"),
        (
            ("replay", EXAMPLE, "--policy", "defualt"),
            "no policy 'defualt'; did you mean 'default'?",
        ),
        (("replay", EXAMPLE, "--policy", "p.toml"), "did you mean 'trigger_ratio'?"),
        (("replay", EXAMPLE, "--format", "claud-code"), "did you mean 'claude-code'?"),
        (("replay", EXAMPLE, "--provider", "antropic"), "did you mean 'anthropic'?"),
        (("show", "exampel"), "no timeline 'exampel' in this store; did you mean 'example'?"),
        (("show", "example", "--kind", "resutl"), "did you mean 'result'?"),
        (("show", "example", "--turn", "t77"), "there are t1, t2"),
        (("show", "example", "ar:t1.user.promt"), "did you mean 'ar:t1.user.prompt'"),
    ],
)
@pytest.mark.usefixtures("example")
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(
    run: Run, words: tuple[str, ...], meant: str
) -> None:
    ran = run(*words)
    assert ran.code in {1, 2}
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert meant in ran.err


def test_a_mistyped_model_is_a_guess_that_says_so(run: Run) -> None:
    said = run("models", "claude-sonet-5-5").out
    assert "did you mean 'claude-sonnet-5-5'?" in said
    assert "did you mean" not in run("models", "claude-sonnet-5-5").out


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shells_script_asks_for_completions(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"_FOLDLINE_COMPLETE={shell}_complete" in ran.out
    assert run("completion", shell, "--json").code == 2
    assert "did you mean 'bash'?" in run("completion", "basch").err


def test_help_is_one_letter_or_a_word(run: Run) -> None:
    assert run("-h") == run("--help")
    assert run("list", "-h") == run("list", "--help")
    assert run("list", "-h").code == 0
    assert run("help") == run("--help")
    assert run("help", "list") == run("list", "--help")
    assert "did you mean 'list'?" in run("help", "lst").err


@for_each(
    ("words", "said"),
    [
        (("search", "x", "--limit", "5000"), "--limit 5000: give a number from 1 to 1,000"),
        (("search", "x", "--limit", "0"), "--limit 0: give a number of at least 1"),
        (("import", EXAMPLE, "--bytes-max", "0"), "--bytes-max 0: give the largest size"),
        (("account", "example", "--window", "0"), "foldline: window must be a positive number"),
        (("proxy", "--host", "0.0.0.0"), "give --token, or --host '127.0.0.1'"),  # noqa: S104 -- refused
    ],
)
@pytest.mark.usefixtures("example")
def test_advice_is_for_the_shell_and_not_for_a_program(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_the_largest_number_of_hits_can_be_asked_for(run: Run) -> None:
    assert run("import", EXAMPLE, "--name", "example").code == 0
    assert run("search", "invoice", "--limit", "1000").code == 0


Complete = Callable[..., list[str]]


@pytest.fixture
def complete(run: Run, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """What is offered for the last of these words, as bash's script asks for it."""

    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("_FOLDLINE_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", shlex.join(("foldline", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        ran = run()
        monkeypatch.delenv("_FOLDLINE_COMPLETE")
        assert (ran.code, ran.err) == (0, "")
        return ran.out.split()

    return complete


def test_commands_options_values_and_files_are_completed(complete: Complete) -> None:
    assert complete("repl") == ["plain,replay"]
    assert {f"plain,{name}" for name in COMMANDS} <= set(complete(""))
    assert complete("replay", "--th") == ["plain,--thinking"]
    assert complete("replay", "--thinking", "k") == ["plain,keep"]
    assert complete("replay", "ses") == ["file,ses"]
    assert complete("list", "--store", "ses") == ["file,ses"]
    assert complete("repaly", "--th") == []
    for command in COMMANDS:
        assert "plain,--json" in complete(command, "--")


def test_the_timelines_of_the_store_are_completed(complete: Complete) -> None:
    for store, name in (("sqlite:///s.sqlite", "agent-1"), ("foldline.duckdb", "agent-2")):
        for each in (name, "another", "agent 3; ls"):
            with Timeline.open(each, store=store) as timeline:
                timeline.user("Hello")
    assert complete("show", "--store", "sqlite:///s.sqlite", "ag") == ["plain,agent-1"]
    assert complete("propose", "ag") == ["plain,agent-2"]
    assert complete("search", "--timeline", "ag") == ["plain,agent-2"]
    assert set(complete("copy", "other.duckdb", "a")) == {"plain,agent-2", "plain,another"}


def test_where_no_timelines_can_be_had_none_are_offered_and_nothing_is_said(
    complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timeline.cli._options.PATIENCE_SECONDS", 600.0)
    Path("odd.duckdb").write_text("this is no database")
    for where in (
        "none.duckdb",
        "odd.duckdb",
        "what://is/this",
        "postgresql://nobody@127.0.0.1:9/x",
    ):
        assert complete("show", "--store", where, "") == [], where
    assert not Path("none.duckdb").exists()
    with Timeline.open("first", store="held.duckdb"):
        assert complete("show", "--store", "held.duckdb", "") == []


BASH = """
source ./completion
foldline() { "$PYTHON" -c "from timeline.cli import main; raise SystemExit(main())" "$@"; }
export -f foldline
env() { command env "${@:1:3}" bash -c 'foldline'; }
COMP_WORDS=(foldline show --tai); COMP_CWORD=2; COMPREPLY=()
_foldline_completion foldline
echo "${COMPREPLY[@]}"
"""


def test_bash_runs_the_script(run: Run) -> None:
    Path("completion").write_text(run("completion", "bash").out)
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        ["bash", "-c", BASH], capture_output=True, text=True, check=True, env=environment
    )
    assert (ran.stdout.split(), ran.stderr) == (["--tail"], "")


def test_a_completion_is_made_without_what_is_heavy() -> None:
    code = (
        "import sys; from timeline.cli import main; main(['completion', 'bash']); "
        "print(*({'anthropic', 'duckdb', 'rich', 'tiktoken'} & sys.modules.keys()), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=os.environ
    )
    assert ran.stderr.strip() == b""
