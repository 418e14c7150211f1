"""Figures: what was measured, against what, and whether that is good enough.

In every round the baseline runs right before what it is compared with, so that a noisy machine
disturbs both alike; a ratio is that of the lower quartiles, which a disturbance reaches last.  A limit
in seconds is held against the best round: that is what the code costs, everything above it is what
else the machine did.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import attrs
from pytest_benchmark.fixture import BenchmarkFixture

HEADER = ("what", "size", "best", "p50", "p99", "baseline", "its p50", "ratio", "target")


@attrs.frozen
class Sample:
    """Times of one thing, in seconds, one a round."""

    times: Sequence[float]
    bare: Sequence[float] = ()
    """Times of the baseline in the same rounds."""

    @property
    def best(self) -> float:
        return min(self.times)

    @property
    def p50(self) -> float:
        return median(self.times)

    @property
    def p99(self) -> float:
        return quantiles(self.times, n=100)[98] if len(self.times) > 1 else self.times[0]

    @property
    def ratio(self) -> float:
        return quartile(self.times) / quartile(self.bare)


@attrs.define
class Figures:
    """The rows of the table."""

    rows: list[tuple[str, ...]] = attrs.field(factory=list[tuple[str, ...]])

    def note(self, *cells: str) -> None:
        """Add a row; missing cells stay empty."""
        self.rows.append((*cells, *[""] * (len(HEADER) - len(cells))))

    def lines(self) -> Iterator[str]:
        """The table in Markdown."""
        if not self.rows:
            return
        widths = [max(map(len, column)) for column in zip(HEADER, *self.rows, strict=True)]
        for row in (HEADER, tuple("-" * width for width in widths), *self.rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            yield f"| {' | '.join(cells)} |"


@attrs.define
class Meter:
    """Measures one thing with pytest-benchmark."""

    benchmark: BenchmarkFixture
    figures: Figures

    def time(
        self, run: Callable[..., Any], prepare: Callable[[], Any] | None = None, *, rounds: int
    ) -> Sample:
        """Time `run` on what `prepare` gives, anew for each round."""
        self._run(run, lambda: ((() if prepare is None else (prepare(),)), {}), rounds)
        return Sample(self._times())

    def compare(
        self,
        run: Callable[[Any], Any],
        bare: Callable[[Any], Any],
        prepare: Callable[[], tuple[Any, Any]],
        *,
        rounds: int,
    ) -> Sample:
        """Time `run` and its baseline in turn; `prepare` gives an argument for each."""
        times: list[float] = []

        def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
            ours, theirs = prepare()
            start = perf_counter()
            bare(theirs)
            times.append(perf_counter() - start)
            return (ours,), {}

        self._run(run, setup, rounds)
        return Sample(self._times(), times)

    def _run(self, run: Callable[..., Any], setup: Callable[[], Any], rounds: int) -> None:
        self.benchmark.pedantic(run, setup=setup, rounds=rounds)  # type: ignore[no-untyped-call]  # the plugin has no types

    def _times(self) -> list[float]:
        assert self.benchmark.stats
        return list(self.benchmark.stats.stats.data)

    def note(
        self, what: str, size: str, sample: Sample, *, against: str = "", target: str = ""
    ) -> None:
        """Add a row for a sample."""
        cells = [what, size, spoken(sample.best), spoken(sample.p50), spoken(sample.p99)]
        cells += (
            [against, spoken(median(sample.bare)), f"{sample.ratio:.2f}"] if against else [""] * 3
        )
        self.figures.note(*cells, target)


def quartile(times: Sequence[float]) -> float:
    """The time that a quarter of the rounds stayed under."""
    return sorted(times)[len(times) // 4]


def spoken(seconds: float) -> str:
    """A time for people."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"
