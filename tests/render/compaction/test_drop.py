"""Drop: whole rounds go, the oldest first and no more than needed; one line says how to find them."""

import attrs
import pytest

from blocks import BlocksHidden, DroppedSpan, ToolCall, ToolResult, UserPrompt
from render import Context, Json, Proposal, View, total_tokens
from render.compaction._ladder import apply_proposals
from render.compaction._ladder_steps import minute_of
from tests import _builders as make
from tests._builders import steady
from tests._table import for_each
from tests.render.compaction.scenes import Scene, scene

ALL = 1_000_000


def within(**policy: object) -> Context:
    return make.context(policy=steady(**policy), can_externalize=True)


def proposed(drawn: Scene, missing: int, *, last_resort: bool = False) -> list[Proposal]:
    ground = drawn.ground(within(), missing=missing, is_last_resort=last_resort)
    return list(ground.proposals("drop"))


def dropped(drawn: Scene, missing: int) -> View:
    return apply_proposals(drawn.view, proposed(drawn, missing), within())


# Which.


@for_each(
    ("picture", "missing"),
    [
        # the oldest first, and just enough
        (
            """
            P  c1 r1   c2 r2   c3 r3   |  c4 r4
            5  5  100  5  100  5  100     5  100
            .  D  D    .  .    .  .       .  .
            """,
            60,
        ),
        (
            """
            P  c1 r1   c2 r2   c3 r3   |  c4 r4
            5  5  100  5  100  5  100     5  100
            .  D  D    D  D    .  .       .  .
            """,
            160,
        ),
        # nothing is missing
        (
            """
            P  c1 r1   |  c2 r2
            5  5  100     5  100
            .  .  .       .  .
            """,
            0,
        ),
        # what the user said, notes and plans stay; what the engine said goes
        (
            """
            P  c1 r1   f  n  p  !  a  |  c2 r2
            5  5  100  5  5  5  60 60    5  100
            .  D  D    .  .  .  D  D     .  .
            """,
            ALL,
        ),
        # what cannot be had again stays, call and all
        (
            """
            P  c1 r1   c2 r2x  c3 r3   |  a
            5  5  100  5  100  5  100     5
            .  D  D    .  .    D  D       .
            """,
            ALL,
        ),
        # of a parallel step, each pair on its own
        (
            """
            P  ( c1 c2 c3 ) r2x  r1  r3   |  a
            5    5  5  5    100  5   100     5
            .    D  .  D    .    D   D       .
            """,
            ALL,
        ),
    ],
)
def test_rounds_before_the_tail_go(picture: str, missing: int) -> None:
    drawn = scene(picture)
    assert drawn.after(proposed(drawn, missing)) == drawn.expected


RARE = """
P  c1 r1   c2 r2x  |  a
5  5  500  5  500     5
.  D  D    D  D       .
"""


def test_as_a_last_resort_even_what_cannot_be_had_again_goes() -> None:
    drawn = scene(RARE)
    assert drawn.after(proposed(drawn, ALL, last_resort=True)) == drawn.expected


def test_what_is_in_the_artifact_store_can_be_had_again() -> None:
    drawn = scene(RARE)
    moved = drawn.ground(within(externalize_tokens=300)).proposals("externalize")
    assert len(moved) == 2
    view = apply_proposals(drawn.view, moved, within())
    ground = drawn.ground(within(), missing=ALL)
    left = type(ground)(view=view, context=within(), protected=6, missing=ALL)
    made = left.proposals("drop")
    assert drawn.after(made) == drawn.expected
    assert all(each.artifact in made[0].replacement for each in moved)


# The line.


def test_neighbouring_rounds_leave_one_line_and_what_stays_between_parts_them() -> None:
    drawn = scene(
        """
        P  c1 r1   c2 r2   f  c3 r3   c4 r4   |  a
        5  5  100  5  100  5  5  100  5  100     5
        """
    )
    made = proposed(drawn, ALL)
    assert [[drawn.words[drawn.blocks.index(b)] for b in blocks_of(drawn, p)] for p in made] == [
        ["c1", "r1", "c2", "r2"],
        ["c3", "r3", "c4", "r4"],
    ]
    shown = make.text_in(make.shown(dropped(drawn, ALL)))
    assert shown.count("[dropped to save space: ") == 2
    first, user, second = (
        shown.index(each.replacement) if each else shown.index(text)
        for each, text in ((made[0], ""), (None, "see src/words.py"), (made[1], ""))
    )
    assert user < first < second


def span_of(proposal: Proposal) -> DroppedSpan:
    assert proposal.entry
    return proposal.entry


def blocks_of(drawn: Scene, proposal: Proposal) -> list[object]:
    return [block for block in drawn.blocks if block.id in proposal.blocks]


@for_each(
    ("tools", "way_back"),
    [
        ((), ""),
        (({"name": "read_timeline"},), "; read_timeline reads it back"),
        (
            ({"name": "mcp__foldline__read_timeline"},),
            "; mcp__foldline__read_timeline reads it back",
        ),
    ],
)
def test_the_line_says_when_what_about_what_and_where(
    tools: tuple[Json, ...], way_back: str
) -> None:
    """And with which tool it is read back, where there is one."""
    view = make.view_of(
        make.prompt("Go."),
        make.call("c1", "t1", "r1", name="grep", pattern="load_config"),
        make.result("c1", "src/config.py: def load_config()"),
        make.call("c2", "t1", "r2", name="bash", command="pytest tests/test_config.py"),
        make.result("c2", "x" * 4000),
        make.said("I have seen load_config.", "t1", "r3"),
        make.said("Done.", "t1", "r4"),
    )
    context = attrs.evolve(within(), tools=tools)
    ground = Scene((), (), view, 6, "").ground(context, missing=ALL)
    [made] = ground.proposals("drop")
    assert made.replacement == (
        "[dropped to save space: t1, 1970-01-12 13:46: 4 blocks (bash 1, grep 1); about "
        "load_config, tests/test_config.py, src/config.py; "
        f"tc:t1.c1.call to tc:t1.c2.result{way_back}]"
    )
    entry = span_of(made)
    assert (entry.first, entry.last, entry.turns) == (2, 5, ("t1",))
    assert entry.paths == ("tc:t1.c1.call", "tc:t1.c2.result")
    assert entry.keywords[0] == "load_config"


def test_keywords_are_few_and_leave_out_what_somebody_hid() -> None:
    names = " ".join(f"module_{n}.py" for n in range(100))
    view = make.view_of(
        make.prompt("Go."), make.call("c1"), make.result("c1", names), make.said("a")
    )
    drawn = Scene((), tuple(e.block for e in view.entries), view, 4, "")
    [made] = proposed(Scene((), drawn.blocks, view, 4, ""), ALL)
    assert len(span_of(made).keywords) == 8
    hidden = Scene(("P", "c1", "r1", "a"), drawn.blocks, view, 4, "")
    [shy] = proposed(hidden.with_hidden("r1", "[hidden]", "requested"), ALL)
    assert span_of(shy).keywords == ()


def test_the_line_says_how_much_it_was_and_which_tools_by_name() -> None:
    drawn = scene(
        """
        P  c2 r2   c1 r1   c1 r1   f  a   !  |  c4 r4
        5  5  100  5  100  5  100  5  60  60    5  100
        """
    )
    tools, others = proposed(drawn, ALL)
    assert span_of(tools).about == "6 blocks (tool_1 2, tool_2 1)"
    assert span_of(others).about == "2 blocks"
    assert span_of(others).keywords == ("src/notice.py", "src/said.py"), "the newest first"
    for made in (tools, others):
        assert made.reason == "the oldest that is left"
        assert (made.first, made.last) == (span_of(made).first, span_of(made).last)
        assert made.turns == span_of(made).turns == ("t1",)


def test_what_is_exactly_enough_is_enough_and_one_token_less_is_not() -> None:
    drawn = scene(
        """
        P  c1 r1   c2 r2   c3 r3   |  c4 r4
        5  5  100  5  100  5  100     5  100
        """
    )
    encoder = within().encoder
    first = encoder.shown(drawn.view.groups[1]).tokens
    for missing, number in ((first, 2), (first + 1, 4)):
        [made] = proposed(drawn, missing)
        assert len(made.blocks) == number
        assert (span_of(made).started_at, span_of(made).ended_at) == (1_000_000.0, 1_000_000.0)


def test_what_is_not_shown_any_more_is_not_dropped_again() -> None:
    """What a text stands for is shown, and may go; what nothing stands for is not."""
    drawn = scene(
        """
        P  c1 r1   c2 r2   |  a
        5  5  100  5  100     5
        .  D  D    .  .       .
        """
    )
    [first, *_] = proposed(drawn, 60)
    assert first.blocks == (drawn["c1"].id, drawn["r1"].id)
    silent = drawn.with_hidden("c1", "", "dropped").with_hidden("r1", "", "dropped")
    gone = attrs.evolve(drawn, view=dropped(drawn, 60))
    for after in (silent, gone):
        [second] = proposed(after, 60)
        assert second.blocks == (drawn["c2"].id, drawn["r2"].id)
    [told] = proposed(drawn.with_hidden("r1", "cleared " * 50, "cleared"), 60)
    assert told.blocks == first.blocks


def test_a_pair_vanishes_as_a_whole_and_the_request_stays_valid() -> None:
    drawn = scene(
        """
        P  ( c1 c2 ) r2x r1   c3 r3   f  |  c4 r4
        5    5  5    100 100  5  100  5     5  100
        """
    )
    after = dropped(drawn, ALL)
    shown = make.shown(after)
    assert shown.violations == ()
    contents = [c for m in shown.messages for c in m["content"]]
    uses = [c["id"] for c in contents if c["type"] == "tool_use"]
    answered = [c["tool_use_id"] for c in contents if c["type"] == "tool_result"]
    assert uses == answered == ["c2", "c4"]


def test_the_tokens_freed_are_those_that_are_missing_afterwards() -> None:
    drawn = scene(RARE)
    [made] = proposed(drawn, ALL, last_resort=True)
    after = apply_proposals(drawn.view, [made], within())
    before = total_tokens(drawn.view, within())
    assert before - total_tokens(after, within()) == pytest.approx(made.tokens_freed, abs=10)


def test_the_log_keeps_what_was_dropped() -> None:
    drawn = scene(RARE)
    after = dropped(drawn, ALL)
    [event] = after.decisions
    assert isinstance(event, BlocksHidden)
    assert event.reason == "dropped"
    kinds = [type(entry.block) for entry in after.entries[:3]]
    assert kinds == [UserPrompt, ToolCall, ToolResult]


def test_the_time_of_a_line_is_the_minute_in_utc() -> None:
    assert minute_of(1763694345.9) == "2025-11-21 03:05"


@for_each("seconds", [-1e18, 1e18, float("nan"), float("inf")])
def test_a_time_that_no_clock_should_say_is_no_error(seconds: float) -> None:
    assert minute_of(seconds) == "?"
