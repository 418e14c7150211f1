"""Run as a process: compacts a timeline once for each step, and dies at that step.

    python -m tests.timeline.summarizers.crash URL FOLDER FIRST LAST

Each step has a child of its own and a DuckDB file of its own, FOLDER/STEP.duckdb.  Exit statuses are
printed, one a line: 9 when it died as it should, 0 when it had fewer steps.
"""

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import attrs
import duckdb  # noqa: F401 -- loaded once, before the children are made

from persistence import DuckDBStore
from render import Summary
from tests._builders import Ids
from timeline import ModelSummarizer, SummaryRequest, model_named
from timeline.tokens import counter_for

from .stores import Dying, Watched
from .talk import MODEL, SYSTEM, opened, talk

TURNS = 15
"""Enough for a compaction to be due."""


@attrs.frozen
class Mortal:
    """A summariser whose process may die before it asks, or with the answer in its hands."""

    inner: ModelSummarizer
    watch: Dying

    @property
    def name(self) -> str:
        return self.inner.name

    def __call__(self, request: SummaryRequest) -> Summary:
        self.watch("before the call")
        summary: Summary = self.inner(request)
        self.watch("after the call")
        return summary


def converse(path: Path) -> None:
    """Talk without trouble."""
    with DuckDBStore(path) as store:
        talk(opened(None, store=store), TURNS)


def compact(url: str, path: Path, step: int) -> None:
    """Compact in a process that ends at the n-th operation."""
    with anthropic.Anthropic(base_url=url, api_key="test", max_retries=0) as client:
        dying = Dying(step)
        given: dict[str, Any] = {
            "store": Watched(DuckDBStore(path), dying),
            "summarizer": Mortal(ModelSummarizer(client=client), dying),
            "ids": Ids("second"),
        }
        timeline = opened(client, **given)
        timeline.render(system=SYSTEM)
        timeline.close()


def child(work: Callable[[], None]) -> int:
    """The exit status of a process that does this."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(url: str, folder: str, first: str, last: str) -> None:
    """One child after the other."""
    counter_for("model", model_named(MODEL)).count("loaded once, too")
    talked = Path(folder) / "talked.duckdb"
    child(partial(converse, talked))
    for step in range(int(first), int(last) + 1):
        path = Path(shutil.copy(talked, Path(folder) / f"{step}.duckdb"))
        sys.stdout.write(f"{child(partial(compact, url, path, step))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
