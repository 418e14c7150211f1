"""The Responses API behind the seam: the request as the client takes it."""

import pytest

from blocks import MisuseError
from render import PROVIDERS
from tests import _builders as make
from tests._table import for_each
from tests.render.providers.openai._play import LOCAL, MARKED, PLAIN

PROVIDER = PROVIDERS["openai.responses"]
SYSTEM = [{"type": "text", "text": "You help."}, {"type": "text", "text": "Be kind."}]


def text(words: str) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}


def test_the_system_prompt_is_a_developers_message_whose_last_part_carries_the_mark() -> None:
    """`instructions` can carry none, and newer models read them behind the conversation."""
    for ttl in (None, "5m"):
        [message], _ = PROVIDER.prefix(SYSTEM, [], ttl)
        assert (message["type"], message["role"]) == ("message", "developer")
        assert [part["text"] for part in message["content"]] == ["You help.", "Be kind."]
        marks = ["prompt_cache_breakpoint" in part for part in message["content"]]
        assert marks == [False, ttl is not None]
    assert PROVIDER.prefix([], [], "5m") == ([], [])


def test_nothing_is_stored_on_the_server() -> None:
    assert PROVIDER.request([], [], [text("go")]) == {"input": [text("go")], "store": False}


def test_texts_come_last_each_in_a_message_of_its_own() -> None:
    midway = text("[the beginning of this conversation is missing]")
    assert PROVIDER.messages([], [], ["a", "b"]) == [midway, text("a"), text("b")]
    request = PROVIDER.extended({"input": [text("a")], "store": False}, "b")
    assert request == {"input": [text("a"), text("b")], "store": False}
    assert PROVIDER.quoting(["a", "b"])["input"][0]["content"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "b"},
    ]


def test_the_request_is_exactly_what_the_client_takes() -> None:
    timeline = make.open_timeline(model=PLAIN)
    timeline.user("Go.")
    rendered = timeline.render(system="You help.", tools=[{"name": "bash"}])
    request = rendered.openai_responses(max_output_tokens=99)
    assert set(request) == {
        "model", "input", "tools", "store", "prompt_cache_key", "max_output_tokens",
    }  # fmt: skip
    assert request["model"] == "gpt-plain"
    assert "max_output_tokens" not in rendered.openai_responses()
    request["input"].append("mine")
    request["input"][0]["content"].append("mine")
    assert "mine" not in str(rendered.openai_responses())


def test_a_request_is_handed_out_for_the_provider_that_it_was_rendered_for() -> None:
    for model, right in (
        (MARKED, "openai_responses"),
        (LOCAL, "openai_chat"),
        (make.LOOSE, "anthropic"),
    ):
        timeline = make.open_timeline(model=model)
        timeline.user("Go.")
        rendered = timeline.render()
        for name in {"openai_responses", "openai_chat", "anthropic"} - {right}:
            arguments = {"max_tokens": 1} if name == "anthropic" else {}
            with pytest.raises(MisuseError, match=rf"{name}\(\).*rendered for '{model.provider}'"):
                getattr(rendered, name)(**arguments)


@for_each("tokens", ["5", 5.0, True, -1])
def test_a_number_of_tokens_is_one(tokens: object) -> None:
    for model, name, field in (
        (MARKED, "openai_responses", "max_output_tokens"),
        (LOCAL, "openai_chat", "max_completion_tokens"),
    ):
        timeline = make.open_timeline(model=model)
        timeline.user("Go.")
        with pytest.raises(MisuseError, match=f"{field} must be a whole number"):
            getattr(timeline.render(), name)(**{field: tokens})


def test_system_and_tools_may_be_given_in_any_providers_words() -> None:
    shapes = (
        ("You help.", {"name": "bash", "input_schema": {"type": "object"}}),
        (
            [{"type": "input_text", "text": "You help."}],
            {"type": "function", "name": "bash", "parameters": {"type": "object"}},
        ),
        (
            [{"role": "developer", "content": [{"type": "input_text", "text": "You help."}]}],
            {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}},
        ),
        ([{"role": "system", "content": "You help."}], {"type": "function", "name": "bash",
                                                        "parameters": {"type": "object"}}),
    )  # fmt: skip
    for model in (make.LOOSE, PLAIN, LOCAL):
        timeline = make.open_timeline(model=model)
        timeline.user("Go.")
        found = [timeline.render(system=system, tools=[tool]).request() for system, tool in shapes]
        assert all(request == found[0] for request in found[1:])


def test_a_summary_is_asked_for_behind_the_live_prompt_and_its_cache() -> None:
    timeline = make.open_timeline(model=MARKED)
    timeline.user("Go.")
    live = timeline.render(system="You help.").request()
    extended = PROVIDER.extended(live, "Summarise.")
    assert extended["input"][:-1] == live["input"]
    assert {k: v for k, v in extended.items() if k != "input"} == {
        k: v for k, v in live.items() if k != "input"
    }
    assert PROVIDER.violations(extended, MARKED) == ()


def test_open_tools_take_any_arguments_under_the_names_that_are_sent() -> None:
    assert [tool["name"] for tool in PROVIDER.open_tools(["b", "a b", "b"])] == ["a_b", "b"]
