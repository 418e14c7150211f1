"""The reading tools as an MCP server: over stdio, or as a route of an HTTP server.

Over HTTP each request is answered independently, with JSON: there are no sessions, and nothing remains
when the server stops.
"""

import asyncio
import signal
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final

import attrs

from blocks import MisuseError
from timeline.gateway._reading import StoreReader, answered
from timeline.gateway.clients import HEADER

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
        raise MisuseError(
            f"an MCP server needs {error.name}: pip install 'foldline[mcp]'"
        ) from error
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

    async def call_tool(_: object, asked: types.CallToolRequestParams) -> types.CallToolResult:
        reply = await run_sync(answered, tools, asked.name, asked.arguments or {})
        # Half of a surrogate pair has no JSON form.
        text = str(reply.output).encode(errors="replace").decode()
        said = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[said], is_error=reply.is_error)

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

        given = Headers(scope=scope).get(HEADER, "")
        if self.token and not compare_digest(given.encode(), self.token.encode()):
            refusal = PlainTextResponse(f"the gateway wants its token, in the header {HEADER}", 401)
            await refusal(scope, receive, send)
            return
        if scope["method"] != "POST":  # there are no event streams, and no sessions to end
            refusal = PlainTextResponse("nothing but POST here", 405, {"allow": "POST"})
            await refusal(scope, receive, send)
            return
        if self._server is None:
            self._server = await asyncio.to_thread(server_of, self.reader)
        await self._answered(self._server, scope, receive, send)

    async def _answered(
        self, server: "Server[Any]", scope: "Scope", receive: "Receive", send: "Send"
    ) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        manager = StreamableHTTPSessionManager(
            server,
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
