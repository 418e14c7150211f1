"""Where the cut falls: each rule of design 2.2 as a drawing.

In every picture the first line is the log, the second the tokens, the caret the first block kept;
`drawings` explains the words.
"""

from itertools import permutations
from typing import Any

from blocks import Block
from render import range_before
from render.compaction._range import (
    find_cut,
    is_candidate,
    is_counted,
    is_legal,
    is_turn_start,
    latest_cut,
)
from tests import _builders as make
from tests._table import for_each
from tests.render.compaction.drawings import Drawing, drawn


def assert_cut(picture: str, *, keep: int) -> None:
    """The cut is where the caret is; without a caret there is none."""
    drawing = drawn(picture)
    found = find_cut(drawing.entries, drawing.tokens, keep)
    assert drawing.with_caret(found) == drawing.as_drawn


def words(drawing: Drawing) -> list[str]:
    line = drawing.line.replace("(", " ").replace(")", " ").replace("|", " ")
    return line.split()


# 1, 2, 5: what a block may be.


@for_each(
    ("word", "candidate", "counted", "turn_start"),
    [
        ("H", True, True, True),
        ("P", True, True, True),
        ("f", True, True, True),
        ("s", True, True, True),
        ("@", True, True, True),
        ("u:", True, True, True),
        ("a", True, True, False),
        ("t", True, True, False),
        ("c1", True, True, False),
        ("n", True, True, False),
        ("p", True, True, False),
        ("a:", True, True, False),
        ("b:", True, True, False),
        ("r1", False, True, False),
        ("S", False, False, False),
        ("!", False, False, False),
        ("y:", False, False, False),
        ("o:", False, False, False),
        ("?:", False, False, False),
    ],
)
def test_what_each_kind_of_block_may_be(
    word: str,
    candidate: bool,  # noqa: FBT001 -- a table
    counted: bool,  # noqa: FBT001
    turn_start: bool,  # noqa: FBT001
) -> None:
    """Candidate: no result, no summary, nothing by the system, a tool or nobody. Counted: results
    too. Turn start: a header, a prompt, anything by the user.
    """
    block = drawn(word).entries[0].block
    assert is_candidate(block) == candidate
    assert is_counted(block) == counted
    assert is_turn_start(block) == turn_start


# 3: selection.


def test_the_walk_back_stops_when_enough_is_kept() -> None:
    assert_cut(
        """
        P a P a P a
        1 1 1 1 1 1
            ^
        """,
        keep=4,
    )


def test_the_block_that_reaches_the_amount_is_kept_too() -> None:
    assert_cut(
        """
        P a P  a P a
        1 1 1 99 1 1
               ^
        """,
        keep=3,
    )


def test_exactly_enough_is_enough() -> None:
    assert_cut(
        """
        P a P a
        5 5 5 5
            ^
        """,
        keep=10,
    )


def test_a_cut_at_a_result_moves_on_to_the_next_candidate() -> None:
    assert_cut(
        """
        H P c1 r1 a c2 r2 a
        . 1  1  9 1  1  1 1
                  ^
        """,
        keep=6,
    )


def test_uncounted_blocks_add_nothing_to_what_is_kept() -> None:
    assert_cut(
        """
        P a P !   !   a
        5 5 5 500 500 5
            ^
        """,
        keep=10,
    )


def test_results_add_to_what_is_kept() -> None:
    assert_cut(
        """
        P a c1 r1 s
        5 5  5 50 5
                  ^
        """,
        keep=50,
    )


def test_the_cut_steps_back_over_what_is_not_counted() -> None:
    """A notice before the cut goes with what follows it."""
    assert_cut(
        """
        P a c1 r1 ! a
        5 5  5  5 5 5
                  ^
        """,
        keep=5,
    )


def test_it_does_not_step_back_over_the_beginning() -> None:
    assert_cut(
        """
        ! P a !
        5 5 5 5
          ^
        """,
        keep=10,
    )


def test_it_steps_back_over_several() -> None:
    assert_cut(
        """
        P a ! ?: y: o: P a
        5 5 5 5  5  5  5 5
            ^
        """,
        keep=10,
    )


def test_a_summary_is_stepped_over_like_any_uncounted_block() -> None:
    assert_cut(
        """
        P a S P a
        5 5 5 5 5
            ^
        """,
        keep=10,
    )


def test_without_a_candidate_after_it_the_nearest_before_is_taken() -> None:
    """The amount is reached at the last result: nothing after it may begin the kept range."""
    assert_cut(
        """
        P a c1 r1
        5 5  5 99
            ^
        """,
        keep=10,
    )


def test_a_header_is_a_cut_of_its_own() -> None:
    assert_cut(
        """
        H P a H P a
        . 5 5 . 5 5
                ^
        """,
        keep=10,
    )


def test_headers_keep_their_prompt_when_the_amount_reaches_the_header() -> None:
    assert_cut(
        """
        H P a H P a
        1 5 5 1 5 5
              ^
        """,
        keep=11,
    )


# Nothing to fold.


@for_each("line", ["P", "H", "r1", "!", "c1 r1", "(c1 c2) r1 r2", "c1"])
def test_there_is_nothing_to_fold_in_one_step(line: str) -> None:
    drawing = drawn(line)
    for keep in (1, 2, 3, 99):
        assert find_cut(drawing.entries, drawing.tokens, keep) is None
    assert latest_cut(drawing.entries) is None


def test_there_is_nothing_to_fold_when_everything_is_kept() -> None:
    assert_cut(
        """
        P a P a
        5 5 5 5
        """,
        keep=21,
    )


def test_there_is_nothing_to_fold_in_an_empty_log() -> None:
    assert find_cut([], [], 10) is None
    assert latest_cut([]) is None


def test_when_only_the_first_block_is_too_much_the_nearest_newer_cut_is_taken() -> None:
    """A cut before everything would fold nothing; the huge first prompt is what must go."""
    assert_cut(
        """
        P  a c1 r1 a
        99 1  1  1 1
           ^
        """,
        keep=50,
    )


# 4: legality.


def test_no_kept_result_answers_a_folded_call() -> None:
    """The nearest candidate after the amount would be inside a round: older first."""
    assert_cut(
        """
        P a (c1 c2) r1 r2 a
        5 5   5  5   5  5 5
             ^
        """,
        keep=20,
    )


def test_the_first_block_alone_may_be_folded() -> None:
    assert_cut(
        """
        P (c1 c2) r1 r2 a
        5   5  5   5  5 5
           ^
        """,
        keep=20,
    )


@for_each(
    ("line", "legal"),
    [
        ("P (t a t c1 c2) r1 r2 P", [1, 8]),
        ("P (t c1) r1 (a c2) r2 (a t c3) r3", [1, 4, 5, 7, 8]),
        ("P (t a) P (c1 t) r1", [1, 2, 3, 4]),
    ],
)
def test_no_cut_falls_between_the_thinking_of_a_response_and_its_calls(
    line: str, legal: list[int]
) -> None:
    entries = drawn(line).entries
    assert [cut for cut in range(len(entries)) if is_legal(entries, cut)] == legal


def test_what_a_provider_ran_itself_binds_its_own_round_and_no_other() -> None:
    used = {"type": "server_tool_use", "id": "s", "name": "search", "input": {}}
    more: dict[str, Any] = {"author": "assistant", "response": "r1", "value": used}
    blocks: list[Block] = [
        make.prompt("P"),
        make.opaque("provider.server_tool_use", **more),
        make.said("a", response="r1"),
        make.opaque("provider.server_tool_use", **more),
        make.said("b", response="r2"),
        make.prompt("Q", "t2"),
    ]
    view, within = make.view_of(*blocks), make.context()
    folds = {n: range_before(view, within, "forced", n) for n in range(1, len(blocks) + 1)}
    assert [n for n, fold in folds.items() if fold] == [2, 5, 6]


def test_the_calls_of_one_round_stay_together() -> None:
    assert_cut(
        """
        P a (c1 c2 c3) r1 r2 r3 a
        1 1   1  1  1   1  1  1 1
             ^
        """,
        keep=6,
    )


@for_each("order", list(permutations(("r1", "r2", "r3"))))
def test_parallel_calls_may_be_answered_in_any_order(order: tuple[str, ...]) -> None:
    results = " ".join(order)
    assert_cut(
        f"""
        P a (c1 c2 c3) {results} s
        1 1   1  1  1   1  1  1  1
             ^
        """,
        keep=5,
    )
    assert_cut(
        f"""
        P a (c1 c2 c3) {results} s
        1 1   1  1  1   1  1  1  1
                                ^
        """,
        keep=4,
    )


def test_interleaved_calls_and_results_of_one_response_stay_together() -> None:
    """Some logs write call, result, call, result for what was one response."""
    assert_cut(
        """
        P a (c1 r1 c2 r2) a
        5 5   5  5  5  5  5
             ^
        """,
        keep=15,
    )


@for_each(
    "picture",
    [
        """
        P a (c1 c2) | a P
        5 5   5  5    5 5
             ^
        """,
        """
        P a (c1 c2 c3) | a P
        5 5   5  5  5    5 5
             ^
        """,
        """
        P a (c1 r1 c2) | a P
        5 5   5  0  5    5 5
             ^
        """,
    ],
)
def test_the_last_call_of_a_round_stays_with_the_others_answered_or_not(picture: str) -> None:
    assert_cut(picture, keep=15)


@for_each(
    ("line", "legal"),
    [
        ("P (c1 c2) r1 r2 a", "c1 a"),
        ("P (c1 c2) r2 r1 a", "c1 a"),
        ("P (c1 r1 c2 r2) a", "c1 a"),
        ("P (c1 c2) | a P", "c1 a P"),
        ("P c1 | s r1 a", "c1 a"),
        ("P (c1 c2) r1 s", "c1"),
    ],
)
def test_a_span_of_parallel_calls_ends_with_its_last_result(line: str, legal: str) -> None:
    """A cut that somebody asks for, by version, falls before it or behind it."""
    drawing = drawn(line)
    view, within = drawing.view, make.context()
    found = [
        word
        for word, entry in zip(words(drawing), drawing.entries, strict=True)
        if range_before(view, within, "forced", entry.version)
    ]
    assert found == legal.split()


def test_calls_in_rounds_of_their_own_may_be_parted() -> None:
    assert_cut(
        """
        P a c1 r1 c2 r2 a
        5 5  5  5  5  5 5
                  ^
        """,
        keep=15,
    )


def test_an_open_call_is_not_folded() -> None:
    assert_cut(
        """
        P a (c1 c2) r1 s
        5 5   5  5   5 5
             ^
        """,
        keep=5,
    )


def test_an_open_call_is_not_folded_when_a_later_one_of_its_round_was_answered() -> None:
    assert_cut(
        """
        P a (c1 c2) r2 s
        5 5   5  5   5 5
             ^
        """,
        keep=5,
    )


def test_an_open_call_is_not_folded_whoever_speaks_after_it() -> None:
    assert_cut(
        """
        P a c1 s s s !
        5 5  5 5 5 5 5
            ^
        """,
        keep=10,
    )


def test_a_call_that_was_given_up_long_ago_may_be_folded() -> None:
    """Once the model has gone on without an answer, the call is not open but interrupted."""
    assert_cut(
        """
        P c1 | P a P a
        5  5   5 5 5 5
                   ^
        """,
        keep=10,
    )


def test_a_late_result_stays_with_its_call() -> None:
    assert_cut(
        """
        P a c1 | s r1 a
        5 5  5   5  5 5
            ^
        """,
        keep=12,
    )


def test_behind_a_late_result_one_may_cut() -> None:
    assert_cut(
        """
        P a c1 | s r1 a
        5 5  5   5  5 5
                      ^
        """,
        keep=5,
    )


def test_a_second_answer_stays_with_its_call_too() -> None:
    assert_cut(
        """
        P a c1 r1 s r1 a
        5 5  5  5 5  5 5
            ^
        """,
        keep=12,
    )


def test_an_orphan_binds_nothing() -> None:
    assert_cut(
        """
        P a r9 s a
        5 5  5 5 5
               ^
        """,
        keep=12,
    )


def test_when_no_older_cut_is_legal_the_nearest_newer_one_is_taken() -> None:
    assert_cut(
        """
        (c1 c2) r1 r2 a a
          5  5   5  5 5 5
                      ^
        """,
        keep=20,
    )


def test_a_cut_may_go_between_what_was_said_and_the_calls_after_it() -> None:
    assert_cut(
        """
        P (a c1) r1 P
        5  5  5   5 5
             ^
        """,
        keep=12,
    )


def test_thinking_stays_with_its_calls_and_what_was_said_between() -> None:
    assert_cut(
        """
        P a (t a c1) r1 P
        5 5  5 5  5   5 5
             ^
        """,
        keep=12,
    )


# The newest cut.


@for_each(
    "picture",
    [
        """
        P a c1 r1
            ^
        """,
        """
        P a (c1 c2) r2 r1 P
                          ^
        """,
        """
        P a (c1 c2) r2 s s
             ^
        """,
        """
        P a n
            ^
        """,
        """
        P a r7
          ^
        """,
    ],
)
def test_the_newest_cut_folds_all_that_may_be_folded(picture: str) -> None:
    drawing = drawn(picture)
    assert drawing.with_caret(latest_cut(drawing.entries)) == drawing.as_drawn


# In all of them.


@for_each(
    "line",
    [
        "H P a c1 r1 (c2 c3) r3 r2 n P a",
        "P (c1 c2) r2 r1 s ! (c3 c4) r3 | r4 H P a",
        "H P (t a c1) r1 (t c2) | f r2 P u: b: ?: a",
    ],
)
def test_wherever_it_falls_a_cut_is_legal(line: str) -> None:
    """A kept result has its call, and the block before the cut is a counted one."""
    drawing = drawn(line)
    for keep in range(1, 20):
        cut = find_cut(drawing.entries, drawing.tokens, keep)
        if cut is None:
            continue
        kept = words(drawing)[cut:]
        assert all(f"c{word[1:]}" in kept for word in kept if word[0] == "r")
        assert is_counted(drawing.entries[cut - 1].block)
