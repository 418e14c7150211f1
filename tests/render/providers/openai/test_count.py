"""Counting: o200k tokens and the documented overheads."""

from typing import Any

from render import Json
from render.providers._definitions import definition_of
from render.providers.openai._shared import (
    CALL_TOKENS,
    FUNCTION_TOKENS,
    PROPERTY_TOKENS,
    RESULT_TOKENS,
    content_tokens,
    definition_tokens,
)
from tests._builders import CharCounter
from tests._table import for_each

COUNTER = CharCounter()
PNG = "data:image/png;base64,iVBORw0KGgo="
HUNDRED = 100
"""What the counter says of anything that is no text."""


def of(kind: str, **fields: Any) -> Json:
    return {"type": kind, **fields}


@for_each(
    ("content", "tokens"),
    [
        (of("input_text", text="12345678"), 2),
        (of("text", text="12345678"), 2),
        (of("message", role="assistant", content="12345678"), 2),
        (of("refusal", refusal="12345678"), 2),
        (of("function_call", name="bash", arguments="{}"), CALL_TOKENS + 2),
        (of("function", function={"name": "bash", "arguments": "{}"}), CALL_TOKENS + 2),
        (of("custom_tool_call", name="bash", input="1234"), CALL_TOKENS + 2),
        (of("custom", custom={"name": "bash", "input": "1234"}), CALL_TOKENS + 2),
        (of("function_call_output", output="12345678"), RESULT_TOKENS + 2),
        (
            of("function_call_output", output=[of("input_text", text="1234")] * 3),
            RESULT_TOKENS + 3,
        ),
        ({"role": "tool", "content": "12345678"}, RESULT_TOKENS + 2),
        ({"role": "tool", "content": [of("text", text="1234")]}, RESULT_TOKENS + 1),
        (of("input_image", image_url=PNG), HUNDRED),
        (of("image_url", image_url={"url": PNG}), HUNDRED),
        (of("input_file", file_data="data:application/pdf;base64,aGk="), HUNDRED),
        (of("file", file={"file_id": "file_1"}), HUNDRED),
        (of("web_search_call"), HUNDRED),
        (of("reasoning", encrypted_content="x" * 4000, summary=[]), (3000 - 650) // 4),
        (of("reasoning", encrypted_content="short"), 0),
        (of("text", text=None), 0),
        (of("function_call_output", output=None), RESULT_TOKENS),
    ],
)
def test_a_content_costs_its_text_and_its_envelope(content: Json, tokens: int) -> None:
    assert content_tokens(content, COUNTER) == tokens


def test_a_tool_costs_its_names_and_its_descriptions_and_not_its_json() -> None:
    leaf = {"type": "string", "description": "1234567."}
    flat = {"type": "object", "properties": {"a": leaf}}
    nested = {"type": "object", "properties": {"a": {"type": "array", "items": flat}}}
    chosen = {"type": "object", "properties": {"a": {"type": "string", "enum": ["1234", "5678"]}}}
    bare = FUNCTION_TOKENS + 2  # `bash:Run`
    one = PROPERTY_TOKENS + COUNTER.count("a:string:1234567")
    assert _tokens({}) == bare
    assert _tokens(flat) == bare + one
    assert _tokens(nested) == bare + PROPERTY_TOKENS + COUNTER.count("a:array:") + one
    assert _tokens(chosen) == bare + PROPERTY_TOKENS + COUNTER.count("a:string:") + 2 * (3 + 1)
    assert _tokens({"anyOf": [flat, "odd"], "$defs": {"x": flat}}) == bare + 2 * one


def _tokens(schema: Json) -> int:
    tool = {"type": "function", "name": "bash", "description": "Run.", "parameters": schema}
    return definition_tokens(definition_of(tool), COUNTER)
