"""A model that reads on and on, through a strict provider, and the programs of the pages that are run against it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import attrs

from blocks import BlockAppended, BlocksHidden, Event, RangeCompacted, ToolCall, ToolResult
from render import Json
from timeline import Timeline
from timeline.fake_provider import Call, FakeServer, Fault, Reply, summary_reply, wants_summary

PAGES: Final = Path(__file__).parents[3] / "docs" / "integrations"
ROUNDS: Final = 36
"""Of one run, and more than the window holds."""
WINDOW: Final = 24_000
"""Of the provider's models: a page's own, and room for an answer."""
LINES_MAX: Final = 25
"""Of a program, empty ones aside."""
SECONDS_MAX: Final = 300
PICTURE: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg"
    "gg=="
)
"""One pixel."""
PIXEL: Final = PICTURE.partition(",")[2]
"""The same in base64 alone."""
Serve: TypeAlias = Callable[..., FakeServer]
SCHEMA: Final[Json] = {
    "name": "finding",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
        "additionalProperties": False,
    },
}
"""Of structured output."""
_B = TypeVar("_B")
LAST_WORDS: Final = "All parts are read."
_PROGRAM: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE: Final = "2026-11-21 INFO the job read /srv/data/part-{}.csv and wrote 1000 rows\n"


def programs(page: str) -> list[str]:
    """The programs of a page, as they are written there; without the provider that they begin with."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found = _PROGRAM.findall(text)
    for program in found:
        lines = [line for line in program.splitlines() if line.strip()]
        assert len(lines) <= LINES_MAX, f"{page}.md: a program of {len(lines)} lines"
    return [program for program in found if "FakeServer" not in program]


def part(number: int) -> str:
    """What is in a file."""
    return "".join(_LINE.format(f"{number}-{line}") for line in range(25))


def read_file(path: str) -> str:
    """Read a text file."""
    return part(int(path.removeprefix("part-").removesuffix(".log")))


def write_parts(folder: Path) -> None:
    """The files that are read."""
    for number in range(ROUNDS):
        (folder / f"part-{number}.log").write_text(part(number), encoding="utf-8")


def _nothing(_: int) -> None:
    """What happens before most rounds."""


@attrs.define(kw_only=True)
class Reader:
    """Reads part after part with a tool, one or two a round, and then says that it has."""

    tool: str = "read_file"
    rounds: int = ROUNDS
    thinks: bool = False
    before: Callable[[int], None] = _nothing
    """Told the number of each round, from 1, before it answers."""
    said: int = attrs.field(default=0, init=False)
    """Rounds until now."""

    def __call__(self, request: Json) -> Reply | Fault:
        if wants_summary(request):
            return summary_reply(request)
        self.said += 1
        self.before(self.said)
        thinking = f"On to {self.said}." if self.thinks else None
        if self.said >= self.rounds:
            return Reply(thinking=thinking, text=LAST_WORDS)
        numbers = [self.said % ROUNDS, (self.said + 1) % ROUNDS][: 1 + self.said % 2]
        calls = [Call(self.tool, {"path": f"part-{number}.log"}) for number in numbers]
        return Reply(thinking=thinking, text=f"I read part {self.said}.", calls=calls)


@attrs.define(kw_only=True)
class Program:
    """A program of a page in a process of its own, with a provider where its client looks for one."""

    text: str
    folder: Path
    server: FakeServer
    _process: "subprocess.Popen[str] | None" = attrs.field(default=None, init=False)

    def run(self) -> str:
        """Run it to its end; what it printed."""
        code, out, errors = self._run()
        assert code == 0, errors
        return out.strip()

    def run_until_killed(self) -> None:
        """Run it until `kill`, which somebody else calls."""
        code, _, errors = self._run()
        assert code < 0, errors

    def kill(self) -> None:
        """End it, as a power failure would."""
        assert self._process
        self._process.kill()

    def _run(self) -> tuple[int, str, str]:
        write_parts(self.folder)
        path = self.folder / "program.py"
        path.write_text(self.text, encoding="utf-8")
        with subprocess.Popen(
            [sys.executable, str(path)],
            cwd=self.folder,
            env={**os.environ, **_addresses(self.server.url)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as self._process:
            out, errors = self._process.communicate(timeout=SECONDS_MAX)
            return self._process.returncode, out, errors


def _addresses(url: str) -> Mapping[str, str]:
    """Where clients look for a provider, and where they must not go."""
    paths = [path for path in sys.path if path]
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "test",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "test",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "test",
        "PYTHONPATH": os.pathsep.join(paths),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "PYTHONWARNINGS": "ignore",
    }


def blocks_in(log: Iterable[Event], kinds: type[_B] | tuple[type[_B], ...]) -> list[_B]:
    """The blocks of these kinds in a log."""
    blocks = (event.block for event in log if isinstance(event, BlockAppended))
    return [block for block in blocks if isinstance(block, kinds)]


def check_log(log: Sequence[Event]) -> None:
    """Nothing is lost: every call is there once, with its result. And the window was too small more than once: results
    were hidden or a range was folded."""
    blocks = [event.block for event in log if isinstance(event, BlockAppended)]
    calls = [block.call_id for block in blocks if isinstance(block, ToolCall)]
    results = [block.call_id for block in blocks if isinstance(block, ToolResult)]
    assert len(calls) == len(set(calls))
    assert sorted(calls) == sorted(results)
    assert any(isinstance(event, RangeCompacted) for event in log)
    shrunk = [isinstance(event, BlocksHidden | RangeCompacted) for event in log]
    assert sum(now and not before for before, now in pairwise(shrunk)) >= 2


def check_page(
    page: str, folder: Path, serve: Callable[..., FakeServer], program: int = 0
) -> dict[str, object]:
    """Run a program of a page, kill it halfway, and run it to its end: nothing is refused, lost or there
    twice.  What to report."""
    reader = Reader()
    server = serve(responder=reader)
    run = Program(text=programs(page)[program], folder=folder, server=server)
    reader.before = lambda rounds: run.kill() if rounds == ROUNDS // 2 else None
    run.run_until_killed()
    assert reader.said == ROUNDS // 2
    assert run.run() == LAST_WORDS
    assert server.refused == []
    with Timeline.open("audit", store=folder / "audit.duckdb") as timeline:
        check_log([event for _, event in timeline.events()])
    return {"rounds": reader.said, "tools": "ok", "lost": 0, "resumed": "ok"}
