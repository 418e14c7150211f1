"""Blocks as messages of a chat: the plainest form that says it all, in the order that templates want."""

from functools import partial
from typing import Any

import attrs

from blocks import (
    Block,
    DocumentPart,
    ImagePart,
    OpaqueBlock,
    RequestRendered,
    TextPart,
    ToolCall,
)
from render import provider_of
from tests import _builders as make
from tests._builders import call, prompt, result, said, steer, thought
from tests._table import for_each
from tests.render.providers.openai._play import CHAT, LOCAL

CONTEXT = make.context(model=LOCAL, provider=provider_of(LOCAL))
shown = partial(make.valid, CONTEXT)
LISTED = make.context(model=CHAT, provider=provider_of(CHAT))
PNG = "iVBORw0KGgo="


def messages(*blocks: Block | RequestRendered, **changes: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(*blocks, **changes).openai_chat()["messages"]
    return found


def roles(found: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in found]


def test_a_round_is_one_message_of_the_assistant_and_one_for_each_call() -> None:
    found = messages(
        prompt("go"), said("I look.", response="r"), call("a", response="r", command="ls"),
        call("b", response="r"), steer("and?"), result("b", "B"), result("a", "A"),
    )  # fmt: skip
    assert roles(found) == ["user", "assistant", "tool", "tool", "user"]
    assert found[1] == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "bash", "arguments": '{"command":"ls"}'},
            },
            {"id": "b", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
        ],
    }
    assert found[2] == {"role": "tool", "tool_call_id": "a", "content": "A"}
    assert found[4] == {"role": "user", "content": "and?"}


def test_contents_are_plain_texts_wherever_nothing_else_is_in_them() -> None:
    found = messages(
        prompt("go"), said("one", response="r"), said("two", response="r"), steer("and"),
        steer("so?"),
    )  # fmt: skip
    assert [message["content"] for message in found] == ["go", "one\n\ntwo", "and\n\nso?"]


def test_what_can_carry_a_mark_is_a_list_where_the_model_takes_marks() -> None:
    view = make.view_of(prompt("go"), call("a"), result("a", "done"), steer("and?"))
    found = make.shown(view, LISTED).openai_chat()["messages"]
    kinds = [type(message["content"]).__name__ for message in found]
    assert kinds == ["list", "NoneType", "list", "list"]


def test_a_call_alone_has_no_content() -> None:
    assert messages(prompt("go"), call("a"), result("a"))[1]["content"] is None


def test_ids_are_cut_to_what_the_api_takes_and_stay_apart() -> None:
    long = ["x" * 50, "x" * 60]
    blocks = [call(name, response="r") for name in long]
    found = messages(prompt("go"), *blocks, *(result(name) for name in long))
    ids = [made["id"] for made in found[1]["tool_calls"]]
    assert [len(each) for each in ids] == [40, 40]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in found[2:4]] == ids


def test_pictures_of_a_result_are_shown_in_the_message_that_follows() -> None:
    """A tool message holds nothing but text."""
    parts = (TextPart(text="see"), ImagePart(data=PNG), DocumentPart(data=PNG, name="a.pdf"))
    found = messages(
        prompt("go"), call("a", response="r"), call("b", response="r"), result("a", parts=parts),
        result("b", "done"), steer("and?"),
    )  # fmt: skip
    assert roles(found) == ["user", "assistant", "tool", "tool", "user"]
    assert found[2]["content"] == (
        "see\n[image] [shown in the next message]\n[document a.pdf] [shown in the next message]"
    )
    kinds = [part["type"] for part in found[4]["content"]]
    assert kinds == ["text", "image_url", "file", "text"]
    assert found[4]["content"][0]["text"] == "[from the result of call a]"


def test_a_failure_is_said_in_the_text() -> None:
    found = messages(prompt("go"), call("a"), result("a", parts=(), is_error=True))
    assert found[-1]["content"] == "[the call failed]\n(no output)"


@for_each("provider", [make.SIGNED, {"type": "reasoning_content"}])
def test_thinking_is_not_sent_and_a_notice_says_so(provider: dict[str, Any]) -> None:
    blocks = (prompt("go"), thought(response="r", provider=provider), said("so", response="r"))
    rendered = shown(*blocks)
    assert roles(rendered.openai_chat()["messages"]) == ["user", "assistant", "user"]
    assert rendered.notices == ("thinking is not sent in a chat: ar:t1.assistant.thinking",)
    assert shown(*blocks, keep_thinking=False).notices == ()


@for_each("name", ["reasoning_content", "reasoning"])
def test_a_model_that_thinks_between_tools_is_sent_back_what_led_to_its_calls(name: str) -> None:
    """Under the name that its server gave it, in every later request; without calls, nobody reads it."""
    model = attrs.evolve(LOCAL, thinking_modes=("between_tools",))
    thinking = thought(response="r", provider={"type": name, name: "which files are there?"})
    last = thought(response="s", provider={"type": name, name: "enough"})
    blocks = (prompt("go"), thinking, call("a", response="r"), result("a"), last)
    log = (*blocks, said("done", response="s"), prompt("more"))
    rendered = shown(*log, model=model)
    found = rendered.openai_chat()["messages"]
    assert [message.get(name) for message in found] == [
        None, "which files are there?", None, None, None,
    ]  # fmt: skip
    assert rendered.notices == ()
    plain, sealed = shown(*log), shown(*log, model=model, keep_thinking=False)
    assert name not in str(plain.openai_chat()["messages"])
    assert sealed.openai_chat() == plain.openai_chat()
    assert rendered.tokens > plain.tokens
    provider = provider_of(model)
    contents = [content for _, content in provider.contents([], [], found)]
    assert {"type": name, "text": "which files are there?"} in contents
    foreign = (prompt("go"), thought(response="r"), call("a", response="r"), result("a"))
    assert len(shown(*foreign, model=model).notices) == 1


def test_a_call_of_a_custom_tool_stays_one() -> None:
    made = call("a", name="patch", input="***")
    free = ToolCall(
        id=made.id,
        turn=made.turn,
        call_id=made.call_id,
        name="patch",
        input=made.input,
        provider={"type": "custom"},
    )
    found = messages(prompt("go"), free, result("a"))
    assert found[1]["tool_calls"] == [
        {"id": "a", "type": "custom", "custom": {"name": "patch", "input": "***"}}
    ]


def test_the_arguments_are_those_that_a_server_generated_byte_for_byte() -> None:
    """vLLM and llama.cpp find in their caches what they wrote, and nothing else."""
    timeline = make.open_timeline(model=LOCAL)
    timeline.user("go")
    written = '{ "b" : 1,\n  "a": "\\u00e4" }'
    function = {"name": "bash", "arguments": written}
    message = {
        "role": "assistant",
        "content": "  I look.\n",
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    timeline.record({"choices": [{"finish_reason": "tool_calls", "message": message}]})
    timeline.tool_result("a", "done")
    assert timeline.render().openai_chat()["messages"][1] == message
    timeline.flush()
    assert timeline.render().openai_chat()["messages"][1] == message


def test_what_another_provider_ran_or_wrote_itself_is_told_or_left_out_with_a_notice() -> None:
    def other(kind: str, **value: Any) -> OpaqueBlock:
        fields = {"id": kind, "turn": "t1", "author": "assistant", "response": "r"}
        return OpaqueBlock(f"provider.{kind}", {**fields, "value": {"type": kind, **value}})

    rendered = shown(prompt("go"), other("server_tool_use", id="srvtoolu_1"), said("so"))
    assert [m["content"] for m in rendered.openai_chat()["messages"]][:2] == ["go", "so"]
    assert any("not shown" in notice for notice in rendered.notices)
    told = messages(other("compaction", content="So far: X."), steer("and?"))
    assert "So far: X." in [message["content"] for message in told]
