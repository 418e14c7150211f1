"""What a summary says of a turn that is cut in two, and how large it may become: whoever writes it.

Rows 003-7 and 003-9 of the features.
"""

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from blocks import Decision, RangeCompacted, RangeSummary, StructuredSummary, Work, text_of
from render import Policy, Summary, SummaryRoom, format_summary
from render.summary._written import report_history
from tests._builders import CharCounter, open_timeline, response, text, tool_use
from tests._sizes import sized
from tests._table import for_each
from timeline import SummaryRequest, Timeline

WINDOW = 8000
REQUEST = "Reconcile March with the bank, page by page."


def small(**changes: Any) -> Timeline:
    given = {"window": WINDOW, "policy": Policy(prepare_ratio=1.0), **changes}
    return open_timeline(**given)


def work(timeline: Timeline, rounds: int, first: int = 0, lines: int = 40) -> None:
    """Rounds of a call and its result, nothing said."""
    for n in range(first, first + rounds):
        call = tool_use(f"c{n}", "read", path=f"books/march_{n}.csv")
        timeline.record(response(call, id=f"r{n}"))
        timeline.tool_result(f"c{n}", f"page {n} is settled\n" + "entry 84,27 EUR\n" * lines)


def summary_of(timeline: Timeline) -> RangeSummary:
    assert timeline.view.compaction
    return timeline.view.compaction.event.summary


def context_of(timeline: Timeline) -> str:
    return summary_of(timeline).summary.turn_context


def room_of(timeline: Timeline) -> SummaryRoom:
    return SummaryRoom.of(timeline.settings.context(None, None, 0.0))


def folds(timeline: Timeline, number: int, rounds: int = 12) -> Iterator[str]:
    """The turn's context after each of so many folds of one long turn."""
    for fold in range(number):
        work(timeline, rounds, fold * rounds)
        timeline.compact()
        assert summary_of(timeline).split_turn_id
        yield context_of(timeline)


# A split turn.


def test_a_models_words_about_it_add_up() -> None:
    numbers = iter(range(100))

    def model(_: SummaryRequest) -> Summary:
        words = f"Part {next(numbers)} begins here, and it is about March. " * 3
        return Summary(summary=StructuredSummary(turn_context=words))

    timeline = small(summarizer=model)
    timeline.user(REQUEST)
    *_, last = folds(timeline, 12)
    assert last.startswith("Part 0 begins here")
    assert "Part 11 begins here" in last
    assert CharCounter().count(last) <= room_of(timeline).prefix


def about_the_turn(request: SummaryRequest) -> Summary:
    """A summariser that has a word about the turn that is split, and nothing else."""
    turn = request.range.tail[0].block.turn if request.range.is_split else ""
    return Summary(summary=StructuredSummary(turn_context=turn and f"It is about {turn}."))


def test_the_context_of_a_turn_that_ended_is_gone() -> None:
    timeline = small(summarizer=about_the_turn)
    timeline.user(REQUEST)
    *_, context = folds(timeline, 2)
    assert context == "It is about t1."
    timeline.record(response(text("March is settled."), id="end"))
    timeline.user("And now April.")
    work(timeline, 12, 100)
    timeline.compact()
    summary = summary_of(timeline)
    assert summary.split_turn_id == "t2"
    assert summary.summary.turn_context == "It is about t2."


def test_a_cut_at_a_steer_does_not_end_the_turn() -> None:
    """By the rules of cuts such a turn is not split; but it goes on."""
    timeline = small(summarizer=about_the_turn)
    timeline.user(REQUEST)
    *_, context = folds(timeline, 1)
    work(timeline, 8, 100)
    timeline.steer("Mind the fees.")
    work(timeline, 1, 200)
    cut = timeline.view.version
    timeline.compact()
    summary = summary_of(timeline)
    assert summary.cut < cut
    assert summary.begun_turn_id == "t1"
    assert summary.summary.turn_context.startswith(context.split("\n")[0])


# The turns that a summary covers.


def turns_line(timeline: Timeline) -> str:
    return report_of(timeline).split("Folded so far: ")[1].split(":")[0]


def report_of(timeline: Timeline) -> str:
    return format_summary(summary_of(timeline))


def test_a_summary_names_the_turns_that_it_and_those_before_it_cover() -> None:
    timeline = small(policy=Policy(prepare_ratio=1.0, keep_messages=1))
    for turn in range(1, 4):
        timeline.user(f"What does book {turn} say?")
        work(timeline, 4, 10 * turn)
        timeline.record(response(text("It is settled."), id=f"m{turn}"))
    timeline.user("And now?")
    timeline.compact()
    assert turns_line(timeline) == "t1 to t3"
    for first in (100, 200):
        work(timeline, 12, first)
        timeline.compact()
        assert turns_line(timeline) == "t1 to t3, the beginning of t4"
        assert summary_of(timeline).covered_turn_ids == ("t4",)
    assert summary_of(timeline).digest.turns == 4
    timeline.user("Thanks.")
    timeline.compact()
    assert turns_line(timeline) == "t1 to t4"


def test_a_result_that_was_moved_and_folded_is_read_back_by_the_label_of_its_action() -> None:
    policy = Policy(prepare_ratio=1.0, rungs=("externalize", "summarize"), keep_ratio=0.05)
    timeline = small(policy=policy)
    timeline.user("Go on.")
    for number in range(12):
        timeline.record(
            response(tool_use(f"c{number}", "lookup", q=f"thing {number}"), id=f"m{number}")
        )
        timeline.tool_result(f"c{number}", f"row {number} of it " * 200)
    timeline.compact()
    done = report_of(timeline).partition("## What was done\n")[2]
    labels = dict(re.findall(r"\[(v\d+)\] lookup thing (\d+)", done))
    assert len(labels) > 3
    for label, number in labels.items():
        assert text_of(timeline.read(label)) == f"row {number} of it " * 200


def test_a_demand_outlives_the_text_that_it_was_made_in() -> None:
    """A short text is carried whole, for a while; when others take its place its demand is a rule on the page."""
    timeline = small(window=3000)
    timeline.user("Settle the books.")
    for number in range(60):
        timeline.user(f"Page {number}, please. " + ("Never touch db-2! " if number == 3 else ""))
        work(timeline, 2, 10 * number)
        timeline.render()
    head = timeline.view.compaction.head.entries if timeline.view.compaction else ()
    assert "ar:t5.user.prompt" not in {entry.path for entry in head}
    assert "the user: Never touch db-2!" in report_of(timeline)


# However it is written, it is bounded.

WORDS = st.sampled_from(("db-2", "never", "touch", "API", "CHF", "the", "ledger", "7", "42"))
TEXT = st.lists(WORDS, max_size=12).map(" ".join)


def answers() -> st.SearchStrategy[StructuredSummary]:
    """From nothing to far too much."""
    texts = st.lists(TEXT, max_size=8).map(tuple)
    prose = st.sampled_from(("", "On it.", "And so it goes on. " * 400))
    return st.builds(
        StructuredSummary,
        task=prose,
        constraints=texts,
        facts=st.one_of(texts, st.just(tuple(f"fact {n}" for n in range(900)))),
        decisions=texts.map(lambda found: tuple(Decision(decision=t) for t in found)),
        completed=texts.map(lambda f: tuple(Work(component=t, action="a " * 99) for t in f)),
        state=prose,
        plan=prose,
        turn_context=prose,
    )


@attrs.define
class Restless:
    """A summariser that says something else each time: numbered, as a model rephrases."""

    answers: list[StructuredSummary]
    asked: int = 0

    def __call__(self, _: SummaryRequest) -> Summary:
        self.asked += 1
        answer = self.answers[self.asked % len(self.answers)]
        again = f"As said in part {self.asked}, the API of the ledger is never to be touched."
        return Summary(
            summary=StructuredSummary(
                task=answer.task,
                constraints=(*answer.constraints, again),
                facts=(
                    *answer.facts,
                    f"Number {self.asked} of {self.asked * 7} is {self.asked * 13}.",
                ),
                decisions=answer.decisions,
                completed=answer.completed,
                state=answer.state,
                plan=answer.plan,
                turn_context=answer.turn_context,
            )
        )


def compacted_often(
    timeline: Timeline, times: int, one_more: Callable[[Timeline, int], None]
) -> None:
    """Go on until so many compactions are over; what each leaves fits and is bounded."""
    room = room_of(timeline)
    first: tuple[str, ...] = ()
    for number in count():
        one_more(timeline, number)
        rendered = timeline.render()
        assert rendered.fits, rendered.cannot_fit
        if not any(isinstance(event, RangeCompacted) for event in rendered.decisions):
            continue
        summary = summary_of(timeline).summary
        assert room.count(report_history(summary)) <= room.history
        assert room.count(summary.turn_context) <= room.prefix
        first = first or summary.constraints[:1]
        assert set(first) <= set(summary.constraints)
        if (times := times - 1) == 0:
            return


def a_round(timeline: Timeline, number: int) -> None:
    work(timeline, 1, number, lines=60)


def a_turn(timeline: Timeline, number: int) -> None:
    timeline.user(f"Go on with page {number}. You must keep word-{number}.")
    a_round(timeline, number)


@given(st.lists(answers(), min_size=1, max_size=4), st.sampled_from((a_round, a_turn)))
def test_any_summariser_leaves_a_request_that_fits(
    told: list[StructuredSummary], one_more: Callable[[Timeline, int], None]
) -> None:
    timeline = small(summarizer=Restless(told), window=4000)
    timeline.user("Never touch the public API.")
    compacted_often(timeline, sized(2, 4), one_more)


@for_each(("kind", "times"), [("restless", sized(60, 300)), ("extractive", sized(40, 100))])
def test_many_compactions_later_it_still_does(kind: str, times: int) -> None:
    """A model that rephrases its constraints each time does not fill the window with them, nor does a
    user who has a new demand in every third round."""

    def one_more(timeline: Timeline, number: int) -> None:
        (a_round if number % 3 else a_turn)(timeline, number)

    given = {"summarizer": Restless([StructuredSummary()])} if kind == "restless" else {}
    timeline = small(window=2000, **given)
    timeline.user("Never touch the public API.")
    compacted_often(timeline, times, one_more)
