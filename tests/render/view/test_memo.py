"""The memo of a view's groups: what was found is what would be found, and only what is new is looked at."""

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block
from render.view._view import Entry, Group, GroupMemo
from tests import _builders as make


def group(block: Block) -> Group:
    [made] = make.view_of(block).groups
    return made


GROUPS = [group(make.prompt(text)) for text in "abc"]
LISTS = st.lists(st.sampled_from(GROUPS), max_size=6)


def text_of(group: Group) -> str:
    [entry] = group.entries
    return _said(entry)


def _said(entry: Entry) -> str:
    return str(getattr(entry.block, "text", ""))


@given(st.lists(LISTS, max_size=6))
def test_it_tells_what_looking_would_tell(asked: list[list[Group]]) -> None:
    memo = GroupMemo()
    for groups in asked:
        assert memo.each("text", groups, text_of) == tuple(map(text_of, groups))
        so_far = memo.chained("all", groups, "", lambda before, group: before + text_of(group))
        assert so_far == tuple("".join(map(text_of, groups[: n + 1])) for n in range(len(groups)))


@given(LISTS, LISTS)
def test_what_begins_as_before_is_not_looked_at_again(
    first: list[Group], more: list[Group]
) -> None:
    memo, seen = GroupMemo(), list[Group]()

    def look(group: Group) -> str:
        seen.append(group)
        return text_of(group)

    memo.each("text", first, look)
    memo.each("text", [*first, *more], look)
    assert seen == [*first, *more]
