"""What was mistyped is answered with what was meant; a shell completes the rest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.timeline.cli.conftest import Ran, Run
from timeline import Timeline
from timeline.cli._completion import SHELLS
from timeline.cli._main import COMMANDS

ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "docs" / "examples" / "invoice-service.jsonl")


@pytest.mark.parametrize(
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
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(
    run: Run, words: tuple[str, ...], meant: str
) -> None:
    Path("p.toml").write_text("triger_ratio = 0.5\n")
    assert run("import", EXAMPLE, "--name", "example").code == 0
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
def test_every_command_is_completed(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    for command in COMMANDS:
        assert command.NAME in ran.out
    assert "--window" in ran.out or "-l window" in ran.out
    assert run("completion", shell, "--json").code == 2
    assert "did you mean 'bash'?" in run("completion", "basch").err


BASH = """
source ./completion
complete_words() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _shtab_foldline foldline "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    echo "${COMPREPLY[@]}"
}
complete_words foldline repl
complete_words foldline replay --th
complete_words foldline replay --thinking k
complete_words foldline replay ses
"""


def test_bash_completes_commands_options_values_and_files(run: Run) -> None:
    Path("completion").write_text(run("completion", "bash").out)
    Path("session.jsonl").write_text("")
    ran = subprocess.run(["bash", "-c", BASH], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["replay", "--thinking", "keep", "session.jsonl"]


ASK_FOR_A_NAME = """
source ./completion
foldline() { "$PYTHON" -c "from timeline.cli import main; raise SystemExit(main())" "$@"; }
complete_words() {
    COMP_LINE="$*"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _shtab_foldline foldline "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    echo "${COMPREPLY[@]}"
}
complete_words foldline show --store sqlite:///s.sqlite ag
complete_words foldline plan ag
complete_words foldline search --timeline ag
"""


def test_bash_completes_the_timelines_of_the_store(run: Run) -> None:
    for store, name in (("sqlite:///s.sqlite", "agent-1"), ("foldline.duckdb", "agent-2")):
        for each in (name, "another", "agent 3; ls"):
            with Timeline.open(each, store=store) as timeline:
                timeline.user("Hello")
    Path("completion").write_text(run("completion", "bash").out)
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        ["bash", "-c", ASK_FOR_A_NAME],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert (ran.stdout.splitlines(), ran.stderr) == (["agent-1", "agent-2", "agent-2"], "")


def test_where_no_timelines_can_be_had_none_are_offered_and_nothing_is_said(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timeline.cli._completion.PATIENCE_SECONDS", 600.0)
    Path("odd.duckdb").write_text("this is no database")
    for where in (
        "none.duckdb",
        "odd.duckdb",
        "what://is/this",
        "postgresql://nobody@127.0.0.1:9/x",
    ):
        assert run("completion", "timelines", "--store", where) == Ran(0, "", ""), where
    assert not Path("none.duckdb").exists()
    with Timeline.open("first", store="held.duckdb"):
        assert run("completion", "timelines", "--store", "held.duckdb") == Ran(0, "", "")


def test_a_completion_is_made_without_what_is_heavy() -> None:
    code = (
        "import sys; from timeline.cli import main; main(['completion', 'bash']); "
        "print(*({'anthropic', 'duckdb', 'rich', 'tiktoken'} & sys.modules.keys()), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=os.environ
    )
    assert ran.stderr.strip() == b""
