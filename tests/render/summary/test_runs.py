"""What commands tell: tests and builds, open errors, processes in the background, branch and commits."""

import json
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, CheckRecord, Progress, Repository
from render.summary._calls import runs_of
from render.summary._shell import commands_in
from render.summary._state import (
    CHECK_VERSIONS,
    CHECKS_MAX,
    FAILING_MAX,
    OPEN_VERSIONS,
    advance,
    failing_in,
    suite_of,
    text,
)
from tests._builders import attachment, call, prompt, result, view_of
from tests._table import for_each


def after(*items: Any, before: Progress | None = None) -> Progress:
    entries = view_of(*items).entries
    return advance(before or Progress(), entries, runs_of(entries))


def ran(call_id: str, command: str, answer: str = "", **arguments: Any) -> list[Block]:
    return [call(call_id, name="bash", command=command, **arguments), result(call_id, answer)]


def repository_of(*items: Block) -> Repository:
    return after(*items).repository


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
        ("echo 'a && b; c' && make", [("echo", "a", "&&", "b;", "c"), ("make",)]),
        ("cat > a <<'EOF'\nmake test\nEOF\nmake lint", [("cat",), ("make", "lint")]),
        ('git commit -m "$(cat <<EOF\nit\'s | done\n\nAll.\nEOF\n)"', [("git", "commit", "-m", "it's | done")]),
        ('git commit -m "$(cat <<EOF\nall "done"\nEOF\n)"', [("git", "commit", "-m", "")]),
        ("# fix the test\nmake build \\\n  --fast # not lint", [("make", "build", "--fast")]),
        ("(make) || echo no", [("make",), ("echo", "no")]),
        ("git clone https://<key>@x.org/a.git b <in >out", [("git", "clone", "https://<key>@x.org/a.git", "b")]),
        ("", []),
    ],
)  # fmt: skip
def test_a_script_is_divided_into_its_commands(script: str, words: list[tuple[str, ...]]) -> None:
    assert words_in(script) == words


@given(st.text("ab'\"\\&|;<>()$ \n`{}-=", max_size=80))
def test_no_script_is_too_strange(script: str) -> None:
    assert all(command.words for command in commands_in(script))


def test_colours_of_a_terminal_are_no_part_of_what_came_of_a_check() -> None:
    [check] = after(
        *ran("a", "npm test", "\x1b[1mTests:  \x1b[31m2 failed\x1b[39m, 3 total\x1b[0m")
    ).checks
    assert "\x1b" not in check.result
    assert check.result.startswith("2 failed")


# fmt: off
COMMANDS = ["git reset", "git rebase", "git commit", "git checkout", "git switch", "sed -n", "cd", "kill"]
ODD = ["''", "-", "--", "-b", "-m", "--amend", "--hard", "HEAD~1", "@^", "&&", "&", "|", ";", "0p", "a"]
# fmt: on


def test_no_command_is_too_strange_to_be_told() -> None:
    for command, first, second in product(COMMANDS, ["", *ODD], ["", *ODD]):
        committed = ran("a", "git commit -m a", "[main 1234567] a")
        told = after(*committed, *ran("b", f"{command} {first} {second}"))
        assert len(told.repository.commits) <= 2
        text(told)


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


def program(call_id: str, source: str, printed: str, how: str = "completed") -> list[Block]:
    """A call of Codex's tool that takes a program, and its result."""
    answer = f"Script {how}\nWall time 0.1 seconds\nOutput:\n\n{printed}"
    return [call(call_id, name="exec", input=source), result(call_id, answer)]


def test_what_a_program_calls_is_what_was_done() -> None:
    state = after(
        *program("a", 'const r = await tools.exec_command({cmd:"cargo test","workdir":"/w"}); text(r.output)',
                 "test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured"),
        *program("b", 'text(JSON.stringify(await tools.exec_command({cmd:"git commit -m x"})))',
                 '{"exit_code":0,"output":"[cart 1a2b3c4] Fix cart\\n 1 file changed"}'),
        *program("c", 'const p = "*** Begin Patch\\n*** Update File: a.rs\\n@@\\n-a\\n+b\\n*** End Patch"; text(await tools.apply_patch(p))', "{}"),
        *program("d", 'text(await tools.apply_patch("*** Begin Patch\\n*** Update File: b.rs\\n*** End Patch"))',
                 "Script error:\napply_patch verification failed: no such line", how="failed"),
    )  # fmt: skip
    assert "cargo test -> 1 failed, 5 passed" in text(state)
    assert state.repository.branch == "cart"
    assert [change.path for change in state.changes] == ["a.rs"]
    assert "-> failed: apply_patch verification failed: no such line" in text(state)


def test_an_output_in_a_json_object_is_read_as_the_command_wrote_it() -> None:
    """Codex until the end of 2025."""

    def ran(call_id: str, command: str, output: str, status: int) -> list[Block]:
        answer = {"output": output, "metadata": {"exit_code": status, "duration_seconds": 0.1}}
        return tried(call_id, command, json.dumps(answer))

    state = after(
        *ran("a", "pytest -q", "E   assert 1 == 2\n1 failed, 3 passed in 0.1s\n", 1),
        *ran("b", "git commit -m x", "[cart 1a2b3c4] Fix cart\n 1 file changed", 0),
    )
    assert "pytest -q -> 1 failed, 3 passed" in text(state)
    assert (state.repository.branch, state.repository.commits[0].hash) == ("cart", "1a2b3c4")
    own = tried("c", "make build", json.dumps({"output": "dist", "files": 3}))
    assert '"files": 3' in check_of(*own).result  # an object of the program's own


def test_a_program_that_says_nothing_of_the_exit_status_is_believed_by_its_output() -> None:
    source = 'text((await tools.exec_command({cmd:"cargo build"})).output)'
    printed = "error: could not compile `hk`\nerror[E1]: no such name\n+ fn fails_without_a_name()"
    state = text(after(*program("a", source, printed)))
    assert "cargo build -> error[E1]: no such name" in state


@for_each(
    ("printed", "session"),
    [
        ('{"session_id":7,"output":"Compiling"}', 7),
        ("Compiling\nSESSION_ID=7", 7),
    ],
)
def test_a_command_that_a_program_started_is_a_process(printed: str, session: int) -> None:
    start = 'const r = await tools.exec_command({cmd:"cargo test"}); text(JSON.stringify(r))'
    running = after(*program("a", start, printed))
    assert [each.command for each in running.processes] == ["cargo test"]
    poll = f'text(JSON.stringify(await tools.write_stdin({{session_id:{session},chars:""}})))'
    end = '{"exit_code":101,"output":"test result: FAILED. 5 passed; 1 failed; 0 ignored"}'
    done = after(*program("b", poll, end), before=running)
    assert done.processes == ()
    assert "cargo test -> 1 failed, 5 passed" in text(done)


def test_a_process_goes_on_under_the_id_that_a_later_answer_names() -> None:
    """Codex: a program that takes long is a cell, which `wait` asks for; its command is a session."""

    def poll(call_id: str, name: str, seconds: int, printed: str, **names: str) -> list[Block]:
        answer = f"Script completed\nWall time {seconds}.0 seconds\nOutput:\n\n{printed}"
        return [call(call_id, name=name, **names), result(call_id, answer)]

    source = 'text((await tools.exec_command({cmd:"gh run watch 5 2>&1 | tail -3"})).output)'
    state = after(*program("a", source, "", how="running with cell ID 3"))
    polls = [
        poll("b", "wait", 9, '{"session_id":44765,"output":""}', cell_id="3"),
        poll("c", "write_stdin", 5, "waits", session_id="44765"),
        program("d", "text((await tools.write_stdin({session_id:44765})).output)", "", how="running with cell ID 4"),
        poll("e", "wait", 17, "waits", cell_id="4"),
    ]  # fmt: skip
    for blocks in polls:
        state = after(*blocks, before=state)
        assert [each.command for each in state.processes] == ["gh run watch 5 2>&1 | tail -3"]
    ended = poll("f", "write_stdin", 0, "^C", session_id="44765", chars="\3")
    assert after(*ended, before=state).processes == ()


@for_each(("name", "left"), [("'npm run'", 0), ("vite", 1)])
def test_a_process_ends_when_its_name_is_killed(name: str, left: int) -> None:
    running = after(*ran("a", "npm run dev", STARTED))
    assert len(after(*ran("b", f"pkill -f {name} || true"), before=running).processes) == left


def test_a_search_in_the_background_is_no_process_that_is_told() -> None:
    assert text(after(*ran("a", "rg -n total .. | head", STARTED))) == ""


def test_a_long_command_in_the_background_is_known_as_a_whole_when_it_ends() -> None:
    whole = f"make lint && {' '.join(f'src/{n}.py' for n in range(40))} && make build"
    failed = [call("f", name="bash", command=whole), result("f", "no such file", is_error=True)]
    running = after(*failed, *ran("a", whole, STARTED))
    assert len(text(running).splitlines()[-1]) < 200
    ended = [call("b", name="TaskOutput", task_id="b1"), result("b", "<status>completed</status>")]
    assert [check.result[:2] for check in after(*ended, before=running).checks] == ["ok"]


@for_each("ending", ["kill %1", "pkill -f server.py", "kill 4711"])
def test_what_the_shell_left_running_ends_when_it_is_killed(ending: str) -> None:
    running = after(*ran("a", "python server.py > log 2>&1 &"))
    assert "python server.py" in text(running)
    assert after(*ran("b", ending), before=running).processes == ()


@for_each(
    "command",
    [
        "sleep 5 & curl x & wait",
        "curl -s http://x/?a=1&b=2",
        "$page = @'\nit's <b> & <i> & more\n'@",
    ],
    ids=["waited for", "address", "text of PowerShell"],
)
def test_not_every_ampersand_leaves_a_process_running(command: str) -> None:
    assert after(*ran("a", command)).processes == ()


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
        "- newest commits: 1a2b3c4 Add cart [v4]; 2b3c4d5 Fix cart [v10]",
        "- pushed cart -> cart [v6], before 1 of these commits",
        "- pull requests: https://github.com/o/r/pull/7",
    ]


@for_each(
    "command, answer, told",
    [
        ("git status", "On branch main", "no push seen"),
        ("git push -q", "", "git push ran [v4]"),
        ("git push -f", "To x.org:a\n + 1a2b3c4...2b3c4d5 main -> main (forced update)", "pushed main -> main [v4]"),
        ("git pull; git push", "From x.org:a\n * branch  main -> FETCH_HEAD\n   0a2b3c4..1a2b3c4  main -> origin/main\nTo x.org:a\n   1a2b3c4..2b3c4d5  main -> main", "pushed main -> main [v4]"),
        ("git status", "On branch main\nYour branch is up to date with 'origin/main'.\n", "all commits are in origin/main [v4]"),
        ("git status", "On branch main\nYour branch is ahead of 'origin/main' by 1 commit.\n", "commits not in origin/main: 1 [v4]"),
        ("git status -sb", "## main...origin/main [ahead 2, behind 1]", "commits not in origin/main: 2 [v4]"),
        ("git status -sb", "## main...origin/main [behind 1]", "no push seen"),
        ("git switch docs", "Switched to branch 'docs'\nYour branch is up to date with 'origin/docs'.", "no push seen"),
    ],
)  # fmt: skip
def test_how_the_branch_stands_to_the_remote_one_is_as_git_last_told(
    command: str, answer: str, told: str
) -> None:
    made = ran("a", "git commit -m One", "[main 2b3c4d5] One")
    assert text(after(*made, *ran("b", command, answer))).splitlines()[-1] == f"- {told}"
    assert "push" not in text(after(*ran("b", "git log -1", "2b3c4d5 One")))


def test_a_commit_that_a_log_lists_after_a_push_is_not_newer_than_the_push() -> None:
    pushed = [
        *ran("a", "git commit -m 'Add cart'", "[cart 1a2b3c4] Add cart"),
        *ran("b", "git push", "To github.com:o/r.git\n   0a2b3c4..1a2b3c4  cart -> cart"),
    ]
    listed = ran("c", "git log --oneline -2", "1a2b3c4 Add cart\n0a2b3c4 Begin")
    assert text(after(*pushed, *listed)) == text(after(*pushed))
    first = ran("d", "git commit -m Begin", "[cart 0a2b3c4] Begin")
    merged = ran("c", "git log --oneline -3", "1a2b3c4 Add cart\n3a2b3c4 Of others\n0a2b3c4 Begin")
    assert "- pushed cart -> cart [v6]\n" in text(after(*first, *pushed, *merged)) + "\n"


def test_a_commit_that_is_amended_or_made_again_is_told_once() -> None:
    first = ran("a", "git commit -m 'Add cart'", "[main 1a2b3c4] Add cart")
    amended = ran("b", "git commit --amend -m 'Add a cart'", "[main 2b3c4d5] Add a cart")
    again = ran("c", "git reset --soft HEAD~ && git commit -m 'Add a cart'", "[main 3c4d5e6] Add a cart")  # fmt: skip
    assert [c.hash for c in repository_of(*first, *amended, *again).commits] == ["3c4d5e6"]


def test_a_commit_that_was_taken_away_is_gone_and_a_log_tells_the_ids() -> None:
    made = [
        *ran("a", "git commit -m One", "[main 1a2b3c4] One"),
        *ran("b", "git commit -m Two", "[main 2b3c4d5] Two"),
    ]
    for back in ("HEAD~1", "HEAD^", "1a2b3c4"):
        left = repository_of(*made, *ran("c", f"git reset --hard {back}")).commits
        assert [c.hash for c in left] == ["1a2b3c4"]
    left = repository_of(*made, *ran("c", "git reset")).commits
    assert [c.hash for c in left] == ["1a2b3c4", "2b3c4d5"]
    for rebase in ("git rebase main", "git pull --rebase", "git -c pull.rebase=1 pull"):
        rebased = [*made, *ran("c", rebase, "Successfully rebased and updated refs/heads/main.")]
        assert [c.hash for c in repository_of(*rebased).commits] == ["", ""]
    log = "9a2b3c4 (HEAD -> main) Three\n8a2b3c4 Two\n7a2b3c4 Older"
    told = repository_of(*rebased, *ran("d", "git log --oneline --decorate -3", log)).commits
    assert [(c.hash, c.subject) for c in told] == [("8a2b3c4", "Two"), ("9a2b3c4", "Three")]
    other = repository_of(*made, *ran("d", "git log --oneline -- a.py", log)).commits
    assert [c.hash for c in other] == ["1a2b3c4", "2b3c4d5"]


@for_each(
    "command, answer",
    [
        ("git log --oneline -1", "1a2b3c4 (HEAD -> main) One"),
        ("git log --oneline | head -3", "1a2b3c4 One\n0a2b3c4 Zero"),
        ("git status --short && git log -2 --format='%h %s'", " M a.py\n1a2b3c4 One\n0a2b3c4 Zero"),
        ("git fetch; git log -1 --oneline && git rev-parse HEAD", "1a2b3c4 One\n1a2b3c4"),
        ("git log -n 1", "commit 1a2b3c4d5e6f7a8b9c0d\nAuthor: Ann <a@x>\nDate:   Mon\n\n    One\n\n    commit 0a2b3c4 of it"),
    ],
)  # fmt: skip
def test_a_log_tells_head(command: str, answer: str) -> None:
    """Also where the session has made no commit, or HEAD is none of those that it has made."""
    told = [(c.hash[:7], c.subject) for c in repository_of(*ran("a", command, answer)).commits]
    assert told == [("1a2b3c4", "One")]
    made = ran("b", "git commit -m Other", "[other 2b3c4d5] Other")
    both = repository_of(*made, *ran("c", command, answer)).commits
    assert [c.subject for c in both] == ["Other", "One"]


@for_each(
    "command",
    [
        "git log --oneline | grep One",
        "git log --oneline -- a.py",
        "git log --all",
        "git reflog -3; git log --oneline -3",
    ],
)
def test_a_log_that_leaves_commits_out_tells_no_head(command: str) -> None:
    assert repository_of(*ran("a", command, "1a2b3c4 One")).commits == ()


def test_a_head_that_a_log_told_is_none_of_the_commits_that_are_made() -> None:
    told = ran("a", "git status -sb && git log --oneline -1", "## main\n1a2b3c4 One")
    made = ran("b", "git commit -m Two", "[main 2b3c4d5] Two")
    assert [c.subject for c in repository_of(*told, *made).commits] == ["Two"]
    left = ran("b", "git switch -c cart", "Switched to a new branch 'cart'")
    assert repository_of(*told, *left).commits == ()


def test_a_commit_says_on_which_other_branch_it_is() -> None:
    made = [
        *ran("a", "git commit -m One", "[cart 1a2b3c4] One"),
        *ran("b", "git commit -m Two", "[docs 2b3c4d5] Two"),
    ]
    assert "1a2b3c4 One (on cart) [v2]; 2b3c4d5 Two [v4]" in text(after(*made))
    log = ran("c", "git log --oneline -2", "2b3c4d5 Two\n9a2b3c4 One")
    assert "9a2b3c4 One [v2]; 2b3c4d5 Two [v4]" in text(after(*made, *log))


def test_after_a_reset_to_something_else_no_commit_is_known() -> None:
    made = ran("a", "git commit -m One", "[main 1a2b3c4] One")
    assert repository_of(*made, *ran("b", "git reset -q --hard rewritten")).commits == ()
    assert len(repository_of(*made, *ran("b", "git reset -q a.py")).commits) == 1


@for_each(
    "command, answer, subjects",
    [
        ("git commit -q -m 'Add cart\n\nFor $5.' && git push", "", ["Add cart"]),
        ("git add . && git commit -qam 'Add cart' -m More", "", ["Add cart"]),
        (
            "git commit -q -m \"$(cat <<'EOF'\nAdd cart\n\nIt is 'new'.\nEOF\n)\" && git push -q",
            "",
            ["Add cart"],
        ),
        ('git commit -q -m "$(cat <<EOF\nAdd $cart\nEOF\n)" && git push', "", []),
        ("git commit -qm 'Add cart' | tail -1", "", []),
        ("git commit -qm 'Add cart'; git status", "", []),
        ("git commit -m 'Add cart'", "no changes added to commit", []),
        ("git commit -m 'Add cart' --dry-run", "", []),
        ("git commit -q -F message.txt", "", []),
        ('git commit -q -m "$SUBJECT"', "", []),
    ],
)
def test_a_quiet_commit_is_known_by_its_message_if_it_did_not_fail(
    command: str, answer: str, subjects: list[str]
) -> None:
    state = after(*ran("a", "git switch cart", "Switched to branch 'cart'"), *ran("b", command, answer))  # fmt: skip
    assert [(c.subject, c.hash, c.branch) for c in state.repository.commits] == [
        (subject, "", "cart") for subject in subjects
    ]


def test_a_quiet_commit_is_known_by_a_log_that_shows_it() -> None:
    command = "git commit -q -m \"$(cat <<'EOF'\nAdd cart\n\nMore.\nEOF\n)\"\ngit push -q; git log -1 --oneline; git log main.. --oneline | wc -l"
    shown, other = "1a2b3c4 Add cart\n3", "1a2b3c4 Add carts\n3"
    assert [(c.hash, c.subject) for c in repository_of(*ran("a", command, shown)).commits] == [
        ("1a2b3c4", "Add cart")
    ]
    assert repository_of(*ran("a", command, other)).commits == ()


@for_each(
    ("command", "branch"),
    [
        ("git switch -q cart", "cart"),
        ("git switch -q -c cart main && ls", "cart"),
        ("git checkout -qb cart 2>/dev/null", "cart"),
        ("git checkout -q -b feature/cart", "feature/cart"),
        ("git checkout -q cart", "cart"),
        ("git checkout -q cart.py", "main"),
        ("git checkout -q -- cart", "main"),
        ("git checkout cart", "main"),
        ("git checkout -q 1a2b3c4", "main"),
        ("git checkout -q origin/cart", "main"),
        ("git switch -q --detach cart", "main"),
        ("git switch -q $NAME", "main"),
        ("git switch -q -", "main"),
    ],
)
def test_a_quiet_change_of_the_branch_is_known_by_its_command(command: str, branch: str) -> None:
    before = ran("a", "git status", "On branch main")
    assert repository_of(*before, *ran("b", command, "a.py")).branch == branch
    failed = repository_of(*before, *ran("b", command, "fatal: invalid reference: cart"))
    assert failed.branch == "main"


def test_a_look_at_another_folder_changes_nothing_and_a_commit_there_says_where() -> None:
    here = after(*ran("a", "git commit -m One", "[main 1a2b3c4] One"))
    look = ran(
        "b", "git -C /srv/other status -sb && git -C /srv/other log -1", "## docs\n0a2b3c4 Old"
    )
    assert after(*look, before=here).repository == here.repository
    made = after(*ran("b", "git -C /srv/other commit -m Two", "[docs 2b3c4d5] Two"), before=here)
    assert "- branch docs in /srv/other\n" in text(made)
    assert after(*ran("b", "gh pr list"), before=made).repository == made.repository
    same = after(*ran("b", "git -C /srv/other commit -m Two", "[main 2b3c4d5] Two"), before=here)
    assert [commit.subject for commit in same.repository.commits] == ["Two"]
    back = after(*ran("b", "git status", "On branch main"), before=made)
    assert "- branch main\n- newest commits: 1a2b3c4 One [v2]; 2b3c4d5 Two (on docs)" in text(back)


LINK = "https://github.com/o/r/pull/7"


@for_each(
    "command, answer, links",
    [
        ("gh pr view cart --json title,url", f'{{"title":"After {LINK}8","url":"{LINK}"}}', (LINK,)),
        ("gh pr view -q .url --json url", f"{LINK}\n", (LINK,)),
        ("gh pr view 7 --json url", f'{{"url":"{LINK}"}}', ()),
        ('gh pr view "$pr" --json url', f'{{"url":"{LINK}"}}', ()),
        ("gh pr list --json url", f'{{"url":"{LINK}"}}', ()),
    ],
)  # fmt: skip
def test_a_request_is_told_that_was_viewed_by_its_branch(
    command: str, answer: str, links: tuple[str, ...]
) -> None:
    assert repository_of(*ran("a", command, answer)).links == links


def test_a_request_that_a_tool_of_a_server_made_is_told() -> None:
    made = call("a", name="mcp__github__create_pull_request", title="Cart")
    answer = f'{{"url":"https://api.github.com/repos/o/r/pulls/7","html_url":"{LINK}"}}'
    assert repository_of(made, result("a", answer)).links == (LINK,)


def test_words_of_a_message_are_no_arguments() -> None:
    made = repository_of(
        *ran("a", "git commit -m One", "[main 1a2b3c4] One"),
        *ran("b", "git commit -m 'Say what --amend, rebase and checkout do'", "* lint\n[main 2b3c4d5] Two"),
    )  # fmt: skip
    assert [c.hash for c in made.commits] == ["1a2b3c4", "2b3c4d5"]
    assert made.branch == "main"
    pushed = "To /srv/a.git\n   1a2b3c4..2b3c4d5  main -> main"
    said = repository_of(*ran("a", "git commit -m 'push'\ngit diff", pushed))
    assert said.pushed == ""


def test_git_may_be_told_in_which_folder_it_is_to_work() -> None:
    left = repository_of(
        *ran("a", "git -C /srv/cart commit -m One", "[main 1a2b3c4] One"),
        *ran("b", "git -C /srv/cart -c core.pager= commit -m Two", "[main 2b3c4d5] Two"),
        *ran("c", "git -C /srv/cart reset --hard HEAD~1", "HEAD is now at 1a2b3c4 One"),
    )
    assert [c.hash for c in left.commits] == ["1a2b3c4"]


@for_each(
    "command, answer, branch",
    [
        ("git status", "On branch main\n\nnothing to commit, working tree clean", "main"),
        (
            "git status --short --branch",
            "## main...origin/main [ahead 1]\n M a.py\n?? b.py",
            "main",
        ),
        ("rtk git status", "📌 main...origin/main [ahead 1]\n📝 Modified: 1 files", "main"),
        ("git branch --show-current", "cart\n", "cart"),
        ("git checkout cart", "Already on 'cart'", "cart"),
        ("gh pr checkout 7", "Switched to branch 'cart'", "cart"),
        ("git branch", "  main\n* cart\n", "cart"),
        ("git log --oneline | wc -l", "7", ""),
    ],
)
def test_the_branch_is_as_git_last_told(command: str, answer: str, branch: str) -> None:
    assert repository_of(*ran("a", command, answer)).branch == branch


def test_a_commit_that_failed_is_none() -> None:
    failed = [call("a", name="bash", command="git commit -m x"), result("a", "hook failed", is_error=True)]  # fmt: skip
    assert after(*failed).repository == Repository()


# Tests, builds, linters, and open errors.


def tried(
    call_id: str, command: str, answer: str = "ok", turn: str = "t1", **fields: object
) -> list[Block]:
    return [
        call(call_id, turn, name="bash", command=command),
        result(call_id, answer, turn, **fields),
    ]


def check_of(*items: Any) -> CheckRecord:
    [check] = after(*items).checks
    return check


@for_each(
    "command, suite",
    [
        ("go test ./...", "go test"),
        ("npm run test:unit", "npm test:unit"),
        ("pnpm --filter web typecheck", "pnpm typecheck"),
        ("cargo clippy -- -D warnings", "cargo clippy"),
        ("npx tsc --noEmit", "tsc"),
        ("python -m pytest -x", "pytest"),
        ("python tests/runtests.py", "python runtests"),
        ("python manage.py test shop", "python test"),
        ("./gradlew build", "gradlew build"),
        ("scripts/run-tests.sh", "run-tests.sh run-tests"),
        ("make", "make"),
        ("make lint", "make lint"),
        ("cmake --build build", "cmake --build"),
        ("prettier --check .", "prettier --check"),
        ("prettier --write .", ""),
        ("cargo fmt", ""),
        ("cat test.log", ""),
        ("npm install", ""),
        ("pytest --version", ""),
        ("git checkout test", ""),
        ("node scripts/serve.mjs build-of/x", ""),
        ("mux capture verify-sums --lines 9", ""),
        ("pnpm --filter web type-check", "pnpm type-check"),
        ("npm run test-of-all", "npm test-of-all"),
        ("yarn test-of-all", "yarn test-of-all"),
    ],
)
def test_a_check_is_known_by_its_program_and_task(command: str, suite: str) -> None:
    assert suite_of(commands_in(command)[0]) == suite


@for_each(
    "output, failing",
    [
        ("--- FAIL: TestTotal (0.00s)\n    --- FAIL: TestTotal/empty (0.00s)\nFAIL\nFAIL\tx/cart\t0.1s", ("TestTotal", "TestTotal/empty")),
        ("FAILED tests/test_cart.py::test_total - assert 2 == 3\n1 failed in 0.1s", ("tests/test_cart.py::test_total",)),
        ("test cart::total ... FAILED\ntest cart::sum ... ok", ("cart::total",)),
        ("not ok 2 - adds up", ("adds up",)),
        ("FAIL: test_total (tests.Cart)", ("test_total (tests.Cart)",)),
        ("all is well", ()),
    ],
)  # fmt: skip
def test_failing_tests_are_named_as_the_runner_names_them(
    output: str, failing: tuple[str, ...]
) -> None:
    assert failing_in(output) == list(failing)


def test_many_failing_tests_are_counted() -> None:
    output = "\n".join(f"--- FAIL: Test{n}" for n in range(FAILING_MAX + 3))
    assert failing_in(output)[-1] == "3 more"


def test_a_check_stands_with_its_last_result_and_says_which_files_were_changed_since() -> None:
    failed = "--- FAIL: TestTotal (0.00s)\nFAIL\nFAIL\tx/cart\t0.1s\nok  \tx/shop\t0.1s"
    tested = tried("a", "cd /w && go test ./... 2>&1 | tail -30", failed)

    def edited(names: str) -> list[Block]:
        arguments = {"name": "Edit", "old_string": "x", "new_string": "y"}
        calls = ((name, call(name, file_path=f"/w/{name}", **arguments)) for name in names.split())
        return [block for name, each in calls for block in (each, result(name))]

    for names, told in (
        ("", ""),
        ("a.go b.md", " (changed since: a.go, b.md)"),
        ("a.go b.go c.go d.go", " (changed since: more than 3 files)"),
    ):
        stands = text(after(*edited("e.go"), *tested, *edited(names))).splitlines()[-1]
        assert stands == f"- [v4] go test ./... -> 1 package failed: TestTotal{told}"
    again = check_of(*tested, *edited("a.go"), *tried("b", "go test ./...", "ok  \tx/cart\t0.1s"))
    assert (again.result, again.seen) == ("packages ok", 6)


def test_a_failed_build_stands_with_the_line_that_says_why() -> None:
    output = "Exit code 2\nsrc/a.ts(3,1): error TS2304: Cannot find name 'x'."
    check = check_of(*tried("a", "npx tsc --noEmit", output, is_error=True))
    assert check.result == "failed (2): src/a.ts(3,1): error TS2304: Cannot find name 'x'."


@for_each(
    ("output", "line"),
    [
        (
            ("The token '&&' is not a valid separator: error\n    + CategoryInfo : ParserError: (:) []"
            "\n    + FullyQualifiedErrorId : InvalidEndOfLine"),
            "The token '&&' is not a valid separator",
        ),
        (
            ("error[E0412]: cannot find type `Message`\nerror: could not compile `app` (lib) due to 1 previous error"
            "\nFor more information about this error, try `rustc --explain E0412`."),
            "error[E0412]: cannot find type `Message`",
        ),
        (
            "php: The term 'php' is not recognized as a name of a cmdlet.\nCheck the spelling of the name.",
            "php: The term 'php' is not recognized as a name of a cmdlet.",
        ),
        (
            " ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment\nTo fix this issue, install it.",
            "ERR_PNPM_UNSUPPORTED_ENGINE Unsupported environment",
        ),
        (
            "AssertionError: 500 is not 200\n ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL  app test: `node run.js`\nExit status 1",
            "AssertionError: 500 is not 200",
        ),
        (
            "src/a.c:3: error: no such type\nmake: *** [Makefile:2: build] Error 1",
            "src/a.c:3: error: no such type",
        ),
        (
            "/srv/a.ts\n  1:1  error  One  x/one\n  3:25  error  Two  x/two\n\n✖ 2 problems (2 errors, 0 warnings)",
            "2 errors: /srv/a.ts:3:25 error Two x/two",
        ),
        (
            "TypeError: x is not a function\nnpm error code ELIFECYCLE\nnpm error path /srv/app\nerror Command failed with exit code 1.",
            "TypeError: x is not a function",
        ),
    ],
)  # fmt: skip
def test_what_runs_a_program_does_not_say_why_it_failed(output: str, line: str) -> None:
    assert line in check_of(*tried("a", "make build", output, is_error=True)).result


@for_each("said", ["exit code -9", "Exit code: -9", "<returncode>-9</returncode>\n<output>\n"])
def test_a_status_may_be_negative(said: str) -> None:
    assert check_of(*tried("a", "make build", said, is_error=True)).result.startswith("failed (-9)")


def test_a_check_that_was_stopped_did_not_go_well() -> None:
    said = "not done yet\n\n<shell_metadata>\nshell tool terminated command after exceeding timeout 9 ms\n</shell_metadata>"
    assert check_of(*tried("a", "make test", said)).result == "failed (timed out): not done yet"


def test_gemini_cli_says_behind_an_output_how_it_ended() -> None:
    good = ran(
        "a", "npm run build", "Output: \n> app build\nCompiled 3 routes\nProcess Group PGID: 4711"
    )
    assert after(*good).checks[0].result == "ok: Compiled 3 routes"
    bad = ran(
        "b",
        "npm run build",
        "Output: \nType error: no such name\nExit Code: 1\nProcess Group PGID: 4711",
    )
    [check] = after(*bad).checks
    assert (check.result.split(" ")[0], "Type error: no such name" in check.result) == (
        "failed",
        True,
    )


def test_a_pipe_hides_the_status_so_the_output_decides() -> None:
    output = "src/a.go:3:1: undefined: x"
    assert check_of(*tried("a", "go build ./... 2>&1 | head", output)).result == output
    assert check_of(*tried("a", "go build ./... 2>&1 | head", "")).result == "no output"


def test_a_check_whose_status_is_hidden_is_not_called_good() -> None:
    """A pipe, or a program of Codex that prints only the output: the run may not have come to its end."""
    output = "- building client bundles..."
    assert check_of(*tried("a", "make build 2>&1 | tail -1", output)).result == output
    program = f"Script completed\nWall time 0.1 seconds\nOutput:\n\n{output}"
    assert check_of(*tried("a", "make build", program)).result == output


def test_a_narrower_run_leaves_the_broader_one_and_a_broader_one_replaces_it() -> None:
    whole, one = (
        tried("a", "go test ./...", "fine"),
        tried("b", "go test ./cart -run TestTotal", "fine"),
    )
    assert len(after(*whole, *one).checks) == 2
    assert [c.command for c in after(*one, *whole).checks] == ["go test ./..."]


@for_each(
    "command, again",
    [
        ("ruff check .", ".venv/bin/ruff check --quiet ."),
        ("npm run lint", "cd web && npm run lint --silent 2>&1 | tail -3"),
        ("npm run build", "volta run npm run build"),
        ("pnpm build", "CI=1 pnpm run build"),
        ("pytest -q tests", "timeout 60 python3 -m pytest tests -vv"),
        ("make -j8 test", "make test"),
        ("bun run lint:fix", "bun run lint"),
        ("eslint --fix .", "eslint ."),
        ("go vet ./cli/", "go vet ./... && go test ./..."),
        ("cargo check --workspace", "cargo test --workspace"),
        ("npm run lint && npm test", "npm test && npm run lint"),
        ("go test ./a -run TestTotal_Sign", "go test ./a -run TestTotal"),
        ("pytest tests/test_a.py::test_total", "pytest tests/test_a.py"),
        ("mypy src/cart", "mypy src"),
    ],
)
def test_a_run_in_another_spelling_replaces_the_one_that_failed(command: str, again: str) -> None:
    failed = tried("a", command, "Exit code 1\nerror: no", is_error=True)
    check = check_of(*failed, *tried("b", again, "All checks passed!"))
    assert check.result.removeprefix("ok: ") == "All checks passed!"


@for_each(
    "command, again",
    [
        ("ruff check .", "ruff check src"),
        ("ruff check srcs", "ruff check src"),
        ("ruff check .", "ruff check --select E ."),
        ("ruff check .", "mypy ."),
        ("npm run build", "npm test"),
        ("cargo check --target wasm32", "cargo test cart"),
        ("npm run lint && npm test", "npm test"),
        ("pnpm --filter web test", "pnpm --filter api test"),
    ],
)
def test_a_run_of_something_else_leaves_the_one_that_failed(command: str, again: str) -> None:
    failed = tried("a", command, "Exit code 1\nerror: no", is_error=True)
    assert len(after(*failed, *tried("b", again, "fine")).checks) == 2


def test_a_check_that_ran_again_among_others_has_its_newest_result() -> None:
    failed = tried("a", "npx tsc --noEmit", "Exit code 1\na.ts(2,1): error TS6133", is_error=True)
    both = tried("b", "npx tsc --noEmit && npx vite build", "built in 1.27s")
    assert check_of(*failed, *both).result == "ok: built in 1.27s"


def test_runs_one_by_one_replace_the_run_of_all_that_failed() -> None:
    failed = tried("a", "npm run lint && npm test", "Exit code 1\nerror: no", is_error=True)
    state = after(*failed, *tried("b", "npm run lint"), *tried("c", "npm test"))
    assert [check.command for check in state.checks] == ["npm run lint", "npm test"]


def test_a_run_for_one_package_is_not_replaced_by_that_for_another() -> None:
    one, other = (tried(name, f"pnpm --filter {name} test") for name in ("web", "@shop/api"))
    assert len(after(*one, *other).checks) == 2
    assert check_of(*one, *other, *tried("c", "pnpm test")).command == "pnpm test"


@for_each(("again", "records"), [("go test -race ./...", 1), ("go test -run TestTotal ./...", 2)])
def test_an_option_alone_does_not_make_a_run_narrower(again: str, records: int) -> None:
    good = tried("a", "go test ./...", "fine"), tried("b", again, "fine")
    assert len(after(*good[0], *good[1]).checks) == records


@for_each(
    ("command", "output", "result"),
    [
        ("make lint; git status --short", " M src/a.py", "ok"),
        ("make lint && ls dist | tail -1", "a.js", "ok"),
        ("make lint 2>&1 | cat; git status --short", " M src/a.py", "no fault seen"),
        ("cd web; make lint 2>&1 | tail -1; echo $?", "No faults", "No faults"),
        ("make lint", "(Bash completed with no output)", "ok"),
        ("bun run lint", "$ tsc --noEmit", "ok"),
        ("mise run lint", "[lint] $ ~/cart/tasks/lint", "ok"),
        (
            "bun --filter cart build",
            "cart build: $ bun -e 'x'\ncart build: 3 files",
            "ok: cart build: 3 files",
        ),
        ("npm run lint", "\n> @shop/cart@1.0.0 lint\n> eslint .\n", "ok"),
        ("make lint", "$ 5 for each", "ok: $ 5 for each"),
        ("go test ./... | tail -1", "?   \tx.org/cart\t[no test files]", "no fault seen"),
    ],
)
def test_the_last_line_of_another_command_is_no_result(
    command: str, output: str, result: str
) -> None:
    assert check_of(*tried("a", command, output)).result == result


def test_a_text_that_is_a_command_says_itself_and_checks_nothing() -> None:
    """In PowerShell."""
    assert after(*tried("a", '"now test the fallback"; node ask.mjs', "now test")).checks == ()


def test_a_diff_behind_a_failure_does_not_say_why() -> None:
    output = "a.py:3: bad name\ndiff --git a/a.py b/a.py\n@@ -1 +1 @@\n-# In CI it may fail\n+# ok"
    check = check_of(*tried("a", "make lint; git diff", output, is_error=True))
    assert check.result == "failed: a.py:3: bad name"


def test_a_check_that_did_not_run_says_nothing() -> None:
    assert after(*tried("a", "make test", "<tool_use_error>no", is_error=True)).checks == ()


def test_checks_are_bounded_and_those_of_other_work_expire() -> None:
    many = [block for n in range(CHECKS_MAX + 2) for block in tried(f"c{n}", f"make test{n} x{n}")]
    assert len(after(*many).checks) == CHECKS_MAX
    rest = [block for n in range(CHECK_VERSIONS // 2 + 1) for block in tried(f"n{n}", "date")]
    late = after(*many, *rest, *tried("z", "go vet ./..."))
    assert [check.command for check in late.checks] == ["go vet ./..."]


# Open errors.


FAILED: dict[str, Any] = {"is_error": True}


def test_an_error_is_open_until_the_same_thing_succeeds() -> None:
    failed = after(*tried("a", "npm publish", "Exit code 1\nnpm ERR! 403", **FAILED))
    assert "Tests, builds, open errors:\n- [v2] npm publish -> failed (1): npm ERR! 403" in text(
        failed
    )
    assert after(*tried("b", "date"), before=failed).checks == failed.checks
    assert after(*tried("c", "npm publish --tag next"), before=failed).checks == ()


def test_an_edit_that_failed_is_open_until_one_of_that_file_succeeds() -> None:
    failed = [call("a", name="edit", path="a.py", oldText="x", newText="y"), result("a", "no match", is_error=True)]  # fmt: skip
    edited = [call("b", name="edit", path="a.py", oldText="z", newText="y"), result("b")]
    assert len(after(*failed).checks) == 1
    assert after(*failed, *edited).checks == ()


@for_each(("fault", "left"), [("File does not exist.", 0), ("String to replace not found.", 1)])
def test_an_edit_at_a_path_that_there_is_not_is_closed_by_one_of_a_file_of_this_name(
    fault: str, left: int
) -> None:
    old = {"oldText": "x", "newText": "y"}
    failed = [call("a", name="edit", path="/srv/web/cart.go", **old), result("a", fault, is_error=True)]  # fmt: skip
    other = [call("b", name="edit", path="/srv/web/tax.go", **old), result("b")]
    edited = [call("c", name="edit", path="/srv/work/cart.go", **old), result("c")]
    assert len(after(*failed, *other).checks) == 1
    assert len(after(*failed, *other, *edited).checks) == left


@for_each(
    "command",
    ["grep -rn x src", "ls none", "test -f x", "cat none", "diff a b", "Select-String test a.log"],
)
def test_an_answer_is_no_error(command: str) -> None:
    assert after(*tried("a", command, "Exit code 1", **FAILED)).checks == ()


def test_an_error_ends_with_its_turn_and_when_the_agent_went_around_it() -> None:
    failed = tried("a", "npm publish", "Exit code 1", **FAILED)
    later = [prompt("Now write the release notes for it.", "t2"), *tried("b", "date", turn="t2")]
    assert after(*failed, *later).checks == ()
    others = [block for n in range(OPEN_VERSIONS // 2 + 1) for block in tried(f"n{n}", "date")]
    assert after(*failed, *others).checks == ()


def test_an_output_of_blank_lines_is_read_at_once() -> None:
    """A form that may cross lines would take minutes."""
    assert failing_in("\n" * 100_000) == []
