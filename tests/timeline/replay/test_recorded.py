"""What holds for every recorded session, replayed into a window that is too small for it."""

import os
from pathlib import Path

import pytest

from persistence.sessions import read_session
from tests._sizes import sized
from tests._table import for_each
from timeline.replay import ReplayOptions, replay

RECORDED = Path(
    os.environ.get("FOLDLINE_SESSIONS", Path(__file__).parents[3].parent / "shared/data/sessions")
)
FILES = sorted(
    path.name for kind in ("cc", "codex", "pi", "mini") for path in RECORDED.glob(f"{kind}-*.json*")
)


@pytest.mark.recorded
@pytest.mark.skipif(not FILES, reason=f"no recorded sessions in {RECORDED}")
@for_each("window", sized([30_000], [60_000, 30_000]))
@for_each("name", FILES)
def test_every_promise_is_kept(name: str, window: int) -> None:
    session = read_session(RECORDED / name)
    options = ReplayOptions(window=window, counter="o200k", keep_thinking=False)
    result = replay(session, options)
    assert result.calls == len(session.calls)
    assert result.problems == ()
    assert result.validity_violations == 0
    assert result.over_window_calls == 0
    assert result.reopened_equal
    blocks = sum(len(item.blocks) for item in session.items)
    assert blocks <= result.coverage.blocks <= blocks + result.prunes, "a prune adds one notice"
