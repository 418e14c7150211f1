"""A prompt that the provider calls too long: compacted, rendered again, tried again, each try smaller."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import attrs
import pytest

from blocks import RangeCompacted, TokensCounted
from persistence import MemoryStore
from render import Rendered
from tests import _builders as make
from tests._builders import CharCounter, Clock, events_of, open_timeline, steady
from tests.timeline.test_timeline import busy
from timeline import AsyncTimeline, aretry_with_compaction, retry_with_compaction

WINDOW = 100_000
OPTIONS: dict[str, Any] = {
    "counter": CharCounter(),
    "model": make.LOOSE,
    "window": WINDOW,
    "policy": steady(keep_ratio=0.01),
    "clock": Clock(),
}


class TooLongError(Exception):
    """As the provider's client raises it."""

    status_code = 400

    def __init__(self, told: str) -> None:
        text = f"prompt is too long{told}"
        self.body = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
        super().__init__(text)


@attrs.define
class Provider:
    """Takes prompts of so many tokens, by its own count, and remembers what it was asked."""

    tokens_max: int
    factor: float = 1.0
    """Its tokens for one of ours."""
    tells: bool = True
    """Whether its error says how many there were."""
    asked: list[int] = attrs.field(factory=list[int])

    def __call__(self, rendered: Rendered) -> str:
        tokens = round(self.factor * rendered.account.estimated)
        self.asked.append(rendered.account.estimated)
        if tokens > self.tokens_max:
            told = f": {tokens} tokens > {self.tokens_max} maximum" if self.tells else ""
            raise TooLongError(told)
        return "done"

    async def later(self, rendered: Rendered) -> str:
        return self(rendered)


Retry: TypeAlias = Callable[..., str]


@pytest.fixture(params=["sync", "async"])
def retry(request: pytest.FixtureRequest) -> Iterator[Retry]:
    """Calls a provider for the timeline in a store; what holds for one kind holds for both."""

    def run(store: MemoryStore, provider: Provider, **more: Any) -> str:
        with open_timeline(store=store, **OPTIONS) as timeline:
            return retry_with_compaction(timeline, provider, **more)

    async def arun(store: MemoryStore, provider: Provider, **more: Any) -> str:
        async with await AsyncTimeline.open("talk", store=store, **OPTIONS) as timeline:
            return await aretry_with_compaction(timeline, provider.later, **more)

    if request.param == "sync":
        yield run
        return
    with asyncio.Runner() as runner:
        yield lambda *given, **more: runner.run(arun(*given, **more))


def talk(rounds: int = 40) -> MemoryStore:
    store = MemoryStore()
    with open_timeline(store=store, **OPTIONS) as timeline:
        busy(timeline, rounds)
    return store


def facts(store: MemoryStore, kind: type[Any]) -> list[Any]:
    with open_timeline(store=store, **OPTIONS) as timeline:
        return events_of(timeline, kind)


def test_what_fits_is_asked_once_and_nothing_is_compacted(retry: Retry) -> None:
    store, provider = talk(), Provider(WINDOW)
    assert retry(store, provider) == "done"
    assert len(provider.asked) == 1
    assert facts(store, RangeCompacted) == []


def test_what_is_too_long_is_compacted_and_tried_again(retry: Retry) -> None:
    store, provider = talk(), Provider(WINDOW, factor=15.0)
    assert retry(store, provider) == "done"
    first, second = provider.asked
    assert 15 * second <= WINDOW < 15 * first
    assert len(facts(store, RangeCompacted)) == 1


def test_the_provider_s_count_is_learnt(retry: Retry) -> None:
    store, provider = talk(), Provider(WINDOW, factor=15.0)
    retry(store, provider)
    [learnt] = facts(store, TokensCounted)
    assert (learnt.input, learnt.estimated) == (15 * provider.asked[0], provider.asked[0])
    assert learnt.limit == WINDOW


def test_a_smaller_limit_that_the_provider_names_holds_for_all_later_requests(retry: Retry) -> None:
    """Such as that of a server that was started with a smaller context than the model's."""
    store, provider = talk(), Provider(1_000)
    assert retry(store, provider) == "done"
    assert len(provider.asked) == 2
    for _ in range(3):
        with open_timeline(store=store, **OPTIONS) as timeline:
            timeline.user("Which of the parts is the largest? " * 60)
        assert retry(store, provider) == "done"
    assert len(provider.asked) == 5
    [learnt] = facts(store, TokensCounted)
    assert learnt.limit == 1_000
    with open_timeline(
        store=store, **{**OPTIONS, "model": attrs.evolve(make.LOOSE, name="b")}
    ) as other:
        assert other.render().account.limit == WINDOW


def test_a_limit_that_is_larger_than_the_timelines_changes_nothing(retry: Retry) -> None:
    store = talk()
    retry(store, Provider(2 * WINDOW, factor=30.0))
    with open_timeline(store=store, **OPTIONS) as timeline:
        assert timeline.render().account.limit == WINDOW


def test_an_error_without_numbers_teaches_nothing_and_is_tried_again_all_the_same(
    retry: Retry,
) -> None:
    store, provider = talk(), Provider(WINDOW, factor=15.0, tells=False)
    assert retry(store, provider) == "done"
    assert len(provider.asked) == 2
    assert facts(store, TokensCounted) == []


@pytest.mark.parametrize("rounds", [0, 1, 40])
def test_a_request_that_is_no_smaller_is_not_tried(retry: Retry, rounds: int) -> None:
    """The provider has just refused it, and would again."""
    provider = Provider(1, tells=False)
    with pytest.raises(TooLongError):
        retry(talk(rounds), provider, retries_max=9)
    assert provider.asked == sorted(set(provider.asked), reverse=True)
    assert len(provider.asked) == 1 or rounds == 40


@pytest.mark.parametrize("retries", [0, 1])
def test_it_is_tried_no_more_often_than_asked_for(retry: Retry, retries: int) -> None:
    provider = Provider(1)
    with pytest.raises(TooLongError):
        retry(talk(), provider, retries_max=retries)
    assert len(provider.asked) == 1 + retries


def test_another_error_comes_through_at_once(retry: Retry) -> None:
    class BrokenProvider(Provider):
        def __call__(self, rendered: Rendered) -> str:
            self.asked.append(rendered.tokens)
            raise ConnectionError("gone")

    store, provider = talk(), BrokenProvider(1)
    with pytest.raises(ConnectionError):
        retry(store, provider)
    assert len(provider.asked) == 1
    assert facts(store, RangeCompacted) == []
