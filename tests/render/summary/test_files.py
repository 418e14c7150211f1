"""What calls show of files and do to them: their lines as they are there, and nothing that a viewer added."""

from typing import Any

from render.summary._calls import edits_of, numbered_lines, runs_of, view_of
from tests._table import for_each
from tests.render.summary.disk import FILE, FRAME, code, ran

LONG = "x" * 600


TRUNCATED = (
    "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 7-7 of 90 total lines.\n"
    "Action: To read more of the file, use 'offset'.\n\n--- FILE CONTENT (truncated) ---\n"
)


def shown(tool: str, said: str, given: dict[str, Any]) -> list[tuple[int, list[str]]]:
    """Of the file that is shown, the number of the first line and the lines of each stretch."""
    (run,) = runs_of(ran(1, tool, said, given)).values()
    file, stretches = view_of(run) or (FILE, [])
    assert file == FILE
    return [(stretch.line, [row.text for row in stretch.rows]) for stretch in stretches]


@for_each(
    ("tool", "said", "given"),
    [
        ("Read", "     7→a = 1\n     8→\n\n<system-reminder>no</system-reminder>", {"file_path": FILE, "offset": 7}),
        ("read", "a = 1\n\n\n[90 more lines in file. Use offset=9 to continue]", {"path": FILE, "offset": 7}),
        ("read", "<path>x</path>\n<content>6: x\n7: a = 1\n8: \n\n(End of file)\n</content>", {"filePath": FILE, "offset": 6}),
        ("read_file", f"{TRUNCATED}a = 1\n", {"file_path": FILE, "offset": 6, "limit": 1}),
        ("str_replace_editor", "Here's the result:\n     7\ta = 1\n     8\t\n", {"command": "view", "path": FILE, "view_range": [7, 8]}),
        ("view", "7. a = 1\n8. ", {"path": FILE, "view_range": [7, 8]}),
        ("exec_command", f"{FRAME}     7\ta = 1\n     8\t\n", {"cmd": f"nl -ba {FILE} | sed -n '7,8p'"}),
    ],
    ids=["Claude Code", "pi", "opencode", "Gemini CLI", "OpenHands", "Copilot", "nl"],
)  # fmt: skip
def test_a_view_has_the_lines_of_the_file_without_the_numbers(
    tool: str, said: str, given: dict[str, Any]
) -> None:
    ((line, lines),) = shown(tool, said, given)
    assert line == 7
    assert lines in (["a = 1", ""], ["a = 1"])


def test_the_points_of_a_list_in_a_file_are_no_numbers_of_lines() -> None:
    said = "Steps:\n1. a\n2. b\n\n1. c"
    assert shown("read", said, {"path": FILE}) == [(1, said.split("\n"))]


@for_each(
    "said",
    [
        "File unchanged since last read. The content from the earlier Read tool_result is still current.",
        "<system-reminder>Warning: the file exists but is shorter than the provided offset.</system-reminder>",
    ],
)
def test_what_a_viewer_says_instead_of_lines_is_no_line(said: str) -> None:
    assert shown("Read", said, {"file_path": FILE}) == []


def test_a_line_that_a_viewer_has_cut_is_not_shown() -> None:
    said = f"     1→a\n     2→{LONG}... [truncated]\n     3→c"
    assert shown("Read", said, {"file_path": FILE}) == [(1, ["a"]), (3, ["c"])]
    said = f"a\n{LONG}…\nc"
    assert shown("read", said, {"path": FILE}) == [(1, ["a"]), (3, ["c"])]


@for_each(
    ("command", "said"),
    [
        (f"cat {FILE}", "\n".join(["… 40 lines truncated …", *code(43)])),
        (f"cat {FILE}", "<persisted-output>\nOutput too large (9KB). Full output saved to: /x\n\nPreview:\na\n...\n</persisted-output>"),
        (f"sed -n '20,40p' {FILE}", "\n".join(code(1, 2))),
        (f"tail -n 2 {FILE}", "\n".join(code(1, 2))),
        (f"cd src && make && cat {FILE}", "\n".join(code(1, 2))),
        (f"sed -n '1,2p' {FILE}", "\n".join(code(1, 2, 3))),
        (f"cat {FILE}", f"<returncode>1</returncode>\n<output>\ncat: {FILE}: no\n</output>"),
        (f"grep -A 2 compute {FILE}", "\n".join(code(1, 2, 3))),
    ],
    ids=["gap", "preview", "fewer", "end", "other output", "more", "failed", "search"],
)  # fmt: skip
def test_what_are_not_certainly_lines_with_a_known_number_is_not_shown(
    command: str, said: str
) -> None:
    assert shown("bash", said, {"command": command}) == []


@for_each(
    "gap",
    ["… 40 lines truncated …", "[... omitted 40 of 44 lines ...]", "a = 3…12 tokens truncated…4"],
)
def test_of_a_file_that_is_cut_in_its_middle_the_beginning_is_shown(gap: str) -> None:
    """The line before the gap may be cut, and the numbers behind it are not known."""
    said = "\n".join([*code(1, 2, 3), gap, *code(43)])
    assert shown("bash", said, {"command": f"cat {FILE}"}) == [(1, code(1, 2))]


def test_numbers_are_those_of_a_viewer_where_they_count_up() -> None:
    assert numbered_lines(["  7→a", "  8→b", "a note"], 0, is_read=True) == [(7, "a"), (8, "b")]
    assert numbered_lines(["7: a", "9: b"], 0, is_read=True) == []
    assert numbered_lines(["7\ta"], 7, is_read=False) == [(7, "a")]


def test_a_patch_replaces_what_it_takes_out_of_each_file() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f\n kept\n-out\n+in\n"
        "*** Add File: c.py\n+all of it\n*** Delete File: d.py\n*** End Patch"
    )
    (run,) = runs_of(ran(1, "apply_patch", "done", {"input": patch})).values()
    assert [(c.file, c.old, c.new) for c in edits_of(run)] == [
        ("a.py", None, ""),
        ("b.py", "kept\nout\n", "kept\nin\n"),
        ("c.py", None, "all of it\n"),
        ("d.py", None, ""),
    ]
