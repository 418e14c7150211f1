"""Reads the session file at a path, whatever agent wrote it."""

import os
from collections.abc import Iterator, Mapping

import attrs

from blocks import MisuseError, SessionFormatError, did_you_mean
from persistence.sessions._builder import Importer
from persistence.sessions._claude_code import CLAUDE_CODE
from persistence.sessions._codex import CODEX
from persistence.sessions._copilot import COPILOT
from persistence.sessions._export import FOLDLINE
from persistence.sessions._gemini import GEMINI
from persistence.sessions._grok import GROK
from persistence.sessions._kimi import KIMI
from persistence.sessions._message_lists import (
    ANTHROPIC,
    CURSOR,
    DROID,
    INSPECT,
    MINI,
    OPENAI,
    SWE_AGENT,
    TAU,
)
from persistence.sessions._opencode import OPENCODE
from persistence.sessions._openhands import OPENHANDS, OPENHANDS_V1
from persistence.sessions._pi import PI
from persistence.sessions._qwen import QWEN
from persistence.sessions._request_log import REQUEST_LOG
from persistence.sessions._session import Session
from persistence.sessions._source import BYTES_MAX, Source, open_source

# The most specific formats come first, message lists last, because other formats contain those.
_IMPORTERS: Mapping[str, Importer] = {
    importer.name: importer
    for importer in (
        FOLDLINE,
        CLAUDE_CODE,
        CODEX,
        PI,
        MINI,
        SWE_AGENT,
        OPENHANDS,
        OPENHANDS_V1,
        GEMINI,
        TAU,
        INSPECT,
        COPILOT,
        KIMI,
        QWEN,
        OPENCODE,
        DROID,
        GROK,
        CURSOR,
        REQUEST_LOG,
        ANTHROPIC,
        OPENAI,
    )
}

FORMATS: tuple[str, ...] = tuple(_IMPORTERS)
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
    return next(read_conversations(path, format=format, bytes_max=bytes_max))


def read_conversations(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",  # noqa: A002 -- as above
    bytes_max: int = BYTES_MAX,
) -> Iterator[Session]:
    """What `read_session` returns, and then the other conversations of the file, unless the path names one (`#3`).

    Raises:
        SessionFormatError, MisuseError: as `read_session`.
    """
    path = os.fspath(path)
    if format != "auto" and format not in _IMPORTERS:
        near = did_you_mean(format, FORMATS) or f"; known: auto, {', '.join(FORMATS)}"
        raise MisuseError(f"no session format {format!r}{near}")
    source = open_source(path, bytes_max)
    name, source = _detect(source) if format == "auto" else (format, source)
    importer = _IMPORTERS[name]
    session = importer.read(source)
    if not session.items:
        raise SessionFormatError(
            f"{path}: no messages found with the format {name}; if the file has another of those that can be read, "
            f"give its name: {', '.join(FORMATS)}"
        )
    yield session
    for index in range(1, session.conversations if source.index is None else 0):
        yield importer.read(attrs.evolve(source, index=index))


def _detect(source: Source) -> tuple[str, Source]:
    """The format, and the part of the source that has it: all, or a document behind lines of something else."""
    for part in (source, attrs.evolve(source, records=source.records[-1:])):
        for name, importer in _IMPORTERS.items():
            if importer.looks(part):
                return name, part
    raise SessionFormatError(
        f"{source.path}: unknown session format; known formats: {', '.join(FORMATS)}"
    )
