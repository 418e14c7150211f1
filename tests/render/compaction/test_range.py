"""Which blocks a compaction folds and which it keeps: the range, the tail, the hash of its source."""

from blocks import (
    Block,
)
from render import (
    range_before,
    range_before_tail,
    total_tokens,
)
from tests import _builders as make
from tests._builders import context, grown, steady
from tests._table import for_each
from tests.render.compaction.talk import compacted, range_of, rounds, turns


def test_nothing_to_fold_gives_no_range() -> None:
    assert range_before_tail(make.view_of(), context(), "forced") is None
    assert range_before_tail(make.view_of(make.prompt("hi")), context(), "forced") is None


def test_forced_folds_even_what_would_be_kept() -> None:
    view = make.view_of(*turns(3))
    assert range_before_tail(view, context(), "proactive") is None
    forced = range_before_tail(view, context(), "forced")
    assert forced is not None
    assert [e.path for e in forced.tail] == ["tc:t2.call_5.call", "tc:t2.call_5.result"]


def test_forced_folds_all_but_the_newest_where_the_tail_would_have_most_there_is() -> None:
    """Beside a tail of nearly all there is, it would fold so little that it gained nothing."""
    view = make.view_of(*turns(9))
    total = total_tokens(view, context())
    within = context(limit=int(total / 0.22))  # the tail has a fifth of it
    forced, due = (range_before_tail(view, within, trigger) for trigger in ("forced", "proactive"))
    assert forced
    assert due
    assert len(forced.tail) <= 2 < len(due.tail)
    roomy = context(limit=total)
    forced, due = (range_before_tail(view, roomy, trigger) for trigger in ("forced", "proactive"))
    assert forced
    assert due
    assert forced.cut == due.cut


@for_each("block", [make.prompt("p", "t9"), make.steer("s", "t9")])
def test_a_cut_before_the_users_words_splits_no_turn(block: Block) -> None:
    view = make.view_of(*turns(2), make.said("working", "t9"), block)
    fold = range_of(view, context(), 0.0)
    assert fold.tail[0].block == block
    assert not fold.is_split


# The tail.


def answers(number: int) -> list[Block]:
    """Rounds of one block each: there may be a cut before every one of them."""
    return [make.said("x" * 200, response=f"r{n}") for n in range(number)]


@for_each(
    ("share", "system", "tokens"),
    [(0.1, 0, 1000), (0.3, 0, 2000), (0.3, 3000, 500), (0.3, 3500, 400), (0.3, 9000, 400)],
)
def test_the_tail_has_its_share_or_half_of_what_is_left_below_the_target(
    share: float, system: int, tokens: int
) -> None:
    """As few blocks as reach it; of a limit of 10,000 with a target of 4,000, never under 400."""
    view = make.view_of(make.prompt("go"), *answers(80))
    fixed = ({"type": "text", "text": "s" * 4 * system},) if system else ()
    within = context(limit=10_000, policy=steady(keep_ratio=share), system=fixed)
    fold = range_of(view, within)
    less = range_before(view, within, "proactive", fold.tail[1].version)
    assert less
    assert less.tail_tokens < tokens <= fold.tail_tokens


@for_each(("number", "ratio", "kept"), [(6, 0.2, 6), (7, 0.2, 7), (10, 0.1, 5)])
def test_a_tail_by_number_counts_blocks_and_is_squeezed_in_proportion(
    number: int, ratio: float, kept: int
) -> None:
    within = context(policy=steady(keep_ratio=0.2, keep_messages=number))
    fold = range_of(make.view_of(make.prompt("go"), *answers(80)), within, ratio)
    assert len(fold.tail) == kept


# The range.


def test_the_same_blocks_give_the_same_range() -> None:
    blocks = turns(8)
    one, two = make.view_of(*blocks), make.view_of(*blocks)
    first, second = range_of(one, context(), 0.01), range_of(two, context(), 0.01)
    assert (first.start, first.cut, first.source_hash, first.carried) == (
        second.start, second.cut, second.source_hash, second.carried,
    )  # fmt: skip


def test_another_content_gives_another_source_hash() -> None:
    blocks = turns(4)
    other = [*blocks[:1], make.prompt("Something else.", "t0"), *blocks[2:]]
    one, two = make.view_of(*blocks), make.view_of(*other)
    assert range_of(one, context(), 0.0).source_hash != range_of(two, context(), 0.0).source_hash


def test_another_summary_before_it_gives_another_source_hash() -> None:
    """The range is summarised together with the summary before it."""
    view = make.view_of(*turns(4))
    more = list(rounds(4, "t9", first=50))
    one, two = (compacted(view, context(), state=state).settled() for state in ("one", "two"))
    folds = [range_of(grown(after, *more), context(), 0.0) for after in (one, two, one)]
    assert folds[0].folded == folds[2].folded or folds[0].start == folds[1].start
    assert folds[0].source_hash == folds[2].source_hash != folds[1].source_hash
