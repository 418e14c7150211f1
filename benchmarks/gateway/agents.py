"""Agents with generated sessions, which build each request incrementally, without rebuilding the history."""

import base64
import json
from collections.abc import Sequence
from typing import Any, Final

import attrs

from benchmarks.gateway.clients import CLIENTS, TOKENS_MAX
from benchmarks.gateway.serve import SAY
from benchmarks.material import SYSTEM, TOOLS, Writer
from blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt, text_of
from timeline import model_named
from timeline.fake_provider._reply import Draft
from timeline.fake_provider.wires._anthropic import events
from timeline.fake_provider.wires._wire import event
from timeline.tokens import counter_for

MODEL: Final = "claude-sonnet-5-5"
CLIENT: Final = CLIENTS["claude-code"]
_MARK: Final = {"cache_control": {"type": "ephemeral"}}


@attrs.define
class Agent:
    """Plays a generated session; builds its requests incrementally."""

    number: int
    session: str = attrs.field(init=False)
    _writer: Writer = attrs.field(init=False)
    _messages: list[bytes] = attrs.field(init=False, factory=list[bytes])
    _last: dict[str, Any] = attrs.field(init=False, factory=dict[str, Any])
    _said: dict[str, Any] = attrs.field(init=False, factory=dict[str, Any])
    """The model's answer to the current request."""
    _result: dict[str, Any] = attrs.field(init=False, factory=dict[str, Any])

    def __attrs_post_init__(self) -> None:
        self.session = f"00000000-0000-4000-8000-{self.number:012}"
        self._writer = Writer(seed=self.number)
        self._round()

    def grow(self) -> list[bytes]:
        """Add the answer and what follows it; returns the messages that are now history."""
        added = [json.dumps(message).encode() for message in (self._last, self._said)]
        self._messages += added
        self._last = self._result
        self._round()
        return added

    def _round(self) -> None:
        """Generate the next answer and the result of its call."""
        said = list[dict[str, Any]]()
        for block in self._writer.round():
            match block:
                case UserPrompt(text=text):
                    content = {"type": "text", "text": text}
                    self._last.setdefault("role", "user")
                    self._last["content"] = [*self._last.get("content", ()), content]
                case AssistantCompletion(text=text):
                    said.append({"type": "text", "text": text})
                case ToolCall():
                    call = {"id": block.call_id, "name": block.name, "input": block.input}
                    said.append({"type": "tool_use", **call})
                case ToolResult():
                    result = {"tool_use_id": block.call_id, "content": text_of(block)}
                    self._result = {"role": "user", "content": [{"type": "tool_result", **result}]}
                case _:
                    pass
        self._said = {"role": "assistant", "content": said}

    @property
    def body(self) -> bytes:
        """The body of the current request."""
        *first, last = self._last["content"]
        marked = {"role": "user", "content": [*first, {**last, **_MARK}]}
        messages = b", ".join([*self._messages, json.dumps(marked).encode()])
        return _HEAD + messages + b"]}"

    @property
    def headers(self) -> dict[str, str]:
        """The agent's own headers, and one with the model's answer."""
        said = base64.b64encode(streamed(self._said["content"])).decode()
        plain = {"content-type": "application/json", SAY: said}
        return {**CLIENT.headers(self.session), **plain}


_HEAD: Final = json.dumps(
    {
        "model": MODEL,
        "max_tokens": TOKENS_MAX,
        "stream": True,
        "system": [
            {"type": "text", "text": "You are Claude Code.", **_MARK},
            {"type": "text", "text": SYSTEM, **_MARK},
        ],
        "tools": TOOLS,
        "messages": [],
    }
).encode()[:-2]


def streamed(content: Sequence[dict[str, Any]]) -> bytes:
    """An answer as the provider streams it."""
    drafts = [
        Draft(block=block, text=block.get("text") or json.dumps(block.get("input")))
        for block in content
    ]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 1_000, "output_tokens": 50}
    ended = {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None}
    fixed = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
    message = {**fixed, **ended, "usage": usage, "content": list(content)}
    return b"".join(event(data, data["type"]) for data in events(message, drafts))


def grown(number: int, tokens: int) -> Agent:
    """An agent with a history of that many tokens."""
    agent, counter = Agent(number), counter_for("model", model_named(MODEL))
    counted = 0
    while counted < tokens:
        counted += sum(counter.count(message.decode()) for message in agent.grow())
    return agent
