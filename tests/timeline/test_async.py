"""An asynchronous timeline belongs to the event loop that it was opened in, as long as that one is open."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Thread

import pytest

from blocks import BlockAppended, MisuseError, text_of
from persistence import MemoryStore
from render import Summary
from tests._builders import steady
from tests._sizes import PATIENCE
from tests._table import for_each
from timeline import AsyncTimeline, SummaryRequest


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def texts(events: list[tuple[int, object]]) -> list[str]:
    return [
        text_of(e.block) for _, e in events if isinstance(e, BlockAppended) and text_of(e.block)
    ]


CALLS: dict[str, Callable[[AsyncTimeline], Awaitable[object]]] = {
    "user": lambda timeline: timeline.user("two"),
    "render": lambda timeline: timeline.render(),
    "events": lambda timeline: timeline.events(),
    "fork": lambda timeline: timeline.fork("other"),
    "sync": lambda timeline: timeline.sync(
        [{"role": "user", "content": "one"}], format="anthropic"
    ),
    "snapshot": lambda timeline: timeline.snapshot(),
    "close": lambda timeline: timeline.close(),
}


@for_each("name", CALLS)
def test_every_first_call_in_a_second_loop_is_refused_and_its_advice_works(name: str) -> None:
    store = MemoryStore()
    with running_loop() as loop:

        async def here() -> AsyncTimeline:
            timeline = await AsyncTimeline.open("talk", store=store)
            await timeline.user("one")
            return timeline

        timeline = asyncio.run_coroutine_threadsafe(here(), loop).result(PATIENCE)

        async def there() -> None:
            with pytest.raises(MisuseError, match="'talk' is in use in another event loop"):
                await CALLS[name](timeline)
            answer = asyncio.run_coroutine_threadsafe(timeline.user("two"), loop)
            await asyncio.wrap_future(answer)
            again = await AsyncTimeline.open("talk", store=store)
            await again.user("three")

        asyncio.run(there())
        events = asyncio.run_coroutine_threadsafe(timeline.events(), loop).result(PATIENCE)
    assert texts(list(events)) == ["one", "two", "three"]


def test_of_many_loops_at_once_one_may_use_it_and_nobody_waits_for_ever() -> None:
    timeline = asyncio.run(AsyncTimeline.open("talk"))
    answers: list[str] = []

    def use(name: int) -> None:
        async def steered() -> None:
            for number in range(20):
                await timeline.steer(f"{name}.{number}")

        try:
            asyncio.run(asyncio.wait_for(steered(), PATIENCE))
        except MisuseError:
            return
        answers.append(str(name))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert answers

    async def said() -> list[str]:
        return texts(list(await timeline.events()))

    log = asyncio.run(said())
    for name in answers:
        own = [text for text in log if text.startswith(f"{name}.")]
        assert own == [f"{name}.{number}" for number in range(20)]


def test_after_its_loop_was_closed_in_the_middle_of_all_it_goes_on_in_the_next() -> None:
    """Nothing of the closed loop is waited for: a call that holds the lock, a summary that is being prepared."""

    async def never(_: SummaryRequest) -> Summary:
        await asyncio.Event().wait()
        raise AssertionError

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # it is told of the task that it left unfinished
    policy = steady(prepare_ratio=0.1)

    async def begun() -> AsyncTimeline:
        timeline = await AsyncTimeline.open(
            "talk", window=3000, counter="estimate", policy=policy, summarizer=never
        )
        await timeline.user("one " * 1000)
        await timeline.record({"id": "m", "content": [{"type": "text", "text": "yes " * 800}]})
        await timeline.user("more")
        await timeline.render()
        return timeline

    timeline = loop.run_until_complete(begun())
    held = loop.create_task(timeline.steer("two"))
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()

    async def later() -> int:
        version = await timeline.user("three")
        await timeline.close()
        return version

    assert asyncio.run(asyncio.wait_for(later(), PATIENCE)) > 0
    del held
