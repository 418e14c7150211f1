"""What the edits did to each file: told by names, from the edits themselves, in any client's form."""

from typing import Any

from blocks import Block, FileChange, Progress
from render.summary._calls import runs_of
from render.summary._state import FILES_MAX, advance, fitted, text
from tests._builders import call, result, view_of
from tests._table import for_each


def after(*items: Any, before: Progress | None = None) -> Progress:
    entries = view_of(*items).entries
    return advance(before or Progress(), entries, runs_of(entries))


def change_of(*items: Block) -> FileChange:
    [change] = after(*items).changes
    return change


def edit(call_id: str, old: str, new: str, path: str = "a.py", answer: str = "ok") -> list[Block]:
    return [
        call(call_id, name="Edit", file_path=path, old_string=old, new_string=new),
        result(call_id, answer),
    ]


def ran(call_id: str, command: str, answer: str = "") -> list[Block]:
    return [call(call_id, name="bash", command=command), result(call_id, answer)]


PATCH = """*** Begin Patch
*** Update File: src/a.go
@@
 func Total(items []Item) int {
-	return 0
+	return sum(items)
@@
+func sum(items []Item) int {
+	return len(items)
+}
*** Add File: src/b.go
+package src
+
+type Item struct {
+	price int
+}
*** Delete File: src/c.go
*** End Patch"""


def test_an_edit_is_told_by_its_most_telling_line() -> None:
    def line_of(old: str, new: str) -> str:
        return change_of(*edit("a", old, new)).line

    assert line_of("x: 1", "import os\nx: 2; y") == "x: 1 → x: 2; y"
    assert line_of("import os\nx(1)", "import os\nx(1)\ny(2)") == "+ y(2)"
    assert line_of("import os\nx(1)", "x(1)") == "- import os"
    long = "the same words before the difference, which are many, "
    assert line_of(f"{long}one; after", f"{long}two; after") == f"+ {long}two; after"
    assert line_of('"a": 1\n}', '"a": 1,\n"watch": 2\n}') == '+ "watch": 2', "only a comma came"
    assert line_of("x(1)\ny(2)", "def total():\n  z(3)") == "+ def total():", "no word in common"
    assert line_of("<<<<<<< HEAD\nx(1)\n=======\ny(2)\n>>>>>>> b", "y(2)") == "- x(1)"


@for_each("answer", ["ERROR:\nNo replacement was performed", "<tool_use_error>String to replace not found"])  # fmt: skip
def test_an_edit_that_was_refused_is_none(answer: str) -> None:
    assert after(*edit("a", "x", "y", answer=answer)).changes == ()


def test_a_failed_edit_is_none_and_one_without_a_result_is_unknown() -> None:
    failed = [call("a", name="edit", path="a", oldText="x"), result("a", "no", is_error=True)]
    assert after(*failed, call("b", name="edit", path="a", oldText="x")).changes == ()


@for_each(
    "tool",
    [
        {"name": "apply_patch", "input": PATCH},
        {"name": "apply_patch", "patchText": PATCH},
        {"name": "exec_command", "cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"},
        {"name": "shell", "command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]},
    ],
    ids=["codex", "opencode", "codex in a shell", "codex in a shell of words"],
)
def test_a_patch_is_told_hunk_by_hunk_and_file_by_file(tool: dict[str, Any]) -> None:
    name = str(tool["name"])
    arguments = {key: value for key, value in tool.items() if key != "name"}
    a, b, c = after(call("p", name=name, **arguments), result("p", "Success")).changes
    assert (a.path, a.edits, a.line) == ("src/a.go", 2, "+ func sum(items []Item) int {")
    assert (b.path, b.how) == ("src/b.go", "written")
    assert (c.path, c.how) == ("src/c.go", "deleted")


@for_each(
    "name, arguments",
    [
        ("Write", {"file_path": "a.py", "content": "def one():\n    pass\n"}),
        ("write", {"path": "a.py", "content": "def one():\n    pass\n"}),
        ("write_file", {"file_path": "a.py", "content": "def one():\n    pass\n"}),
        ("str_replace_editor", {"command": "create", "path": "a.py", "file_text": "def one():\n  pass"}),
        ("bash", {"command": "cat > a.py <<'EOF'\ndef one():\n    pass\nEOF"}),
    ],
)  # fmt: skip
def test_a_file_that_is_written_is_told_as_such(name: str, arguments: dict[str, str]) -> None:
    change = change_of(call("w", name=name, **arguments), result("w", "ok"))
    assert (change.path, change.edits, change.line) == ("a.py", 1, "")
    assert change.how in {"created", "written"}


def test_shell_commands_delete_and_edit_in_place() -> None:
    state = after(
        *ran("b", "cd /w && rm -f gone.py"),
        *ran("c", "cd /w && sed -i '' 's/one/two/' three.py"),
        *ran("d", 'Remove-Item "C:\\w\\old.py" -Force -ErrorAction SilentlyContinue'),
    )
    told = text(state)
    assert "gone.py (deleted, [v2])" in told
    assert "C:\\w\\old.py (deleted, [v6])" in told
    assert "also: three.py [v4]" in told


@for_each(
    ("command", "told"),
    [
        ("cd /w/e2e && perl -0pi -e 's/a b/c/g' test_env", "also: /w/e2e/test_env [v2]"),
        ("sed -i.bak 's/a.b/c.d/' Makefile", "also: Makefile [v2]"),
        ("cd web && sed -i s/a/b/ a.ts", "also: web/a.ts [v2]"),
        ("cd /w && git -C web rm a.ts", "/w/web/a.ts (deleted, [v2])"),
        ("cd web && true; cd ../api && sed -i s/a/b/ a.ts", "also: a.ts [v2]"),
        ("git ls-files | xargs sed -i s/a/b/", ""),
        ("rm -rf dist", ""),
    ],
)
def test_a_command_names_files_of_the_folder_that_it_runs_in(command: str, told: str) -> None:
    assert text(after(*ran("c", command))).partition("- ")[2] == told


def test_what_the_agent_adds_to_a_commit_was_changed_also_by_others() -> None:
    """By a sub-agent, a generator, a script."""
    state = after(*ran("g", "git add go.mod src/api.go docs *.py && git commit -qm One"))
    assert "- also: go.mod [v2], src/api.go [v2]" in text(state)
    own = after(*edit("a", "x", "y", path="src/api.go"), *edit("b", "x", "y"), before=state)
    assert [(c.path, c.edits) for c in own.changes] == [
        ("go.mod", 0),
        ("src/api.go", 1),
        ("a.py", 1),
    ]
    many = (b for n in range(FILES_MAX) for b in ran(f"g{n}", f"git add {n}.json"))
    assert [c.path for c in after(*many, before=own).changes][-2:] == ["src/api.go", "a.py"]


def test_a_line_that_another_has_changed_since_is_not_told() -> None:
    added = [*edit("a", "x", "y"), *ran("g", "git add a.py")]
    assert change_of(*added).line == "x → y"
    assert change_of(*added, *edit("b", "v", "w"), *ran("h", "git add a.py")).line == "v → w"
    assert change_of(*added, *ran("h", "git commit -qm One; make api; git add a.py")).line == ""


def test_what_is_in_a_folder_that_is_removed_is_gone() -> None:
    made = edit("a", "x", "y", path="/w/lib/a.py"), edit("b", "x", "y", path="/w/Makefile")
    state = after(*made[0], *made[1], *ran("r", "cd /w && rm -r lib Makefile"))
    assert [(change.path, change.how) for change in state.changes] == [("/w/Makefile", "deleted")]


def test_a_file_that_the_agent_made_and_removed_is_not_told() -> None:
    write = [call("w", name="Write", file_path="/w/x.py", content="x = 1"), result("w")]
    assert after(*write, *ran("r", "rm /w/x.py")).changes == ()


def test_a_relative_path_and_the_whole_one_are_the_same_file() -> None:
    change = change_of(
        *edit("a", "x", "y", path="/w/src/a.py"), *edit("b", "v", "w", path="src/a.py")
    )
    assert (change.path, change.edits) == ("/w/src/a.py", 2)


def test_a_relative_path_is_told_apart_from_those_in_the_folder_that_others_share() -> None:
    paths = "/w/src/a.py", "/w/src/b.py", "lib/c.py"
    told = text(after(*(block for path in paths for block in edit(path, "x", "y", path=path))))
    assert "(in /w/src/)" in told
    assert [line.split()[1] for line in told.split("\n")[1:]] == ["a.py", "b.py", "…/lib/c.py"]


@for_each("command", ["git checkout -- a.py", "git restore a.py", "git checkout a.py"])  # fmt: skip
def test_what_git_puts_back_is_gone(command: str) -> None:
    assert after(*edit("a", "x", "y"), *ran("g", command)).changes == ()


def test_many_files_are_bounded_and_counted() -> None:
    state = after(*(b for n in range(FILES_MAX + 3) for b in edit(f"e{n}", "x", "y", path=f"{n}.py")))  # fmt: skip
    assert (len(state.changes), state.others) == (FILES_MAX, 3)
    assert "(changed and not listed: 3)" in text(state)


def test_of_files_of_which_nothing_more_is_known_only_the_newest_are_listed() -> None:
    state = after(
        *(
            b
            for n in range(FILES_MAX // 3 + 4)
            for b in ran(f"w{n}", f"cat > s{n}.txt <<'E'\nhi\nE")
        )
    )
    told = text(fitted(state, 9999, len))
    assert "(changed and not listed: 4)" in told
    assert f"s{FILES_MAX // 3 + 3}.txt" in told
    assert "s3.txt" not in told


@for_each(
    ("command", "old", "path"),
    [
        ("mv src/old.go src/new.go", "src/old.go", "src/new.go"),
        ("cd /w && git mv src/old.go src/new.go", "/w/src/old.go", "/w/src/new.go"),
        ("git mv src/old.go lib/", "src/old.go", "lib/old.go"),
    ],
)
def test_a_file_that_is_moved_keeps_what_was_done_to_it(command: str, old: str, path: str) -> None:
    change = change_of(
        *edit("e", "x = 1", "def total():\n    pass", path="src/old.go"),
        *ran("m", command),
        *edit("f", "y = 1", "z = 2", path=path),
    )
    assert (change.path, change.how, change.edits) == (path, f"moved from {old}", 2)
    assert change.line == "y = 1 → z = 2"


def test_a_file_that_is_moved_into_a_folder_is_there() -> None:
    moved = change_of(
        *edit("e", "x = 1", "y = 1", path="src/old.go"), *ran("m", "mv src/old.go lib")
    )
    assert (moved.path, moved.how) == ("lib/old.go", "moved from src/old.go")


def test_a_file_that_replaces_another_one_is_the_only_one_of_its_name() -> None:
    new = {"name": "Write", "file_path": "new.py", "content": "def b():\n    pass"}
    state = after(
        *edit("a", "x", "y", path="main.py"), *ran("r", "rm main.py"),
        call("w", **new), result("w"), *ran("m", "git mv new.py main.py"),
    )  # fmt: skip
    assert [(c.path, c.how) for c in state.changes] == [("main.py", "written")]


def test_a_file_that_was_deleted_and_is_written_again_exists() -> None:
    change = change_of(*edit("a", "x", "y"), *ran("r", "rm a.py"), *edit("b", "x", "z"))
    assert change.how == ""


@for_each(
    ("command", "left"),
    [
        ("python3 -c \"print(open('/w/data/raw.json').read())\"", 0),
        ("node stats.mjs data/raw.json", 0),
        ("git add data/raw.json", 1),
        ("grep -rn data/raw.json src || rm -f data/raw.json", 1),
    ],
)
def test_a_file_that_was_deleted_and_is_used_again_exists(command: str, left: int) -> None:
    state = after(*ran("r", "rm data/raw.json"))
    assert len(after(*ran("p", command), before=state).changes) == left
    failed = [call("f", name="bash", command=command), result("f", "no", is_error=True)]
    assert len(after(*failed, before=state).changes) == 1


def test_files_that_were_only_written_share_a_line() -> None:
    state = after(*(b for n in range(2) for b in ran(f"w{n}", f"cat > s{n}.txt <<'E'\nhi\nE")))
    assert "- also: s0.txt [v2], s1.txt [v4]" in text(state)


@for_each(
    ("path", "edits"),
    [("/tmp/a.py", 0), ("/private/tmp/claude-501/a.py", 0), ("/tmp/cart/src/a.py", 1)],  # noqa: S108
)
def test_of_folders_for_scratch_files_only_what_is_changed_in_a_clone_is_told(
    path: str, edits: int
) -> None:
    wrote = [call("w", name="Write", file_path=f"{path}.log", content="x = 1"), result("w")]
    assert len(after(*wrote, *edit("a", "x", "y", path=path)).changes) == edits
