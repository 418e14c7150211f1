"""What `docs/architecture.md` says of the rooms is true: whoever adds a thing touches these files, no others."""

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_args

import attrs
import click
import pytest

from blocks.formats._formats import _READERS, SHAPES
from blocks.formats._message import Format
from persistence import EventStore
from persistence._open import SCHEMES
from persistence.sessions._read import FORMATS
from render import PROVIDERS, Rendered
from render.compaction._ladder_steps import RUNGS
from render.policy._policy import RungName
from tests._practice import CLIENTS
from tests._table import for_each
from tests.timeline.integrations._frameworks import FRAMEWORKS, suite_of
from timeline import Hooks, known_models
from timeline._apis import APIS
from timeline.cli._main import COMMANDS
from timeline.fake_provider.wires import WIRES

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## To add one of these", 1)[1].split("\n## ", 1)[0]
VENDORS = {path.parent.name for path in (ROOT / "render/providers").glob("*/__init__.py")}
ROWS = dict(re.findall(r"^\| (?:an?) ([a-z ]+) \| (.*) \|$", TABLE, re.MULTILINE))


def touched(thing: str) -> set[str]:
    """The paths in the row of a thing."""
    return set(re.findall(r"`((?:blocks|render|persistence|timeline)/[\w/.]*)`", ROWS[thing]))


def naming(text: str, *folders: str) -> set[str]:
    """The product's files, outside of these folders, whose text contains another."""
    return {name for name in _files() if not name.startswith(folders) and text in _read(name)}


def _files() -> Iterator[str]:
    for package in ("blocks", "render", "persistence", "timeline"):
        yield from (path.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py"))


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@for_each("thing", ROWS)
def test_every_path_of_a_row_is_there(thing: str) -> None:
    assert touched(thing)
    missing = [path for path in touched(thing) if not (ROOT / path).exists()]
    assert missing == [], f"correct these paths in the row of {thing} in docs/architecture.md"


def test_every_path_of_the_page_is_there() -> None:
    """In the tables and in the text."""
    named = set(re.findall(r"`((?:blocks|render|persistence|timeline|tests)/[\w/.]*)`", PAGE))
    missing = sorted(path for path in named if not (ROOT / path).exists())
    assert missing == [], "correct these paths in docs/architecture.md"


def test_every_file_of_the_drawings_is_there() -> None:
    """The modules that `One render` and `One compaction` name, below `render` or `timeline`."""
    drawings = "".join(re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))
    named = set(re.findall(r"(?:stages|view|compaction|summary)/_[a-z_]+", drawings))
    missing = sorted(name for name in named if not (ROOT / f"render/{name}.py").exists())
    assert missing == [], "correct these names in the drawings of docs/architecture.md"


def test_a_provider_is_named_in_its_folder_in_the_table_and_by_its_models() -> None:
    table = "render/providers/__init__.py"
    named = naming("render.providers.anthropic", "render/providers/anthropic/")
    assert named == {table, "render/__init__.py"}
    without = VENDORS - {name.partition(".")[0] for name in PROVIDERS}
    assert without == set(), f"add its row to _ROWS in {table}"
    for name in VENDORS - {"anthropic"}:
        assert naming(f"render.providers.{name}", f"render/providers/{name}/") == {table}
    assert {model.provider for model in known_models()} <= set(PROVIDERS)


def test_a_provider_is_in_the_contracts() -> None:
    """Three hold its folder: nobody else names it, it names no other, and its encoder and its rules do not meet."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    for vendor in VENDORS:
        folder = f"render.providers.{vendor}"
        where = f"{folder} to the contracts about providers in pyproject.toml"
        assert any(folder in each.get("protected_modules", ()) for each in contracts), (
            f"add {where}"
        )
        apart = [each["modules"] for each in contracts if each["type"] == "independence"]
        assert any(folder in modules for modules in apart), f"add {where}"
        inside = {name for modules in apart for name in modules if name.startswith(f"{folder}._")}
        assert any("_rules" in name for name in inside), f"add encoder and rules of {where}"


def test_a_store_is_named_in_its_folder_and_in_the_table() -> None:
    """And where names load late, and by its artifacts, which lie in the same file."""
    named = naming("persistence.duckdb", "persistence/duckdb/")
    assert named == {
        "persistence/_open.py",
        "persistence/__init__.py",
        "persistence/artifacts/_duckdb.py",
    }
    for name in ("sqlite", "postgres"):
        named = naming(f"persistence.{name}", f"persistence/{name}/")
        assert named == {"persistence/_open.py", "persistence/__init__.py"}
    assert {"duckdb://", "sqlite://", "postgresql://"} < set(SCHEMES)
    assert naming("DuckDBStore)", "persistence/duckdb/") == set(), "nobody asks which store it is"
    assert EventStore.__module__ == "persistence._store"


def test_an_importer_is_named_in_the_table_alone() -> None:
    for name in ("pi", "codex", "claude-code"):
        assert name in FORMATS
    for module in ("_pi", "_codex", "_claude_code"):
        folder = "persistence.sessions."
        assert naming(f"{folder}{module} ") <= {"persistence/sessions/_read.py"}


def test_an_importer_is_a_module_and_a_row() -> None:
    table = _read("persistence/sessions/_read.py")
    modules = {name for name in naming(" = Importer(") if name.startswith("persistence/sessions/")}
    without = {name for name in modules if f".{Path(name).stem} import " not in table}
    assert without == set(), "add its importer to the table in persistence/sessions/_read.py"


def test_a_rung_is_a_row_and_a_name() -> None:
    names = set(get_args(RungName))
    assert names - set(RUNGS) == set(), (
        "add its function and row to render/compaction/_ladder_steps.py"
    )
    assert set(RUNGS) - names == set(), "add its name to RungName in render/policy/_policy.py"


def test_a_rung_is_in_the_table_of_the_documentation() -> None:
    page = (ROOT / "docs/ladder.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^ \d+  ([a-z]+) ", page, re.MULTILINE))
    assert set(RUNGS) - rows == set(), "add its line to the first drawing of docs/ladder.md"


def test_a_format_is_a_name_and_a_reader() -> None:
    names, folder = set(get_args(Format)), "blocks/formats"
    assert names - set(_READERS) == set(), f"add its row to _READERS in {folder}/_formats.py"
    assert set(_READERS) - names == set(), f"add its name to Format in {folder}/_message.py"


@pytest.mark.parametrize("wire", PROVIDERS)
def test_a_wire_is_in_every_table(wire: str) -> None:
    """In the order of `docs/providers.md#add-a-wire`."""
    method = wire.replace(".", "_")
    assert wire in get_args(Format), "add it to Format in blocks/formats/_message.py"
    assert wire in SHAPES, "add its Shape to its row in _READERS in blocks/formats/_formats.py"
    assert hasattr(Rendered, method), f"add {method}() to Rendered in render/_pipeline.py"
    assert wire in APIS, "add its client to APIS in timeline/_apis.py"
    wires = {each.provider for each in WIRES}
    assert wire in wires, "add it to WIRES in timeline/fake_provider/wires/__init__.py"
    assert wire in CLIENTS, "add its client for tests to CLIENTS in tests/_practice.py"


def test_a_block_kind_is_known_where_the_row_says() -> None:
    """A plan, for one: it is shown in another place than what else its author says."""
    for name in touched("block kind"):
        assert re.search(r"\bPlan\b", _read(name)), name


def test_a_command_is_a_function_and_a_row() -> None:
    """The row names the file of its group."""
    files = {module for module, _ in COMMANDS.values()}
    made = {
        each.name
        for module in files
        for each in vars(import_module(f"timeline.cli.{module}")).values()
        if isinstance(each, click.Command) and not isinstance(each, click.Group)
    }
    assert made - set(COMMANDS) == set(), "add its row to COMMANDS in timeline/cli/_main.py"
    assert set(COMMANDS) - made == set(), "add its function to the file of its group"


def test_an_adapter_is_a_module_an_extra_a_suite_and_a_page() -> None:
    modules = {path.stem for path in (ROOT / "timeline/integrations").glob("[!_]*.py")}
    assert modules
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    index = (ROOT / "docs/integrations.md").read_text(encoding="utf-8")
    for name in sorted(FRAMEWORKS):
        if name.replace("-", "_") in modules:
            modules.remove(name.replace("-", "_"))
            assert name in project["optional-dependencies"]
            assert (ROOT / "tests/timeline/integrations" / suite_of(name)).exists()
            assert f"(integrations/{name}.md)" in index
    assert modules == set(), "no row in tests/timeline/integrations/_frameworks.py"


def test_a_hook_is_a_field_and_a_call() -> None:
    names = [field.name for field in attrs.fields(Hooks)]
    assert names
    for name in names:
        assert f"hooks.{name}" in _read("timeline/engine/_compaction.py")
