"""Definitions of tools: whatever shape a caller gives, each provider sends its own."""

from typing import Any

from render import PROVIDERS
from tests._builders import BOUND
from tests._table import for_each

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
ANTHROPIC = {"name": "read", "description": "Reads.", "input_schema": SCHEMA}
RESPONSES = {
    "type": "function",
    "name": "read",
    "description": "Reads.",
    "parameters": SCHEMA,
    "strict": False,
}
CHAT = {
    "type": "function",
    "function": {"name": "read", "description": "Reads.", "parameters": SCHEMA},
}
WANTED: dict[str, dict[str, Any]] = {
    "anthropic": ANTHROPIC,
    "openai.responses": RESPONSES,
    "openai.chat": CHAT,
}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
FREE = {"type": "custom", "name": "patch", "description": "Patches.", "format": GRAMMAR}
FREE_IN_CHAT = {
    "type": "custom",
    "custom": {
        "name": "patch",
        "description": "Patches.",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: WORD"}},
    },
}
FREE_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


def sent(tool: dict[str, Any], provider: str) -> dict[str, Any]:
    return PROVIDERS[provider].prefix([], [tool], None)[1][0]


@for_each("provider", WANTED)
@for_each("given", WANTED.values(), ids=WANTED)
def test_a_tool_of_any_shape_is_sent_in_the_providers_own(
    given: dict[str, Any], provider: str
) -> None:
    assert sent(given, provider) == WANTED[provider]


@for_each("given", WANTED.values(), ids=WANTED)
def test_a_tool_costs_the_same_whatever_shape_it_was_given_in(given: dict[str, Any]) -> None:
    from timeline.tokens import O200kCounter

    counter = O200kCounter()
    for provider, own in WANTED.items():
        assert PROVIDERS[provider].tool_tokens(given, counter) == PROVIDERS[provider].tool_tokens(
            own, counter
        )


def test_a_tool_that_takes_a_text_has_one_argument_where_there_are_no_such_tools() -> None:
    assert sent(FREE, "openai.responses") == FREE
    assert sent(FREE, "openai.chat") == FREE_IN_CHAT
    assert sent(FREE_IN_CHAT, "openai.chat") == FREE_IN_CHAT
    for given in (FREE, FREE_IN_CHAT):
        told = {"name": "patch", "description": "Patches.", "input_schema": FREE_SCHEMA}
        assert sent(given, "anthropic") == told


def test_a_strict_tool_stays_strict() -> None:
    assert sent({**RESPONSES, "strict": True}, "openai.responses")["strict"] is True
    assert sent({**RESPONSES, "strict": True}, "openai.chat")["function"]["strict"] is True


@for_each("provider", WANTED)
@for_each(
    "tool",
    [{"type": "web_search_20260209", "name": "web_search"}, {"type": "web_search"}],
)
def test_a_tool_that_a_provider_runs_itself_is_sent_as_it_is(
    tool: dict[str, Any], provider: str
) -> None:
    """Whether it is that provider's, the rules say."""
    assert sent(tool, provider) == tool


def test_anthropics_own_definitions_are_not_touched() -> None:
    odd = {"type": "custom", "name": "read", "input_schema": SCHEMA, "cache": 1}
    assert sent(odd, "anthropic") is odd
    assert sent({"name": "x"}, "anthropic") == {"name": "x"}


@for_each("provider", ["openai.responses", "openai.chat", "gemini"])
def test_a_tool_without_arguments_has_an_empty_schema(provider: str) -> None:
    tool = sent({"name": "look at it!"}, provider)
    said = PROVIDERS[provider].request([], [tool], PROVIDERS[provider].messages([], [], ["Go."]))
    assert PROVIDERS[provider].violations(said, BOUND) == ()
