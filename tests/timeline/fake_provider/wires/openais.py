"""What the suites of OpenAI's two APIs share."""

from typing import Any

import openai
import pytest

from timeline import overflow_in
from timeline.fake_provider import Call, FakeServer, Reply

MODEL = "gpt-5.6"
TOOL: dict[str, Any] = {
    "name": "read_file",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}
REPLY = Reply(
    thinking="The log may tell. " * 10,
    text="I look at the log, at both of them, first one and then the other.",
    calls=[Call("read_file", {"path": "log/1.txt"}), Call("read_file", {"path": "лог/2.txt"})],
)
PATHS = ["log/1.txt", "лог/2.txt"]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"task": {"type": "string"}, "facts": {"type": "array"}},
}


def refused_as(server: FakeServer, error: pytest.ExceptionInfo[openai.APIStatusError]) -> str:
    """The code of a refusal, which the server has noted."""
    assert server.refused
    return str(error.value.code)


def is_overflow(error: BaseException) -> tuple[int | None, int | None]:
    """What an error says of a prompt that is too long."""
    overflow = overflow_in(error)
    assert overflow is not None
    return overflow.tokens, overflow.tokens_max
