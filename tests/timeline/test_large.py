"""Outputs of many megabytes: a small request, bounded memory, and every byte comes back."""

import pytest

from benchmarks.large_session import WINDOW, measured

RESULTS = 20
SIZE = 1_000_000
GROWTH_MAX = 80
"""MB above what the process had after an empty render: the window's blocks, DuckDB's buffers and what
it needs to compress them. Measured: 46."""


@pytest.mark.parametrize("content", ["l", "h"], ids=["lines", "hex digits"])
def test_a_session_of_many_large_outputs(content: str) -> None:
    figures = measured(RESULTS, SIZE, "o200k", content)
    assert figures.wrong == 0, "every byte is read back"
    assert figures.worst_tokens <= WINDOW
    assert figures.peak_mb - figures.start_mb <= GROWTH_MAX, figures
