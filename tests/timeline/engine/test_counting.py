"""The provider's counting endpoint: asked when somebody wants it, and believed."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import MisuseError, TokensCounted, UsageRecorded
from persistence import MemoryStore
from tests._table import for_each
from timeline import AsyncTimeline, Timeline

MODEL = "claude-haiku-4-5"


class Endpoint:
    """Counts characters, and remembers what it was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer = answer

    def __call__(self, request: dict[str, Any]) -> Any:
        self.asked.append(request)
        return len(str(request)) if self.answer is None else self.answer


def opened(endpoint: Any = None, **options: Any) -> Timeline:
    timeline = Timeline.open("t", model=MODEL, count_tokens=endpoint, **options)
    timeline.user("Why does the nightly job fail? " * 40)
    return timeline


@given(st.integers(1, 10**6))
def test_what_it_says_is_the_size_of_the_next_request(tokens: int) -> None:
    with opened(Endpoint(tokens)) as timeline:
        account = timeline.calibrate()
        assert (account.total, account.samples) == (tokens, 1)
        assert timeline.render().tokens == tokens


def test_it_gets_the_arguments_of_the_request() -> None:
    endpoint = Endpoint()
    with opened(endpoint) as timeline:
        timeline.calibrate(system="Be brief.")
        [asked] = endpoint.asked
        expected = timeline.render(system="Be brief.").anthropic(max_tokens=5)
        del expected["max_tokens"]
        assert asked == expected


def test_nobody_asks_it_unasked() -> None:
    endpoint = Endpoint()
    with opened(endpoint, window=2_000) as timeline:
        for _ in range(5):
            timeline.user("and now? " * 200)
            timeline.render()
        timeline.compact()
    assert endpoint.asked == []


def test_it_is_a_fact_that_is_no_bill_and_others_learn_from_it() -> None:
    store = MemoryStore()
    with opened(Endpoint(5_000), store=store) as timeline:
        before = timeline.calibrate()
        events = [event for _, event in timeline.events()]
        [fact] = [event for event in events if isinstance(event, TokensCounted)]
        assert (fact.model, fact.input, fact.estimated) == (MODEL, 5_000, before.estimated)
        assert not [event for event in events if isinstance(event, UsageRecorded)]
    with Timeline.open("t", model=MODEL, store=store) as again:
        assert again.render().account == before


def test_an_async_timeline_may_ask_an_async_endpoint() -> None:
    async def count(request: dict[str, Any]) -> int:
        await asyncio.sleep(0)  # others have their turn
        return 100 + len(request["messages"])

    async def talk() -> int:
        async with await AsyncTimeline.open("t", model=MODEL, count_tokens=count) as timeline:
            await timeline.user("Why?")
            return (await timeline.calibrate()).total

    assert asyncio.run(talk()) == 101
    with opened(count) as timeline, pytest.raises(MisuseError, match="use AsyncTimeline"):
        timeline.calibrate()


@for_each("answer", [0, -1, True, 3.5, "12", {"input_tokens": 12}, object()])
def test_an_answer_that_is_no_number_of_tokens_is_refused_and_not_recorded(answer: object) -> None:
    with opened(Endpoint(answer)) as timeline:
        version = timeline.version
        with pytest.raises(MisuseError, match="its input_tokens"):
            timeline.calibrate()
        assert timeline.version == version
        assert timeline.render().account.samples == 0


def test_what_the_endpoint_raises_comes_through_and_changes_nothing() -> None:
    def count(_: object) -> int:
        raise ConnectionError("no route")

    with opened(count) as timeline:
        version = timeline.version
        with pytest.raises(ConnectionError, match="no route"):
            timeline.calibrate()
        assert timeline.version == version


def test_without_an_endpoint_nobody_counts() -> None:
    with opened() as timeline, pytest.raises(MisuseError, match="count_tokens="):
        timeline.calibrate()


def test_the_timeline_may_be_used_while_the_endpoint_thinks() -> None:
    def count(_: object) -> int:
        timeline.user("by the way")
        return 900

    with opened(count) as timeline:
        timeline.calibrate()
        assert timeline.render().account.samples == 1
        assert "by the way" in str(timeline.render().messages)
