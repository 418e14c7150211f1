"""Excerpts show one picture of each file: its lines together, in order, and none that no longer hold."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blocks import (
    Excerpt,
    ToolCall,
)
from render.summary._excerpts import Beside, choose, text_of_excerpts
from render.summary._files import changes_of, numbers_in
from render.summary._reading import Reader
from render.view._group import Entry
from tests._table import for_each
from tests.render.summary.disk import FILE, FRAME, Disk, code, edit, ran, viewed

Excerpts: TypeAlias = tuple[Excerpt, ...]


def grown(earlier: Excerpts, *calls: Sequence[Entry]) -> Excerpts:
    return choose(earlier, [e for call in calls for e in call], Beside(), 100_000, Reader(len))


def text_of(*calls: Sequence[Entry]) -> str:
    return text_of_excerpts(grown((), *calls))


def test_a_line_that_an_edit_replaced_is_not_quoted_from_an_earlier_read() -> None:
    read = ran(1, "Read", viewed(code(*range(40))), {"file_path": FILE})
    text = text_of(read, edit(3, code(7), code(99)))
    assert "value_0006" in text
    assert "value_0007" not in text
    assert "value_0099" in text


def test_an_edit_that_failed_replaced_nothing() -> None:
    read = ran(1, "Read", viewed(code(*range(40))), {"file_path": FILE})
    assert "     8→" + code(7)[0] in text_of(read, edit(3, code(7), code(99), is_error=True))


def test_the_excerpts_of_a_file_stand_together_in_the_order_of_its_lines() -> None:
    lines = code(*range(100))
    late = ran(1, "Read", viewed(lines[60:], 61), {"file_path": FILE, "offset": 61})
    other = ran(
        3, "Bash", "some_test_name is what failed in all_of_it here", {"command": "make test"}
    )
    early = ran(5, "Read", viewed(lines[:40]), {"file_path": FILE, "limit": 40})
    text = text_of(late, other, early, edit(7, code(70), code(700)))
    _, picture = text.split(f"### {FILE}\n")
    assert picture.index("value_0003") < picture.index("value_0065") < picture.index("value_0700")
    assert "some_test_name" not in picture
    assert text.count(f"### {FILE}\n") == 1


def test_what_a_later_block_replaced_stays_forgotten() -> None:
    read = ran(1, "Read", viewed(code(*range(40))), {"file_path": FILE})
    before = grown((), read)
    assert "value_0007" in text_of_excerpts(before)
    after = text_of_excerpts(grown(before, edit(3, code(7), code(99))))
    assert "    8→" not in after
    assert "    9→" in after


def test_a_patch_replaces_what_it_takes_out_of_each_file() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f\n kept\n-out\n+in\n"
        "*** Add File: c.py\n+all of it\n*** Delete File: d.py\n*** End Patch"
    )
    (call, _) = ran(1, "apply_patch", "done", {"input": patch})
    assert isinstance(call.block, ToolCall)
    assert [(c.file, c.old, c.new) for c in changes_of(call.block)] == [
        ("a.py", None, ()),
        ("b.py", ("kept", "out"), ("kept", "in")),
        ("c.py", None, ("all of it",)),
        ("d.py", None, ()),
    ]


def test_numbers_are_those_of_a_viewer_where_they_count_up() -> None:
    assert numbers_in(["  7→a", "  8→b", "a note"], 0) == [7, 8, 0]
    assert numbers_in(["7: a", "9: b"], 0) == [0, 0]
    assert numbers_in(["7\ta"], 7) == [7]


def test_what_a_shell_shows_of_a_file_is_a_part_of_its_picture_with_its_numbers() -> None:
    lines = code(*range(100))
    late = ran(
        1, "exec_command", FRAME + "\n".join(lines[60:80]), {"cmd": f"sed -n '61,80p' {FILE}"}
    )
    early = ran(3, "Read", viewed(lines[:40]), {"file_path": FILE, "limit": 40})
    text = text_of(late, early, edit(5, lines[70:71], code(700)))
    _, picture = text.split(f"### {FILE}\n")
    assert picture.index("value_0003") < picture.index("value_0065") < picture.index("value_0700")
    assert "value_0070" not in picture
    assert "Wall time" not in picture


@for_each(
    ("command", "said"),
    [
        ("cd src && make && cat cart.py", "\n".join(code(1, 2))),
        ("sed -n '1,2p' src/cart.py", "\n".join(code(1, 2, 3))),
        (
            "cat src/cart.py",
            "<returncode>1</returncode>\n<output>\ncat: src/cart.py: no\n</output>",
        ),
    ],
)
def test_what_may_not_be_the_files_is_in_no_picture(command: str, said: str) -> None:
    assert not any(e.file for e in grown((), ran(1, "bash", said, {"command": command})))


def test_behind_a_gap_in_an_output_lines_have_no_numbers() -> None:
    said = "\n".join([*code(1, 2), "… 40 lines truncated …", *code(43)])
    shown = [e for e in grown((), ran(1, "bash", said, {"command": f"cat {FILE}"})) if e.file]
    assert shown
    assert not any(excerpt.line for excerpt in shown)


ACTIONS = (
    *("read", "read_raw", "read_by_shell", "read_end", "write", "write_by_shell", "add_by_shell"),
    *("edit", "insert", "rename", "patch"),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 30), st.integers(0, 12), st.integers(0, 12)),
    max_size=12,
)


def held(excerpts: Excerpts) -> list[str]:
    """The lines that excerpts show as the file's."""
    lines = [line for e in excerpts if e.file for line in e.text.split("\n")]
    return [plain for line in lines if (plain := line.split("→")[-1].strip())]


@given(st.lists(STEPS, min_size=1, max_size=4))
def test_every_line_that_the_picture_of_a_file_shows_is_in_the_file(
    folds: list[list[tuple[str, int, int, int]]],
) -> None:
    disk, excerpts = Disk(code(*range(40))), tuple[Excerpt, ...]()
    for steps in folds:
        done = len(disk.calls)
        for step in steps:
            disk.do(*step)
        excerpts = grown(excerpts, *disk.calls[done:])
        assert not any(excerpt.changed for excerpt in excerpts)
        there = "\n".join(disk.lines)
        for line in held(excerpts):
            assert line in there


HEADING = f"### {FILE} (changed outside)\n"
WRITTEN = ran(1, "Write", "done", {"file_path": FILE, "content": "\n".join(code(*range(9)))})
OTHER = [*code(*range(4)), *code(77), *code(*range(5, 9))]


def looked(version: int, lines: Sequence[str]) -> list[Entry]:
    return ran(version, "Read", viewed(lines), {"file_path": FILE})


def test_a_file_that_is_not_what_the_agent_wrote_says_so_once() -> None:
    text = text_of(WRITTEN, looked(3, OTHER))
    assert text.count(HEADING) == 1
    assert text.count("changed outside") == 1
    assert HEADING in text_of_excerpts(grown(grown((), WRITTEN, looked(3, OTHER))))


def test_a_part_of_a_file_that_is_not_what_an_edit_wrote_there_is_noticed() -> None:
    changed = [*code(60, 61), *OTHER, *code(62)]
    assert HEADING in text_of(edit(1, code(5), code(*range(9))), looked(3, changed))


@for_each(
    "between",
    [
        looked(3, code(*range(9))),
        looked(3, [*code(50), *code(*range(9)), *code(51)]),
        looked(3, OTHER[1:]),
        looked(3, OTHER[:6]),
        [*edit(3, code(4), code(77)), *looked(5, OTHER)],
        [*ran(3, "Bash", "", {"command": "sed -i s/4/77/ src/cart.py"}), *looked(5, OTHER)],
        [*ran(3, "insert", "", {"into": FILE, "text": "x"}), *looked(5, OTHER)],
        [*ran(3, "Write", "", {"file_path": FILE, "content": "\n".join(OTHER)}), *looked(5, OTHER)],
    ],
    ids=["same", "moved", "no first", "no last", "edited", "command", "unknown", "written"],
)  # fmt: skip
def test_where_it_is_not_sure_nothing_is_said_of_changes_outside(between: list[Entry]) -> None:
    assert "changed outside" not in text_of(WRITTEN, between)


def test_a_read_that_was_asked_for_before_a_write_was_done_says_nothing_of_it() -> None:
    (call, result), (read, shown) = WRITTEN, looked(2, OTHER)
    late = replace(result, version=3), replace(shown, version=4)
    assert "changed outside" not in text_of([call, read, *late])


NAMES = ("old_string", "new_string", "path", "input", "content", "edits", "offset", "view_range")
ANYTHING = st.recursive(
    st.text() | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
)


@given(st.dictionaries(st.sampled_from(NAMES), ANYTHING))
def test_whatever_a_call_was_given_excerpts_are_chosen(given: dict[str, Any]) -> None:
    for name in ("Edit", "apply_patch", "Read", "str_replace_editor"):
        grown((), ran(1, name, "1→a\n2→b\n-1: c", given))
