"""What a result shows of files: their lines as they are there, with their numbers, and nothing that a viewer added."""

from typing import Any

from blocks import ToolCall, ToolResult
from render.summary._views import views_of
from tests._table import for_each
from tests.render.summary.disk import FILE, FRAME, code, ran

LONG = "x" * 600


def shown(tool: str, said: str, given: dict[str, Any]) -> dict[str, list[tuple[int, list[str]]]]:
    """By file: number of the first line and the lines of each stretch."""
    call, result = ran(1, tool, said, given)
    assert isinstance(call.block, ToolCall)
    assert isinstance(result.block, ToolResult)
    return {
        file: [(stretch.line, [row.text for row in stretch.rows]) for stretch in stretches]
        for file, stretches in views_of(call.block, result.block, 2)
        if stretches
    }


@for_each(
    ("tool", "said", "given"),
    [
        ("Read", "     7→a = 1\n     8→\n\n<system-reminder>no</system-reminder>", {"file_path": FILE, "offset": 7}),
        ("read", "a = 1\n\n\n[90 more lines in file. Use offset=9 to continue]", {"path": FILE, "offset": 7}),
        ("read", "<path>x</path>\n<content>7: a = 1\n8: \n\n(End of file)\n</content>", {"filePath": FILE, "offset": 7}),
        ("str_replace_editor", "Here's the result:\n     7\ta = 1\n     8\t\n", {"command": "view", "path": FILE, "view_range": [7, 8]}),
        ("exec_command", f"{FRAME}     7\ta = 1\n     8\t\n", {"cmd": f"nl -ba {FILE} | sed -n '7,8p'"}),
        ("bash", "7:a = 1\n8-\n", {"command": f"grep -n -A1 'a =' {FILE}"}),
        ("Grep", f"{FILE}:7:a = 1\n{FILE}-8-", {"pattern": "a =", "path": "src", "-n": True}),
    ],
    ids=["Claude Code", "pi", "opencode", "OpenHands", "nl", "grep", "Grep"],
)  # fmt: skip
def test_a_view_has_the_lines_of_the_file_without_the_numbers(
    tool: str, said: str, given: dict[str, Any]
) -> None:
    ((file, [(line, lines)]),) = shown(tool, said, given).items()
    assert (file, line) == (FILE, 7)
    assert lines in (["a = 1", ""], ["a = 1"])


def test_commands_that_print_parts_of_files_one_after_the_other_show_each() -> None:
    command = f"sed -n 1,2p {FILE}; sed -n 9p {FILE}; echo === && sed -n 5,6p b.py"
    said = "\n".join([*code(1, 2, 9), "===", *code(50, 60)])
    parts = shown("bash", said, {"command": command})
    assert parts[FILE] == [(9, code(9))]
    assert parts["b.py"] == [(5, code(50, 60))]
    assert shown("bash", f"{said}\nmore", {"command": command}) == {}, "which line is whose?"


def test_a_line_that_a_viewer_has_cut_is_not_shown() -> None:
    said = f"     1→a\n     2→{LONG}... [truncated]\n     3→c"
    assert shown("Read", said, {"file_path": FILE})[FILE] == [(1, ["a"]), (3, ["c"])]
    said = f"a\n{LONG}…\nc"
    assert shown("read", said, {"path": FILE})[FILE] == [(1, ["a"]), (3, ["c"])]


def test_of_an_output_with_a_gap_only_the_lines_before_it_are_shown() -> None:
    said = "\n".join([*code(1, 2), "… 40 lines truncated …", *code(43)])
    assert shown("bash", said, {"command": f"cat {FILE}"})[FILE] == [(0, code(1, 2))]


def test_lines_whose_first_may_be_left_out_have_no_number() -> None:
    said = "\n".join(code(1, 2))
    assert shown("bash", said, {"command": f"sed -n '20,40p' {FILE}"})[FILE] == [(0, code(1, 2))]


def test_a_search_without_numbers_shows_runs_of_lines() -> None:
    said = "\n".join([*code(1, 2, 3), "--", *code(7, 8, 9)])
    parts = shown("bash", said, {"command": f"grep -A 2 compute {FILE} | head -20"})
    assert parts[FILE] == [(0, code(1, 2, 3)), (0, code(7, 8, 9))]


@for_each(
    "command",
    [
        f"grep -c compute {FILE}",
        f"grep -o comp {FILE}",
        "grep -r compute src",
        f"grep compute {FILE} | sort",
        f"make; grep -A 3 compute {FILE}",
    ],
    ids=["count", "only", "folder", "sorted", "after"],
)
def test_what_is_not_certainly_a_line_of_one_file_is_not_shown(command: str) -> None:
    assert shown("bash", "\n".join(code(1, 2, 3)), {"command": command}) == {}
