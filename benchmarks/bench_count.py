"""Measures counting of new text, against the bare encoder: the cost of counting each line by itself, and what it saves
when most lines of a text were counted before.

    pytest benchmarks/bench_count.py -p benchmark

Both are measured alternately in one run, so that a noisy machine affects both alike.
"""

import random
from time import perf_counter

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.figures import Figures, Sample, spoken
from timeline.tokens import O200kCounter
from timeline.tokens._counter import o200k

UNSEEN_MAX = 1.9
"""The most time for a text of new lines, of the bare encoder's."""
CHANGED_MAX = 0.5
"""The most time for a text of which one line in ten is new."""
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


def changed(text: str, seed: int) -> str:
    """The text with another number at the end of every tenth line."""
    found = text.split("\n")
    found[::10] = [f"{line} {seed}" for line in found[::10]]
    return "\n".join(found)


@pytest.mark.parametrize("words", [60, 2_000, 100_000], ids=["0.4kB", "14kB", "700kB"])
def test_counting_new_lines_costs_little_more_than_the_bare_encoder(
    figures: Figures, words: int
) -> None:
    rounds = [
        [prose(seed * ROUNDS + turn, words) for seed in range(max(2, 60_000 // words))]
        for turn in range(ROUNDS)
    ]
    compare(figures, "count unseen text", rounds, UNSEEN_MAX)


def test_counting_a_changed_text_costs_less_than_the_bare_encoder(figures: Figures) -> None:
    files = [prose(-seed, 2_000) for seed in range(30)]
    seconds(files, bare=False)
    rounds = [[changed(file, turn) for file in files] for turn in range(ROUNDS)]
    compare(figures, "count text with 90 % known lines", rounds, CHANGED_MAX)


def compare(figures: Figures, what: str, rounds: list[list[str]], most: float) -> None:
    """Count the texts of each round, which are new in it, and encode them."""
    seconds(rounds[0], bare=True)  # warm up
    times = [(seconds(texts, bare=True), seconds(texts, bare=False)) for texts in rounds]
    bare, ours = (min(pair[which] for pair in times) for which in (0, 1))
    size = f"{len(rounds[0])} texts of {len(rounds[0][0]) / 1000:.1f} kB"
    sample = Sample([pair[1] for pair in times])
    figures.note(
        what, size, spoken(ours), spoken(sample.p50), "", "bare encoder",
        spoken(Sample([pair[0] for pair in times]).p50), f"{ours / bare:.2f}",
        f"<= {most}, of the best",
    )  # fmt: skip
    assert ours <= most * bare


def test_unseen_text(benchmark: BenchmarkFixture) -> None:
    text = prose(0, 20_000)
    benchmark(lambda: O200kCounter().count(text))


def test_seen_text(benchmark: BenchmarkFixture) -> None:
    text, counter = prose(0, 20_000), O200kCounter()
    counter.count(text)
    benchmark(counter.count, text)
