"""Finds the sessions that agents on this machine keep in their own folders."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs


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
class Found:
    """A session file."""

    agent: str
    format: str
    path: Path
    bytes: int
    modified: float


@attrs.frozen
class Looked:
    """A searched folder and its sessions, newest first."""

    agent: str
    folder: Path
    found: tuple[Found, ...]


def _set(variable: str, otherwise: str) -> Path:
    """The folder in an environment variable; if unset, one in the user's home."""
    given = os.environ.get(variable)
    return Path(given).expanduser() if given else Path.home() / otherwise


def _claude_code() -> Iterator[Path]:
    yield _set("CLAUDE_CONFIG_DIR", ".claude") / "projects"
    if "CLAUDE_CONFIG_DIR" not in os.environ:
        yield _set("XDG_CONFIG_HOME", ".config") / "claude" / "projects"


def _codex() -> Iterator[Path]:
    home = _set("CODEX_HOME", ".codex")
    yield home / "sessions"
    yield home / "archived_sessions"


def _pi() -> Iterator[Path]:
    home = _set("PI_CODING_AGENT_DIR", ".pi/agent")
    given = os.environ.get("PI_CODING_AGENT_SESSION_DIR")
    yield Path(given).expanduser() if given else home / "sessions"


def _gemini() -> Iterator[Path]:
    yield _set("GEMINI_CLI_HOME", "") / ".gemini" / "tmp"


AGENTS: Final = (
    Agent("Claude Code", "claude-code", _claude_code, "*/*.jsonl"),
    Agent("Codex", "codex", _codex, "**/rollout-*.jsonl"),
    Agent("pi", "pi", _pi, "**/*.jsonl"),
    Agent("Gemini CLI", "gemini-cli", _gemini, "*/chats/*.json*"),
)
_HELPERS: Final = "agent-"
"""The prefix of Claude Code's files for subagents, which belong to another session."""


def looked() -> list[Looked]:
    """Every folder of every agent, existing or not."""
    return [_looked(agent, folder) for agent in AGENTS for folder in agent.folders()]


def newest(places: Iterable[Looked], count: int) -> list[Found]:
    """The `count` sessions written to most recently, newest first."""
    found = (each for place in places for each in place.found)
    return sorted(found, key=_age)[:count]


def _looked(agent: Agent, folder: Path) -> Looked:
    found = (f for path in folder.glob(agent.pattern) if (f := _found(agent, path)))
    return Looked(agent.name, folder, tuple(sorted(found, key=_age)))


def _found(agent: Agent, path: Path) -> Found | None:
    if path.name.startswith(_HELPERS):
        return None
    try:
        seen = path.stat()
    except OSError:  # deleted meanwhile, or not readable
        return None
    return (
        Found(agent.name, agent.format, path, seen.st_size, seen.st_mtime) if seen.st_size else None
    )


def _age(found: Found) -> float:
    return -found.modified
