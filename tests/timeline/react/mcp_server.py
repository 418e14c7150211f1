"""A real MCP server, made with the official package, to be run as a process.

python -m tests.timeline.react.mcp_server             # stdio
python -m tests.timeline.react.mcp_server 8123        # streamable HTTP
"""

import base64
import os
import sys
import time

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.types import ToolAnnotations
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextResourceContents,
)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
server = MCPServer("shop", log_level="CRITICAL")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def stock(item: str, warehouse: str | None = None) -> dict[str, int]:
    """How many of an item are there."""
    return {item: len(item) + len(warehouse or "")}


@server.tool(name="item.picture")
def picture() -> Image:
    """A picture."""
    return Image(data=PIXEL, format="png")


@server.tool()
def order(item: str, count: int) -> str:
    """Order something."""
    if count > 9:
        raise ValueError("no more than 9")
    return f"ordered {count} of {item}"


@server.tool()
def leaflet() -> CallToolResult:
    """Everything that a result may hold."""
    png = base64.b64encode(PIXEL).decode()
    return CallToolResult(
        content=[
            EmbeddedResource(
                type="resource", resource=TextResourceContents(uri="shop://terms", text="30 days.")
            ),
            EmbeddedResource(
                type="resource",
                resource=BlobResourceContents(uri="shop://logo", mime_type="image/png", blob=png),
            ),
            ResourceLink(type="resource_link", name="more", uri="shop://more"),
            AudioContent(type="audio", data=png, mime_type="audio/wav"),
        ]
    )


@server.tool()
def sleep(seconds: float) -> str:
    """Sleep."""
    time.sleep(seconds)  # as the tests ask it to, in vain
    return "rested"


@server.tool()
def die() -> str:
    """The server ends in the middle of the call."""
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
