"""What benchmarks have measured, kept as files: the tables of the documentation are made of them.

A file has the columns, and a row of cells as they are shown.  A run that is told to keep its figures replaces the rows
that it measured again; `make docs` then puts them into the pages, and a test holds both together.
"""

import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).parent


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one benchmark."""

    command: str
    """How to measure them again."""
    measured: str
    """When, and on what."""
    key: tuple[str, ...]
    """The columns that say what a row is about."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def with_rows(self, rows: Iterable[Mapping[str, str]]) -> "Results":
        """With these in the place of those that are about the same; new ones come last.

        Raises:
            KeyError: a row lacks a column.
        """
        about = [self.columns.index(column) for column in self.key]
        found = {tuple(row[at] for at in about): row for row in self.rows}
        for row in rows:
            found[tuple(row[column] for column in self.key)] = tuple(
                map(row.__getitem__, self.columns)
            )
        return msgspec.structs.replace(self, rows=tuple(found.values()))

    def table(self, columns: Sequence[str] = ()) -> str:
        """These columns, or all, in Markdown."""
        places = [self.columns.index(column) for column in columns or self.columns]
        lines = [[self.columns[at] for at in places], ["---"] * len(places)]
        lines += [[row[at] for at in places] for row in self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def kept(name: str) -> Results:
    """The figures of this name."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Results)


def keep(name: str, rows: Iterable[Mapping[str, str]]) -> None:
    """Put new rows into the file of this name, and say when and on what they were measured."""
    _write(name, msgspec.structs.replace(kept(name).with_rows(rows), measured=_now()))


def keep_all(name: str, rows: Sequence[Mapping[str, str]], measured: str) -> None:
    """The same with these rows alone, and their columns; `measured` says over what."""
    found = msgspec.structs.replace(kept(name), columns=tuple(rows[0]), rows=())
    _write(name, msgspec.structs.replace(found.with_rows(rows), measured=f"{measured}; {_now()}"))


def _now() -> str:
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return f"{time.strftime('%Y-%m-%d')}, {machine}, Python {platform.python_version()}"


def _write(name: str, results: Results) -> None:
    text = msgspec.json.format(msgspec.json.encode(results), indent=1)
    (FOLDER / f"{name}.json").write_bytes(text + b"\n")
