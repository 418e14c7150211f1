"""Chat Completions behind the seam: the request as the client, and as any server, takes it."""

from functools import partial
from typing import Any

import attrs
import pytest

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    CodecError,
    DocumentPart,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    RequestRendered,
    TextPart,
    ToolCall,
    TurnId,
    tag_of,
)
from blocks.formats._message import Answer
from render import PROVIDERS, Model, provider_of
from tests import _builders as make
from tests._builders import Ids, call, deep, prompt, result, said, steer, thought
from tests._table import for_each
from tests.render.providers.openai._play import CHAT, LOCAL

PROVIDER = PROVIDERS["openai.chat"]
SYSTEM = [{"type": "text", "text": "You help."}, {"type": "text", "text": "Be kind."}]
MIDWAY = {"role": "user", "content": "[the beginning of this conversation is missing]"}


def test_the_system_prompt_is_a_text_unless_it_carries_a_mark() -> None:
    [plain], _ = PROVIDER.prefix(SYSTEM, [], None)
    assert plain == {"role": "system", "content": "You help.\n\nBe kind."}
    [marked], _ = PROVIDER.prefix(SYSTEM, [], "5m")
    marks = ["prompt_cache_breakpoint" in part for part in marked["content"]]
    assert marks == [False, True]
    assert PROVIDER.prefix([], [], "5m") == ([], [])


def test_the_request_is_exactly_what_the_client_takes() -> None:
    timeline = make.open_timeline(model=LOCAL)
    timeline.user("Go.")
    rendered = timeline.render(system="You help.", tools=[{"name": "bash"}])
    request = rendered.openai_chat(max_completion_tokens=99)
    assert set(request) == {"model", "messages", "tools", "max_completion_tokens"}
    assert request["messages"] == [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Go."},
    ]
    assert set(rendered.openai_chat()) == {"model", "messages", "tools"}


def test_what_only_openai_knows_is_sent_only_to_models_that_take_marks() -> None:
    """Other servers refuse fields that they do not know."""
    own = {"prompt_cache_key", "prompt_cache_options"}
    for model, wanted in ((CHAT, own), (LOCAL, set[str]())):
        timeline = make.open_timeline(model=model)
        timeline.user("Go.")
        assert set(timeline.render().openai_chat()) & own == wanted


def test_the_user_speaks_first_and_never_twice_in_a_row() -> None:
    encoder = make.context(model=LOCAL, provider=PROVIDER).encoder
    view = make.view_of(make.said("hm", response="r"))
    pieces = [encoder.shown(group) for group in view.groups]
    assert PROVIDER.messages(pieces, [], ["a", "b"]) == [
        MIDWAY,
        {"role": "assistant", "content": "hm"},
        {"role": "user", "content": "[continue]\n\na\n\nb"},
    ]
    assert PROVIDER.messages([], [], []) == [MIDWAY]
    assert PROVIDER.extended({}, ["a", "b"]) == {
        "messages": [{"role": "user", "content": "a\n\nb"}]
    }


@for_each("model", [CHAT, LOCAL], ids=lambda model: model.name)
def test_an_instruction_joins_the_users_last_message(model: Model) -> None:
    timeline = make.open_timeline(model=model)
    timeline.user("Go.")
    live = timeline.render().request()
    extended = PROVIDER.extended(live, ["Summarise."])
    assert len(extended["messages"]) == len(live["messages"])
    assert "Go." in str(extended["messages"][-1])
    assert "Summarise." in str(extended["messages"][-1])
    assert "Summarise." not in str(live)
    assert PROVIDER.violations(extended, model) == ()


def test_there_is_no_thinking_to_be_left_out() -> None:
    request = {"messages": [MIDWAY]}
    assert PROVIDER.without_thinking(request) is request


def test_open_tools_take_any_arguments_under_the_names_that_are_sent() -> None:
    assert [tool["name"] for tool in PROVIDER.open_tools(["b", "a b", "b"])] == ["a_b", "b"]


# Blocks as messages of a chat: the plainest form that says it all, in the order that templates want.


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


# An answer of Chat Completions as blocks: of OpenAI, and of the servers that speak it.


CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "bash", "arguments": '{"command":"ls"}'},
}
CUSTOM = {"id": "call_2", "type": "custom", "custom": {"name": "patch", "input": "***"}}
USAGE = {
    "prompt_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 50},
    "completion_tokens": 7,
    "total_tokens": 107,
}


def answer(reason: str = "stop", **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": None, **message}
    choice = {"index": 0, "finish_reason": reason, "message": said}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-5.6",
        "choices": [choice],
    }


def read(found: object) -> Answer:
    ids = Ids()
    return PROVIDERS["openai.chat"].read(found, lambda: BlockId(ids()), TurnId("t1"))


def test_a_message_becomes_its_text_and_its_calls() -> None:
    found = read({**answer(content="I look.", tool_calls=[CALL, CUSTOM]), "usage": USAGE})
    assert found.id == "chatcmpl-1"
    text, call, free = found.blocks
    assert isinstance(text, AssistantCompletion)
    assert text.text == "I look."
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.name, call.input) == ("call_1", "bash", {"command": "ls"})
    assert call.provider == {}
    assert isinstance(free, ToolCall)
    assert (free.input, free.provider) == ({"input": "***"}, {"type": "custom"})
    assert found.usage is not None
    assert (found.usage.uncached, found.usage.cache_read, found.usage.cache_write) == (10, 40, 50)
    assert found.usage.input == 100


@for_each("name", ["reasoning_content", "reasoning"])
def test_what_a_server_tells_of_its_models_reasoning_is_kept(name: str) -> None:
    thinking, text = read(answer(content="so", **{name: "hm"})).blocks
    assert isinstance(thinking, AssistantThinking)
    assert thinking.provider == {"type": name, name: "hm"}
    assert isinstance(text, AssistantCompletion)
    assert len(read(answer(content="so", **{name: ""})).blocks) == 1


def test_a_refusal_is_said_and_marked_as_one() -> None:
    [block] = read(answer(refusal="No.")).blocks
    assert isinstance(block, AssistantCompletion)
    assert (block.text, block.provider) == ("No.", {"refusal": True})


def test_texts_in_a_list_are_one_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    [block] = read(answer(content=parts)).blocks
    assert isinstance(block, AssistantCompletion)
    assert block.text == "ab"


@for_each("reason", ["length", "content_filter"])
def test_the_last_call_of_an_answer_that_was_cut_off_is_discarded(reason: str) -> None:
    blocks = read(answer(reason, content="so", tool_calls=[CALL, CUSTOM])).blocks
    assert [tag_of(block) for block in blocks] == ["assistant.completion", "react.tool.call"]


@for_each("missing", [{"id": ""}, {"id": None}, {}], ids=str)
def test_a_call_without_an_id_gets_one(missing: dict[str, Any]) -> None:
    """Some servers give none. It is the same if the answer is read again, so that it is recorded once."""
    bare = [{**{k: v for k, v in each.items() if k != "id"}, **missing} for each in (CALL, CUSTOM)]
    one, two = (read(answer(tool_calls=bare)).blocks for _ in range(2))
    ids = [getattr(block, "call_id", "") for block in one]
    assert ids == [getattr(block, "call_id", "") for block in two]
    assert all(ids)
    assert len(set(ids)) == 2


def test_arguments_may_be_an_object_already() -> None:
    function = {"name": "bash", "arguments": {"command": "ls"}}
    [call] = read(answer(tool_calls=[{**CALL, "function": function}])).blocks
    assert isinstance(call, ToolCall)
    assert (call.input, call.provider) == ({"command": "ls"}, {})


def test_usage_alone_is_an_answer() -> None:
    found = read({"id": "x", "choices": [], "usage": USAGE})
    assert found.blocks == ()
    assert found.usage is not None


@for_each(
    ("found", "said"),
    [
        ({"output": []}, "not a response of OpenAI's Responses API"),
        ({"content": []}, "not a response of Anthropic's"),
        ({"error": {"message": "boom"}}, "an error of the provider.*boom"),
        ({"choices": "hm"}, "choices must be a list"),
        ({"choices": []}, "empty"),
        ({"choices": [{}, {}]}, "2 choices"),
        ({"choices": [{"delta": {"content": "hm"}}]}, "chunks of a stream"),
        ({"choices": ["hm"]}, "choices.0 must be an object"),
        (answer(role="user"), "the role must be 'assistant', not 'user'"),
        (answer(tool_calls="hm"), "tool_calls must be a list"),
        (answer(tool_calls=["hm"]), r"tool_calls\.0\.name must be a text"),
        (answer(tool_calls=[{**CALL, "id": 5}]), "id must be a text"),
        (answer(tool_calls=[{**CALL, "id": " "}]), "id is empty"),
        (answer(function_call={"name": "f", "arguments": "{}"}), "function_call has no id"),
        ({**answer(content="so"), "model": 5}, "model must be a text"),
        (None, "not None"),
    ],
)
def test_what_is_no_answer_is_refused_by_name(found: object, said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        read(found)


def test_what_cannot_be_stored_is_refused_and_says_where() -> None:
    function = {"name": "bash", "arguments": deep(300)}
    with pytest.raises(CodecError, match=r"choices\.0, .* nested deeper than"):
        read(answer(tool_calls=[{**CALL, "function": function}]))
