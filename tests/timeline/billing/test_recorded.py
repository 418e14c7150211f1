"""The recorded bill: what the provider reported, at each call's own model; and a comparison that counts alike."""

from collections.abc import Sequence
from math import isqrt
from typing import Any, TypeAlias

import attrs
import pytest

from blocks import Bill, EventId, UsageRecorded
from persistence.sessions import Responded, Session
from render import Policy
from tests._table import for_each
from tests.timeline.replay.invented import invented
from timeline._models import priced_model
from timeline.billing import (
    CacheStep,
    RecordedBill,
    RecordedCall,
    compared_bill,
    kept_in,
    recorded_bill,
    timeline_bill,
    unlogged_in,
)
from timeline.replay import ReplayOptions, ReplayResult, replay
from timeline.replay._replay import Replay

OPUS, SONNET = "claude-opus-4-6", "claude-sonnet-4-5"


def used(model: str = OPUS, **tokens: Any) -> UsageRecorded:
    return UsageRecorded(id=EventId(""), at=0.0, model=model, **tokens)


def bill_of(*usages: UsageRecorded | None) -> RecordedBill:
    return recorded_bill(usages, ())


_Call: TypeAlias = tuple[float, UsageRecorded, int, CacheStep]


def compared(calls: Sequence[_Call], *, is_kept: bool = True) -> RecordedBill:
    bill = bill_of(*(usage for _, usage, _, _ in calls))
    return compared_bill(bill, [RecordedCall(*call) for call in calls], 0.0, is_kept=is_kept)


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
    said = "1 call whose usage the log lacks; 1 call at unknown prices (nova-pro)"
    assert f"not in the bill: {said}" in bill.lines()
    assert bill_of(None).headline() == "no bill: 1 call whose usage the log lacks"


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
    said = "1 call at the list price: the price of service tier 'priority' is not known"
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
    assert bill.headline().endswith("with foldline the same")


def test_where_the_providers_cache_had_lost_a_prompt_it_has_lost_the_other_too() -> None:
    calls = [
        (0.0, used(uncached=50_000), 50_000, CacheStep(uncached=50_000)),
        (60.0, used(uncached=60_000), 60_000, CacheStep(read=10_000)),
    ]
    bill = compared(calls)
    assert bill.foldline == pytest.approx(5 * (0.05 + 0.01)), "10,000 tokens, and none of them read"


@pytest.mark.parametrize(
    ("dollars", "foldline", "said"),
    [
        (73.366, 66.704, "bill $73.37 recorded; with foldline $66.70: saved $6.67 (9%)"),
        (1.014, 0.8444, "bill $1.01 recorded; with foldline $0.844: saved $0.166 (17%)"),
        (5.004, 4.996, "bill $5.00 recorded; with foldline the same"),
        (4.996, 5.004, "bill $5.00 recorded; with foldline the same"),
    ],
)
def test_what_was_saved_is_the_difference_of_the_amounts_beside_it(
    dollars: float, foldline: float, said: str
) -> None:
    assert RecordedBill(dollars=dollars, calls=1, foldline=foldline).headline() == said


def test_a_comparison_that_foldline_loses_is_the_headline() -> None:
    """30,000 tokens more, which are written to the cache."""
    calls = [
        (0.0, used(uncached=50_000), 50_000, CacheStep(uncached=50_000)),
        (60.0, used(uncached=60_000), 60_000, CacheStep(uncached=90_000)),
    ]
    headline = compared(calls).headline()
    assert headline == "bill $0.550 recorded; with foldline it would have cost $0.188 more (34%)"


def everything(*usages: tuple[float, UsageRecorded, int]) -> list[_Call]:
    """Calls for which the whole history would be sent."""
    counts = [0, *(full for _, _, full in usages)]
    return [
        (at, usage, full, CacheStep(read=before, written={300: full - before}))
        for (at, usage, full), before in zip(usages, counts, strict=False)
    ]


@for_each(
    "usages",
    [
        # Each prompt grows by another multiple of what ours grows by; one loses what the API takes out by itself.
        [
            (0.0, used(cache_write=30_000), 9_000),
            (9.0, used(cache_read=30_000, cache_write=9_000), 12_000),
            (12.0, used(cache_read=28_000, cache_write=10_000), 13_000),
            (15.0, used(cache_read=38_000, cache_write=40_000, uncached=7), 43_000),
        ],
        # Kept for an hour and for five minutes, with a pause after which the cache was cold.
        [
            (0.0, used(cache_write=30_000, cache_write_long=30_000), 9_000),
            (9.0, used(cache_read=30_000, cache_write=9_000), 18_000),
            (9_000.0, used(cache_write=42_000, cache_write_long=42_000), 21_000),
        ],
        # A cache that keeps by itself and loses at random; the first prompts are below the least that is cached.
        [
            (0.0, used("gpt-5.5", uncached=900), 700),
            (9.0, used("gpt-5.5", uncached=1_900), 1_700),
            (12.0, used("gpt-5.5", cache_read=1_024, uncached=4_000), 4_700),
            (15.0, used("gpt-5.5", uncached=6_000), 6_700),
        ],
    ],
)
def test_a_policy_that_changes_nothing_costs_what_was_paid(
    usages: list[tuple[float, UsageRecorded, int]],
) -> None:
    bill = compared(everything(*usages))
    assert bill.foldline == pytest.approx(bill.dollars, rel=1e-4)


def test_where_the_agent_cut_its_history_ours_is_as_long_as_before() -> None:
    """20,000 tokens of system prompt and tools, which the agent wrote anew at the cut; then all grow as we count."""
    calls = everything(
        (0.0, used(cache_write=120_000), 100_000),
        (9.0, used(cache_read=120_000, cache_write=10_000), 110_000),
        (18.0, used(cache_write=32_000), 112_000),
        (27.0, used(cache_read=32_000, cache_write=8_000), 120_000),
    )
    bill = compared(calls)
    assert (bill.unlogged, bill.growth) == (20_000, 1.0)
    reads, writes = 120_000 + 130_000 + 132_000, 120_000 + 10_000 + 2_000 + 8_000
    assert bill.foldline == pytest.approx((reads * 0.5 + writes * 6.25) / 1e6)


def test_requests_that_ask_for_less_time_are_written_cheaper_and_lost_sooner() -> None:
    """Writes for an hour cost 10, for five minutes 6.25."""
    calls = everything(
        (0.0, used(cache_write=100_000, cache_write_long=100_000), 100_000),
        (900.0, used(cache_read=100_000, cache_write=10_000, cache_write_long=10_000), 110_000),
    )
    assert compared(calls).saved == pytest.approx(0)
    first = calls[0][1]
    paid = recorded_bill([first], ()).dollars
    cheap = compared(calls, is_kept=False)
    assert cheap.foldline == pytest.approx(paid + 110_000 * 6.25e-6)


def test_usage_tells_for_how_long_the_provider_kept_prompts() -> None:
    def kept(*calls: tuple[float, UsageRecorded]) -> float:
        return kept_in(calls)

    hour = used(cache_write=9_000, cache_write_long=9_000)
    assert kept((0.0, hour), (1.0, used(cache_read=9_000, cache_write=100))) == 3_600
    assert kept((0.0, used(cache_write=9_000)), (1.0, used(cache_read=9_000))) == 300
    read, lost = used("gpt-5.5", cache_read=8_000), used("gpt-5.5", uncached=9_000)
    assert kept((0.0, lost), (700.0, read)) == 700, "most of the prompt was still there"
    assert kept((0.0, lost), (100.0, read), (900.0, lost)) == 300, "as its provider says"
    assert kept((0.0, used("no such model", uncached=9_000))) == 0


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


def test_what_a_policy_fills_of_the_sessions_own_window_holds_what_the_log_lacks_too() -> None:
    """As behind a gateway, where the system prompt and the tools are in the requests."""
    session = attrs.evolve(reported(invented(turns=2), model="gpt-5.5"), window=258_400)
    calls = [call.usage for call in session.calls if call.usage]
    options = ReplayOptions(counter="estimate")
    whole = Replay.begin(session, attrs.evolve(options, policy=Policy(trigger_tokens=0)))
    filled = Replay.begin(session, options)
    (unlogged, growth) = unlogged_in(
        list(zip(calls, [tokens for tokens, _ in filled.full], strict=True))
    )
    room = isqrt(isqrt(100_000**3 * 258_400))
    assert whole.replayed.settings.policy.trigger_tokens == whole.replayed.settings.limit
    assert filled.replayed.settings.policy.trigger_tokens == max(
        round((room - unlogged) / growth), room // 2
    )


def test_the_sessions_own_cache_lifetime_is_the_default_of_its_replay() -> None:
    """Prompts are kept for an hour, so a pause of ten minutes is no cold moment."""
    plain = invented(turns=6)
    later = {
        turn: 600.0 * n
        for n, turn in enumerate(dict.fromkeys(b.turn for i in plain.items for b in i.blocks))
    }
    items = [attrs.evolve(i, at=i.at + later[i.blocks[0].turn]) for i in plain.items]
    kept = used(OPUS, cache_read=20_000, cache_write=900, cache_write_long=900)
    long = [
        attrs.evolve(i, usage=kept, model=OPUS) if isinstance(i, Responded) else i for i in items
    ]
    session = attrs.evolve(plain, items=tuple(long), model=OPUS)
    policy = Policy(prune_tokens_min=1, prune_block_tokens=1, rounds_intact=1, turns_intact=1)
    assert ReplayOptions().kept_for(session) == 3_600
    assert replayed(session, policy=policy).prunes == 0
    assert replayed(session, policy=policy, window=150_000).prunes > 0, "as the policy says"
    assert replayed(session, policy=policy, model=OPUS).prunes > 0


def test_a_model_of_an_unknown_vendor_is_replayed_without_a_price() -> None:
    result = replayed(reported(invented(turns=2), model="nova-pro"))
    assert result.model == "nova-pro"
    assert "no price is known" in result.guess
    assert (result.cost.total, result.cost.full_history) == (0, 0)
    assert result.units.total > 0


def test_a_bill_that_stays_as_it_is_says_so() -> None:
    same = attrs.evolve(bill_of(used(uncached=1_000_000)), foldline=5.0002)
    assert same.headline() == "bill $5.00 recorded; with foldline the same"
