"""Recall: what of the needed names a request still has, by name, by line and widely."""

import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import AssistantBlock, AssistantThinking, BlockId, ToolCall, ToolResult, leaves, text_of
from persistence.sessions import Arrived, Responded, Session
from render import Policy, Provider, provider_of
from tests import _builders as make
from tests._table import for_each
from tests.timeline.replay.invented import invented
from tests.timeline.replay.talk import TURN, asked, talk
from timeline.replay import ReplayOptions, replay
from timeline.replay._handover import Laid, MemoryMeter
from timeline.replay._recall import (
    NEAR_CALLS,
    TRIVIAL_SHARE,
    Need,
    Needs,
    RequestTexts,
    around,
    line_around,
    needs_of,
    quotable_lines,
    rare_names,
    recall_of,
    share_found,
    wide_around,
)

PROVIDER = provider_of(make.LOOSE)
CONTEXT = "the value of old_name is seven"
NEED = Need("old_name", (CONTEXT,), (f"before\n{CONTEXT}\nafter",))


def history(session: Session) -> str:
    """Everything that was ever there."""
    return "\n".join(text_of(block) for item in session.items for block in item.blocks)


@attrs.frozen
class Request:
    """The part of a rendered request that is measured."""

    messages: tuple[dict[str, Any], ...] = ()
    system: tuple[dict[str, Any], ...] = ()
    provider: Provider = PROVIDER


def request(*content: dict[str, Any], system: str = "") -> Any:
    texts = ({"type": "text", "text": system},) if system else ()
    return Request(({"role": "user", "content": list(content)},), texts)


@for_each(
    ("text", "expected"),
    [
        ("", (0, 0, 0)),
        ("names: old_name, other_name", (1, 0, 0)),
        (f"> {CONTEXT}", (1, 1, 0)),
        (f"before\n{CONTEXT}\nafter", (1, 1, 1)),
        ("the value of old_ name is seven", (0, 0, 0)),
    ],
)
def test_a_bare_name_a_line_and_its_neighbours_are_three_measures(
    text: str, expected: tuple[int, int, int]
) -> None:
    found = recall_of(Needs(far=(NEED,)), text)
    assert (found["far"], found["far_context"], found["far_wide"]) == expected


def test_any_of_the_last_occurrences_will_do() -> None:
    need = Need("old_name", ("here old_name was", "and old_name there"), ("x old_name y z",))
    assert recall_of(Needs(far=(need,)), "so here old_name was")["far_context"] == 1
    assert recall_of(Needs(far=(need,)), "so and old_name there")["far_context"] == 1


def test_a_name_that_never_had_surroundings_needs_none() -> None:
    found = recall_of(Needs(far=(Need("old_name"),)), "old_name")
    assert (found["far_context"], found["far_wide"]) == (1, 1)
    missing = recall_of(Needs(far=(Need("old_name"),)), "")
    assert (missing["far_context"], missing["far_wide"]) == (0, 0)


EXCERPT = "one line above\nthe value of old_name is seven\nanother one below"


@for_each(
    ("text", "share"),
    [
        ("old_name", 0.0),
        (EXCERPT, 1.0),
        ("  2→the value of old_name is seven", 30 / 61),
        ("another one below; the value of old_name is seven", 47 / 61),
        ("one line above\nanother one below", 0.0),
    ],
)
def test_surroundings_are_a_share_of_what_stood_around_a_name(text: str, share: float) -> None:
    need = Need("old_name", texts=(EXCERPT,))
    assert recall_of(Needs(far=(need,)), text)["surroundings"] == pytest.approx(share)


def test_of_the_last_texts_the_one_that_is_there_best_counts() -> None:
    need = Need("old_name", texts=("old_name was here", "old_name and something else"))
    assert recall_of(Needs(far=(need,)), "old_name was here")["surroundings"] == 1


@given(st.text("ab\n", max_size=60), st.text("ab\n", max_size=60), st.integers(0, 40))
def test_no_width_sees_more_than_the_text_has(before: str, after: str, width: int) -> None:
    seen = f"{before}old_name{after}"
    excerpt = around(seen, "old_name", width)
    assert excerpt in seen
    assert len(excerpt) == len("old_name") + min(width, len(before)) + min(width, len(after))
    assert share_found(excerpt, seen) == 1
    assert 0 <= share_found(seen, excerpt) <= 1


def test_near_and_rules_are_shares_too() -> None:
    needs = Needs(near=(Need("a_name"), Need("b_name")), rules=("Never push.", "Be quick."))
    assert recall_of(needs, "a_name; Never push.") == {"near": 0.5, "rules": 0.5}


def test_a_call_that_needed_nothing_says_nothing() -> None:
    assert recall_of(Needs(), "anything") == {}
    memory = MemoryMeter([(Needs(), Laid()), (Needs(far=(NEED,)), Laid())])
    memory.measure_text(0, "")
    assert memory.recall.far is None
    memory.measure_text(1, "old_name")
    assert memory.recall.far_context == 0
    assert memory.recall.near is memory.mean("rules") is None


def test_every_call_counts_the_same_however_much_it_needed() -> None:
    many = Needs(far=tuple(Need(f"name_{n}") for n in range(9)))
    memory = MemoryMeter([(many, Laid()), (Needs(far=(NEED,)), Laid())])
    for call in (0, 1):
        memory.measure_text(call, "old_name")
    assert memory.recall.far == 0.5


words = st.sampled_from(
    ["old_name", "src/main.py", "rest", "of", "it", "\n", "value_of_x", "12345"]
)
texts = st.lists(words, max_size=12).map(" ".join)
sessions = st.lists(st.tuples(texts, texts), min_size=1, max_size=12).map(lambda r: talk(*r))


@given(sessions)
def test_the_full_history_has_everything_and_nothing_has_nothing(session: Session) -> None:
    everything = history(session)
    for needs in needs_of(session):
        assert set(recall_of(needs, everything).values()) <= {1.0}
        assert set(recall_of(needs, "").values()) <= {0.0}


@given(sessions, st.integers(0, 400), st.integers(0, 400))
def test_more_text_never_has_less_and_wide_is_hardest(session: Session, a: int, b: int) -> None:
    everything = history(session)
    less, more = everything[: min(a, b)], everything[: max(a, b)]
    for needs in needs_of(session):
        before, after = recall_of(needs, less), recall_of(needs, more)
        assert before.keys() == after.keys()
        assert all(before[name] <= after[name] for name in before)
        assert not needs.far or after["far"] >= max(after["far_context"], after["far_wide"])


@given(sessions)
def test_what_is_needed_had_been_there_before(session: Session) -> None:
    for needs in needs_of(session):
        for need in (*needs.near, *needs.far):
            assert need.name in history(session)
            assert all(need.name in around for around in (*need.lines, *need.wides))
        found = rare_names(history(session))
        assert {need.name for need in (*needs.near, *needs.far)} <= found


def test_a_request_is_read_in_all_that_the_model_sees_of_it() -> None:
    result = [{"type": "text", "text": "from_a_tool"}, {"type": "image", "source": {}}]
    text = RequestTexts().of(
        request(
            {"type": "text", "text": "from_a_text"},
            {"type": "tool_use", "id": "i", "name": "run", "input": {"path": 'a\\b "c"\n'}},
            {"type": "tool_result", "tool_use_id": "i", "content": result},
            {"type": "tool_result", "tool_use_id": "j", "content": "as_a_string"},
            {"type": "thinking", "thinking": "not_this", "signature": "nor_this"},
            system="from_the_system",
        )
    )
    for seen in (
        "from_a_text",
        "from_a_tool\n[image]",
        "as_a_string",
        "from_the_system",
        'a\\b "c"',
    ):
        assert seen in text
    assert "_this" not in text


def test_a_marked_block_is_read_like_any_other() -> None:
    words, block = RequestTexts(), {"type": "text", "text": "first"}
    marked = {"type": "text", "text": "second", "cache_control": {"type": "ephemeral"}}
    assert words.of(request(block, marked)) == "first\nsecond"
    assert words.of(request(block, marked)) == "first\nsecond"


# In a replay.


def test_only_calls_whose_full_history_exceeds_the_window_are_measured() -> None:
    roomy = replay(invented(), ReplayOptions(window=100_000, counter="estimate"))
    assert (roomy.recall.far, roomy.recall.near, roomy.rules) == (None, None, None)
    assert set(roomy.to_json()["recall"].values()) == {None}


def test_rules_are_kept_and_a_policy_without_them_loses_them() -> None:
    small = ReplayOptions(window=3_000, counter="estimate")
    assert replay(invented(), small).rules == 1
    forgetful = Policy(
        name="forgetful", user_ratio=0.0, page_tokens=0, working_ratio=0.0, summary_tokens=0
    )
    lost = replay(invented(), attrs.evolve(small, policy=forgetful)).rules
    assert lost is not None
    assert lost < 1


# What a response needed from its past: near and far, trivial and new, with what around it.


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


# Lines that a response repeats: which count, since when, and whether the request still has them.


LINE = "def total(lines: list[Line]) -> Decimal:"


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
    assert recall_of(needs, f"  9→{LINE}  # of an invoice")["quotes"] == 0.5
    assert recall_of(needs, LINE[:-1])["quotes"] == 0
    assert "quotes" not in recall_of(Needs(), LINE)


# Line by line, by the definition.

quoted_words = st.sampled_from(
    [LINE, f"12→ {LINE}", "x = compute(everything, 1)", "short", "-" * 30]
)
quoted_texts = st.lists(quoted_words, max_size=3).map("\n".join)
rounds = st.one_of(st.just(QUIET), st.just(QUIET), st.tuples(quoted_texts, quoted_texts))
quoted_sessions = st.lists(rounds, min_size=7, max_size=20).map(lambda found: talk(*found))


def naive(session: Session) -> list[tuple[str, ...]]:
    """The whole history read again for every response."""
    quoted_texts: list[tuple[int, set[str]]] = []
    responses: list[tuple[int, set[str]]] = []
    for item in session.items:
        if isinstance(item, Responded):
            written = [
                leaves(b.input) if isinstance(b, ToolCall) else text_of(b) for b in item.blocks
            ]
            responses.append((len(quoted_texts), lines_of("\n".join(written))))
        for block in item.blocks:
            shift = isinstance(block, AssistantBlock | ToolResult)
            if text_of(block) and not isinstance(block, AssistantThinking):
                quoted_texts.append((len(responses) - shift, lines_of(text_of(block))))
    quotes: list[tuple[str, ...]] = []
    for call, (before, written_lines) in enumerate(responses):
        found: list[str] = []
        for line in sorted(written_lines):
            seen = [at for at, lines in quoted_texts[:before] if line in lines]
            share = sum(line in lines for _, lines in quoted_texts) / len(quoted_texts)
            if seen and call - seen[-1] > NEAR_CALLS and share <= TRIVIAL_SHARE:
                found.append(line)
        quotes.append(tuple(found))
    return quotes


def lines_of(text: str) -> set[str]:
    bare = (re.sub(r"^\s*\d{1,6}[→\t:|]", "", line).strip() for line in text.split("\n"))
    return {line for line in bare if 20 <= len(line) <= 400 and re.search(r"[^\W_]", line)}


@given(quoted_sessions)
def test_what_is_remembered_on_the_way_is_what_the_whole_history_says(session: Session) -> None:
    assert [needs.quotes for needs in needs_of(session)] == naive(session)


# Which names are rare enough to be missed.


@for_each(
    "name",
    [
        "src/app/main.py",
        "/etc/hosts",
        "./run.sh",
        "C:\\Users\\me\\notes.txt",
        "https://example.org/a?b=c",
        "settings.toml",
        "package.module.attribute",
        "snake_case",
        "camelCase",
        "HTTPServer",
        "deadbeef01",
        "8080",
        "123e4567-e89b-12d3-a456-426614174000",
        "@scope/name",
    ],
)
def test_a_name_is_found_whole_whatever_stands_around_it(name: str) -> None:
    for text in (name, f'see "{name}", please', f"({name})", f"{name}\nnext"):
        assert name in rare_names(text)


@for_each(
    "text",
    [
        "ordinary words and nothing extraordinary",
        "Capitalised",
        "__init__",
        "a.b",
        "x/y",
        "123",
        "feedface",
        "12-34",
        f"sk_{'A' * 20}_REDACTED",
        "dir/" + "x" * 200,
    ],
)
def test_plain_words_short_names_and_data_are_none(text: str) -> None:
    assert rare_names(text) == set()


def test_a_full_stop_ends_the_sentence_and_not_the_name() -> None:
    assert rare_names("It is in main_file.py.") == {"main_file.py"}


@given(st.text(max_size=200))
def test_a_name_is_part_of_its_text(text: str) -> None:
    assert all(name in text for name in rare_names(text))
