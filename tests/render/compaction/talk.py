"""Turns and rounds of work, and views that were compacted: for the tests of what compactions do."""

from collections.abc import Iterator
from typing import Any

from blocks import (
    Block,
    EventId,
    RangeCompacted,
    RequestRendered,
    StructuredSummary,
)
from render import (
    Context,
    FoldRange,
    Summary,
    View,
    apply_range,
    commit,
    extractive,
    range_before_tail,
    skip,
)
from tests import _builders as make

NOW = 1_000_000.0


def rounds(number: int, turn: str = "t1", size: int = 100, first: int = 0) -> Iterator[Block]:
    for n in range(first, first + number):
        yield make.said(f"Step {n}.", turn, f"r{n}")
        yield make.call(f"call_{n}", turn, f"r{n}", path=f"src/file_{n}.py")
        yield make.result(f"call_{n}", "x" * size * 4, turn)


def turns(number: int, **more: Any) -> list[Block]:
    found: list[Block] = []
    for n in range(number):
        turn = f"t{n}"
        found += [make.header(turn), make.prompt(f"Prompt {n}.", turn)]
        found += rounds(2, turn, first=2 * n, **more)
    return found


def range_of(view: View, within: Context, keep_ratio: float | None = None) -> FoldRange:
    found = range_before_tail(view, within, "proactive", keep_ratio)
    assert found is not None
    return found


def compacted(view: View, within: Context, *, keep: float = 0.0, **summary: Any) -> View:
    fold = range_of(view, within, keep)
    written = Summary(summary=StructuredSummary(**summary)) if summary else extractive(fold)
    after = apply_range(view, fold, written, within)
    assert isinstance(after.decisions[-1], RangeCompacted), after.decisions[-1]
    return after


def sent(view: View, at: float) -> View:
    return commit(view, RequestRendered(id=EventId("r"), at=at, content_hash="", tokens=0))


# The breaker.


def failed(view: View, times: int, within: Context) -> View:
    for _ in range(times):
        view = skip(view, "failed", within).settled()
    return view


def names(number: int, first: int = 0) -> list[Block]:
    """Reads of files, each with names of its own."""
    found: list[Block] = []
    for n in range(first, first + number):
        shown = f"class HandlerNumber{n}:\n    limit_{n} = {n}{n}{n}{n}\n" + "pad " * 300
        path = f"src/module_{n}.py"
        found.append(make.call(f"c{n}", response=f"r{n}", name="read", path=path))
        found.append(make.result(f"c{n}", shown))
    return found
