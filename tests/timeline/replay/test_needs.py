"""What a response needed from its past: near and far, trivial and new, with what around it."""

import attrs

from blocks import AssistantThinking, BlockId
from persistence.sessions import Arrived, Responded, Session
from tests._table import for_each
from tests.timeline.replay.talk import TURN, asked, talk
from timeline.replay._recall import Need, Needs, line_around, needs_of, wide_around

QUIET = ("", "nothing new")


def late(*rounds: tuple[str, str]) -> Session:
    """These rounds after some quiet ones, so that nothing in them is in most of all texts."""
    return talk(*[QUIET] * 8, *rounds)


def last(session: Session) -> Needs:
    return needs_of(session)[-1]


def names(needs: tuple[Need, ...]) -> list[str]:
    return [need.name for need in needs]


@for_each(
    ("calls", "far", "near"),
    [(1, [], ["old_name"]), (5, [], ["old_name"]), (6, ["old_name"], []), (9, ["old_name"], [])],
)
def test_a_name_is_far_when_it_last_occurred_more_than_five_calls_earlier(
    calls: int, far: list[str], near: list[str]
) -> None:
    rounds = [("", "see old_name here"), *[QUIET] * (calls - 1), ("old_name it is", "")]
    needs = last(late(*rounds))
    assert (names(needs.far), names(needs.near)) == (far, near)


def test_only_the_last_occurrence_counts() -> None:
    rounds = [("", "see old_name"), *[QUIET] * 6, ("", "old_name again"), ("old_name it is", "")]
    assert names(last(late(*rounds)).near) == ["old_name"]


def test_what_the_agent_wrote_itself_is_its_past_too() -> None:
    assert names(last(late(("I make new_file", ""), *[QUIET] * 6, ("new_file", ""))).far) == [
        "new_file"
    ]


def test_a_prompt_is_first_read_by_the_call_after_it() -> None:
    session = talk(*[QUIET] * 5, ("old_name", ""), prompt="Look into old_name.")
    assert names(last(session).near) == ["old_name"]
    session = talk(*[QUIET] * 6, ("old_name", ""), prompt="Look into old_name.")
    assert names(last(session).far) == ["old_name"]


def test_a_new_name_could_not_be_lost() -> None:
    assert last(talk(*[QUIET] * 7, ("brand_new", ""))) == Needs(rules=("Please begin.",))


def test_the_name_of_a_tool_stands_in_its_definition() -> None:
    assert all(not names(needs.far) for needs in needs_of(talk(*[QUIET] * 9)))


def test_a_name_in_a_third_of_all_texts_is_no_news() -> None:
    chatty = [("", "all about old_name")] * 12
    assert not names(last(talk(*chatty, *[QUIET] * 6, ("old_name", ""))).far)
    assert names(last(talk(*chatty, *[QUIET] * 20, ("old_name", ""))).far) == ["old_name"]


def test_thinking_is_neither_past_nor_need() -> None:
    session = late(("", "see old_name"), *[QUIET] * 6, ("", ""))
    item = session.items[-2]
    assert isinstance(item, Responded)
    thought = AssistantThinking(
        id=BlockId("x"), turn=TURN, provider={"type": "thinking", "thinking": "old_name?"}
    )
    thoughtful = attrs.evolve(item, blocks=(thought, *item.blocks))
    items = (*session.items[:-2], thoughtful, session.items[-1])
    assert not last(attrs.evolve(session, items=items)).far


def test_the_surroundings_are_those_of_the_last_three_occurrences() -> None:
    texts = [f"old_name in place {n}" for n in range(4)]
    rounds = [*(("", text) for text in texts), *[QUIET] * 12, ("old_name", "")]
    need = last(late(*rounds)).far[0]
    assert need.lines == need.wides == tuple(reversed(texts[1:]))


def test_an_occurrence_with_nothing_around_it_is_passed_over() -> None:
    rounds = [("", "old_name in the middle"), ("", "old_name\n"), *[QUIET] * 7, ("old_name", "")]
    assert last(late(*rounds)).far[0].lines == ("old_name in the middle",)


def test_rules_are_how_the_texts_of_the_user_begin() -> None:
    session = talk(("", ""), prompt="  " + "x" * 400)
    more = Arrived(at=9.0, blocks=(asked("p1", "And be quick."), asked("p2", " ")))
    session = attrs.evolve(session, items=(*session.items, more, *talk(("", "")).items[1:]))
    first, second = needs_of(session)
    assert first.rules == ("x" * 298,)
    assert second.rules == ("x" * 298, "And be quick.")


LINES = "a" * 200 + "\nbefore\n" + "b" * 60 + " NAME " + "c" * 60 + "\nafter\n" + "d" * 200


def test_a_line_has_at_most_40_characters_on_each_side() -> None:
    assert line_around(LINES, "NAME") == "b" * 39 + " NAME " + "c" * 39
    assert line_around("first\nthe key = NAME\nlast", "NAME") == "the key = NAME"


def test_wide_has_the_neighbouring_lines_and_at_most_150_characters() -> None:
    assert wide_around(LINES, "NAME") == f"before\n{'b' * 60} NAME {'c' * 60}\nafter"
    long = "e" * 300 + "NAME" + "f" * 300
    assert wide_around(f"x\n{long}\ny", "NAME") == "e" * 150 + "NAME" + "f" * 150


@for_each("text", ["NAME", "  NAME  \n", "NAME = 1234", "\nNAME\n"])
def test_less_than_eight_characters_say_nothing(text: str) -> None:
    assert line_around(text, "NAME") == ""


def test_the_last_occurrence_in_a_text_is_taken() -> None:
    assert (
        line_around("NAME at the first place\nNAME at the second", "NAME") == "NAME at the second"
    )
