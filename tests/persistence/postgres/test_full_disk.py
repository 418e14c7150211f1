"""A server whose disk is full, really: each error says what to do, and with room again it goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests._postgres import is_there
from tests._sizes import PATIENCE, PROFILE

ROOT = Path(__file__).parents[3]
MOUNT = "unshare -m mount -t tmpfs -o size=1m tmpfs /mnt"


def has_disks() -> bool:
    """Whether a file system of our own can be had."""
    if os.name != "posix" or os.geteuid() != 0 or not is_there():
        return False
    try:
        return subprocess.run(MOUNT.split(), capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(
    PROFILE != "long" or not has_disks(),
    reason="part of `make test-long`, where root, a mount namespace and the server's wheel are to be had: how "
    "long it takes to fill a disk is up to what else the machine does",
)
def test_what_was_acknowledged_is_there_when_the_disk_of_a_server_was_full() -> None:
    """Of a table that cannot grow, and of a write-ahead log for which the server ends itself."""
    command = [sys.executable, "-m", "benchmarks.full_disk", "--seconds", "1"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *told, last = [line for line in done.stdout.splitlines() if " x " in line or "wrong" in line]
    assert last.endswith("wrong: 0")
    assert any("No space left on device; free disk space on the server" in line for line in told)
    assert all("repeat the call" in line for line in told), told
