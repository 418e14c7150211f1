"""Measures a compaction without a model: draft, extractive summary with digest and index, apply.

The baseline is one pass of the bare tokenizer over the same window: about the least cost of reading
every text once. Each round has a new counter, which has counted only the window before.
"""

import pytest

from benchmarks.figures import Meter
from benchmarks.logs import context
from benchmarks.material import STARTED_AT, Writer, appended
from blocks import RangeCompacted, text_of
from render import Context, View, apply_compaction, draft_compaction, fold, total_tokens
from timeline.tokens._counter import o200k


def compacted(view: View, now: Context) -> None:
    trial = draft_compaction(view, now, "proactive")
    assert trial
    after = apply_compaction(view, trial, None, now)
    assert isinstance(after.decisions[-1], RangeCompacted)


@pytest.mark.parametrize("limit", [60_000, 200_000])
def test_a_compaction(meter: Meter, limit: int) -> None:
    events = list(enumerate(appended(Writer(seed=5).blocks(limit // 135)), 1))
    now = STARTED_AT + len(events)
    tokens = total_tokens(fold(View(), events), context(limit, now))
    texts = [text_of(event.block) for _, event in events]

    def tokenize(_: object) -> None:
        for text in texts:
            o200k().encode(text, disallowed_special=())

    def prepare() -> tuple[tuple[View, Context], None]:
        view, fresh = fold(View(), events), context(limit, now)
        total_tokens(view, fresh)
        return (view, fresh), None

    sample = meter.compare(lambda made: compacted(*made), tokenize, prepare, rounds=9)
    size = f"{len(events):,} blocks, {tokens // 1000}k of {limit // 1000}k tokens"
    meter.note("compaction", size, sample, against="tokenizing the window")
