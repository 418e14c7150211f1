"""The Responses API behind the seam: the request as the client takes it."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    BlocksHidden,
    CodecError,
    EventId,
    Hidden,
    MisuseError,
    OpaqueBlock,
    RequestRendered,
    ToolCall,
    ToolResult,
    TurnId,
    tag_of,
)
from blocks.formats import SHAPES
from blocks.formats._message import Answer
from render import PROVIDERS, Json, provider_of
from tests import _builders as make
from tests._builders import Ids, call, deep, prompt, result, said, steer, thought
from tests._table import for_each
from tests.render.providers.openai._play import LOCAL, MARKED, PLAIN
from timeline import Timeline
from timeline.engine._operations import Synced

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
    request = PROVIDER.extended({"input": [text("a")], "store": False}, ["b"])
    assert request == {"input": [text("a"), text("b")], "store": False}
    assert PROVIDER.extended({}, ["a", "b"])["input"][0]["content"] == [
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
    extended = PROVIDER.extended(live, ["Summarise."])
    assert extended["input"][:-1] == live["input"]
    assert {k: v for k, v in extended.items() if k != "input"} == {
        k: v for k, v in live.items() if k != "input"
    }
    assert PROVIDER.violations(extended, MARKED) == ()


def test_open_tools_take_any_arguments_under_the_names_that_are_sent() -> None:
    assert [tool["name"] for tool in PROVIDER.open_tools(["b", "a b", "b"])] == ["a_b", "b"]


# Blocks as items of input: reasoning with what it led to, calls as they were written, results as they are.


SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
CONTEXT = make.context(model=PLAIN, provider=provider_of(PLAIN))
shown = partial(make.valid, CONTEXT)


def items(*blocks: Block | RequestRendered | BlocksHidden, **changes: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(*blocks, **changes).openai_responses()["input"]
    return found


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [f"{item['type']} {item.get('role', '')}".strip() for item in found]


def own(kind: str, **value: Any) -> OpaqueBlock:
    fields = {"id": f"o-{kind}", "turn": "t1", "author": "assistant", "response": "r"}
    return OpaqueBlock(f"provider.openai.{kind}", {**fields, "value": {"type": kind, **value}})


def other(kind: str, **value: Any) -> OpaqueBlock:
    """A block of another provider's."""
    fields = {"id": f"x-{kind}", "turn": "t1", "author": "assistant", "response": "r"}
    return OpaqueBlock(f"provider.{kind}", {**fields, "value": {"type": kind, **value}})


# Reasoning.


def test_reasoning_goes_back_sealed_before_what_it_led_to_and_without_the_id() -> None:
    """Nothing is stored, and the server looks for what has an id."""
    found = items(
        prompt("go"),
        thought(response="r", provider=SEALED),
        call("a", response="r"),
        result("a"),
    )
    assert kinds(found) == ["message user", "reasoning", "function_call", "function_call_output"]
    assert found[1] == {"type": "reasoning", "summary": [], "encrypted_content": "sealed"}


@for_each(
    "provider",
    [
        {**SEALED, "encrypted_content": None},
        {**SEALED, "encrypted_content": ""},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        make.SIGNED,
        {"type": "reasoning_content", "reasoning_content": "hm"},
    ],
)
def test_reasoning_that_the_server_cannot_open_is_left_out_with_a_notice(
    provider: dict[str, Any],
) -> None:
    rendered = shown(
        prompt("go"), thought(response="r", provider=provider), said("so", response="r")
    )
    assert "reasoning" not in str(rendered.openai_responses())
    assert rendered.notices == (
        "thinking that cannot be sent back is not shown: ar:t1.assistant.thinking",
    )


def test_reasoning_goes_when_what_it_led_to_is_not_shown() -> None:
    thinking, text = thought(response="r", provider=SEALED), said("so", response="r")
    blocks = (prompt("go"), thinking, text, call("a", response="r"), result("a"))
    assert "reasoning" in kinds(items(*blocks))
    gone = BlocksHidden(
        id=EventId("e"), at=0.0, hidden=(Hidden(block=text.id, replacement=""),), reason="cleared"
    )
    assert kinds(items(*blocks, gone)) == ["message user", "function_call", "function_call_output"]


@for_each("follows", [" \n", "so"])
def test_reasoning_that_led_to_nothing_that_can_be_sent_is_left_out(follows: str) -> None:
    found = items(
        prompt("go"),
        thought(response="r", provider=SEALED),
        said(follows, response="r"),
        said("later", response="r2"),
        steer("and?"),
    )
    assert ("reasoning" in kinds(found)) == (follows == "so")


def test_several_reasoning_items_in_a_row_share_what_follows() -> None:
    more = {**SEALED, "id": "rs_2", "encrypted_content": "more"}
    found = items(
        prompt("go"),
        thought(response="r", provider=SEALED),
        thought(response="r", provider=more),
        said("so", response="r"),
        steer("and?"),
    )
    assert kinds(found)[1:4] == ["reasoning", "reasoning", "message assistant"]


def test_reasoning_at_the_end_of_a_broken_answer_is_left_out() -> None:
    found = items(prompt("go"), thought(response="r", provider=SEALED))
    assert kinds(found) == ["message user"]


def test_without_thinking_nothing_is_sent_and_nothing_said_about_it() -> None:
    rendered = shown(
        prompt("go"),
        thought(response="r", provider=SEALED),
        said("so", response="r"),
        keep_thinking=False,
    )
    assert "reasoning" not in str(rendered.request())
    assert rendered.notices == ()


def test_a_request_without_thinking_is_the_rest_of_it() -> None:
    request = shown(
        prompt("go"), thought(response="r", provider=SEALED), said("so", response="r")
    ).request()
    stripped = provider_of(PLAIN).without_thinking(request)
    assert kinds(stripped["input"]) == ["message user", "message assistant", "message user"]


# What the model said.


def test_a_message_keeps_its_phase() -> None:
    block = said("so", response="r")
    phased = type(block)(
        id=block.id, turn=block.turn, response="r", text="so", provider={"phase": "commentary"}
    )
    assert items(prompt("go"), phased)[1] == {
        "type": "message",
        "role": "assistant",
        "content": "so",
        "phase": "commentary",
    }


def test_arguments_go_back_as_they_were_written_if_they_are_an_object() -> None:
    for written, sent in (
        ('{ "command":\t"ls" }', '{ "command":\t"ls" }'),
        ('{"command": ', '{"command":"ls"}'),
        ("[]", '{"command":"ls"}'),
    ):
        made = call("a", response="r", command="ls")
        raw = msgspec.structs.replace(made, provider={"arguments": written})
        assert items(prompt("go"), raw)[1]["arguments"] == sent


def test_a_hidden_call_says_nothing_of_what_the_model_wrote() -> None:
    made = call("a", response="r", command="secret")
    raw = msgspec.structs.replace(made, provider={"arguments": '{ "command": "secret" }'})
    timeline = make.open_timeline(model=PLAIN)
    timeline.append(prompt("go"), raw, result("a"))
    timeline.hide(raw.id)
    assert "secret" not in str(timeline.render().openai_responses())


def test_a_custom_tool_is_called_with_a_text_and_answered_as_one() -> None:
    made = call("a", response="r", name="patch", input="*** Begin")
    free = msgspec.structs.replace(made, provider={"type": "custom"})
    asked, answered = items(prompt("go"), free, result("a", "done"))[1:]
    assert asked == {
        "type": "custom_tool_call",
        "call_id": "a",
        "name": "patch",
        "input": "*** Begin",
    }
    assert answered == {"type": "custom_tool_call_output", "call_id": "a", "output": "done"}


# Results.


def test_results_come_right_behind_the_calls_in_their_order() -> None:
    found = items(
        prompt("go"), call("a", response="r"), call("b", response="r"), steer("and?"),
        result("b", "B"), result("a", "A"),
    )  # fmt: skip
    assert [item.get("output") or item["type"] for item in found[1:]] == [
        "function_call",
        "function_call",
        "A",
        "B",
        "message",
    ]


def test_a_failure_is_said_in_the_text() -> None:
    """The API has no field for it."""
    found = items(prompt("go"), call("a"), result("a", "no such file", is_error=True))
    assert found[-1]["output"] == "[the call failed]\nno such file"


def test_outputs_are_lists_where_marks_may_stand_on_them() -> None:
    blocks = (prompt("go"), call("a"), result("a", "done"))
    listed = make.context(model=MARKED, provider=provider_of(MARKED))
    plain, marked = (
        make.shown(make.view_of(*blocks), given).openai_responses()["input"][-1]["output"]
        for given in (CONTEXT, listed)
    )
    assert plain == "done"
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    assert marked == [{"type": "input_text", "text": "done", **mark}]


# Blocks of the server's.


def test_a_compaction_of_the_servers_goes_back_as_it_came_and_folds_nothing() -> None:
    found = items(
        prompt("go"),
        own("compaction", id="cmp_1", encrypted_content="sealed", created_by="x"),
        said("so", response="r"),
    )
    assert found[0]["content"][0]["text"] == "go"
    assert found[1] == {"type": "compaction", "encrypted_content": "sealed"}


def test_the_servers_own_tools_traffic_goes_back_whole() -> None:
    value = {"id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
    found = items(prompt("go"), own("web_search_call", **value, results=None), said("so"))
    assert found[1] == {"type": "web_search_call", **value}


@for_each(
    "block",
    [
        own("computer_call", id="cc_1"),
        own("shell_call", call_id="c1"),
        other("server_tool_use", id="srvtoolu_1", input={}),
    ],
)
def test_a_block_that_is_not_taken_back_is_left_out_with_a_notice(block: OpaqueBlock) -> None:
    """Older logs have calls of the provider's tools as they came, without their results."""
    rendered = shown(prompt("go"), said("so", response="r"), block)
    assert kinds(rendered.openai_responses()["input"])[:2] == ["message user", "message assistant"]
    assert any("not shown" in notice for notice in rendered.notices)


def test_the_summary_that_another_provider_wrote_is_told_in_words() -> None:
    """What it folded is not shown any more, whoever is asked."""
    found = items(prompt("go"), other("compaction", content="So far: X."), steer("and?"))
    assert found[0]["content"] == "So far: X."
    assert kinds(found) == ["message assistant", "message user"]


def test_another_provider_does_not_get_this_ones_compaction() -> None:
    view = make.view_of(prompt("go"), own("compaction", encrypted_content="sealed"), steer("so?"))
    rendered = make.shown(view)
    assert rendered.violations == ()
    assert "sealed" not in str(rendered.anthropic(max_tokens=1))
    assert any("not shown" in notice for notice in rendered.notices)


# A response of the Responses API as blocks: all that was said, what it cost, and what is none.


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
TEXT = {"type": "output_text", "text": "I will look.", "annotations": []}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [TEXT],
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "bash",
    "arguments": '{"command":"ls"}',
    "status": "completed",
}
CUSTOM = {"type": "custom_tool_call", "id": "ct_1", "call_id": "c2", "name": "p", "input": "***"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 50},
    "output_tokens": 7,
    "total_tokens": 107,
}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    own = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.6"}
    return {**own, "output": list(output), **fields}


def read(found: object) -> Answer:
    ids = Ids()
    return PROVIDERS["openai.responses"].read(found, lambda: BlockId(ids()), TurnId("t1"))


def test_every_item_becomes_a_block_in_its_order() -> None:
    answer = read(response(REASONING, MESSAGE, CALL, CUSTOM, SEARCH, usage=USAGE))
    assert answer.id == "resp_1"
    thinking, text, call, free, search = answer.blocks
    assert isinstance(thinking, AssistantThinking)
    assert thinking.provider == REASONING
    assert isinstance(text, AssistantCompletion)
    assert (text.text, text.provider) == ("I will look.", {"phase": "commentary"})
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.name, call.input) == ("call_1", "bash", {"command": "ls"})
    assert call.provider == {}
    assert isinstance(free, ToolCall)
    assert (free.input, free.provider) == ({"input": "***"}, {"type": "custom"})
    assert isinstance(search, OpaqueBlock)
    assert tag_of(search) == "provider.openai.web_search_call"
    assert search.fields["value"] == SEARCH
    assert all(getattr(block, "response", "resp_1") == "resp_1" for block in answer.blocks)


@for_each(
    ("written", "parsed"),
    [
        ('{ "command": "ls" }', {"command": "ls"}),
        ('{"command": ', {"input": '{"command": '}),
        ("[1]", {"input": "[1]"}),
        ('"x"', {"input": '"x"'}),
    ],
)
def test_arguments_are_kept_as_written_where_they_would_be_sent_otherwise(
    written: str, parsed: dict[str, Any]
) -> None:
    [call] = read(response({**CALL, "arguments": written})).blocks
    assert isinstance(call, ToolCall)
    assert (call.input, call.provider) == (parsed, {"arguments": written})


def test_usage_has_one_meaning_for_every_provider() -> None:
    """What came from the cache, or went there, is no input here; it is in the provider's count."""
    usage = read(response(MESSAGE, usage=USAGE)).usage
    assert usage is not None
    assert (usage.uncached, usage.cache_read, usage.cache_write) == (10, 40, 50)
    assert (usage.output, usage.input) == (7, 100)
    assert read(response(MESSAGE)).usage is None
    bare = read(response(MESSAGE, usage={"input_tokens": 5, "output_tokens": None})).usage
    assert bare is not None
    assert (bare.uncached, bare.cache_read, bare.output) == (5, 0, 0)


def test_a_refusal_is_said_and_marked_as_one() -> None:
    refused = {**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}
    [block] = read(response(refused)).blocks
    assert isinstance(block, AssistantCompletion)
    assert block.text == "No."
    assert block.provider == {"phase": "commentary", "refusal": True}


def test_texts_of_one_message_are_one_text() -> None:
    [block] = read(response({**MESSAGE, "content": [TEXT, {**TEXT, "text": " Now."}]})).blocks
    assert isinstance(block, AssistantCompletion)
    assert block.text == "I will look. Now."


def test_a_call_that_was_cut_off_is_discarded() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert [tag_of(b) for b in read(response(MESSAGE, CALL, **cut)).blocks] == [
        "assistant.completion"
    ]
    marked = {**CALL, "status": "incomplete"}
    assert len(read(response(MESSAGE, marked, SEARCH)).blocks) == 2
    assert len(read(response(CALL, MESSAGE, **cut)).blocks) == 2


def test_a_compaction_asked_for_is_its_last_item() -> None:
    """It repeats what the user said, which the log has."""
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
    [block] = read(response(user, item, object="response.compaction")).blocks
    assert tag_of(block) == "provider.openai.compaction"


@attrs.frozen
class SdkObject:
    """What the client returns: something that can say what it holds."""

    value: dict[str, Any]

    def to_dict(self, **_: Any) -> dict[str, Any]:
        return self.value

    model_dump = to_dict


def test_an_object_of_the_sdk_is_read_as_its_json() -> None:
    found = SdkObject(response(MESSAGE, CALL, usage=USAGE))
    assert read(found) == read(found.value)
    nested = {**found.value, "output": [SdkObject(MESSAGE), CALL], "usage": SdkObject(USAGE)}
    assert read(nested) == read(found.value)


async def _later() -> None:
    """An answer that nobody has waited for."""


@for_each(
    ("found", "said"),
    [
        ({"choices": []}, "not a response of OpenAI's Chat Completions API"),
        ({"content": []}, "not a response of Anthropic's"),
        (response(status="failed", error={"message": "boom"}), "an error of the provider.*boom"),
        (response(status="in_progress"), "not finished: its status is 'in_progress'"),
        (response(), "empty"),
        (response(object="chat.completion"), "not 'chat.completion'"),
        (response(id=5, usage=USAGE), "id must be a text"),
        ({"output": "hm"}, "output must be a list"),
        (response("hm"), "output.0 must be an object"),
        (response({}), "output.0: .* is not a type of output item"),
        (response(MESSAGE, {**CALL, "call_id": None}), "output.1.call_id must be a text"),
        (response({**CALL, "name": " "}), "output.0.name is empty"),
        (response({"type": "function_call_output"}), "an input item"),
        ("hm", "not 'hm'"),
        (None, "not None"),
    ],
)
def test_what_is_no_response_is_refused_by_name(found: object, said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        read(found)


def test_an_answer_that_nobody_waited_for_is_told_apart() -> None:
    later = _later()
    with pytest.raises(MisuseError, match="await it first"):
        read(later)
    later.close()


def test_what_cannot_be_stored_is_refused_and_says_where() -> None:
    with pytest.raises(CodecError, match=r"output\.1, action.* nested deeper than"):
        read(response(MESSAGE, {**SEARCH, "action": deep(300)}))


@for_each("depth", [300, 100_000])
def test_arguments_that_are_too_deep_to_be_stored_are_kept_as_a_text(depth: int) -> None:
    """A model can write anything into a text."""
    written = '{"x":' * depth + "1" + "}" * depth
    [call] = read(response({**CALL, "arguments": written})).blocks
    assert isinstance(call, ToolCall)
    assert call.input == {"input": written}


# Every item of the Responses API goes back in the next request, or a notice says that it does not.


PICTURE: Final = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"


@attrs.frozen
class Exchange:
    """What the model's response contains, and what the client adds."""

    said: Sequence[Json]
    given: Sequence[Json] = ()
    is_sent: bool = True


def shell(*chunks: Json, **more: Any) -> Exchange:
    """Commands that the client ran."""
    most = {"max_output_length": 900}
    call = {"type": "shell_call", "action": {"commands": ["ls", "pwd"], **most}, **more}
    return Exchange([call], [{"type": "shell_call_output", "output": list(chunks), **most}])


def printed(out: str, err: str = "", code: int = 0) -> Json:
    return {"stdout": out, "stderr": err, "outcome": {"type": "exit", "exit_code": code}}


def patch(status: str, **operation: str) -> Exchange:
    """A patch that the client applied, or could not."""
    call = {"type": "apply_patch_call", "status": "completed", "operation": operation}
    return Exchange(
        [call], [{"type": "apply_patch_call_output", "status": status, "output": "log"}]
    )


def computer(checks: Sequence[Json], output: Json, **asked: Any) -> Exchange:
    """What was done with a computer, and what it looked like then."""
    call = {"type": "computer_call", "pending_safety_checks": list(checks), **asked}
    answer: Json = {
        "type": "computer_call_output",
        "output": {"type": "computer_screenshot", **output},
    }
    return Exchange(
        [call], [answer | ({"acknowledged_safety_checks": list(checks)} if checks else {})]
    )


def alone(kind: str, **fields: Any) -> Exchange:
    return Exchange([{"type": kind, "id": f"{kind}_1", **fields}])


def unsent(kind: str, **fields: Any) -> Exchange:
    return attrs.evolve(alone(kind, **fields), is_sent=False)


FUNCTION: Final = {"type": "function_call", "name": "read", "arguments": '{"path":"a"}'}
EXCHANGES: Final[Sequence[Exchange]] = [
    shell(printed("a.py\nb.py")),
    shell(printed("a.py", "no such file", 2), printed("/srv")),
    shell({"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}),
    shell(printed('[{"stdout": 1}]'), environment={"type": "local"}),
    patch("completed", type="create_file", path="a.py", diff="+x"),
    patch("failed", type="delete_file", path="a.py"),
    computer([], {"image_url": PICTURE}, action={"type": "screenshot"}),
    computer([{"id": "sc_1"}], {"file_id": "file_1"}, actions=[{"type": "wait"}]),
    Exchange(
        [{"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}}],
        [{"type": "local_shell_call_output", "output": "a.py"}],
    ),
    Exchange(
        [{**FUNCTION, "caller": {"type": "program", "caller_id": "p"}}],
        [{"type": "function_call_output", "output": [{"type": "input_text", "text": "a"}]}],
    ),
    Exchange(
        [{"type": "custom_tool_call", "name": "sql", "input": "select 1"}],
        [{"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": "1"}]}],
    ),
    alone("web_search_call", status="completed", action={"type": "search", "query": "weather"}),
    alone("file_search_call", status="completed", queries=["a"]),
    alone("code_interpreter_call", status="completed", code="1", container_id="c"),
    alone("image_generation_call", status="completed", result="aGk="),
    alone("mcp_list_tools", server_label="s", tools=[]),
    alone("mcp_call", name="n", arguments="{}", server_label="s", output="out"),
    alone("tool_search_call", arguments={}, execution="server", status="completed"),
    alone("tool_search_output", tools=[], execution="server", status="completed"),
    alone("program", code="x", fingerprint="f"),
    alone("program_output", result="x", status="completed"),
    Exchange(
        [{"type": "mcp_approval_request", "id": "r_1", "name": "n", "arguments": "{}"}],
        [{"type": "mcp_approval_response", "approval_request_id": "r_1", "approve": True}],
    ),
    Exchange([], [{"type": "configuration_update", "reasoning": {"effort": "low"}}]),
    unsent("item_reference"),
    unsent("compaction_trigger"),
    unsent("brand_new_item", words="of tomorrow"),
]


def numbered(exchange: Exchange, number: int) -> Exchange:
    """With ids of its own, where its kind has them."""
    call_id, paired = f"c{number}", any("output" in item for item in exchange.given)

    def own(item: Json, *, is_said: bool) -> Json:
        is_local = item["type"] == "local_shell_call_output"
        known = {"id" if is_local else "call_id": call_id} if paired else {}
        identity = {"id": f"{item.get('id', item['type'])}_{number}"} if is_said else {}
        return {**item, **identity, **known}

    return attrs.evolve(
        exchange,
        said=[own(item, is_said=True) for item in exchange.said],
        given=[own(item, is_said=False) for item in exchange.given],
    )


def message(number: int, text: str) -> Json:
    part: Json = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"m{number}", "role": "assistant", "content": [part]}


def essence(item: Json) -> Json:
    """An item without cache marks, and without the id by which nothing refers to it."""
    is_call = item["type"] in SHAPES["openai.responses"].calls
    known = {key: value for key, value in item.items() if not (is_call and key == "id")}
    if isinstance(known.get("output"), list):
        marks = "prompt_cache_breakpoint"
        known["output"] = [{k: v for k, v in p.items() if k != marks} for p in known["output"]]
    return known


@given(st.lists(st.sampled_from(EXCHANGES), min_size=1, max_size=5), st.booleans())
def test_whatever_goes_in_goes_back_or_a_notice_says_that_it_does_not(
    chosen: Sequence[Exchange],
    is_recorded: bool,  # noqa: FBT001 -- drawn
) -> None:
    timeline = make.open_timeline(model=MARKED)
    history: list[Json] = [{"type": "message", "role": "user", "content": "Go."}]
    wanted: list[Json] = []
    left = 0
    for number, exchange in enumerate(numbered(e, n) for n, e in enumerate(chosen)):
        output = [*exchange.said, message(number, f"Done {number}.")]
        synced(timeline, history)
        timeline.render()
        if is_recorded:
            timeline.record({"id": f"r{number}", "output": output})
        history += [*output, *exchange.given]
        wanted += [*exchange.said, *exchange.given] if exchange.is_sent else []
        left += 0 if exchange.is_sent else len(exchange.said)
    synced(timeline, history)
    assert synced(timeline, history).appended == 0
    rendered = timeline.render()
    sent = list(map(essence, rendered.openai_responses()["input"]))
    for item in map(essence, wanted):
        assert item in sent
        sent.remove(item)
    told = [notice for notice in rendered.notices if "refuses" in notice]
    more = (re.search(r"and (\d+) more", notice) for notice in told)
    assert len(told) + sum(int(found[1]) for found in more if found) == left
    assert rendered.violations == ()
    assert not timeline.open_calls


def synced(timeline: Timeline, history: Sequence[Json]) -> Synced[Timeline]:
    return timeline.sync(history, format="openai.responses")


@for_each("exchange", [each for each in EXCHANGES if any("output" in i for i in each.given)])
def test_a_tool_that_the_client_runs_is_a_call_with_a_result(exchange: Exchange) -> None:
    """Whoever runs it, also answers it; hidden, both are shown as those of a function."""
    own = numbered(exchange, 1)
    timeline = make.open_timeline(model=MARKED)
    timeline.user("Go.")
    timeline.record({"id": "r1", "output": own.said})
    assert list(timeline.open_calls) == ["c1"]
    timeline.tool_result("c1", "It is done.")
    assert not timeline.open_calls
    assert timeline.render().violations == ()
    call, result = (
        e.block for e in timeline.view.entries if isinstance(e.block, ToolCall | ToolResult)
    )
    timeline.hide(call.id, result.id)
    rendered = timeline.render()
    assert rendered.violations == ()
    assert "It is done." not in str(rendered.openai_responses())


def test_what_the_server_ran_is_no_open_call() -> None:
    call, result = (
        numbered(shell(printed("a.py")), 1).said,
        numbered(shell(printed("a.py")), 1).given,
    )
    timeline = make.open_timeline(model=MARKED)
    timeline.user("Go.")
    timeline.record({"id": "r1", "output": [*call, *result, message(1, "Done.")]})
    assert not timeline.open_calls
    timeline.user("And?")
    rendered = timeline.render()
    kinds = [item["type"] for item in rendered.openai_responses()["input"]]
    assert kinds == ["message", "shell_call", "shell_call_output", "message", "message"]
    assert rendered.violations == ()
