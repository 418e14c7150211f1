"""Paths: how a block is named, derived and never stored."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    Block,
    BlockId,
    Digest,
    Naming,
    RangeSummary,
    Sources,
    StructuredSummary,
    TurnId,
    path_of,
    path_stem,
)
from blocks._naming import GENERATIONS_MAX
from tests import _builders as make
from tests._table import for_each

SUMMARY = RangeSummary(
    id=BlockId("s"), turn=TurnId("t1"), summary=StructuredSummary(), digest=Digest()
)

MET = [
    block
    for turn in ("t1", "t2", "a", "a.2")
    for block in (
        make.prompt("x", turn),
        make.said("x", turn),
        make.call("toolu_1", turn),
        make.result("toolu_1", turn=turn),
        make.attachment("b", "x", turn),
        make.attachment("b.2", "x", turn),
    )
]
"""Blocks of turns that are counted, named, and never counted."""


@for_each(
    ("block", "path"),
    [
        (make.header(), "ar:t1.turn.header"),
        (make.prompt("x"), "ar:t1.user.prompt"),
        (make.steer("x"), "ar:t1.user.steer"),
        (make.followup("x"), "ar:t1.user.followup"),
        (make.said("x"), "ar:t1.assistant.completion"),
        (make.thought(), "ar:t1.assistant.thinking"),
        (make.note("x"), "ar:t1.react.note"),
        (make.plan("x"), "ar:t1.react.plan"),
        (make.notice("x"), "ar:t1.system.message"),
        (make.call("toolu_1"), "tc:t1.toolu_1.call"),
        (make.result("toolu_1"), "tc:t1.toolu_1.result"),
        (make.attachment("a b.txt", "x"), "fi:t1.a b.txt"),
        (make.opaque("their.kind"), "ar:t1.their.kind"),
        (SUMMARY, "su:t1.conv.range.summary"),
    ],
)
def test_each_kind_has_its_path(block: Block, path: str) -> None:
    assert path_stem(block) == path
    assert path_of(block) == path
    assert path_of(block, 2) == f"{path}.2"


@given(st.lists(st.sampled_from(MET), max_size=12), st.lists(st.sampled_from(MET), max_size=4))
def test_blocks_whose_paths_nobody_asks_for_count_as_well(
    before: Sequence[Block], after: Sequence[Block]
) -> None:
    one, other = Naming(), Naming()
    for version, block in enumerate(before, 1):
        one.path(block, version)
    other.skip(enumerate(before, 1))
    kept = list(enumerate(after, len(before) + 1))
    assert other.cut(kept) == one.cut(kept)
    assert other.named() == one.named()
    assert [other.path(b, v) for v, b in kept] == [one.path(b, v) for v, b in kept]


# Of foreign ids a filter remembers thousands, none wrongly as unknown, in little room.


@given(st.lists(st.text(), max_size=40), st.text())
def test_what_was_added_is_there_also_when_it_was_written_and_read(
    names: list[str], other: str
) -> None:
    sources = Sources()
    for name in names:
        sources = Sources(sources.encoded())
        sources.add([name])
    again = Sources(sources.encoded())
    assert all(name in again for name in names)
    assert again.encoded() == sources.encoded()
    if not names:
        assert other not in again


def test_thousands_are_remembered_and_few_others_seem_to_be() -> None:
    sources = Sources()
    sources.add(f"msg_{number}" for number in range(20_000))
    assert all(f"msg_{number}" in sources for number in range(20_000 - 3_840, 20_000))
    assert sum(f"other_{number}" in sources for number in range(2_000)) < 100
    assert len(sources.encoded()) < GENERATIONS_MAX * 620


@given(st.text())
def test_what_is_no_filter_is_an_empty_one(text: str) -> None:
    sources = Sources(text)
    sources.add(["msg_1"])
    assert "msg_1" in Sources(sources.encoded())
