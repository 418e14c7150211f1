"""The Responses API as Codex uses it: tools between the items, tools that take a text, messages among agents."""

import json
from typing import Any

from blocks import TextPart, formats
from tests._practice import Practice
from tests._table import for_each
from timeline.fake_provider import Call, FakeProvider, ParsedRequest, Reply
from timeline.fake_provider.wires import RESPONSES

from .test_responses import FUNCTION, request, user

EXEC = {"type": "custom", "name": "exec", "description": "Runs code.", "format": {"type": "text"}}
SPACE = {"type": "namespace", "name": "functions", "description": "", "tools": [EXEC, FUNCTION]}
OFFER = {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [SPACE]}
PROGRAM = 'text("done");' * 20
CODE = Call("exec", {"input": PROGRAM})


def test_tools_may_be_offered_between_the_items_and_take_a_text(practice: Practice) -> None:
    server = practice.serve(responder=[Reply(text="I run it.", calls=[CODE])])
    more = {"client_metadata": {"thread_id": "t1"}, "prompt_cache_key": "t1"}
    with practice.openai(server).responses.stream(
        **request(OFFER, user("Go.")), extra_body=more
    ) as stream:
        events = list(stream)
        response = stream.get_final_response()
    called = response.output[-1].to_dict()
    assert (called["type"], called["name"], called["input"]) == (
        "custom_tool_call",
        "exec",
        PROGRAM,
    )
    assert called["namespace"] == "functions"
    kind = "response.custom_tool_call_input"
    told = [getattr(event, "delta", "") for event in events if event.type == f"{kind}.delta"]
    assert "".join(told) == PROGRAM
    assert not server.refused
    output = {"type": "custom_tool_call_output", "call_id": called["call_id"], "output": "done"}
    seen = ParsedRequest.of(request(OFFER, user("Go."), called, output))
    assert list(seen.tools) == ["exec", "read_file"]
    [call] = seen.messages[2].content
    assert isinstance(call, formats.Call)
    assert call.input == {"input": PROGRAM}


def test_a_function_in_a_namespace_is_called_there() -> None:
    provider = FakeProvider(responder=[Reply(calls=[Call("read_file", {"path": "a"})])])
    exchange = provider.create(request(user("Go."), tools=[SPACE]), RESPONSES)
    assert exchange.message is not None
    [item] = exchange.message["output"]
    assert (item["type"], item["namespace"]) == ("function_call", "functions")
    assert json.loads(item["arguments"]) == {"path": "a"}


def test_what_one_agent_says_to_another_is_heard() -> None:
    parts = [
        {"type": "input_text", "text": "NEW_TASK"},
        {"type": "encrypted_content", "encrypted_content": "Look."},
    ]
    message = {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": parts}
    [heard] = ParsedRequest.of(request(message)).messages
    assert heard.role == "user"
    assert heard.content == (TextPart(text="NEW_TASK"), TextPart(text="Look."))
    assert FakeProvider().create(request(message), RESPONSES).error is None


def test_a_compaction_is_the_servers_own_and_comes_back() -> None:
    provider = FakeProvider(responder=[Reply(text="Done.")])
    trigger = {"type": "compaction_trigger"}
    compacted = provider.create(request(user("Go."), trigger), RESPONSES)
    assert compacted.message is not None
    [item] = compacted.message["output"]
    assert item["type"] == "compaction"
    again = provider.create(request(user("Go."), item), RESPONSES)
    assert again.message is not None
    assert again.message["output"][0]["content"][0]["text"] == "Done."


@for_each("kind", ["compaction", "reasoning"])
def test_what_was_sealed_by_nobody_is_refused(kind: str) -> None:
    forged = {"type": kind, "id": "x", "summary": [], "encrypted_content": "forged"}
    said = {"type": "message", "role": "assistant", "content": "So."}
    exchange = FakeProvider().create(request(user("Go."), forged, said), RESPONSES)
    assert exchange.error is not None
    assert exchange.error.code == "invalid_encrypted_content"


def test_what_was_not_marked_is_cached_unless_the_request_says_that_marks_are_all() -> None:
    """Codex sets no marks: the latest message is written, and found again by the next request."""
    provider = FakeProvider(responder=lambda _: Reply(text="Done."))

    def usage(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
        message = provider.create(request(*items, **more), RESPONSES).message
        assert message is not None
        found: dict[str, Any] = message["usage"]["input_tokens_details"]
        return found

    history = [user(f"{number} " * 1_000) for number in range(40)]
    first = usage(*history)
    assert (first["cached_tokens"], first["cache_write_tokens"] > 30_000) == (0, True)
    later = usage(*history, *map(user, "abcdefghijklmnopqrstuvwxyz"))
    assert later["cached_tokens"] == first["cache_write_tokens"]
    explicit = {"prompt_cache_options": {"mode": "explicit"}}
    assert usage(*history, **explicit) == {"cached_tokens": 0, "cache_write_tokens": 0}
