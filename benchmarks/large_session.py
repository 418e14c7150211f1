"""Measures memory and time per call of a session with 100 MB of tool output in a window of 30,000 tokens.

    .venv/bin/python -m benchmarks.large_session

Every row is measured in its own process. Memory is that of the whole process (`ru_maxrss`), with Python,
the tokenizer's table and DuckDB; *start* is the memory after the first, empty render. At the end every
result is read back by its path and compared.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import attrs
from rich.console import Console
from rich.table import Table

from blocks import ToolResult, text_of
from timeline import Timeline, policy_named

WINDOW = 30_000
UNITS_PER_MB = 1024 * (1024 if sys.platform == "darwin" else 1)
"""Units of `ru_maxrss` in a MB: bytes on macOS, KiB elsewhere."""
ROWS = (
    *((100, 1_000_000, counter, content) for counter in ("o200k", "model") for content in "lh"),
    (1_000, 100_000, "o200k", "l"),
    (10, 10_000_000, "o200k", "l"),
)
"""The rows: number of results, characters of each, counter, content (lines or hex digits)."""
WORDS = (
    "error",
    "warning",
    "src/app/main.py",
    "value_%d",
    "connection",
    "timeout",
    "user_id",
    "ok",
)


@attrs.frozen(kw_only=True)
class Figures:
    """The figures of one session."""

    start_mb: int
    """Memory after the first render."""
    written_mb: int
    """The peak until the last call."""
    peak_mb: int
    """The peak until everything was read back."""
    worst_tokens: int
    call_ms: float
    """The mean milliseconds to record a call, append its result and render."""
    read_ms: float
    wrong: int
    """The number of results that were not read back unchanged."""


def output(number: int, size: int, content: str) -> str:
    """A tool's output; always the same for the same number."""
    made = random.Random(number)  # noqa: S311 -- text, not keys
    if content == "h":
        return made.randbytes(size // 2).hex()
    return "".join(_lines(number, size, made))[:size]


def _lines(number: int, size: int, made: random.Random) -> Iterator[str]:
    while size > 0:
        words = " ".join(made.choice(WORDS) for _ in range(8))
        line = f"{number} {made.random():.12f} {words}\n"
        size -= len(line)
        yield line


def peak_mb() -> int:
    """The peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // UNITS_PER_MB


def session(results: int, size: int, counter: str, content: str) -> Figures:
    """Run one session in this process."""
    with tempfile.TemporaryDirectory() as folder:
        timeline = Timeline.open(
            "large",
            store=Path(folder, "large.duckdb"),
            window=WINDOW,
            counter=counter,
            policy=policy_named("default"),
        )
        timeline.user("Build everything.")
        timeline.render()
        start_mb, worst, spent = peak_mb(), 0, 0.0
        for number in range(results):
            text = output(number, size, content)
            began = perf_counter()
            tokens = _call(timeline, number, text)
            spent += perf_counter() - began
            worst = max(worst, tokens)
        written_mb, wrong, read = peak_mb(), 0, 0.0
        for number in range(results):
            began = perf_counter()
            block = timeline.read(f"tc:t1.c{number}.result")
            read += perf_counter() - began
            same = isinstance(block, ToolResult) and text_of(block) == output(number, size, content)
            wrong += not same
        timeline.close()
    return Figures(
        start_mb=start_mb,
        written_mb=written_mb,
        peak_mb=peak_mb(),
        worst_tokens=worst,
        call_ms=1000 * spent / results,
        read_ms=1000 * read / results,
        wrong=wrong,
    )


def _call(timeline: Timeline, number: int, text: str) -> int:
    """Append one round; returns the tokens of the next request."""
    asked = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {"command": "make"}}
    timeline.record({"id": f"r{number}", "content": [asked], "stop_reason": "tool_use"})
    timeline.tool_result(f"c{number}", text)
    return timeline.render().tokens


def measured(results: int, size: int, counter: str, content: str) -> Figures:
    """Run one session in a new process."""
    given = [str(results), str(size), counter, content]
    command = [sys.executable, "-m", "benchmarks.large_session", "--one", *given]
    root = Path(__file__).resolve().parents[1]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return Figures(**json.loads(ran.stdout))


def main() -> None:
    """Print the table; in a child process, the figures of one session."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=4, metavar=("RESULTS", "SIZE", "COUNTER", "CONTENT"))
    asked = parser.parse_args()
    if asked.one:
        results, size, counter, content = asked.one
        print(json.dumps(attrs.asdict(session(int(results), int(size), counter, content))))
        return
    table = Table("results", "each", "counter", "content", *(f.name for f in attrs.fields(Figures)))
    for results, size, counter, content in ROWS:
        figures = measured(results, size, counter, content)
        values = (f"{value:,.1f}".removesuffix(".0") for value in attrs.astuple(figures))
        kind = {"l": "lines", "h": "hex"}[content]
        table.add_row(f"{results:,}", f"{size / 1e6:g} MB", counter, kind, *values)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
