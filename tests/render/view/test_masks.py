"""Masks: what hides a block, what stands for it, and what brings it back."""

from msgspec.structs import asdict

from blocks import ArtifactId, AssistantThinking, Block, DroppedSpan, Hidden, HideReason
from render import Place, View, fold
from render.view._fold import LADDER, Mask, rehide, unbind
from render.view._view import Group, place_of
from tests import _builders as make
from tests._table import for_each

HIDDEN = "the word is albatross"
REASONS: list[HideReason] = ["requested", *sorted(LADDER)]


def group_of(block: Block) -> Group:
    return fold(View(), make.log(make.prompt("go"), block)).groups[-1]


def test_notes_and_plans_are_shown_where_the_user_speaks() -> None:
    """They are the assistant's own, but not to be taught as a way of answering."""
    assert place_of(make.note("n")) is place_of(make.plan("p")) is Place.USER
    assert place_of(make.said("s")) is place_of(make.call("c")) is Place.RESPONSE
    assert place_of(make.result("c")) is Place.RESULT
    assert place_of(make.header()) is Place.SILENT


@for_each(("author", "place"), [("user", Place.USER), ("assistant", Place.RESPONSE)])
def test_an_unknown_kind_is_placed_by_its_author_and_only_if_it_says_something(
    author: str, place: Place
) -> None:
    assert place_of(make.opaque("their.kind", author=author, text="hello")) is place
    assert place_of(make.opaque("their.kind", author=author)) is Place.SILENT


@for_each("reason", REASONS)
def test_what_was_hidden_comes_back_as_it_was(reason: HideReason) -> None:
    block = make.said(HIDDEN)
    group = group_of(block)
    span, moved = DroppedSpan(first=2, last=2), ArtifactId("art-1")
    hidden = Hidden(block=block.id, replacement="something", artifact=moved, dropped=span)
    after = rehide(group, {block.id: Mask(hidden, reason)})
    (entry,) = after.entries
    assert (entry.replacement, entry.hidden_as, entry.dropped) == ("something", reason, span)
    assert entry.artifact == ("" if reason == "requested" else moved)
    assert (entry.original == block) == (entry.block != block) == (reason == "requested")
    assert entry.source == block
    again = rehide(after, {block.id: None})
    assert after.is_hidden
    assert not again.is_hidden
    assert asdict(again.entries[0]) == asdict(group.entries[0])


@for_each("later", REASONS)
def test_no_stage_can_read_what_somebody_asked_for_to_be_hidden(later: HideReason) -> None:
    """Whatever hides it once more."""
    block = make.said(HIDDEN)
    group = group_of(block)
    for reason in ("requested", later):
        mask = Mask(Hidden(block=block.id, replacement="something"), reason)
        group = rehide(group, {block.id: mask})
    assert [HIDDEN in str(entry.block) for entry in group.entries] == [False]


def test_what_changes_nothing_is_the_same_group() -> None:
    block = make.said("hello")
    group = group_of(block)
    mask = Mask(Hidden(block=block.id, replacement="x"), "cleared")
    hidden = rehide(group, {block.id: mask})
    assert rehide(group, {make.said("another").id: mask}) is group
    assert rehide(group, {block.id: None}) is group
    assert rehide(hidden, {block.id: mask}) is hidden


# Thinking is bound to what precedes it.


def thoughts() -> Group:
    """One round: versions 2 to 5, the second and the fourth of them thinking."""
    view = make.view_of(
        make.prompt("go"), make.said("hm", response="r"), make.thought(response="r"),
        make.call("a", response="r"), make.thought(response="r"), make.result("a"),
    )  # fmt: skip
    return view.groups[-1]


def unbound(group: Group) -> list[int]:
    return [entry.version for entry in group.entries if entry.unbound]


@for_each(("first", "loose"), [(1, [3, 5]), (2, [3, 5]), (3, [5]), (4, [5]), (5, []), (6, [])])
def test_thinking_behind_a_rewritten_block_is_unbound_and_nothing_else(
    first: int, loose: list[int]
) -> None:
    before = thoughts()
    after = unbind(before, first)
    assert unbound(after) == loose
    assert unbound(before) == []
    assert (after is before) == (not loose)
    assert unbind(after, first) is after
    assert unbound(unbind(after, 1)) == [3, 5]
    assert all(isinstance(e.block, AssistantThinking) for e in after.entries if e.unbound)
    assert [e.block for e in after.entries] == [e.block for e in before.entries]
