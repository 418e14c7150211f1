"""Runs an agent with a provider, directly or through the gateway, and checks the results."""

import json
import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from benchmarks.clients.agents import KEY, Client
from benchmarks.clients.play import Place, play
from benchmarks.clients.task import HELPER, MAIN, SIDE, LongTask, Task
from render import Json, provider_of
from timeline.billing import price
from timeline.fake_provider import Exchange, FakeProvider, FakeServer
from timeline.gateway import Gateway, GatewayServer
from timeline.report import Savings

RULE: Final = "Every commit message ends with ZEBRA-4711."
"""What the project lays down."""
RULES: Final = ("CLAUDE.md", "AGENTS.md")
"""The files in which agents look for it."""
ROUNDS_MIN: Final = 30
"""The least number of rounds in the main conversation."""
_REFUSED: Final = 400
_UPGRADE: Final = 426
"""The status with which websockets are refused, as intended."""
_MONEY_OFF: Final = 0.03
"""The allowed relative difference between the gateway's cost and the provider's: folder names differ, and the
simulation uses another tokenizer."""
LOGGER: Final = "foldline.gateway"


@attrs.define(kw_only=True)
class Run:
    """The results of one way to run the task."""

    way: str
    task: Task
    state: dict[str, str] = attrs.field(factory=dict[str, str])
    """The final files of the project, each with a hash of its content."""
    tokens: int = 0
    """The tokens of all prompts, as the provider counted them."""
    paid: float = 0.0
    """The cost of prompts and answers, in dollars."""
    ruled: int = 0
    """Requests that have the project's rule."""
    savings: Savings | None = None
    failures: list[str] = attrs.field(factory=list[str])

    @property
    def cells(self) -> Sequence[str]:
        """Its cells in the table."""
        counts = (str(self.task.rounds[name]) for name in (MAIN, HELPER, SIDE))
        found = ("-", "-")
        if self.savings:
            found = (str(self.savings.timelines), str(self.savings.compactions))
        result = f"{len(self.failures)} wrong" if self.failures else "ok"
        return [
            self.way,
            *counts,
            str(self.ruled),
            *found,
            f"{self.tokens:,}",
            f"{self.paid:.2f}",
            result,
        ]


def run_directly(client: Client, folder: Path) -> Run:
    """Run the agent directly with the provider."""
    place, task, server = _set_up(client, folder)
    run = Run(way="direct", task=task)
    with _serving(run, server):
        run.failures += play(client, task, place, server.url)
    return _checked(run, place, server)


def run_through_gateway(client: Client, folder: Path, direct: Run) -> Run:
    """Run the agent through the gateway in a small window; the project must end as in the direct run."""
    place, task, server = _set_up(client, folder)
    run = _through(client, Run(way="gateway", task=task), place, server, client.window)
    run = _checked(run, place, server)
    run.failures += _compared(run, direct)
    if any(KEY.encode() in path.read_bytes() for path in folder.glob("store.sqlite*")):
        run.failures.append("the key is in the store")
    return run


def run_in_its_window(client: Client, folder: Path) -> Run:
    """Run the agent through the gateway in the model's own window: the gateway must compact before the agent does,
    whose own summary would begin another timeline."""
    place, task, server = _set_up(client, folder, LongTask)
    run = _through(client, Run(way="its window", task=task), place, server, None)
    run = _checked(run, place, server)
    savings = run.savings or Savings()
    if not savings.compactions:
        run.failures.append("no compaction by the gateway")
    if savings.timelines != sum(1 for count in run.task.rounds.values() if count):
        run.failures.append("the agent compacted by itself")
    return run


def _through(client: Client, run: Run, place: Place, server: FakeServer, window: int | None) -> Run:
    """Run the agent through a gateway with this window; warnings are failures."""
    heard = _Heard(logging.WARNING)
    logging.getLogger(LOGGER).addHandler(heard)
    store = f"sqlite:///{place.folder / 'store.sqlite'}"
    try:
        with _serving(run, server):
            gateway = Gateway(store=store, upstream=server.url, window=window)
            with GatewayServer(gateway) as between:
                run.failures += play(client, run.task, place, between.url)
            run.savings = gateway.savings()
    finally:
        logging.getLogger(LOGGER).removeHandler(heard)
    run.failures += heard.said
    return run


def _set_up(
    client: Client, folder: Path, kind: type[Task] = Task
) -> tuple[Place, Task, FakeServer]:
    place = Place(folder=folder)
    place.project.mkdir(parents=True)
    for name in RULES:
        (place.project / name).write_text(f"# Rules\n\n{RULE}\n", encoding="utf-8")
    task = kind(client.tools(place.project))
    return place, task, FakeServer(FakeProvider(responder=task))


@contextmanager
def _serving(run: Run, server: FakeServer) -> Generator[None]:
    """Record errors of the scripted model as failures of the run."""
    server.start()
    try:
        yield
    finally:
        server.stop()
        run.failures += [str(error) for error in server.provider.failures]


def _checked(run: Run, place: Place, server: FakeServer) -> Run:
    """The run with its failures; the requests that arrived are written to a file beside the project."""
    lines: list[Json] = [
        {"method": r.method, "path": r.path, "query": r.query, "status": r.status}
        | {"headers": dict(r.headers), "body": r.json if r.body else None}
        for r in server.http_requests
    ]
    written = "".join(f"{json.dumps(line)}\n" for line in lines)
    (place.folder / "requests.jsonl").write_text(written, encoding="utf-8")
    run.state = place.state()
    run.tokens = sum(exchange.tokens for exchange in server.provider.exchanges)
    run.ruled = sum(RULE in json.dumps(exchange.request) for exchange in server.provider.exchanges)
    run.paid = sum(_price(exchange, server.provider) for exchange in server.provider.exchanges)
    run.failures += [exchange.error.message for exchange in server.refused if exchange.error]
    run.failures += [
        f"{line['method']} {line['path']}: {line['status']}"
        for line in lines
        if line["status"] >= _REFUSED and line["status"] != _UPGRADE
    ]
    return run


def _compared(run: Run, direct: Run) -> Iterator[str]:
    """What is not as it should be, and differences from the direct run."""
    if run.task.rounds[MAIN] < ROUNDS_MIN:
        yield f"only {run.task.rounds[MAIN]} rounds"
    if "src/sum.txt" not in run.state:
        yield "the project is not done"
    if run.state != direct.state:
        other = {name for name, _ in run.state.items() ^ direct.state.items()}
        yield f"the project ends otherwise: {', '.join(sorted(other))}"
    if run.ruled != direct.ruled or not run.ruled:
        yield f"the project's rule is in {run.ruled} requests, without the gateway in {direct.ruled}"
    if run.task.rounds != direct.task.rounds:
        yield f"rounds: {run.task.rounds}, without: {direct.task.rounds}"
    found = run.savings or Savings()
    wanted = sum(1 for count in run.task.rounds.values() if count)
    if found.timelines != wanted:
        yield f"{found.timelines} timelines for {wanted} conversations"
    for name, told, real in (("paid", found.paid, run.paid), ("full", found.full, direct.paid)):
        if abs(told - real) > _MONEY_OFF * real:
            yield f"{name}: the gateway says ${told:.4f}, the provider ${real:.4f}"
    if not found.compactions:
        yield "no compaction: the window is too large to test anything"


def _price(exchange: Exchange, provider: FakeProvider) -> float:
    """The provider's price of a request and its answer, in dollars."""
    model = provider.model(str(exchange.request["model"]))
    if model is None or exchange.step is None or exchange.answer is None:
        return 0.0
    output = provider_of(model).rates(model, exchange.step.total).output
    return price(exchange.step, model) + exchange.answer.output_tokens * output / 1_000_000


class _Heard(logging.Handler):
    """Collects the gateway's warnings."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
