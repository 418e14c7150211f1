"""Plays recorded sessions over HTTP, as their agents would send them, through the gateway to a strict upstream.

python -m benchmarks.gateway [FOLDER or FILE ...] [--window 30000] [--through gateway|bare|nothing]

Costs are those of the prompts that arrive, by the provider's cache rules: as shares of the agent's own requests
with its own marks, and relative to `foldline replay` of the session.  Without sessions, some are generated.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import fmean, median, quantiles

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.gateway.clients import CLIENTS
from benchmarks.gateway.play import THROUGH, Played, play
from benchmarks.material import STARTED_AT, SYSTEM, TOOLS, Writer
from benchmarks.results import keep
from blocks import AssistantBlock, FoldlineError
from persistence.sessions import Arrived, Item, Responded, Session, read_session

COLUMNS = ("session", "client", "calls", "cost", "replay", "of replay", "refused", "over", "busts")
SECONDS_A_CALL = 20
"""The seconds between the calls of a generated session."""
ROUNDS = (3, 150)
"""The rounds of generated sessions: one that always fits, one that does not."""


def generated(rounds: int, client: str) -> Session:
    """A generated session of one of the agents."""
    writer, items, at = Writer(seed=rounds), list[Item](), STARTED_AT
    for number in range(rounds):
        *prompt, text, call, result = writer.round()
        at += SECONDS_A_CALL
        if prompt:
            items.append(Arrived(at=at, blocks=tuple(prompt)))
        said = tuple(block for block in (text, call) if isinstance(block, AssistantBlock))
        items.append(Responded(at=at, id=f"response_{number}", blocks=said))
        items.append(Arrived(at=at + 1, blocks=(result,)))
    name = f"made-up-{client}-{rounds}"
    return Session(name=name, format=client, system=SYSTEM, tools=tuple(TOOLS), items=tuple(items))


def found(places: Sequence[Path]) -> Iterator[Session]:
    """The sessions in files and folders; prints the files that cannot be read."""
    for place in places:
        for path in sorted(place.glob("*.json*")) if place.is_dir() else [place]:
            try:
                session = read_session(path)
            except FoldlineError as error:
                print(error, file=sys.stderr)
                continue
            if session.calls:
                yield session


def cells(row: Played) -> list[str]:
    """The cells of a row of the table."""
    share = row.replayed / row.direct if row.direct else 1.0
    counts = (len(row.refused) + len(row.failed), row.over, row.busts)
    shares = (f"{row.of_direct:.3f}", f"{share:.3f}", f"{row.of_replay:.3f}")
    return [row.session, row.client, str(row.calls), *shares, *map(str, counts)]


def show(console: Console, rows: Sequence[Played]) -> None:
    """Print the table, the means, the time added to calls, and the failures."""
    table = Table(title=f"Window {rows[0].window:,}", title_justify="left", box=box.MARKDOWN)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:2] else "right")
    for row in rows:
        table.add_row(*cells(row))
    console.print(table)
    added = sorted(ms for row in rows for ms in row.added_ms)
    p99 = quantiles(added, n=100)[98] if len(added) > 1 else added[0]
    cost = fmean(row.of_direct for row in rows)
    console.print(
        f"{len(rows)} sessions, mean cost {cost:.3f}; of replay at most "
        f"{max(abs(row.of_replay - 1) for row in rows):.3f} off; dearest {max(row.of_direct for row in rows):.3f}; "
        f"added beside a bare proxy: {median(added):.1f} ms, p99 {p99:.1f} ms",
        markup=False,
    )
    for row in rows:
        for why in dict.fromkeys((*row.refused, *row.failed)):
            console.print(f"{row.session}: {why}", markup=False)


def by_client(rows: Sequence[Played]) -> Iterator[dict[str, str]]:
    """A row for each kind of client, to be saved."""
    for client in dict.fromkeys(row.client for row in rows):
        own = [row for row in rows if row.client == client]
        replayed = fmean(row.replayed / row.direct if row.direct else 1.0 for row in own)
        yield {
            "client": client,
            "sessions": str(len(own)),
            "calls": str(sum(row.calls for row in own)),
            "cost": f"{fmean(row.of_direct for row in own):.3f}",
            "replay": f"{replayed:.3f}",
            "of replay": f"{min(row.of_replay for row in own):.3f} to {max(row.of_replay for row in own):.3f}",
            "dearest": f"{max(row.of_direct for row in own):.3f}",
            "refused": str(sum(len(row.refused) + len(row.failed) for row in own)),
            "over": str(sum(row.over for row in own)),
            "busts": str(sum(row.busts for row in own)),
        }


def main() -> int:
    """Play and print; returns 1 if a request was refused, a call failed, or a warm cache was lost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("sessions", nargs="*", type=Path, help="files and folders")
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--through", choices=THROUGH, default="gateway")
    parser.add_argument("--keep", action="store_true", help="keep the means in benchmarks/results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    sessions = (
        list(found(given.sessions))
        if given.sessions
        else [generated(rounds, client) for client in CLIENTS for rounds in ROUNDS]
    )
    if not sessions:
        parser.error("no session could be read")
    one = partial(play, window=given.window, policy=given.policy, through=given.through)
    with ProcessPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(one, sessions))
    show(Console(width=130), rows)
    if given.keep:
        keep(f"gateway-{given.window}", by_client(rows))
    return int(any(row.refused or row.failed or row.busts for row in rows))


if __name__ == "__main__":
    sys.exit(main())
