"""Lines that a response repeats: which count, since when, and whether the request still has them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from blocks import AssistantBlock, AssistantThinking, ToolCall, ToolResult, leaves, text_of
from persistence.sessions import Responded, Session
from tests._table import for_each
from tests.timeline.replay.talk import talk
from timeline.replay._recall import (
    NEAR_CALLS,
    TRIVIAL_SHARE,
    Needs,
    needs_of,
    quotable_lines,
    recall_of,
)

LINE = "def total(lines: list[Line]) -> Decimal:"
QUIET = ("", "nothing new")


def last(session: Session) -> Needs:
    return needs_of(session)[-1]


@for_each(
    ("text", "lines"),
    [
        (f"\t{LINE}  \r\n\n", {LINE}),
        (f"   12→    {LINE}\n  7\t{LINE}\n123: {LINE}\n4| {LINE}", {LINE}),
        (f"1234567→{LINE}", {f"1234567→{LINE}"}),
        ("x" * 19, set()),
        ("x" * 20, {"x" * 20}),
        ("x" * 400, {"x" * 400}),
        ("x" * 401, set()),
        ("-" * 40, set()),
        ("", set()),
    ],
)
def test_a_line_counts_without_what_stands_around_it(text: str, lines: set[str]) -> None:
    assert quotable_lines(text) == lines


@for_each(("calls", "quotes"), [(1, ()), (5, ()), (6, (LINE,)), (9, (LINE,))])
def test_a_line_is_needed_when_it_last_occurred_more_than_five_calls_earlier(
    calls: int, quotes: tuple[str, ...]
) -> None:
    rounds = [("", f"3\t{LINE}"), *[QUIET] * (calls - 1), (f"I write\n    {LINE}", "")]
    assert last(talk(*[QUIET] * 8, *rounds)).quotes == quotes


@for_each(("times", "quotes"), [(8, (LINE,)), (9, ())])
def test_a_line_counts_up_to_three_in_ten_texts(times: int, quotes: tuple[str, ...]) -> None:
    session = talk(*[("", LINE)] * times, *[QUIET] * 5, (LINE, "done"))
    assert last(session).quotes == quotes


def test_a_line_that_is_everywhere_and_a_new_one_need_nothing() -> None:
    assert not last(talk(*[("", LINE)] * 12, *[QUIET] * 6, (LINE, ""))).quotes
    assert not last(talk(*[QUIET] * 12, (LINE, ""))).quotes


def test_only_whole_lines_are_there() -> None:
    needs = Needs(quotes=(LINE, "return sum(line.amount for line in lines)"))
    assert recall_of(needs, f"  9→{LINE}  # of an invoice").quotes == 0.5
    assert recall_of(needs, LINE[:-1]).quotes == 0
    assert recall_of(Needs(), LINE).quotes is None


# Line by line, by the definition.

words = st.sampled_from([LINE, f"12→ {LINE}", "x = compute(everything, 1)", "short", "-" * 30])
texts = st.lists(words, max_size=3).map("\n".join)
rounds = st.one_of(st.just(QUIET), st.just(QUIET), st.tuples(texts, texts))
sessions = st.lists(rounds, min_size=7, max_size=20).map(lambda found: talk(*found))


def naive(session: Session) -> list[tuple[str, ...]]:
    """The whole history read again for every response."""
    texts: list[tuple[int, set[str]]] = []
    responses: list[tuple[int, set[str]]] = []
    for item in session.items:
        if isinstance(item, Responded):
            written = [
                leaves(b.input) if isinstance(b, ToolCall) else text_of(b) for b in item.blocks
            ]
            responses.append((len(texts), lines_of("\n".join(written))))
        for block in item.blocks:
            shift = isinstance(block, AssistantBlock | ToolResult)
            if text_of(block) and not isinstance(block, AssistantThinking):
                texts.append((len(responses) - shift, lines_of(text_of(block))))
    quotes: list[tuple[str, ...]] = []
    for call, (before, written_lines) in enumerate(responses):
        found: list[str] = []
        for line in sorted(written_lines):
            seen = [at for at, lines in texts[:before] if line in lines]
            share = sum(line in lines for _, lines in texts) / len(texts)
            if seen and call - seen[-1] > NEAR_CALLS and share <= TRIVIAL_SHARE:
                found.append(line)
        quotes.append(tuple(found))
    return quotes


def lines_of(text: str) -> set[str]:
    bare = (re.sub(r"^\s*\d{1,6}[→\t:|]", "", line).strip() for line in text.split("\n"))
    return {line for line in bare if 20 <= len(line) <= 400 and re.search(r"[^\W_]", line)}


@given(sessions)
def test_what_is_remembered_on_the_way_is_what_the_whole_history_says(session: Session) -> None:
    assert [needs.quotes for needs in needs_of(session)] == naive(session)
