"""The docs are true: what they show runs, what they link to is there, what is generated is current."""

import ast
import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from blocks import MisuseError
from tests._table import for_each
from timeline import Policy
from timeline.cli import main

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs" / "examples"
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
    if EXAMPLES not in path.parents
}
PLOTS = {"stores.svg"}
"""Drawn by a library, which gives them no title; the pages do."""
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\((?P<target>[^)\s]+)\)")
DEFAULT = re.compile(r"`(\w+)` \((\d[\d.]*)\)")
HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


class Shown(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int


def shown_in(page: Path) -> Iterator[Shown]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield Shown(match["language"], match["text"], text.count("\n", 0, match.start()) + 2)


def script(name: str) -> ModuleType:
    """A script of the docs folder, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Running what a page shows.


def run_shell(shown: Shown) -> None:
    """Every line that starts our command; of `make` only whether the target exists."""
    for number, line in enumerate(shown.text.splitlines(), shown.line):
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] == ["make"]:
            targets = {word for word in words[1:] if "=" not in word}
            assert targets <= make_targets(), line
        if words[:1] == ["foldline"]:
            complaint = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(complaint):
                code = main(words[1:])
            expected = int(found[1]) if (found := re.search(r"# exit (\d)", line)) else 0
            assert code == expected, f"line {number}: {line}\n{complaint.getvalue()}"


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


RUNNABLE = {
    name: page
    for name, page in PAGES.items()
    if any(shown.language in {"python", "sh"} for shown in shown_in(page))
}
SERVERS = ("FakeServer", "GatewayServer")
SERVED = [n for n, page in RUNNABLE.items() if any(s in page.read_text("utf-8") for s in SERVERS)]
"""Pages that talk to a server on a loopback port."""
PASTED = """
import sys
def guard(event, given):
    if event == "socket.getaddrinfo" and given[0] not in (None, "localhost", "127.0.0.1", b"127.0.0.1"):
        raise OSError(f"the page goes to the network: {given[0]}")
sys.addaudithook(guard)
exec(compile(sys.stdin.read(), sys.argv[1], "exec"))
"""
"""What is typed at a prompt has no file, so the page gets none either."""
NEXT = "\x0c"
"""Printed between two snippets."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.network) if n in SERVED else n for n in RUNNABLE],
)
def test_everything_that_a_page_shows_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python as a reader pastes it, from the top of the page into a new Python, in an empty folder without a key
    and a network; then the commands, in a checkout.  What is printed must be what the comments behind it say."""
    shown = [*shown_in(RUNNABLE[name])]
    python = [each for each in shown if each.language == "python"]
    absent = {module for each in python for module in missing_in(each)}
    if python and not absent:
        paste(python, name, tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    for each in shown:
        if each.language == "sh":
            run_shell(each)
        elif each.language == "toml":
            (tmp_path / "mine.toml").write_text(each.text, encoding="utf-8")
    if absent:
        lacking = ", ".join(sorted(absent))
        pytest.skip(f"{len(python)} snippets were compiled only: without {lacking} they cannot run")


@for_each("name", sorted(RUNNABLE))
def test_our_names_that_a_page_imports_are_there(name: str) -> None:
    """Quick, so that it is noticed at once; whether the rest of a page still runs is for `make test-slow`."""
    python = [each for each in shown_in(RUNNABLE[name]) if each.language == "python"]
    assert all(missing_in(each) is not None for each in python)


def paste(python: list[Shown], page: str, folder: Path) -> None:
    """Run these one after another; a traceback names the page and its line."""
    text = ""
    for shown in python:
        text += "\n" * (shown.line - 2 - text.count("\n")) + f"print({NEXT!r})\n" + shown.text
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PASTED, page],
        cwd=folder, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)},
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for shown, printed in zip(python, ran.stdout.split(f"{NEXT}\n")[1:], strict=True):
        expected = re.findall(r"^ *print\(.*\)  # (.*)$", shown.text, re.MULTILINE)
        assert not expected or printed.splitlines() == expected, f"line {shown.line}"


def missing_in(shown: Shown) -> set[str]:
    """The modules that a snippet imports and that are not installed here; our own must have the names that it takes."""
    absent = set[str]()
    for node in ast.walk(ast.parse(shown.text)):
        if isinstance(node, ast.Import):
            absent |= {alias.name for alias in node.names if not is_installed(alias.name)}
        elif isinstance(node, ast.ImportFrom):
            module = str(node.module)
            absent |= set() if is_installed(module) else {module}
            if module.partition(".")[0] in OURS:
                known = names_in(module)
                assert {alias.name for alias in node.names} <= known, f"line {shown.line}: {module}"
    return absent


OURS = {"blocks", "persistence", "render", "timeline"}


def is_installed(module: str) -> bool:
    parent = module.rpartition(".")[0]
    return (not parent or is_installed(parent)) and importlib.util.find_spec(module) is not None


def names_in(module: str) -> set[str]:
    """The names of one of our modules, also if what it imports is not installed."""
    try:
        return {*dir(importlib.import_module(module))}
    except (ImportError, MisuseError):
        found = importlib.util.find_spec(module)
        assert found
        assert found.origin
        tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
        return {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def test_a_reader_who_checks_types_can_copy_from_the_first_pages(tmp_path: Path) -> None:
    """As scripts of the reader's own, with the SDK's real client, under mypy's strict rules."""
    for name in ("README.md", "docs/tutorial.md"):
        shown = [s.text for s in shown_in(PAGES[name]) if s.language == "python"]
        page = tmp_path / f"{PAGES[name].stem.lower()}.py"
        page.write_text("\n".join(shown), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--explicit-package-bases",  # strict, says the file
         f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / '.mypy_cache'}",
         *map(str, tmp_path.iterdir())],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout


def test_data_in_a_page_can_be_parsed(subtests: pytest.Subtests) -> None:
    for name, page in PAGES.items():
        with subtests.test(name=name):
            for shown in shown_in(page):
                if shown.language == "json":
                    json.loads(shown.text)
                elif shown.language == "toml":
                    tomllib.loads(shown.text)


def test_every_fence_says_its_language(subtests: pytest.Subtests) -> None:
    for name, page in PAGES.items():
        with subtests.test(name=name):
            for shown in shown_in(page):
                assert shown.language, f"line {shown.line - 1}"


def test_links_lead_somewhere(subtests: pytest.Subtests) -> None:
    for name, page in PAGES.items():
        with subtests.test(name=name):
            text = FENCE.sub("", page.read_text(encoding="utf-8"))
            for match in LINK.finditer(text):
                target, _, anchor = match["target"].partition("#")
                if "://" in target:
                    continue
                file = (page.parent / target).resolve() if target else page
                assert file.exists(), match[0]
                if anchor:
                    assert anchor in anchors(file), match[0]


def anchors(page: Path) -> set[str]:
    """Headings as GitHub names them in links."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = (match["title"].lower() for match in HEADING.finditer(text))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def test_numbers_of_the_policy_are_those_of_today(subtests: pytest.Subtests) -> None:
    """Written as `keep_ratio` (0.1)."""
    for name, page in PAGES.items():
        with subtests.test(name=name):
            for field, number in DEFAULT.findall(page.read_text(encoding="utf-8")):
                assert float(number) == getattr(Policy(), field), field


# What is generated.


def test_the_reference_is_up_to_date() -> None:
    made = script("build_reference").pages()
    for page, text in made.items():
        assert page.read_text(encoding="utf-8") == text, f"run `make docs`: {page.name}"
    assert set((ROOT / "docs" / "reference").iterdir()) == set(made) - {ROOT / "docs/reference.md"}


def test_the_picture_is_that_of_todays_engine() -> None:
    made = script("build_pictures")
    assert made.picture() == made.OUT.read_text(encoding="utf-8"), "run `make docs`"


def in_this_process(words: list[str], folder: str) -> str:
    """As a process would print it, without the time that it takes to start."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        assert main(words[1:]) == 0
    return printed.getvalue()


@pytest.fixture
def capturing() -> Iterator[ModuleType]:
    """The script that captures, and the environment that it gives its commands."""
    tool = script("build_captures")
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in tool.ENVIRONMENT.items():
            patch.setenv(variable, value)
        time.tzset()
        yield tool
    time.tzset()


@for_each("name", PAGES)
def test_captures_show_what_the_command_prints(name: str, capturing: ModuleType) -> None:
    for command, shown in capturing.captures(PAGES[name]):
        printed = capturing.output_of(command, in_this_process)
        assert capturing.steady(printed) == capturing.steady(shown), f"run `make docs`: {command}"


FIGURED = [ROOT / name for name in (*PAGES, "benchmarks/README.md", "benchmarks/peers/README.md")]


def test_tables_of_figures_are_what_the_benchmarks_have_kept() -> None:
    tool = script("build_captures")
    shown: set[str] = set()
    for page in FIGURED:
        for match in tool.FIGURES.finditer(page.read_text(encoding="utf-8")):
            shown.add(match["name"])
            assert tool.figures(match) == match[0], f"run `make docs`: {page.name}, {match['name']}"
    assert shown == {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")}


def test_every_dependency_has_its_reason_and_bound() -> None:
    table = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (.+) \|$", table, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(item for items in extras.values() for item in items)]
    assert {name + bound for name, bound, _ in rows} == set(wanted)
    assert all(len(reason) > 10 for _, _, reason in rows)


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for match in LINK.finditer(page.read_text(encoding="utf-8")):
            file = (page.parent / match["target"].partition("#")[0]).resolve()
            if file.is_file():
                waiting.append(file)
    assert set(PAGES.values()) <= seen


# What is on the screen.


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command prints of the example session, on a wide screen."""
    example = str(ROOT / "docs" / "examples" / "invoice-service.jsonl")
    store = ["--store", str(tmp_path_factory.mktemp("screens") / "screens.duckdb")]
    played = ["replay", example, "--window", "30000"]
    commands = {
        "replay": [*played, "--name", "played", *store],
        "compared": [*played, "--policy", "frugal", "--policy", "default"],
        "list": ["list", *store],
        "show": ["show", "played", *store],
        "stats": ["stats", "played", *store],
        "account": ["account", "played", *store],
        "propose": ["propose", "played", "--window", "20000", *store],
        "models": ["models", "gpt-5.6-sol"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        patch.setenv("NO_COLOR", "1")
        return {name: printed_by(words) for name, words in commands.items()}


def printed_by(words: list[str]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(words) == 0, words
    return printed.getvalue()


def labels(screen: str) -> set[str]:
    """The headings of its tables, and the names at the left of its lists."""
    lines = [line.rstrip() for line in screen.splitlines()]
    heads = [lines[at - 1] for at, line in enumerate(lines) if at and set(line.strip()) == {"─"}]
    found = {word for head in heads for word in re.split(r" {2,}", head.strip())}
    return found or {
        match[1] for line in lines if (match := re.match(r"([a-z][a-z ]*?) {2,}", line))
    }


@for_each("name", ["replay", "compared", "list", "show", "stats", "account", "propose", "models"])
def test_the_glossary_has_what_is_on_the_screen(name: str, screens: dict[str, str]) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`([^`]+)`", glossary))
    shown = labels(screens[name])
    assert len(shown) >= 4, screens[name]
    assert not shown - known, "docs/glossary.md does not explain these"


# What the site shows.


def concepts() -> list[str]:
    text = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    return text.split('"Concepts": """')[1].split('"""')[0].split()


def test_a_concept_has_a_drawing_and_an_example(subtests: pytest.Subtests) -> None:
    for name in concepts():
        with subtests.test(name=name):
            page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
            assert re.search(r"^!\[[^\]]{20,}\]\(images/[\w-]+\.svg\)$", page, re.MULTILINE)
            assert "```python" in page or "<!-- output of:" in page


def test_a_drawing_is_told_to_who_does_not_see_it_and_asks_nothing_of_elsewhere(
    subtests: pytest.Subtests,
) -> None:
    for path in sorted((ROOT / "docs" / "images").glob("*.svg")):
        with subtests.test(path=path):
            root = ET.parse(path).getroot()  # noqa: S314 -- our own
            text = path.read_text(encoding="utf-8")
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert path.name in PLOTS or root.findtext("{http://www.w3.org/2000/svg}title")
            assert 'href="http' not in text
            assert "<script" not in text
