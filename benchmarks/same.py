"""Checks whether two checkouts send the same bytes: both replay every session at both windows.

    git worktree add ../before v0.1
    .venv/bin/python -m benchmarks.same ../before        # a minute or two; exit code 1 if anything differs

Both run with this environment's libraries.  The times of calls are not compared.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product, zip_longest
from os import environ
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.trials import sessions

HERE = Path(__file__).resolve().parents[1]
WINDOWS = (30_000, 60_000)
REPLAY = "import sys; from timeline.cli import main; sys.exit(main(sys.argv[1:]))"


def dump(checkout: Path, session: Path, window: int, out: Path) -> str:
    """Replay a session with a checkout's code into `out`; returns the error, or ''."""
    replay = [
        "replay",
        str(session.resolve()),
        "--window",
        str(window),
        "--json",
        "--dump",
        str(out),
    ]
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, *replay],
        cwd=out.parent,
        env={**environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stderr.strip().rsplit("\n", 1)[-1] or "failed"


def requests(path: Path) -> Iterator[dict[str, object]]:
    """The lines of a dump, without their times."""
    for line in path.read_bytes().splitlines():
        found = msgspec.json.decode(line, type=dict[str, object])
        found.pop("ms", None)
        yield found


def difference(mine: Path, other: Path) -> tuple[int, str]:
    """The number of requests, and where they first differ; empty if they are equal."""
    number, nothing = -1, dict[str, object]()
    for number, (a, b) in enumerate(
        zip_longest(requests(mine), requests(other), fillvalue=nothing)
    ):
        if fields := [name for name in {**a, **b} if a.get(name) != b.get(name)]:
            return number + 1, f"request {number}: {', '.join(fields)}"
    return number + 1, ""


def compared(other: Path, session: Path, window: int) -> tuple[int, str]:
    """Compare one session at one window."""
    with TemporaryDirectory() as folder:
        mine, theirs = Path(folder) / "mine.jsonl", Path(folder) / "other.jsonl"
        wrong = dump(HERE, session, window, mine) or dump(other, session, window, theirs)
        return (0, wrong) if wrong else difference(mine, theirs)


def main() -> int:
    """Replay, compare, and print the differences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("other", type=Path, help="a folder with another version's code")
    parser.add_argument("session", type=Path, nargs="*", help="default: the recorded ones")
    given = parser.parse_args()
    pairs = list(product(given.session or sessions(), WINDOWS))
    table = Table("session", "window", "requests", "difference")
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda pair: compared(given.other.resolve(), *pair), pairs))
    for (session, window), (number, difference) in zip(pairs, found, strict=True):
        table.add_row(session.name, f"{window:,}", f"{number:,}", difference or "none")
    Console().print(table)
    return int(not pairs or any(difference for _, difference in found))


if __name__ == "__main__":
    sys.exit(main())
