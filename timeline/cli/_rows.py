"""The blocks of a timeline as rows, and the options that choose among them."""

import argparse
from typing import TYPE_CHECKING, Final

import attrs

from timeline.cli._console import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from blocks import Block, Naming, Recorded
    from render import TokenCounter

STATES: Final = ("visible", "hidden", "folded", "carried")
WORDS: Final = 160


@attrs.frozen(kw_only=True)
class Row:
    """One block in a table."""

    version: int
    at: float
    turn: str
    path: str
    kind: str
    state: str
    tokens: int
    """Estimated number of tokens."""
    text: str
    """The beginning of the block's text, on one line."""
    cut: bool
    """Whether the block's text is longer than `text`."""


def filter_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose which blocks to show."""
    add = parser.add_argument
    add(
        "--kind",
        action="append",
        metavar="KIND",
        help="only blocks of this kind: result, call, prompt, user, react.tool, ...; may be repeated",
    )
    add("--turn", action="append", metavar="TURN", help="only this turn: t3; may be repeated")
    add(
        "--state",
        action="append",
        choices=STATES,
        help="only blocks in this state; may be repeated",
    )
    add("--tail", type=int, metavar="N", help="only the newest N of these")


def chosen_rows(rows: "Sequence[Row]", options: argparse.Namespace) -> "Sequence[Row]":
    """The rows that the options choose.

    Raises:
        UsageError: the timeline has no such kind or turn, or `--tail` is less than 1.
    """
    from blocks import did_you_mean

    if options.tail is not None and options.tail < 1:
        raise UsageError(f"--tail {options.tail}: give a number from 1 on")
    kinds = {part: None for row in rows for part in _names(row.kind)}
    turns = dict.fromkeys(row.turn for row in rows)
    for name, asked, known in (("kind", options.kind, kinds), ("turn", options.turn, turns)):
        for each in asked or () if rows else ():
            if each not in known:
                near = did_you_mean(each, known) or f"; there are {', '.join(known)}"
                raise UsageError(f"--{name} {each}: no block of this timeline has it{near}")
    found = [row for row in rows if _is_asked_for(row, options)]
    return found[-options.tail :] if options.tail else found


def _is_asked_for(row: Row, options: argparse.Namespace) -> bool:
    return (
        (not options.kind or not _names(row.kind).isdisjoint(options.kind))
        and (not options.turn or row.turn in options.turn)
        and (not options.state or row.state in options.state)
    )


def _names(kind: str) -> set[str]:
    """The names of a kind: `react.tool.result`, `react`, `tool`, `result`, `react.tool`, `tool.result`."""
    parts = kind.split(".")
    return {
        ".".join(parts[start:end])
        for start in range(len(parts))
        for end in range(start + 1, len(parts) + 1)
    }


@attrs.frozen
class Rows:
    """Makes rows from a log, one part of it at a time."""

    naming: "Naming"
    counter: "TokenCounter"
    paths: "Mapping[int, str] | None" = None
    """Known paths by version, for a log whose beginning was forgotten; None for a complete log."""

    @classmethod
    def new(cls, paths: "Mapping[int, str] | None" = None) -> "Rows":
        from blocks import Naming
        from timeline import model_named
        from timeline.tokens import counter_for

        return cls(Naming(), counter_for("estimate", model_named("")), paths)

    def of(self, events: "Sequence[Recorded]", states: "Mapping[int, str]") -> "Iterator[Row]":
        """A row for each block; a block that is not in `states` is visible."""
        from blocks import BlockAppended, tag_of, text_of

        for version, event in events:
            if not isinstance(event, BlockAppended):
                continue
            block, text = event.block, text_of(event.block)
            shown = first_words(text)
            yield Row(
                version=version,
                at=event.at,
                turn=block.turn,
                path=self._path(block, version),
                kind=tag_of(block),
                state=states.get(version, "visible"),
                tokens=self.counter.count(text),
                text=shown,
                cut=len(text) > 4 * WORDS or len(" ".join(text.split())) > len(shown),
            )

    def _path(self, block: "Block", version: int) -> str:
        from blocks import path_at

        path = self.naming.path(block, version)
        return path if self.paths is None else self.paths.get(version) or path_at(block, version)


def first_words(text: str) -> str:
    """The beginning of a text, on one line of at most 160 characters."""
    return " ".join(text[: 4 * WORDS].split())[:WORDS]
