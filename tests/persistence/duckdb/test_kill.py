"""kill -9 in a loop: nothing acknowledged is lost, no batch is torn, the next process goes on."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blocks import TimelineId
from persistence import DuckDBStore, verify

ROUNDS = 6
BATCH = 3
THREADS = 4

# Each thread appends batches to its own timeline and prints a version once it is acknowledged.
WRITER = f"""
import sys
from threading import Thread
from blocks import BlockAppended, UserPrompt
from persistence import DuckDBStore

store = DuckDBStore(sys.argv[1])

def event(name):
    block = UserPrompt(id=f"block {{name}}", turn="t1", text="x" * int(sys.argv[2]))
    return BlockAppended(id=name, at=0.0, block=block)

def talk(name):
    version = store.head(name)
    while True:
        batch = [event(f"{{name}}.{{version + n}}") for n in range({BATCH})]
        version = store.append(name, batch, expected_version=version)
        sys.stdout.write(f"{{name}} {{version}}\\n")
        sys.stdout.flush()

for n in range({THREADS}):
    Thread(target=talk, args=(f"talk{{n}}",)).start()
"""


def killed_after(path: Path, block_bytes: int, seconds: float) -> dict[str, int]:
    """What a writer had been acknowledged when it was killed, by timeline."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(block_bytes)],
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]  # it is up and writing
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.read().splitlines(keepends=True)
    whole = [line.split() for line in lines if line.endswith("\n")]
    return {name: int(version) for name, version in whole}


@pytest.mark.parametrize("block_bytes", [500, 200_000], ids=["small", "many checkpoints"])
def test_nothing_acknowledged_is_lost_and_no_batch_is_torn(
    tmp_path: Path, block_bytes: int
) -> None:
    path = tmp_path / "talks.duckdb"
    for round_ in range(ROUNDS):
        acknowledged = killed_after(path, block_bytes, 0.05 + 0.07 * round_)
        assert acknowledged
        with DuckDBStore(path) as store:
            for name, version in acknowledged.items():
                head = store.head(TimelineId(name))
                assert head >= version, "acknowledged, therefore there"
                assert head % BATCH == 0, "whole batches only"
                assert head - version <= BATCH, "at most the one that was under way"
            assert verify(store).ok
