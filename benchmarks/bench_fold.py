"""Measures folding a log into a view, against decoding the same events."""

import pytest

from benchmarks.figures import Meter
from benchmarks.logs import history
from blocks import LogWindow, decode_event, encode_event
from render import open_view


@pytest.mark.parametrize(("blocks", "rounds"), [(1_000, 20), (10_000, 5), (100_000, 2)])
def test_folding(meter: Meter, blocks: int, rounds: int) -> None:
    data = [encode_event(event) for event in history(blocks)]
    window = LogWindow(version=blocks, events=tuple(enumerate(map(decode_event, data), 1)))
    sample = meter.compare(
        lambda _: open_view(window),
        lambda _: [decode_event(event) for event in data],
        lambda: (None, None),
        rounds=rounds,
    )
    meter.note("fold", f"{blocks:,} blocks", sample, against="decoding them")
