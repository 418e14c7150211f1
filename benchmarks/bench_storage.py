"""Measures bytes on disk, against the sum of the blocks' own bytes."""

from pathlib import Path

import pytest

from benchmarks.figures import Figures
from benchmarks.logs import history, put
from blocks import encode_block
from persistence import DuckDBStore

RATIO_MAX = 1.3
FILE_BYTES = 3_000_000
"""The most bytes of an empty store."""


@pytest.mark.parametrize("blocks", [1_000, 10_000, 100_000])
def test_a_store_is_hardly_larger_than_its_blocks(
    figures: Figures, tmp_path: Path, blocks: int
) -> None:
    events = history(blocks)
    own = sum(len(encode_block(event.block)) for event in events)
    path = tmp_path / "store.duckdb"
    with DuckDBStore(path) as store:
        put(store, events)
    size = path.stat().st_size
    kept = f"{size / 1e6:.2f} MB, {size / blocks:.0f} a block"
    figures.note(
        "bytes on disk", f"{blocks:,} blocks", "", kept, "", "the blocks", f"{own / 1e6:.2f} MB",
        f"{size / own:.2f}", f"<= {RATIO_MAX} + an empty file",
    )  # fmt: skip
    assert size <= RATIO_MAX * own + FILE_BYTES
