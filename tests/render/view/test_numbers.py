"""Requests that wait for an answer: which one a response answers, and which are given up."""

from blocks import Answered, EventId, FoldState, RequestRendered, Waiting
from render.view._fold import ANSWER_SECONDS, WAITING_MAX, answered_of, now_waiting
from tests._table import for_each


def sent(name: str, at: float = 0.0) -> RequestRendered:
    return RequestRendered(id=EventId(name), at=at, content_hash="", tokens=0, sent=name)


def waiting(*names: str) -> tuple[Waiting, ...]:
    found: tuple[Waiting, ...] = ()
    for shown, name in enumerate(names, 1):
        found = now_waiting(found, sent(name), shown)
    return found


def test_a_request_that_is_sent_again_waits_once_and_as_the_newest() -> None:
    assert [each.sent for each in waiting("a", "b", "a")] == ["b", "a"]


def test_who_has_waited_for_an_hour_waits_no_more() -> None:
    old = waiting("a")
    assert [w.sent for w in now_waiting(old, sent("b", ANSWER_SECONDS), 2)] == ["a", "b"]
    assert [w.sent for w in now_waiting(old, sent("b", ANSWER_SECONDS + 1), 2)] == ["b"]


def test_a_log_that_does_not_say_what_was_sent_has_nobody_waiting() -> None:
    assert now_waiting((), sent(""), 1) == ()


def test_of_very_many_the_oldest_become_one_that_nobody_can_name() -> None:
    many = waiting(*(f"r{n}" for n in range(3 * WAITING_MAX)))
    assert len(many) == WAITING_MAX
    assert many[0].sent == Answered.UNKNOWN
    assert many[-1].sent == f"r{3 * WAITING_MAX - 1}"


def test_a_response_that_names_its_request_answers_that_one_and_the_others_go_on_waiting() -> None:
    state = FoldState(waiting=waiting("a", "b", "c"))
    said, left = answered_of(Answered(shown=2, sent="b"), state)
    assert said.sent == "b"
    assert [each.sent for each in left] == ["a", "c"]


@for_each(
    ("names", "answered", "left"),
    [((), "", []), (("a",), "a", []), (("a", "b"), Answered.UNKNOWN, [Answered.UNKNOWN])],
)
def test_one_that_names_none_answers_the_newest_and_with_several_that_is_a_guess(
    names: tuple[str, ...], answered: str, left: list[str]
) -> None:
    said, still = answered_of(None, FoldState(shown=7, waiting=waiting(*names)))
    assert (said.sent, said.shown) == (answered, len(names) or 7)
    assert [each.sent for each in still] == left
