"""The description of a client, and the arguments and environment with which it is started."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import attrs

TOKEN: Final = "FOLDLINE_TOKEN"  # noqa: S105 -- a name
"""The variable in which a client finds the token; on a command line others could read it."""
HEADER: Final = "x-foldline-token"


@attrs.frozen(kw_only=True)
class Link:
    """The gateway, as a client reaches it."""

    url: str
    """Without a slash at its end."""
    token: str = attrs.field(default="", repr=False)
    tools: str = ""
    """URL of its MCP server; empty: it has none."""
    upstreams: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """By maker: where requests go on to."""


Environment: TypeAlias = Mapping[str, str]


@attrs.frozen(kw_only=True)
class Start:
    """How a client is started."""

    arguments: tuple[str, ...] = ()
    """Before those of the user's."""
    more: tuple[str, ...] = ()
    """Behind them."""
    environment: Environment = attrs.field(factory=dict[str, str])
    """Besides what is there, or in its place."""


@attrs.frozen(kw_only=True)
class Client:
    """One agent."""

    program: str
    install: str
    """The command that installs it."""
    start: Callable[[Link, Environment], Start]
    """Given the link and the user's own environment."""
    upstreams: Callable[[str, Environment], Mapping[str, str]]
    """Given the path of the program and the environment: by maker, where its requests go without a gateway."""


ANTHROPIC: Final = "https://api.anthropic.com"
OPENAI: Final = "https://api.openai.com"


def own_upstreams(_: str, environment: Environment) -> Mapping[str, str]:
    """Where the user's own variables send requests, or else to the makers."""
    return {
        "anthropic": environment.get("ANTHROPIC_BASE_URL") or ANTHROPIC,
        "openai": environment.get("OPENAI_BASE_URL", "").removesuffix("/v1") or OPENAI,
    }
