"""Signed thinking: it comes back as it was, and where it is bound, after the same prompt."""

from typing import Any

import anthropic
import pytest

from tests._practice import Practice
from tests._table import for_each
from timeline.fake_provider import Call, FakeProvider, Reply

from .requests import MODEL, TOOL, UNBOUND, assistant, request, result, user

THINKS = [
    Reply(thinking=f"Thought {number}.", calls=[Call("read_file", {"path": f"{number}.txt"})])
    for number in range(6)
]


def conversation(provider: FakeProvider, rounds: int, model: str = MODEL) -> dict[str, Any]:
    """A request after some rounds, each with thinking."""
    asked = request(user("Look."), model=model, tools=[TOOL], system="You look at files.")
    for _ in range(rounds):
        message = provider.create(asked).message
        assert message is not None
        contents = message["content"]
        asked["messages"] = [
            *asked["messages"],
            assistant(*contents),
            result(contents[-1]["id"], "what it says"),
        ]
    return asked


def words(provider: FakeProvider, asked: dict[str, Any]) -> str:
    """Of the refusal; "" when there is none."""
    error = provider.create(asked).error
    return error.message if error else ""


def without(asked: dict[str, Any], *rounds: int) -> dict[str, Any]:
    """The request without the thinking of some rounds."""
    messages = list(asked["messages"])
    for number in rounds:
        index = 1 + 2 * number
        messages[index] = assistant(*messages[index]["content"][1:])
    return {**asked, "messages": messages}


def edited(asked: dict[str, Any]) -> dict[str, Any]:
    """The request with another result in the first round."""
    call_id = asked["messages"][1]["content"][-1]["id"]
    messages = [*asked["messages"][:2], result(call_id, "pruned"), *asked["messages"][3:]]
    return {**asked, "messages": messages}


def test_the_real_client_sends_it_back(practice: Practice) -> None:
    server = practice.serve(responder=THINKS)
    client = practice.client(server)
    asked = request(user("Look."), tools=[TOOL])
    for _ in range(3):
        message = client.messages.create(**asked)
        asked["messages"].append(message.to_param())
        asked["messages"].append(result(message.to_dict()["content"][-1]["id"]))
    assert not server.refused
    asked["messages"][0] = user("Look again.")
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        client.messages.create(**asked)


def test_an_edit_before_bound_thinking_is_refused() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 3)
    assert not words(provider, asked)
    for changed in (edited(asked), {**asked, "system": "Else."}, {**asked, "tools": []}):
        assert "The block is bound to a different conversation." in words(provider, changed)
    assert words(provider, edited(asked)).startswith(
        "messages.3.content.0: Invalid `signature` in `thinking` block."
    )


def test_an_edit_behind_all_thinking_is_fine() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 1)
    assert not words(provider, edited(asked))


def test_cache_marks_and_the_form_of_content_are_no_edit() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 2)
    mark = {"cache_control": {"type": "ephemeral"}}
    first = {**asked["messages"][0]["content"][0], **mark}
    answer = asked["messages"][2]["content"][0]
    long = {**answer, "content": [{"type": "text", "text": answer["content"]}], "is_error": False}
    messages = [
        {"role": "user", "content": [first]},
        asked["messages"][1],
        {"role": "user", "content": [long]},
        *asked["messages"][3:],
    ]
    system = [{"type": "text", "text": asked["system"], **mark}]
    assert not words(provider, {**asked, "messages": messages, "system": system})


def test_thinking_may_go_at_either_end_or_all_of_it() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 4)
    for gone in ((0,), (0, 1), (3,), (2, 3), (0, 1, 2, 3)):
        assert not words(provider, without(asked, *gone)), gone


def test_thinking_may_not_go_in_the_middle_nor_come_back() -> None:
    provider = FakeProvider(responder=[*THINKS])
    asked = conversation(provider, 3)
    assert "different conversation" in words(provider, without(asked, 1))
    stripped = without(asked, 0, 1, 2)
    message = provider.create(stripped).message
    assert message is not None
    thought = message["content"]
    more = [assistant(*thought), result(thought[-1]["id"])]
    kept = {**asked, "messages": [*stripped["messages"], *more]}
    assert not words(provider, kept)
    assert "different conversation" in words(
        provider, {**asked, "messages": [*asked["messages"], *more]}
    )


def test_the_client_may_ask_to_have_it_dropped() -> None:
    provider = FakeProvider(responder=THINKS)
    binding = {"prefix_mismatch_behavior": "drop_block"}
    asked = edited(conversation(provider, 3))
    assert not words(
        provider, {**asked, "thinking": {"type": "adaptive", "block_binding": binding}}
    )


@for_each("model", [MODEL, UNBOUND])
def test_changed_thinking_is_refused_by_every_model(model: str) -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 2, model)
    for index, expected in ((1, "messages.1.content.0: Invalid `signature`"), (3, "latest")):
        messages = list(asked["messages"])
        thought, *rest = messages[index]["content"]
        messages[index] = assistant({**thought, "thinking": "Something else."}, *rest)
        assert expected in words(provider, {**asked, "messages": messages})


@for_each("signature", ["", "c2ln", "no base64!", "W10="])
def test_thinking_that_the_provider_never_signed_is_refused(signature: str) -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": signature}
    asked = request(user("a"), assistant(thought, {"type": "text", "text": "b"}), user("c"))
    assert words(FakeProvider(), asked)


def test_unbound_thinking_survives_an_edit() -> None:
    provider = FakeProvider(responder=THINKS)
    assert not words(provider, edited(conversation(provider, 3, UNBOUND)))


def test_thinking_of_another_model_is_dropped_in_silence() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = edited(conversation(provider, 3, UNBOUND))
    assert not words(provider, {**asked, "model": MODEL})


def test_thinking_that_was_cut_off_has_no_signature() -> None:
    provider = FakeProvider(responder=[Reply(thinking="Hm. " * 200)])
    message = provider.create(request(max_tokens=20)).message
    assert message is not None
    [thought] = message["content"]
    assert thought["signature"] == ""
    assert message["stop_reason"] == "max_tokens"
