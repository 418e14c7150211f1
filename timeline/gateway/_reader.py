"""Tools with which other programs read a store: pieces of timelines, artifacts, search hits; and an MCP server with them.

They return only public and internal content, and nothing that was hidden on request.  No answer is longer
than a result may be in a prompt; longer content comes in pieces, and each piece says how to go on.

The server runs over stdio, or as a route of an HTTP server. Over HTTP each request is answered independently, with
JSON: there are no sessions, and nothing remains when the server stops.
"""

import asyncio
import re
import signal
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from hmac import compare_digest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import attrs

from blocks import (
    ENCRYPTED,
    BlockAppended,
    BlocksHidden,
    Event,
    FoldlineError,
    ForgottenError,
    RangeCompacted,
    TimelineId,
    ToolResult,
    did_you_mean,
    lacking,
    tag_of,
    text_of,
)
from persistence import (
    EventStore,
    Hit,
    Requester,
    TimelineInfo,
    block_at,
)
from timeline import Options, Timeline
from timeline.engine import TimelineSettings
from timeline.gateway.clients import HEADER
from timeline.react import HITS_MAX, MARK, Room, Tool, ToolReply, reading_tools, refused, tool
from timeline.report import descriptions

READER: Final = "mcp"
HITS: Final = 10
LOOKED_AT_MAX: Final = 20
"""Number of timelines, newest first, in which a path is looked up if no timeline is named; also the number of rows
in one list of timelines."""
SEARCHED_MAX: Final = 1_000
NOT_ITSELF: Final = f'-"{MARK}" -"foldline__search query" -"foldline_search query"'
"""Excludes blocks that were only read back, and the calls that searched for them."""
CONFIDENTIAL: Final = "This content is confidential; it is not given out here."


@attrs.frozen(kw_only=True)
class StoreReader:
    """Reads a store on behalf of a requester."""

    store: EventStore
    requester: Requester = attrs.field(factory=lambda: Requester(READER))
    options: Options = attrs.field(factory=Options)
    """Options as for `Timeline.open`; model, window and policy decide how long an answer may be, and `artifacts` says where
    large contents are, if not beside the log."""

    def tools(self) -> tuple[Tool, ...]:
        """The tools that a model may call."""
        return tuple(
            tool(durability="ephemeral")(method)
            for method in (self.read_timeline, self.read_artifact, self.search)
        )

    def read_timeline(
        self, path: str = "", timeline: str = "", start: int = 0, lines: int = 0
    ) -> ToolReply:
        """Read back what a conversation no longer shows: hidden, cleared, folded or dropped content; or what
        another conversation said.

        Without a path: what a timeline holds. Without a timeline, too: which timelines there are.

        Args:
            path: As it is written in a summary or in place of the content: tc:t3.call_7.result, or v57.
                v40-v60 lists what is between these two, a line each.
            timeline: Whose path it is, as `search` and the list of timelines name it. May be left out
                where only one of the newest timelines has folded content at this path.
            start: Character (of a list: row) to begin with.
            lines: At most so many lines. 0: as many as fit.
        """
        name, path = TimelineId(timeline.strip()), path.strip()
        if not name and not path:
            return self._timelines(max(start, 0))
        if not name:
            owners = self._owners(path)
            if len(owners) != 1:
                return refused(_undecided(path, owners))
            name = owners[0]
        elif problem := self._unknown(name):
            return refused(problem)
        if span := version_range(path, self.store.head(name)):
            return self._outline(name, *span)
        with self._opened(name) as opened:
            read, *_ = reading_tools(opened)
            reply: ToolReply = read(path=path, start=start, lines=lines)
        return refused(CONFIDENTIAL) if reply.sensitivity in ENCRYPTED else reply

    def read_artifact(self, artifact_id: str, start: int = 0) -> ToolReply:
        """Read content that was moved to the artifact store.

        A long content comes in pieces; each says how to go on.

        Args:
            artifact_id: As it is written where the content was: art- and 32 digits.
            start: Byte to begin with, as a former answer told.
        """
        with self._opened(TimelineId(READER)) as own:
            if (artifacts := own.artifacts) is None:
                return refused(
                    "there are no artifacts; read the content by its path with read_timeline"
                )
            about = artifacts.describe(artifact_id.strip(), self.requester)
            with self._opened(TimelineId(about.timeline or READER)) as opened:
                _, read = reading_tools(opened, artifacts, self.requester)
                reply: ToolReply = read(artifact_id=about.id, start=start)
        return reply

    def search(self, query: str, timeline: str = "", start: int = 0, lines: int = 0) -> ToolReply:
        """Find what was said in this or an earlier conversation, shown or not. Answers with timelines and
        paths, best first, for `read_timeline`.

        Args:
            query: Words that must all occur, in any order. Also: "a phrase", -without,
                type:react.tool.result, turn:t3.
            timeline: Only in this one.
            start: Hit to begin with.
            lines: At most so many hits. 0: ten.
        """
        name, start = TimelineId(timeline.strip()), max(start, 0)
        if name and (problem := self._unknown(name)):
            return refused(problem)
        count = min(lines, HITS_MAX) if lines > 0 else HITS
        hits = self._hits(f"{NOT_ITSELF} {query}", name or None, start + count)[start:]
        if not hits:
            what = f"no more than {start:,} blocks match" if start else "nothing matches"
            advice = "try fewer words, or a part of one"
            return ToolReply(output=f"{MARK}: {what} {query[:160]!r}; {advice}]")
        header = f"{MARK}: timelines and paths that match {query[:160]!r}, best first]\n"
        rows = (f"{hit.timeline} {hit.path}\n    {first_words(hit.snippet)}\n" for hit in hits)
        return ToolReply(output=(header + self._room().cut("".join(rows), header)).rstrip("\n"))

    # Timelines.

    def _opened(self, name: TimelineId) -> Timeline:
        options: Options = {**self.options, "store": self.store, "requester": self.requester}
        return Timeline.open(name, **options)

    def _room(self) -> Room:
        return Room.in_prompt(TimelineSettings.of(self.options))

    def _newest(self) -> list[TimelineInfo]:
        return sorted(self.store.list(), key=lambda info: info.updated_at, reverse=True)

    def _unknown(self, name: TimelineId) -> str:
        """The error text for an unknown timeline name; empty if the timeline exists."""
        if self.store.head(name):
            return ""
        near = did_you_mean(name, [info.id for info in self._newest()])
        return f"There is no timeline {name[:200]!r}{near or '.'} read_timeline without arguments lists all."

    def _owners(self, path: str) -> list[TimelineId]:
        """The timelines that have hidden or folded blocks and a block at this path, newest first."""
        newest = [info.id for info in self._newest()[:LOOKED_AT_MAX]]
        return [name for name in newest if self._has_folded(name) and self._has(name, path)]

    def _has_folded(self, name: TimelineId) -> bool:
        window = self.store.load_window(name)
        return window.compaction is not None or any(
            isinstance(event, BlocksHidden) for _, event in window.events
        )

    def _has(self, name: TimelineId, path: str) -> bool:
        try:
            return block_at(self.store, name, path) is not None
        except ForgottenError:
            return True  # reading it gives the error

    def _timelines(self, start: int) -> ToolReply:
        infos = self._newest()
        page = infos[start : start + LOOKED_AT_MAX]
        header = f"{MARK}: the timelines of this store ({len(infos):,}), the last written first]\n"
        about = dict(descriptions(self.store, [info.id for info in page]))
        begins = {name: first_words(each.prompt or "") for name, each in about.items()}
        rows = (f"{i.id} {_when(i.updated_at)} {begins.get(i.id, '')}\n" for i in page)
        more = start + len(page)
        rest = f"[go on with start={more}]" if more < len(infos) else ""
        return ToolReply(output=f"{header}{''.join(rows)}{rest}".rstrip("\n"))

    # An outline of a timeline.

    def _outline(self, name: TimelineId, first: int, last: int) -> ToolReply:
        """The rows of the blocks in these versions, as many as fit."""
        head = self.store.head(name)
        if first > last:
            return refused(f"There is nothing from v{first} to v{last}: {name} ends at v{head}.")
        header = f"{MARK} {name}, v{first} to v{last} of v{head}; read one with path=v57]\n"
        rows = list(islice(self._rows(name, first, last), ROWS_MAX))
        page = self._room().cut("".join(text for _, text in rows), header)
        count = page.count("\n")
        end = rows[count - 1][0] if 0 < count < len(rows) or len(rows) == ROWS_MAX else last
        rest = f"[go on with path=v{end + 1}-v{last}]" if end < last else ""
        return ToolReply(output=f"{header}{page}{rest}".rstrip("\n"))

    def _rows(self, name: TimelineId, first: int, last: int) -> Iterator[tuple[int, str]]:
        after, withheld = first - 1, self.store.load_window(name).withheld
        while after < last and (page := self.store.read(name, after=after, limit=PAGE)):
            for version, event in page:
                if version <= last and (row := _row(event, withheld)):
                    yield version, f"v{version} {row}\n"
            after = page[-1][0]

    # Search.

    def _hits(self, query: str, name: TimelineId | None, count: int) -> list[Hit]:
        """The best hits, without hidden and confidential blocks."""
        best: list[Hit] = []
        for limit in (min(2 * count, SEARCHED_MAX), SEARCHED_MAX):
            hits = self.store.search(query, name, limit)
            best = [hit for hit in hits if not self._is_confidential(hit)]
            if len(best) >= count or len(hits) < limit:
                break
        return best[:count]

    def _is_confidential(self, hit: Hit) -> bool:
        page = self.store.read(hit.timeline, after=hit.version - 1, limit=1)
        event = page[0][1] if page else None
        block = event.block if isinstance(event, BlockAppended) else None
        return isinstance(block, ToolResult) and block.envelope.sensitivity in ENCRYPTED


def _undecided(path: str, owners: list[TimelineId]) -> str:
    """The error text for a path that exists in several timelines or in none."""
    if owners:
        return f"Several timelines have something at {path[:200]!r}; give timeline=, one of: {', '.join(owners)}."
    return (
        f"None of the newest timelines has folded content at {path[:200]!r}. Give timeline= (read_timeline"
        " without arguments lists them), or find it with search."
    )


def _when(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"@{seconds:.3g}"


def answered(tools: Collection[Tool], name: str, arguments: dict[str, object]) -> ToolReply:
    """The reply to a tool call; errors of the call become an error reply."""
    by_name = {each.name: each for each in tools}
    if name not in by_name:
        return refused(f"There is no tool {name[:80]!r}; there are {', '.join(by_name)}.")
    try:
        reply: ToolReply = by_name[name].call(**by_name[name].check(arguments))
    except (FoldlineError, ValueError, TypeError) as error:
        return refused(str(error))
    return reply


# The rows of an outline.


PAGE: Final = 200
ROWS_MAX: Final = 200
WORDS: Final = 120
_RANGE: Final = re.compile(r"v?(?P<first>\d{1,12})\s*-\s*(?:v?(?P<last>\d{1,12}))?")


def version_range(path: str, head: int) -> tuple[int, int] | None:
    """The first and last version of a range `v40-v60` or `v40-` (to the end), or of an empty path (all); None: it is
    another path."""
    if not path:
        return 1, head
    match = _RANGE.fullmatch(path)
    if match is None:
        return None
    return max(int(match["first"]), 1), min(int(match["last"] or head), head)


def first_words(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: 4 * WORDS].split())
    return line if len(line) <= WORDS else f"{line[:WORDS]}…"


def _row(event: Event, withheld: Collection[str]) -> str:
    """The row of an event in an outline; empty if it is neither a block nor a summary. `withheld`: the ids of blocks that
    are hidden on request."""
    if isinstance(event, RangeCompacted):
        return f"summary of v{event.start} to v{event.cut - 1}"
    if not isinstance(event, BlockAppended):
        return ""
    block, kind = event.block, tag_of(event.block)
    if block.id in withheld:
        return f"{kind}: hidden on request"
    if isinstance(block, ToolResult) and block.envelope.sensitivity in ENCRYPTED:
        return f"{kind}: confidential"
    text = text_of(block)
    return f"{kind}, {len(text):,} characters: {first_words(text)}" if text else kind


# The MCP server.


if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send

NAME: Final = "foldline"
PATH: Final = "/foldline/mcp"
INSTRUCTIONS: Final = (
    "Parts of a long conversation may be folded into a summary, or replaced by a line that names a path such"
    " as tc:t3.call_7.result or v57. read_timeline gives the original at a path, read_artifact what lies"
    " under an art- id, search finds what was said before."
)
BODY_BYTES_MAX: Final = 1_000_000


def server_of(reader: StoreReader) -> "Server[Any]":
    """The MCP server; it can serve any number of clients.

    Raises:
        MisuseError: the package `mcp` is not installed.
    """
    try:
        import mcp_types as types
        from anyio.to_thread import run_sync
        from mcp.server import Server
    except ModuleNotFoundError as error:
        raise lacking("an MCP server", "mcp") from error
    tools = reader.tools()
    hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    listed = [
        types.Tool(
            name=each.name,
            description=each.description,
            input_schema=each.input_schema,
            annotations=hints,
        )
        for each in tools
    ]

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: object, request: types.CallToolRequestParams) -> types.CallToolResult:
        reply = await run_sync(answered, tools, request.name, request.arguments or {})
        # Half of a surrogate pair has no JSON form.
        text = str(reply.output).encode(errors="replace").decode()
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], is_error=reply.is_error)

    return Server(NAME, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


def serve_stdio(reader: StoreReader) -> None:
    """Serve MCP on standard input and output until the input ends; an interrupt ends the process.

    Raises:
        MisuseError: the package `mcp` is not installed.
    """
    server = server_of(reader)
    import anyio
    from mcp.server.stdio import stdio_server

    # Python's own handler would wait for the thread that reads the input.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    async def serve() -> None:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)


@attrs.define
class _Endpoint:
    """An ASGI application that answers MCP requests. The first request loads the packages that this needs."""

    reader: StoreReader
    token: str | None = attrs.field(repr=False)
    _server: "Server[Any] | None" = attrs.field(default=None, init=False)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse

        token = Headers(scope=scope).get(HEADER, "")
        if self.token and not compare_digest(token.encode(), self.token.encode()):
            refusal = PlainTextResponse(
                f"the gateway requires its token in the header {HEADER}", 401
            )
            await refusal(scope, receive, send)
            return
        if scope["method"] != "POST":  # there are no event streams, and no sessions to end
            refusal = PlainTextResponse("only POST is accepted here", 405, {"allow": "POST"})
            await refusal(scope, receive, send)
            return
        if self._server is None:
            self._server = await asyncio.to_thread(server_of, self.reader)
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            max_request_body_size=BODY_BYTES_MAX,
            # The gateway has refused requests of web pages elsewhere already.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def mcp_route(reader: StoreReader, token: str | None) -> "Route":
    """The server as a route at `/foldline/mcp`; if there is a token, clients must send it. Requires the package `mcp`."""
    from starlette.routing import Route

    return Route(PATH, _Endpoint(reader, token))
