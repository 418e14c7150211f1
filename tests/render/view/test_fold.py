"""The fold: events become the same view however they come, one by one, in pieces or all at once."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from blocks import (
    BlocksHidden,
    BlocksRestored,
    EventId,
    Hidden,
    HideReason,
    ImagePart,
    LogWindow,
    OpaqueEvent,
    RequestRendered,
)
from render import View, commit, fold, open_view
from render.view._fold import LADDER
from tests import _builders as make
from tests._table import for_each
from tests.render.compaction.drawings import drawn
from tests.render.compaction.talk import turns

LINES = [
    "P c1 r1 c2 r2 a P a",
    "H P (t a c1 c2) r2 r1 s (a c3) r3 n f a",
    "P a c1 P r1 a ! s",
]


def whole(view: View) -> list[object]:
    """All that is compared of a view; entries and groups are compared by what they hold."""
    groups = [(group.round, [asdict(entry) for entry in group.entries]) for group in view.groups]
    facts = [view.bound, view.pictured, view.thought, view.rewritten]
    return [view.version, view.state, view.turn, *facts, groups]


@for_each("line", LINES)
def test_a_log_in_two_pieces_is_the_log(line: str) -> None:
    view = drawn(line).view
    events = view.events_since_cut
    for piece in range(len(events) + 1):
        again = fold(fold(View(), events[:piece]), events[piece:])
        assert whole(again) == whole(view)


@given(st.lists(st.integers(0, 11), max_size=12))
def test_hidden_and_restored_in_any_order_one_by_one_or_at_once(chosen: list[int]) -> None:
    """Of two that concern one block the later counts."""
    blocks = [block for block in turns(2) if block.id][:12]
    view = make.view_of(*blocks)
    events = [
        BlocksHidden(
            id=EventId(f"h{number}"),
            at=0.0,
            hidden=(Hidden(block=blocks[at % len(blocks)].id, replacement="gone"),),
            reason="requested",
        )
        if number % 3
        else BlocksRestored(id=EventId(f"r{number}"), at=0.0, blocks=(blocks[at % len(blocks)].id,))
        for number, at in enumerate(chosen)
    ]
    at_once = commit(view, *events)
    for event in events:
        view = commit(view, event)
    reopened = open_view(LogWindow(version=view.version, events=view.events_since_cut))
    assert whole(view) == whole(at_once) == whole(reopened)


def test_a_view_knows_whether_there_are_pictures_and_thinking_at_all() -> None:
    """What there is none of need not be looked for."""
    view = make.view_of(*turns(2))
    assert (view.pictured, view.thought) == (0, 0)
    seen = make.view_of(make.prompt("go"), make.result("a", parts=(ImagePart(data="aGk="),)))
    assert (seen.pictured, seen.thought) == (2, 0)
    assert drawn("P a t a c1 t c2").view.thought == 6


def test_an_event_of_another_version_of_this_library_changes_nothing_that_is_shown() -> None:
    view = make.view_of(*turns(2))
    after = commit(view, OpaqueEvent("their.event", {"id": "x", "at": 1.0}))
    assert after.version == view.version + 1
    assert after.groups == view.groups


def test_an_empty_window_is_an_empty_view() -> None:
    assert open_view(LogWindow(version=0)) == View()


@for_each(
    ("reason", "redacted", "counts"),
    [
        *((reason, False, True) for reason in sorted(LADDER)),
        *((reason, True, False) for reason in sorted(LADDER)),
        *((reason, False, False) for reason in ("requested", "expired", "clipped", "unsigned")),
    ],
)
def test_the_view_knows_when_a_rung_hid_something_last(
    reason: HideReason,
    redacted: bool,  # noqa: FBT001
    counts: bool,  # noqa: FBT001
) -> None:
    """What is only told anew, because it had quoted what is hidden since, is no compaction."""
    block = make.said("hello")
    event = BlocksHidden(
        id=EventId("h"),
        at=0.0,
        hidden=(Hidden(block=block.id, replacement="[short]"),),
        reason=reason,
        redacted=redacted,
    )
    view = make.view_of(make.prompt("go"), block, event, make.said("on", response="r"))
    assert view.compacted == (3 if counts else 0)


@for_each(("rewritten", "unbound"), [(True, [4, 5]), (False, [])])
def test_what_answers_a_request_that_showed_something_else_is_bound_to_nothing(
    rewritten: bool,  # noqa: FBT001
    unbound: list[int],
) -> None:
    """In a log that does not say what was sent. Only what the model said: the rest was said to nobody."""
    first = make.prompt("go")
    sent = RequestRendered(id=EventId("s"), at=0.0, content_hash="", tokens=0, shown=1)
    hidden = (Hidden(block=first.id, replacement="[gone]"),) if rewritten else ()
    said = (make.thought(response="r"), make.call("a", response="r"))
    hide = BlocksHidden(id=EventId("h"), at=0.0, hidden=hidden, reason="requested")
    view = make.view_of(first, sent, hide, *said, make.result("a"), make.steer("and?"))
    assert [entry.version for entry in view.entries if entry.unbound] == unbound
