"""What public docstrings of blocks, render and persistence say is raised, is raised."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

import blocks
import render
from blocks import BlockId, TimelineId, TurnId
from persistence import (
    ArtifactDescription,
    DuckDBStore,
    EventStore,
    Keys,
    MemoryStore,
    PostgresStore,
    Requester,
    Rest,
    SQLiteStore,
    block_at,
    checked_place,
    locate_store,
    look,
    open_artifacts,
    open_store,
    quality_rows,
    repair,
    source_at,
    verify,
)
from persistence.sessions import export_lines, exported_events, read_session
from render import (
    PROVIDERS,
    CompactionDraft,
    Model,
    Policy,
    provider_of,
    show,
)
from tests import _builders as make
from tests._table import for_each
from tests.render.providers.plain import plain_text

T = TimelineId("t")
NO_DATA: Any = make.note(print)  # type: ignore[arg-type]  # no data, on purpose
NO_FORMAT: Any = "none"
NO_EVENT = make.appended(NO_DATA)
EVENT = make.appended(make.note("n"))
CLAUDE = PROVIDERS["anthropic"]
VIEW = make.view_of(make.prompt("Go."))
REFUSED = make.context(provider=plain_text(), system=({"text": "rule:"},), validate=True)
ME = Requester("me")
KEPT = ArtifactDescription(timeline=T)
SECRET = ArtifactDescription(timeline=T, sensitivity="confidential")

Call = Callable[[Path], object]


def closed() -> EventStore:
    store = MemoryStore()
    store.append(T, [EVENT], expected_version=0)
    store.close()
    return store


def new_id() -> BlockId:
    return BlockId("b")


def taken(folder: Path) -> Path:
    """The path of a store that is open, for as long as the test runs."""
    OPEN.append(DuckDBStore(folder / "taken.duckdb"))
    return folder / "taken.duckdb"


OPEN: list[DuckDBStore] = []


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def lost(folder: Path) -> Path:
    """The path of a store whose file lost what was acknowledged."""
    path = folder / "lost.duckdb"
    with DuckDBStore(path) as store:
        store.append(T, [EVENT], expected_version=0)
    path.unlink()
    with DuckDBStore(folder / "empty.duckdb"):
        pass
    (folder / "empty.duckdb").rename(path)
    return path


def scratched(folder: Path) -> Path:
    """An SQLite file whose first page says nothing any more but what it is."""
    path = folder / "scratched.sqlite"
    SQLiteStore(path).close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * 3000 + content[3100:])
    return path


def later(folder: Path) -> Path:
    path = folder / "later.sqlite"
    with SQLiteStore(path) as store, store._database.writing() as connection:
        connection.run("UPDATE foldline SET format = 9")
    return path


def a_file(folder: Path) -> Path:
    path = folder / "file"
    path.write_text("no store")
    return path


def too_long(folder: Path) -> Path:
    return folder / ("x" * 300 + ".duckdb")


def looked_at(where: "Path | str") -> None:
    with look(where):
        pass


def memory() -> MemoryStore:
    store = MemoryStore()
    store.append(T, [EVENT], expected_version=0)
    return store


def gapped(folder: Path) -> DuckDBStore:
    """A store, open for as long as the test runs, in which an event is missing."""
    with DuckDBStore(folder / "gap.duckdb") as store:
        store.append(T, [EVENT, EVENT], expected_version=0)
    with duckdb.connect(str(folder / "gap.duckdb")) as connection:
        connection.execute("DELETE FROM events WHERE seq = 1")
    OPEN.append(DuckDBStore(folder / "gap.duckdb"))
    return OPEN[-1]


def empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def broken(folder: Path) -> Path:
    """The path of a store whose file cannot be opened."""
    path = folder / "broken.duckdb"
    DuckDBStore(path).close()
    with path.open("r+b") as file:
        file.seek(20_000)
        file.write(b"\xff" * 300)
    return path


def another() -> MemoryStore:
    """A store with another timeline of the same name."""
    store = MemoryStore()
    store.append(T, [make.appended(make.note("other"))], expected_version=0)
    return store


RAISES: Mapping[str, Mapping[str, Call]] = {
    "canonical_block": {"CodecError": lambda _: blocks.canonical_block(NO_DATA)},
    "clean_json": {"CodecError": lambda _: blocks.clean_json({"n": 10**5_000})},
    "decode_content": {"CodecError": lambda _: blocks.decode_content(b"text")},
    "decode_event": {"CodecError": lambda _: blocks.decode_event(b"[]")},
    "encode_block": {"CodecError": lambda _: blocks.encode_block(NO_DATA)},
    "encode_event": {"CodecError": lambda _: blocks.encode_event(NO_EVENT)},
    "stored_form": {"CodecError": lambda _: blocks.stored_form(NO_EVENT)},
    "CompactionDraft.from_json": {"DataError": lambda _: CompactionDraft.from_json(b"{}")},
    "Model": {"ArgumentError": lambda _: Model(nam="x")},  # type: ignore[call-arg]  # wrong on purpose
    "Policy": {"ArgumentError": lambda _: Policy(trigger_ratio=2.0)},
    "ToolPolicy": {"ArgumentError": lambda _: Policy(tools={"bash": {"durability": "x"}})},
    "Provider.read": {
        "MisuseError": lambda _: CLAUDE.read(5, new_id, TurnId("t")),
        "CodecError": lambda _: CLAUDE.read(
            {"content": [{"type": "thinking", "thinking": "t", "signature": "s", "n": 10**5_000}]},
            new_id,
            TurnId("t"),
        ),
    },
    "Provider.stop": {"MisuseError": lambda _: CLAUDE.stop(5)},
    "Provider.usage": {"MisuseError": lambda _: CLAUDE.usage(5)},
    "Rendered.anthropic": {
        "MisuseError": lambda _: make.shown(make.view_of(make.prompt("go"))).anthropic(
            max_tokens=-1
        )
    },
    "Rendered.openai_responses": {
        "MisuseError": lambda _: make.shown(make.view_of(make.prompt("go"))).openai_responses()
    },
    "Rendered.gemini": {
        "MisuseError": lambda _: make.shown(make.view_of(make.prompt("go"))).gemini()
    },
    "Rendered.openai_chat": {
        "MisuseError": lambda _: make.shown(make.view_of(make.prompt("go"))).openai_chat()
    },
    "show": {"InvalidRequestError": lambda _: show(VIEW, REFUSED)},
    "provider_of": {"MisuseError": lambda _: provider_of(Model(name="x", provider="y"))},
    "ArtifactStore": {"ClosedError": lambda _: closed().artifacts()},
    "ArtifactStore.put": {"MisuseError": lambda _: memory().artifacts().put(b"x", SECRET)},
    "ArtifactStore.put_stream": {
        "MisuseError": lambda _: memory().artifacts().put_stream([b"x"], SECRET)
    },
    "ArtifactStore.read": {
        "AccessRefusedError": lambda _: memory().artifacts().read("none", ME),
        "MisuseError": lambda _: memory().artifacts().read("none", ME, start=-1),
    },
    "ArtifactStore.describe": {
        "AccessRefusedError": lambda _: memory().artifacts().describe("none", ME)
    },
    "DuckDBStore": {
        "StoreLockedError": lambda folder: DuckDBStore(taken(folder)),
        "DamagedStoreError": lambda folder: DuckDBStore(lost(folder)),
        "MisuseError": lambda folder: DuckDBStore(a_file(folder)),
    },
    "SQLiteStore": {
        "DamagedStoreError": lambda folder: SQLiteStore(scratched(folder)),
        "MisuseError": lambda folder: SQLiteStore(a_file(folder)),
        "StoreError": lambda folder: SQLiteStore(later(folder)),
    },
    "PostgresStore": {
        "MisuseError": lambda _: PostgresStore("postgresql://me@host:port/db"),
        "StoreError": lambda folder: PostgresStore(f"postgresql://me@/db?host={folder}"),
    },
    "EventStore": {"ClosedError": lambda _: closed().head(T)},
    "EventStore.append": {
        "TooLargeError": lambda _: memory().append(T, [EVENT] * 200_001, expected_version=1),
        "VersionConflictError": lambda _: memory().append(T, [EVENT, EVENT], expected_version=9),
        "MisuseError": lambda _: memory().append(TimelineId(""), [EVENT], expected_version=0),
        "CodecError": lambda _: memory().append(T, [NO_EVENT], expected_version=1),
    },
    "EventStore.read": {"MisuseError": lambda _: memory().read(T, limit=0)},
    "EventStore.read_bytes": {"MisuseError": lambda _: memory().read_bytes(T, limit=0)},
    "EventStore.fork": {
        "UnknownTimelineError": lambda _: memory().fork(TimelineId("u"), T, EVENT, at=1),
        "MisuseError": lambda _: memory().fork(T, TimelineId("u"), EVENT, at=2),
        "TimelineExistsError": lambda _: memory().fork(T, T, EVENT, at=1),
    },
    "Keys": {"MisuseError": lambda _: Keys({"k": b"short"}, current="k")},
    "Requester": {
        "ArgumentError": lambda _: Requester(""),
        "MisuseError": lambda _: Requester("me", permissions="read"),
    },
    "StoreLocation.open": {
        "StoreError": lambda folder: locate_store(taken(folder)).open(),
        "DamagedStoreError": lambda folder: locate_store(lost(folder)).open(),
        "MisuseError": lambda folder: locate_store(folder).open(),
    },
    "StoreLocation.readable_copy": {
        "StoreLockedError": lambda folder: locate_store(taken(folder)).readable_copy(folder / "x"),
        "DamagedStoreError": lambda folder: locate_store(broken(folder)).readable_copy(
            empty(folder)
        ),
    },
    "StoreLocation.moment": {
        "StoreLockedError": lambda folder: locate_store(taken(folder)).moment(folder / "x"),
        "StoreError": lambda folder: locate_store(folder / "none.duckdb").moment(folder / "x"),
    },
    "StoreLocation.verify": {
        "StoreLockedError": lambda folder: locate_store(taken(folder)).verify(),
        "MisuseError": lambda folder: locate_store(folder / "none").verify(),
    },
    "block_at": {"ClosedError": lambda _: block_at(closed(), T, "ar:t.react.note")},
    "EventStore.append_bytes": {
        "CodecError": lambda _: memory().append_bytes(T, [b"[]"], expected_version=1)
    },
    "Rest.refuse_forgotten": {"ForgottenError": lambda _: Rest(forgotten=1).refuse_forgotten(T, 1)},
    "EventStore.trim": {
        "UnknownTimelineError": lambda _: memory().trim(TimelineId("u"), 1),
        "MisuseError": lambda _: memory().trim(T, 2),
    },
    "EventStore.rewrite": {
        "UnknownTimelineError": lambda _: memory().rewrite(TimelineId("u"), {}),
        "MisuseError": lambda _: memory().rewrite(T, {9: EVENT}),
    },
    "EventStore.checked_events": {
        "TooLargeError": lambda _: EventStore.checked_events(T, [EVENT] * 200_001, 0),
        "MisuseError": lambda _: EventStore.checked_events(T, [], 0),
        "CodecError": lambda _: EventStore.checked_events(T, [NO_EVENT], 0),
    },
    "EventStore.checked_page": {"MisuseError": lambda _: EventStore.checked_page(-1, 1)},
    "EventStore.remove": {"UnknownTimelineError": lambda _: memory().remove(TimelineId("u"))},
    "checked_place": {"MisuseError": lambda folder: checked_place(folder / "none")},
    "locate_store": {"MisuseError": lambda _: locate_store("ftp://x")},
    "open_artifacts": {
        "MisuseError": lambda _: open_artifacts("zz://x"),
        "StoreError": lambda folder: open_artifacts(a_file(folder)),
    },
    "look": {
        "MisuseError": lambda _: looked_at(""),
        "StoreLockedError": lambda folder: looked_at(taken(folder)),
        "DamagedStoreError": lambda folder: looked_at(lost(folder)),
        "StoreError": lambda folder: looked_at(too_long(folder)),
    },
    "open_store": {
        "MisuseError": lambda _: open_store(""),
        "StoreLockedError": lambda folder: open_store(taken(folder)),
        "DamagedStoreError": lambda folder: open_store(lost(folder)),
        "StoreError": lambda folder: open_store(too_long(folder)),
    },
    "quality_rows": {"CodecError": lambda _: quality_rows([(1, NO_EVENT)])},
    "EventStore.search": {
        "MisuseError": lambda _: memory().search("x" * 100_000),
        "ClosedError": lambda _: closed().search("x"),
    },
    "verify": {
        "StoreLockedError": lambda folder: verify(taken(folder)),
        "MisuseError": lambda folder: verify(folder / "none.duckdb"),
        "ClosedError": lambda _: verify(closed()),
    },
    "EventStore.copy_to": {
        "UnknownTimelineError": lambda _: memory().copy_to(MemoryStore(), ["u"]),
        "MisuseError": lambda _: memory().copy_to(another()),
        "ClosedError": lambda _: memory().copy_to(closed()),
        "DamagedStoreError": lambda folder: gapped(folder).copy_to(MemoryStore()),
    },
    "exported_events": {
        "SessionFormatError": lambda folder: exported_events(str(folder / "none")),
        "MisuseError": lambda folder: exported_events(str(folder / "none"), 0),
    },
    "export_lines": {"CodecError": lambda _: list(export_lines(T, [(1, NO_EVENT)]))},
    "repair": {
        "MisuseError": lambda folder: repair(folder / "none", folder / "new"),
        "StoreLockedError": lambda folder: repair(taken(folder), folder / "new"),
        "DamagedStoreError": lambda folder: repair(broken(folder), folder / "new"),
        "StoreError": lambda folder: repair(lost(folder), too_long(folder)),
    },
    "parts_from": {
        "ArgumentError": lambda _: blocks.parts_from("x", NO_FORMAT),
        "CodecError": lambda _: blocks.parts_from([{"type": "x", "value": 10**5000}], "anthropic"),
    },
    "source_at": {"ClosedError": lambda _: source_at(closed(), T, "m1")},
    "read_session": {
        "SessionFormatError": lambda folder: read_session(folder / "none"),
        "MisuseError": lambda folder: read_session(folder / "none", format="none"),
    },
}
ELSEWHERE = {
    ("ArtifactStore.read", "DamagedStoreError"): "tests/persistence/artifacts",
    ("parse_answer", "RejectedAnswerError"): "tests/render/compaction/test_prompt.py",
    ("draft_compaction", "RungError"): "tests/render/compaction",
    ("EventStore.search", "DamagedStoreError"): "tests/timeline/engine/test_retention.py",
    ("EventStore.trim", "StoreError"): "tests/persistence/test_archive.py",
    ("EventStore.rewrite", "ForgottenError"): "persistence/testing/_retention.py",
    ("EventStore.artifacts", "MisuseError"): "tests/persistence/test_store.py",
    ("EventStore.remove", "MisuseError"): "tests/persistence/test_store.py",
    ("EventStore.erase", "StoreError"): "tests/persistence/duckdb/test_retention.py",
    ("block_at", "ForgottenError"): "persistence/testing/_retention.py",
    ("checked_place", "StoreError"): "tests/persistence/artifacts/test_s3.py",
    ("EventStore.checked_fork", "UnknownTimelineError"): "as `EventStore.fork`",
    ("EventStore.checked_fork", "MisuseError"): "as `EventStore.fork`",
    ("EventStore.checked_fork", "TimelineExistsError"): "as `EventStore.fork`",
}
SHOWN = [(name, error) for name, calls in RAISES.items() for error in calls]


def said() -> Iterator[tuple[str, str]]:
    """Every public name of the three packages, and an error that its docstring speaks of."""
    for package in ("blocks", "render", "persistence", "persistence.sessions"):
        module = importlib.import_module(package)
        for name in (name for name in dir(module) if not name.startswith("_")):
            found = getattr(module, name)
            members = vars(found).items() if inspect.isclass(found) else ()
            functions = [(f"{name}.{k}", getattr(found, k)) for k, _ in members if k[0] != "_"]
            for place, one in ((name, found), *functions):
                if inspect.isclass(one) or inspect.isroutine(one):
                    doc = inspect.cleandoc(one.__doc__ or "")  # what it inherits is shown there
                    for error in _errors(doc):
                        yield place, error
        for field, doc in _functions_of(render.Provider):
            for error in _errors(doc):
                yield f"Provider.{field}", error


def _functions_of(table: type) -> Iterator[tuple[str, str]]:
    """The fields of a table of functions, each with the text below it."""
    [found] = ast.parse(inspect.getsource(table)).body
    assert isinstance(found, ast.ClassDef)
    for field, text in pairwise(found.body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            yield ast.unparse(field.target), inspect.cleandoc(ast.literal_eval(text.value))


def _errors(doc: str) -> list[str]:
    return re.findall(r"^    (\w+Error):", doc.partition("Raises")[2], re.MULTILINE)


def test_all_that_docstrings_speak_of_is_shown_here() -> None:
    shown = {*SHOWN, *ELSEWHERE}
    assert set(said()) - shown == set(), (
        "show a call that raises it in RAISES of tests/test_raises.py"
    )
    assert shown - set(said()) == set(), (
        "no docstring speaks of it: take it out of tests/test_raises.py"
    )


@for_each(("name", "error"), SHOWN)
def test_a_call_raises_what_its_docstring_says(name: str, error: str, tmp_path: Path) -> None:
    kind = getattr(blocks, error)
    folder = tmp_path / f"{name}-{error}"
    folder.mkdir()
    with pytest.raises(kind) as raised:
        RAISES[name][error](folder)
    assert type(raised.value) is kind or error in {"MisuseError", "StoreError"}
    assert str(raised.value)
