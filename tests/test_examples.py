"""The example session: recorded from real tools, free of this machine, and worth replaying."""

import json
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from blocks import ToolResult, UserSteer, text_of
from persistence.sessions import Session, read_session
from timeline.replay import ReplayOptions, replay

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
LOG = EXAMPLES / "invoice-service.jsonl"
COFFEE_SECONDS = 8 * 60


@pytest.fixture(scope="module")
def session() -> Session:
    return read_session(LOG)


def test_it_is_read_without_a_complaint(session: Session) -> None:
    assert session.format == "claude-code"
    assert session.notices == ()
    assert 60 <= len(session.calls) <= 120


def test_it_has_what_happens_in_real_sessions(session: Session) -> None:
    blocks = [block for item in session.items for block in item.blocks]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    assert any(isinstance(block, UserSteer) for block in blocks)
    assert sum(result.is_error for result in results) >= 3
    assert max(len(text_of(result)) for result in results) > 10_000
    assert 120_000 <= sum(len(text_of(result)) for result in results) <= 200_000
    assert max(after.at - before.at for before, after in pairwise(session.items)) >= COFFEE_SECONDS


def test_it_names_nothing_of_the_machine_it_was_recorded_on() -> None:
    text = LOG.read_text(encoding="utf-8")
    for trace in (str(EXAMPLES.parent.parent), sys.prefix, sys.base_prefix, "/var/folders"):
        assert trace not in text


@pytest.mark.parametrize("window", [30_000, 20_000])
def test_it_compacts_several_times_and_keeps_every_promise(session: Session, window: int) -> None:
    result = replay(session, ReplayOptions(window=window))
    assert result.compactions >= 3
    assert result.over_window_calls == 0
    assert result.problems == ()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="tracebacks differ between versions")
@pytest.mark.skipif(not shutil.which("git"), reason="the scripted agent needs git")
def test_recording_it_again_gives_the_same_session(tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    subprocess.run(
        [sys.executable, EXAMPLES / "record.py", again],
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert lines_of(again) == lines_of(LOG)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
