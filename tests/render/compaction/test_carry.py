"""What outlives a cut: notes and the latest plan byte for byte, the user's words within bounds."""

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from blocks import Block, ImagePart, TextPart, text_of
from render import Policy, View, apply_range, extractive, fold, range_before_tail
from render.compaction._head import (
    HEAD_CHARACTERS,
    HEAD_TOKENS,
    LABEL_TOKENS,
    LEFT_OUT_RATIO,
    _ends,
    _limits,
)
from tests import _builders as make
from tests._table import for_each


def compacted(view: View, **changes: Any) -> View:
    """Everything but the last round folded, whatever it gains."""
    wide = make.context(
        **{"policy": make.steady(gain_min=0.0, user_ratio=0.1), "limit": 20_000, **changes}
    )
    found = range_before_tail(view, wide, "forced", 0.0)
    assert found is not None
    after = apply_range(view, found, extractive(found), wide)
    assert after.compaction is not view.compaction, after.decisions
    return after


def filler(turn: str = "t1") -> list[Block]:
    return [make.call("f", turn), make.result("f", "filler " * 4000, turn), make.said("done", turn)]


def carried(view: View) -> list[str]:
    assert view.compaction
    return [entry.path for entry in view.compaction.head.entries[:-1]]


def texts(view: View) -> str:
    return make.text_in(make.shown(view))


def test_notes_are_carried_byte_for_byte() -> None:
    odd = "  keep\tthis \n\n exactly: </summary> é\0 \n"
    after = compacted(make.view_of(make.prompt("go"), make.note(odd), *filler()))
    assert odd in [text for _, text in make.quotations(texts(after), "note")]


@for_each(
    "refusal",
    [
        (
            "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the"
            " user said:\n"
        ),
        "The user rejected permission to use this specific tool call with the following feedback: ",
    ],
    ids=["Claude Code", "opencode"],
)
def test_why_the_user_refused_a_call_is_the_users_word(refusal: str) -> None:
    words = "no, I did not say commit anything"
    refusal += words
    plain = "The user doesn't want to proceed with this tool use. STOP what you are doing."
    refused: list[Block] = [
        *(make.call("a"), make.result("a", refusal, is_error=True)),
        *(make.call("b"), make.result("b", plain, is_error=True)),
        *(make.call("c"), make.result("c", f"grep: {refusal}")),
    ]
    after = compacted(make.view_of(make.prompt("go"), *refused, *filler()))
    assert carried(after) == ["ar:t1.user.prompt", "tc:t1.a.result"]
    assert words in texts(after)


def test_of_plans_the_latest_is_carried() -> None:
    plans = [make.plan(f"plan number {n}") for n in range(3)]
    after = compacted(make.view_of(make.prompt("go"), *plans, *filler()))
    assert carried(after) == ["ar:t1.user.prompt", "ar:t1.react.plan.3"]


def test_no_plan_is_carried_when_a_newer_one_is_kept() -> None:
    view = make.view_of(make.prompt("go"), make.plan("old"), *filler(), make.plan("new"))
    after = compacted(view)
    assert carried(after) == ["ar:t1.user.prompt"]
    assert "new" in texts(after)


def test_what_the_user_said_is_carried_in_the_order_of_the_log() -> None:
    view = make.view_of(
        make.prompt("first", "t1"), make.note("n", "t1"), make.steer("second", "t1"),
        make.followup("third", "t1"), *filler(), make.prompt("fourth", "t2"), *filler("t2"),
    )  # fmt: skip
    assert carried(compacted(view)) == [
        "ar:t1.user.prompt", "ar:t1.react.note", "ar:t1.user.steer", "ar:t1.user.followup",
        "ar:t2.user.prompt",
    ]  # fmt: skip


def test_a_long_text_is_cut_with_a_marker_and_its_path() -> None:
    long = "Please consider: " + "this and that, " * 3000
    after = compacted(make.view_of(make.prompt(long), *filler()))
    text = texts(after)
    assert "Please consider: " in text
    assert "the whole text is at ar:t1.user.prompt" in text
    assert long not in text


def test_a_long_part_of_a_prompt_is_bounded_too() -> None:
    view = make.view_of(make.prompt("Read this:", "t1", TextPart(text="x" * 60_000)), *filler())
    after = compacted(view)
    assert len(texts(after)) < 20_000


def test_pictures_are_not_carried_but_named() -> None:
    pictures = [ImagePart(data="aGk=")] * 40
    view = make.view_of(make.prompt("Look:", "t1", *pictures), *filler())
    after = make.shown(compacted(view))
    assert '"image"' not in str(after.messages[0]["content"])
    assert "Look:\n[image]" in make.text_in(after)


def test_all_texts_together_are_bounded_and_the_first_and_newest_keep_longest() -> None:
    blocks: list[Block] = []
    for n in range(40):
        turn = f"t{n}"
        blocks += [make.prompt(f"prompt {n}: " + "word " * 300, turn), *filler(turn)]
    after = compacted(make.view_of(*blocks), limit=20_000)
    assert after.compaction
    said = [e for e in after.compaction.head.entries[:-1] if e.path.endswith("user.prompt")]
    shown = [entry.replacement or str(getattr(entry.block, "text", "")) for entry in said]
    assert sum(make.CharCounter().count(text) for text in shown) <= LEFT_OUT_RATIO * 0.1 * 20_000
    assert said[0].path == "ar:t0.user.prompt"
    assert said[-1].path == "ar:t39.user.prompt"
    cut = {make.CharCounter().count(e.replacement) for e in said[1:-1] if e.replacement}
    assert make.CharCounter().count(shown[0]) > 2 * max(cut), "the task keeps most"


def test_the_original_task_is_the_last_to_go() -> None:
    """Even where there is room for one text only."""
    blocks = [make.prompt("the original task " * 20, "t1"), *filler("t1")]
    blocks += [make.prompt("something else " * 20, "t2"), *filler("t2")]
    policy = make.steady(gain_min=0.0, user_ratio=0.03)
    after = compacted(make.view_of(*blocks), limit=1500, policy=policy)
    assert carried(after) == ["ar:t1.user.prompt"]
    assert "the original task" in texts(after)


def test_texts_give_way_one_after_the_other_and_only_as_far_as_they_must() -> None:
    """Pasted material first, in the texts between before the newest and the task; then the texts between are cut,
    oldest first, then the newest, then the task; beyond several times the share they are cut to their beginning and
    left out."""
    sizes, small = [1000, 600, 600, 500], [400, 300, 600, 200]
    seen: list[list[int]] = []
    for share in range(3000, 0, -1):
        limits = _limits(sizes, small, share)
        fits = costs(limits) <= share
        assert fits or costs(limits) <= int(LEFT_OUT_RATIO * share) or sum(map(bool, limits)) == 1
        if not seen or limits != seen[-1]:
            seen.append(limits)
    assert seen[:4] == [
        [1000, 600, 600, 500],
        [1000, 300, 600, 500],
        [1000, 300, 600, 200],
        [400, 300, 600, 200],
    ]
    assert [400, 110, 110, 200] in seen
    assert seen.index([400, 110, 110, 200]) < min(n for n, each in enumerate(seen) if each[0] < 400)
    assert seen[-1][1:] == [0, 0, 0]
    assert seen[-1][0]


def costs(limits: Sequence[int]) -> int:
    kept = [tokens for tokens in limits if tokens]
    return sum(kept) + LABEL_TOKENS * len(kept)


@settings(max_examples=10)
@given(st.lists(st.integers(0, 9000), max_size=30))
@example([9000] * 30)
def test_how_a_text_of_the_user_begins_stands_in_every_request(lengths: Sequence[int]) -> None:
    """The first 300 characters of each, however long they are and however often they were folded, as long as
    their beginnings fit into several times the share, besides the first and the newest."""
    share = 0.1 * 20_000
    assert LEFT_OUT_RATIO * share >= 30 * (HEAD_TOKENS + LABEL_TOKENS) + 2 * (800 + LABEL_TOKENS)
    policy = make.steady(gain_min=0.0, user_ratio=0.1, page_tokens=0)
    said = [f"No. {number}: " + "x y z " * (length // 6) for number, length in enumerate(lengths)]
    view = make.view_of(make.prompt("the task " * 500), *filler())
    for at in range(0, len(said), 8):
        turn = f"t{at}"
        view = make.grown(view, *(make.steer(t, turn) for t in said[at : at + 8]), *filler(turn))
        view = compacted(view, policy=policy)
        known = texts(view)
        assert all(text[:HEAD_CHARACTERS] in known for text in said[: at + 8])


def test_in_a_small_window_short_words_are_not_left_out_for_want_of_a_share() -> None:
    """Fifty short prompts within their share: all of them stay, whole."""
    sizes = [60] * 50
    limits = _limits(sizes, sizes, int(2 * Policy().user_ratio * 20_000))
    assert limits == sizes


@given(st.text("ab \n", max_size=2000), st.integers(1, 219))
def test_a_cut_text_begins_as_it_began(text: str, limit: int) -> None:
    text = "x" * HEAD_CHARACTERS + text
    short = _ends(text, len(text), limit, "p", make.context())
    assert short.startswith(text[:HEAD_CHARACTERS])


def test_a_cut_text_keeps_its_beginning_and_a_long_one_its_end_as_well() -> None:
    """In between, where little is left, a few sentences; of what may be long, head and tail."""
    words = " ".join(f"w{n}" for n in range(3000))
    blocks: list[Block] = []
    for n in range(5):
        blocks += [make.prompt(f"prompt {n}: {words}", f"t{n}"), *filler(f"t{n}")]
    after = compacted(make.view_of(*blocks))
    assert after.compaction
    first, *between, newest = after.compaction.event.carried
    assert between
    for item in (first, newest):
        assert item.clipped.endswith("w2999")
        assert make.CharCounter().count(item.clipped) <= 1000
    for item in between:
        assert text_of(item.block).startswith(item.clipped.split("\n[…")[0])
        assert 300 < len(item.clipped.split("\n[…")[0]) < 500


def test_a_cut_text_is_not_cut_again_while_there_is_room() -> None:
    view = make.view_of(make.prompt("Please consider: " + "this and that, " * 3000), *filler())
    seen: set[str] = set()
    for n in range(2, 6):
        view = compacted(view)
        assert view.compaction
        seen.add(view.compaction.event.carried[0].clipped)
        view = make.grown(view, make.prompt("and?", f"t{n}"), *filler(f"t{n}"))
    assert len(seen) == 1


def test_a_text_is_cut_from_the_original_not_from_an_earlier_cut() -> None:
    long = "Please consider: " + "this and that, " * 3000
    one = compacted(make.view_of(make.prompt(long), *filler()))
    more = [make.prompt("and?", "t2"), *filler("t2")]
    grown = fold(one.settled(), enumerate((make.appended(b) for b in more), one.version + 1))
    two = compacted(grown)
    assert texts(two).count("cut here") == 1
    assert f"{make.CharCounter().count(long)} tokens in all" in texts(two)


@given(st.lists(st.sampled_from((0, 1, 30, 500, 5000)), min_size=1, max_size=12), st.integers(1, 4))
def test_bounds_hold_for_any_sizes(sizes: Sequence[int], thousands: int) -> None:
    share = 100 * thousands
    limits = _limits(sizes, sizes, share)
    assert all(0 <= found <= size for found, size in zip(limits, sizes, strict=True))
    fits = costs(limits) <= LEFT_OUT_RATIO * share
    assert fits or sum(map(bool, limits)) <= 1
