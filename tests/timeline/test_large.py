"""Outputs of many megabytes: a small request, bounded memory, and every byte comes back."""

from benchmarks.large_session import WINDOW, measured
from tests._table import for_each

RESULTS = 20
SIZE = 1_000_000
GROWTH_MAX = 60
"""MB above what the process had after an empty render: the window's blocks and what DuckDB holds until
its next checkpoint. Measured: 30; it does not grow with the log."""


@for_each("content", ["l", "h"], ids=["lines", "hex digits"])
def test_a_session_of_many_large_outputs(content: str) -> None:
    figures = measured(RESULTS, SIZE, "o200k", content)
    assert figures.wrong == 0, "every byte is read back"
    assert figures.worst_tokens <= WINDOW
    assert figures.peak_mb - figures.start_mb <= GROWTH_MAX, figures
