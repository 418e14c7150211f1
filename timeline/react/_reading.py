"""Tools with which the model reads back content that its prompt no longer shows.

agent = ReactAgent(timeline, client, tools=[*tools, *reading_tools(timeline)])
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs

from blocks import AccessRefusedError, MisuseError, UnknownPathError
from timeline._flow import Calls, adrive, drive
from timeline._timeline import AsyncTimeline, Timeline
from timeline.react._pages import (
    BYTES_MAX,
    HITS_MAX,
    MARK,
    Room,
    artifact_page,
    block_page,
    hits_page,
    refused,
)
from timeline.react._tool import Tool, ToolReply, tool

if TYPE_CHECKING:
    from persistence import ArtifactStore, Requester


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


def reading_tools(
    timeline: Timeline | AsyncTimeline,
    artifacts: "ArtifactStore | None" = None,
    requester: "Requester | None" = None,
) -> tuple[Tool, ...]:
    """The tools `read_timeline` and, if there is an artifact store, `read_artifact`; default: the timeline's own store
    and requester."""
    run = adrive if isinstance(timeline, AsyncTimeline) else drive
    made = [_tool(_reader(timeline, run))]
    if artifacts is not None or timeline.settings.can_externalize:
        group_memo = _Shelf(timeline, artifacts, requester)
        made.append(_tool(_artifact_reader(group_memo, Room.in_prompt(timeline.settings))))
    return tuple(made)


@attrs.frozen
class _Shelf:
    """The store from which artifacts are read, and the requester; the first call opens the store."""

    timeline: Timeline | AsyncTimeline
    given: "ArtifactStore | None"
    requester: "Requester | None"

    @property
    def store(self) -> "ArtifactStore":
        store = self.given or self.timeline.artifacts
        if store is None:
            raise MisuseError("this timeline has no artifact store")
        return store

    @property
    def reader(self) -> "Requester":
        return self.requester or self.timeline.requester


def _tool(function: Callable[..., object]) -> Tool:
    return tool(durability="ephemeral")(function)  # the same input gives the same result


@attrs.frozen
class _Asked:
    path: str
    query: str
    start: int
    lines: int


def _reader(
    timeline: Timeline | AsyncTimeline, run: Callable[[Calls[ToolReply]], object]
) -> Callable[..., object]:
    def read_timeline(path: str = "", query: str = "", start: int = 0, lines: int = 0) -> object:
        return run(_answer(timeline, _Asked(path, query, start, lines)))

    read_timeline.__doc__ = GUIDE
    return read_timeline


def _answer(timeline: Timeline | AsyncTimeline, asked: _Asked) -> Calls[ToolReply]:
    path, query, start = asked.path.strip(), asked.query.strip(), max(asked.start, 0)
    if bool(path) == bool(query):
        return refused("give either a path or a query")
    room = Room.in_prompt(timeline.settings)
    try:
        if path:
            block = yield lambda: timeline.read(path)
            if block.id in timeline.view.state.withheld:
                return refused(WITHHELD)
            return block_page(path, block, start, asked.lines, room)
        count = min(asked.lines, HITS_MAX) if asked.lines > 0 else HITS
        hits = yield lambda: timeline.search(f"{NOT_ITSELF} {query}", limit=start + count)
    except UnknownPathError as error:
        return refused(_no_such(error))
    except MisuseError as error:
        return refused(str(error))
    return hits_page(query, hits[start:], start, room)


def _no_such(error: UnknownPathError) -> str:
    """The answer to a path that does not exist."""
    instead = f" Close to it: {', '.join(error.near)}." if error.near else ""
    return (
        f"There is no block at {error.path[:200]!r}.{instead} Paths look like ar:t1.user.prompt,"
        " tc:t3.call_7.result or v57; a query finds them."
    )


def _artifact_reader(group_memo: _Shelf, room: Room) -> Callable[..., ToolReply]:
    def read_artifact(artifact_id: str, start: int = 0) -> ToolReply:
        """Read content that was moved to the artifact store.

        A long content comes in pieces; each says how to go on.

        Args:
            artifact_id: As it is written where the content was: art- and 32 digits.
            start: Byte to begin with, as a former answer told.
        """
        start = max(start, 0)
        try:
            if artifact_id.strip() in group_memo.timeline.view.state.withheld.values():
                return refused(WITHHELD)
            store, reader = group_memo.store, group_memo.reader
            about = store.describe(artifact_id.strip(), reader)
            if start and start >= about.size:
                return refused(f"start={start} is past the end: it has {about.size} bytes")
            content = store.read(about.id, reader, start=start, size=BYTES_MAX)
        except (AccessRefusedError, MisuseError) as error:
            return refused(str(error))
        return artifact_page(about, content, start, room)

    return read_artifact
