"""The description of a client, and the arguments and environment with which it is started."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import attrs

TOKEN: Final = "FOLDLINE_TOKEN"  # noqa: S105 -- a name
"""The environment variable with the token for a client; on a command line, other users could read the token."""
HEADER: Final = "x-foldline-token"


@attrs.frozen(kw_only=True)
class Link:
    """The URLs and the token with which a client reaches the gateway."""

    url: str
    """The gateway's URL without a slash at the end."""
    token: str = attrs.field(default="", repr=False)
    tools: str = ""
    """The URL of the gateway's MCP server; empty: there is none."""
    upstreams: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """The servers to which the gateway forwards requests, by vendor."""


Environment: TypeAlias = Mapping[str, str]


@attrs.frozen(kw_only=True)
class Start:
    """The arguments and environment variables with which a client is started."""

    arguments: tuple[str, ...] = ()
    """Arguments before the user's own."""
    more: tuple[str, ...] = ()
    """Arguments after the user's own."""
    environment: Environment = attrs.field(factory=dict[str, str])
    """Variables that are added to the user's environment, or replace variables in it."""


@attrs.frozen(kw_only=True)
class Client:
    """An agent that can be run through the gateway."""

    program: str
    install: str
    """The command that installs it."""
    start: Callable[[Link, Environment], Start]
    """Takes the link and the user's environment; returns how to start the client."""
    upstreams: Callable[[str, Environment], Mapping[str, str]]
    """Takes the program's path and the user's environment; returns the servers that the client would use without a
    gateway, by vendor."""


ANTHROPIC: Final = "https://api.anthropic.com"
OPENAI: Final = "https://api.openai.com"


def own_upstreams(_: str, environment: Environment) -> Mapping[str, str]:
    """The servers in the user's environment variables, or else the vendors' own; without the version of the API, which
    some clients want at the end."""
    given = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
    named = {maker: environment.get(name, "").rstrip("/") for maker, name in given.items()}
    vendors = {"anthropic": ANTHROPIC, "openai": OPENAI}
    return {maker: url.removesuffix("/v1") or vendors[maker] for maker, url in named.items()}


LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")


def past_proxies(environment: Environment) -> Environment:
    """The variables with which a client reaches this machine without the user's proxy, which could not find the
    gateway. Clients read one of the two or the other, with commas or blanks between the names, so both get what the
    user has set, and keep its form."""
    found = dict[str, str]()
    for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")):
        given = environment.get(name, "").strip() or environment.get(other, "").strip()
        known = re.split(r"[,\s]+", given)
        more = [] if "*" in known else [each for each in LOOPBACK_NAMES if each not in known]
        separator = " " if " " in given and "," not in given else ","
        found[name] = separator.join(filter(None, [given, *more]))
    return found
