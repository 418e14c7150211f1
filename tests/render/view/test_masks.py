"""What is bound to what precedes it comes loose when that is no longer shown as it was."""

import pytest

from blocks import AssistantThinking
from render import Group
from render.view._masks import unbind
from tests import _builders as make


def group() -> Group:
    """One round: versions 2 to 5, the second and the fourth of them thinking."""
    view = make.view_of(
        make.prompt("go"), make.said("hm", response="r"), make.thought(response="r"),
        make.call("a", response="r"), make.thought(response="r"), make.result("a"),
    )  # fmt: skip
    return view.groups[-1]


def unbound(group: Group) -> list[int]:
    return [entry.version for entry in group.entries if entry.unbound]


@pytest.mark.parametrize(
    ("first", "loose"), [(1, [3, 5]), (2, [3, 5]), (3, [5]), (4, [5]), (5, []), (6, [])]
)
def test_thinking_behind_a_rewritten_block_is_unbound_and_nothing_else(
    first: int, loose: list[int]
) -> None:
    before = group()
    after = unbind(before, first)
    assert unbound(after) == loose
    assert unbound(before) == []
    assert (after is before) == (not loose)
    assert unbind(after, first) is after
    assert unbound(unbind(after, 1)) == [3, 5]
    assert all(isinstance(e.block, AssistantThinking) for e in after.entries if e.unbound)
    assert [e.block for e in after.entries] == [e.block for e in before.entries]
