"""The digest: a computed record of what was folded.

It is merged with the previous digest, so it always covers everything that is no longer visible. Every list
is bounded; entries that are left out are still counted.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from posixpath import splitext
from types import MappingProxyType
from typing import Any, Final, TypeVar

import attrs
import msgspec

from blocks import (
    ArtifactPointer,
    ArtifactRecord,
    Digest,
    DroppedSpan,
    Envelope,
    HiddenRecord,
    SearchRecord,
    ToolCall,
    ToolKind,
    ToolResult,
    ToolTally,
    TurnId,
    text_of,
    texts_in,
    tool_kind,
    tool_target,
    written_paths,
)
from render.policy._policy import ToolPolicy
from render.summary._commands import NOTHING, WENT_WELL, script_of, status_of
from render.summary._files import written_by
from render.summary._identifiers import one_line
from render.summary._text import SECTIONS, digest_sections, list_text
from render.view._group import Entry, Place

_T = TypeVar("_T")

LISTS: Final = {
    "artifacts": 40,
    "files_read": 60,
    "files_written": 60,
    "errors": 15,
    "searches": 15,
    "hidden": 20,
    "externalized": 40,
    "dropped": 20,
}
"""The most entries of each list."""
GIVING: Final = {"files_written": 0.2, "files_read": 0.5, "hidden": 4.0, "externalized": 2.0}
"""Factors on a list's size when choosing the list to shorten (1.0 if not named here). Content that can be
read back is shortened first, the names of files that were worked on last."""
LINE_MAX: Final = 160
ANY_TOOL: Final = ToolPolicy()
SOURCES: Final = frozenset({"read", "web"})
"""Kinds of calls whose targets count as sources of an artifact."""
NO_POLICIES: Final[Mapping[str, ToolPolicy]] = MappingProxyType({})
SHRINKS_MAX: Final = 60
_PATH = re.compile(
    r"(?:^|[\s:\"'`(])((?:[\w.@~-]+)?(?:/[\w.@~-]+)+|[\w-]+\.[a-z]{1,4})(?=$|[\s:\"'`)])"
)


SOURCES_MAX: Final = 3
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


@attrs.define
class _Tally:
    """The new entries of the lists, while they are collected."""

    files_read: list[str] = attrs.field(factory=list[str])
    files_written: list[str] = attrs.field(factory=list[str])
    searches: list[SearchRecord] = attrs.field(factory=list[SearchRecord])
    errors: list[str] = attrs.field(factory=list[str])
    hidden: list[HiddenRecord] = attrs.field(factory=list[HiddenRecord])
    externalized: list[ArtifactPointer] = attrs.field(factory=list[ArtifactPointer])
    dropped: list[DroppedSpan] = attrs.field(factory=list[DroppedSpan])
    artifacts: list[ArtifactRecord] = attrs.field(factory=list[ArtifactRecord])
    tools: dict[str, tuple[int, int]] = attrs.field(factory=dict[str, tuple[int, int]])
    policies: Mapping[str, ToolPolicy] = attrs.field(factory=dict[str, ToolPolicy])
    sources: Sources = attrs.field(factory=Sources)


def build_digest(
    previous: Digest, folded: Sequence[Entry], policies: Mapping[str, ToolPolicy] = NO_POLICIES
) -> Digest:
    """The digest of everything folded so far; its index is built separately."""
    known = {t.tool: (t.success, t.failure) for t in previous.tools}
    tally = _Tally(tools=known, policies=policies)
    results = {e.pair: e for e in folded if e.place is Place.RESULT}
    calls = {e.pair: e.block for e in folded if isinstance(e.block, ToolCall)}
    for entry in folded:
        if isinstance(entry.block, ToolCall):
            _call(entry.block, results.get(entry.pair), tally)
        _hidden(entry, calls, tally)
    return _merge(previous, tally, folded)


def _hidden(entry: Entry, calls: Mapping[str, ToolCall], tally: _Tally) -> None:
    """Record what was shown instead of a block before it was folded."""
    if entry.artifact:
        call = calls.get(entry.pair)
        known = entry.block.envelope if isinstance(entry.block, ToolResult) else None
        about = _line(f"{call.name} {tool_target(call.input, known)}") if call else ""
        pointer = ArtifactPointer(artifact=entry.artifact, path=entry.path, about=about)
        tally.externalized.append(pointer)
    elif entry.dropped:
        tally.dropped.append(entry.dropped)
    elif entry.replacement:
        shown = HiddenRecord(path=entry.name, replacement=_line(entry.replacement))
        tally.hidden.append(shown)


def _call(call: ToolCall, answer: Entry | None, tally: _Tally) -> None:
    result = answer.block if answer and isinstance(answer.block, ToolResult) else None
    failed = result is not None and (result.is_error or result.envelope.outcome == "failure")
    success, failure = tally.tools.get(call.name, (0, 0))
    tally.tools[call.name] = (success + (not failed), failure + failed)
    tally.sources.enter(call.turn)
    known = result.envelope if result else Envelope()
    kind, target = tool_kind(call.name, call.input, known), _line(tool_target(call.input, known))
    if failed and result and not (kind == "command" and target):
        tally.errors.append(_line(f"{call.name}: {text_of(result).strip()}"))
    if kind == "write" and not failed:
        _wrote(call, written_paths(call.name, call.input, known), known, tally)
    elif kind == "command" and target:
        _ran(call, result, known, tally)
    elif target:
        _looked(kind, target, result, tally)
        if kind in SOURCES and not failed:
            tally.sources.add(target)


def _wrote(call: ToolCall, paths: Iterable[str], known: Envelope, tally: _Tally) -> None:
    policy = tally.policies.get(call.name, ANY_TOOL)
    made = produced(paths, known, tally.sources, policy)
    tally.artifacts += made
    tally.files_written += [record.path for record in made]


def _ran(call: ToolCall, result: ToolResult | None, known: Envelope, tally: _Tally) -> None:
    """Record the files that a command showed or wrote."""
    script = script_of(call, known) if result and status_of(result) in WENT_WELL else NOTHING
    if written := list(written_by(script)):
        _wrote(call, written, known, tally)
    if script.shown:
        tally.files_read.append(_line(script.shown.file))
        tally.sources.add(_line(script.shown.file))


def _looked(kind: ToolKind, target: str, result: ToolResult | None, tally: _Tally) -> None:
    match kind:
        case "read":
            tally.files_read.append(target)
        case "search" | "web":
            tally.searches.append(SearchRecord(query=target, paths=_paths(result)))
        case _:
            pass


def _paths(result: ToolResult | None) -> tuple[str, ...]:
    if result is None:
        return ()
    found = dict.fromkeys(_PATH.findall(text_of(result)[:4000]))
    return tuple(found)[:5]


def _line(text: str) -> str:
    return one_line(text, LINE_MAX)


def _merge(previous: Digest, tally: _Tally, folded: Sequence[Entry]) -> Digest:
    forgotten = dict(previous.forgotten)
    lists: dict[str, tuple[Any, ...]] = {}
    for name, length in LISTS.items():
        old: tuple[Any, ...] = getattr(previous, name)
        new: list[Any] = getattr(tally, name)
        merged = _JOINED.get(name, _newest)([*old, *new])
        if len(merged) > length:
            forgotten[name] = forgotten.get(name, 0) + len(merged) - length
        lists[name] = tuple(merged[-length:])
    tools = (ToolTally(tool=t, success=s, failure=f) for t, (s, f) in sorted(tally.tools.items()))
    turns = {entry.block.turn for entry in folded}
    rounds = {entry.round for entry in folded if entry.round}
    return msgspec.structs.replace(
        previous,
        blocks=previous.blocks + len(folded),
        turns=previous.turns + len(turns),
        rounds=previous.rounds + len(rounds),
        compactions=previous.compactions + 1,
        tools=tuple(tools),
        forgotten=forgotten,
        **lists,
    )


def fit_digest(digest: Digest, tokens_max: int, count: Callable[[str], int]) -> Digest:
    """The digest with the newest list entries that fit into `tokens_max`, without its actions and excerpts."""
    sizes = {title: count(text) for title, text in digest_sections(digest)}
    for _ in range(SHRINKS_MAX):
        if sum(sizes.values()) <= tokens_max:
            break
        left = {n: sizes.get(title, 0) for n, title in SECTIONS.items() if getattr(digest, n)}
        if not left:
            break
        name = max(left, key=lambda name: left[name] * GIVING.get(name, 1.0))
        digest = _shrunk(digest, name)
        if SECTIONS[name] in sizes:
            sizes[SECTIONS[name]] = count(list_text(digest, name))
    return digest


def _shrunk(digest: Digest, name: str) -> Digest:
    """The digest without the oldest third of one list."""
    items: tuple[Any, ...] = getattr(digest, name)
    return _left(digest, name, items[len(items) // 3 + 1 :])


def _left(digest: Digest, name: str, left: tuple[Any, ...]) -> Digest:
    """The digest with only these entries in one list; the removed ones are counted as forgotten."""
    gone = len(getattr(digest, name)) - len(left)
    if not gone:
        return digest
    forgotten = {**digest.forgotten, name: digest.forgotten.get(name, 0) + gone}
    changes: dict[str, Any] = {name: left, "forgotten": forgotten}
    return msgspec.structs.replace(digest, **changes)


def _newest(items: Iterable[_T]) -> list[_T]:
    """Each item once, at its newest position."""
    return list(reversed(dict.fromkeys(reversed(list(items)))))


# The artifacts of a digest: files that the agent produced, their type, visibility and sources.
#
#     mime         what the tool declared (key field `mime`), or else derived from the file's ending
#     visibility   what the tool declared (key field `visibility`), or else the result's sensitivity
#     sources      what the tool declared (key field `sources`), or else what was successfully read or
#                  fetched before it in the same turn and is folded with it; newest last
#
# Tools declare these in the key fields of the result's envelope (`ToolReply.key_fields`).


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


def short(text: str) -> str:
    return one_line(text, NAME_MAX)


_JOINED: Final[Mapping[str, Callable[[list[Any]], list[Any]]]] = MappingProxyType(
    {"artifacts": joined}
)
"""Functions that merge a list in which equal entries are combined."""
