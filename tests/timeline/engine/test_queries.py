"""A timeline finds its own blocks, whatever became of them."""

import asyncio

from persistence import MemoryStore
from tests._builders import open_timeline
from timeline import AsyncTimeline


def test_what_is_folded_or_hidden_is_found_and_can_be_read() -> None:
    store = MemoryStore()
    timeline = open_timeline(store=store, window=3_000)
    open_timeline("other", store=store).user("The gateway listens on port 48231, too.")
    timeline.user("The gateway listens on port 48231.")
    for number in range(30):
        timeline.user(f"Part {number}: {'word ' * 100}")
    timeline.compact()
    timeline.hide("ar:t30.user.prompt")
    assert timeline.view.compaction is not None
    (hit,) = timeline.search("48231")
    assert hit.path == "ar:t1.user.prompt"
    assert timeline.read(hit.path).id == timeline.read("ar:t1.user.prompt").id
    assert timeline.search('"part 28:"') == timeline.search("nobody says this")
    [hit] = timeline.search('"part 28:"', hidden=True)
    assert hit.path == "ar:t30.user.prompt"
    assert len(timeline.search("word", limit=7)) == 7


def test_an_async_timeline_finds_the_same() -> None:
    async def run() -> None:
        timeline = await AsyncTimeline.open("talk")
        await timeline.user("The gateway listens on port 48231.")
        (hit,) = await timeline.search("48231")
        assert hit.snippet == "The gateway listens on port 48231."
        await timeline.close()

    asyncio.run(run())
