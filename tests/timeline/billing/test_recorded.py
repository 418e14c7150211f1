"""The recorded bill: what the provider reported, at each call's own model; and a comparison that counts alike."""

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from blocks import Bill, EventId, UsageRecorded
from persistence.sessions import Responded, Session
from tests.timeline.replay.invented import invented
from timeline._models import priced_model
from timeline.billing import (
    CacheStep,
    RecordedBill,
    RecordedCall,
    compared_bill,
    recorded_bill,
    timeline_bill,
)
from timeline.replay import ReplayOptions, ReplayResult, replay

OPUS, SONNET = "claude-opus-4-6", "claude-sonnet-4-5"


def used(model: str = OPUS, **tokens: Any) -> UsageRecorded:
    return UsageRecorded(id=EventId(""), at=0.0, model=model, **tokens)


def bill_of(*usages: UsageRecorded | None) -> RecordedBill:
    return recorded_bill(usages, ())


def compared(calls: Sequence[tuple[float, UsageRecorded, int, CacheStep]]) -> RecordedBill:
    bill = bill_of(*(usage for _, usage, _, _ in calls))
    return compared_bill(bill, [RecordedCall(*call) for call in calls], 0.0)


def test_writes_for_an_hour_have_their_own_price() -> None:
    """Provider docs, pricing of Opus 4.6: input 5, read 0.50, writes 6.25 and 10, output 25 for a million."""
    usage = used(
        uncached=1_000,
        cache_read=200_000,
        cache_write=30_000,
        cache_write_long=20_000,
        output=4_000,
    )
    bill = bill_of(usage)
    assert bill.parts == pytest.approx(
        {
            "input": 0.005,
            "cache_read": 0.1,
            "cache_write_5m": 0.0625,  # 10,000
            "cache_write_1h": 0.2,  # 20,000
            "output": 0.1,
        }
    )
    assert bill.dollars == pytest.approx(0.4675)
    assert bill.tokens["cache_write_1h"] == 20_000
    assert bill.headline() == "bill $0.468 recorded"


def test_a_call_through_a_gateway_costs_what_its_bill_says() -> None:
    through = used(uncached=1_000_000, output=200_000, bill=Bill(paid=20.0))
    bill = timeline_bill([through, used(uncached=1_000_000), used(output=1, bill=Bill())])
    assert bill.dollars == pytest.approx(20.0 + 5.0 + 0.000025)
    assert sum(bill.parts.values()) == pytest.approx(bill.dollars), "the parts are of the same bill"
    assert bill.parts["output"] == pytest.approx(10.0 + 0.000025)


def test_a_timeline_has_the_calls_outside_its_conversation_in_its_bill() -> None:
    bill = timeline_bill([used(uncached=1_000_000), used(uncached=100_000, aside=True)])
    assert (bill.calls, bill.aside) == (2, 1)
    assert bill.dollars == pytest.approx(5.5)


def test_each_call_is_priced_at_its_own_model() -> None:
    bill = bill_of(used(OPUS, uncached=1_000_000), used(SONNET, uncached=100_000, output=10_000))
    assert bill.models == pytest.approx({OPUS: 5.0, SONNET: 0.45})
    assert bill.dollars == pytest.approx(5.45)
    assert any(line == f"by model: {OPUS} $5.00, {SONNET} $0.450" for line in bill.lines())


def test_a_long_prompt_is_billed_by_the_prices_of_long_prompts() -> None:
    """GPT-5.5 beyond 272,000 tokens, by the table: its second prices for the whole call."""
    model = priced_model("gpt-5.5")
    assert model is not None
    bill = bill_of(used("gpt-5.5", uncached=300_000, output=1_000))
    paid = 0.3 * model.long_price_input + 0.001 * model.long_price_output
    assert bill.dollars == pytest.approx(paid)


def test_what_is_not_in_the_bill_is_counted_and_said() -> None:
    bill = bill_of(None, used("nova-pro", uncached=10), used(uncached=1_000_000))
    assert (bill.calls, bill.without_usage, bill.unpriced) == (1, 1, {"nova-pro": 1})
    said = "1 calls whose usage the log lacks; 1 calls at unknown prices (nova-pro)"
    assert f"not in the bill: {said}" in bill.lines()
    assert bill_of(None).headline() == "no bill: 1 calls whose usage the log lacks"


def test_calls_outside_the_conversation_are_paid_too() -> None:
    bill = recorded_bill([used(uncached=1_000_000)], [used(uncached=200_000)])
    assert (bill.calls, bill.aside) == (2, 1)
    assert bill.dollars == pytest.approx(6.0)


def test_a_name_that_is_not_in_the_table_has_the_prices_of_its_own_vendor() -> None:
    bill = bill_of(used("claude-opus-4-6-next", uncached=1_000_000))
    assert bill.guessed == {"claude-opus-4-6-next": OPUS}
    assert bill.headline() == "bill about $5.00 recorded"
    for name in ("gpt-9", "gemini-9-pro", "claude-opus-9"):
        model = priced_model(name)
        assert model is not None
        assert not model.known
        assert model.name.partition("-")[0] == name.partition("-")[0]
    for name in ("nova-pro", "gptx-1", "somebody-elses"):
        assert priced_model(name) is None, "never another vendor's price"


def test_a_tier_without_a_known_price_is_said() -> None:
    bill = bill_of(used(uncached=1_000_000, tier="priority"))
    said = "1 calls at the list price: the price of service tier 'priority' is not known"
    assert said in bill.lines()
    assert bill.headline() == "bill about $5.00 recorded"


def test_the_same_requests_cost_the_same() -> None:
    """The log lacks 40,000 tokens of system prompt and tools, and a quarter of what belongs to the messages."""
    calls = [
        (0.0, used(cache_write=45_000), 4_000, CacheStep(written={300: 4_000})),
        (60.0, used(cache_read=45_000, cache_write=5_000), 8_000, CacheStep(read=4_000, written={300: 4_000})),
        (120.0, used(cache_read=50_000, cache_write=10_000), 16_000, CacheStep(read=8_000, written={300: 8_000})),
    ]  # fmt: skip
    bill = compared(calls)
    assert (bill.unlogged, bill.growth) == (40_000, 1.25)
    assert bill.saved == pytest.approx(0)
    assert bill.headline().endswith("saved $0.000 (0%)")


def test_where_the_providers_cache_had_lost_a_prompt_it_has_lost_the_other_too() -> None:
    calls = [
        (0.0, used(uncached=50_000), 50_000, CacheStep(uncached=50_000)),
        (60.0, used(uncached=60_000), 60_000, CacheStep(read=10_000)),
    ]
    bill = compared(calls)
    assert bill.foldline == pytest.approx(5 * (0.05 + 0.01)), "10,000 tokens, and none of them read"


def test_a_comparison_that_foldline_loses_is_the_headline() -> None:
    calls = [
        (0.0, used(uncached=50_000), 50_000, CacheStep(uncached=50_000)),
        (60.0, used(uncached=60_000), 60_000, CacheStep(uncached=90_000)),
    ]
    headline = compared(calls).headline()
    assert headline == "bill $0.550 recorded; with foldline it would have cost $0.150 more (27%)"


# In a replay.


def reported(session: Session, tokens: int = 30_000, model: str = OPUS) -> Session:
    """The session with usage: prompts that grow by 1,000 tokens, each without a cache."""
    items, calls = list[Any](), 0
    for item in session.items:
        if isinstance(item, Responded):
            usage = used(model, uncached=tokens + 1_000 * calls, output=100)
            calls += 1
            items.append(attrs.evolve(item, usage=usage, model=model))
        else:
            items.append(item)
    return attrs.evolve(session, items=tuple(items), model=model)


def replayed(session: Session, **options: Any) -> ReplayResult:
    return replay(session, ReplayOptions(counter="estimate", **options))


def test_a_replay_says_the_recorded_bill_before_all_else() -> None:
    result = replayed(reported(invented(turns=2)))
    prompts = sum(30_000 + 1_000 * number for number in range(12))
    paid = prompts * 5e-6 + 12 * 100 * 25e-6
    assert result.recorded_bill.dollars == pytest.approx(paid)
    assert result.recorded_bill.foldline is not None
    data = result.to_json()
    assert next(iter(data)) == "recorded_bill"
    assert data["recorded_bill"]["headline"] == result.recorded_bill.headline()
    assert data["recorded_bill"]["saved"] == pytest.approx(
        paid - result.recorded_bill.foldline, abs=1e-5
    )


def test_a_session_without_usage_has_no_bill() -> None:
    result = replayed(invented(turns=1))
    assert result.recorded_bill.headline() == "no bill: 6 calls whose usage the log lacks"
    assert result.recorded_bill.foldline is None


def test_the_sessions_own_window_holds_what_the_log_lacks_too() -> None:
    session = attrs.evolve(reported(invented(turns=2), model="gpt-5.5"), window=258_400)
    result = replayed(session)
    assert (result.window, result.model, result.guess) == (258_400, "gpt-5.5", "")
    assert 129_200 <= result.room < result.window - result.recorded_bill.unlogged + 1
    chosen = replayed(session, window=50_000)
    assert (chosen.window, chosen.room) == (50_000, 50_000)
    assert replayed(attrs.evolve(session, items=invented(turns=2).items)).room == 258_400
    assert replayed(session, model="gpt-5").window == 272_000, "another model has another window"


def test_a_model_of_an_unknown_vendor_is_replayed_without_a_price() -> None:
    result = replayed(reported(invented(turns=2), model="nova-pro"))
    assert result.model == "nova-pro"
    assert "no price is known" in result.guess
    assert (result.cost.total, result.cost.full_history) == (0, 0)
    assert result.units.total > 0
