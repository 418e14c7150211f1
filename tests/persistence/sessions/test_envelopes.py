"""Foreign results have no envelope: every importer gives them one that follows their tool."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import pytest

from blocks import Determinism, Envelope, ToolCall, ToolResult
from persistence.sessions import Session, read_session
from persistence.sessions._read import FORMATS
from tests._table import for_each

Json = dict[str, Any]
ASKED, ANSWERED = 1767225602.0, 1767225605.0
"""When the call and its result are logged, in logs that say so: at :02 and :05."""


@attrs.frozen
class Sample:
    """One call and its result."""

    name: str
    input: Json
    output: str = "ok"


def at(second: int) -> Json:
    return {"timestamp": f"2026-01-01T00:00:{second:02}Z"}


def text(value: str) -> list[Json]:
    return [{"type": "text", "text": value}]


# The sample as each agent logs it: lines, or one document.


def claude_code(sample: Sample) -> list[Json]:
    used = {"type": "tool_use", "id": "c1", "name": sample.name, "input": sample.input}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": sample.output}
    answer = {"id": "m1", "role": "assistant", "model": "claude-x", "content": [used]}
    return [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "go"}, **at(1)},
        {"type": "assistant", "uuid": "a1", "message": answer, **at(2)},
        {"type": "user", "uuid": "u2", "message": {"role": "user", "content": [result]}, **at(5)},
    ]


def codex(sample: Sample) -> list[Json]:
    arguments = json.dumps(sample.input)
    call = {"type": "function_call", "name": sample.name, "arguments": arguments, "call_id": "c1"}
    output = {"type": "function_call_output", "call_id": "c1", "output": sample.output}
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    items = ((1, asked), (2, call), (5, output))
    return [{"type": "response_item", "payload": payload, **at(n)} for n, payload in items]


def pi(sample: Sample) -> list[Json]:
    call = {"type": "toolCall", "id": "c1", "name": sample.name, "arguments": sample.input}
    result = {"role": "toolResult", "toolCallId": "c1", "content": text(sample.output)}
    messages = (
        (1, {"role": "user", "content": "go"}),
        (2, {"role": "assistant", "content": [call], "model": "m"}),
        (5, result),
    )
    header = {"type": "session", "id": "s", **at(0)}
    return [header, *({"type": "message", "message": m, **at(n)} for n, m in messages)]


def gemini(sample: Sample) -> list[Json]:
    result = [{"functionResponse": {"id": "c1", "response": {"output": sample.output}}}]
    call = {"id": "c1", "name": sample.name, "args": sample.input, "result": result, **at(5)}
    return [
        {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z"},
        {"id": "u1", "type": "user", "content": "go", **at(1)},
        {"id": "g1", "type": "gemini", "content": "", "toolCalls": [call], **at(2)},
    ]


def chat(sample: Sample) -> list[Json]:
    function = {"name": sample.name, "arguments": json.dumps(sample.input)}
    calls = [{"id": "c1", "type": "function", "function": function}]
    return [
        {"role": "user", "content": "go", **at(1)},
        {"role": "assistant", "content": "I look.", "tool_calls": calls, **at(2)},
        {"role": "tool", "tool_call_id": "c1", "content": sample.output, **at(5)},
    ]


def anthropic(sample: Sample) -> list[Json]:
    return [{**line["message"], "timestamp": line["timestamp"]} for line in claude_code(sample)]


def mini(sample: Sample) -> Json:
    messages = [
        {**message, "extra": {"timestamp": message["timestamp"]}} for message in chat(sample)
    ]
    return {"trajectory_format": "mini-swe-agent-1.1", "messages": messages}


def swe(sample: Sample) -> Json:
    history = [{**message, "tool_call_ids": ["c1"]} for message in chat(sample)]
    return {"trajectory": [], "history": history}


def tau(sample: Sample) -> list[Json]:
    return [{"task_id": 1, "traj": chat(sample)}]


def inspect(sample: Sample) -> Json:
    user, answer, result = chat(sample)
    call = {"id": "c1", "function": sample.name, "arguments": sample.input}
    messages = [user, {**answer, "tool_calls": [call]}, result]
    return {"eval": {"model": "m"}, "samples": [{"messages": messages}]}


def openhands(sample: Sample) -> list[Json]:
    function = {"name": sample.name, "arguments": json.dumps(sample.input)}
    calls = [{"id": "c1", "function": function}]
    response = {"id": "r1", "choices": [{"message": {"content": "", "tool_calls": calls}}]}
    known = {"function_name": sample.name, "tool_call_id": "c1", "model_response": response}
    agent = {"source": "agent"}
    return [
        {"id": 1, "source": "user", "action": "message", "args": {"content": "go"}, **at(1)},
        {"id": 2, **agent, "action": "x", "args": {}, "tool_call_metadata": known, **at(2)},
        {"id": 3, **agent, "observation": "x", "content": sample.output, "cause": 2, **at(5)},
    ]


def openhands_v1(sample: Sample) -> list[Json]:
    call = {"id": "c1", "name": sample.name, "arguments": json.dumps(sample.input)}
    named = {"tool_name": sample.name, "tool_call_id": "c1"}
    observation = {"content": text(sample.output)}
    message = {"role": "user", "content": text("go")}
    return [
        {"kind": "MessageEvent", "source": "user", "llm_message": message, **at(1)},
        {"kind": "ActionEvent", "source": "agent", "tool_call": call, **named, **at(2)},
        {"kind": "ObservationEvent", "observation": observation, **named, **at(5)},
    ]


def messages(sample: Sample) -> list[Json]:
    """Anthropic's messages."""
    return [line["message"] for line in claude_code(sample)]


def copilot(sample: Sample) -> list[Json]:
    request = {"toolCallId": "c1", "name": sample.name, "arguments": sample.input}
    events = (
        (1, "user.message", {"content": "go"}),
        (2, "assistant.message", {"content": "", "toolRequests": [request]}),
        (5, "tool.execution_complete", {"toolCallId": "c1", "result": {"content": sample.output}}),
    )
    return [{"type": kind, "data": data, **at(n)} for n, kind, data in events]


def cursor(sample: Sample) -> list[Json]:
    lines = zip((1, 2, 5), messages(sample), strict=True)
    return [{"role": m["role"], "message": {"content": m["content"]}, **at(n)} for n, m in lines]


def droid(sample: Sample) -> list[Json]:
    lines = zip((1, 2, 5), messages(sample), strict=True)
    return [{"type": "message", "message": message, **at(n)} for n, message in lines]


def grok(sample: Sample) -> list[Json]:
    call = {"id": "c1", "name": sample.name, "arguments": json.dumps(sample.input)}
    return [
        {"type": "user", "content": text("go")},
        {"type": "assistant", "content": "", "tool_calls": [call], "model_id": "m"},
        {"type": "tool_result", "tool_call_id": "c1", "content": sample.output},
    ]


def kimi(sample: Sample) -> list[Json]:
    call = {"toolCallId": "c1", "name": sample.name, "args": sample.input, "stepUuid": "s"}
    result = {"toolCallId": "c1", "result": {"output": sample.output}}
    appended = (
        (1, "message", {"message": {"role": "user", "content": text("go")}}),
        (2, "loop_event", {"event": {"type": "tool.call", **call}}),
        (5, "loop_event", {"event": {"type": "tool.result", **result}}),
    )
    return [
        {"type": f"context.append_{kind}", **fields, "time": at(n)["timestamp"]}
        for n, kind, fields in appended
    ]


def milliseconds(second: int) -> int:
    return int((ASKED - 2 + second) * 1000)


def opencode(sample: Sample) -> Json:
    times = {"start": milliseconds(2), "end": milliseconds(5)}
    state = {"status": "completed", "input": sample.input, "output": sample.output, "time": times}
    part = {"type": "tool", "callID": "c1", "tool": sample.name, "state": state}
    asked = {"id": "m1", "role": "user", "time": {"created": milliseconds(1)}}
    answer = {"id": "m2", "role": "assistant", "time": {"created": milliseconds(2)}}
    return {
        "messages": [{"info": asked, "parts": text("go")}, {"info": answer, "parts": [part]}],
    }


def qwen(sample: Sample) -> list[Json]:
    call = {"functionCall": {"id": "c1", "name": sample.name, "args": sample.input}}
    response = {"output": sample.output}
    result = {"functionResponse": {"id": "c1", "name": sample.name, "response": response}}
    records = (
        (1, "user", {"text": "go"}),
        (2, "assistant", call),
        (5, "tool_result", result),
    )
    return [
        {
            "uuid": f"u{n}",
            "parentUuid": f"u{n - 1 if n < 5 else 2}" if n > 1 else None,
            "type": kind,
            "message": {"parts": [part]},
            **at(n),
        }
        for n, kind, part in records
    ]


def request_log(sample: Sample) -> list[Json]:
    prompt, answer, result = messages(sample)
    asked = [{"messages": [prompt]}, {"messages": [prompt, answer, result]}]
    came = [{**answer, "type": "message"}, {"type": "message", "content": text("Done.")}]
    bodies = ((1, "request", asked[0]), (2, "response", came[0]), (5, "request", asked[1]), (6, "response", came[1]))  # fmt: skip
    return [{"type": kind, kind: body, **at(n)} for n, kind, body in bodies]


WRITERS: dict[str, Callable[[Sample], Any]] = {
    "claude-code": claude_code,
    "codex": codex,
    "pi": pi,
    "mini-swe-agent": mini,
    "swe-agent": swe,
    "openhands": openhands,
    "openhands-v1": openhands_v1,
    "gemini-cli": gemini,
    "tau-bench": tau,
    "inspect": inspect,
    "copilot": copilot,
    "cursor": cursor,
    "droid": droid,
    "grok": grok,
    "kimi": kimi,
    "opencode": opencode,
    "qwen": qwen,
    "request-log": request_log,
    "anthropic": anthropic,
    "openai": chat,
}
TIMELESS = {"swe-agent", "grok"}
"""Their importers read no times."""
Logged = Callable[[str, Sample], Path]


@pytest.fixture
def logged(tmp_path: Path) -> Logged:
    """The sample as a file of a format."""

    def logged(name: str, sample: Sample) -> Path:
        content = WRITERS[name](sample)
        lines = content if isinstance(content, list) else [content]
        path = tmp_path / "sample.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
        return path

    return logged


def results_of(session: Session) -> list[tuple[ToolCall, ToolResult]]:
    blocks = [block for item in session.items for block in item.blocks]
    calls = {block.call_id: block for block in blocks if isinstance(block, ToolCall)}
    return [(calls[b.call_id], b) for b in blocks if isinstance(b, ToolResult)]


def envelope_in(path: Path) -> Envelope:
    ((_, result),) = results_of(read_session(path))
    return result.envelope


def test_every_format_has_a_writer() -> None:
    without = {*FORMATS} - {*WRITERS, "foldline"}  # our own export keeps the envelopes it has
    assert without == set(), "write down, in WRITERS above, one call and its result in this format"
    assert {*WRITERS} <= {*FORMATS}, "a row in persistence/sessions/_read.py is missing"


def test_every_format_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs/sessions.md").read_text(encoding="utf-8")
    table = page.split("| format |", 1)[1].split("\n\n", 1)[0]
    missing = {name for name in FORMATS if f"`{name}`" not in table}
    assert missing == set(), "add its row to the first table of docs/sessions.md"


@for_each("name", WRITERS)
def test_every_importer_gives_the_default_of_the_tool(name: str, logged: Logged) -> None:
    path = logged(name, Sample("read_file", {"path": "a.py"}, "import os\n"))
    assert read_session(path).format == name
    envelope = envelope_in(path)
    assert (envelope.outcome, envelope.durability) == ("success", "replayable")
    expected = sha256(b"import os\n").hexdigest()
    assert envelope.determinism == Determinism(content_hash=expected[:16])


@for_each("name", WRITERS)
def test_every_importer_keeps_the_times_that_its_log_has(name: str, logged: Logged) -> None:
    envelope = envelope_in(logged(name, Sample("bash", {"command": "make"})))
    times = (envelope.started_at, envelope.ended_at)
    assert times == ((0.0, 0.0) if name in TIMELESS else (ASKED, ANSWERED))


@for_each("name", WRITERS)
def test_an_exit_code_in_the_text_is_a_key_field_and_decides_the_outcome(
    name: str, logged: Logged
) -> None:
    sample = Sample("bash", {"command": "make"}, "Exit code: 2\nmake: no rule")
    envelope = envelope_in(logged(name, sample))
    assert envelope.key_fields == {"exit_code": 2}
    assert (envelope.outcome, envelope.durability) == ("failure", "anchoring")


@for_each(
    ("output", "found"),
    [
        ("Exit code 1\nTraceback", 1),
        ("Chunk ID: a\nProcess exited with code 0", 0),
        ("no rule\n\nCommand exited with code -9", -9),
        ("a\n[The command completed with exit code 0.]\n[Working directory: /x]", 0),
        ("a\n[Command finished with exit code 127]", 127),
        ("Output: a\nExit Code: 3\nSignal: 0", 3),
        ("it said: exit code 1 and went on", None),
        ("a log\nExit code: 1\n" + "more of the log\n" * 40, None),
        ("", None),
    ],
)
def test_exit_codes_are_read_where_harnesses_write_them(
    output: str, found: int | None, logged: Logged
) -> None:
    envelope = envelope_in(logged("anthropic", Sample("Bash", {"command": "x"}, output)))
    assert envelope.key_fields == ({} if found is None else {"exit_code": found})
    assert envelope.outcome == ("failure" if found else "success")


PATCH = "*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"


@for_each(
    ("sample", "durability", "key_fields"),
    [
        (Sample("Read", {"file_path": "a.py"}), "replayable", {}),
        (Sample("str_replace_editor", {"command": "view", "path": "a"}), "replayable", {}),
        (
            Sample("str_replace_editor", {"command": "create", "path": "a"}),
            "anchoring",
            {"path": "a"},
        ),
        (Sample("Edit", {"file_path": "a.py", "old": ""}), "anchoring", {"path": "a.py"}),
        (Sample("apply_patch", {"input": PATCH}), "anchoring", {"paths": ["a.py", "b.py"]}),
        (Sample("Bash", {"command": "ls"}), "anchoring", {}),
        (Sample("Grep", {"pattern": "x"}), "ephemeral", {}),
        (Sample("Glob", {"pattern": "*"}), "ephemeral", {}),
        (Sample("ls", {"path": "."}), "ephemeral", {}),
        (Sample("WebSearch", {"query": "x"}), "non-replayable", {}),
        (Sample("web_fetch", {"url": "x"}), "non-replayable", {}),
        (Sample("create_order", {"path": "x"}), "anchoring", {}),
    ],
)
def test_durability_and_key_fields_follow_the_tool(
    sample: Sample, durability: str, key_fields: Json, logged: Logged
) -> None:
    envelope = envelope_in(logged("anthropic", sample))
    assert (envelope.durability, envelope.key_fields) == (durability, key_fields)
    assert bool(envelope.determinism.content_hash) == (durability == "replayable")


def test_a_read_that_failed_has_nothing_to_compare(tmp_path: Path) -> None:
    lines = claude_code(Sample("Read", {"file_path": "a.py"}, "File does not exist."))
    lines[-1]["message"]["content"][0]["is_error"] = True
    path = tmp_path / "sample.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    envelope = envelope_in(path)
    assert (envelope.outcome, envelope.durability) == ("failure", "replayable")
    assert envelope.determinism == Determinism()


def test_a_picture_that_was_read_has_nothing_to_compare(tmp_path: Path) -> None:
    """A hash of the text around it would say nothing about the picture."""
    lines = claude_code(Sample("Read", {"file_path": "a.png"}))
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    content = [*text("a.png"), {"type": "image", "source": source}]
    lines[-1]["message"]["content"][0]["content"] = content
    path = tmp_path / "sample.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    assert envelope_in(path).determinism == Determinism()
