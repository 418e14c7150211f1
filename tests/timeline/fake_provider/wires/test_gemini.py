"""Gemini's API over plain HTTP, as Google's client sends it."""

import json
from typing import Any

import pytest

from tests._google import GoogleError
from tests._practice import Practice
from timeline import overflow_in
from timeline.fake_provider import Call, FakeServer, Fault, Reply

from .openais import REPLY, SCHEMA, TOOL

MODEL = "gemini-3.8-flash"
DECLARED = {"name": TOOL["name"], "parametersJsonSchema": TOOL["parameters"]}
TOOLS: dict[str, Any] = {"tools": [{"functionDeclarations": [DECLARED]}]}


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text} for text in texts]}


def request(*contents: dict[str, Any], **config: Any) -> dict[str, Any]:
    return {"model": MODEL, "contents": list(contents) or [user("Hello.")], "config": config}


def parts_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    [candidate] = response["candidates"]
    found: list[dict[str, Any]] = candidate["content"]["parts"]
    return found


def refused(practice: Practice, server: FakeServer, asked: dict[str, Any]) -> dict[str, Any]:
    """The error of a request that a rule is against."""
    with pytest.raises(GoogleError) as error:
        practice.google(server).generate_content(**asked)
    assert server.refused
    found: dict[str, Any] = error.value.details["error"]
    return found


def test_a_response_is_the_same_whole_and_as_a_stream(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY, REPLY])
    client = practice.google(server)
    whole = client.generate_content(**request(**TOOLS))
    chunks = list(client.generate_content_stream(**request(**TOOLS)))
    thought, text, first, second = parts_of(whole)
    assert (thought, text) == ({"text": REPLY.thinking, "thought": True}, {"text": REPLY.text})
    assert "thoughtSignature" in first
    assert "thoughtSignature" not in second
    streamed = [part for chunk in chunks for part in parts_of(chunk)]
    said = [part["text"] for part in streamed if "text" in part and "thought" not in part]
    assert "".join(said) == REPLY.text
    calls = [part["functionCall"]["args"] for part in streamed if "functionCall" in part]
    assert calls == [call.input for call in REPLY.calls]
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    used = whole["usageMetadata"]
    assert used["promptTokenCount"] == server.provider.exchanges[0].tokens
    assert not server.refused


def test_the_signature_of_a_text_comes_last_in_a_stream_and_both_ways_are_taken_back(
    practice: Practice,
) -> None:
    server = practice.serve(responder=[Reply(text="So."), Reply(text="So.")])
    client = practice.google(server)
    whole = client.generate_content(**request())["candidates"][0]["content"]
    assert "thoughtSignature" in whole["parts"][0]
    chunks = client.generate_content_stream(**request())
    streamed = [part for chunk in chunks for part in parts_of(chunk) if part != {"text": ""}]
    assert [part["text"] for part in streamed] == ["So.", ""]
    for parts in (whole["parts"], streamed):
        client.generate_content(**request(user("a"), {"role": "model", "parts": parts}, user("b")))
    assert not server.refused


def test_a_call_comes_back_with_the_signature_that_it_had(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY])
    content = practice.google(server).generate_content(**request(**TOOLS))["candidates"][0][
        "content"
    ]
    answers = [
        {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "x"}}}
        for call in (part["functionCall"] for part in content["parts"] if "functionCall" in part)
    ]
    back = [user("Hello."), content, {"role": "user", "parts": answers}]
    practice.google(server).generate_content(**request(*back, **TOOLS))
    assert not server.refused
    one_less = [*back[:2], {"role": "user", "parts": answers[:1]}]
    assert (
        "number of function response parts"
        in refused(practice, server, request(*one_less))["message"]
    )
    first = next(part for part in content["parts"] if "functionCall" in part)
    signature = first.pop("thoughtSignature")
    assert "missing a thought_signature" in refused(practice, server, request(*back))["message"]
    first["functionCall"]["args"] = {"path": "other"}
    first["thoughtSignature"] = signature
    assert "Corrupted" in refused(practice, server, request(*back))["message"]
    first["thoughtSignature"] = "skip_thought_signature_validator"
    practice.google(server).generate_content(**request(*back, **TOOLS))


def test_what_the_api_does_not_take_is_refused(practice: Practice) -> None:
    server = practice.serve()
    client = practice.google(server)
    http = client.http.post(f"/v1beta/models/{MODEL}:generateContent", json={"colour": "red"})
    assert 'Unknown name "colour"' in http.json()["error"]["message"]
    assert refused(practice, server, {**request(), "model": "gemini-none"})["status"] == "NOT_FOUND"
    assert client.http.post(f"/v1beta/models/{MODEL}:embedContent", json={}).status_code == 404
    bare = client.http.post(
        f"/v1/models/{MODEL}:generateContent", json={}, headers={"x-goog-api-key": ""}
    )
    assert bare.json()["error"]["status"] == "UNAUTHENTICATED"


def test_a_prompt_has_to_fit(practice: Practice) -> None:
    server = practice.serve(window=500)
    with pytest.raises(GoogleError) as error:
        practice.google(server).generate_content(**request(user("word " * 600)))
    overflow = overflow_in(error.value)
    assert overflow is not None
    assert overflow.tokens_max == 500
    assert (overflow.tokens or 0) > 500
    practice.google(server).generate_content(**request(user("word " * 300), maxOutputTokens=400))


@pytest.mark.parametrize("fault", [Fault.cut(), Fault.garbled(), Fault.overloaded_in_stream()])
def test_a_stream_that_breaks_off_has_no_finish_reason(practice: Practice, fault: Fault) -> None:
    server = practice.serve(responder=[fault])
    reasons: list[str | None] = []
    with pytest.raises(Exception):  # noqa: B017, PT011, PT012 -- the client's own, wherever it breaks off
        for chunk in practice.google(server).generate_content_stream(**request()):
            reasons += [candidate.get("finishReason") for candidate in chunk["candidates"]]
    assert set(reasons) <= {None}


def test_a_refusal_and_an_answer_that_is_too_long(practice: Practice) -> None:
    long = Reply(text="a " * 50, calls=[Call("read_file", {"path": "x"})], stop_reason="max_tokens")
    server = practice.serve(responder=[Fault.refusal(), long])
    client = practice.google(server)
    for reason in ("SAFETY", "MAX_TOKENS"):
        [candidate] = client.generate_content(**request(**TOOLS))["candidates"]
        assert candidate["finishReason"] == reason


def test_a_summary_is_given_in_the_schema_that_is_asked_for(practice: Practice) -> None:
    client = practice.google(practice.serve())
    [part] = parts_of(
        client.generate_content(**request(user("Mind the gap."), responseJsonSchema=SCHEMA))
    )
    assert json.loads(part["text"])["task"] == "Mind the gap."


def test_who_answers_reads_on_from_file_to_file_here_too(practice: Practice) -> None:
    """The small model of the fake provider understands requests of every API."""
    client = practice.google(practice.serve())
    contents = [user("See a.txt.")]
    said = client.generate_content(**request(*contents, **TOOLS))["candidates"][0]["content"]
    [call] = [part["functionCall"] for part in said["parts"] if "functionCall" in part]
    assert call["args"] == {"path": "a.txt"}
    response = {"id": call["id"], "name": call["name"], "response": {"output": "All is well."}}
    contents += [said, {"role": "user", "parts": [{"functionResponse": response}]}]
    assert (
        "All is well."
        in parts_of(client.generate_content(**request(*contents, **TOOLS)))[0]["text"]
    )
