"""Tools of MCP servers, by the official client.

with McpServer(["uvx", "mcp-server-git"], prefix="git") as server:
    agent = ReactAgent(timeline, client, tools=[*server.tools, read_file])

The client of a server belongs to one event loop, so each server has a loop in a thread of its own, and any agent, sync or
async, may call its tools from anywhere. A server that has died is started or connected again at the next call.
"""

import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from threading import Lock
from typing import Any, Final, Self, cast

import attrs
import msgspec
from attrs.validators import optional

from blocks import (
    DocumentPart,
    ImagePart,
    MisuseError,
    Part,
    TextPart,
    checked_calls,
    in_words,
    lacking,
)
from render import refusal
from timeline._arguments import valid
from timeline._flow_drivers import in_thread
from timeline.react._limits import positive_number
from timeline.react._tools import Tool, ToolReply

CONNECT_SECONDS: Final = 30.0
_LOST: Final = (
    "the MCP server ended or cannot be reached ({}); the call may have had a part of its effects, and the next one "
    "connects again"
)
_OUTSIDE: Final = (
    "the tools of an MCP server can be used only inside its block: with McpServer(...) as server"
)
_CONNECTION_CLOSED: Final = -32000
_REQUEST_TIMEOUT: Final = -32001
_ODD: Final = re.compile(r"[^a-zA-Z0-9_-]")


@attrs.frozen(eq=False)
class _McpConnection:
    """A connected client, in the event loop of its thread."""

    loop: Any
    client: Any
    stop: Any
    """Set in the loop to end it."""
    listed: tuple[Any, ...]
    """The server's own descriptions of its tools."""

    def close(self) -> None:
        """End the client and its thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.stop.set)


def _target(_: object, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    words = cast("list[Any]", value if isinstance(value, list | tuple) else [])
    is_command = bool(words) and all(isinstance(word, str) for word in words)
    is_url = isinstance(value, str) and value.startswith(("http://", "https://"))
    if not (is_command or is_url):
        raise MisuseError(
            f"{attribute.name} must be a URL, or a command as a list of words, not {in_words(value)}"
        )


@checked_calls
@attrs.define(eq=False)
class McpServer:
    """A server of tools: a command, which is started and spoken to over its standard input and output, or a URL (streamable
    HTTP). To be used in a `with` or `async with` block.

    The tools are those that it lists when it is entered, with its own names and schemas. The server checks the arguments.
    """

    target: str | Sequence[str] = attrs.field(validator=_target)
    """A URL, or a command as a list of words."""
    prefix: str = attrs.field(default="", kw_only=True)
    """Put before the names of its tools, with a `_`, so that two servers can have tools of the same name."""
    needs_approval: bool | str | Collection[str] = attrs.field(
        default=False,
        kw_only=True,
        validator=valid((bool | str | set[str], "True, False or names of tools"), "McpServer()"),
    )
    """Whether calls wait for a person: of all tools, or of those that are named here, by the server's names or the model's."""
    timeout: float | None = attrs.field(
        default=None, kw_only=True, validator=optional(positive_number)
    )
    """Seconds after which a call is given up."""
    env: Mapping[str, str] | None = attrs.field(default=None, kw_only=True, repr=False)
    """Environment of the command; None: a safe part of this process's own."""
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], kw_only=True, repr=False)
    """Headers of the requests to the URL, such as `Authorization`."""
    _connection: _McpConnection | None = attrs.field(default=None, init=False, repr=False)
    _tools: tuple[Tool, ...] | None = attrs.field(default=None, init=False, repr=False)
    _connecting: Any = attrs.field(factory=Lock, init=False, repr=False)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Its tools, for an agent.

        Raises:
            MisuseError: the server is not entered.
        """
        if self._tools is None:
            raise MisuseError(_OUTSIDE)
        return self._tools

    def __enter__(self) -> Self:
        listed = self._live().listed
        try:
            self._tools = self._made(listed)
        except MisuseError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._tools = None

    async def __aenter__(self) -> Self:
        import asyncio

        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    # Tools.

    def _made(self, listed: Sequence[Any]) -> tuple[Tool, ...]:
        names: dict[str, str] = {}
        server = f"MCP server {self.prefix or in_words(self.target)}"
        for each in listed:
            name = self._named(each.name)
            if name in names:
                raise MisuseError(
                    f"{server}: its tools {names[name]!r} and {each.name!r} would both be called {name!r}"
                )
            names[name] = each.name
        if unknown := sorted(self._gated - {*names, *names.values()}):
            raise MisuseError(
                f"{server}: needs_approval names {', '.join(unknown)}; its tools are {', '.join(names.values())}"
            )
        return tuple(self._tool(each) for each in listed)

    @property
    def _gated(self) -> set[str]:
        """The names in `needs_approval`."""
        asks = self.needs_approval
        return {asks} if isinstance(asks, str) else set() if isinstance(asks, bool) else {*asks}

    def _named(self, name: str) -> str:
        """The name of a tool for the model: providers allow 64 letters, digits, `_` and `-`."""
        return _ODD.sub("_", f"{self.prefix}_{name}" if self.prefix else name)[:64]

    def _tool(self, listed: Any) -> Tool:
        hints, name = listed.annotations, self._named(listed.name)

        async def call(**arguments: Any) -> ToolReply:
            import asyncio

            from mcp import MCPError

            if self._tools is None:
                raise MisuseError(_OUTSIDE)
            connection = await asyncio.to_thread(self._live)
            work = connection.client.call_tool(listed.name, arguments)
            try:
                answer = asyncio.run_coroutine_threadsafe(work, connection.loop)
                return reply_of(await asyncio.wrap_future(answer))
            except MCPError as error:
                if error.code not in (_CONNECTION_CLOSED, _REQUEST_TIMEOUT):
                    raise
                lost: Exception = error
            except (OSError, RuntimeError) as error:
                lost = error
            with self._connecting:
                if self._connection is connection:
                    self._connection = None
            connection.close()
            return ToolReply(output=_LOST.format(lost), is_error=True, outcome="partial")

        return Tool(
            name=name,
            description=listed.description or listed.title or "",
            input_schema=listed.input_schema,
            call=call,
            needs_approval=self.needs_approval is True or bool(self._gated & {listed.name, name}),
            timeout=self.timeout,
            idempotent=bool(hints and (hints.read_only_hint or hints.idempotent_hint)),
        )

    # The connection.

    def _live(self) -> _McpConnection:
        """The connection; a new one if there is none.

        Raises:
            MisuseError: the server cannot be started or reached, or the package `mcp` is not installed.
        """
        with self._connecting:
            if self._connection is None or self._connection.loop.is_closed():
                self._connection = self._connected()
            return self._connection

    def _connected(self) -> _McpConnection:
        import asyncio

        ready: Future[_McpConnection] = Future()

        def pass_on(ended: Future[None]) -> None:
            if not ready.done():
                ready.set_exception(ended.exception() or EOFError("it ended at once"))

        where = self.target if isinstance(self.target, str) else " ".join(self.target)
        server = f"MCP server {in_words(where)}"
        in_thread(lambda: asyncio.run(self._serve(ready)), "foldline-mcp").add_done_callback(
            pass_on
        )
        try:
            return ready.result(CONNECT_SECONDS)
        except TimeoutError:
            raise MisuseError(f"{server} did not answer within {CONNECT_SECONDS:g} s") from None
        except ModuleNotFoundError as error:
            raise lacking("an MCP server", "mcp") from error
        except Exception as error:
            raise MisuseError(f"{server} cannot be used: {_reason(error)}") from error

    async def _serve(self, ready: Future[_McpConnection]) -> None:
        """Connect, and keep the connection until it is told to stop."""
        import asyncio

        stop = asyncio.Event()
        async with self._client() as client:
            listed = await _listed(client)
            ready.set_result(_McpConnection(asyncio.get_running_loop(), client, stop, listed))
            await stop.wait()

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Any]:
        from mcp import Client, StdioServerParameters

        if isinstance(self.target, str):
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            async with (
                httpx2.AsyncClient(headers=dict(self.headers)) as http,
                Client(streamable_http_client(self.target, http_client=http)) as client,
            ):
                yield client
            return
        command, *arguments = self.target
        env = dict(self.env) if self.env is not None else None
        async with Client(
            StdioServerParameters(command=command, args=arguments, env=env)
        ) as client:
            yield client


async def _listed(client: Any) -> tuple[Any, ...]:
    """All tools of a server, page by page."""
    page = await client.list_tools()
    tools = [*page.tools]
    while page.next_cursor:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tuple(tools)


def _reason(error: BaseException) -> str:
    """The innermost error of a group, in one line."""
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _reason(inner[0]) if inner else f"{type(error).__name__}: {error}"


# Results.


def reply_of(result: Any) -> ToolReply:
    """The result of a call, with its texts, images and documents. What no model can read is named.

    A server repeats structured content as text; if it does not, the structured content is the text.
    """
    parts = [part for content in result.content for part in _parts(content)]
    if result.structured_content is not None and not result.content:
        parts = [TextPart(text=msgspec.json.encode(result.structured_content).decode())]
    texts = [part for part in parts if isinstance(part, TextPart)]
    output = texts[0].text if len(parts) == len(texts) == 1 else parts
    return ToolReply(output=output or "", is_error=bool(result.is_error))


def _parts(content: Any) -> list[Part]:
    match content.type:
        case "text":
            return [TextPart(text=content.text)] if content.text else []
        case "image":
            return [_shown(ImagePart(media_type=content.mime_type, data=content.data))]
        case "resource":
            return [_resource(content.resource)]
        case "resource_link":
            return [TextPart(text=f"[{content.name}: {content.uri}]")]
        case kind:
            return [TextPart(text=f"[{kind}, which cannot be shown]")]


def _resource(resource: Any) -> Part:
    if (text := getattr(resource, "text", None)) is not None:
        return TextPart(text=f"{resource.uri}\n{text}")
    kind = resource.mime_type or ""
    if kind.startswith("image/"):
        return _shown(ImagePart(media_type=kind, data=resource.blob))
    return _shown(DocumentPart(media_type=kind, data=resource.blob, name=str(resource.uri)))


def _shown(part: ImagePart | DocumentPart) -> Part:
    """The part, or a text that names it if providers would refuse it."""
    reason = refusal(part, "result")
    return (
        TextPart(text=f"[{part.media_type}, which cannot be shown: {reason}]") if reason else part
    )
