"""Measures counting of new text, against the bare encoder: the cost of safety checks and the count cache.

    pytest benchmarks/bench_count.py -p benchmark

Both are measured alternately in one run, so that a noisy machine affects both alike.
"""

import random
from time import perf_counter

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.figures import Figures, Sample, spoken
from timeline.tokens import O200kCounter
from timeline.tokens._ranks import o200k

SHARE_MIN = 0.85
"""The least share of the bare encoder's speed."""
ROUNDS = 15
WORDS = (
    "the nightly job failed because disk was full while def return self import value path",
    "src/app/main.py error: assertion failed at line 1234 { } [ ] ( ) == != \n    ",
)


def prose(seed: int, words: int) -> str:
    """New text, a mixture of prose and code."""
    chance = random.Random(seed)  # noqa: S311 -- repeatable, not secret
    vocabulary = " ".join(WORDS).split(" ")
    lines = (" ".join(chance.choices(vocabulary, k=12)) for _ in range(words // 12))
    return "\n".join(f"{line} {chance.random()}" for line in lines)


def seconds(texts: list[str], *, bare: bool) -> float:
    encode, count = o200k().encode, O200kCounter().count
    start = perf_counter()
    for text in texts:
        if bare:
            len(encode(text, disallowed_special=()))
        else:
            count(text)
    return perf_counter() - start


@pytest.mark.parametrize("words", [60, 2_000, 100_000], ids=["0.4kB", "14kB", "700kB"])
def test_counting_is_nearly_as_fast_as_the_bare_encoder(figures: Figures, words: int) -> None:
    texts = [prose(seed, words) for seed in range(max(2, 60_000 // words))]
    seconds(texts, bare=True)  # warm up
    times = [(seconds(texts, bare=True), seconds(texts, bare=False)) for _ in range(ROUNDS)]
    bare, ours = (min(pair[which] for pair in times) for which in (0, 1))
    size = f"{len(texts)} texts of {len(texts[0]) / 1000:.1f} kB"
    sample = Sample([pair[1] for pair in times])
    figures.note(
        "count unseen text", size, spoken(ours), spoken(sample.p50), "", "bare encoder",
        spoken(Sample([pair[0] for pair in times]).p50), f"{ours / bare:.2f}",
        f"<= {1 / SHARE_MIN:.2f}, of the best",
    )  # fmt: skip
    assert bare / ours >= SHARE_MIN


def test_unseen_text(benchmark: BenchmarkFixture) -> None:
    text = prose(0, 20_000)
    benchmark(lambda: O200kCounter().count(text))


def test_seen_text(benchmark: BenchmarkFixture) -> None:
    text, counter = prose(0, 20_000), O200kCounter()
    counter.count(text)
    benchmark(counter.count, text)
