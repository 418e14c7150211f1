"""What a shell command shows of a file and writes to files, said only where it is sure."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from render.summary._calls import runs_of
from render.summary._shell import (
    ALL,
    Edit,
    FilePart,
    Script,
    commands_in,
    parsed,
    script_of,
)
from tests._builders import call, view_of
from tests._table import for_each

SHOWN = {
    "cat F": FilePart("F"),
    "cat -n F": FilePart("F"),
    "sed -n '10,20p' a/b.py": FilePart("a/b.py", 10, 11),
    'sed -n "5p" F': FilePart("F", 5, 1),
    "sed -n '5,+3p' F": FilePart("F", 5, 4),
    "sed -n '5,$p' F": FilePart("F", 5, ALL),
    "head F": FilePart("F", 1, 10),
    "head -n 7 F": FilePart("F", 1, 7),
    "head -7 F": FilePart("F", 1, 7),
    "tail -n +7 F": FilePart("F", 7, ALL),
    "tail -20 F": FilePart("F", 0, 20),
    "nl -ba F | sed -n '30,50p'": FilePart("F", 30, 21),
    "cat F | tail -n +11 | head -5": FilePart("F", 11, 5),
    "cd /x && sed -n 1,5p y/../F 2>/dev/null": FilePart("/x/F", 1, 5),
    "set -e\n# what's there\ncd /x; cat F": FilePart("/x/F"),
    "cat 'app/[id].ts'": FilePart("app/[id].ts"),
    "cat F 2>&1 | head -5": FilePart("F", 1, 5),
}


@for_each("command", SHOWN)
def test_a_command_that_prints_a_part_of_a_file_shows_it(command: str) -> None:
    assert parsed(command).parts == (SHOWN[command],)


@for_each(
    "command",
    [
        "cat a b", "cat $F", "cat *.py", 'cat "$(ls)"', "cat `ls`", "cat", "cat -", "cat < F", "cat F > G",
        "echo hi; cat F", "a || cat F", "git show x:F | head", "cat F | grep x", "sed -n 1,5p a\ncat b",
        "for f in a; do cat F; done", "if a; then\ncat F\nfi", "(cat F)", "sed -n '10,20p' F | cat -n",
        "nl F", "cat -b F", "sed -n '/x/p' F", "head -c 9 F", "tail -f F", "set -x; cat F", "cat 'F",
        'cd "$D" && cat F', "cat F & cat G", "cat <<EOF\nx",
    ],
)  # fmt: skip
def test_where_it_is_not_sure_whose_lines_they_are_nothing_is_shown(command: str) -> None:
    assert len(parsed(command).parts) != 1


WRITTEN = {
    "cat > F <<'EOF'\na $b\nc\nEOF": ("F", None, "a $b\nc\n"),
    "cat <<EOF > F\na $b\nc\nEOF\npython F": ("F", None, None),
    "tee F <<'EOF'\na\nEOF": ("F", None, "a\n"),
    "cd /x && cat > F <<'EOF' && make\na\nEOF": ("/x/F", None, "a\n"),
    "make > F 2>&1": ("F", None, None),
    "cd x\napply_patch <<'EOF'\n*** Begin Patch\n*** Update File: F\n-a\n+b\nEOF": (
        "x/F",
        "a\n",
        "b\n",
    ),
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: F\n+a\n*** End Patch": (
        "F",
        None,
        "a\n",
    ),  # the shell warns
}


@for_each("command", WRITTEN)
def test_a_command_that_writes_a_file_says_what(command: str) -> None:
    (edit,) = parsed(command).edits
    assert (edit.file, edit.old, edit.new) == WRITTEN[command]


def test_a_command_that_adds_to_a_file_says_so() -> None:
    edit = Edit(file="F", old=None, new="a\n", is_added=True)
    assert parsed("cat >> F <<'EOF'\na\nEOF").edits == (edit,)


@for_each(
    "command",
    ["make >> F", "make 2> F", "make > /dev/null", "a || cat > F <<'E'\nx\nE", "if a\nthen\ncat > F <<'E'\nx\nE\nfi"],
)  # fmt: skip
def test_what_is_added_thrown_away_or_not_sure_to_run_is_no_writing(command: str) -> None:
    assert parsed(command).edits == ()


def test_a_script_is_told_from_one_that_also_does_something_else() -> None:
    document = "cat > F <<'EOF'\na\nEOF\n"
    assert parsed(document).is_all
    assert parsed("cd x && cat F").is_all
    assert not parsed(f"{document}python F").is_all
    assert not parsed("make > F").is_all


def test_of_several_commands_each_part_is_known_or_none() -> None:
    assert parsed("sed -n 1,5p F; cd /x && head -3 G").parts == (
        FilePart("F", 1, 5),
        FilePart("/x/G", 1, 3),
    )
    for other in ("; make", "; echo x", "; cat H | grep x", " || echo no"):
        assert not parsed(f"sed -n 1,5p F{other}").parts


@for_each(
    "given",
    [
        {"cmd": "cat F", "workdir": "/x"},
        {"command": ["bash", "-lc", "cat F"], "workdir": "/x"},
        {"command": ["cat", "/x/F"]},
    ],
)
def test_a_command_is_read_however_a_harness_gives_it(given: dict[str, Any]) -> None:
    assert script_of(given).parts == (FilePart("/x/F"),)


def test_a_patch_in_a_shell_is_read() -> None:
    script = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: F\n+a\n*** End Patch\nEOF"
    (edit,) = script_of({"command": ["bash", "-lc", script]}).edits
    assert (edit.file, edit.new) == ("F", "a\n")


def test_another_tool_runs_no_script() -> None:
    (run,) = runs_of(view_of(call("a", name="ask", command="cat F")).entries).values()
    assert run.script == Script()


PARTS = st.sampled_from(
    ["cat", " F", " > ", " | ", "\n", ";", " && ", "<<'E'", "<<E", "E", "'", '"', "$(", ")", "\\", "#", "cd /x",
     "sed -n 1,5p", "99999999999", "é", "tail -n +"]
)  # fmt: skip


@given(st.lists(PARTS, max_size=20).map("".join) | st.text())
def test_whatever_a_script_says_it_is_read_without_an_error(script: str) -> None:
    assert isinstance(parsed(script), Script)
    assert isinstance(parsed(f"bash -c {script}"), Script)


def test_here_documents_that_never_end_are_not_searched_for_again_and_again() -> None:
    """Each would be searched for to the end of the script: 25,000 of them took a quarter of a minute."""
    script = "cat <<A\n" * 12_000
    assert commands_in(script)[0].words[0] == "cat"
    assert [command.words for command in commands_in("cat <<A\nx\nA\nls")] == [("cat",), ("ls",)]
