"""Builds the requests of agents: the full history in the format of their API, with their marks and headers."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Final

import attrs

from persistence.sessions import Session
from render import Json, Rendered

KEY: Final = "sk-test-0123456789-never-stored"
"""The clients' API key, which no component of ours may store."""
TOKENS_MAX: Final = 32_000
_MARK: Final = {"cache_control": {"type": "ephemeral"}}
_NAME: Final = "You are Claude Code, Anthropic's official CLI for Claude."


@attrs.frozen(kw_only=True)
class Client:
    """One agent, as a server sees its requests."""

    name: str
    provider: str
    """The provider whose API it uses, as in `Model.provider`."""
    path: str
    body: Callable[[Rendered, str], Json]
    """Builds its request from the full history and its session id."""
    headers: Callable[[str], Mapping[str, str]]
    """Its headers, from its session id."""
    last_event: bytes = b"event: message_stop"
    """The event that ends a complete stream."""

    def system(self, text: str) -> list[Json]:
        """The system prompt as the agent sends it, also for the other engines."""
        texts = [_NAME, text] if self.name == "claude-code" else [text]
        return [{"type": "text", "text": one} for one in texts]

    def request(self, full: Rendered, session: str) -> bytes:
        """The body of a request."""
        return json.dumps(self.body(full, session), ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )


def client_of(session: Session) -> "Client":
    """The client that sends a session; unknown agents are sent without an identity."""
    return CLIENTS.get(session.format, CLIENTS["pi"])


def id_of(session: Session) -> str:
    """A session id, the same each time the session is played."""
    digest = sha256(session.name.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def _claude_code(full: Rendered, session: str) -> Json:
    """Two marks in the system prompt, one on the last block."""
    return {
        **_messages(full, [_marked(block) for block in full.system]),
        "metadata": {"user_id": f"user_0_account__session_{session}"},
    }


def _pi(full: Rendered, session: str) -> Json:  # noqa: ARG001 -- it has no identity
    """Marks on the system prompt and on the last message."""
    *first, last = full.system
    return _messages(full, [*map(_plain, first), _marked(last)])


def _messages(full: Rendered, system: Sequence[Json]) -> Json:
    """A request to Anthropic; in the conversation, only the last block is marked."""
    messages = [
        {**message, "content": [_plain(block) for block in message["content"]]}
        for message in full.messages
    ]
    messages[-1]["content"][-1] = _marked(messages[-1]["content"][-1])
    return {
        "model": full.model,
        "max_tokens": TOKENS_MAX,
        "stream": True,
        "system": list(system),
        "tools": [_plain(tool) for tool in full.tools],
        "messages": messages,
    }


def _codex(full: Rendered, session: str) -> Json:
    """A stateless request, with a separate system prompt, and arguments of calls as the server wrote them."""
    request = full.request()
    developer, *items = request["input"]
    return {
        "model": full.model,
        "instructions": "".join(part["text"] for part in developer["content"]),
        "input": [_item(item) for item in items],
        "tools": request.get("tools", []),
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": session,
    }


def _item(item: Json) -> Json:
    if "arguments" not in item:
        return item
    arguments = json.loads(item["arguments"])
    written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return {**item, "arguments": written}


def _plain(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _marked(block: Json) -> Json:
    return {**block, **_MARK}


def _anthropics(session: str) -> dict[str, str]:  # noqa: ARG001 -- pi has no identity
    return {"x-api-key": KEY, "anthropic-version": "2023-06-01"}


def _claude_codes(session: str) -> dict[str, str]:
    return {
        "authorization": f"Bearer {KEY}",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14",
        "user-agent": "claude-cli/2.1.0 (external, sdk-cli)",
        "x-app": "cli",
        "x-claude-code-session-id": session,
    }


def _codexs(session: str) -> dict[str, str]:
    return {
        "authorization": f"Bearer {KEY}",
        "originator": "codex_exec",
        "session-id": session,
        "thread-id": session,
        "x-codex-window-id": f"{session}:0",
    }


def _opencodes(session: str) -> dict[str, str]:
    return {**_anthropics(session), "x-session-id": session}


_PATH: Final = "/v1/messages"
CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            provider="anthropic",
            path=f"{_PATH}?beta=true",
            body=_claude_code,
            headers=_claude_codes,
        ),
        Client(
            name="codex",
            provider="openai.responses",
            path="/v1/responses",
            body=_codex,
            headers=_codexs,
            last_event=b"event: response.completed",
        ),
        Client(name="pi", provider="anthropic", path=_PATH, body=_pi, headers=_anthropics),
        Client(name="opencode", provider="anthropic", path=_PATH, body=_pi, headers=_opencodes),
    )
}
"""The clients, by their names in recorded sessions."""
