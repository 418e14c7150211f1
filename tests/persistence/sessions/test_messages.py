"""Plain message lists of the two big APIs, as a list, a request, or one message a line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import (
    DocumentPart,
    ImagePart,
    ProviderPart,
    ToolCall,
    ToolResult,
    UserPrompt,
    text_of,
)
from persistence.sessions import Session, read_session
from tests._builders import open_timeline

Document = Callable[[Any], Path]
Kinds = Callable[[Session], list[str]]

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


def openai_call(call: str, arguments: Any = '{"q": "x"}') -> dict[str, Any]:
    function = {"name": "find", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call, "type": "function", "function": function}],
    }


def claude_call(call: str) -> dict[str, Any]:
    content = [{"type": "tool_use", "id": call, "name": "find", "input": {"q": "x"}}]
    return {"role": "assistant", "content": content}


def claude_result(call: str, *more: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call}, *more]}


def test_an_anthropic_request_brings_its_system_text_and_tools(
    document: Document, kinds: Kinds
) -> None:
    tool = {"name": "find", "description": "Finds.", "input_schema": SCHEMA}
    session = read_session(
        document(
            {
                "model": "claude-x",
                "system": [{"type": "text", "text": "Be brief."}],
                "tools": [tool, {"type": "web_search", "name": "web"}],
                "messages": [
                    {"role": "user", "content": "go"},
                    claude_call("c1"),
                    claude_result("c1"),
                ],
            }
        )
    )
    assert (session.format, session.model, session.system) == ("anthropic", "claude-x", "Be brief.")
    assert session.tools == (tool,)
    assert kinds(session) == ["turn prompt", "[call]", "result"]


def test_words_beside_results_steer_and_words_alone_prompt(
    document: Document, kinds: Kinds
) -> None:
    also = {"type": "text", "text": "also this"}
    session = read_session(
        document(
            [
                {"role": "user", "content": "go"},
                claude_call("c1"),
                claude_result("c1", also),
                {"role": "assistant", "content": "done"},
                {"role": "user", "content": "next"},
            ]
        )
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "steer", "[text]", "turn prompt"]


def test_pictures_documents_and_unknown_parts_are_kept(document: Document) -> None:
    content: list[dict[str, Any]] = [
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        {"type": "document", "title": "a.pdf", "source": {"type": "base64", "data": "JVBERi0="}},
        {"type": "search_result", "source": "s", "title": "t"},
    ]
    session = read_session(document([{"role": "user", "content": content}]))
    prompt = session.items[0].blocks[1]
    assert isinstance(prompt, UserPrompt)
    assert prompt.text == ""
    assert prompt.parts == (
        ImagePart(url="https://x/y.png"),
        DocumentPart(data="JVBERi0=", name="a.pdf"),
        ProviderPart(value=content[2]),
    )


@pytest.mark.parametrize("url", ["file:///tmp/y.png", "sandbox:/mnt/y.png", "y.png", "data:,x"])
def test_a_picture_where_no_provider_can_fetch_is_told_in_words(
    url: str, document: Document
) -> None:
    content: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "document", "source": {"type": "url", "url": url}},
    ]
    session = read_session(document([{"role": "user", "content": content}]))
    prompt = session.items[0].blocks[1]
    assert isinstance(prompt, UserPrompt)
    assert f"[image at {url}]" in text_of(prompt)
    assert f"[document at {url}]" in text_of(prompt)
    timeline = open_timeline()
    timeline.append(*session.items[0].blocks)
    assert timeline.render().violations == ()


def test_an_openai_request_brings_its_system_text_and_tools(document: Document) -> None:
    function = {"name": "find", "description": "Finds.", "parameters": SCHEMA}
    session = read_session(
        document(
            {
                "model": "gpt-x",
                "tools": [{"type": "function", "function": function}],
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "developer", "content": "Be kind."},
                    {"role": "user", "content": "go"},
                    openai_call("c1"),
                ],
            }
        )
    )
    assert (session.format, session.model) == ("openai", "gpt-x")
    assert session.system == "Be brief.\n\nBe kind."
    assert session.tools == ({"name": "find", "description": "Finds.", "input_schema": SCHEMA},)


def test_a_system_message_in_the_middle_is_an_instruction(document: Document, kinds: Kinds) -> None:
    session = read_session(
        document([{"role": "user", "content": "go"}, {"role": "system", "content": "now hurry"}])
    )
    assert kinds(session) == ["turn prompt", "instruction"]
    assert session.system == ""


def test_ids_that_repeat_inside_one_conversation_pair_by_position(document: Document) -> None:
    def tool(text: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": "c", "name": "find", "content": text}

    twice = openai_call("c")
    twice["tool_calls"] *= 2
    session = read_session(
        document(
            [
                {"role": "user", "content": "go"},
                twice,
                tool("1"),
                tool("2"),
                openai_call("c"),
                tool("3"),
            ]
        )
    )
    calls = [b.call_id for c in session.calls for b in c.blocks if isinstance(b, ToolCall)]
    results = [b for i in session.items for b in i.blocks if isinstance(b, ToolResult)]
    assert calls == ["c", "c_2", "c_3"]
    assert [(b.call_id, text_of(b)) for b in results] == [("c", "1"), ("c_2", "2"), ("c_3", "3")]


def test_arguments_may_be_text_objects_or_neither(document: Document) -> None:
    session = read_session(
        document(
            [
                {"role": "user", "content": "go"},
                openai_call("a", {"q": 1}),
                openai_call("b", "[1, 2]"),
                openai_call("c", "not json"),
                openai_call("d", None),
            ]
        )
    )
    calls = [b for c in session.calls for b in c.blocks if isinstance(b, ToolCall)]
    assert [b.input for b in calls] == [
        {"q": 1},
        {"input": "[1, 2]"},
        {"input": "not json"},
        {},
    ]


def test_a_function_call_of_the_old_api_finds_its_result(document: Document, kinds: Kinds) -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    result = {"role": "function", "name": "f", "content": "ok"}
    session = read_session(document([{"role": "user", "content": "go"}, old, result, old, result]))
    assert kinds(session) == ["turn prompt", "[call]", "result", "[call]", "result"]
    assert not session.notices


def test_one_message_a_line_is_a_list_too(write: Callable[..., Path], kinds: Kinds) -> None:
    session = read_session(
        write({"role": "user", "content": "go"}, claude_call("c1"), claude_result("c1"))
    )
    assert session.format == "anthropic"
    assert kinds(session) == ["turn prompt", "[call]", "result"]
