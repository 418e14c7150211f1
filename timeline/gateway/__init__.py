"""The gateway: an HTTP server between an unchanged agent and its provider.

    with GatewayServer(Gateway(store="agent.duckdb")) as server:
        print(server.url)  # ANTHROPIC_BASE_URL of Claude Code, say

The agent still sends its full history, the gateway sends the provider what the timeline renders, and the answer streams
back untouched.  Needs the extra `foldline[gateway]`.
"""

from timeline.gateway._gateway import Gateway, GatewayServer

__all__ = ["Gateway", "GatewayServer"]

# For the rooms of this house; not public.
from timeline.gateway._reader import PATH as PATH
from timeline.gateway._reader import StoreReader as StoreReader
from timeline.gateway._reader import serve_stdio as serve_stdio
