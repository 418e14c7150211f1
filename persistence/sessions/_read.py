"""Reads the session file at a path, whatever agent wrote it."""

import os
from collections.abc import Callable, Mapping

import attrs

from blocks import MisuseError, SessionFormatError, did_you_mean
from persistence.sessions import (
    _anthropic,
    _claude_code,
    _codex,
    _copilot,
    _cursor,
    _droid,
    _export,
    _gemini,
    _grok,
    _inspect,
    _kimi,
    _mini,
    _openai,
    _opencode,
    _openhands,
    _openhands_v1,
    _pi,
    _qwen,
    _request_log,
    _swe_agent,
    _tau,
)
from persistence.sessions._pieces import BYTES_MAX
from persistence.sessions._session import Session
from persistence.sessions._source import Source, open_source


@attrs.frozen
class _Format:
    looks: Callable[[Source], bool]
    read: Callable[[Source], Session]


# The most specific formats come first, message lists last, because other formats contain those.
_FORMATS: Mapping[str, _Format] = {
    module.NAME: _Format(module.looks, module.read)
    for module in (
        _export,
        _claude_code,
        _codex,
        _pi,
        _mini,
        _swe_agent,
        _openhands,
        _openhands_v1,
        _gemini,
        _tau,
        _inspect,
        _copilot,
        _kimi,
        _qwen,
        _opencode,
        _droid,
        _grok,
        _cursor,
        _request_log,
        _anthropic,
        _openai,
    )
}

FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""Names of the formats that can be read."""


def read_session(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",  # noqa: A002 -- the word users know from the command line
    bytes_max: int = BYTES_MAX,
) -> Session:
    """The recorded session at `path`; without `format`, its format is recognized by its content.

    Broken places in the file are skipped and reported in the session's notices.  A file may have `bytes_max` bytes
    after unpacking, and a JSON value for each 24 of them; in memory a session takes three to ten times as much.

    Raises:
        SessionFormatError: the file is missing, unreadable, too large, or of no known format.
        MisuseError: there is no such format, or the limit is less than 1.
    """
    path = os.fspath(path)
    if format != "auto" and format not in _FORMATS:
        near = did_you_mean(format, FORMATS) or f"; known: auto, {', '.join(FORMATS)}"
        raise MisuseError(f"no session format {format!r}{near}")
    source = open_source(path, bytes_max)
    name = _detect(source) if format == "auto" else format
    session = _FORMATS[name].read(source)
    if not session.items:
        raise SessionFormatError(
            f"{path}: read as {name}, but there is not one message in it; "
            "if it is of another format, name it"
        )
    return session


def _detect(source: Source) -> str:
    for name, known in _FORMATS.items():
        if known.looks(source):
            return name
    raise SessionFormatError(
        f"{source.path}: no session format that is known here; known: {', '.join(FORMATS)}"
    )
