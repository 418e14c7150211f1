"""Commands of scripts, processes in the background, and what git told."""

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, Progress, Repository
from render.summary._state import advance
from render.summary._runs import commands_in
from render.summary._state import text
from tests._builders import attachment, call, result, view_of
from tests._table import for_each


def after(*items: Block, before: Progress | None = None) -> Progress:
    return advance(before or Progress(), view_of(*items).entries)


def ran(call_id: str, command: str, answer: str = "", **arguments: object) -> list[Block]:
    return [call(call_id, name="bash", command=command, **arguments), result(call_id, answer)]


def repository_of(*items: Block) -> Repository:
    [repository] = after(*items).repositories
    return repository


# Scripts.


def words_in(script: str) -> list[tuple[str, ...]]:
    return [command.words for command in commands_in(script)]


@for_each(
    "script, words",
    [
        ("cd web && npm test 2>&1 | tail -20", [("npm", "test"), ("tail", "-20")]),
        ("A=1 timeout 60 uv run pytest -q > out.log", [("pytest", "-q")]),
        (".venv/bin/python -m pytest tests", [("pytest", "tests")]),
        ("python3 -m unittest", [("unittest",)]),
        ("git commit -m 'a && b; c'", [("git", "commit", "-m", "a && b; c")]),
        ("cat > a <<'EOF'\nmake test\nEOF\nmake lint", [("cat",), ("make", "lint")]),
        ('git commit -m "$(cat <<EOF\nit\'s | done\nEOF\n)"', [("git", "commit", "-m", "$(cat \n)")]),
        ("(make) || echo no", [("make",), ("echo", "no")]),
        ("", []),
    ],
)  # fmt: skip
def test_a_script_is_divided_into_its_commands(script: str, words: list[tuple[str, ...]]) -> None:
    assert words_in(script) == words


def test_a_command_knows_its_folder_and_where_its_output_goes() -> None:
    first, second = commands_in("cd sub && make | tee log", "/w")
    assert (first.folder, first.is_piped, second.is_piped) == ("/w/sub", True, False)


@given(st.text("ab'\"\\&|;<>()$ \n`{}-=", max_size=80))
def test_no_script_is_too_strange(script: str) -> None:
    assert all(command.words for command in commands_in(script))


# Processes.


STARTED = "Command running in background with ID: b1. Output is being written to: /tmp/b1.output"


def test_a_process_stands_until_a_call_says_that_it_has_ended() -> None:
    running = after(*ran("a", "npm run dev", STARTED, run_in_background=True))
    assert "- [v2] npm run dev (id b1)" in text(running)
    still = [call("b", name="TaskOutput", task_id="b1"), result("b", "<status>running</status>")]
    assert after(*still, before=running).processes == running.processes
    ended = [call("b", name="KillShell", shell_id="b1"), result("b", "Successfully killed b1")]
    assert after(*ended, before=running).processes == ()


def test_a_notice_of_the_client_ends_a_process() -> None:
    running = after(*ran("a", "npm run dev", STARTED))
    notice = attachment("n", "<task-notification><task-id>b1</task-id><status>failed</status>")
    assert after(notice, before=running).processes == ()


def test_a_session_that_exits_is_a_run_of_the_command_that_started_it() -> None:
    started = [
        call("a", name="exec_command", cmd="cargo test"),
        result("a", "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\nok"),
    ]  # fmt: skip
    running = after(*started)
    assert (running.checks, running.processes[0].command) == ((), "cargo test")
    polled = [
        call("b", name="write_stdin", session_id=7, chars=""),
        result("b", "Chunk ID: 2\nProcess exited with code 101\nOutput:\ntest cart::total ... FAILED\n"
               "test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured"),
    ]  # fmt: skip
    done = after(*polled, before=running)
    assert done.processes == ()
    assert "cargo test -> 1 failed, 5 passed: cart::total" in text(done)


@for_each("ending", ["kill %1", "pkill -f server.py", "kill 4711"])
def test_what_the_shell_left_running_ends_when_it_is_killed(ending: str) -> None:
    running = after(*ran("a", "python server.py > log 2>&1 &"))
    assert "python server.py" in text(running)
    assert after(*ran("b", ending), before=running).processes == ()


def test_what_is_waited_for_is_no_process() -> None:
    assert after(*ran("a", "sleep 5 & curl x & wait")).processes == ()


# Repositories.


def test_commits_pushes_and_requests_are_told_with_their_labels() -> None:
    state = after(
        *ran("a", "git switch -c cart", "Switched to a new branch 'cart'"),
        *ran("b", "git add -A && git commit -m 'Add cart'", "[cart 1a2b3c4] Add cart\n 2 files changed"),
        *ran("c", "git push -u origin cart", "To github.com:o/r.git\n * [new branch]      cart -> cart"),
        *ran("d", "gh pr create --fill", "https://github.com/o/r/pull/7\n"),
        *ran("e", "git commit -am 'Fix cart'", "[cart 2b3c4d5] Fix cart\n 1 file changed"),
    )  # fmt: skip
    assert text(state).splitlines() == [
        "Branch and commits:",
        "- branch cart",
        "- commits: 1a2b3c4 Add cart [v4]; 2b3c4d5 Fix cart [v10]",
        "- pushed cart -> cart [v6], before 1 of these commits",
        "- pull requests: https://github.com/o/r/pull/7",
    ]


def test_a_commit_that_is_amended_or_made_again_is_told_once() -> None:
    first = ran("a", "git commit -m 'Add cart'", "[main 1a2b3c4] Add cart")
    amended = ran("b", "git commit --amend -m 'Add a cart'", "[main 2b3c4d5] Add a cart")
    again = ran("c", "git reset --soft HEAD~ && git commit -m 'Add a cart'", "[main 3c4d5e6] Add a cart")  # fmt: skip
    assert [c.hash for c in repository_of(*first, *amended, *again).commits] == ["3c4d5e6"]


@for_each(
    "command, answer, branch, tree",
    [
        ("git status", "On branch main\n\nnothing to commit, working tree clean", "main", "clean"),
        ("git status", "On branch x/y\nChanges not staged for commit:\n\tmodified:   a.py\n\nUntracked files:\n\tb.py", "x/y", "a.py, b.py"),
        ("git status --short --branch", "## main...origin/main [ahead 1]\n M a.py\n?? b.py", "main", "a.py, b.py"),
        ("git status --short", "", "", "clean"),
        ("git branch --show-current", "cart\n", "cart", ""),
        ("git checkout cart", "Already on 'cart'", "cart", ""),
        ("git branch", "  main\n* cart\n", "cart", ""),
        ("git status", "HEAD detached at 1a2b3c4\nnothing to commit, working tree clean", "detached at 1a2b3c4", "clean"),
    ],
)  # fmt: skip
def test_branch_and_tree_are_as_git_last_told(
    command: str, answer: str, branch: str, tree: str
) -> None:
    repository = repository_of(*ran("a", command, answer))
    assert (repository.branch, repository.tree) == (branch, tree)


def test_a_commit_that_failed_is_none() -> None:
    failed = [call("a", name="bash", command="git commit -m x"), result("a", "hook failed", is_error=True)]  # fmt: skip
    assert after(*failed).repositories == ()


def test_repositories_are_told_apart_by_folder_and_a_look_at_one_is_not_kept() -> None:
    state = after(
        *ran("a", "cd /a && git commit -m x", "[main 1a2b3c4] x"),
        *ran("b", "cd /b && git status", "On branch other\nnothing to commit, working tree clean"),
        *ran("c", "cd /c && git commit -m y", "[main 2b3c4d5] y"),
    )
    assert [each.folder for each in state.repositories] == ["/a", "/c"]


def test_a_call_without_a_folder_is_in_the_repository_whose_branch_it_tells() -> None:
    state = after(
        *ran("a", "cd /a && git commit -m x", "[cart 1a2b3c4] x"),
        *ran("b", "git status", "On branch cart\nnothing to commit, working tree clean"),
        *ran("c", "git commit -m y", "[main 2b3c4d5] y"),
        *ran("d", "git push", "To x\n   1a2b3c4..2b3c4d5  main -> main"),
    )
    cart, main = state.repositories
    assert (cart.folder, cart.tree, cart.pushed) == ("/a", "clean", "")
    assert (main.folder, main.branch, main.pushed) == ("", "main", "main -> main")
