"""The Responses API through OpenAI's own client."""

import json
from typing import Any

import openai
import pytest

from tests._practice import Practice
from timeline.fake_provider import Fault, Reply

from .openais import MODEL, PATHS, REPLY, SCHEMA, TOOL, is_overflow, refused_as

FUNCTION = {"type": "function", "strict": False, **TOOL}


def request(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    said = list(items) or [user("Hello.")]
    return {"model": MODEL, "input": said, "store": False, **more}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def shape(response: Any) -> list[tuple[str, Any]]:
    shapes: list[tuple[str, Any]] = []
    for item in response.output:
        match item.type:
            case "reasoning":
                shapes.append((item.type, item.summary[0].text))
            case "message":
                shapes.append((item.type, item.content[0].text))
            case _:
                shapes.append((item.type, json.loads(item.arguments)["path"]))
    return shapes


EXPECTED = [
    ("reasoning", REPLY.thinking),
    ("message", REPLY.text),
    *(("function_call", path) for path in PATHS),
]


def test_a_response_is_the_same_whole_and_as_a_stream(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY, REPLY])
    client = practice.openai(server)
    whole = client.responses.create(**request(tools=[FUNCTION]))
    with client.responses.stream(**request(tools=[FUNCTION])) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_response()
    assert shape(whole) == shape(streamed) == EXPECTED
    assert whole.status == streamed.status == "completed"
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert whole.usage is not None
    assert whole.usage.output_tokens > 30
    assert whole.usage.input_tokens == server.provider.exchanges[0].tokens
    assert not server.refused


def test_what_was_said_goes_back_and_reasoning_only_as_it_was(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY])
    client = practice.openai(server)
    first = client.responses.create(**request(tools=[FUNCTION]))
    said = [item.to_dict() for item in first.output]
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "fine"}
        for item in said
        if item["type"] == "function_call"
    ]
    client.responses.create(**request(user("Hello."), *said, *results, tools=[FUNCTION]))
    assert not server.refused
    forged = [{**said[0], "summary": [{"type": "summary_text", "text": "Else."}]}, *said[1:]]
    with pytest.raises(openai.BadRequestError) as error:
        client.responses.create(**request(user("Hello."), *forged, *results, tools=[FUNCTION]))
    assert refused_as(server, error) == "invalid_encrypted_content"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"colour": "red"}, "unknown_parameter"),
        ({"previous_response_id": "resp_1"}, "None"),
        ({"model": "claude-sonnet-5-5"}, "model_not_found"),
    ],
)
def test_what_the_api_does_not_take_is_refused(
    practice: Practice, more: dict[str, Any], code: str
) -> None:
    server = practice.serve()
    given = {**request(), **more}
    extra = {name: given.pop(name) for name in ("colour",) if name in given}
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)) as error:
        practice.openai(server).responses.create(**given, extra_body=extra)
    assert refused_as(server, error) == code


def test_a_call_without_an_output_is_refused(practice: Practice) -> None:
    server = practice.serve()
    call = {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{}"}
    with pytest.raises(openai.BadRequestError, match="c1"):
        practice.openai(server).responses.create(**request(user("Go."), call))
    assert server.refused


def test_a_prompt_that_is_too_long_is_told_in_the_providers_words(practice: Practice) -> None:
    server = practice.serve(window=500)
    with pytest.raises(openai.BadRequestError) as error:
        practice.openai(server).responses.create(**request(user("word " * 1_000)))
    assert refused_as(server, error) == "context_length_exceeded"
    tokens, limit = is_overflow(error.value)
    assert limit == 500
    assert tokens == server.provider.exchanges[0].tokens > 1_000


def test_faults_come_as_the_client_knows_them(practice: Practice) -> None:
    faults = [Fault.rate_limit(), Fault.overloaded(), Fault.server_error(), Fault.overflow()]
    server = practice.serve(responder=[*faults, Reply(text="At last.")])
    client = practice.openai(server)
    seen: list[tuple[int, object]] = []
    for _ in faults:
        with pytest.raises(openai.APIStatusError) as error:
            client.responses.create(**request())
        seen.append((error.value.status_code, error.value.code))
    assert seen == [
        (429, "rate_limit_exceeded"),
        (503, "server_is_overloaded"),
        (500, None),
        (400, "context_length_exceeded"),
    ]
    assert client.responses.create(**request()).output_text == "At last."


@pytest.mark.parametrize("fault", [Fault.cut(), Fault.garbled(), Fault.overloaded_in_stream()])
def test_a_stream_that_breaks_off_does_not_end(practice: Practice, fault: Fault) -> None:
    server = practice.serve(responder=[fault])
    kinds: list[str] = []
    with pytest.raises(Exception), practice.openai(server).responses.stream(**request()) as stream:  # noqa: B017, PT011, PT012 -- each client's own
        kinds += [event.type for event in stream]
        stream.get_final_response()
    assert "response.completed" not in kinds


def test_an_answer_that_is_too_long_is_incomplete(practice: Practice) -> None:
    server = practice.serve(responder=[Fault.max_tokens()])
    response = practice.openai(server).responses.create(**request(tools=[FUNCTION]))
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


def test_the_cache_is_written_at_marks_and_read_where_they_still_are(practice: Practice) -> None:
    marked = {
        "type": "input_text",
        "text": "word " * 2_000,
        "prompt_cache_breakpoint": {"mode": "explicit"},
    }
    first = {"role": "user", "content": [marked]}
    server = practice.serve(responder=[Reply(text="One."), Reply(text="Two.")])
    client = practice.openai(server)
    written = client.responses.create(**request(first)).usage
    read = client.responses.create(**request(first, user("And now?"))).usage
    assert written is not None
    assert read is not None
    assert written.input_tokens_details.cached_tokens == 0
    assert read.input_tokens_details.cached_tokens >= 2_000
    assert (
        read.input_tokens_details.cached_tokens == written.input_tokens_details.cache_write_tokens
    )


def test_a_summary_is_given_in_the_schema_that_is_asked_for(practice: Practice) -> None:
    server = practice.serve()
    form = {"type": "json_schema", "name": "summary", "schema": SCHEMA}
    asked = request(user("Mind the gap."), text={"format": form})
    said = json.loads(practice.openai(server).responses.create(**asked).output_text)
    assert said["task"] == "Mind the gap."


def test_tokens_are_counted_as_they_are_billed(practice: Practice) -> None:
    server = practice.serve()
    client = practice.openai(server)
    asked = request(user("How many?"), tools=[FUNCTION])
    counted = client.responses.input_tokens.count(
        model=MODEL, input=asked["input"], tools=asked["tools"]
    )
    usage = client.responses.create(**asked).usage
    assert usage is not None
    assert counted.input_tokens == usage.input_tokens
    assert MODEL not in {model.id for model in client.models.list()}  # an alias
    assert client.models.retrieve(MODEL).id == "gpt-5.6-sol"
