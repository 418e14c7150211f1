"""The JSON of every command is what the page on the command line says that it is."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from blocks import Bill, EventId, TimelineId, UsageRecorded
from persistence import open_store
from tests.timeline.cli.conftest import Run
from timeline.cli._main import COMMANDS

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"
EXAMPLE = PAGE.parent / "examples" / "invoice-service.jsonl"
SMALL = ("--window", 3000, "--counter", "estimate")
COMMAND = re.compile(r"^### (?P<name>[a-z -]+)$\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
NOT_AN_OBJECT = {"completion", "help", "render", "mcp", "proxy", "serve", "wrap"}


def documented() -> dict[str, set[str]]:
    """The keys of each command, as the page lists them."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## JSON\n")[2]
    return {
        found["name"]: {
            key
            for row in re.findall(r"^\| (`.*?) \|", found["text"], re.MULTILINE)
            for key in re.findall(r"`([^`]+)`", row)
        }
        for found in COMMAND.finditer(text)
    }


DOCUMENTED = documented()


def keys(value: Any, before: str = "") -> Iterator[str]:
    """All keys of a value, those of what is inside behind a dot."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{before}{name}"
            yield from keys(inner, f"{before}{name}.")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, before)


def fits(key: str, pattern: str) -> bool:
    """`KEY` is whatever the data has."""
    return re.fullmatch(re.escape(pattern).replace("KEY", ".+"), key) is not None


@pytest.fixture
def store(run: Run, session: Path, replayed_store: Path) -> Path:
    """A store with a replayed timeline; the file of its session."""
    del run  # has gone to the folder
    shutil.copy(replayed_store, "foldline.duckdb")
    return session


def damaged() -> None:
    with duckdb.connect("foldline.duckdb") as connection:
        connection.execute("UPDATE events SET payload = '[1]' WHERE seq = 9")


def billed() -> None:
    with closing(open_store("foldline.duckdb")) as store:
        for number, paid in enumerate((0.1, None)):
            bill = Bill(paid=paid, full=0.2, sent_at=1.0)
            event = UsageRecorded(
                id=EventId(f"u{number}"), at=1.0, model="m", uncached=9, bill=bill
            )
            store.append(TimelineId("agent"), [event], expected_version=number)


def said_by(command: str, run: Run, session: Path) -> list[Any]:
    """What a command prints, value by value."""
    small = {
        "account": ("account", "invented"),
        "bill": ("bill",),
        "copy": ("copy", "other.duckdb"),
        "export": ("export", "invented", "--out", "e.jsonl"),
        "fork": ("fork", "invented", "new"),
        "forget": ("forget", "invented", "ar:t1.user.prompt"),
        "import": ("import", session, "--name", "again"),
        "list": ("list",),
        "models": ("models", "claude-haiku-4-5"),
        "propose": ("propose", "example", "--window", "15k"),
        "repair": ("repair", "new.duckdb"),
        "replay": ("replay", session, *SMALL),
        "report": ("report", "invented", "--output", "r.html"),
        "retain": ("retain", "invented", "--forget"),
        "savings": ("savings", "--by", "conversation"),
        "search": ("search", "look"),
        "show": ("show", "invented"),
        "stats": ("stats", "invented"),
        "verify": ("verify",),
    }
    if command == "verify":
        damaged()
    if command == "savings":
        billed()
    if command == "propose":
        run("import", EXAMPLE, "--name", "example")
    out = run(*small[command], "--json").out
    return [json.loads(out)] if command == "propose" else [*map(json.loads, out.splitlines())]


def test_every_command_has_its_keys_on_the_page() -> None:
    names = set(COMMANDS) - NOT_AN_OBJECT
    assert names <= DOCUMENTED.keys()


@pytest.mark.parametrize("command", DOCUMENTED)
def test_the_page_has_the_keys_that_a_command_prints_and_no_others(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    (tmp_path / ".claude/projects/p").mkdir(parents=True)
    shutil.copy(EXAMPLE, tmp_path / ".claude/projects/p/s.jsonl")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    printed = set(keys(said_by(command, run, store)))
    patterns = DOCUMENTED[command]
    assert {key for key in printed if not any(fits(key, each) for each in patterns)} == set()
    assert {each for each in patterns if not any(fits(key, each) for key in printed)} == set()
