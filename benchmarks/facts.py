"""Measures how many of a session's findings and decisions its last request still has.

    .venv/bin/python -m benchmarks.facts FOLDER [WINDOW ...]

`facts.toml` has the facts, written by hand. A fact survives if a passage of the request, a few lines
long, has all of its words; `page` counts only the summary.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from persistence.sessions import read_session
from timeline.replay import DumpRecord, ReplayOptions, replay

FACTS: Final = Path(__file__).with_name("facts.toml")
WINDOWS: Final = (30_000, 60_000)
PASSAGE: Final = 500
"""The length in characters of a passage that must have all words of a fact."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A statement, and the words by which it is recognised."""

    call: int
    kind: str
    fact: str
    words: tuple[str, ...]


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one session."""

    name: str
    fact: tuple[Fact, ...]
    check: bool = False


class _File(msgspec.Struct, frozen=True, kw_only=True):
    session: tuple[Known, ...]


def known() -> tuple[Known, ...]:
    """The facts of all sessions."""
    return msgspec.toml.decode(FACTS.read_bytes(), type=_File).session


def survives(fact: Fact, text: str) -> bool:
    """Whether one passage has all words, ignoring case and Markdown."""
    text = _plain(text)
    first, *others = (_plain(word) for word in fact.words)
    at = text.find(first)
    while at >= 0:
        passage = text[max(at - PASSAGE, 0) : at + PASSAGE]
        if all(word in passage for word in others):
            return True
        at = text.find(first, at + 1)
    return False


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").replace("*", "").casefold().split())


def last_request(path: Path, window: int) -> list[str]:
    """The texts of a session's last request."""
    last: list[Any] = []

    def keep(sent: DumpRecord) -> None:
        last[:] = [sent.rendered]

    replay(read_session(path), ReplayOptions(window=window, provider="anthropic"), dump=keep)
    return list(_texts(last[0].messages))


def _texts(value: Any) -> Iterator[str]:
    items: list[Any] = []
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        items += value.values()
    elif isinstance(value, Sequence):
        items += value
    for item in items:
        yield from _texts(item)


def main() -> None:
    """Replay the sessions and print the counts."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("windows", type=int, nargs="*", default=WINDOWS)
    asked.add_argument("--lost", action="store_true", help="print what did not survive")
    given = asked.parse_args()
    table = Table("session", "window", "facts", "in the request", "page")
    for session in known():
        path = next(iter(given.folder.glob(f"{session.name}.*")), None)
        if path is None:
            continue
        for window in given.windows:
            texts = last_request(path, window)
            text = "\n".join(texts)
            page = "\n".join(said for said in texts if said.startswith("<summary"))
            there = [fact for fact in session.fact if survives(fact, text)]
            told = [fact for fact in session.fact if survives(fact, page)]
            name = f"{session.name}{' (check)' if session.check else ''}"
            table.add_row(
                name, str(window), str(len(session.fact)), str(len(there)), str(len(told))
            )
            for fact in session.fact if given.lost else ():
                if fact not in told:
                    Console().print(f"{session.name} {window} call {fact.call}: {fact.fact}")
    Console().print(table)


if __name__ == "__main__":
    main()
