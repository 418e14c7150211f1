"""Session files: those that agents on this machine keep (`foldline sessions`), and those of a command line."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs
from rich.table import Table
from rich.text import Text

from blocks import FoldlineError, UserPrompt, text_of
from persistence.sessions import Session, read_session
from timeline.cli._console import print_json, screen
from timeline.cli._options import UsageError, Values, argument, command, option
from timeline.cli._terminal import DONE, complain, line, plural, say, short, when

SHOWN: Final = 5
WORDS: Final = 160
"""The most characters of a text in a list."""
PROMPT_BYTES_MAX: Final = 8_000_000
"""The prompt of a larger file is not read, since that would be slow."""
PROVIDERS: Final = {"codex": "openai.responses", "gemini-cli": "gemini"}
"""By session format: the provider whose request format and prices apply; other formats use the default."""
HELPERS: Final = "agent-"
"""The prefix of Claude Code's files for subagents, which belong to another session."""


@attrs.frozen
class Agent:
    """An agent and where it keeps its sessions."""

    name: str
    format: str
    folders: Callable[[], Iterable[Path]]
    """The folders to search; they need not exist."""
    pattern: str
    """The glob pattern of session files below such a folder."""


@attrs.frozen
class Recording:
    """A session file of an agent."""

    agent: str
    format: str
    path: Path
    bytes: int
    modified: float


@attrs.frozen
class Folder:
    """A folder that was searched, and its sessions, newest first."""

    agent: str
    path: Path
    recordings: tuple[Recording, ...]


@command(
    "sessions",
    option(
        "--limit",
        type=int,
        default=SHOWN,
        metavar="N",
        help=f"show the newest N (default: {SHOWN})",
    ),
    epilog="Searches the folders in CLAUDE_CONFIG_DIR, CODEX_HOME, PI_CODING_AGENT_DIR and GEMINI_CLI_HOME,"
    "\nor each agent's default folder. Changes nothing.",
)
def sessions(options: Values) -> int:
    """Print the folders with sessions, the newest sessions, and the command that replays the newest."""
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit}: give a number of at least 1")
    folders = [_searched(agent, path) for agent in AGENTS for path in agent.folders()]
    newest = sorted((each for folder in folders for each in folder.recordings), key=_age)
    newest = newest[: options.limit]
    if options.json:
        print_json(_json(folders, newest))
        return DONE
    all_commands = "all commands: foldline --help"
    _tell_folders(folders)
    if not newest:
        say("No session found. To replay a file from elsewhere: foldline replay FILE --window auto")
        say(all_commands)
        return DONE
    _tell_newest(newest)
    provider = PROVIDERS.get(newest[0].format)
    words = ["replay", str(newest[0].path), "--window", "auto"]
    words += ["--provider", provider] if provider else []
    say("To see what the newest cost, and what it would have cost in a smaller window:")
    say(f"  foldline {shlex.join(words)}")
    say(all_commands)
    return offer(words)


def _json(folders: Sequence[Folder], newest: Sequence[Recording]) -> dict[str, Any]:
    return {
        "folders": [
            {"agent": each.agent, "folder": str(each.path), "sessions": len(each.recordings)}
            for each in folders
        ],
        "newest": [{**attrs.asdict(each), "path": str(each.path)} for each in newest],
    }


def _tell_folders(folders: Sequence[Folder]) -> None:
    """Print a row for each agent's first folder, and for others with sessions."""
    console = screen()
    console.print("Sessions of agents on this machine", style="bold")
    table = Table.grid(padding=(0, 2))
    agents = set[str]()
    for folder in folders:
        if folder.recordings or folder.agent not in agents:
            count = plural(len(folder.recordings), "session") if folder.recordings else "none"
            place = Text(_short_path(folder.path), style="dim")
            table.add_row(folder.agent, Text(count, style="bold"), place)
        agents.add(folder.agent)
    console.print(table)
    console.print()


def _tell_newest(newest: Sequence[Recording]) -> None:
    console = screen()
    console.print("The newest", style="bold")
    for each in newest:
        facts = f"{when(each.modified, '%Y-%m-%d %H:%M')}  {each.agent}, {short(each.bytes)}B"
        console.print(Text(line(f"{facts}  {_prompt(each)}")), no_wrap=True, overflow="ellipsis")
        console.print(Text(f"  {line(_short_path(each.path))}", style="dim"), overflow="fold")
    console.print()


def _short_path(path: Path) -> str:
    """The path with `~` for the user's home."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _prompt(recording: Recording) -> str:
    """The beginning of the user's first prompt; empty if the file is too large to read quickly."""
    if recording.bytes > PROMPT_BYTES_MAX:
        return ""
    try:
        session = read_session(recording.path, format=recording.format)
    except FoldlineError:
        return "(not readable as a session)"
    blocks = (block for item in session.items for block in item.blocks)
    prompt = next((text_of(block) for block in blocks if isinstance(block, UserPrompt)), "")
    return first_words(prompt)


def first_words(text: str) -> str:
    """The beginning of a text, on one line of at most 160 characters."""
    return " ".join(text[: 4 * WORDS].split())[:WORDS]


def offer(words: list[str]) -> int:
    """Ask at a terminal whether to run the command; returns its exit status."""
    from timeline.cli._main import obey  # the table of commands, which imports this one

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return DONE
    sys.stdout.write("Run it now? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        return DONE
    return obey(words)


# Where agents keep their sessions


def _folder(variable: str, otherwise: str) -> Path:
    """The folder in an environment variable; if unset, one in the user's home."""
    named = os.environ.get(variable)
    return Path(named).expanduser() if named else Path.home() / otherwise


def _claude_code() -> Iterator[Path]:
    yield _folder("CLAUDE_CONFIG_DIR", ".claude") / "projects"
    if "CLAUDE_CONFIG_DIR" not in os.environ:
        yield _folder("XDG_CONFIG_HOME", ".config") / "claude" / "projects"


def _codex() -> Iterator[Path]:
    home = _folder("CODEX_HOME", ".codex")
    yield home / "sessions"
    yield home / "archived_sessions"


def _pi() -> Iterator[Path]:
    named = os.environ.get("PI_CODING_AGENT_SESSION_DIR")
    home = _folder("PI_CODING_AGENT_DIR", ".pi/agent")
    yield Path(named).expanduser() if named else home / "sessions"


def _gemini() -> Iterator[Path]:
    yield _folder("GEMINI_CLI_HOME", "") / ".gemini" / "tmp"


AGENTS: Final = (
    Agent("Claude Code", "claude-code", _claude_code, "*/*.jsonl"),
    Agent("Codex", "codex", _codex, "**/rollout-*.jsonl"),
    Agent("pi", "pi", _pi, "**/*.jsonl"),
    Agent("Gemini CLI", "gemini-cli", _gemini, "*/chats/*.json*"),
)


def _searched(agent: Agent, path: Path) -> Folder:
    files = (each for file in path.glob(agent.pattern) if (each := _recording(agent, file)))
    return Folder(agent.name, path, tuple(sorted(files, key=_age)))


def _recording(agent: Agent, path: Path) -> Recording | None:
    if path.name.startswith(HELPERS):
        return None
    try:
        status = path.stat()
    except OSError:  # deleted meanwhile, or not readable
        return None
    size, modified = status.st_size, status.st_mtime
    return Recording(agent.name, agent.format, path, size, modified) if size else None


def _age(recording: Recording) -> float:
    return -recording.modified


# The session files of a command line: files, folders, patterns, `-` for standard input

STDIN: Final = "-"
ENDINGS: Final = (".jsonl", ".json", ".ndjson", ".traj", ".jsonl.gz", ".json.gz")
"""The endings of files that are taken from a folder."""
NAMED_MAX: Final = 3
LINES_MAX: Final = 5
FILES: Final = argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE",
    help="a session file of any known format, a folder, a pattern, or - for standard input",
)
SESSION: Final = (
    option("--format", default="auto", metavar="NAME", help="format of a file, if not detected"),
    option(
        "--bytes-max",
        type=int,
        metavar="N",
        help="bytes a file may have, unpacked (256 MiB)",
    ),
)
"""How session files are read: see `session_of`."""
_WHERE: Final = re.compile(r"^line (\d+): ")
_VARIES: Final = re.compile(r"\b[a-z]{2}:t\S+|\b(?:call|toolu|fc|msg|rs)_\w+|\d+")
"""The parts in which two notes of one kind differ: paths, ids, numbers."""


@attrs.frozen
class File:
    """A session file."""

    path: str
    is_found: bool = False
    """Whether it was found in a folder or by a pattern, so that it need not be a session."""


@contextmanager
def session_files(names: Sequence[str]) -> Generator[list[File]]:
    """The session files of `FILES`, in order; standard input becomes a temporary file.

    Raises:
        UsageError: a folder has no session file, or a pattern matches none.
    """
    with TemporaryDirectory(prefix="foldline-") as folder:
        yield [file for name in names for file in _files(name, Path(folder))]


def session_of(file: str, options: Values) -> Session:
    """A session file, read as the options of `SESSION` say.

    Raises:
        SessionFormatError: it cannot be read.
        MisuseError: an option makes no sense.
    """
    return read_session(file, format=options.format, **bytes_limit(options))


def bytes_limit(options: Values) -> dict[str, int]:
    """`--bytes-max` as an argument, if it was given."""
    return {} if options.bytes_max is None else {"bytes_max": options.bytes_max}


def _files(name: str, temporary: Path) -> Iterator[File]:
    if name == STDIN:
        yield File(str(_piped_in(temporary)))
        return
    name = os.path.expanduser(name)  # noqa: PTH111 -- where no shell has done it
    if Path(name).is_dir():
        yield from _matches(_in_folder(name), f"{name}: no session file in this folder")
    elif has_magic(name) and not Path(name).exists():
        paths = sorted(glob(name, recursive=True))  # noqa: PTH207 -- as a shell does it
        files = [each for each in paths if not Path(each).is_dir()]
        yield from _matches(files, f"{name}: no file matches this pattern")
    else:
        yield File(name)


def _matches(paths: Sequence[str], complaint: str) -> Iterator[File]:
    if not paths:
        raise UsageError(f"{complaint}; looked for names that end in {', '.join(ENDINGS)}")
    return (File(path, is_found=True) for path in paths)


def _in_folder(folder: str) -> list[str]:
    """All files below a folder, except hidden ones."""
    paths: list[str] = []
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        paths += [os.path.join(place, n) for n in sorted(names) if n.lower().endswith(ENDINGS)]  # noqa: PTH118 -- as it was given
    return paths


def _piped_in(folder: Path) -> Path:
    path = folder / "stdin.jsonl"
    if sys.stdin.isatty():
        complain("reading a session from the terminal; end it with Ctrl-D")
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def tell_passed_over(passed: Sequence[str]) -> None:
    """Print which of the files in folders were left out: the errors that they raised."""
    if passed:
        more = f" and {len(passed) - NAMED_MAX:,} more" if len(passed) > NAMED_MAX else ""
        named = "; ".join(passed[:NAMED_MAX])
        complain(f"{plural(len(passed), 'file')} passed over: {named}{more}")


def grouped_notes(notes: Iterable[tuple[int, str]]) -> Iterator[str]:
    """One line for each kind of note about session files, ordered by first occurrence.

    Each note is a line number of the file (0 for none) and a text; those that differ only in paths, ids and numbers
    are of one kind.
    """
    kinds: dict[str, tuple[str, list[int], int]] = {}
    for where, text in notes:
        kind = _VARIES.sub("#", text)
        first, lines, count = kinds.get(kind, (text, [], 0))
        kinds[kind] = first, [*lines, where] if where else lines, count + 1
    for text, lines, count in kinds.values():
        places = ", ".join(f"{each:,}" for each in lines[:LINES_MAX])
        more = f" and {len(lines) - LINES_MAX:,} more" if len(lines) > LINES_MAX else ""
        prefix = f"line{'s' if len(lines) > 1 else ''} {places}{more}: " if lines else ""
        yield f"{prefix}{text}" if count == 1 else f"{prefix}{text} ({count:,} times like this)"


def grouped_notices(notices: Iterable[str]) -> Iterator[str]:
    """The same for the notices of a replay, which begin with the line number if there is one."""
    matches = ((_WHERE.match(notice), notice) for notice in notices)
    return grouped_notes((int(m[1]) if m else 0, n[m.end() :] if m else n) for m, n in matches)
