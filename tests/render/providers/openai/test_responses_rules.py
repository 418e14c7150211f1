"""Every rule of the Responses API: a request that breaks it and no other, and its repaired twin."""

from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from render import PROVIDERS, Model
from render.providers.openai._common_rules import CommonRule
from render.providers.openai._responses_rules import Rule, check_request
from tests._table import for_each
from tests.render.providers.openai._play import MARKED, PLAIN

PNG = "data:image/png;base64,iVBORw0KGgo="
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
SMALL = attrs.evolve(PLAIN, output_tokens_max=100)


def text(words: Any = "hm", **fields: Any) -> dict[str, Any]:
    return {"type": "input_text", "text": words, **fields}


def user(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": list(parts) or [text()], **fields}


def said(content: Any = "so", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, **fields}


def call(call_id: Any = "c1", **fields: Any) -> dict[str, Any]:
    own = {"type": "function_call", "call_id": call_id, "name": "bash", "arguments": "{}"}
    return {**own, **fields}


def custom(call_id: Any = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": "custom_tool_call", "call_id": call_id, "name": "p", "input": "x", **fields}


def output(call_id: Any = "c1", given: Any = "done", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": given, **fields}


def reasoning(**fields: Any) -> dict[str, Any]:
    own = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    return {**own, **fields}


def image(url: Any = PNG, **fields: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url, "detail": "auto", **fields}


def pdf(**fields: Any) -> dict[str, Any]:
    data = "data:application/pdf;base64,aGk="
    return {"type": "input_file", "filename": "a.pdf", "file_data": data, **fields}


def tool(**fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}}
    return {"type": "function", "name": "bash", "parameters": schema, "strict": False, **fields}


def offered(**fields: Any) -> dict[str, Any]:
    return {"type": "additional_tools", "role": "developer", "tools": [], **fields}


def told(**fields: Any) -> dict[str, Any]:
    own = {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": [text()]}
    return {**own, **fields}


def of(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"input": list(items), "store": False, **fields}


LONG = "x" * 65
TRIGGER = {"type": "compaction_trigger"}
CASES: list[tuple[str, str, Any, Any, Model | None]] = [
    ("extra_field", "input.0", of({**user(), "surprise": 1}), of(user()), None),
    ("extra_field", "input.0.content.0", of(user({**text(), "annotations": []})), of(user(text())), None),
    ("extra_field", "input.1", of(user(), {**call(), "index": 0}, output()), of(user(), call(), output()), None),
    ("extra_field", "input.2", of(user(), call(), output(is_error=True)), of(user(), call(), output()), None),
    ("shape", "request", "hm", of(user()), None),
    ("shape", "input", {"input": 5}, {"input": "hm"}, None),
    ("shape", "tools", of(user(), tools="x"), of(user(), tools=[]), None),
    ("shape", "instructions", of(user(), instructions=5), of(user(), instructions="x"), None),
    ("shape", "input.0", of("hm"), of(user()), None),
    ("shape", "input.0", of(user(content=5)), of(user(content="x")), None),
    ("shape", "input.0.content.0", of(user("hm")), of(user(text())), None),
    ("shape", "input.0.content.0", of(user(text(5))), of(user(text(""))), None),
    ("shape", "input.0", of(reasoning(summary=None), said()), of(reasoning(), said()), None),
    ("shape", "tools.0", of(user(), tools=["x"]), of(user(), tools=[tool()]), None),
    ("shape", "max_output_tokens", of(user(), max_output_tokens="5"), of(user(), max_output_tokens=16), None),
    ("no_input", "input", of(), of(user()), None),
    ("unknown_item", "input.0", of({"type": "tool_use"}), of({"type": "web_search_call"}), None),
    ("role", "input.0", of(user(role="tool")), of(user(role="developer")), None),
    ("content_empty", "input.0", of(user(content=[])), of(user()), None),
    ("content_empty", "input.1", of(call(), output(given=[])), of(call(), output(given="")), None),
    ("unknown_part", "input.0.content.0", of(user({"type": "text", "text": "x"})), of(user()), None),
    ("unknown_part", "input.0.content.0", of(said([text()])), of(said([{"type": "output_text", "text": "x"}])), None),
    ("unknown_part", "input.0.content.0", of(user({"type": "output_text", "text": "x"})), of(user()), None),
    ("unknown_part", "input.0.content.0", of(said([image()])), of(said([{"type": "refusal", "refusal": "no"}])), None),
    ("phase", "input.0", of(said(phase="late")), of(said(phase="final_answer")), None),
    ("call_unanswered", "input.0", of(call()), of(call(), output()), None),
    ("output_unexpected", "input.0", of(output()), of(call(), output()), None),
    ("output_duplicate", "input.2", of(call(), output(), output()), of(call(), output()), None),
    ("output_kind", "input.1", of(custom(), output()), of(custom(), output(type="custom_tool_call_output")), None),
    ("call_id_duplicate", "input.2", of(call(), output(), call(), output()), of(call(), output(), call("c2"), output("c2")), None),
    ("call_id", "input.0", of(call(LONG), user()), of(call(), output()), None),
    ("call_id", "input.0", of(output(None), user()), of(user()), None),
    ("call_name", "input.0", of(call(name="a b"), output()), of(call(name="a_b"), output()), None),
    ("call_name", "input.0", of(call(name=None), output()), of(call(), output()), None),
    ("arguments", "input.0", of(call(arguments={}), output()), of(call(), output()), None),
    ("arguments", "input.0", of(call(arguments="{"), output()), of(call(), output()), None),
    ("arguments", "input.0", of(call(arguments="[" * 100_000), output()), of(call(), output()), None),
    ("arguments", "input.0", of(custom(input=5), output(type="custom_tool_call_output")), of(custom(), output(type="custom_tool_call_output")), None),
    ("reasoning_sealed", "input.0", of(reasoning(encrypted_content=None), said()), of(reasoning(), said()), None),
    ("reasoning_alone", "input.0", of(reasoning(), user()), of(reasoning(), said()), None),
    ("reasoning_alone", "input.1", of(said(), reasoning()), of(reasoning(), reasoning(), call(), output()), None),
    ("trigger_last", "input.1", of(user(), TRIGGER, user()), of(user(), TRIGGER), None),
    ("shape", "input.0", of(offered(tools=5)), of(offered()), None),
    ("tools_role", "input.0", of(offered(role="user")), of(offered()), None),
    ("tool_name", "input.0.tools.1", of(offered(tools=[tool(), tool(name="a b")])), of(offered(tools=[tool()])), None),
    ("shape", "input.0", of(told(author=None)), of(told()), None),
    ("shape", "input.0", of(told(content=5)), of(told(content=[{"type": "encrypted_content", "encrypted_content": "x"}])), None),
    ("content_empty", "input.0", of(told(content=[])), of(told(content=[text()])), None),
    ("compaction_sealed", "input.0", of({"type": "compaction"}), of({"type": "compaction", "encrypted_content": "x"}), None),
    ("mark_place", "input.0", of(user(**MARK)), of(user(text(**MARK))), MARKED),
    ("mark_place", "input.0.content.0", of(said([{"type": "output_text", "text": "x", **MARK}])), of(user(image(**MARK))), MARKED),
    ("mark_form", "input.0.content.0", of(user(text(prompt_cache_breakpoint={"mode": "implicit"}))), of(user(text(**MARK))), MARKED),
    ("mark_form", "input.0.content.0", of(user(text(prompt_cache_breakpoint={"mode": "explicit", "ttl": "1h"}))), of(user(text(prompt_cache_breakpoint={"mode": "explicit", "ttl": "12h"}))), MARKED),
    ("mark_model", "input.0", of(user(text(**MARK))), of(user(text())), PLAIN),
    ("mark_model", "prompt_cache_options", of(user(), prompt_cache_options={"mode": "explicit"}), of(user()), PLAIN),
    ("cache_options", "prompt_cache_options", of(user(), prompt_cache_options={"mode": "x"}), of(user(), prompt_cache_options={"mode": "implicit"}), MARKED),
    ("cache_key", "prompt_cache_key", of(user(), prompt_cache_key=LONG), of(user(), prompt_cache_key="x"), None),
    ("tool_type", "tools.0", of(user(), tools=[{"name": "x", "input_schema": {}}]), of(user(), tools=[{"type": "web_search"}]), None),
    ("tool_name", "tools.0", of(user(), tools=[tool(name="a b")]), of(user(), tools=[tool(name="a-b")]), None),
    ("tool_name", "tools.0", of(user(), tools=[{"type": "custom"}]), of(user(), tools=[{"type": "custom", "name": "x"}]), None),
    ("tool_name_duplicate", "tools.1", of(user(), tools=[tool(), tool()]), of(user(), tools=[tool(), tool(name="b")]), None),
    ("tool_schema", "tools.0", of(user(), tools=[tool(parameters={"type": "array"})]), of(user(), tools=[tool(parameters=None)]), None),
    ("images_max", "input", of(user(*[image()] * 501)), of(user(*[image()] * 500)), None),
    ("url", "input.0.content.0", of(user(image("a.png"))), of(user(image("https://example.org/a.png"))), None),
    ("url", "input.0.content.0", of(user(image(None))), of(user(image(None, file_id="f"))), None),
    ("media_type", "input.0.content.0", of(user(image(PNG.replace("png", "bmp")))), of(user(image())), None),
    ("base64", "input.0.content.0", of(user(image("data:image/png;base64,?"))), of(user(image())), None),
    ("base64", "input.0.content.0", of(user(pdf(file_data="aGk="))), of(user(pdf())), None),
    ("file", "input.0.content.0", of(user(pdf(file_data=None))), of(user(pdf(file_data=None, file_id="f"))), None),
    ("file", "input.0.content.0", of(user(pdf(filename=None))), of(user(pdf())), None),
    ("request_bytes", "request", of(user(text("x" * (50 * 1024 * 1024 + 1)))), of(user(text("x"))), None),
    ("max_tokens", "max_output_tokens", of(user(), max_output_tokens=101), of(user(), max_output_tokens=100), SMALL),
    ("max_tokens", "max_output_tokens", of(user(), max_output_tokens=15), of(user(), max_output_tokens=16), None),
]  # fmt: skip


@for_each(("rule", "place", "broken", "repaired", "model"), CASES)
def test_a_rule_is_broken_alone_and_its_repair_breaks_none(
    rule: str, place: str, broken: Any, repaired: Any, model: Model | None
) -> None:
    found = check_request(broken, model)
    assert [(each.rule, each.place) for each in found] == [(rule, place)]
    assert found[0].message
    assert check_request(repaired, model) == ()


def test_every_rule_has_a_case() -> None:
    assert {rule.name.lower() for rule in (*CommonRule, *Rule)} == {case[0] for case in CASES}


def test_more_marks_than_are_written_are_no_error() -> None:
    """The latest four are written, the others only looked up."""
    assert check_request(of(*[user(text(**MARK))] * 9), MARKED) == ()


def test_an_output_may_stand_anywhere_behind_its_call() -> None:
    request = of(call("a"), call("b"), user(), output("b"), said(), output("a"))
    assert check_request(request, None) == ()


def test_codex_says_to_which_turn_an_item_belongs() -> None:
    turn = {"internal_chat_message_metadata_passthrough": {"turn_id": "t1"}}
    items = [user(**turn), said(**turn), call(**turn), output(**turn)]
    assert not check_request(of(*items))


def test_a_text_is_an_input() -> None:
    assert check_request({"input": "hm"}, None) == ()


_NAMES = st.sampled_from(
    ("type", "role", "content", "call_id", "output", "name", "arguments", "text", "input_text", "input",
     "tools", "function", "tool_calls", "messages", "image_url", "file", "id", "encrypted_content")
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(_JSON, st.sampled_from(("openai.responses", "openai.chat")))
def test_whatever_a_request_is_nothing_is_raised(request: Any, name: str) -> None:
    check = PROVIDERS[name].violations
    check(request, PLAIN)
    items = [request, {"type": "message", "role": "user", "content": [request]}, {"role": "assistant",
             "tool_calls": [request], "content": request}, {**call(), "arguments": request}]  # fmt: skip
    for item in items:
        check({"input": [item], "messages": [item], "tools": [request]}, PLAIN)
