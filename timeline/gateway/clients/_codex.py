"""Codex: overrides of its configuration on its command line.

It keeps its own provider, at another URL, so it logs in as before, and a session can be resumed
with or without the gateway.
"""

import json
import subprocess
from collections.abc import Mapping
from typing import Final

from timeline.gateway.clients._client import (
    HEADER,
    TOKEN,
    Client,
    Environment,
    Link,
    Start,
    own_upstreams,
)

CHATGPT: Final = "https://chatgpt.com"
SUBSCRIPTION: Final = "/backend-api/codex"
"""The path that replaces /v1 for users logged in with ChatGPT."""
SECONDS_MAX: Final = 20.0


def start(link: Link, _: Environment) -> Start:
    """The URL has the same path as the vendor's own, and contains the token, because Codex cannot send a further
    header to this provider."""
    token = f"/token/{link.token}" if link.token else ""
    path = SUBSCRIPTION if link.upstreams["openai"].rstrip("/") == CHATGPT else "/v1"
    given = [f"openai_base_url={json.dumps(link.url + token + path)}"]
    if link.tools:
        server = f"url={json.dumps(link.tools)}"
        if link.token:
            server += f",env_http_headers={{{json.dumps(HEADER)}={json.dumps(TOKEN)}}}"
        given.append(f"mcp_servers.foldline={{{server}}}")
    own = {TOKEN: link.token} if link.token else {}
    return Start(arguments=tuple(part for each in given for part in ("-c", each)), environment=own)


def upstreams(program: str, environment: Environment) -> Mapping[str, str]:
    """As for other clients; requests of users logged in with ChatGPT go to another server."""
    known = own_upstreams(program, environment)
    asked = [program, "login", "status"]
    try:
        done = subprocess.run(  # noqa: S603 -- the user's own client
            asked,
            env={**environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return known
    has_subscription = "ChatGPT" in done.stdout + done.stderr
    return {**known, "openai": CHATGPT} if has_subscription else known


CLIENT: Final = Client(
    program="codex", install="npm install -g @openai/codex", start=start, upstreams=upstreams
)
