"""A replay knows no API: it prices the requests of another provider by what that provider says."""

from typing import Any, cast

import attrs
import pytest

from persistence import MemoryStore
from render import PROVIDERS, Model, Provider
from tests._table import for_each
from tests.render.providers.plain import LONG, plain_text
from tests.timeline.replay.invented import invented
from timeline.billing import SummaryCall, price
from timeline.billing._prices import summary_price, summary_units
from timeline.replay import ReplayOptions, Sent, replay
from timeline.replay._replay import EVERYTHING, Replay

STEADY = attrs.evolve(EVERYTHING, name="steady", trigger_tokens=3_000)
"""Compacts long before the window is full, and prunes nothing."""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> Provider:
    provider = plain_text()
    monkeypatch.setitem(PROVIDERS.loaded, "anthropic", provider)
    return provider


@for_each("summarizer", ["extractive", "stand-in"])
def test_a_session_is_replayed_and_priced_with_a_provider_of_plain_text(summarizer: Any) -> None:
    sent: list[Sent] = []
    options = ReplayOptions(policy=STEADY, counter="estimate", summarizer=summarizer)
    result = replay(invented(), options, dump=sent.append)
    assert result.problems == ()
    assert result.calls == len(sent) == 24
    assert result.folds
    assert all(list(one.rendered.request()) == ["prompt"] for one in sent)
    billed = result.cache
    assert billed.read + billed.write + billed.uncached == sum(one.rendered.tokens for one in sent)
    units = billed.uncached + billed.write + billed.read / 2
    assert result.units.prompt == pytest.approx(units)
    assert bool(result.units.summaries) == (summarizer == "stand-in")
    assert result.warm_busts == result.folds  # sent within seconds, so what was cut was still there


def test_what_the_agent_could_read_in_a_request_its_provider_says() -> None:
    options = ReplayOptions(policy=STEADY, window=3_000, counter="estimate")
    result = replay(invented(), options)
    assert result.recall.near == 1, "the newest rounds are in every request"
    tools = cast("Any", options.tools_for(invented()))
    assert tools == [{"name": "bash"}, {"name": "read file"}], "names as this provider takes them"


def test_what_two_requests_have_in_common_is_read_by_the_providers_rules() -> None:
    """All of the last one; a prompt below the minimum of the model (512) is no entry."""
    replayed = Replay.begin(invented(turns=1), ReplayOptions(counter="estimate"), MemoryStore())
    replayed.run()
    bill, full = replayed.bill, [point.full_tokens for point in replayed.points]
    entries = [tokens for tokens in full if tokens >= 512]
    assert len(entries) == 4
    assert bill.busts == 0
    assert bill.read == sum(entries[:-1])
    assert bill.write == entries[-1]
    assert bill.uncached == sum(full) - sum(entries)


def test_the_provider_says_what_a_long_prompt_costs() -> None:
    model = Model(name="plain", price_input=2.0, price_output=10.0)
    step = Replay.begin(invented(turns=1), ReplayOptions(), MemoryStore()).bill._cache.step(0, [])
    assert price(step, model) == 0
    call = SummaryCall(input_tokens=LONG, cached_prefix_tokens=1_000, output_tokens=100)
    assert summary_price(call, model) == pytest.approx((4_000 * 2 + 1_000 + 100 * 10) / 1e6)
    assert summary_units(call, model) == pytest.approx(4_000 + 500 + 500)
    long = SummaryCall(input_tokens=LONG + 1)
    assert summary_price(long, model) == pytest.approx(6 * (LONG + 1) / 1e6)
