"""The process is killed at every step of a compaction that a model writes."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import attrs
import pytest

from blocks import RangeCompacted, SummaryPrepared, encode_block
from persistence import DuckDBStore, MemoryStore, verify
from tests._builders import Ids, blocks_in, events_of, request_bytes
from tests._practice import Practice
from timeline.fake_provider import FakeServer

from .crash import TURNS
from .talk import SYSTEM, opened, summary_requests, talk

ROOT = Path(__file__).parents[3]
DIED: Final = 9
STEPS = (
    "before the call is counted",
    "after the call is counted",
    "before the call",
    "after the call",
    "before the summary is committed",
    "after the summary is committed",
    "before the compaction is committed",
    "after the compaction is committed",
    "before the request is noted",
    "after the request is noted",
)
LOST = STEPS[3:5]
"""Here the answer is in the memory of the process that dies, and nowhere else."""


@attrs.frozen
class Crash:
    """What one crash left."""

    step: str
    path: Path
    paid: int
    """Calls that the dead process had made."""


@pytest.fixture(scope="module")
def wanted() -> list[bytes]:
    """Every block that was appended before."""
    timeline = opened(None)
    talk(timeline, TURNS)
    return [encode_block(block) for _, block in blocks_in(timeline)]


def crashed(server: FakeServer, folder: Path) -> list[Crash]:
    """Every crash, in files of their own; and one run that lived through."""
    arguments = [server.url, str(folder), "1", str(len(STEPS) + 1)]
    command = [sys.executable, "-m", "tests.timeline.summarizers.crash", *arguments]
    crashes: list[Crash] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout
        before = 0
        for number, line in enumerate(process.stdout, 1):
            alive = number > len(STEPS)
            assert int(line) == (0 if alive else DIED), f"step {number}"
            paid = len(summary_requests(server))
            step = "lived through" if alive else STEPS[number - 1]
            crashes.append(Crash(step, folder / f"{number}.duckdb", paid - before))
            before = paid
    assert len(crashes) == len(STEPS) + 1
    return crashes


def test_killed_at_any_step_nothing_is_lost_or_paid_for_twice(
    practice: Practice, tmp_path: Path, wanted: list[bytes]
) -> None:
    """Interrupted compaction deletes history, splits pairs, charges twice: not here."""
    server = practice.serve()
    for crash in crashed(server, tmp_path):
        paid = len(summary_requests(server))
        with DuckDBStore(crash.path) as store:
            assert verify(store).ok, crash
            timeline = opened(practice.client(server), store=store, ids=Ids("third"))
            assert [encode_block(b) for _, b in blocks_in(timeline)] == wanted, crash
            rendered = timeline.render(system=SYSTEM)
            assert rendered.violations == (), crash
            timeline.flush()
            assert len(events_of(timeline, RangeCompacted)) == 1, crash
            assert len(events_of(timeline, SummaryPrepared)) == 1, crash
            calls = crash.paid + len(summary_requests(server)) - paid
            assert calls == (2 if crash.step in LOST else 1), crash
            copy = MemoryStore()
            events = [event for _, event in timeline.events()]
            copy.append(timeline.id, events, expected_version=0)
            replayed = opened(None, store=copy, ids=Ids("fourth"))
            assert request_bytes(replayed.render(system=SYSTEM)) == request_bytes(rendered), crash
    assert not server.refused
