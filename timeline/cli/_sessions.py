"""Session files: those that agents on this machine keep, and those that a command line names."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import glob, has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

from persistence.sessions import Session, read_session
from timeline.billing import plural
from timeline.cli._options import UsageError, Values, argument, option
from timeline.cli._terminal import complain, listed

WORDS: Final = 160
"""The most characters of a text in a list."""
UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@attrs.frozen
class Agent:
    """An agent and where it keeps its sessions."""

    name: str
    format: str
    folders: Callable[[], Iterable[Path]]
    """The folders to search; they need not exist."""
    pattern: str
    """The glob pattern of session files below such a folder."""
    helpers: str = ""
    """That of the files of sub-agents, whose calls belong to another session."""


@attrs.frozen
class SessionFile:
    """A session file of an agent."""

    agent: str
    format: str
    path: Path
    bytes: int
    modified: float
    is_helper: bool = False
    is_named: bool = False
    """Whether a command line names the file itself, so that it must be a session."""

    @property
    def id(self) -> str:
        """The name of the session: the last UUID in the name of its file, or else the whole name."""
        ids = UUID.findall(self.path.name)
        return ids[-1] if ids else re.sub(r"\.json[^#]*", "", self.path.name)


@attrs.frozen
class Folder:
    """A folder that was searched, and its sessions, oldest first."""

    agent: str
    path: Path
    recordings: tuple[SessionFile, ...]


def first_words(text: str) -> str:
    """The beginning of a text, on one line of at most 160 characters."""
    return " ".join(text[: 4 * WORDS].split())[:WORDS]


# Where agents keep their sessions


def _folder(variable: str, otherwise: str) -> Path:
    """The folder in an environment variable; if unset, one in the user's home."""
    folder = os.environ.get(variable)
    return Path(folder).expanduser() if folder else Path.home() / otherwise


def _claude_code() -> Iterator[Path]:
    yield _folder("CLAUDE_CONFIG_DIR", ".claude") / "projects"
    if "CLAUDE_CONFIG_DIR" not in os.environ:
        yield _folder("XDG_CONFIG_HOME", ".config") / "claude" / "projects"


def _codex() -> Iterator[Path]:
    home = _folder("CODEX_HOME", ".codex")
    yield home / "sessions"
    yield home / "archived_sessions"


def _pi() -> Iterator[Path]:
    folder = os.environ.get("PI_CODING_AGENT_SESSION_DIR")
    home = _folder("PI_CODING_AGENT_DIR", ".pi/agent")
    yield Path(folder).expanduser() if folder else home / "sessions"


def _gemini() -> Iterator[Path]:
    yield _folder("GEMINI_CLI_HOME", "") / ".gemini" / "tmp"


AGENTS: Final = (
    Agent("Claude Code", "claude-code", _claude_code, "*/*.jsonl", "**/agent-*.jsonl"),
    Agent("Codex", "codex", _codex, "**/rollout-*.jsonl"),
    Agent("pi", "pi", _pi, "**/*.jsonl"),
    Agent("Gemini CLI", "gemini-cli", _gemini, "*/chats/*.json*"),
)


def agent_of(session: Session) -> str:
    """The name of the agent that writes sessions of this format."""
    return next((agent.name for agent in AGENTS if agent.format == session.format), session.format)


def searched_folders() -> list[Folder]:
    """The folders of all agents, with the sessions in them."""
    return [_searched(agent, path) for agent in AGENTS for path in agent.folders()]


def _searched(agent: Agent, path: Path) -> Folder:
    helpers = set(path.glob(agent.helpers)) if agent.helpers else set[Path]()
    recordings = list[SessionFile]()
    for file in helpers.union(path.glob(agent.pattern)):
        with suppress(OSError):  # deleted meanwhile, or not readable
            status = file.stat()
            about = agent.name, agent.format, file, status.st_size, status.st_mtime
            recordings += [SessionFile(*about, file in helpers)] if status.st_size else []
    return Folder(agent.name, path, tuple(sorted(recordings, key=age)))


def age(recording: SessionFile) -> tuple[float, str]:
    """Orders recordings by the time of their last change, oldest first."""
    return recording.modified, str(recording.path)


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
    help="a session file of any known format, a folder, a pattern, - for standard input, or the beginning of the id of"
    " an agent's session on this machine",
)
SESSION: Final = (
    option("--format", default="auto", metavar="NAME", help="format of a file, if not detected"),
    option("--bytes-max", type=int, metavar="N", help="bytes a file may have, unpacked (256 MiB)"),
)
"""How session files are read: see `session_of`."""
_ID: Final = re.compile(r"[\w-]{4,}")
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


def recording_of(file: File) -> SessionFile:
    """A file of a command line, as a recording of an unknown agent; one that is not there is found out when it is
    read."""
    bytes_, modified = 0, 0.0
    for path in (file.path, file.path.rpartition("#")[0] or file.path):  # `results.json#3`
        with suppress(OSError):
            status = Path(path).stat()
            bytes_, modified = status.st_size, status.st_mtime
            break
    return SessionFile("", "auto", Path(file.path), bytes_, modified, is_named=not file.is_found)


def bytes_limit(options: Values) -> dict[str, int]:
    """`--bytes-max` as an argument, if it was given."""
    return {} if options.bytes_max is None else {"bytes_max": options.bytes_max}


def _files(name: str, temporary: Path) -> Iterator[File]:
    if name == STDIN:
        piped = temporary / "stdin.jsonl"
        if sys.stdin.isatty():
            complain("reading a session from the terminal; end it with Ctrl-D")
        with piped.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield File(str(piped))
        return
    name = os.path.expanduser(name)  # noqa: PTH111 -- where no shell has done it
    if Path(name).is_dir():
        yield from _matches(_in_folder(name), f"{name}: no session file in this folder")
    elif has_magic(name) and not Path(name).exists():
        paths = sorted(glob(name, recursive=True))  # noqa: PTH207 -- as a shell does it
        files = [each for each in paths if not Path(each).is_dir()]
        yield from _matches(files, f"{name}: no file matches this pattern")
    elif not Path(name).exists() and (path := _by_id(name)):
        yield File(str(path))
    else:
        yield File(name)


def name_of(recording: SessionFile, short: str) -> str:
    """What a command line calls a recording: the beginning of its id, if that leads to it, or else its path."""
    with suppress(UsageError):
        if not Path(short).exists() and _by_id(short) == recording.path:
            return short
    return shlex.quote(str(recording.path))


def _by_id(name: str) -> Path | None:
    """The session of an agent on this machine whose id begins with the name; None: there is none.

    Raises:
        UsageError: there are several.
    """
    if not _ID.fullmatch(name):
        return None
    all_sessions = (each for folder in searched_folders() for each in folder.recordings)
    matches = [each for each in all_sessions if not each.is_helper and each.id.startswith(name)]
    exact = [each for each in matches if each.id == name]
    if len(exact or matches) > 1:
        ids = listed([each.id for each in matches], NAMED_MAX)
        raise UsageError(
            f"{name}: the ids of several sessions begin with this: {ids}; give more of the id"
        )
    return (exact or matches)[0].path if matches else None


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


def tell_passed_over(passed: Sequence[str]) -> None:
    """Print which of the files in folders were left out: the errors that they raised."""
    if passed:
        errors = listed(passed, NAMED_MAX, "; ")
        complain(f"{plural(len(passed), 'file')} passed over: {errors}")


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
        places = listed([f"{each:,}" for each in lines], LINES_MAX)
        prefix = f"line{'s' if len(lines) > 1 else ''} {places}: " if lines else ""
        yield f"{prefix}{text}" if count == 1 else f"{prefix}{text} ({count:,} times like this)"


def grouped_notices(notices: Iterable[str]) -> Iterator[str]:
    """The same for the notices of a replay, which begin with the line number if there is one."""
    matches = ((_WHERE.match(notice), notice) for notice in notices)
    return grouped_notes((int(m[1]) if m else 0, n[m.end() :] if m else n) for m, n in matches)
