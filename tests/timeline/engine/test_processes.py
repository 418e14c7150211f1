"""Processes with a timeline of their own each, on one log of a store that they share."""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import pytest

from blocks import Recorded, TimelineId
from persistence import open_store, verify
from persistence.testing import RecordingStore
from persistence.testing._recording import StoreCall
from tests._builders import open_timeline
from tests._sizes import PATIENCE
from tests.timeline.engine.test_racing import (
    WRITERS,
    assert_all_there,
    assert_live_is_reopened,
    assert_ranges_follow_one_another,
    talk,
    texts_in,
)

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.timeline.engine.test_racing"])


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/talks.sqlite"
    url: str = request.getfixturevalue("url")
    return url


def talk_in_a_process(where: str, worker: int) -> list[StoreCall]:
    """What it asked of the store; the clock is the machine's, so moments of processes can be compared."""
    with closing(open_store(where)) as store:
        recording = RecordingStore(store)
        recording._tick = time.monotonic_ns
        talk(recording, worker)
        return recording.calls


def test_timelines_in_processes_are_never_refused_and_their_calls_are_those_of_one_log(
    where: str,
) -> None:
    """They append, render, compact and hide, while another process follows."""
    with closing(open_store(where)) as store, ThreadPoolExecutor(1) as reader:
        events = open_timeline(store=store).follow(interval=(0.001, 0.05))
        followed = reader.submit(lambda: list(_until_the_end(events)))
        with ProcessPoolExecutor(WRITERS, mp_context=FORKS) as pool:
            calls = list(pool.map(talk_in_a_process, [where] * WRITERS, range(WRITERS)))
        recording = RecordingStore(store)
        recording.calls += chain.from_iterable(calls)
        assert recording.problems() == []
        timeline = open_timeline(store=store, window=3000)
        assert_all_there(texts_in(timeline))
        assert_ranges_follow_one_another(timeline)
        timeline.steer(THE_END)
        assert_live_is_reopened(timeline)
        log = store.read(TimelineId("talk"), limit=timeline.version)
        seen = followed.result(PATIENCE)
        assert seen == log[: len(seen)], "up to the end: all of it, once"
        assert verify(store).ok


THE_END = "the end"


def _until_the_end(events: Iterator[Recorded]) -> Iterator[Recorded]:
    for recorded in events:
        yield recorded
        if THE_END in str(recorded[1]):
            return
