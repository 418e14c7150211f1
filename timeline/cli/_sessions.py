"""`foldline sessions`, and `foldline` alone: list the sessions on this machine, suggest a command."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from timeline.cli._console import DONE, UsageError, plural, print_json, say, screen, when
from timeline.cli._curve import short
from timeline.cli._own import Found, Looked, looked, newest
from timeline.cli._rows import first_words
from timeline.cli._visible import line

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "sessions"
HELP = "find the sessions of agents on this machine: Claude Code, Codex, pi, Gemini CLI"
SHOWN: Final = 5
MINUTE: Final = "%Y-%m-%d %H:%M"
PROMPT_BYTES_MAX: Final = 8_000_000
"""The prompt of a larger file is not read, since that would be slow."""
PROVIDERS: Final = {"codex": "openai.responses", "gemini-cli": "gemini"}
"""By session format: the provider whose request format and prices apply; other formats use the default."""
COMMANDS: Final = "all commands: foldline --help"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = (
        "Searches the folders in CLAUDE_CONFIG_DIR, CODEX_HOME, PI_CODING_AGENT_DIR and GEMINI_CLI_HOME,"
        "\nor each agent's default folder. Changes nothing."
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=SHOWN,
        metavar="N",
        help="show the newest N (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the folders with sessions, the newest sessions, and the command that replays the newest."""
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit}: give a number from 1 on")
    places = looked()
    found = newest(places, options.limit)
    if options.json:
        print_json(_json(places, found))
        return DONE
    _tell_places(places)
    if not found:
        say("No session found. To replay a file from elsewhere: foldline replay FILE --window auto")
        say(COMMANDS)
        return DONE
    _tell_newest(found)
    own = PROVIDERS.get(found[0].format)
    provider = ["--provider", own] if own else []
    command = ["replay", str(found[0].path), "--window", "auto", *provider]
    say("To see what the newest cost, and what it would have cost in a smaller window:")
    say(f"  foldline {shlex.join(command)}")
    say(COMMANDS)
    return offered(command)


def _json(places: "Sequence[Looked]", found: "Sequence[Found]") -> dict[str, Any]:
    return {
        "folders": [
            {"agent": each.agent, "folder": str(each.folder), "sessions": len(each.found)}
            for each in places
        ],
        "newest": [
            {
                "agent": each.agent,
                "format": each.format,
                "path": str(each.path),
                "bytes": each.bytes,
                "modified": each.modified,
            }
            for each in found
        ],
    }


def _tell_places(places: "Sequence[Looked]") -> None:
    from rich.table import Table
    from rich.text import Text

    console = screen()
    console.print("Sessions of agents on this machine", style="bold")
    table = Table.grid(padding=(0, 2))
    for place in places:
        if not place.found and place.folder != _first_of(place.agent, places).folder:
            continue
        held = plural(len(place.found), "session") if place.found else "none"
        table.add_row(
            place.agent, Text(held, style="bold"), Text(_short_path(place.folder), style="dim")
        )
    console.print(table)
    console.print()


def _first_of(agent: str, places: "Sequence[Looked]") -> "Looked":
    return next(place for place in places if place.agent == agent)


def _tell_newest(found: "Sequence[Found]") -> None:
    from rich.text import Text

    console = screen()
    console.print("The newest", style="bold")
    for each in found:
        facts = f"{when(each.modified, MINUTE)}  {each.agent}, {short(each.bytes)}B"
        console.print(Text(line(f"{facts}  {_prompt(each)}")), no_wrap=True, overflow="ellipsis")
        console.print(Text(f"  {line(_short_path(each.path))}", style="dim"), overflow="fold")
    console.print()


def _short_path(path: Path) -> str:
    """The path with `~` for the user's home."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _prompt(found: "Found") -> str:
    """The beginning of the user's first prompt; empty if the file is too large to read quickly."""
    from blocks import FoldlineError, UserPrompt, text_of
    from persistence.sessions import read_session

    if found.bytes > PROMPT_BYTES_MAX:
        return ""
    try:
        session = read_session(found.path, format=found.format)
    except FoldlineError:
        return "(not readable as a session)"
    blocks = (block for item in session.items for block in item.blocks)
    prompt = next((text_of(block) for block in blocks if isinstance(block, UserPrompt)), "")
    return first_words(prompt)


def offered(command: list[str]) -> int:
    """Ask at a terminal whether to run the command; returns its exit code."""
    from timeline.cli._main import obey

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return DONE
    sys.stdout.write("Run it now? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        return DONE
    return obey(command)
