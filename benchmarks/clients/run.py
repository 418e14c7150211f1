"""One run: an agent, a provider, perhaps the gateway in between; and whether all is as it should be."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks.clients.agents import KEY, Client
from benchmarks.clients.play import Place, play
from benchmarks.clients.task import HELPER, MAIN, SIDE, Task
from timeline.fake_provider import FakeProvider, FakeServer

ROUNDS_MIN: Final = 30
"""Of the main conversation."""


@attrs.define(kw_only=True)
class Run:
    """What came of one way to run the task."""

    way: str
    task: Task
    state: dict[str, str] = attrs.field(factory=dict[str, str])
    """The files of the project in the end, by a hash of their content."""
    refused: Sequence[str] = ()
    failed: str = ""

    @property
    def cells(self) -> Sequence[str]:
        """Of the table."""
        counts = (str(self.task.rounds[name]) for name in (MAIN, HELPER, SIDE))
        return [self.way, *counts, str(len(self.refused)), self.failed or "ok"]


def run_directly(client: Client, folder: Path) -> Run:
    """The agent and the provider, nothing in between."""
    place = Place(folder=folder)
    place.project.mkdir(parents=True)
    task = Task(client.tools(place.project))
    server = FakeServer(FakeProvider(responder=task))
    server.start()
    try:
        failed = play(client, task, place, server.url)
    finally:
        server.stop()
    return _checked(Run(way="direct", task=task, state=place.state(), failed=failed), server)


def _checked(run: Run, server: FakeServer) -> Run:
    """With the first thing that is wrong with it."""
    run.refused = [exchange.error.message for exchange in server.refused if exchange.error]
    strange = {
        f"{request.method} {request.path}: {request.status}"
        for request in server.http_requests
        if request.status == 404
    }
    wrong = [
        run.failed,
        *(str(error) for error in server.provider.failures),
        *run.refused,
        *sorted(strange),
        "" if run.task.rounds[MAIN] >= ROUNDS_MIN else f"only {run.task.rounds[MAIN]} rounds",
        "" if "src/sum.txt" in run.state else "the project is not done",
        "a key was kept" if any(_has_key(request) for request in server.http_requests) else "",
    ]
    run.failed = next(filter(None, wrong), "")
    return run


def _has_key(request: object) -> bool:
    return KEY in repr(request)
