"""Record the example session: a scripted agent, real tools, a Claude Code log.

    python docs/examples/record.py            # writes docs/examples/invoice-service.jsonl

What the agent and its user say is written by hand (`story.py`); what the tools return is what they
really return on a scratch project (`scratch.py`).  Clock, ids and paths are fixed, so that recording
again gives the same file. No model was called, so the usage of each response is what a provider would have
reported: two characters a token, a system prompt with tools that the log does not have, and a cache that
is kept for five minutes. Needs git and bash; made with Python 3.11.
"""

import datetime as dt
import json
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scratch import HOME, Returned, Scratch
from story import STORY, Call, Pause, Said, Say, User

OUT = Path(__file__).with_name("invoice-service.jsonl")
START = dt.datetime(2026, 3, 11, 9, 2, 0, tzinfo=dt.UTC)
MODEL = "claude-sonnet-5-5"
UNLOGGED = 14_000
"""Tokens of the system prompt and the tools, which Claude Code's logs do not have."""
CHARS_PER_TOKEN = 2
CACHE_SECONDS = 300
SESSION = str(uuid.UUID(int=0x1D0C5))


class Recorder:
    """Plays the story and writes it down line by line."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        self.now = START
        self.lines = 0
        self.responses = 0
        self.calls = 0
        self.parent: str | None = None
        self.prompt = UNLOGGED
        self.cached, self.cached_at = 0, START

    def play(self) -> Iterator[str]:
        """The lines of the log."""
        for step in STORY:
            match step:
                case User(text):
                    self.wait(45 + len(text) / 8)
                    self.prompt += len(text) // CHARS_PER_TOKEN
                    yield self.line("user", message={"role": "user", "content": text})
                case Pause(minutes):
                    self.wait(60 * minutes)
                case Say():
                    yield from self.respond(step)

    def respond(self, say: Say) -> Iterator[str]:
        """One response, a line for each of its blocks; then the results of its calls."""
        self.responses += 1
        response = f"msg_{self.responses:04d}"
        usage = self.usage(say)
        self.wait(2.5 + len(say.text) / 60)
        if say.text:
            yield self.assistant(response, {"type": "text", "text": say.text}, usage)
        called: list[tuple[str, Call]] = []
        for call in say.calls:
            self.calls += 1
            called.append((f"toolu_{self.calls:04d}", call))
            self.wait(0.8 + sum(len(str(value)) for value in call.input.values()) / 200)
            content = {"type": "tool_use", "id": called[-1][0], "name": call.tool}
            yield self.assistant(response, {**content, "input": call.input}, usage)
        for call_id, call in called:
            returned = run(self.scratch, call)
            self.wait(0.4 + len(returned.text) / 9000 + 1.5 * (call.tool == "Bash"))
            self.prompt += len(returned.text) // CHARS_PER_TOKEN
            yield self.result(call_id, returned)
        if say.steer:
            self.prompt += len(say.steer) // CHARS_PER_TOKEN
            said: Said = {"type": "queued_command", "prompt": say.steer}
            yield self.line("attachment", attachment=said)

    def usage(self, say: Say) -> dict[str, int]:
        """The usage of a response to the prompt so far; the response is part of the next prompt."""
        is_cold = (self.now - self.cached_at).total_seconds() > CACHE_SECONDS
        read = 0 if is_cold else self.cached
        calls = (json.dumps(call.input, ensure_ascii=False) for call in say.calls)
        output = sum(map(len, (say.text, *calls))) // CHARS_PER_TOKEN
        usage = {
            "input_tokens": 4,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": self.prompt - read,
            "output_tokens": output,
        }
        self.cached, self.cached_at = self.prompt, self.now
        self.prompt += output
        return usage

    def assistant(self, response: str, content: dict[str, Any], usage: dict[str, int]) -> str:
        """A line with one block of a response."""
        message = {"id": response, "model": MODEL, "role": "assistant", "content": [content]}
        return self.line("assistant", message={**message, "usage": usage})

    def result(self, call_id: str, returned: Returned) -> str:
        """A line with what a tool returned."""
        content: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
        content["content"] = returned.text
        if returned.is_error:
            content["is_error"] = True
        return self.line("user", message={"role": "user", "content": [content]})

    def line(self, kind: str, **fields: Any) -> str:
        """One line of the log."""
        self.lines += 1
        parent, self.parent = self.parent, str(uuid.UUID(int=self.lines))
        stamp = self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        about = {
            "type": kind,
            "uuid": self.parent,
            "parentUuid": parent,
            "sessionId": SESSION,
            "timestamp": stamp,
            "cwd": HOME,
            "isSidechain": False,
        }
        return json.dumps({**about, **fields}, ensure_ascii=False)

    def wait(self, seconds: float) -> None:
        """Move the clock."""
        self.now += dt.timedelta(milliseconds=round(seconds * 1000))


def run(scratch: Scratch, call: Call) -> Returned:
    """What the tool really returns."""
    given = call.input
    match call.tool:
        case "Bash":
            return scratch.bash(given["command"])
        case "Read":
            return scratch.read(given["file_path"])
        case "Write":
            return scratch.write(given["file_path"], given["content"])
        case "Edit":
            return scratch.edit(given["file_path"], given["old_string"], given["new_string"])
        case "Grep":
            return scratch.grep(given["pattern"], given["path"])
        case other:
            raise ValueError(f"the agent has no tool {other}")


def main() -> None:
    """Record into the file beside this script, or into the one that is named."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Scratch(Path(folder)))
        text = "".join(line + "\n" for line in recorder.play())
    out.write_text(text, encoding="utf-8")
    print(f"{out}: {recorder.responses} responses, {recorder.calls} tool calls, {len(text)} chars")


if __name__ == "__main__":
    main()
