"""Chat Completions through OpenAI's own client."""

import json
from typing import Any

import openai
import pytest

from tests._practice import Practice
from timeline.fake_provider import Fault

from .openais import MODEL, PATHS, REPLY, SCHEMA, TOOL, is_overflow, refused_as

FUNCTION = {"type": "function", "function": TOOL}
USAGE = {"include_usage": True}


def request(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": list(messages) or [user("Hello.")], **more}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_a_completion_is_the_same_whole_and_as_a_stream(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY, REPLY])
    client = practice.openai(server)
    whole = client.chat.completions.create(**request(tools=[FUNCTION]))
    create: Any = client.chat.completions.create
    chunks = list(create(**request(tools=[FUNCTION]), stream=True, stream_options=USAGE))
    [choice] = whole.choices
    assert choice.message.content == REPLY.text
    assert choice.finish_reason == "tool_calls"
    calls = choice.message.tool_calls or []
    assert [json.loads(call.function.arguments)["path"] for call in calls] == PATHS
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == REPLY.text
    pieces = [call for delta in deltas for call in delta.tool_calls or ()]
    for index, path in enumerate(PATHS):
        texts = [p.function.arguments or "" for p in pieces if p.index == index and p.function]
        assert json.loads("".join(texts)) == {"path": path}
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert whole.usage.prompt_tokens == server.provider.exchanges[0].tokens
    assert not server.refused


def test_results_come_right_behind_their_calls(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY])
    client = practice.openai(server)
    said = client.chat.completions.create(**request(tools=[FUNCTION])).choices[0].message.to_dict()
    calls: Any = said["tool_calls"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "fine"} for call in calls]
    client.chat.completions.create(**request(user("Hello."), said, *results, tools=[FUNCTION]))
    assert not server.refused
    with pytest.raises(openai.BadRequestError, match=calls[1]["id"]):
        client.chat.completions.create(**request(user("Hello."), said, results[0]))
    assert server.refused


def test_what_the_api_does_not_take_is_refused(practice: Practice) -> None:
    server = practice.serve()
    client = practice.openai(server)
    with pytest.raises(openai.BadRequestError, match="colour"):
        client.chat.completions.create(**request(), extra_body={"colour": "red"})
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(**{**request(), "model": "gpt-none"})
    assert refused_as(server, error) == "model_not_found"
    with pytest.raises(openai.AuthenticationError):
        client.with_options(default_headers={"Authorization": "none"}).chat.completions.create(
            **request()
        )


def test_prompt_and_answer_have_to_fit_together(practice: Practice) -> None:
    server = practice.serve(window=500)
    client = practice.openai(server)
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(**request(user("word " * 200)), max_completion_tokens=400)
    assert refused_as(server, error) == "context_length_exceeded"
    tokens, limit = is_overflow(error.value)
    assert limit == 500
    assert tokens is not None
    assert tokens > 500
    client.chat.completions.create(**request(user("word " * 200)), max_completion_tokens=100)


@pytest.mark.parametrize("fault", [Fault.cut(), Fault.garbled(), Fault.overloaded_in_stream()])
def test_a_stream_that_breaks_off_has_no_finish_reason(practice: Practice, fault: Fault) -> None:
    server = practice.serve(responder=[fault])
    reasons: list[str | None] = []
    with pytest.raises(Exception):  # noqa: B017, PT011, PT012 -- each client's own, wherever it breaks off
        for chunk in practice.openai(server).chat.completions.create(**request(), stream=True):
            reasons += [choice.finish_reason for choice in chunk.choices]
    assert set(reasons) <= {None}


def test_a_refusal_and_an_answer_that_is_too_long(practice: Practice) -> None:
    server = practice.serve(responder=[Fault.refusal(), Fault.max_tokens()])
    client = practice.openai(server)
    [refused] = client.chat.completions.create(**request()).choices
    assert refused.message.refusal
    [cut] = client.chat.completions.create(**request(tools=[FUNCTION])).choices
    assert cut.finish_reason == "length"


def test_a_summary_is_given_in_the_schema_that_is_asked_for(practice: Practice) -> None:
    server = practice.serve()
    form = {"type": "json_schema", "json_schema": {"name": "summary", "schema": SCHEMA}}
    [choice] = (
        practice.openai(server)
        .chat.completions.create(**request(user("Mind the gap."), response_format=form))
        .choices
    )
    assert json.loads(choice.message.content or "")["task"] == "Mind the gap."


def test_who_answers_reads_on_from_file_to_file_here_too(practice: Practice) -> None:
    """The small model of the fake provider understands requests of every API."""
    server = practice.serve()
    client = practice.openai(server)
    asked = request(
        {"role": "system", "content": "You read."}, user("See a.txt."), tools=[FUNCTION]
    )
    said = client.chat.completions.create(**asked).choices[0].message.to_dict()
    calls: Any = said["tool_calls"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"path": "a.txt"}
    result = {"role": "tool", "tool_call_id": calls[0]["id"], "content": "All is well."}
    asked["messages"] += [said, result]
    assert "All is well." in (
        client.chat.completions.create(**asked).choices[0].message.content or ""
    )
