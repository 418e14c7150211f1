"""Gemini behind the seam: the request as the client takes it."""

from typing import Any

import pytest

from blocks import MisuseError
from render import PROVIDERS, provider_of
from tests import _builders as make
from tests._table import for_each
from tests.render.providers.gemini._play import MODEL, OLD

PROVIDER = PROVIDERS["gemini"]
SYSTEM = [{"type": "text", "text": "You help."}, {"type": "text", "text": "Be kind."}]
SCHEMA = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {}}}
TOOL = {"name": "look", "description": "Look.", "input_schema": SCHEMA}
DECLARED = {"name": "look", "description": "Look.", "parametersJsonSchema": SCHEMA}
MIDWAY = {"role": "user", "parts": [{"text": "[the beginning of this conversation is missing]"}]}


def test_the_request_is_exactly_what_the_client_takes() -> None:
    timeline = make.open_timeline(model=MODEL)
    timeline.user("Go.")
    search: dict[str, Any] = {"googleSearch": {}}
    rendered = timeline.render(system="You help.", tools=[TOOL, search])
    assert rendered.gemini(max_output_tokens=99) == {
        "model": MODEL.name,
        "contents": [{"role": "user", "parts": [{"text": "Go."}]}],
        "config": {
            "systemInstruction": {"parts": [{"text": "You help."}]},
            "tools": [{"functionDeclarations": [DECLARED]}, search],
            "maxOutputTokens": 99,
        },
    }
    assert timeline.render().gemini()["config"] == {}
    rendered.gemini()["contents"].append("mine")
    rendered.gemini()["contents"][0]["parts"].append("mine")
    assert "mine" not in str(rendered.gemini())


@for_each(
    "tool",
    [
        TOOL,
        DECLARED,
        {"type": "function", "name": "look", "description": "Look.", "parameters": SCHEMA},
        {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": SCHEMA}},
    ],
)  # fmt: skip
def test_a_tool_is_declared_the_same_whoever_wrote_it(tool: dict[str, Any]) -> None:
    assert PROVIDER.prefix([], [tool], None) == ([], [DECLARED])


def test_a_declaration_is_read_by_the_others() -> None:
    for name in ("anthropic", "openai.chat", "openai.responses"):
        [sent] = PROVIDERS[name].prefix([], [DECLARED], None)[1]
        assert "$defs" in str(sent)


def test_a_tool_that_takes_a_text_takes_one_argument_and_one_without_any_has_no_schema() -> None:
    free = {"type": "custom", "name": "patch"}
    [_, [declared, bare]] = PROVIDER.prefix([], [free, {"name": "now"}], "5m")
    assert declared["parametersJsonSchema"]["required"] == ["input"]
    assert bare == {"name": "now"}


def test_another_request_is_refused_by_name() -> None:
    timeline = make.open_timeline(model=MODEL)
    timeline.user("Go.")
    rendered = timeline.render()
    with pytest.raises(MisuseError, match="rendered for 'gemini'"):
        rendered.openai_chat()
    with pytest.raises(MisuseError, match="max_output_tokens must be a whole number"):
        rendered.gemini(max_output_tokens=-1)


def test_the_user_speaks_first_and_instructions_join_the_last_content() -> None:
    encoder = make.context(model=MODEL, provider=PROVIDER).encoder
    view = make.view_of(make.said("hm", response="r"))
    pieces = [encoder.shown(group) for group in view.groups]
    assert PROVIDER.messages(pieces, [], ["a", "b"]) == [
        MIDWAY,
        {"role": "model", "parts": [{"text": "hm"}]},
        {"role": "user", "parts": [{"text": "[continue]"}, {"text": "a"}, {"text": "b"}]},
    ]
    assert PROVIDER.messages([], [], []) == [MIDWAY]
    request = PROVIDER.quoting(["a", "b"])
    extended = PROVIDER.extended(request, "Summarise.")
    assert extended["contents"][0]["parts"] == [{"text": t} for t in ("a", "b", "Summarise.")]
    assert len(request["contents"][0]["parts"]) == 2
    assert PROVIDER.violations(extended, MODEL) == ()


def test_a_request_is_read_by_sections_as_the_client_takes_it_or_as_it_is_sent() -> None:
    contents = [{"role": "user", "parts": [{"text": "Go."}]}]
    tools = [{"function_declarations": [DECLARED]}, {"googleSearch": {}}]
    own = ([{"text": "Help."}], [DECLARED, {"googleSearch": {}}], contents)
    sdk = {"system_instruction": "Help.", "tools": tools}
    assert PROVIDER.sections({"contents": contents, "config": sdk}) == own
    rest = {"systemInstruction": {"parts": [{"text": "Help."}]}, "tools": tools}
    assert PROVIDER.sections({"contents": contents, **rest}) == own
    assert PROVIDER.sections({"contents": "Go."}) == ([], [], contents)


def test_every_prefix_is_cached_without_a_mark() -> None:
    limits = PROVIDER.limits(OLD)
    assert (limits.automatic, limits.marks_max, limits.ttl_seconds) == (True, 0, 300)
    assert provider_of(MODEL) is PROVIDER


def test_open_tools_take_any_arguments_under_the_names_that_are_sent() -> None:
    assert [tool["name"] for tool in PROVIDER.open_tools(["b", "1b", "b"])] == ["_1b", "b"]
