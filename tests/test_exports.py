"""The public names: `__all__` of each package. Adding one is a decision, and the budget only goes down."""

import ast
import importlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blocks import later
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
ROOMS = ("blocks.formats", "timeline.billing", "timeline.engine")
"""Packages that other rooms import, and users do not."""
APPLICATIONS = (
    *("_serving", "billing", "cli", "fake_provider", "gateway", "integrations", "replay", "report"),
)
"""What is built on a timeline, as a user could build it: rooms of `timeline` that could be distributions of their own. The
agent is none, since a timeline offers it, and its loop is a flow as the operations are."""
LIBRARY_NAMES_MAX, APPLICATION_NAMES_MAX = 124, 16
"""What a user of the library may need to know, and what the applications add to it."""
OFFERED_MAX = 129
"""Names of the library that applications import and that are not public: few of them are a user's word, and public names
could never change again. The way down is to move what only applications need into one of them."""
HOUSE = "# For the rooms of this house; not public.\n"
EXPORTS: dict[str, list[str]] = {
    package: importlib.import_module(package).__all__ for package in PACKAGES
}
OURS = {"blocks", "persistence", "render", "timeline"}
FENCED = re.compile(r"^```(?:py|python)\b.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def is_of_an_application(package: str) -> bool:
    return package.startswith(tuple(f"timeline.{name}" for name in APPLICATIONS))


def test_there_are_no_more_public_names_than_the_budget_has() -> None:
    library, applications = set[str](), set[str]()
    for package, names in EXPORTS.items():
        (applications if is_of_an_application(package) else library).update(names)
    assert len(library) <= LIBRARY_NAMES_MAX
    assert len(applications - library) <= APPLICATION_NAMES_MAX


@for_each("package", PACKAGES)
def test_a_star_gives_the_public_names(package: str) -> None:
    given: dict[str, object] = {}
    exec(f"from {package} import *", given)  # noqa: S102 -- no other way to say it
    del given["__builtins__"]
    assert list(given) == EXPORTS[package]
    assert set(given) <= set(dir(importlib.import_module(package)))


def test_names_that_load_late_are_there_and_others_are_not() -> None:
    module: dict[str, Any] = {"__name__": "them", "own": 1}
    load, names = later(module, {"fractions": "Fraction", "textwrap": "indent dedent"})
    assert names() == ["Fraction", "__name__", "dedent", "indent", "own"]
    assert load("dedent") is textwrap.dedent is module["dedent"], "from then on without asking"
    with pytest.raises(AttributeError, match="module 'them' has no attribute 'nothing'"):
        load("nothing")


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
    """The names that a source takes from our packages, each with its package: `from package import name`, or, of what
    `import package` loads only when it is used, `package.name`."""
    nodes = [*ast.walk(ast.parse(text))]
    whole = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names} & OURS
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            yield from ((node.module or "", alias.name) for alias in node.names)
        if isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names if name.name.split(".")[0] in OURS)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from ((node.value.id, node.attr) for _ in {node.value.id} & whole)


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


def foreign_imports(application: str) -> Iterator[tuple[Path, str, str]]:
    """The imports of an application from other rooms: the file, the package and the name."""
    home = ROOT / "timeline" / application
    for path in home.rglob("*.py") if home.is_dir() else [home.with_suffix(".py")]:
        for package, name in imports(path.read_text(encoding="utf-8")):
            if not package.startswith(f"timeline.{application}"):
                yield path.relative_to(ROOT), package, name


@pytest.mark.parametrize("application", APPLICATIONS)
def test_an_application_imports_rooms_and_not_what_is_inside_them(application: str) -> None:
    """It takes what a package offers. A module of `timeline` itself, such as `_models`, is a room of one file."""
    assert [
        f"{path}: {package} import {name}"
        for path, package, name in foreign_imports(application)
        if "._" in package.removeprefix("timeline._")
    ] == []


def test_applications_import_no_more_names_that_are_not_public_than_the_budget_has() -> None:
    offered = {
        (package, name)
        for application in APPLICATIONS
        for _, package, name in foreign_imports(application)
        if name not in EXPORTS.get(package, ()) and not is_of_an_application(package)
    }
    assert len(offered) <= OFFERED_MAX


def shown_to_users() -> Iterator[tuple[str, str]]:
    """The code of the documentation and of the examples, with its page or file."""
    pages = {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")}
    pages.remove(ROOT / "docs/how-to/own-importer.md")  # an importer is a room of the house
    for page in sorted(pages):
        for fenced in FENCED.findall(page.read_text(encoding="utf-8")):
            yield page.name, fenced
    for path in sorted((ROOT / "docs/examples").glob("*.py")):
        yield path.name, path.read_text(encoding="utf-8")


def test_documentation_and_examples_import_public_names_only(
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
