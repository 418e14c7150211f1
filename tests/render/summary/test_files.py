"""What calls change in files, and the numbers that viewers put before lines."""

from blocks import ToolCall
from render.summary._files import changes_of, numbers_in
from tests.render.summary.disk import ran


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
