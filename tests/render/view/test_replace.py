"""What stands for a hidden block: its kind, its address, the replacement, and nothing of what it said."""

from typing import Any

from blocks import (
    Block,
    BlocksHidden,
    DroppedSpan,
    Envelope,
    EventId,
    Hidden,
    HideReason,
    ImagePart,
    TextPart,
    ToolCall,
    ToolResult,
    encode_block,
    tag_of,
    text_of,
)
from render import Group, Place, View, commit
from render.view._view import as_shown, stand_in
from tests import _builders as make
from tests._table import for_each

SECRET = "tamarind"  # noqa: S105 -- a word
PARTS = (TextPart(text=SECRET), ImagePart(data="iVBO"))
KINDS: dict[str, Block] = {
    "prompt": make.prompt(SECRET, "t1", *PARTS),
    "followup": make.followup(SECRET),
    "steer": make.steer(SECRET),
    "attachment": make.attachment("name.txt", SECRET),
    "said": make.said(SECRET, response="r"),
    "call": make.call("c", response="r", word=SECRET),
    "result": make.result("c", parts=PARTS, envelope=Envelope(key_fields={"word": SECRET})),
    "note": make.note(SECRET),
    "plan": make.plan(SECRET),
    "notice": make.notice(SECRET),
    "unknown": make.opaque("their.kind", author="user", text=SECRET, value=[SECRET]),
}


@for_each("block", KINDS.values(), ids=KINDS)
@for_each("text", ["[gone]", ""])
def test_it_says_the_replacement_and_nothing_else_and_stays_where_it_was(
    block: Block, text: str
) -> None:
    made = stand_in(block, text)
    assert SECRET not in encode_block(made).decode()
    assert "iVBO" not in encode_block(made).decode()
    assert text in text_of(made)
    assert (made.id, made.turn, tag_of(made)) == (block.id, block.turn, tag_of(block))
    assert stand_in(made, text) == made


def test_a_call_keeps_its_name_and_a_result_how_it_ended() -> None:
    call = stand_in(KINDS["call"], "[gone]")
    assert isinstance(call, ToolCall)
    assert (call.name, call.call_id, call.input) == ("bash", "c", {"hidden": "[gone]"})
    failed = make.result("c", SECRET, is_error=True, envelope=Envelope(outcome="failure"))
    answer = stand_in(failed, "[gone]")
    assert isinstance(answer, ToolResult)
    assert (answer.is_error, answer.envelope.outcome) == (True, "failure")
    assert answer.parts == (TextPart(text="[gone]"),)


def test_thinking_says_nothing_and_a_header_has_nothing_to_hide() -> None:
    assert b"Let me think" not in encode_block(stand_in(make.thought(response="r"), "[gone]"))
    header = make.header()
    assert stand_in(header, "[gone]") is header


# In a round.

ROUND = (
    make.prompt("go"), make.thought(response="r"), make.said("hm", response="r"),
    make.call("a", response="r"), make.call("b", response="r"), make.result("a", "A"),
    make.result("b", "B"), make.steer("and?"),
)  # fmt: skip
SPAN = DroppedSpan(first=4, last=6)


def hiding(
    *versions: int, text: str = "", reason: HideReason = "cleared", span: DroppedSpan | None = None
) -> Group:
    """The round with these hidden; the first of them stands for a span, if there is one."""
    hidden = tuple(
        Hidden(
            block=ROUND[version - 1].id,
            replacement=text if not span or version == versions[0] else "",
            dropped=span if version == versions[0] else None,
        )
        for version in versions
    )
    view: View = make.view_of(*ROUND)
    event = BlocksHidden(id=EventId("h"), at=0.0, hidden=hidden, reason=reason)
    return commit(view, event).groups[-1]


def drawn(group: Group) -> dict[int, Any]:
    """Of each block that is shown: its text, and whether it is said by the user."""
    return {
        e.version: (text_of(e.block), e.place)
        for e in as_shown(group).entries
        if e.place is not Place.SILENT
    }


WHOLE = drawn(make.view_of(*ROUND).groups[-1])


def without(*versions: int) -> dict[int, Any]:
    return {version: shown for version, shown in WHOLE.items() if version not in versions}


def test_nothing_hidden_nothing_changed() -> None:
    group = make.view_of(*ROUND).groups[-1]
    assert as_shown(group).entries == group.entries
    assert sorted(WHOLE) == [2, 3, 4, 5, 6, 7, 8]


@for_each(
    ("versions", "gone"),
    [((3,), (3,)), ((8,), (8,)), ((2,), (2,)), ((4, 6), (4, 6)), ((3, 5, 7), (3, 5, 7))],
)
def test_what_nothing_stands_for_is_not_shown(
    versions: tuple[int, ...], gone: tuple[int, ...]
) -> None:
    assert drawn(hiding(*versions)) == without(*gone)


@for_each(("version", "left"), [(4, "bash\nhidden\n"), (6, "")])
def test_of_a_pair_of_which_one_half_goes_both_stay(version: int, left: str) -> None:
    """A pair is whole or absent."""
    assert drawn(hiding(version)) == {**WHOLE, version: (left, WHOLE[version][1])}


@for_each("version", [3, 6, 8])
def test_what_a_text_stands_for_says_that_in_its_place(version: int) -> None:
    found = drawn(hiding(version, text="[short]"))
    assert found == {**WHOLE, version: ("[short]", WHOLE[version][1])}


def test_thinking_is_verbatim_or_absent() -> None:
    assert drawn(hiding(2, text="[short]")) == without(2)


def test_a_dropped_pair_leaves_one_line_of_the_engines() -> None:
    found = drawn(hiding(4, 6, text="[2 blocks]", reason="dropped", span=SPAN))
    assert found == {**without(4, 6), 4: ("[2 blocks]", Place.USER)}
