"""Runs our policies and the peers over the recorded sessions and prints one table.

python -m benchmarks.peers [--window 30000] [--only NAME ...] [--speed] [--json FILE] [--keep]
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.peers.driver import GATEWAYS, PEERS, Peer
from benchmarks.peers.install import missing
from benchmarks.peers.measure import Row
from benchmarks.peers.run import Piece, Run, engines, gateways
from benchmarks.peers.speed import SIZES, speeds
from benchmarks.results import keep_all

PEERS_OF = {"engines": PEERS, "gateways": GATEWAYS}
ENGINES_OF = {"engines": engines, "gateways": gateways}
TITLES = {"engines": "Engines", "gateways": "Gateways: the client's own requests"}
FILES = {"engines": "peers", "gateways": "gateways"}
"""The files in which the means are saved."""
SHARES = (
    "cost",
    "far",
    "farctx",
    "farwide",
    "quotes",
    "around",
    "rules",
    "edits",
    "standing",
    "whole",
)
COLUMNS = (*SHARES, "busts", "over", "sums", "ms")
HEADINGS = ("engine", *COLUMNS[:-1], "ms/call")
ROOT = Path(__file__).resolve().parents[2]


def sessions() -> list[Path]:
    """The files of the recorded sessions, beside the repository or in FOLDLINE_SESSIONS."""
    folder = Path(os.environ.get("FOLDLINE_SESSIONS", ROOT.parent / "shared" / "data" / "sessions"))
    paths = sorted(p for p in folder.glob("*.json*") if p.name != "MANIFEST.json")
    return paths or [ROOT / "docs" / "examples" / "invoice-service.jsonl"]


def means(pieces: Sequence[Piece], sessions_of: int) -> list[dict[str, Any]]:
    """One line for each engine that completed every session, cheapest first."""
    by_name: dict[str, list[Row]] = {}
    for piece in pieces:
        if piece.row:
            by_name.setdefault(piece.engine, []).append(piece.row)
    lines: list[dict[str, Any]] = [
        {"engine": name, **{column: mean(rows, column) for column in COLUMNS}}
        for name, rows in by_name.items()
        if len(rows) == sessions_of
    ]
    return sorted(lines, key=lambda line: line["cost"])


def mean(rows: Sequence[Row], column: str) -> float:
    """The mean over the sessions that have this figure; 1 if none has it, since nothing was lost."""
    known = [value for row in rows if (value := getattr(row, column)) is not None]
    return fmean(known) if known else 1.0


def shown(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """The cells of each line, by the headings of their columns."""
    for line in lines:
        figures = (f"{line[c]:.2f}" if c in SHARES else f"{line[c]:.1f}" for c in COLUMNS)
        yield dict(zip(HEADINGS, (str(line["engine"]), *figures), strict=True))


def show(console: Console, title: str, lines: Sequence[dict[str, str]]) -> None:
    """Print the table in Markdown."""
    table = Table(title=title, title_justify="left", box=box.MARKDOWN)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for line in lines:
        table.add_row(*line.values())
    console.print(table)


def show_speed(console: Console, peers: Sequence[Peer], window: int) -> None:
    """Print the milliseconds per call, by number of blocks."""
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
    parser.add_argument("--class", dest="kinds", choices=["engines", "gateways"], action="append")
    parser.add_argument("--speed", action="store_true", help="only the table of speeds")
    parser.add_argument("--no-speed", action="store_true", help="all but that")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="the figures, an engine and a session a line; what the file has already is not measured again",
    )
    parser.add_argument("--keep", action="store_true", help="keep the means in benchmarks/results")
    given = parser.parse_args()
    if given.keep and given.only:
        parser.error("--keep is for a table of all; leave out --only")
    return given


def main() -> int:
    """Measure, and print the tables."""
    given = arguments()
    console = Console(width=150)
    kinds = given.kinds or ["engines", "gateways"]
    there = {kind: installed(console, given, PEERS_OF[kind]) for kind in kinds}
    if not given.speed:
        run = Run(jobs=given.jobs, file=given.json)
        found = run.candidates(sessions(), given.window)
        for session in found:
            if session.unreadable:
                console.print(f"{session.path.name}: {session.unreadable}", markup=False)
        telling = [session for session in found if session.calls]
        for kind, peers in there.items():
            pieces = run.measure(telling, ENGINES_OF[kind](peers))
            compare(console, given, Compared(kind=kind, pieces=pieces, sessions=len(telling)))
    if not given.no_speed and "engines" in kinds:
        show_speed(console, there["engines"], given.window)
    return 0


def installed(console: Console, given: argparse.Namespace, peers: Sequence[Peer]) -> list[Peer]:
    """The chosen peers that are installed; prints why the others are not."""
    chosen = [peer for peer in peers if not given.only or peer.name in given.only]
    for peer in chosen:
        if reason := missing(peer):
            console.print(f"{peer.name}: could not be installed: {reason}", markup=False)
    return [peer for peer in chosen if not missing(peer)]


@attrs.frozen(kw_only=True)
class Compared:
    """The data of one table."""

    kind: str
    pieces: Sequence[Piece]
    sessions: int

    @property
    def ran(self) -> list[str]:
        """The peers that ran, with their versions and the part of each that was driven."""
        return sorted({piece.ran for piece in self.pieces if piece.ran})

    @property
    def measured(self) -> str:
        """The sessions and versions of the measurement, in words."""
        versions = dict.fromkeys(ran.split(",")[0] for ran in self.ran)
        return "; ".join([f"{self.sessions} recorded sessions", ", ".join(versions)])


def compare(console: Console, given: argparse.Namespace, compared: Compared) -> None:
    """Measure and print one table of costs and recall."""
    for piece in compared.pieces:
        if piece.failed:
            console.print(f"{piece.engine} on {piece.session}: {piece.failed}", markup=False)
    for line in compared.ran:
        console.print(f"ran: {line}", markup=False)
    over = f"means over {compared.sessions} recorded sessions longer than that"
    title = f"{TITLES[compared.kind]}; window {given.window:,}; {over}"
    lines = list(shown(means(compared.pieces, compared.sessions)))
    show(console, title, lines)
    if given.keep:
        keep_all(f"{FILES[compared.kind]}-{given.window}", lines, compared.measured)


if __name__ == "__main__":
    sys.exit(main())
