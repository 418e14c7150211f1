"""Record the example session: a scripted agent, real tools, a Claude Code log.

    python docs/examples/record.py            # writes docs/examples/invoice-service.jsonl

What the agent and its user say is written by hand (`story.py`); what the tools return is what they
really return on a scratch project (`scratch.py`).  Clock, ids and paths are fixed, so that recording
again gives the same file. Needs git and bash; made with Python 3.11.
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

    def play(self) -> Iterator[str]:
        """The lines of the log."""
        for step in STORY:
            match step:
                case User(text):
                    self.wait(45 + len(text) / 8)
                    yield self.line("user", message={"role": "user", "content": text})
                case Pause(minutes):
                    self.wait(60 * minutes)
                case Say():
                    yield from self.respond(step)

    def respond(self, say: Say) -> Iterator[str]:
        """One response, a line for each of its blocks; then the results of its calls."""
        self.responses += 1
        response = f"msg_{self.responses:04d}"
        self.wait(2.5 + len(say.text) / 60)
        if say.text:
            yield self.assistant(response, {"type": "text", "text": say.text})
        called: list[tuple[str, Call]] = []
        for call in say.calls:
            self.calls += 1
            called.append((f"toolu_{self.calls:04d}", call))
            self.wait(0.8 + sum(len(str(value)) for value in call.input.values()) / 200)
            content = {"type": "tool_use", "id": called[-1][0], "name": call.tool}
            yield self.assistant(response, {**content, "input": call.input})
        for call_id, call in called:
            returned = run(self.scratch, call)
            self.wait(0.4 + len(returned.text) / 9000 + 1.5 * (call.tool == "Bash"))
            yield self.result(call_id, returned)
        if say.steer:
            said: Said = {"type": "queued_command", "prompt": say.steer}
            yield self.line("attachment", attachment=said)

    def assistant(self, response: str, content: dict[str, Any]) -> str:
        """A line with one block of a response."""
        message = {"id": response, "model": MODEL, "role": "assistant", "content": [content]}
        return self.line("assistant", message=message)

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
