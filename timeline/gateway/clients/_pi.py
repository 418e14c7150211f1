"""pi: an extension on its command line, which reads its settings from environment variables."""

from pathlib import Path
from typing import Final

from timeline.gateway.clients._client import (
    TOKEN,
    Client,
    Environment,
    Link,
    Start,
    own_upstreams,
)

EXTENSION: Final = Path(__file__).with_name("pi_extension.mjs")
URL, TOOLS = "FOLDLINE_URL", "FOLDLINE_TOOLS"


def start(link: Link, _: Environment) -> Start:
    """The extension redirects two providers, and adds the MCP server's tools, because pi does not support MCP. It
    must be the last argument: after an option, pi would read the name of a command as a prompt."""
    own = {URL: link.url, TOOLS: link.tools, TOKEN: link.token}
    return Start(
        more=("--extension", str(EXTENSION)),
        environment={name: value for name, value in own.items() if value},
    )


CLIENT: Final = Client(
    program="pi",
    install="npm install -g @earendil-works/pi-coding-agent",
    start=start,
    upstreams=own_upstreams,
)
