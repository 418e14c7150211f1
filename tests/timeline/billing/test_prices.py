"""Money: the provider's price list, and units that need none."""

import pytest

from blocks import EventId, UsageRecorded
from tests._table import for_each
from timeline._models import model_named
from timeline.billing import CacheStep, SummaryCall, price, usage_price
from timeline.billing._prices import ordinary_rates, summary_cost, summary_price

CLAUDE = model_named("claude-sonnet-5-5")
STEP = CacheStep(read=1_000_000, written={300: 100_000, 3_600: 10_000}, uncached=1_000)


def test_units_are_tokens_of_ordinary_input() -> None:
    """Provider docs, prompt caching: writes 1.25 and 2, reads 0.1."""
    units = ordinary_rates(CLAUDE).cost(STEP.uncached, STEP.read, STEP.written)
    assert units == pytest.approx(1_000 + 1.25 * 100_000 + 2 * 10_000 + 0.1 * 1_000_000)


def test_a_summary_call_pays_for_input_cached_prefix_and_output() -> None:
    call = SummaryCall(input_tokens=10_000, cached_prefix_tokens=8_000, output_tokens=500)
    assert summary_cost(call, ordinary_rates(CLAUDE)) == pytest.approx(2_000 + 800 + 2_500)
    impossible = SummaryCall(input_tokens=100, cached_prefix_tokens=900)
    assert summary_cost(impossible, ordinary_rates(CLAUDE)) == pytest.approx(10)


def test_a_prompt_in_dollars() -> None:
    """Provider docs, pricing (2026-10-08): 2 / 2.50 / 4 / 0.10 for a million."""
    dollars = price(STEP, CLAUDE)
    assert dollars == pytest.approx(0.002 + 0.25 + 0.04 + 0.1)


def test_some_models_read_cheaper() -> None:
    step = CacheStep(read=1_000_000)
    assert price(step, model_named("claude-opus-5-5")) == pytest.approx(0.2)  # 0.05 of input
    assert price(step, model_named("claude-fable-5-1")) == pytest.approx(0.25)  # 0.025 of input


@for_each(("tokens", "dollars"), [(100_000, 0.01), (100_001, 0.0500005)])
def test_a_long_prompt_pays_the_upper_tier_throughout(tokens: int, dollars: float) -> None:
    haiku = model_named("claude-haiku-5-5")
    assert price(CacheStep(uncached=tokens), haiku) == pytest.approx(dollars)
    assert summary_price(SummaryCall(input_tokens=tokens), haiku) == pytest.approx(dollars)


def test_output_is_priced_by_the_tier_of_its_prompt() -> None:
    haiku = model_named("claude-haiku-5-5")
    short = SummaryCall(input_tokens=0, output_tokens=1_000_000)
    assert summary_price(short, haiku) == pytest.approx(0.5)
    long = SummaryCall(input_tokens=200_000, output_tokens=1_000_000)
    assert summary_price(long, haiku) == pytest.approx(0.1 + 2.5)


def test_a_call_is_priced_by_its_usage_and_by_how_long_its_prompt_is_cached() -> None:
    """The response says it, or else whoever asked; and if nobody says it, it is the shortest time."""
    usage = UsageRecorded(
        id=EventId("e"), at=0.0, model="", uncached=1_000, cache_read=1_000_000, cache_write=110_000
    )
    said = {"usage": {"cache_creation": {"ephemeral_1h_input_tokens": 10_000}}}
    assert usage_price(usage, CLAUDE, said) == pytest.approx(price(STEP, CLAUDE))
    for ttl, dearer in ((0, 2.5), (300, 2.5), (3_600, 4)):
        dollars = 0.002 + 0.11 * dearer + 0.1
        assert usage_price(usage, CLAUDE, {}, ttl) == pytest.approx(dollars)
