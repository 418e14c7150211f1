"""Blocks as items of input: reasoning with what it led to, calls as they were written, results as they are."""

from functools import partial
from typing import Any

import msgspec

from blocks import Block, BlocksHidden, EventId, Hidden, OpaqueBlock, RequestRendered
from render import provider_of
from tests import _builders as make
from tests._builders import call, prompt, result, said, steer, thought
from tests._table import for_each
from tests.render.providers.openai._play import MARKED, PLAIN

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
