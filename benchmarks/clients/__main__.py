"""Runs each agent, as published, on the task: directly with the fake provider, then through the gateway; and at a
long one, through the gateway in the model's own window.

python -m benchmarks.clients                   # all that can be installed here
python -m benchmarks.clients claude pi         # only these agents
python -m benchmarks.clients --keep /tmp/runs  # keep homes, projects, stores and requests

The provider is strict: a refused request fails the run.  The first two must leave the project in the same state.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.clients.agents import CLAUDE, CLAUDE_KEY, Client, OpenCode, Pi
from benchmarks.clients.codex import CODEX, CODEX_LOGIN, CODEX_PLAIN
from benchmarks.clients.install import install
from benchmarks.clients.run import (
    Run,
    run_directly,
    run_in_its_window,
    run_through_gateway,
)

CLIENTS: Final[tuple[Client, ...]] = (
    CLAUDE,
    CLAUDE_KEY,
    CODEX,
    CODEX_PLAIN,
    CODEX_LOGIN,
    Pi(),
    OpenCode(),
)
COLUMNS: Final = (
    *("agent", "version", "way", "rounds", "helper", "side", "rules"),
    *("timelines", "compactions", "tokens", "dollars", "result"),
)


@attrs.define(kw_only=True)
class Outcome:
    """The results of one agent."""

    client: Client
    lacking: str = ""
    """Why it could not be installed; empty if it was."""
    runs: list[Run] = attrs.field(factory=list[Run])

    @property
    def failed(self) -> bool:
        """Whether a run failed; an agent that could not be installed has not failed."""
        return any(run.failures for run in self.runs)

    def rows(self) -> list[Sequence[str]]:
        """Its rows in the table."""
        name, version = self.client.name, self.client.packages[0].version
        return [(name, version, *run.cells) for run in self.runs]

    def complaints(self) -> list[str]:
        """The problems, without repetitions."""
        return [
            f"{self.client.name}, {run.way}: {count} times: {said}"
            for run in self.runs
            for said, count in Counter(run.failures).items()
        ]


def outcome_of(client: Client, folder: Path) -> Outcome:
    """Install an agent and run it in both ways."""
    for package in client.packages:
        if lacking := install(package):
            return Outcome(client=client, lacking=f"{package.name} {package.version}: {lacking}")
    direct = run_directly(client, folder / client.name / "direct")
    through = run_through_gateway(client, folder / client.name / "gateway", direct)
    long = run_in_its_window(client, folder / client.name / "window")
    return Outcome(client=client, runs=[direct, through, long])


def main() -> int:
    """Run all agents; a failure does not stop the others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients", description=__doc__)
    names = [client.name for client in CLIENTS]
    parser.add_argument("names", nargs="*", choices=[[], *names], metavar="agent")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a folder that is not there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        chosen = [client for client in CLIENTS if client.name in (given.names or names)]
        outcomes = [outcome_of(client, folder) for client in chosen]
    table = Table(*COLUMNS)
    for outcome in outcomes:
        for row in outcome.rows():
            table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    for outcome in outcomes:
        print(*outcome.complaints(), sep="\n", end="\n" if outcome.failed else "")
        if outcome.lacking:
            print(f"{outcome.client.name}: skipped, could not be had: {outcome.lacking}")
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
