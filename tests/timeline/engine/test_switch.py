"""Off means off: without compaction the log is shown as it is, and what does not fit says so."""

from typing import Any

import pytest

from blocks import ArgumentError, BlocksHidden, CompactionSkipped, RangeCompacted
from persistence import MemoryStore
from render import Policy
from tests._builders import Clock, events_of, flat, open_timeline, steady
from tests._table import for_each
from tests.timeline.test_timeline import busy
from timeline import Timeline

OFF: list[dict[str, Any]] = [{"compaction": False}, {"rungs": ()}]


def off(options: dict[str, Any], window: int, **more: Any) -> Timeline:
    return busy(open_timeline(window=window, policy=steady(**options), **more), 20)


@for_each("options", OFF, ids=str)
def test_nothing_is_pruned_clipped_or_compacted(options: dict[str, Any]) -> None:
    clock = Clock()
    timeline = off(options, 2_000, clock=clock)
    whole = flat(busy(open_timeline(window=10**6), 20).render())
    rendered = timeline.render()
    assert flat(rendered) == whole
    clock.wait(10_000)
    assert flat(timeline.render()) == whole, "not when the cache is cold"
    assert flat(timeline.compact()) == whole, "not when somebody asks"
    assert timeline.propose().proposals == ()
    kinds = (BlocksHidden, RangeCompacted, CompactionSkipped)
    assert [e for kind in kinds for e in events_of(timeline, kind)] == []


@for_each("options", OFF, ids=str)
def test_what_does_not_fit_says_so(options: dict[str, Any]) -> None:
    timeline = off(options, 2_000)
    rendered = timeline.render()
    assert not rendered.fits
    assert rendered.cannot_fit is not None
    assert rendered.cannot_fit.reason == "over_limit"
    assert "compaction is switched off" in rendered.cannot_fit.advice
    assert off(options, 10**6).render().cannot_fit is None


def test_what_somebody_hides_is_hidden() -> None:
    timeline = off({"compaction": False}, 10**6)
    path = timeline.view.entries[1].path
    timeline.hide(path, replacement="gone")
    assert "gone" in str(timeline.render().messages)


def test_switched_on_again_it_makes_room() -> None:
    store = MemoryStore()
    off({"compaction": False}, 2_000, store=store).render()
    again = open_timeline(store=store, window=2_000)
    assert again.render().fits


def test_a_switch_is_true_or_false() -> None:
    with pytest.raises(ValueError, match="'compaction' must be true or false"):
        Policy(compaction="off")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_tail_has_one_length() -> None:
    with pytest.raises(ArgumentError, match="keep_turns and keep_messages"):
        Policy(keep_turns=2, keep_messages=10)
