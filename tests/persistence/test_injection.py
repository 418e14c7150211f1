"""No statement is built from input: names and texts are bound, and stay names and texts."""

import ast
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from blocks import TimelineId
from persistence import ArtifactDescription, EventStore, Requester, verify
from tests._table import for_each
from tests.persistence.contract import STORES, forked, new_store, prompt

ROOT = Path(__file__).parents[2] / "persistence"
FOLDERS = ("duckdb", "sql", "sqlite", "postgres", "artifacts")
VERBS = "SELECT|INSERT|DELETE|UPDATE|CREATE|ALTER|DROP|ATTACH|DETACH|COPY|WITH|GRANT|REVOKE|SET|PRAGMA|FROM|WHERE"
SQL = re.compile(rf"^\W*({VERBS})\b", re.MULTILINE)

REVIEWED = {
    "duckdb/_file.py _attach": "the file's own path, with its quotes doubled",
    "duckdb/_tables.py _joined": "as many question marks as there are versions",
    "duckdb/_verify.py _problems": "tables and keys of ours",
    "postgres/__main__.py": "a script for people, with names quoted",
    "postgres/_citus.py _insertion": "a number of rows",
    "postgres/_citus.py _own_rows": "tables and columns of ours; the alias is a word",
    "postgres/_citus.py distribution": "tables and columns of ours",
    "postgres/_citus.py in_words_of_tables": "tables of ours; what is given stays a parameter",
    "postgres/_dialect.py lines": "views of ours, when the module is loaded",
    "postgres/_schema.py _creating": "tables of ours, when the module is loaded",
    "postgres/_schema.py _make": "the schema that the connection names, with its quotes doubled",
    "sqlite/_dialect.py lines": "views of ours, when the module is loaded",
    "sqlite/_salvage.py _columns": "tables of ours, and their columns",
    "sqlite/_salvage.py _copy_leaves": "tables, columns and types of ours; the name of a table of ours",
    "sqlite/_salvage.py _rows": "tables and columns of ours",
    "sql/_views.py": "views of ours, when the module is loaded",
}
"""Where a statement has a part that is no constant: a function or a file, and why that is safe."""


def built() -> Iterator[tuple[str, str]]:
    """Functions that put something else than a constant of a module into a statement."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.py")):
            for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(function, ast.FunctionDef):
                    where = f"{folder}/{path.name}"
                    yield from ((where, f"{where} {function.name}") for _ in _mixed(function))


def _mixed(function: ast.FunctionDef) -> Iterator[ast.JoinedStr]:
    for node in _inside(function):
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) for part in node.values if isinstance(part, ast.Constant)
            )
            values = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            if SQL.match(text) and not all(map(_is_constant, values)):
                yield node


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a function, but not in those inside it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef):
            yield from _inside(child)


def _is_constant(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id.strip("_").isupper()


def test_statements_are_made_of_constants_but_for_those_that_were_looked_at() -> None:
    found = {where if where in REVIEWED else function for where, function in built()}
    assert found - REVIEWED.keys() == set(), "bind it, or look at it and say why it is safe"
    assert REVIEWED.keys() - found == set(), "it is not there any more"


HOSTILE = (
    "'; DROP TABLE events; --",
    '"; DELETE FROM events; --',
    "%s %(name)s ? ?1 :name $1 {condition} {number}",
    "\\'; SELECT pg_sleep(9); --",
    "%_|*?[a-z]\\",
    "x' OR '1'='1",
)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    with closing(new_store(request, tmp_path)) as store:
        yield store


@for_each("text", HOSTILE)
def test_hostile_names_and_texts_are_names_and_texts(store: EventStore, text: str) -> None:
    name, copy = TimelineId(text), TimelineId(f"copy of {text}")
    assert store.append(name, [prompt(text)], expected_version=0) == 1
    assert store.fork(name, copy, forked(name, 1), at=1) == 2
    assert (store.head(name), store.load_window(name).version) == (1, 1)
    assert store.read(name)[0][1].id == text
    assert {hit.timeline for hit in store.search(text)} <= {name, copy}
    me, artifacts = Requester(text, tenant=text), store.artifacts()
    about = ArtifactDescription(timeline=name, tenant=text, path=text, about=text)
    artifact = artifacts.put(text.encode(), about)
    assert artifacts.read(artifact, me) == text.encode()
    assert [each.id for each in artifacts.list(me, name)] == [artifact]
    assert [info.id for info in store.list()].count(name) == 1
    assert {name, copy} <= {info.id for info in store.list()}
    assert verify(store).ok
