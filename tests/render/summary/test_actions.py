"""What was done: one line for each call with what came of it, in order, within its room."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blocks import Action, Block, Envelope, Process, ToolKind
from render.summary._actions import (
    ANSWER_MAX,
    LINE_MAX,
    OLD_MAX,
    OUTCOME_MAX,
    TARGET_MAX,
    advance,
    fitted,
    text_of_actions,
)
from render.summary._calls import runs_of
from render.view._view import View
from tests._builders import call, result, said, view_of
from tests._table import for_each
from tests.render.summary.samples import count

ENDLESS = 10**9


def told(*items: Block) -> list[str]:
    """The lines, without their labels."""
    text = text_of_actions(done(view_of(*items)))
    return [line.split("] ", 1)[-1] for line in text.split("\n") if line]


def done(view: View, previous: tuple[Action, ...] = ()) -> tuple[Action, ...]:
    return advance(previous, view.entries, runs_of(view.entries))


def ran(command: object, output: str = "", **fields: Any) -> list[str]:
    return told(call("a", name="bash", command=command), result("a", output, **fields))


def ran_with(**given: Any) -> list[str]:
    return told(call("a", name="bash", **given), result("a", ""))


def test_each_call_is_a_line_with_its_label_and_what_came_of_it_in_order() -> None:
    view = view_of(
        call("a", name="Bash", command="go test ./..."),
        result("a", "ok  \tshop/cart\t0.1s\nFAIL\tshop/tax\t0.2s\nFAIL", is_error=True),
        call("b", name="Edit", file_path="a.py", old_string="x", new_string="y"), result("b", "done"),
        call("c", name="Read", file_path="b.py", limit=80), result("c", "1→x"),
        call("d", name="Grep", pattern="foo", path="src"), result("d", "a.py\nb.py\nc.py\nd.py"),
        call("e", name="WebFetch", url="https://a.org"), result("e", "# The title\nand more"),
        call("f", name="mcp__tracker__get_issue", number="7"), result("f", "Totals are wrong"),
        said("Done."),
    )  # fmt: skip
    assert text_of_actions(done(view)).split("\n") == [
        "[v2] $ go test ./... -> 1 package failed: FAIL shop/tax 0.2s",
        "[v3] edit a.py",
        "[v6] read b.py 1-80",
        '[v8] search "foo" in src -> a.py / b.py / c.py / d.py',
        "[v10] web https://a.org -> # The title / and more",
        "[v12] mcp__tracker__get_issue 7 -> Totals are wrong",
    ]


@for_each(
    ("name", "given", "line"),
    [
        ("exec_command", {"cmd": "ls", "workdir": "/srv"}, "$ cd /srv && ls"),
        ("shell", {"command": ["bash", "-lc", "ls -l"]}, "$ ls -l"),
        ("bash", {"command": "cd /srv && ls"}, "$ cd /srv && ls"),
        ("bash", {"command": "cat > a.py <<'EOF'\nx = 1\ny = 2\nEOF"}, "write a.py"),
        ("bash", {"command": "python3 - <<'EOF'\nx\ny\nEOF"}, "$ python3 - <<EOF (2 lines)"),
        (
            "bash",
            {"command": "cd d; python3 - <<'EOF' && ls\np = Path('docs/a.md')\np.write_text('x, y')\nEOF"},
            "$ cd d && python3 - <<EOF && ls (2 lines: docs/a.md)",
        ),
        ("bash", {"command": "sed -n '10,20p' a.py"}, "read a.py 10-20"),
        ("bash", {"command": "make test 2>&1 | tail -30"}, "$ make test"),
        ("bash", {"command": "# why\nmake \\\n  all\nls"}, "$ make all; ls"),
        (
            "bash",
            {"command": 'git commit -m "$(cat <<\'EOF\'\nFix it\n\nBecause.\nEOF\n)"'},
            '$ git commit -m "Fix it (3 lines)"',
        ),
        ("bash", {"command": "python -c 'import a\nprint(a)'"}, "$ python -c 'import a…' (2 lines)"),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"},
            "edit a.py",
        ),
        (
            "shell",
            {"command": ["bash", "-lc", "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.py\n+y\n*** End Patch\nEOF"]},
            "write a.py",
        ),
        ("bash", {"command": "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.py\n+y\n*** End Patch"}, "write a.py"),
        ("bash", {"command": "git commit -m @'\nIt's done\n\nAll of it.\n'@"}, "$ git commit -m 'It's done…' (3 lines)"),
        ("write_file", {"file_path": "a.py", "content": "x = 1"}, "write a.py"),
        ("str_replace_editor", {"command": "view", "path": "a.py", "view_range": [3, 9]}, "read a.py 3-9"),
        ("read", {"path": "a.py", "offset": 5, "limit": 10}, "read a.py 5-14"),
        ("read_file", {"path": "a.py", "offset": 5}, "read a.py 5-"),
        ("list_directory", {"path": "src"}, "no matches: list src"),
        ("Task", {"description": "Look around", "prompt": "Look at all"}, "Task Look around"),
        ("book_hotel", {"guest": {"name": "Ann"}, "nights": 3}, "book_hotel Ann"),
        ("SendMessage", {"type": "message", "content": "All done: ...", "summary": "Parser done"}, "SendMessage Parser done"),
        ("ping", {}, "ping"),
    ],
)  # fmt: skip
def test_a_call_is_told_by_what_it_did_whichever_client_made_it(
    name: str, given: dict[str, Any], line: str
) -> None:
    assert told(call("a", name=name, **given), result("a", "")) == [line]


@for_each(
    ("output", "fields", "outcome"),
    [
        ("fine", {}, "fine"),
        ("one\ntwo", {}, "one / two"),
        ("a line of it\n" * 40 + "9 rows\nall done\n", {}, "42 lines, the last: " + "a line of it / " * 13 + "9 rows / all done"),
        ("3 failed, 40 passed in 2.0s", {}, "3 failed, 40 passed"),
        ("Exit code 2\nwarning\nerror: no field\nbye", {"is_error": True}, "exit 2: error: no field"),
        ("Exit code 3\nall is lost\n", {"is_error": True}, "exit 3: all is lost"),
        ("Exit code 1", {"is_error": True}, "exit 1"),
        ("access denied", {"envelope": Envelope(outcome="failure")}, "access denied"),
        ("0 errors, 0 failed", {}, "0 errors, 0 failed"),
        ('{"state": "OPEN", "rows": [' + "1, " * 80 + "2]}", {}, '{"state": "OPEN", "rows": [' + "1, " * 70 + "1,…"),
        ("(Bash completed with no output)", {}, ""),
        ("Output: (empty)\nProcess Group PGID: 7", {}, ""),
        ("usage\nError: no flag -x", {"is_error": True}, "Error: no flag -x"),
        ("a line\n" * 99 + "fatal: no\n<shellId: 5 completed with exit code 1>", {}, "exit 1: fatal: no"),
        ("Command: make # exit code 0\nDirectory: (root)\nOutput: no rule\nExit Code: 2", {}, "exit 2: no rule"),
        ("(no output)\n\n<shell_metadata>\nshell tool terminated command after exceeding timeout 9 ms\n</shell_metadata>", {}, "timed out"),
        ("one\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>", {}, "stopped"),
        ("failed in sandbox None with execution error: command timed out", {}, "failed in sandbox None with execution error: command timed out"),
        ("failed in sandbox None with execution error: denied, exit code: 1, stdout: , stderr: no space left", {}, "exit 1: no space left"),
        ("<persisted-output>\nOutput too large (54.5KB). Full output saved to: /x\n\nPreview (first 2KB):\n1 passed in 1s\n...\n</persisted-output>", {}, "Output too large (54.5KB)"),
    ],
)  # fmt: skip
def test_the_outcome_of_a_command_is_told_in_few_words(
    output: str, fields: dict[str, Any], outcome: str
) -> None:
    assert ran("make", output, **fields) == ["$ make" + (f" -> {outcome}" if outcome else "")]


def test_a_tool_that_declares_its_kind_is_told_by_it() -> None:
    def did(name: str, kind: ToolKind, target: str, **given: Any) -> tuple[Block, Block]:
        envelope = Envelope(kind=kind, target=target)
        return call(name, name=name, **given), result(name, "x", envelope=envelope)

    assert told(
        *did("show_contract", "read", "number", number="K-7", pages=3),
        *did("book", "write", "order", order=4711, note="x"),
        *did("deploy", "command", "stage", stage="blue"),
        *did("recall", "search", "about", about="unpaid"),
        *did("ask_web", "web", "page", page="https://x.example"),
    ) == [
        "read K-7", "write 4711", "$ blue -> x", "list unpaid -> x", "web https://x.example -> x",
    ]  # fmt: skip


def test_of_a_commit_its_subject_branch_and_id_are_told() -> None:
    output = "running hooks\n" * 9 + "[main 3f2a1b0c] Fix it\n 2 files changed"
    assert ran("git add a.py && git commit -qm x", output) == ["commit Fix it -> main 3f2a1b0c"]
    assert ran("make && git commit -m x", output) == ["$ make && git commit -m x -> main 3f2a1b0c"]


def test_a_long_command_is_told_with_what_the_call_says_of_it() -> None:
    line = "make " + "one two " * 60 + "all"
    (said_too,) = ran_with(command=line, description="Build all of it")
    assert said_too.endswith(" all # Build all of it")
    assert ran_with(command="make", description="Build all of it") == ["$ make"]


def test_a_change_of_the_plan_is_not_told() -> None:
    steps = [{"content": "x", "status": "done"}]
    assert told(call("a", name="TodoWrite", todos=steps), result("a", "modified")) == []
    one = {"name": "TaskUpdate", "taskId": "3", "status": "completed"}
    assert told(call("a", **one), result("a", "Updated task #3 status")) == []
    new = {"name": "TaskCreate", "subject": "Read it"}
    assert told(call("a", **new), result("a", "Task #3 created successfully")) == []


def test_of_a_long_look_the_lines_are_counted_and_of_what_a_program_says_the_last_are_told() -> (
    None
):
    output = "\n".join(f"module_{n}.py: {n} rows of it are wrong" for n in range(90))
    assert ran("ls src", output) == ["$ ls src -> 90 lines"]
    (line,) = ran("python check.py", output)
    assert line.startswith("$ python check.py -> 90 lines, the last: ")
    assert line.endswith(
        "module_88.py: 88 rows of it are wrong / module_89.py: 89 rows of it are wrong"
    )
    assert len(line) > OUTCOME_MAX * 3 // 4
    check = view_of(call("a", name="bash", command="python check.py"), result("a", output))
    actions = (*done(check), *many(30))
    (old, *_) = fitted(actions, count(text_of_actions(actions)) - 1, count)
    assert old.outcome.startswith("90 lines, the last: …")
    assert old.outcome.endswith("module_89.py: 89 rows of it are wrong"), "its end says most"
    rows = view_of(
        call("a", name="bash", command="make"), result("a", f'{{"rows": "{"x " * 200}"}}')
    )
    actions = (*done(rows), *many(30))
    (old, *_) = fitted(actions, count(text_of_actions(actions)) - 1, count)
    assert old.outcome.startswith('{"rows": "x x'), "its end was cut"


def test_a_call_that_asks_for_a_running_command_is_a_run_of_it() -> None:
    started = "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\n"
    asked: list[Block] = [
        call("b", name="write_stdin", session_id=7, chars=""),
        result("b", "3 failed, 4 passed in 2s"),
    ]
    first: list[Block] = [
        call("a", name="exec_command", cmd="make test", workdir="/srv"),
        result("a", started),
    ]
    assert told(*first, *asked) == ["$ cd /srv && make test (2 times) -> last: 3 failed, 4 passed"]
    before = [Process(command="make test", id="7", seen=1)]
    entries = view_of(*asked).entries
    (later,) = advance((), entries, runs_of(entries), before)
    assert (later.verb, later.target, later.outcome) == ("$", "make test", "3 failed, 4 passed")


def test_searches_that_found_nothing_share_a_line_whichever_tool_made_them() -> None:
    assert told(
        call("a", name="Grep", pattern="x"), result("a", "No files found"),
        call("b", name="bash", command="grep -rn y ."), result("b", "Exit code 1", is_error=True),
        call("c", name="Glob", pattern="*.z"), result("c", ""),
    ) == ['no matches: search "x"; $ grep -rn y .; search "*.z"']  # fmt: skip


def test_what_the_user_said_of_a_call_that_did_not_run_is_not_its_outcome() -> None:
    answer = "The user doesn't want to proceed. The user said:\nI think it fails elsewhere"
    assert ran("git log", answer, is_error=True) == ["$ git log -> not run: the user stopped it"]


def test_a_command_without_a_result_says_so() -> None:
    assert told(call("a", name="bash", command="sleep 9")) == ["$ sleep 9 -> no result"]


def test_a_call_that_was_made_again_is_told_once_at_its_newest_place_with_its_first_and_its_last_outcome() -> (
    None
):
    first = done(
        view_of(
            call("a", name="bash", command="make test"), result("a", "1 failed in 2s", is_error=True),
            call("b", name="bash", command="make lint"), result("b", "fine"),
        )
    )  # fmt: skip
    again = view_of(
        call("c", name="bash", command="make test | tail -9"), result("c", "7 passed in 2s")
    )
    lines = text_of_actions(done(again, first)).split("\n")
    assert [line.split("] ")[1] for line in lines] == [
        "$ make lint -> fine",
        "$ make test (2 times) -> first: 1 failed: 1 failed in 2s -> last: 7 passed",
    ]


def test_of_a_look_and_of_runs_with_the_same_outcome_only_the_last_is_told() -> None:
    for command in ("make lint", "git status"):
        ask = {"name": "bash", "command": command}
        assert told(
            call("a", **ask), result("a", "fine"), call("b", **ask), result("b", "fine")
        ) == [f"$ {command} (2 times) -> last: fine"]
    ask = {"name": "bash", "command": "git status"}
    assert told(
        call("a", **ask), result("a", "M a.py"), call("b", **ask), result("b", "clean")
    ) == ["$ git status (2 times) -> last: clean"]


def test_of_what_another_tool_answers_in_words_the_beginning_is_told() -> None:
    answer = (
        "Task #6: encrypt the address\nPrefer a converter of the table.\n" + 40 * "More of it.\n"
    )
    [line] = told(call("a", name="TaskGet", task="6"), result("a", answer))
    assert line.startswith("TaskGet 6 -> Task #6: encrypt the address / Prefer a converter")
    assert len(line) <= ANSWER_MAX + 20


def test_of_a_browser_s_answer_its_result_and_its_page_are_told() -> None:
    click = call("a", name="mcp__playwright__browser_click", element="OK")
    code = "### Ran Playwright code\n```js\nawait page.click();\n```\n"
    page = "### Page\n- Page URL: http://x/\n### Snapshot\n```yaml\n- link [ref=e1]\n```\n"
    [line] = told(click, result("a", f"### Result\nClicked\n{code}{page}### Events\n- none"))
    assert line.endswith(
        "OK -> ### Result / Clicked / ### Page / - Page URL: http://x/ / ### Events / - none"
    )


def test_what_an_answer_repeats_of_its_call_and_what_another_agent_reports_is_not_told_again() -> (
    None
):
    aim = "First the whole lexer, then each production of the grammar, to find where it loops"
    topic = call("a", name="update_topic", title="Reading", summary=aim)
    done = f'Current topic: "Reading"\nTopic summary: {aim}\n'
    assert told(topic, result("a", done)) == [f"update_topic {aim}"]
    [line] = told(topic, result("a", f"{done}Topic 12 is closed"))
    assert "Topic 12 is closed" in line
    task = call("b", name="task", description="Review it", prompt="Review all")
    assert told(task, result("b", "Two bugs: ...")) == ["task Review it"]
    [line] = told(task, result("b", "out of credit", is_error=True))
    assert "out of credit" in line


def test_edits_of_a_file_stay_apart_if_something_is_between_them() -> None:
    edit = {"name": "Edit", "file_path": "a.py", "old_string": "x", "new_string": "y"}
    assert told(
        call("a", **edit), result("a"), call("b", **edit), result("b"),
        call("c", name="bash", command="make"), result("c", "fine"), call("d", **edit), result("d"),
    ) == ["edit a.py x2", "$ make -> fine", "edit a.py"]  # fmt: skip


def test_a_look_at_a_file_belongs_to_the_change_of_it_that_follows() -> None:
    def read(name: str, path: str = "a.py", line: int = 1) -> list[Block]:
        return [call(name, name="read", path=path, offset=line, limit=9), result(name)]

    def edit(name: str) -> list[Block]:
        return [
            call(name, name="Edit", file_path="a.py", old_string="x", new_string="y"),
            result(name),
        ]

    assert told(*read("a"), *edit("b"), *read("c", line=50), *read("d", line=90), *edit("e")) == [
        "edit a.py x2"
    ]
    assert told(*read("a"), *read("b", "b.py"), *edit("c")) == [
        "read a.py 1-9; b.py 1-9",
        "edit a.py",
    ]
    assert told(*edit("a"), *read("b")) == ["edit a.py", "read a.py 1-9"]


def test_a_change_that_failed_says_why_whichever_tool_made_it() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
    assert told(
        call("a", name="bash", command=f"apply_patch <<'EOF'\n{patch}\nEOF"),
        result("a", "Exit code 1\nFailed to find expected lines in a.py:\nx", is_error=True),
        call("b", name="bash", command="make"), result("b"),
        call("c", name="apply_patch", input=patch), result("c", "apply_patch verification failed: no such line\nx"),
    ) == [
        "edit a.py -> Failed to find expected lines in a.py:",
        "$ make -> ok",
        "edit a.py -> apply_patch verification failed: no such line",
    ]  # fmt: skip


def test_adjacent_looks_share_a_line_up_to_a_length() -> None:
    reads = [
        b
        for n, part in enumerate((0, 100, 200))
        for b in (call(f"c{n}", name="read", path="a.py", offset=part, limit=50), result(f"c{n}"))
    ]
    other = call("d", name="read", path="b.py"), result("d")
    assert told(*reads, *other) == ["read a.py 1-50, 100-149, 200-249; b.py"]
    assert told(reads[0], reads[1], *other, *reads[2:]) == [
        "read a.py 1-50, 100-149, 200-249; b.py"
    ]
    many = [
        b
        for n in range(40)
        for b in (call(f"c{n}", name="read", path=f"src/module_{n}.py"), result(f"c{n}"))
    ]
    assert all(len(line) <= LINE_MAX for line in told(*many))


def test_a_look_that_failed_has_a_line_of_its_own() -> None:
    assert told(
        call("a", name="read", path="a.py"), result("a"),
        call("b", name="read", path="b.py"), result("b", "no such file", is_error=True),
    ) == ["read a.py", "read b.py -> no such file"]  # fmt: skip


def test_a_folder_is_named_where_it_changes() -> None:
    runs = [
        b
        for n, folder in enumerate(("/srv", "/srv", "/opt"))
        for b in (call(f"c{n}", name="shell", cmd=f"make {n}", workdir=folder), result(f"c{n}", ""))
    ]
    assert told(*runs) == ["$ cd /srv && make 0", "$ make 1", "$ cd /opt && make 2"]


def test_paths_are_relative_to_the_folder_that_most_share() -> None:
    reads = [
        b
        for n in range(9)
        for b in (
            call(f"c{n}", name="read", path=f"/home/ann/shop/src/file_{n}.py"),
            result(f"c{n}"),
        )
    ]
    first, *lines = told(*reads)
    assert first == "(paths in /home/ann/shop/src/)"
    assert "read file_0.py; file_1.py" in lines[0]


def test_paths_of_windows_are_relative_with_either_slash() -> None:
    folder = "C:\\Users\\ann\\shop\\"
    paths = [*(f"{folder}file_{n}.py" for n in range(9)), f"{folder}x.py".replace("\\", "/")]
    reads = [
        b
        for n, path in enumerate(paths)
        for b in (call(f"c{n}", name="read", path=path), result(f"c{n}"))
    ]
    first, *lines = told(*reads)
    assert first == f"(paths in {folder})"
    assert all("ann" not in line for line in lines)


def test_what_is_forgotten_or_kept_elsewhere_is_not_quoted() -> None:
    view = view_of(call("a", name="bash", command="cat key"), result("a", "the secret"))
    call_entry, answer = view.entries
    hidden = replace(answer, original=answer.block)
    entries = [call_entry, hidden]
    assert "secret" not in text_of_actions(advance((), entries, runs_of(entries)))
    entries = [replace(call_entry, original=call_entry.block), answer]
    assert advance((), entries, runs_of(entries)) == ()


# In the room given.


def many(number: int) -> tuple[Action, ...]:
    return tuple(
        Action(seen=n + 1, verb="$", target=f"command number {n}", weight=int(n % 7 == 0))
        for n in range(number)
    )


def test_the_newest_actions_stand_and_of_older_ones_those_that_tell() -> None:
    tests = Action(seen=1, verb="$", target="make test", outcome="1 failed", weight=3)
    left = fitted((tests, *many(300)), 900, count)
    assert left[0].runs > 100
    assert left[1] == tests
    assert left[-5:] == many(300)[-5:]
    text = text_of_actions(left)
    assert text.startswith(f"({left[0].runs} more, not listed)\n[v1] $ make test -> 1 failed\n")
    assert count(text) <= 900


def test_what_is_left_out_is_counted_over_all_compactions() -> None:
    once = fitted(many(100), 500, count)
    again = fitted((*once, *many(50)), 500, count)
    assert sum(action.runs for action in again) == 150


def test_a_command_is_told_in_full_if_it_is_new_or_was_run_again() -> None:
    line = f"make {'x' * 200} all"
    often, once = (
        Action(seen=n, verb="$", target=f"{name} {line}", runs=runs)
        for n, name, runs in ((1, "often", 2), (2, "once", 1))
    )
    newest = replace(once, seen=99)
    actions = (often, once, *many(20), newest)
    assert fitted(actions, ENDLESS, count) == actions, "nothing is shortened while there is room"
    left = fitted(actions, count(text_of_actions(actions)) - 1, count)
    assert left[0] == often
    assert len(left[1].target) <= OLD_MAX
    assert left[-1] == newest
    assert fitted(left, ENDLESS, count) == left


ACTIONS = st.lists(
    st.builds(
        Action,
        seen=st.integers(0, 99),
        verb=st.sampled_from(("$", "read", "edit", "search", "own_tool", "")),
        target=st.sampled_from(("", "a.py", "/srv/shop/b.py", "/srv/shop/c.py", "make all")),
        part=st.sampled_from(("", "1-80")),
        folder=st.sampled_from(("", "/srv/shop")),
        outcome=st.sampled_from(("", "3 matches", "x" * 90)),
        runs=st.integers(1, 5),
        weight=st.integers(0, 3),
    ),
    max_size=30,
).map(tuple)


@given(ACTIONS, st.integers(0, 900))
def test_they_fit_their_room_and_stay_in_order(actions: tuple[Action, ...], room: int) -> None:
    left = fitted(actions, room, count)
    assert count(text_of_actions(left)) <= room or not left
    shown = [action for action in left if action.verb]
    rest = iter(actions)
    assert all(action in rest for action in shown)
    assert fitted(actions, room, count) == left, "deterministic"
    if left:
        assert sum(action.runs for action in left) == sum(action.runs for action in actions)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(
    st.sampled_from(("bash", "read", "edit", "apply_patch", "grep", "fetch", "own", "todowrite")),
    st.dictionaries(
        st.sampled_from(("command", "cmd", "path", "pattern", "view_range", "offset", "limit", "url", "description", "x")),
        VALUES,
        max_size=4,
    ),
    st.text(),
    st.sampled_from(["success", "failure"]),
)  # fmt: skip
def test_whatever_a_call_holds_its_line_is_one_and_bounded(
    name: str, given: dict[str, Any], text: str, outcome: Any
) -> None:
    envelope = Envelope(outcome=outcome, key_fields={"exit_code": given})
    (action,) = done(view_of(call("a", name=name, **given), result("a", text, envelope=envelope)))
    assert len(action.target) <= TARGET_MAX
    assert len(action.outcome) <= ANSWER_MAX
    assert len(text_of_actions((action,)).splitlines()) == 1


@for_each("length", [TARGET_MAX - 2, TARGET_MAX, 10_000])
def test_a_long_command_is_shortened_in_its_middle(length: int) -> None:
    (line,) = ran(f"begin {'x' * length} end")
    assert line.startswith("$ begin xx")
    assert " end" in line
    assert len(line) <= TARGET_MAX + len("$ ")


def test_nothing_done_is_no_text() -> None:
    assert text_of_actions(()) == ""
    assert fitted((), ENDLESS, count) == ()
