"""The agents that can be run through a gateway: the arguments and environment with which each is started so that its
requests go to the gateway, without any change of its own configuration.
"""

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import MisuseError
from blocks.formats import obj

TOKEN: Final = "FOLDLINE_TOKEN"  # noqa: S105 -- a name
"""The environment variable with the token for a client; on a command line, other users could read the token."""
HEADER: Final = "x-foldline-token"
VENDORS: Final[Mapping[str, str]] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
}
"""The vendors' own servers."""
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")
Environment: TypeAlias = Mapping[str, str]


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

    @property
    def variables(self) -> dict[str, str]:
        """The environment variable with the token; empty if there is no token."""
        return {TOKEN: self.token} if self.token else {}


@attrs.frozen(kw_only=True)
class Start:
    """The arguments and environment variables with which a client is started."""

    arguments: tuple[str, ...] = ()
    """Arguments before the user's own."""
    more: tuple[str, ...] = ()
    """Arguments after the user's own."""
    environment: Environment = attrs.field(factory=dict[str, str])
    """Variables that are added to the user's environment, or replace variables in it."""


def own_upstreams(_: str, environment: Environment) -> Mapping[str, str]:
    """The servers in the user's environment variables, or else the vendors' own; without the version of the API, which
    some clients want at the end."""
    variables = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
    urls = {maker: environment.get(name, "").rstrip("/") for maker, name in variables.items()}
    return {maker: url.removesuffix("/v1") or VENDORS[maker] for maker, url in urls.items()}


@attrs.frozen(kw_only=True)
class Client:
    """An agent that can be run through the gateway."""

    program: str
    install: str
    """The command that installs it."""
    start: Callable[[Link, Environment], Start]
    """Takes the link and the user's environment; returns how to start the client."""
    upstreams: Callable[[str, Environment], Mapping[str, str]] = own_upstreams
    """Takes the program's path and the user's environment; returns the servers that the client would use without a
    gateway, by vendor."""


def past_proxies(environment: Environment) -> Environment:
    """The variables with which a client reaches this machine without the user's proxy, which could not find the
    gateway. Clients read one of the two or the other, with commas or blanks between the names, so both get what the
    user has set, and keep its form."""
    variables = dict[str, str]()
    for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")):
        own = environment.get(name, "").strip() or environment.get(other, "").strip()
        hosts = re.split(r"[,\s]+", own)
        more = [] if "*" in hosts else [each for each in LOOPBACK_NAMES if each not in hosts]
        separator = " " if " " in own and "," not in own else ","
        variables[name] = separator.join(filter(None, [own, *more]))
    return variables


# Claude Code: two variables, and an MCP server on its command line.

_CLAUDE_HEADERS: Final = "ANTHROPIC_CUSTOM_HEADERS"
_FIRST_PARTY: Final = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
"""Makes the client behave as with the vendor's own URL; otherwise it does not use a window of a million tokens, for
example."""


def _claude(link: Link, environment: Environment) -> Start:
    """Options are joined to their values by `=`; otherwise the client would read the user's prompt as a further value.
    The MCP server's tools are allowed without asking, because they only read what the user's own agents have stored."""
    own = {"ANTHROPIC_BASE_URL": link.url, **link.variables}
    if link.upstreams["anthropic"].rstrip("/") == VENDORS["anthropic"]:
        own[_FIRST_PARTY] = "1"
    if link.token:
        own_headers = environment.get(_CLAUDE_HEADERS, "").strip()
        own[_CLAUDE_HEADERS] = f"{own_headers}\n{HEADER}: {link.token}".strip()
    if not link.tools:
        return Start(environment=own)
    headers = {HEADER: f"${{{TOKEN}}}"} if link.token else {}
    server = {"type": "http", "url": link.tools, "headers": headers}
    config = json.dumps({"mcpServers": {"foldline": server}})
    arguments = (f"--mcp-config={config}", "--allowedTools=mcp__foldline")
    return Start(arguments=arguments, environment=own)


# Codex: overrides of its configuration on its command line. It keeps its own provider, at another URL, so it logs in as
# before, and a session can be resumed with or without the gateway.

CHATGPT: Final = "https://chatgpt.com"
_SUBSCRIPTION: Final = "/backend-api/codex"
"""The path that replaces /v1 for users logged in with ChatGPT."""
_LOGIN_SECONDS_MAX: Final = 20.0


def _codex(link: Link, _: Environment) -> Start:
    """The URL has the same path as the vendor's own, and contains the token, because Codex cannot send a further
    header to this provider."""
    token = f"/token/{link.token}" if link.token else ""
    path = _SUBSCRIPTION if link.upstreams["openai"].rstrip("/") == CHATGPT else "/v1"
    settings = [f"openai_base_url={json.dumps(link.url + token + path)}"]
    if link.tools:
        server = f"url={json.dumps(link.tools)}"
        if link.token:
            server += f",env_http_headers={{{json.dumps(HEADER)}={json.dumps(TOKEN)}}}"
        settings.append(f"mcp_servers.foldline={{{server}}}")
    arguments = tuple(part for setting in settings for part in ("-c", setting))
    return Start(arguments=arguments, environment=link.variables)


def _codex_upstreams(program: str, environment: Environment) -> Mapping[str, str]:
    """As for other clients; requests of users logged in with ChatGPT go to another server."""
    own = own_upstreams(program, environment)
    try:
        status = subprocess.run(  # noqa: S603 -- the user's own client
            [program, "login", "status"],
            env={**environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=_LOGIN_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return own
    has_subscription = "ChatGPT" in status.stdout + status.stderr
    return {**own, "openai": CHATGPT} if has_subscription else own


# opencode: a configuration in an environment variable, which overrides its files.

_OPENCODE: Final = "OPENCODE_CONFIG_CONTENT"


def _opencode(link: Link, environment: Environment) -> Start:
    """The configuration that the user has in the variable is kept and extended.

    Raises:
        MisuseError: the variable holds no JSON.
    """
    headers = {HEADER: f"{{env:{TOKEN}}}"} if link.token else {}
    provider = {"options": {"baseURL": f"{link.url}/v1", "headers": headers}}
    config: dict[str, Any] = {"provider": {"anthropic": provider, "openai": provider}}
    if link.tools:
        server = {"type": "remote", "url": link.tools, "headers": headers, "oauth": False}
        config["mcp"] = {"foldline": server}
    try:
        own: Any = json.loads(environment.get(_OPENCODE) or "{}")
    except ValueError as error:
        raise MisuseError(
            f"${_OPENCODE} is not valid JSON ({error}); correct or unset it: the gateway adds its own"
            " settings to it"
        ) from error
    return Start(environment={_OPENCODE: json.dumps(_merged(obj(own), config)), **link.variables})


def _merged(own: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Nested objects are merged; for other values, `more` wins."""
    result = dict(own)
    for name, value in more.items():
        inner = result.get(name)
        if isinstance(value, dict) and isinstance(inner, dict):
            result[name] = _merged(cast("dict[str, Any]", inner), cast("dict[str, Any]", value))
        else:
            result[name] = value
    return result


# pi: an extension on its command line, which reads its settings from environment variables.

PI_EXTENSION: Final = Path(__file__).with_name("pi_extension.mjs")


def _pi(link: Link, _: Environment) -> Start:
    """The extension redirects two providers, and adds the MCP server's tools, because pi does not support MCP. It
    must be the last argument: after an option, pi would read the name of a command as a prompt."""
    variables = {"FOLDLINE_URL": link.url, "FOLDLINE_TOOLS": link.tools, TOKEN: link.token}
    return Start(
        more=("--extension", str(PI_EXTENSION)),
        environment={name: value for name, value in variables.items() if value},
    )


_NPM: Final = "npm install -g "
CLIENTS: Final[Mapping[str, Client]] = {
    "claude": Client(program="claude", install=f"{_NPM}@anthropic-ai/claude-code", start=_claude),
    "codex": Client(
        program="codex", install=f"{_NPM}@openai/codex", start=_codex, upstreams=_codex_upstreams
    ),
    "opencode": Client(program="opencode", install=f"{_NPM}opencode-ai", start=_opencode),
    "pi": Client(program="pi", install=f"{_NPM}@earendil-works/pi-coding-agent", start=_pi),
}
