"""The APIs whose requests are re-rendered, and the headers with which clients name their sessions."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from blocks.formats import Format


@attrs.frozen(kw_only=True)
class Api:
    """One API: the path of its requests, and the field with the conversation."""

    provider: Format
    path: str
    """The end of the path of its requests."""
    said: str
    """The field with the conversation."""
    prompt: str = ""
    """The field with the system prompt; empty: it is part of the conversation."""
    counts: str = ""
    """The end of the path of requests that only count tokens; empty: there is none."""


APIS: Final = (
    Api(
        provider="anthropic",
        path="/messages",
        said="messages",
        prompt="system",
        counts="/messages/count_tokens",
    ),
    Api(
        provider="openai.responses",
        path="/responses",
        said="input",
        prompt="instructions",
        counts="/responses/input_tokens",
    ),
    Api(provider="openai.chat", path="/chat/completions", said="messages"),
)
VERSION: Final = "/v1"
"""What the paths of these APIs begin with, unless the client takes it to be part of its base URL."""
BARE: Final = frozenset({"models", *(api.path.split("/")[1] for api in APIS)})
"""What paths begin with otherwise."""
ANTHROPIC_HEADERS: Final = ("anthropic-version", "x-api-key")
"""Headers that only Anthropic's clients send; they identify the API of a path that both vendors have."""


def api_at(path: str) -> Api | None:
    """The API whose requests go to this path; None: there is none."""
    return next((api for api in APIS if path.endswith(api.path)), None)


def counting_at(path: str) -> Api | None:
    """The API that counts tokens at this path; None: there is none."""
    return next((api for api in APIS if api.counts and path.endswith(api.counts)), None)


def maker_of(path: str, headers: Mapping[str, str]) -> str:
    """The vendor of a path: `anthropic` or `openai`."""
    is_anthropics = any(name in headers for name in ANTHROPIC_HEADERS)
    return "anthropic" if is_anthropics or "/messages" in path else "openai"


@attrs.frozen(kw_only=True)
class Speaker:
    """The sender of a request, as far as its headers name it."""

    client: str = "agent"
    session: str = ""
    agent: str = ""
    """The agent within the session; empty: the main agent."""

    @property
    def name(self) -> str:
        """The prefix of the names of its timelines."""
        return "-".join(part for part in (self.client, self.session, self.agent) if part)


@attrs.frozen
class _Headers:
    client: str
    session: str
    agent: str = ""


_SESSIONS: Final = (
    _Headers("claude-code", "x-claude-code-session-id", "x-claude-code-agent-id"),
    _Headers("codex", "session-id", "thread-id"),
    _Headers("codex", "session_id", "conversation_id"),
    _Headers("opencode", "x-session-id"),
    _Headers("opencode", "x-opencode-session"),
)
LENGTH_MAX: Final = 80
"""Largest number of characters of a timeline's name that come from one header."""


def speaker_of(headers: Mapping[str, str]) -> Speaker:
    """The sender of a request with these headers (lower case)."""
    for known in _SESSIONS:
        if session := _word(headers.get(known.session)):
            agent = _word(headers.get(known.agent))
            own = agent if agent != session else ""
            return Speaker(client=known.client, session=session, agent=own)
    return Speaker()


def _word(value: Any) -> str:
    text = str(value or "")[:LENGTH_MAX]
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)
