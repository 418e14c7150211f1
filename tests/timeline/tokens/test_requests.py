"""Counting requests that somebody else wrote, in the shapes of their API."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import MisuseError
from render import Model
from tests._table import for_each
from tests.timeline.tokens.test_parts import png
from timeline import Timeline, model_named
from timeline.tokens import O200kCounter, RequestCounter

HAIKU = model_named("claude-haiku-4-5")
COUNTER = RequestCounter(HAIKU)
TOOL = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a.py"}}

texts = st.text(min_size=1, max_size=60).filter(str.strip)
turns = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


@given(turns, texts)
def test_a_whole_request_has_what_a_render_says_that_it_has(
    said: list[tuple[str, str]], system: str
) -> None:
    with Timeline.open("t", model=HAIKU) as timeline:
        for number, (user, assistant) in enumerate(said):
            timeline.user(user)
            answer = {"id": f"m{number}", "model": HAIKU.name, "usage": None}
            calls = {**CALL, "id": f"c{number}"}
            content = [{"type": "text", "text": assistant}, calls]
            timeline.record({**answer, "content": content})
            timeline.tool_result(f"c{number}", user)
        rendered = timeline.render(system=system, tools=[TOOL])
    found = COUNTER.request(rendered.anthropic(max_tokens=1))
    account = rendered.account
    assert (found.system, found.tools) == (account.system, account.tools)
    assert found.total == account.estimated


def test_a_bare_text_is_one_block_and_a_mark_is_no_content() -> None:
    block = {"type": "text", "text": "Why?", "cache_control": {"type": "ephemeral"}}
    bare, whole = ({"role": "user", "content": content} for content in ("Why?", [block]))
    assert COUNTER.message(bare) == COUNTER.message(whole) == COUNTER.text("Why?") + 3
    request = {"model": "m", "max_tokens": 5, "system": "Be brief.", "messages": [bare]}
    found = COUNTER.request(request)
    assert (found.system, found.tools) == (COUNTER.text("Be brief."), 0)
    assert found.total == found.system + COUNTER.message(bare)


def test_tools_bring_what_explains_them_once() -> None:
    one = COUNTER.request({"tools": [TOOL], "messages": []})
    two = COUNTER.request({"tools": [TOOL, {**TOOL, "name": "write"}], "messages": []})
    assert one.tools == HAIKU.tool_overhead_tokens + COUNTER.tool(TOOL)
    assert two.tools - one.tools == COUNTER.tool({**TOOL, "name": "write"})
    plain = RequestCounter(HAIKU, counter=O200kCounter())
    assert plain.request({"tools": [TOOL], "messages": []}).tools == plain.tool(TOOL)


def test_images_cost_what_the_model_says() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": png(280, 280)}
    message = {"role": "user", "content": [{"type": "image", "source": source}]}
    assert COUNTER.message(message) == 3 + 100


@attrs.frozen
class Block:
    """An object of an SDK."""

    text: str

    def model_dump(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


def test_objects_of_an_sdk_are_read() -> None:
    """Agents put the content of a response into the next request as it came."""
    message = {"role": "assistant", "content": [Block("The disk is full.")]}
    assert COUNTER.message(message) == COUNTER.text("The disk is full.") + 3


@for_each(
    "request_",
    [
        {"messages": "Why?"},
        {"messages": ["Why?"]},
        {"messages": [{"role": "user", "content": ["Why?"]}]},
        {"messages": [{"role": "user", "content": 7}]},
        {"tools": ["read"], "messages": []},
        {"system": 7, "messages": []},
    ],
)
def test_what_has_another_shape_is_refused(request_: dict[str, Any]) -> None:
    with pytest.raises(MisuseError, match="this is not a request for 'anthropic'"):
        COUNTER.request(request_)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(MisuseError, match="not 'Why"):
        COUNTER.message("Why?")  # type: ignore[arg-type]  # the point


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4))
def test_nothing_makes_it_fail_in_another_way(junk: Any) -> None:
    for field in ("system", "tools", "messages"):
        try:
            assert COUNTER.request({field: junk}).total >= 0
        except MisuseError:
            continue


def test_a_text_is_counted_for_every_model_and_a_request_for_those_that_are_rendered_for() -> None:
    other = RequestCounter(attrs.evolve(model_named("gemini-3.8-flash"), provider="palm"))
    assert other.text("Why does the nightly job fail?") > 0
    with pytest.raises(MisuseError, match="no provider 'palm'"):
        other.request({"contents": []})


def test_a_guess_is_said_to_be_one() -> None:
    assert COUNTER.request({"messages": []}).known
    assert not RequestCounter(Model(name="gpt-9")).request({"messages": []}).known


OPENAI = model_named("gpt-5.6-sol")
FUNCTION = {"name": "read", "description": "Read a file.", "parameters": {"type": "object"}}


@pytest.mark.parametrize("provider", ["openai.responses", "openai.chat", "gemini"])
@given(turns)
def test_a_request_for_another_api_has_what_a_render_says(
    provider: str, said: list[tuple[str, str]]
) -> None:
    model = attrs.evolve(OPENAI, provider=provider)
    with Timeline.open("t", model=model) as timeline:
        for user, followup in said:
            timeline.user(user)
            timeline.followup(followup)
        rendered = timeline.render(tools=[TOOL])
    found = RequestCounter(model).request(rendered.request()).total - rendered.account.estimated
    assert 0 <= found <= 3 * 2 * len(said), "a part may be taken for a message of its own"


def test_texts_messages_and_tools_of_openais_apis() -> None:
    """Cookbook, "How to count tokens with tiktoken": 3 tokens a message, 7 a function, 12 for all."""
    responses = RequestCounter(OPENAI)
    chat = RequestCounter(attrs.evolve(OPENAI, provider="openai.chat"))
    message = {"role": "user", "content": "hello world"}
    assert responses.text("hello world") == 2
    assert responses.message(message) == chat.message(message) == 3 + 2
    flat, nested = {"type": "function", **FUNCTION}, {"type": "function", "function": FUNCTION}
    assert responses.tool(flat) == chat.tool(nested)
    asked = {"model": "m", "instructions": "Be brief.", "input": "hello world", "tools": [flat]}
    found = responses.request(asked)
    assert (found.system, found.tools, found.messages) == (6, 12 + responses.tool(flat), 5)
    system = {"role": "system", "content": "Be brief."}
    same = chat.request({"messages": [system, message], "tools": [nested]})
    assert same == found
