"""The first request of a timeline, before the provider has counted any: whatever its text, it is not too long."""

import pytest

from blocks import EventId, UsageRecorded
from timeline import Timeline, known_models

LINE = "The nightly job read part {} of the feed and wrote a thousand rows of it.\n"
GUESSED = [model.name for model in known_models() if model.token_factor_safe > model.token_factor]
SAMPLE = ("claude-opus-4-5", "claude-sonnet-5-5", "gemini-2.5-flash", "deepseek-chat")


def talk(name: str, share: float) -> Timeline:
    """A conversation whose estimate is this share of the room in the model's window."""
    timeline = Timeline.open("talk", model=name, counter="model")
    settings = timeline.settings
    text = "".join(LINE.format(n) for n in range(400))
    size = settings.counter.count(text)
    for _ in range(int(share * settings.limit / (size + 20))):
        timeline.user(text)
    return timeline


def test_a_factor_that_is_not_exact_has_a_safe_one() -> None:
    for model in known_models():
        if model.token_factor != 1.0:
            assert model.token_factor_safe > model.token_factor, model.name


@pytest.mark.parametrize("name", SAMPLE)
def test_the_first_request_fits_even_if_the_estimate_is_as_small_as_it_may_be(name: str) -> None:
    assert name in GUESSED
    timeline = talk(name, 0.93)
    model, room = timeline.settings.model, timeline.settings.limit
    account = timeline.render().account
    assert account.total * model.token_factor_safe / model.token_factor <= room
    assert account.total > 0.3 * room or account.total < account.limit


@pytest.mark.parametrize("name", SAMPLE[:2])
def test_once_the_provider_has_counted_the_whole_window_is_used(name: str) -> None:
    timeline = talk(name, 0.4)
    before = timeline.render().account
    assert before.limit == timeline.settings.limit
    counted = UsageRecorded(
        id=EventId("u"), at=0.0, model=timeline.settings.model.name, output=1, response="r",
        uncached=before.estimated, estimated=before.estimated,
    )  # fmt: skip
    timeline.learn(counted)
    text = "".join(LINE.format(n) for n in range(400))
    size = timeline.settings.counter.count(text)
    while timeline.render().account.total + size < 0.93 * timeline.settings.limit:
        timeline.user(text)
    account = timeline.render().account
    assert account.total > 0.85 * account.limit
    assert account.limit == timeline.settings.limit


def test_a_window_that_is_given_is_kept_if_the_models_is_larger() -> None:
    timeline = Timeline.open("talk", model="claude-sonnet-5-5", window=8_000)
    timeline.user("disk full\n" * 2_000)
    assert timeline.render().account.limit == 8_000
