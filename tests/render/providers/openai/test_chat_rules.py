"""Every rule of Chat Completions: a request that breaks it and no other, and its repaired twin."""

from typing import Any

import attrs

from render import Model
from render.providers.openai._chat_rules import Rule, check_request
from render.providers.openai._common_rules import CommonRule
from tests._table import for_each
from tests.render.providers.openai._play import CHAT, LOCAL

PNG = "data:image/png;base64,iVBORw0KGgo="
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
SMALL = attrs.evolve(LOCAL, output_tokens_max=100)
LONG = "x" * 41


def text(words: Any = "hm", **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def user(content: Any = "hm", **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **fields}


def said(content: Any = "so", *calls: Any, **fields: Any) -> dict[str, Any]:
    made = {"tool_calls": list(calls)} if calls else {}
    return {"role": "assistant", "content": content, **made, **fields}


def call(call_id: Any = "c1", **function: Any) -> dict[str, Any]:
    own = {"name": "bash", "arguments": "{}", **function}
    return {"id": call_id, "type": "function", "function": own}


def result(call_id: Any = "c1", content: Any = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def image(url: Any = PNG, **fields: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}, **fields}


def pdf(**fields: Any) -> dict[str, Any]:
    data = "data:application/pdf;base64,aGk="
    return {"type": "file", "file": {"filename": "a.pdf", "file_data": data, **fields}}


def tool(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "bash", **fields}}


def of(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": list(messages), **fields}


def asked(*calls: Any) -> dict[str, Any]:
    return of(user(), said(None, *calls), *(result(made["id"]) for made in calls))


CASES: list[tuple[str, str, Any, Any, Model | None]] = [
    ("shape", "request", "hm", of(user()), None),
    ("shape", "messages", {"messages": 5}, of(user()), None),
    ("shape", "tools", of(user(), tools="x"), of(user(), tools=[]), None),
    ("shape", "messages.0", of("hm"), of(user()), None),
    ("shape", "messages.0", of(user(5)), of(user("")), None),
    ("shape", "messages.0.content.0", of(user(["hm"])), of(user([text()])), None),
    ("shape", "messages.0.content.0", of(user([text(5)])), of(user([text("")])), None),
    ("shape", "messages.1", of(user(), said(tool_calls="x")), of(user(), said()), None),
    ("shape", "messages.1.tool_calls.0", of(user(), said(None, "x")), asked(call()), None),
    ("shape", "tools.0", of(user(), tools=["x"]), of(user(), tools=[tool()]), None),
    ("shape", "max_tokens", of(user(), max_tokens=0), of(user(), max_tokens=1), None),
    ("shape", "prompt_cache_key", of(user(), prompt_cache_key=5), of(user()), None),
    ("no_messages", "messages", of(), of(user()), None),
    ("extra_field", "messages.0", of({**user(), "surprise": 1}), of({**user(), "name": "Ann"}), None),
    ("extra_field", "messages.0.content.0", of(user([text("a", annotations=[])])), of(user([text("a")])), None),
    ("extra_field", "messages.1.tool_calls.0", asked({**call(), "index": 0}), asked(call()), None),
    ("role", "messages.0", of(user(role="function")), of(user(role="developer")), None),
    ("content_null", "messages.0", of(user(None)), of(user("")), None),
    ("content_null", "messages.1", of(user(), said(None)), of(user(), said(None, refusal="no")), None),
    ("content_empty", "messages.0", of(user([])), of(user([text()])), None),
    ("unknown_part", "messages.0.content.0", of(user([{"type": "input_text", "text": "x"}])), of(user([text()])), None),
    ("unknown_part", "messages.2.content.0", of(user(), said(None, call()), result(content=[image()])), of(user(), said(None, call()), result(content=[text()])), None),
    ("unknown_part", "messages.0.content.0", of(user([image()], role="system")), of(user([text()], role="system")), None),
    ("not_alternating", "messages.1", of(user(), user()), of(user(), said()), None),
    ("not_alternating", "messages.2", of(user(), said(), said()), of(user(), said(), user()), None),
    ("call_unanswered", "messages.1", of(user(), said(None, call())), asked(call()), None),
    ("call_unanswered", "messages.1", of(user(), said(None, call(), call("c2")), result(), user()), asked(call(), call("c2")), None),
    ("result_unexpected", "messages.1", of(user(), result()), of(user()), None),
    ("result_unexpected", "messages.4", of(user(), said(None, call()), result(), user(), result()), asked(call()), None),
    ("result_duplicate", "messages.3", of(user(), said(None, call()), result(), result()), asked(call()), None),
    ("call_id_duplicate", "messages.3", of(user(), said(None, call()), result(), said(None, call()), result()), asked(call()), None),
    ("call_id_duplicate", "messages.1", of(user(), said(None, call(), call()), result()), asked(call(), call("c2")), None),
    ("calls_empty", "messages.1", of(user(), said(tool_calls=[])), of(user(), said()), None),
    ("call_id", "messages.1.tool_calls.0", of(user(), said(None, call(LONG))), asked(call()), None),
    ("call_id", "messages.1", of(user(), result(None)), of(user()), None),
    ("call_type", "messages.1.tool_calls.0", of(user(), said(None, {"id": "c1", "type": "tool"}), result()), asked(call()), None),
    ("call_name", "messages.1.tool_calls.0", asked(call(name="a b")), asked(call(name="a_b")), None),
    ("arguments", "messages.1.tool_calls.0", asked(call(arguments={})), asked(call()), None),
    ("arguments", "messages.1.tool_calls.0", asked(call(arguments="[]")), asked(call()), None),
    ("arguments", "messages.1.tool_calls.0", asked({"id": "c1", "type": "custom", "custom": {"name": "p"}}), asked({"id": "c1", "type": "custom", "custom": {"name": "p", "input": ""}}), None),
    ("mark_place", "messages.1.content.0", of(user(), said([text(**MARK)])), of(user([text(**MARK)])), CHAT),
    ("mark_form", "messages.0.content.0", of(user([text(prompt_cache_breakpoint={})])), of(user([image(**MARK)])), CHAT),
    ("mark_model", "messages.0", of(user([text(**MARK)])), of(user([text()])), LOCAL),
    ("mark_model", "prompt_cache_options", of(user(), prompt_cache_options={"mode": "explicit"}), of(user()), LOCAL),
    ("cache_options", "prompt_cache_options", of(user(), prompt_cache_options={"mode": 5}), of(user(), prompt_cache_options={"mode": "explicit"}), CHAT),
    ("cache_key", "prompt_cache_key", of(user(), prompt_cache_key="x" * 65), of(user(), prompt_cache_key="x"), None),
    ("tool_type", "tools.0", of(user(), tools=[{"type": "function", "name": "x"}]), of(user(), tools=[tool()]), None),
    ("tool_type", "tools.0", of(user(), tools=[{"type": "web_search"}]), of(user(), tools=[{"type": "custom", "custom": {"name": "p"}}]), None),
    ("tool_name", "tools.0", of(user(), tools=[tool(name="a b")]), of(user(), tools=[tool(name="a-b")]), None),
    ("tool_name_duplicate", "tools.1", of(user(), tools=[tool(), tool()]), of(user(), tools=[tool(), tool(name="b")]), None),
    ("tool_schema", "tools.0", of(user(), tools=[tool(parameters=[])]), of(user(), tools=[tool(parameters={"type": "object"})]), None),
    ("images_max", "messages", of(user([image()] * 501)), of(user([image()] * 500)), None),
    ("url", "messages.0.content.0", of(user([image("a.png")])), of(user([image("http://example.org/a.png")])), None),
    ("media_type", "messages.0.content.0", of(user([image(PNG.replace("png", "bmp"))])), of(user([image()])), None),
    ("base64", "messages.0.content.0", of(user([image("data:image/png;base64,")])), of(user([image()])), None),
    ("file", "messages.0.content.0", of(user([{"type": "file"}])), of(user([pdf(file_data=None, file_id="f")])), None),
    ("file", "messages.0.content.0", of(user([pdf(filename=None)])), of(user([pdf()])), None),
    ("request_bytes", "request", of(user("x" * (50 * 1024 * 1024 + 1))), of(user("x")), None),
    ("max_tokens", "max_completion_tokens", of(user(), max_completion_tokens=101), of(user(), max_completion_tokens=100), SMALL),
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
