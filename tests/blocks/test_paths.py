"""Paths: how a block is named, derived and never stored."""

import pytest

from blocks import (
    Block,
    BlockId,
    Digest,
    RangeSummary,
    StructuredSummary,
    TurnId,
    path_of,
    path_stem,
)
from tests import _builders as make

SUMMARY = RangeSummary(
    id=BlockId("s"), turn=TurnId("t1"), summary=StructuredSummary(), digest=Digest()
)


@pytest.mark.parametrize(
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
