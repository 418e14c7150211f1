"""LangChain's messages: what a provider wants back comes out as it came in, streamed or not, in each of its
output versions."""

from typing import Any

from blocks.formats import Call, Content, ModelText, Thought, Verbatim, messages_from, response_from
from tests._table import for_each

Json = dict[str, Any]

SIGNED: Json = {"type": "thinking", "thinking": "hm", "signature": "s1"}
SEALED: Json = {
    "type": "reasoning",
    "id": "rs_1",
    "encrypted_content": "e",
    "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
}
CALLS = [
    {"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"},
    {"name": "g", "args": {"b": 2}, "id": "c2", "type": "tool_call"},
]
RAW = '{"a":  1}'


def spoken(content: Any, provider: str, **more: Any) -> list[Content]:
    message = {"type": "ai", "content": content, "response_metadata": {"model_provider": provider}}
    [[found]] = messages_from([message | more], "langchain")
    return list(found.content)


def function_call(call: Json, **more: Any) -> Json:
    known = {"call_id": call["id"], "name": call["name"], "arguments": RAW, "id": "fc_1"}
    return {"type": "function_call", **known, **more}


@for_each(
    ("provider", "content", "more", "thought"),
    [
        ("anthropic", SIGNED, {}, SIGNED),
        ("anthropic", {**SIGNED, "index": 0}, {}, SIGNED),
        ("anthropic", {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "s1"}}, {}, SIGNED),
        ("anthropic", {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "x"}}, {}, {"type": "redacted_thinking", "data": "x"}),
        ("openai", SEALED, {}, SEALED),
        ("openai", {**SEALED, "index": 0, "summary": [{**part, "index": n} for n, part in enumerate(SEALED["summary"])]}, {}, SEALED),
        ("openai", {"type": "text", "text": " "}, {"additional_kwargs": {"reasoning": SEALED}}, SEALED),
    ],
)  # fmt: skip
def test_thinking_is_what_its_provider_sent(
    provider: str, content: Json, more: Json, thought: Json
) -> None:
    [found] = spoken([content], provider, **more)
    assert isinstance(found, Thought)
    assert found.value == thought


def test_a_reasoning_item_of_which_each_part_has_a_block_is_one() -> None:
    head = {"type": "reasoning", "id": "rs_1", "index": "lc_rs_1"}
    parts = [
        {**head, "reasoning": "a", "extras": {"encrypted_content": "e"}},
        {**head, "reasoning": "b"},
        {"type": "reasoning", "id": "rs_2", "encrypted_content": "f"},
    ]
    second = {"type": "reasoning", "id": "rs_2", "encrypted_content": "f", "summary": []}
    assert spoken(parts, "openai") == [
        Thought(value=SEALED, source="rs_1"),
        Thought(value=second, source="rs_2"),
    ]


def test_a_call_stands_where_the_model_made_it_with_the_text_of_its_arguments() -> None:
    other = {**SEALED, "id": "rs_2"}
    content = [function_call(CALLS[0], index=1), other, function_call(CALLS[1], arguments="{}")]
    found = spoken(content, "openai", tool_calls=CALLS)
    assert found == [
        Call(call_id="c1", name="f", input={"a": 1}, provider={"arguments": RAW}, source="fc_1"),
        Thought(value=other, source="rs_2"),
        Call(call_id="c2", name="g", input={"b": 2}, source="fc_1"),
    ]  # fmt: skip


def test_a_call_that_a_person_edited_is_the_edited_one() -> None:
    edited = [{**CALLS[0], "args": {"a": 7}}]
    used = {"type": "tool_use", "id": "c1", "name": "f", "input": {}, "partial_json": RAW}
    [responses] = spoken([function_call(CALLS[0])], "openai", tool_calls=edited)
    [anthropic] = spoken([used], "anthropic", tool_calls=edited)
    assert responses == Call(call_id="c1", name="f", input={"a": 7}, source="fc_1")
    assert anthropic == Call(call_id="c1", name="f", input={"a": 7})


def test_calls_that_are_in_no_block_come_last() -> None:
    found = spoken("Both.", "openai", tool_calls=CALLS)
    assert [type(content) for content in found] == [ModelText, Call, Call]


def test_texts_of_one_item_are_one_and_keep_what_it_has() -> None:
    text = {"type": "text", "id": "msg_1", "phase": "commentary", "annotations": []}
    content = [{**text, "text": "One, "}, {**text, "text": "two."}, {**text, "id": "msg_2", "text": "Three."}]  # fmt: skip
    known = {"phase": "commentary"}
    assert spoken(content, "openai") == [
        ModelText(text="One, two.", provider=known, source="msg_1"),
        ModelText(text="Three.", provider=known, source="msg_2"),
    ]


def test_a_tool_that_the_provider_ran_keeps_the_input_that_was_streamed() -> None:
    ran = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    streamed = {**ran, "index": 2, "partial_json": '{"query": "x"}', "caller": None}
    assert spoken([streamed], "anthropic") == [Verbatim(value={**ran, "input": {"query": "x"}})]


@for_each(
    "details",
    [
        {"cache_read": 80, "cache_creation": 0, "ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 3},
        {"priority_cache_read": 80, "priority_cache_creation": 10, "priority": 20},
        {"flex_cache_read": 80, "flex_cache_creation": 10},
    ],
)  # fmt: skip
def test_usage_has_what_went_into_the_cache_under_each_of_its_names(details: Json) -> None:
    told = {"input_tokens": 100, "output_tokens": 5, "input_token_details": details}
    usage = response_from(
        {"type": "ai", "content": "ok", "usage_metadata": told}, "langchain"
    ).usage
    assert usage is not None
    assert (usage.uncached, usage.cache_read, usage.cache_write) == (10, 80, 10)


@for_each("runs", [True, False])
def test_a_call_that_was_cut_off_counts_if_langchain_runs_it(runs: bool) -> None:  # noqa: FBT001
    calls = {"tool_calls": CALLS[:1], "invalid_tool_calls": []}
    broken = {"tool_calls": [], "invalid_tool_calls": [{**CALLS[0], "args": '{"a'}]}
    stopped = {"response_metadata": {"stop_reason": "max_tokens"}}
    message = {"type": "ai", "content": "So:", **stopped, **(calls if runs else broken)}
    assert response_from(message, "langchain").is_cut_off is not runs
