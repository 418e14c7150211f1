"""The docs are true: what they show runs, what they link to is there, what is generated is current."""

import contextlib
import gc
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
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest

from tests._table import for_each
from timeline import Policy
from timeline.cli import main
from timeline.fake_provider import FakeServer

ROOT = Path(__file__).parent.parent
ADAPTERS = sorted((ROOT / "docs" / "integrations").glob("*.md"))
"""Their programs are run by `tests/timeline/integrations`."""
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


# What the examples take for granted: a client, a system prompt, tools.


class FakeMessages:
    """Answers as the provider would, with the SDK's own types: one tool call, then a text."""

    def create(self, **request: Any) -> Any:
        from anthropic.types import Message

        asked = request["messages"][-1]["content"][-1]
        content: list[dict[str, Any]] = [{"type": "text", "text": "The disk was full."}]
        if asked["type"] == "text" and request.get("tools"):
            name = request["tools"][0]["name"]
            call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"path": "log"}}
            content = [{"type": "text", "text": "I look at the log."}, call]
        return Message.model_validate(
            {
                "id": f"msg_{len(request['messages'])}",
                "type": "message",
                "role": "assistant",
                "model": request["model"],
                "content": content,
                "stop_reason": "tool_use" if len(content) > 1 else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 900, "output_tokens": 40},
            }
        )


class FakeClient:
    """The part of `anthropic.Anthropic` that the examples use."""

    def __init__(self) -> None:
        self.messages = FakeMessages()


def run_tool(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {arguments}: No space left on device"


GIVEN = {
    "client": FakeClient(),
    "SYSTEM": "You look after a small service.",
    "TOOLS": [
        {"name": "read_file", "description": "Read a file", "input_schema": {"type": "object"}}
    ],
    "run_tool": run_tool,
}


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


def run_python(shown: Shown, page: str, names: dict[str, Any]) -> None:
    """Execute; what is printed must be what the comments behind it say."""
    padding = "\n" * (shown.line - 1)  # so that a traceback names the line of the page
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(padding + shown.text, page, "exec"), names)  # noqa: S102 -- our own examples
    expected = re.findall(r"^ *print\(.*\)  # (.*)$", shown.text, re.MULTILINE)
    if expected:
        assert printed.getvalue().splitlines() == expected


RUNNABLE = {
    name: page
    for name, page in PAGES.items()
    if page not in ADAPTERS and any(s.language in {"python", "sh"} for s in shown_in(page))
}
SERVERS = ("FakeServer", "GatewayServer")
SERVED = [n for n, page in RUNNABLE.items() if any(s in page.read_text("utf-8") for s in SERVERS)]
"""Pages that talk to a server on a loopback port."""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A provider where the client looks for one, as pages that export its address have it."""
    with FakeServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "practice")
        yield


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.network) if n in SERVED else n for n in RUNNABLE],
)
def test_everything_that_a_page_shows_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name in SERVED:
        request.getfixturevalue("provider")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__", **GIVEN}
    with left_behind(names):
        for shown in shown_in(RUNNABLE[name]):
            match shown.language:
                case "python":
                    run_python(shown, name, names)
                case "sh":
                    run_shell(shown)
                case "toml":
                    (tmp_path / "mine.toml").write_text(shown.text, encoding="utf-8")
                case _:
                    pass


@contextlib.contextmanager
def left_behind(names: dict[str, Any]) -> Iterator[None]:
    """Close the clients of a page, which a script leaves to the end of its process.

    A page's functions hold its names, so they are garbage in a cycle: with a connection still open, whichever
    test runs when the collector comes would fail.  What else is left open fails the page itself.
    """
    from anthropic import Anthropic

    try:
        yield
    finally:
        for client in [value for value in names.values() if isinstance(value, Anthropic)]:
            client.close()
        names.clear()
        gc.collect()


TYPED = """\
from typing import Any
from anthropic import Anthropic
client = Anthropic()
SYSTEM = ""
TOOLS: list[dict[str, Any]] = []
def run_tool(name: str, arguments: Any) -> str: return name
"""


def test_a_reader_who_checks_types_can_copy_from_the_first_pages(tmp_path: Path) -> None:
    """As scripts of the reader's own, with the SDK's real client, under mypy's strict rules."""
    for name in ("README.md", "docs/tutorial.md"):
        shown = [s.text for s in shown_in(PAGES[name]) if s.language == "python"]
        page = tmp_path / f"{PAGES[name].stem.lower()}.py"
        page.write_text(TYPED + "\n".join(shown), encoding="utf-8")
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


@pytest.mark.parametrize(
    "name", ["replay", "compared", "list", "show", "stats", "account", "propose", "models"]
)
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
