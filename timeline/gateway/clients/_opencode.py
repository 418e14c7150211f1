"""opencode: a configuration in an environment variable, which overrides its files."""

import json
from typing import Any, Final, cast

from blocks import MisuseError
from timeline.gateway.clients._client import (
    HEADER,
    TOKEN,
    Client,
    Environment,
    Link,
    Start,
    own_upstreams,
)

VARIABLE: Final = "OPENCODE_CONFIG_CONTENT"


def start(link: Link, environment: Environment) -> Start:
    """The configuration that the user has in the variable is kept and extended.

    Raises:
        MisuseError: the user's configuration is not a JSON object.
    """
    headers = {HEADER: f"{{env:{TOKEN}}}"} if link.token else {}
    provider = {"options": {"baseURL": f"{link.url}/v1", "headers": headers}}
    config: dict[str, Any] = {"provider": {"anthropic": provider, "openai": provider}}
    if link.tools:
        server = {"type": "remote", "url": link.tools, "headers": headers, "oauth": False}
        config["mcp"] = {"foldline": server}
    given = _given(environment.get(VARIABLE) or "{}")
    own = {VARIABLE: json.dumps(_merged(given, config))}
    return Start(environment={**own, **({TOKEN: link.token} if link.token else {})})


def _given(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise MisuseError(
            f"${VARIABLE} is not valid JSON ({error}); correct or unset it: the gateway adds its own settings to it"
        ) from error
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _merged(given: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Nested objects are merged; for other values, `more` wins."""
    result = dict(given)
    for name, value in more.items():
        own = result.get(name)
        if isinstance(value, dict) and isinstance(own, dict):
            result[name] = _merged(cast("dict[str, Any]", own), cast("dict[str, Any]", value))
        else:
            result[name] = value
    return result


CLIENT: Final = Client(
    program="opencode",
    install="npm install -g opencode-ai",
    start=start,
    upstreams=own_upstreams,
)
