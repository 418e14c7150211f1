"""Records what was measured, against which baseline, and whether it meets its target.

In every round the baseline runs right before the code under test, so that a noisy machine affects
both alike. Ratios use the lower quartiles, which noise affects least.  A limit in seconds is compared
with the best round: slower rounds include other work of the machine.
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
    """Measured times in seconds, one for each round."""

    times: Sequence[float]
    bare: Sequence[float] = ()
    """The times of the baseline in the same rounds."""

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
    """The table of figures."""

    rows: list[tuple[str, ...]] = attrs.field(factory=list[tuple[str, ...]])

    def note(self, *cells: str) -> None:
        """Add a row; missing cells are empty."""
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
    """Measures with pytest-benchmark and adds rows to the table."""

    benchmark: BenchmarkFixture
    figures: Figures

    def time(
        self, run: Callable[..., Any], prepare: Callable[[], Any] | None = None, *, rounds: int
    ) -> Sample:
        """Time `run`, called in each round with a new result of `prepare`."""
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
        """Time `run` and its baseline alternately; `prepare` returns the arguments for both."""
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
    """The lower quartile of the times."""
    return sorted(times)[len(times) // 4]


def spoken(seconds: float) -> str:
    """A time in seconds as text with a fitting unit."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"
