"""What the edits did to each file: told by names, from the edits themselves, in any client's form."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, FileChange, Progress
from render.summary._edits import FILES_MAX, NAMES_MAX, defined
from render.summary._state import advance, fitted, text
from tests._builders import call, result, view_of
from tests._table import for_each


def after(*items: Any, before: Progress | None = None) -> Progress:
    return advance(before or Progress(), view_of(*items).entries)


def change_of(*items: Block) -> FileChange:
    [change] = after(*items).changes
    return change


def named(change: FileChange, word: str) -> tuple[str, ...]:
    """The names that a change has added, changed or removed."""
    return tuple(name for name, now in change.names.items() if now == word)


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


def test_an_edit_is_told_by_the_definitions_that_it_adds_changes_and_removes() -> None:
    change = change_of(
        *edit(
            "a",
            "def total():\n    return 0\n\ndef gone():\n    pass\n",
            "def total():\n    return 1\n\ndef new():\n    pass\n",
        )
    )
    assert [named(change, word) for word in ("added", "changed", "removed")] == [
        ("new",),
        ("total",),
        ("gone",),
    ]


def test_an_edit_of_nothing_that_has_a_name_is_told_by_a_line_of_it() -> None:
    def line_of(old: str, new: str) -> str:
        return change_of(*edit("a", old, new, path="a.unknown")).line

    assert line_of("x: 1", "import os\nx: 2; y") == "x: 1 → x: 2; y"
    assert line_of("import os\nx(1)", "import os\nx(1)\ny(2)") == "+ y(2)"
    assert line_of("import os\nx(1)", "x(1)") == "- import os"
    long = "the same words before the difference, which are many, "
    assert line_of(f"{long}one; after", f"{long}two; after") == "one → two"


def test_an_edit_of_data_is_told_by_its_keys() -> None:
    change = change_of(*edit("a", '"x": 1,\n"y": 2', '"x": 1,\n"y": 3,\n"z": 4', path="a.json"))
    assert (named(change, "changed"), named(change, "added"), change.line) == (("y",), ("z",), "")
    assert named(change_of(*edit("a", "x: 1", "x: 2", path="a.yml")), "changed") == ("x",)
    assert named(change_of(*edit("a", "", "[tool.x]", path="a.toml")), "added") == ("tool.x",)


def test_what_is_added_and_then_changed_is_added_and_what_is_then_removed_never_was() -> None:
    change = change_of(
        *edit("a", "x", "x\ndef new():\n    return 1\ndef brief():\n    pass"),
        *edit("b", "def new():\n    return 1", "def new():\n    return 2"),
        *edit("c", "def brief():\n    pass", ""),
    )
    assert [named(change, word) for word in ("added", "changed", "removed")] == [("new",), (), ()]
    assert change.edits == 3


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
    assert (a.path, named(a, "added"), named(a, "changed")) == ("src/a.go", ("sum",), ("Total",))
    assert (b.path, b.how, named(b, "added")) == ("src/b.go", "written", ("Item",))
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
def test_a_file_that_is_written_is_told_by_what_it_has(
    name: str, arguments: dict[str, str]
) -> None:
    change = change_of(call("w", name=name, **arguments), result("w", "ok"))
    assert (change.path, named(change, "added"), change.edits) == ("a.py", ("one",), 1)
    assert change.how in {"created", "written"}


def test_shell_commands_delete_and_edit_in_place() -> None:
    state = after(
        *ran("b", "cd /w && rm -f gone.py"),
        *ran("c", "cd /w && sed -i '' 's/one/two/' three.py"),
    )
    told = text(state)
    assert "gone.py (deleted, [v2])" in told
    assert "also: three.py [v4]" in told


def test_a_file_that_the_agent_made_and_removed_is_not_told() -> None:
    write = [call("w", name="Write", file_path="/w/x.py", content="x = 1"), result("w")]
    assert after(*write, *ran("r", "rm /w/x.py")).changes == ()


def test_a_relative_path_and_the_whole_one_are_the_same_file() -> None:
    change = change_of(
        *edit("a", "x", "y", path="/w/src/a.py"), *edit("b", "v", "w", path="src/a.py")
    )
    assert (change.path, change.edits) == ("/w/src/a.py", 2)


@for_each("command", ["git checkout -- a.py", "git restore a.py", "git checkout a.py"])  # fmt: skip
def test_what_git_puts_back_is_gone(command: str) -> None:
    assert after(*edit("a", "x", "y"), *ran("g", command)).changes == ()


@for_each(
    "line, name",
    [
        ("def total(items):", "total"),
        ("    async def total(self) -> int:", "total"),
        ("class Cart(Base):", "Cart"),
        ("func (c *Cart) Total() int {", "Total"),
        ("type Cart struct {", "Cart"),
        ("type Alias Cart", "Alias"),
        ("pub(crate) async fn total<T>(items: &[T]) -> u32 {", "total"),
        ("impl fmt::Display for Cart {", "Cart"),
        ("export default function Total({ items }: Props) {", "Total"),
        ("export const total = (items) => {", "total"),
        ("const onClick = useCallback(() => {", "onClick"),
        ("  async render(width: number): Promise<string[]> {", "render"),
        ("public static int total(List<Item> items) throws IOException {", "total"),
        ("static int total(const item_t *items, int n) {", "total"),
        ('  it("adds up", () => {', '"adds up"'),
        ('\tt.Run("empty", func(t *testing.T) {', '"empty"'),
        ("MAX_ITEMS = 12", "MAX_ITEMS"),
        ("if is_new(cart) {", ""),
        ("\tif string(old) == string(new) {", ""),
        ("return total(items)", ""),
        ("} else {", ""),
        ("go func() {", ""),
        ("total(items)", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_a_definition_is_known_by_the_form_of_its_line(line: str, name: str) -> None:
    assert defined(line, "a.go") == name


def test_a_document_has_headings() -> None:
    assert defined("## Rules of the *house*", "README.md") == "Rules of the *house*"
    assert defined("A class of its own: nothing", "README.md") == ""


def test_many_names_and_many_files_are_bounded_and_counted() -> None:
    body = "\n".join(f"def f{n}():\n    pass" for n in range(NAMES_MAX + 5))
    change = change_of(call("w", name="Write", file_path="a.py", content=body), result("w"))
    assert (next(iter(change.names)), len(change.names), change.more) == ("f5", NAMES_MAX, 5)
    state = after(*(b for n in range(FILES_MAX + 3) for b in edit(f"e{n}", "x", "y", path=f"{n}.py")))  # fmt: skip
    assert (len(state.changes), state.others) == (FILES_MAX, 3)
    assert "(3 files that were changed earlier are not listed)" in text(state)


def test_of_files_of_which_nothing_more_is_known_only_the_newest_are_listed() -> None:
    state = after(
        *(b for n in range(NAMES_MAX + 4) for b in ran(f"w{n}", f"cat > s{n}.txt <<'E'\nhi\nE"))
    )
    told = text(fitted(state, 9999, len))
    assert "(4 files that were changed earlier are not listed)" in told
    assert f"s{NAMES_MAX + 3}.txt" in told
    assert "s3.txt" not in told


@for_each(
    ("command", "path"),
    [
        ("mv src/old.go src/new.go", "src/new.go"),
        ("cd /w && git mv src/old.go src/new.go", "src/new.go"),
        ("git mv src/old.go lib/", "lib/old.go"),
    ],
)
def test_a_file_that_is_moved_keeps_what_was_done_to_it(command: str, path: str) -> None:
    change = change_of(
        *edit("e", "x = 1", "def total():\n    pass", path="src/old.go"),
        *ran("m", command),
        *edit("f", "y = 1", "z = 2", path=path),
    )
    assert (change.path, change.how, change.edits) == (path, "moved from src/old.go", 2)
    assert named(change, "added") == ("total",)


def test_a_file_that_replaces_another_one_is_the_only_one_of_its_name() -> None:
    new = {"name": "Write", "file_path": "new.py", "content": "def b():\n    pass"}
    state = after(
        *edit("a", "x", "y", path="main.py"), *ran("r", "rm main.py"),
        call("w", **new), result("w"), *ran("m", "git mv new.py main.py"),
    )  # fmt: skip
    assert [(c.path, c.how, named(c, "added")) for c in state.changes] == [
        ("main.py", "written", ("b",))
    ]


def test_a_file_that_was_deleted_and_is_written_again_exists() -> None:
    change = change_of(*edit("a", "x", "y"), *ran("r", "rm a.py"), *edit("b", "x", "z"))
    assert change.how == ""


def test_files_that_were_only_written_share_a_line() -> None:
    state = after(*(b for n in range(2) for b in ran(f"w{n}", f"cat > s{n}.txt <<'E'\nhi\nE")))
    assert "- also: s0.txt [v2], s1.txt [v4]" in text(state)


def test_files_of_folders_for_scratch_files_are_not_told() -> None:
    assert after(*edit("a", "x", "y", path="/tmp/a.py")).changes == ()  # noqa: S108 -- a name


@given(st.text(max_size=500), st.sampled_from(("a.py", "a.md")))
def test_any_line_is_taken(line: str, file: str) -> None:
    assert len(defined(line, file)) <= 60
