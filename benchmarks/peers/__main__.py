"""Runs our policies and the peers over the recorded sessions and prints one table.

python -m benchmarks.peers [--window 30000] [--only NAME ...] [--speed] [--json FILE]
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.peers.driver import PEERS, Child, Peer, PeerFailedError
from benchmarks.peers.install import missing
from benchmarks.peers.measure import Row, full_history, measured, ours, recorded
from benchmarks.peers.speed import SIZES, speeds
from benchmarks.results import keep
from blocks import FoldlineError
from persistence.sessions import read_session

POLICIES = ("default", "frugal", "generous")
SHARES = ("cost", "far", "farctx", "farwide", "quotes", "around", "rules")
COLUMNS = (*SHARES, "busts", "over", "sums", "ms")
HEADINGS = ("engine", *COLUMNS[:-1], "ms/call")
ROOT = Path(__file__).resolve().parents[2]


@attrs.frozen(kw_only=True)
class Found:
    """What one session gave; `ready` names the versions that answered."""

    rows: list[Row]
    ready: dict[str, str]
    failed: dict[str, str]


def sessions() -> list[Path]:
    """The recorded sessions, beside the repository or where FOLDLINE_SESSIONS says."""
    folder = Path(os.environ.get("FOLDLINE_SESSIONS", ROOT.parent / "shared" / "data" / "sessions"))
    paths = sorted(p for p in folder.glob("*.json*") if p.name != "MANIFEST.json")
    return paths or [ROOT / "docs" / "examples" / "invoice-service.jsonl"]


def one_session(job: tuple[Path, int, Sequence[Peer]]) -> Found:
    """Every engine over one session; nothing where it always fits or cannot be read."""
    path, window, peers = job
    found = Found(rows=[], ready={}, failed={})
    try:
        session = read_session(path)
    except FoldlineError as error:
        found.failed[path.name] = str(error)
        return found
    recording = recorded(session, window)
    if not session.calls or not recording.is_long:
        return found
    rows = [full_history(recording), *(ours(policy, recording) for policy in POLICIES)]
    if not rows[0].far:
        return found
    found.rows.extend(rows)
    for peer in peers:
        try:
            with Child(peer) as child:
                found.rows.append(measured(child, recording))
                found.ready[peer.name] = child.ready
        except PeerFailedError as error:
            found.failed[f"{peer.name} on {path.name}"] = str(error)
    return found


def means(found: Sequence[Found], sessions_of: int) -> list[dict[str, Any]]:
    """One line an engine, cheapest first; only those that got through every session."""
    by_name: dict[str, list[Row]] = {}
    for row in (row for one in found for row in one.rows):
        by_name.setdefault(row.engine, []).append(row)
    lines: list[dict[str, Any]] = [
        {"engine": name, **{column: mean(rows, column) for column in COLUMNS}}
        for name, rows in by_name.items()
        if len(rows) == sessions_of
    ]
    return sorted(lines, key=lambda line: line["cost"])


def mean(rows: Sequence[Row], column: str) -> float:
    """Over the sessions that have this figure; without any, nothing was lost."""
    known = [value for row in rows if (value := getattr(row, column)) is not None]
    return fmean(known) if known else 1.0


def shown(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """The cells of each line, by the headings of their columns."""
    for line in lines:
        figures = (f"{line[c]:.2f}" if c in SHARES else f"{line[c]:.1f}" for c in COLUMNS)
        yield dict(zip(HEADINGS, (str(line["engine"]), *figures), strict=True))


def show(console: Console, title: str, lines: Sequence[dict[str, str]]) -> None:
    """The table, in Markdown."""
    table = Table(title=title, title_justify="left", box=box.MARKDOWN)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for line in lines:
        table.add_row(*line.values())
    console.print(table)


def show_speed(console: Console, peers: Sequence[Peer], window: int) -> None:
    """Milliseconds a call after so many blocks."""
    title = f"ms a call after so many blocks (median of the last 100 calls), window {window:,}"
    table = Table(title=title, title_justify="left", box=box.MARKDOWN)
    table.add_column("engine")
    for size in SIZES:
        table.add_column(f"{size:,}", justify="right")
    for name, figures in speeds(peers, window):
        table.add_row(name, *figures)
    console.print(table)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--speed", action="store_true", help="only the second table")
    parser.add_argument("--no-speed", action="store_true", help="only the first table")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures, a session a line")
    parser.add_argument("--keep", action="store_true", help="keep the means in benchmarks/results")
    return parser.parse_args()


def main() -> int:
    """Measure, print."""
    given = arguments()
    console = Console(width=120)
    peers = [peer for peer in PEERS if not given.only or peer.name in given.only]
    for peer in peers:
        if reason := missing(peer):
            console.print(f"{peer.name}: could not be installed: {reason}", markup=False)
    peers = [peer for peer in peers if not missing(peer)]
    if not given.speed:
        compare(console, given, peers)
    if not given.no_speed:
        show_speed(console, peers, given.window)
    return 0


def compare(console: Console, given: argparse.Namespace, peers: Sequence[Peer]) -> None:
    """The first table."""
    jobs = [(path, given.window, peers) for path in sessions()]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = list(pool.map(one_session, jobs))
    count = sum(bool(one.rows) for one in found)
    for what, why in sorted({pair for one in found for pair in one.failed.items()}):
        console.print(f"{what}: {why}", markup=False)
    for line in sorted({text for one in found for text in one.ready.values()}):
        console.print(f"ran: {line}", markup=False)
    title = f"Window {given.window:,}; means over {count} recorded sessions longer than that"
    lines = list(shown(means(found, count)))
    show(console, title, lines)
    if given.keep:
        keep(f"peers-{given.window}", lines)
    if given.json:
        rows = [[attrs.asdict(row) for row in one.rows] for one in found if one.rows]
        given.json.write_text("\n".join(json.dumps(line) for line in rows) + "\n")


if __name__ == "__main__":
    sys.exit(main())
