"""The shipped policies stand where their names say on the front of cost against recall."""

from pathlib import Path

import pytest

from persistence.sessions import read_session
from timeline._policies import named_policies
from timeline.replay import Means, ReplayOptions, compared, replay

SAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "invoice-service.jsonl"
NAMES = ["frugal", "default", "generous"]
WINDOWS = (20_000, 24_000, 28_000)
"""In a single one it is chance what a compaction happens to fold."""


@pytest.fixture(scope="module")
def means() -> tuple[Means, ...]:
    session = read_session(SAMPLE)
    options = (ReplayOptions(window=w, policy=name) for name in NAMES for w in WINDOWS)
    return compared([replay(session, option) for option in options])


def test_the_others_are_systems_that_others_have_built() -> None:
    others = {"checkpoint", "forty", "last-messages", "block-timeline", "ladder"}
    assert set(named_policies()) == {*NAMES, *others}


def test_each_costs_more_than_the_one_before_and_keeps_more(means: tuple[Means, ...]) -> None:
    assert [mean.policy for mean in means] == NAMES
    for measure in ("cost", "far"):
        values = [getattr(mean, measure) for mean in means]
        assert values == sorted(values), measure
    frugal, default, _ = means
    assert frugal.is_front
    assert default.is_front
