"""Saves the results of benchmarks as files, from which the tables of the documentation are made.

A file has the columns, and rows of cells as shown.  A run with `--keep` replaces the rows that it measured again;
`make docs` then updates the pages, and a test checks that files and pages agree.
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
    """The command that measures them again."""
    measured: str
    """When they were measured, and on what."""
    key: tuple[str, ...]
    """The columns that identify a row."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def with_rows(self, rows: Iterable[Mapping[str, str]]) -> "Results":
        """A copy in which these rows replace those with the same key; new ones come last.

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
        """A Markdown table of these columns, or of all."""
        places = [self.columns.index(column) for column in columns or self.columns]
        lines = [[self.columns[at] for at in places], ["---"] * len(places)]
        lines += [[row[at] for at in places] for row in self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def kept(name: str) -> Results:
    """Read the figures with this name."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Results)


def keep(name: str, rows: Iterable[Mapping[str, str]]) -> None:
    """Save new rows in the file with this name, with the time and machine of the measurement."""
    _write(name, msgspec.structs.replace(kept(name).with_rows(rows), measured=_now()))


def keep_all(name: str, rows: Sequence[Mapping[str, str]], measured: str) -> None:
    """Save only these rows, with their columns; `measured` says over what they were measured."""
    found = msgspec.structs.replace(kept(name), columns=tuple(rows[0]), rows=())
    _write(name, msgspec.structs.replace(found.with_rows(rows), measured=f"{measured}; {_now()}"))


def _now() -> str:
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return f"{time.strftime('%Y-%m-%d')}, {machine}, Python {platform.python_version()}"


def _write(name: str, results: Results) -> None:
    text = msgspec.json.format(msgspec.json.encode(results), indent=1)
    (FOLDER / f"{name}.json").write_bytes(text + b"\n")
