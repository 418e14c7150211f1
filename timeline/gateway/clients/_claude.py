"""Claude Code: two variables, and an MCP server on its command line."""

import json
from typing import Final

from timeline.gateway.clients._client import (
    ANTHROPIC,
    HEADER,
    TOKEN,
    Client,
    Environment,
    Link,
    Start,
    own_upstreams,
)

HEADERS: Final = "ANTHROPIC_CUSTOM_HEADERS"
FIRST_PARTY: Final = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
"""Makes the client behave as with the vendor's own URL; otherwise it does not use a window of a million tokens, for
example."""


def start(link: Link, environment: Environment) -> Start:
    """Options are joined to their values by `=`; otherwise the client would read the user's prompt as a further
    value."""
    own = {"ANTHROPIC_BASE_URL": link.url}
    if link.upstreams["anthropic"].rstrip("/") == ANTHROPIC:
        own[FIRST_PARTY] = "1"
    if link.token:
        given = environment.get(HEADERS, "").strip()
        own[HEADERS] = f"{given}\n{HEADER}: {link.token}".strip()
        own[TOKEN] = link.token
    return Start(arguments=_tools(link), environment=own)


def _tools(link: Link) -> tuple[str, ...]:
    """Arguments for the MCP server's tools. They are allowed without asking, because they only read what the user's
    own agents have stored."""
    if not link.tools:
        return ()
    headers = {HEADER: f"${{{TOKEN}}}"} if link.token else {}
    server = {"type": "http", "url": link.tools, "headers": headers}
    config = json.dumps({"mcpServers": {"foldline": server}})
    return f"--mcp-config={config}", "--allowedTools=mcp__foldline"


CLIENT: Final = Client(
    program="claude",
    install="npm install -g @anthropic-ai/claude-code",
    start=start,
    upstreams=own_upstreams,
)
