"""The public names: `__all__` of each package. Adding one is a decision, and the budget only goes down."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests._table import for_each

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "blocks",
    "render",
    "persistence",
    "persistence.sessions",
    "persistence.testing",
    "timeline",
    "timeline.react",
    "timeline.tokens",
    "timeline.replay",
    "timeline.report",
    "timeline.gateway",
    "timeline.fake_provider",
)
"""The packages with public names. A name that two of them offer is one name."""
ROOMS = ("blocks.formats", "timeline.billing")
"""Packages that other rooms import, and users do not."""
NAMES_MAX = 150
HOUSE = "# For the rooms of this house; not public.\n"
EXPORTS: dict[str, list[str]] = {
    package: importlib.import_module(package).__all__ for package in PACKAGES
}
OURS = {"blocks", "persistence", "render", "timeline"}
FENCED = re.compile(r"^```(?:py|python)\b.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_there_are_no_more_public_names_than_the_budget_has() -> None:
    names = {name for exported in EXPORTS.values() for name in exported}
    assert len(names) <= NAMES_MAX


@for_each("package", PACKAGES)
def test_a_star_gives_the_public_names(package: str) -> None:
    given: dict[str, object] = {}
    exec(f"from {package} import *", given)  # noqa: S102 -- no other way to say it
    del given["__builtins__"]
    assert list(given) == EXPORTS[package]
    assert set(given) <= set(dir(importlib.import_module(package)))


def test_a_public_name_is_one_thing_wherever_it_is_imported_from() -> None:
    things: dict[str, object] = {}
    for package, names in EXPORTS.items():
        for name in names:
            thing = getattr(importlib.import_module(package), name)
            assert things.setdefault(name, thing) is thing, name


def source(package: str) -> str:
    return (ROOT / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")


def house_names(package: str) -> set[str]:
    """What a package re-exports for other rooms: `import x as x`."""
    aliases = (
        alias
        for node in ast.walk(ast.parse(source(package)))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )
    return {alias.name for alias in aliases if alias.asname == alias.name}


@for_each("package", [*PACKAGES, *ROOMS])
def test_what_the_house_imports_stands_below_its_line_and_is_not_public(package: str) -> None:
    house = house_names(package)
    assert house.isdisjoint(EXPORTS.get(package, []))
    above, line, _ = source(package).partition(HOUSE)
    assert bool(line) == bool(house)
    assert not re.findall(r" import (\w+) as \1\b", above)


def imports(text: str) -> Iterator[tuple[str, str]]:
    """The names that a source imports from our packages, each with its package."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            yield from ((node.module or "", alias.name) for alias in node.names)
        if isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names if name.name.split(".")[0] in OURS)


def test_what_a_package_offers_the_house_is_used_outside_of_it() -> None:
    used = {
        (package, name)
        for folder in (*OURS, "benchmarks", "docs", "tests")
        for path in (ROOT / folder).rglob("*.py")
        for package, name in imports(path.read_text(encoding="utf-8"))
        if package not in PACKAGES + ROOMS
        or path != ROOT / package.replace(".", "/") / "__init__.py"
    }
    for package in (*PACKAGES, *ROOMS):
        unused = {name for name in house_names(package) if (package, name) not in used}
        assert not unused, package


def shown_to_users() -> Iterator[tuple[str, str]]:
    """The code of the documentation, of the examples and of the adapters, with its page or file."""
    pages = {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")}
    pages.remove(ROOT / "docs/how-to/own-importer.md")  # an importer is a room of the house
    for page in sorted(pages):
        for fenced in FENCED.findall(page.read_text(encoding="utf-8")):
            yield page.name, fenced
    for folder in ("docs/examples", "timeline/integrations"):
        for path in sorted((ROOT / folder).glob("[!_]*.py")):
            yield path.name, path.read_text(encoding="utf-8")


def test_documentation_examples_and_adapters_import_public_names_only(
    subtests: pytest.Subtests,
) -> None:
    for where, text in shown_to_users():
        try:
            found = set(imports(text))
        except SyntaxError:  # a signature
            continue
        for package, name in found:
            with subtests.test(where=where, package=package, name=name):
                public = name in EXPORTS.get(package, ()) or (not name and package in PACKAGES)
                assert public or package.startswith("timeline.integrations")
