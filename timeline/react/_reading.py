"""Tools with which the model reads back content that its prompt no longer shows.

agent = ReactAgent(timeline, client, tools=[*tools, *reading_tools(timeline)])

An answer is a bounded piece of a text with its total size and how to continue.  Every answer begins with the same
mark, so that a later search can exclude blocks that were only read back.
"""

import codecs
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from blocks import (
    AccessRefusedError,
    Block,
    MisuseError,
    RangeSummary,
    ToolCall,
    ToolResult,
    UnknownPathError,
    encode_block,
    tag_of,
    text_of,
)
from render import format_summary
from timeline import AsyncTimeline, Timeline
from timeline._flow_drivers import Calls, adrive, drive
from timeline.engine._settings import TimelineSettings
from timeline.react._tools import Tool, ToolReply, tool

if TYPE_CHECKING:
    from persistence import ArtifactMetadata, ArtifactStore, Hit, Requester


CHARACTERS_MAX: Final = 12_000
"""Largest number of characters in one answer."""
HITS_MAX: Final = 50
MARK: Final = "[read back"
_SPAN: Final = (
    ", characters 000,000,000 to 000,000,000 of 000,000,000; go on with start=000000000]\n"
)
_NAME_CHARACTERS: Final = 160
CLIP_SHARE: Final = 0.9
"""Share of the room for one result that an answer uses, so that a render does not clip it."""
TOKENS_MIN: Final = 150
_FRAME_TOKENS: Final = 20
"""Tokens that a request adds around a result."""
BYTES_MAX: Final = 4 * CHARACTERS_MAX
"""Largest number of bytes of an artifact that one answer needs: a character has at most four."""
_CONTINUED: Final = range(0x80, 0xC0)
"""Bytes that continue a character in UTF-8."""
READ_TIMELINE: Final = "read_timeline"
HITS: Final = 10
WITHHELD: Final = "This content was hidden on request; it cannot be read back."
NOT_ITSELF: Final = f'-"{MARK}" -"{READ_TIMELINE} query"'
"""Excludes blocks that were only read back, and the calls that searched for them."""
GUIDE: Final = """Read back what this conversation no longer shows: hidden, cleared or folded content.

    Give the path or the label that stands for it, or a query that finds it. A long content comes in pieces; each
    says how to go on.

    Args:
        path: As it is written in a summary or in place of the content: tc:t3.call_7.result, or v57.
        query: Words that must all occur, in any order. Also: "a phrase", -without,
            type:react.tool.result, turn:t3. Answers with paths.
        start: Character (of a query: hit) to begin with.
        lines: At most so many lines (of a query: hits). 0: as many as fit.
    """


@attrs.frozen
class Room:
    """The largest size of an answer; a longer one would be clipped when it is rendered."""

    count: Callable[[str], int]
    tokens: int
    characters: int = CHARACTERS_MAX

    @classmethod
    def in_prompt(cls, settings: TimelineSettings) -> "Room":
        """The room for one result in a prompt with these settings."""
        share = int(CLIP_SHARE * settings.policy.clip_ratio * settings.limit)
        return cls(settings.counter.count, max(share, TOKENS_MIN))

    def cut(self, text: str, header: str) -> str:
        """As much of a text as fits below a header; it ends at the end of a line if one is near."""
        room = self.tokens - self.count(header) - _FRAME_TOKENS
        piece = text[: max(self.characters - len(header), 1)]
        while len(piece) > 1 and (tokens := self.count(piece)) > room:
            piece = piece[: max(int(0.95 * len(piece) * max(room, 1) / tokens), 1)]
        if len(piece) == len(text):
            return piece
        return piece[: piece.rfind("\n", len(piece) // 2) + 1 or len(piece)]


def reading_tools(
    timeline: Timeline | AsyncTimeline,
    artifacts: "ArtifactStore | None" = None,
    requester: "Requester | None" = None,
) -> tuple[Tool, ...]:
    """The tools `read_timeline` and, if there is an artifact store, `read_artifact`; default: the timeline's own store
    and requester."""
    functions = [_timeline_reader(timeline)]
    if artifacts is not None or timeline.settings.can_externalize:
        functions.append(_artifact_reader(timeline, artifacts, requester))
    # ephemeral: the same input gives the same result
    return tuple(tool(durability="ephemeral")(function) for function in functions)


def _timeline_reader(timeline: Timeline | AsyncTimeline) -> Callable[..., object]:
    run: Callable[[Calls[ToolReply]], object]
    run = adrive if isinstance(timeline, AsyncTimeline) else drive

    def read_timeline(path: str = "", query: str = "", start: int = 0, lines: int = 0) -> object:
        return run(_answer(timeline, path.strip(), query.strip(), max(start, 0), lines))

    read_timeline.__doc__ = GUIDE
    return read_timeline


def _answer(
    timeline: Timeline | AsyncTimeline, path: str, query: str, start: int, lines: int
) -> Calls[ToolReply]:
    if bool(path) == bool(query):
        return refused("give either a path or a query")
    room = Room.in_prompt(timeline.settings)
    try:
        if path:
            block = yield lambda: timeline.read(path)
            if block.id in timeline.view.state.withheld:
                return refused(WITHHELD)
            return block_page(path, block, start, lines, room)
        count = min(lines, HITS_MAX) if lines > 0 else HITS
        hits = yield lambda: timeline.search(f"{NOT_ITSELF} {query}", limit=start + count)
    except UnknownPathError as error:
        instead = f" Close to it: {', '.join(error.near)}." if error.near else ""
        return refused(
            f"There is no block at {error.path[:200]!r}.{instead} Paths look like ar:t1.user.prompt,"
            " tc:t3.call_7.result or v57; a query finds them."
        )
    except MisuseError as error:
        return refused(str(error))
    return hits_page(query, hits[start:], start, room)


def _artifact_reader(
    timeline: Timeline | AsyncTimeline,
    artifacts: "ArtifactStore | None",
    requester: "Requester | None",
) -> Callable[..., ToolReply]:
    room = Room.in_prompt(timeline.settings)

    def read_artifact(artifact_id: str, start: int = 0) -> ToolReply:
        """Read content that was moved to the artifact store.

        A long content comes in pieces; each says how to go on.

        Args:
            artifact_id: As it is written where the content was: art- and 32 digits.
            start: Byte to begin with, as a former answer told.
        """
        start = max(start, 0)
        try:
            if artifact_id.strip() in timeline.view.state.withheld.values():
                return refused(WITHHELD)
            store, reader = artifacts or timeline.artifacts, requester or timeline.requester
            if store is None:
                return refused("this timeline has no artifact store")
            about = store.describe(artifact_id.strip(), reader)
            if start and start >= about.size:
                return refused(f"start={start} is past the end: it has {about.size} bytes")
            content = store.read(about.id, reader, start=start, size=BYTES_MAX)
        except (AccessRefusedError, MisuseError) as error:
            return refused(str(error))
        return artifact_page(about, content, start, room)

    return read_artifact


# The answers


def refused(text: str) -> ToolReply:
    """An error message in one line, without any content of the timeline."""
    return ToolReply(output=" ".join(text.split())[:CHARACTERS_MAX], is_error=True)


def block_page(path: str, block: Block, start: int, lines: int, room: Room) -> ToolReply:
    """The text of a block from character `start`, at most `lines` lines (0: as many as fit)."""
    text = _readable(block)
    start = max(start, 0)
    if start and start >= len(text):
        return refused(f"start={start} is past the end: {path[:200]} has {len(text)} characters")
    about = f"{MARK} {_short(path)} ({tag_of(block)})"
    piece = room.cut(_lines(text[start:], lines), f"{about}{_SPAN}")
    end = start + len(piece)
    span = f"characters {start:,} to {end:,} of {len(text):,}; {_rest(end, len(text))}]"
    sensitivity = block.envelope.sensitivity if isinstance(block, ToolResult) else None
    return ToolReply(output=f"{about}, {span}\n{piece}", sensitivity=sensitivity)


def _readable(block: Block) -> str:
    match block:
        case RangeSummary():
            return format_summary(block)
        case ToolCall():
            return encode_block(block).decode()
        case _:
            return text_of(block) or encode_block(block).decode()


def _lines(text: str, count: int) -> str:
    """The first `count` lines of a text; 0: all of it."""
    return "".join(text[:CHARACTERS_MAX].splitlines(keepends=True)[:count]) if count > 0 else text


def _rest(end: int, total: int) -> str:
    return f"go on with start={end}" if end < total else "this is the end"


def _short(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS else f"{name[:_NAME_CHARACTERS]}…"


def hits_page(query: str, hits: Sequence["Hit"], start: int, room: Room) -> ToolReply:
    """The hits, each with its path and the matching line; `start` is the number of hits before them."""
    if not hits:
        what = f"no more than {start:,} blocks match" if start else "nothing matches"
        advice = "try fewer words, or a part of one"
        return ToolReply(output=f"{MARK}: {what} {_short(query)!r}; {advice}]")
    header = f"{MARK}: blocks that match {_short(query)!r}, best first; read one by its path]\n"
    lines = (f"{hit.path}\n    {' '.join(hit.snippet.split())}\n" for hit in hits)
    return ToolReply(output=(header + room.cut("".join(lines), header)).rstrip("\n"))


def artifact_page(about: "ArtifactMetadata", content: bytes, start: int, room: Room) -> ToolReply:
    """The text of an artifact from byte `start`; `content` has the artifact's bytes from there."""
    skipped = next((n for n, byte in enumerate(content[:4]) if byte not in _CONTINUED), 0)
    begin = start + (skipped if start else 0)
    text = _decoded(content[begin - start :], is_last=start + len(content) >= about.size)
    what = f"{MARK} artifact {about.id} ({_short(about.mime)})"
    if text is None:
        says = f": {_short(about.about)}" if about.about else ""
        return ToolReply(output=f"{what}: {about.size:,} bytes that are no text{says}]")
    piece = room.cut(text, f"{what}{_SPAN}")
    end = begin + len(piece.encode())
    span = f"bytes {begin:,} to {end:,} of {about.size:,}; {_rest(end, about.size)}]"
    return ToolReply(output=f"{what}, {span}\n{piece}", sensitivity=about.sensitivity)


def _decoded(content: bytes, *, is_last: bool) -> str | None:
    """The text of these bytes, without a character that is cut off at the end; None: they are not text."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(content, final=is_last)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
