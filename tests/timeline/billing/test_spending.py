"""Where money went: what each block cost in the prompts that carried it, and why a call was dear."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from blocks import (
    AssistantCompletion,
    BlockId,
    CallId,
    EventId,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    UsageRecorded,
    UserPrompt,
)
from persistence.sessions import Arrived, Item, Responded, Session
from timeline.billing import PaidBlock, call_costs, piece_costs, spending_of

MODEL = "claude-opus-4-6"
INPUT, READ, WRITE, OUTPUT = 5e-6, 5e-7, 6.25e-6, 25e-6
"""Dollars for a token, from the provider's page of prices."""


def used(read: int, written: int, output: int = 0, at: float = 0.0) -> UsageRecorded:
    return UsageRecorded(
        id=EventId(""),
        at=at,
        model=MODEL,
        cache_read=read,
        cache_write=written,
        output=output,
    )


def told(at: float, text: str) -> Arrived:
    return Arrived(at=at, blocks=(UserPrompt(id=BlockId("u"), turn=TurnId("t1"), text=text),))


def asked(at: float, number: int, usage: UsageRecorded | None, path: str, size: int) -> list[Item]:
    """A call that reads a file, and its result of so many tokens."""
    call_id, turn = CallId(f"c{number}"), TurnId("t1")
    call = ToolCall(
        id=BlockId(f"a{number}"),
        turn=turn,
        response=f"r{number}",
        call_id=call_id,
        name="Read",
        input={"file_path": path},
    )
    part = TextPart(text="x" * 4 * size)
    result = ToolResult(id=BlockId(f"b{number}"), turn=turn, call_id=call_id, parts=(part,))
    return [
        Responded(at=at, id=f"r{number}", blocks=(call,), model=MODEL, usage=usage),
        Arrived(at=at, blocks=(result,)),
    ]


def answered(at: float, usage: UsageRecorded | None, text: str = "done") -> Responded:
    block = AssistantCompletion(id=BlockId("z"), turn=TurnId("t1"), response="z", text=text)
    return Responded(at=at, id="z", blocks=(block,), model=MODEL, usage=usage)


def session(*items: Item | list[Item]) -> Session:
    flat = [each for item in items for each in (item if isinstance(item, list) else [item])]
    return Session(name="s", format="claude-code", items=tuple(flat))


def sized(tokens: int, first: int, end: int | None = None) -> PaidBlock:
    """A block that no call wrote."""
    return PaidBlock("", "", tokens, -1, first, end)


def test_a_block_is_paid_when_it_is_new_and_again_in_each_later_prompt() -> None:
    costs = call_costs([used(0, 1_000), used(1_000, 500), used(1_500, 0)])
    first, second, never = piece_costs(costs, [sized(1_000, 0), sized(500, 1), sized(10, 3)])
    assert first == pytest.approx(1_000 * (WRITE + 2 * READ))
    assert second == pytest.approx(500 * (WRITE + READ))
    assert never == 0.0, "it was in no prompt"
    assert piece_costs(costs, [sized(1_000, 0), sized(500, 1, 2)])[1] == pytest.approx(500 * WRITE)


def test_where_the_cache_was_lost_old_tokens_are_paid_like_new_ones() -> None:
    costs = call_costs([used(0, 1_000), used(0, 1_500)])
    assert piece_costs(costs, [sized(1_000, 0)]) == [pytest.approx(1_000 * 2 * WRITE)]


def test_a_tool_and_its_file_cost_what_was_written_of_them_and_what_carried_them() -> None:
    spent = spending_of(
        session(
            told(0, "x" * 4_000),
            asked(1, 1, used(0, 11_000, 40), "a.py", 20_000),
            asked(2, 2, used(11_000, 20_010, 40), "b.py", 1_000),
            answered(3, used(31_010, 1_010, 200)),
        )
    )
    assert sum(spent.parts.values()) == pytest.approx(spent.bill.dollars)
    assert set(spent.files) == {"a.py", "b.py"}
    once = 40 * OUTPUT
    assert spent.files["a.py"] == pytest.approx(once + 20_000 * (WRITE + READ), rel=0.01)
    assert spent.files["b.py"] == pytest.approx(once + 1_000 * WRITE, rel=0.01)
    assert spent.parts["tool Read"] == pytest.approx(sum(spent.files.values()))
    assert spent.parts["system prompt, tools, the rest"] == pytest.approx(
        10_000 * (WRITE + 2 * READ), rel=0.01
    )


def test_what_the_agent_cut_out_of_its_prompt_is_no_longer_paid_for() -> None:
    items: list[Item | list[Item]] = [
        told(0, "go"),
        asked(1, 1, used(0, 1_000), "a.py", 50_000),
        asked(2, 2, used(1_000, 50_000), "b.py", 100),
    ]
    before = spending_of(session(*items)).files["a.py"]
    cut = [answered(at, used(5_000, 0)) for at in range(3, 90)]
    assert spending_of(session(*items, *cut)).files["a.py"] == pytest.approx(before)


def test_a_dear_call_says_why() -> None:
    spent = spending_of(
        session(
            told(0, "go"),
            asked(1, 1, used(0, 40_000), "a.py", 30_000),
            asked(2, 2, used(40_000, 30_000), "b.py", 10),
            answered(7_300, used(0, 70_000)),
            answered(7_360, used(50_000, 20_000)),
            answered(7_400, used(70_000, 10)),
            answered(7_500, used(70_000, 10, 20_000)),
            answered(7_600, used(0, 20_000)),
        )
    )
    assert [call.why for call in spent.calls] == [
        "40,000 new tokens",
        "30,000 new tokens, most of them of Read a.py",
        "lost the cache of 70,000 tokens, 2 h after the last call",
        "lost part of the cache: 20,000 tokens, 1 min after the last call",
        "read 70,000 tokens from the cache",
        "wrote 20,000 tokens",
        "the first after the agent cut its prompt to 20,000 tokens",
    ]


def test_what_no_cache_had_was_not_lost() -> None:
    usage = [
        UsageRecorded(id=EventId(""), at=0.0, model=MODEL, uncached=tokens)
        for tokens in (40_000, 41_000, 41_010)
    ]
    spent = spending_of(
        session(told(0, "go"), *(answered(at, each) for at, each in enumerate(usage)))
    )
    assert [call.why for call in spent.calls] == [
        "40,000 new tokens",
        "41,000 tokens, none from a cache",
        "41,010 tokens, none from a cache",
    ]


def test_most_of_the_new_tokens_are_more_than_half_of_them() -> None:
    read = asked(1, 1, used(0, 40_000), "a.py", 400) + asked(1, 2, None, "a.py", 400)
    others = [each for n in (3, 4) for each in asked(1, n, None, f"{n}.py", 500)]
    for more, share in (([], "most"), (others, "many"), (others[:2], "most")):
        spent = spending_of(session(told(0, "go"), *read, *more, answered(2, used(40_000, 30_000))))
        assert spent.calls[-1].why == f"30,000 new tokens, {share} of them of Read a.py"


def test_calls_outside_the_conversation_are_a_part_by_themselves() -> None:
    spent = spending_of(session(told(0, "go"), answered(1, used(0, 1_000))), [used(0, 2_000)])
    assert spent.parts["calls outside the conversation"] == pytest.approx(2_000 * WRITE)
    assert sum(spent.parts.values()) == pytest.approx(spent.bill.dollars)


calls = st.tuples(st.integers(0, 9_000), st.integers(0, 9_000), st.integers(0, 900))


@given(st.lists(st.one_of(st.none(), calls), max_size=12), st.integers(0, 5_000))
@example([(9_000, 0, 1), (0, 0, 900), (9_000, 9, 1)], 500)  # the second reported no prompt
def test_the_parts_add_up_to_the_bill(usages: list[tuple[int, int, int] | None], size: int) -> None:
    items = [
        asked(at, at, usage and used(*usage), f"{at % 3}.py", size)
        for at, usage in enumerate(usages, 1)
    ]
    spent = spending_of(session(told(0, "go"), *items))
    assert sum(spent.parts.values()) == pytest.approx(spent.bill.dollars)
    assert sum(spent.files.values()) <= spent.bill.dollars + 1e-9
    assert all(paid >= 0 for paid in (*spent.parts.values(), *spent.files.values()))


def test_only_wanted_calls_count_for_example_those_of_one_day() -> None:
    items: list[Item | list[Item]] = [
        told(0, "go"),
        asked(1, 1, used(0, 1_000), "a.py", 2_000),
        asked(2, 2, used(1_000, 2_000), "b.py", 1_000),
        answered(9, used(3_000, 1_000)),
    ]
    late = spending_of(session(*items), [used(0, 5, at=1), used(0, 7)], lambda at, _: at > 5)
    assert [(call.number, call.at) for call in late.calls] == [(3, 9), (0, 9)]
    assert late.bill.dollars == pytest.approx(3_000 * READ + 1_007 * WRITE)
    assert sum(late.parts.values()) == pytest.approx(late.bill.dollars)
    assert late.files == pytest.approx({"a.py": 2_000 * READ, "b.py": 1_000 * WRITE}, rel=0.05)
