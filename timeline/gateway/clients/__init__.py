"""The agents that can be run through a gateway, one module each: the arguments and environment with which an agent is
started so that its requests go to the gateway, without any change of its own configuration.
"""

from collections.abc import Mapping
from typing import Final

from timeline.gateway.clients import _claude, _codex, _opencode, _pi
from timeline.gateway.clients._client import HEADER as HEADER
from timeline.gateway.clients._client import TOKEN as TOKEN
from timeline.gateway.clients._client import Client as Client
from timeline.gateway.clients._client import Link as Link
from timeline.gateway.clients._client import Start as Start
from timeline.gateway.clients._client import past_proxies as past_proxies

CLIENTS: Final[Mapping[str, Client]] = {
    "claude": _claude.CLIENT,
    "codex": _codex.CLIENT,
    "opencode": _opencode.CLIENT,
    "pi": _pi.CLIENT,
}
