"""Stands in for a client of `foldline wrap`: named as one, it finds the gateway as that one does.

    claude [OPTIONS] ask ROUNDS CODE    a request for each round, with all that was said; exits with CODE
    claude [OPTIONS] all ROUNDS CODE    before that: what the MCP server offers, and what is told to strangers
    claude [OPTIONS] wait               until a signal comes, which it tells
    claude [OPTIONS] raw                puts the terminal into raw mode and is killed
    claude [OPTIONS] idle               does nothing
    claude [OPTIONS] models             asks which models there are, and calls none

It prints one line of JSON each time it has something to say.
"""

import contextlib
import json
import os
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = Path(sys.argv[0]).name


class Gateway:
    """Where a client of this name finds the gateway and its tools."""

    def __init__(self, arguments: list[str]) -> None:
        self.rest = arguments
        self.url, self.headers = "", dict[str, str]()
        self.tools, self.tool_headers = "", dict[str, str]()
        getattr(self, NAME)()

    def claude(self) -> None:
        self.url = f"{os.environ['ANTHROPIC_BASE_URL']}/v1"
        given = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines()
        self.headers = dict(line.split(": ", 1) for line in given)
        for option in [each for each in self.rest if each.startswith("--")]:
            self.rest.remove(option)
            name, _, value = option.partition("=")
            if name == "--mcp-config":
                server = json.loads(value)["mcpServers"]["foldline"]
                self.tools, self.tool_headers = server["url"], expanded(r"\$\{(\w+)\}", server)

    def codex(self) -> None:
        if self.rest[:2] == ["login", "status"]:
            sys.stderr.write("Logged in using an API key - sk-***\n")
            sys.exit(0)
        while self.rest[:1] == ["-c"]:
            _, given, *self.rest = self.rest
            name, _, value = given.partition("=")
            if name == "openai_base_url":
                self.url = json.loads(value)
            elif name == "mcp_servers.foldline":
                urls = re.findall(r'url="([^"]+)"', value)
                named = re.findall(r'env_http_headers=\{"([^"]+)"="([^"]+)"\}', value)
                self.tools = urls[0]
                self.tool_headers = {header: os.environ[name] for header, name in named}

    def opencode(self) -> None:
        config = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])
        options = config["provider"]["anthropic"]["options"]
        self.url, self.headers = options["baseURL"], expanded(r"\{env:(\w+)\}", options)
        if server := config.get("mcp", {}).get("foldline"):
            self.tools, self.tool_headers = server["url"], expanded(r"\{env:(\w+)\}", server)

    def pi(self) -> None:
        *self.rest, option, extension = self.rest
        assert option == "--extension", option
        assert Path(extension).is_file(), extension
        self.url = f"{os.environ['FOLDLINE_URL']}/v1"
        self.headers = {"x-foldline-token": os.environ["FOLDLINE_TOKEN"]}
        self.tools, self.tool_headers = os.environ.get("FOLDLINE_TOOLS", ""), self.headers

    def post(self, url: str, body: object, headers: Mapping[str, str]) -> Any:
        given = {"content-type": "application/json", "x-api-key": "sk-secret", **headers}
        if NAME == "codex":
            given |= {"authorization": f"Bearer {given.pop('x-api-key')}"}
        data = json.dumps(body).encode()
        request = urllib.request.Request(url, data, given)  # noqa: S310
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return json.loads(answer.read())


def expanded(pattern: str, given: Mapping[str, Any]) -> dict[str, str]:
    def value(found: re.Match[str]) -> str:
        return os.environ[found[1]]

    return {name: re.sub(pattern, value, text) for name, text in given["headers"].items()}


def say(**facts: object) -> None:
    """At once and without a buffer: a signal may come between."""
    os.write(1, json.dumps(facts).encode() + b"\n")


def ask(gateway: Gateway, rounds: str, code: str) -> None:
    history: list[dict[str, Any]] = []
    for number in range(int(rounds)):
        history.append(
            {"role": "user", "content": f"Question {number} of {NAME}. " + "and so on " * 300}
        )
        if NAME == "codex":
            body = {"model": "gpt-5.4", "input": history, "store": False, "instructions": "Answer."}
            answer = gateway.post(f"{gateway.url}/responses", body, gateway.headers)
            text = answer["output"][-1]["content"][0]["text"]
        else:
            body = {"model": "claude-sonnet-4-5", "max_tokens": 1_000, "messages": history}
            headers = {"anthropic-version": "2023-06-01", **gateway.headers}
            answer = gateway.post(f"{gateway.url}/messages", body, headers)
            text = answer["content"][-1]["text"]
        history.append({"role": "assistant", "content": text})
    say(url=gateway.url, rounds=len(history) // 2, answer=history[-1]["content"])
    sys.exit(int(code))


def tools(gateway: Gateway) -> None:
    """What the MCP server offers."""
    if not gateway.tools:
        say(tools=[])
        return
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
        **gateway.tool_headers,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = gateway.post(gateway.tools, body, headers)
    say(tools=[tool["name"] for tool in answer["result"]["tools"]])


def all_of_it(gateway: Gateway, rounds: str, code: str) -> None:
    tools(gateway)
    stranger(gateway)
    ask(gateway, rounds, code)


def stranger(gateway: Gateway) -> None:
    """Asks without the token."""
    base = re.sub(r"(://[^/]+).*", r"\1", gateway.url)
    for url in (f"{base}/v1/messages", f"{base}/foldline/mcp", f"{base}/foldline/savings"):
        try:
            gateway.post(url, {}, {})
        except urllib.error.HTTPError as error:
            say(status=error.code)


def wait(gateway: Gateway) -> None:
    def tell(number: int, _: object) -> None:
        with contextlib.suppress(OSError):  # the terminal is closed
            say(signal=signal.Signals(number).name)
        if number != signal.SIGINT:
            sys.exit(50)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, tell)
    say(pid=os.getpid(), url=gateway.url)
    for _ in range(1200):
        time.sleep(0.1)  # a signal just before a sleep is told after it


def idle(_: Gateway) -> None:
    """Does nothing."""


def models(gateway: Gateway) -> None:
    with contextlib.suppress(urllib.error.HTTPError):
        gateway.post(f"{gateway.url}/v1/models", {}, gateway.headers)


def raw(_: Gateway) -> None:
    import tty

    tty.setraw(sys.stdin)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    found = Gateway(sys.argv[1:])
    verb, *given = found.rest
    globals()[verb.replace("all", "all_of_it")](found, *given)
