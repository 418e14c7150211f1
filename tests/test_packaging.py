"""What is handed out: links that lead somewhere from an index page, and everything that a build and its tests need."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from blocks import install_command
from tests._table import for_each

ROOT = Path(__file__).parent.parent
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = SETTINGS["project"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture
def index_page() -> str:
    """README.md as the package index is given it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for rule in SETTINGS["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"][
        "substitutions"
    ]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


def test_every_link_of_the_index_page_is_absolute_and_to_a_file_of_the_repository(
    index_page: str,
) -> None:
    repository = PROJECT["urls"]["Repository"]
    links = LINK.findall(index_page)
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://"), link
        if link.startswith(repository):
            place, _, file = link.removeprefix(repository).partition("/main/")
            assert place in {"/blob", "/raw"}, link
            assert (ROOT / file.partition("#")[0]).exists(), link


def test_pictures_of_the_index_page_are_asked_for_as_they_are(index_page: str) -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", index_page)
    assert pictures
    assert all("/raw/main/" in picture for picture in pictures)


def test_all_urls_are_those_of_one_repository() -> None:
    repository = PROJECT["urls"]["Repository"]
    assert all(url.startswith(repository) for url in PROJECT["urls"].values())


def test_the_source_distribution_has_every_package_and_page_and_what_make_needs() -> None:
    target = SETTINGS["tool"]["hatch"]["build"]["targets"]["sdist"]
    held = {ROOT / name.strip("/") for name in target["include"]}
    assert all(path.exists() for path in held)
    packages = {path.parent for path in ROOT.glob("*/__init__.py")}
    assert held >= packages | set(ROOT.glob("*.md")) | {ROOT / "Makefile", ROOT / "ruff.toml"}


def test_what_is_required_is_what_is_said_to_be_supported() -> None:
    prefix = "Programming Language :: Python :: 3."
    minors = [int(name.removeprefix(prefix)) for name in PROJECT["classifiers"] if prefix in name]
    assert PROJECT["requires-python"] == f">=3.{min(minors)}"
    assert minors == list(range(min(minors), max(minors) + 1))


@for_each("extra", PROJECT["optional-dependencies"])
def test_what_an_error_says_to_install_is_what_the_extra_declares(extra: str) -> None:
    """By name, so that it is true whether foldline came from an index, a wheel or a checkout."""
    pip, install, *packages = shlex.split(install_command(extra))
    assert (pip, install) == ("pip", "install")
    named = [re.split(r"[^\w.-]", package)[0] for package in packages]
    declared = PROJECT["optional-dependencies"][extra]
    assert sorted(named) == sorted(re.split(r"[^\w.-]", line)[0] for line in declared)
