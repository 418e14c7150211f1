"""The simulated cache against the provider's rules, one hand-made example each.

Where nothing else is named the source of a rule is the provider's documentation of prompt caching."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from render import PROVIDERS, Limits, Model, Provider
from tests._table import for_each
from tests.render.providers.plain import plain_text
from timeline._models import model_named
from timeline.billing import Flattener
from timeline.billing._prompt_cache import (
    ENTRIES_SPARE,
    CacheStep,
    FlatBlock,
    PromptCache,
    numbered,
)
from timeline.tokens import counter_for
from timeline.tokens._counter import EstimateCounter

MINUTES_5, HOUR = 300, 3_600
MODEL = model_named("claude-sonnet-4-5")
"""Caches prefixes of 1,024 tokens and more."""


def cache_with(lookback: int, tokens_min: int = 0) -> PromptCache:
    limits = Limits(
        result_tokens=0,
        pictures_max=0,
        picture_bytes_max=0,
        marks_max=4,
        cache_tokens_min=tokens_min,
        lookback=lookback,
    )
    return PromptCache(limits)


def prefix(*keys: str, tokens: int = 1_000) -> list[FlatBlock]:
    return [FlatBlock(key, "text", tokens) for key in keys]


def marked(blocks: Sequence[FlatBlock], *at: int, ttl: int = MINUTES_5) -> list[FlatBlock]:
    """The same blocks with marks at these indices (negative: from the end)."""
    where = {index % len(blocks) for index in at}
    return [
        block._replace(ttl=ttl) if index in where else block for index, block in enumerate(blocks)
    ]


def texts(number: int, tokens: int = 1_000) -> list[FlatBlock]:
    return prefix(*(f"b{index}" for index in range(number)), tokens=tokens)


def bill(step: CacheStep) -> tuple[int, int, int, int]:
    written = step.written.get
    return step.read, written(MINUTES_5, 0), written(HOUR, 0), step.uncached


def test_the_first_request_writes_and_the_second_reads() -> None:
    cache = PromptCache.of(MODEL)
    request = [*marked(prefix("system", "prompt"), -1), *prefix("tail", tokens=50)]
    first = cache.step(0, request)
    assert bill(first) == (0, 2_000, 0, 50)
    second = cache.step(10, request)
    assert bill(second) == (2_000, 0, 0, 50)
    assert not second.bust
    assert second.total == 2_050


def test_without_a_mark_nothing_is_written_or_read() -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(3), -1))
    assert bill(cache.step(1, texts(3))) == (0, 0, 0, 3_000)


def test_only_marked_prefixes_are_entries() -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(5), 4))
    # shares four blocks with the first request, but no entry ends there
    assert bill(cache.step(1, marked([*texts(4), *prefix("new")], 3))) == (0, 4_000, 0, 1_000)


def test_a_prefix_below_the_minimum_is_silently_not_cached() -> None:
    cache = PromptCache.of(MODEL)
    short = marked(prefix("a", tokens=1_023), -1)
    cache.step(0, short)
    assert bill(cache.step(1, short)) == (0, 0, 0, 1_023)
    long = marked(prefix("b", tokens=1_024), -1)
    cache.step(2, long)
    assert bill(cache.step(3, long)) == (1_024, 0, 0, 0)


@for_each(("appended", "read"), [(19, 15_000), (20, 0)])
def test_a_mark_looks_back_twenty_positions_itself_included(appended: int, read: int) -> None:
    """The documentation's example: entry at block 15, mark at 35: positions 35 to 16, a miss."""
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(15), 14))
    assert cache.step(1, marked(texts(15 + appended), -1)).read == read


def test_a_second_mark_resumes_the_search() -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(15), 14))
    assert cache.step(1, marked(texts(40), 14, 39)).read == 15_000


@for_each("kind", ["tool_use", "tool_result"])
def test_a_run_of_tool_blocks_is_one_position(kind: str) -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(3), 2))
    run = [FlatBlock((kind, index), kind, 10) for index in range(60)]
    assert cache.step(1, marked([*texts(3), *run], -1)).read == 3_000


def test_a_run_ends_where_the_kind_changes() -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(3), 2))
    kinds = ["tool_use", "tool_result"] * 10
    run = [FlatBlock(index, kind, 10) for index, kind in enumerate(kinds)]
    assert cache.step(1, marked([*texts(3), *run[:19]], -1)).read == 3_000
    assert PromptCache.of(MODEL).step(1, marked([*texts(3), *run], -1)).read == 0


@for_each(("ttl", "alive", "dead"), [(MINUTES_5, 299, 300), (HOUR, 3_599, 3_600)])
def test_an_entry_lives_from_the_start_of_the_request(ttl: int, alive: int, dead: int) -> None:
    for seconds, read in ((alive, 3_000), (dead, 0)):
        cache = PromptCache.of(MODEL)
        cache.step(1_000, marked(texts(3), -1, ttl=ttl))
        assert cache.step(1_000 + seconds, marked(texts(3), -1, ttl=ttl)).read == read


def test_a_read_refreshes_the_entry() -> None:
    cache = PromptCache.of(MODEL)
    request = marked(texts(3), -1)
    for ts in (0, 290, 580, 870):
        step = cache.step(ts, request)
    assert bill(step) == (3_000, 0, 0, 0)


def test_a_system_entry_of_an_hour_survives_a_pause() -> None:
    system = [FlatBlock("system", "system", 2_000, HOUR)]
    cache = PromptCache.of(MODEL)
    assert bill(cache.step(0, [*system, *marked(texts(2), -1)])) == (0, 2_000, 2_000, 0)
    assert bill(cache.step(1_800, [*system, *marked(texts(3), -1)])) == (2_000, 3_000, 0, 0)


def test_mixed_marks_are_billed_in_three_parts() -> None:
    """A: furthest entry, B: last 1h mark, C: last mark; read A, 1h write B - A, 5m write C - B."""
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(2), 1, ttl=HOUR))
    request = marked(texts(10), 4, ttl=HOUR)
    request[7] = request[7]._replace(ttl=MINUTES_5)
    assert bill(cache.step(1, request)) == (2_000, 3_000, 3_000, 2_000)


def test_a_longer_ttl_replaces_a_shorter_one() -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(3), -1))
    cache.step(1, marked(texts(3), -1, ttl=HOUR))
    assert cache.step(2_000, marked(texts(3), -1)).read == 3_000


def test_moving_a_mark_is_free() -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(5), 2, 4))
    assert bill(cache.step(1, marked(texts(6), 5))) == (5_000, 1_000, 0, 0)


def test_a_change_before_the_mark_is_a_bust_only_while_it_is_warm() -> None:
    changed = marked([*prefix("other"), *texts(3)], -1)
    warm, cold = PromptCache.of(MODEL), PromptCache.of(MODEL)
    warm.step(0, marked(texts(3), -1))
    cold.step(0, marked(texts(3), -1))
    assert warm.step(299, changed).bust
    assert not cold.step(301, changed).bust


def test_a_shorter_request_is_a_bust_too() -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(5), 4))
    assert cache.step(1, marked(texts(3), 2)).bust


def test_an_unmarked_request_leaves_nothing_to_bust() -> None:
    cache = PromptCache.of(MODEL)
    cache.step(0, marked(texts(5), 4))
    cache.step(1, texts(5))
    assert not cache.step(2, marked(prefix("other", "blocks"), -1)).bust


def test_an_empty_request_is_free() -> None:
    assert bill(PromptCache.of(MODEL).step(0, [])) == (0, 0, 0, 0)


def test_a_provider_that_caches_by_itself_reads_what_two_requests_have_in_common() -> None:
    """As providers do that take no marks: what was sent before is read up to the first difference."""
    cache = cache_with(lookback=1, tokens_min=1_024)
    cache.step(0, marked(texts(30), *range(30)))
    changed = [*texts(20), *prefix("new", "newer")]
    assert bill(cache.step(1, marked(changed, *range(22)))) == (20_000, 2_000, 0, 0)
    assert cache.step(2, marked(prefix("short", tokens=1_000), 0)).uncached == 1_000


def test_a_look_back_without_a_limit_finds_the_oldest_mark() -> None:
    cache = cache_with(lookback=10**9)
    cache.step(0, marked(texts(5), -1))
    assert bill(cache.step(1, marked(texts(500), -1)))[:2] == (5_000, 495_000)


def test_any_times_of_keeping_are_billed_longest_first() -> None:
    """Half an hour and half a day, as another provider has them."""
    half_hour, half_day = 1_800, 43_200
    cache = cache_with(lookback=10**9)
    step = cache.step(0, marked(marked(texts(6), 1, ttl=half_day), 4, ttl=half_hour))
    assert (step.written, step.uncached) == ({half_day: 2_000, half_hour: 3_000}, 1_000)


block = st.builds(
    FlatBlock,
    key=st.integers(0, 5),
    kind=st.sampled_from(["text", "tool_use", "tool_result"]),
    tokens=st.integers(0, 900),
    ttl=st.sampled_from([0, 0, 0, MINUTES_5, HOUR]),
)


@given(st.lists(st.tuples(st.floats(0, 5_000), st.lists(block, max_size=30)), max_size=8))
def test_every_token_is_billed_once(requests: list[tuple[float, list[FlatBlock]]]) -> None:
    cache = PromptCache.of(MODEL)
    for ts, blocks in requests:
        step = cache.step(ts, blocks)
        assert min(bill(step)) >= 0
        assert step.total == sum(block.tokens for block in blocks)


@given(st.lists(block, min_size=1, max_size=60))
def test_the_same_request_again_reads_all_that_was_written(blocks: list[FlatBlock]) -> None:
    cache = PromptCache.of(MODEL)
    first, second = cache.step(0, blocks), cache.step(1, blocks)
    assert second.read == first.write
    assert second.write == 0
    assert not second.bust


def test_conversations_share_entries_and_each_loses_only_its_own() -> None:
    cache = PromptCache.of(MODEL)

    def sent(ts: float, name: str, *more: str) -> CacheStep:
        blocks = marked(prefix("system", *more, tokens=2_000), 0, -1)
        return cache.send(ts, cache.request(blocks), name)

    assert bill(sent(0, "one", "a")) == (0, 4_000, 0, 0)
    assert bill(sent(1, "two", "b")) == (2_000, 2_000, 0, 0), "the system prompt is shared"
    assert not sent(2, "one", "a", "c").bust, "the other conversation is no previous request"
    assert sent(3, "two", "d").bust


def test_a_cache_that_is_restored_from_its_entries_bills_the_same() -> None:
    """The numbers of prefixes are the same in every process, if the keys of the blocks are."""
    blocks = [
        FlatBlock(key, "text", 1_000, MINUTES_5 * (key % 2)) for key in range(2**60, 2**60 + 8)
    ]
    first, second = PromptCache.of(MODEL), PromptCache.of(MODEL)
    request = first.request(blocks)
    first.send(0, request)
    for index, ttl in request.marks:
        second.remember(request.chain[index], ttl, 0 + ttl)
    code = "from timeline.billing import numbered; print(numbered([2**60, 7]))"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "7"}, capture_output=True, check=True
    )
    assert json.loads(elsewhere.stdout) == numbered([2**60, 7])
    for cache in (first, second):
        assert bill(cache.step(299, blocks)) == (8_000, 0, 0, 0)
        assert bill(cache.step(700, blocks)) == (0, 8_000, 0, 0)


def test_what_has_expired_is_dropped_sooner_or_later() -> None:
    cache = PromptCache.of(MODEL)
    for number in range(3 * ENTRIES_SPARE):
        cache.step(number * MINUTES_5, marked(prefix(str(number), tokens=2_000), -1))
    assert len(cache._entries) <= ENTRIES_SPARE + 1


# Flat blocks of one session's requests: interned, each counted once, whatever the provider.


MESSAGES_API = PROVIDERS["anthropic"]
CLAUDE = model_named("claude-sonnet-5-5")
MARK = {"type": "ephemeral"}


@attrs.define
class CountingEstimate(EstimateCounter):
    """Remembers what it was asked."""

    model: Model = CLAUDE
    asked: list[str] = attrs.field(factory=list[str])

    def count(self, text: str) -> int:
        self.asked.append(text)
        return EstimateCounter.count(self, text)


def user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}]}


def said(text: str) -> dict[str, Any]:
    return {"prompt": [text]}


@for_each(
    ("provider", "request_of"),
    [(MESSAGES_API, lambda text: user({"type": "text", "text": text})), (plain_text(), said)],
    ids=["anthropic", "plain"],
)
def test_equal_blocks_are_one_key_and_counted_once(provider: Provider, request_of: Any) -> None:
    counter = CountingEstimate()
    flattener = Flattener(counter, provider)
    first, again, other = (flattener.sent(request_of(t)) for t in ("once", "once", "two"))
    assert counter.asked == ["once", "two"]
    assert first == again
    assert first[0].key != other[0].key


def test_a_mark_makes_no_other_block() -> None:
    flattener = Flattener(CountingEstimate(), MESSAGES_API)
    block = {"type": "text", "text": "x"}
    (plain,) = flattener.sent(user(block))
    (marked,) = flattener.sent(user(block | {"cache_control": MARK}))
    assert marked == plain._replace(ttl=300)


def test_a_real_counter_takes_an_image_at_its_flat_rate() -> None:
    counter = counter_for("o200k", CLAUDE)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    (block,) = Flattener(counter, MESSAGES_API).sent(user(image))
    assert block.tokens == 1_500 + 3


def test_what_is_known_by_identity_is_bounded() -> None:
    flattener = Flattener(CountingEstimate(), MESSAGES_API, seen_max=10)
    requests = [user({"type": "text", "text": f"{n}"}) for n in range(50)]
    keys = [flattener.sent(request)[0].key for request in (*requests, *requests)]
    assert keys[:50] == keys[50:]
    assert len(flattener._seen) <= 10
