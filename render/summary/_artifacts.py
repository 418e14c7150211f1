"""The artifacts of a digest: files that the agent produced, their type, visibility and sources.

    mime         what the tool declared (key field `mime`), or else derived from the file's ending
    visibility   what the tool declared (key field `visibility`), or else the result's sensitivity
    sources      what the tool declared (key field `sources`), or else what was successfully read or
                 fetched before it in the same turn and is folded with it; newest last

Tools declare these in the key fields of the result's envelope (`ToolReply.key_fields`).
"""

from collections.abc import Iterable, Mapping, Sequence
from posixpath import commonpath, splitext
from types import MappingProxyType
from typing import Final

import attrs
import msgspec

from blocks import ArtifactRecord, Envelope, TurnId, texts_in
from render.policy._policy import ToolPolicy

SOURCES_MAX: Final = 3
NAME_MAX: Final = 160
"""Characters of a path, a type or a source."""
_MIMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".csv": "text/csv",
        ".css": "text/css",
        ".gif": "image/gif",
        ".gz": "application/gzip",
        ".htm": "text/html",
        ".html": "text/html",
        ".ipynb": "application/x-ipynb+json",
        ".jpeg": "image/jpeg",
        ".jpg": "image/jpeg",
        ".json": "application/json",
        ".jsonl": "application/jsonl",
        ".md": "text/markdown",
        ".mp3": "audio/mpeg",
        ".mp4": "video/mp4",
        ".parquet": "application/vnd.apache.parquet",
        ".pdf": "application/pdf",
        ".png": "image/png",
        ".sql": "application/sql",
        ".svg": "image/svg+xml",
        ".tar": "application/x-tar",
        ".toml": "application/toml",
        ".tsv": "text/tab-separated-values",
        ".txt": "text/plain",
        ".wav": "audio/wav",
        ".webp": "image/webp",
        ".xml": "application/xml",
        ".yaml": "application/yaml",
        ".yml": "application/yaml",
        ".zip": "application/zip",
        **{
            f".{ending}": f"text/x-{language}"
            for language, endings in {
                "c": "c h",
                "c++": "cc cpp hpp",
                "csharp": "cs",
                "go": "go",
                "java": "java",
                "javascript": "js jsx mjs",
                "kotlin": "kt",
                "php": "php",
                "python": "py pyi",
                "ruby": "rb",
                "rust": "rs",
                "shellscript": "bash sh zsh",
                "swift": "swift",
                "typescript": "ts tsx",
            }.items()
            for ending in endings.split()
        },
        ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
)
"""A fixed table, because `mimetypes` gives different answers on different machines."""


NO_TURN: Final = TurnId("")


@attrs.define
class Sources:
    """The targets read so far in the current turn, newest last."""

    turn: TurnId = NO_TURN
    read: dict[str, None] = attrs.field(factory=dict[str, None])

    def enter(self, turn: TurnId) -> None:
        """Start a turn: targets read in another turn are not sources of this turn's files."""
        if turn != self.turn:
            self.turn, self.read = turn, {}

    def add(self, target: str) -> None:
        """Record a target that was read successfully."""
        self.read.pop(target, None)
        self.read[target] = None

    def of(self, path: str) -> tuple[str, ...]:
        """The newest targets, without `path` itself."""
        return tuple(source for source in self.read if source != path)[-SOURCES_MAX:]


def mime_of(path: str) -> str:
    """The MIME type for a path's ending; empty if it is unknown."""
    return _MIMES.get(splitext(path.lower())[1], "")


def produced(
    paths: Iterable[str], envelope: Envelope, sources: Sources, policy: ToolPolicy
) -> list[ArtifactRecord]:
    """The records of the files that a call wrote."""
    said = envelope.key_fields
    return [
        ArtifactRecord(
            path=path,
            mime=_text(said.get("mime")) or mime_of(path),
            visibility=_text(said.get("visibility")) or policy.sensitivity or envelope.sensitivity,
            sources=_texts(said.get("sources")) or sources.of(path),
        )
        for path in map(short, paths)
    ]


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(short, texts_in(value)))[-SOURCES_MAX:]


def _text(value: object) -> str:
    return "".join(_texts(value)[:1])


def joined(records: Iterable[ArtifactRecord]) -> list[ArtifactRecord]:
    """One record per path, at the position of its newest one; fields that are empty there come from older
    ones."""
    found: dict[str, ArtifactRecord] = {}
    for new in records:
        old = found.pop(new.path, new)
        sources = dict.fromkeys(s for s in old.sources if s not in new.sources)
        found[new.path] = msgspec.structs.replace(
            new,
            mime=new.mime or old.mime,
            visibility=new.visibility or old.visibility,
            sources=(*sources, *new.sources)[-SOURCES_MAX:],
            writes=new.writes + (old.writes if old is not new else 0),
        )
    return list(found.values())


def written_line(path: str, record: ArtifactRecord | None) -> str:
    """The line for a written file: its path, with type, visibility, writes and sources if they are known."""
    if record is None:
        return path
    is_code = record.mime.startswith("text/x-")
    mime = "" if is_code else record.mime
    visibility = "" if record.visibility == "internal" else record.visibility
    sources = f"from {', '.join(record.sources)}" if record.sources and not is_code else ""
    kind = ", ".join(filter(None, (mime, visibility)))
    times = f"{record.writes} writes" if record.writes > 1 else ""
    details = "; ".join(filter(None, (kind, times, sources)))
    return f"{path} ({details})" if details else path


def by_folder(lines: Mapping[str, str]) -> str:
    """The files grouped by folder, one line per folder; a folder that all paths share is named once at the
    top."""
    folders: dict[str, list[str]] = {}
    for path, line in lines.items():
        folder = path[: path.rfind("/") + 1]
        folders.setdefault(folder, []).append(line[len(folder) :])
    rooted = [folder for folder in folders if folder.startswith("/")]
    root = commonpath(rooted) if len(rooted) > 1 else ""
    root = f"{root}/" if root.count("/") > 1 else ""
    listed = (_in_folder(folder.removeprefix(root), files) for folder, files in folders.items())
    return "\n".join([*([f"in {root}"] if root else []), *listed])


def _in_folder(folder: str, files: Sequence[str]) -> str:
    if not folder:
        return "\n".join(f"- {file}" for file in files)
    return f"- {folder}{': ' if len(files) > 1 else ''}{', '.join(files)}"


def short(text: str) -> str:
    return one_line(text, NAME_MAX)


def one_line(text: str, characters_max: int) -> str:
    """The text on one line, cut to at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters_max else f"{line[: characters_max - 1]}…"
