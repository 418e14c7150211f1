"""Plain message lists of the two big APIs, as a list, a request, or one message a line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import (
    AssistantThinking,
    DocumentPart,
    ImagePart,
    ProviderPart,
    SessionFormatError,
    ToolCall,
    ToolResult,
    UserAttachment,
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


def test_content_may_be_one_block_and_the_models_blocks_in_a_row_are_one_response(
    write: Callable[..., Path], kinds: Kinds
) -> None:
    """Such lists name the fields of a block as the stream of Gemini CLI does, or as Anthropic does."""
    asked = {"type": "tool_use", "name": "find", "input": {"q": "x"}}
    blocks = [
        ("user", {"type": "text", "text": "go"}),
        ("assistant", {"type": "thinking", "text": "hm"}),
        ("assistant", {"type": "tool_use", "tool_name": "find", "tool_id": "c1", "input": {"q": "y"}}),
        ("assistant", {**asked, "id": "c2"}),
        ("tool", {"type": "tool_result", "tool_id": "c1", "output": "1"}),
        ("user", {"type": "tool_result", "tool_use_id": "c2", "content": "2"}),
        ("assistant", {"type": "text", "text": "Done."}),
    ]  # fmt: skip
    session = read_session(write(*({"role": role, "content": block} for role, block in blocks)))
    assert session.format == "anthropic"
    assert kinds(session) == ["turn prompt", "[thinking call call]", "result", "result", "[text]"]
    calls = [b for c in session.calls for b in c.blocks if isinstance(b, ToolCall)]
    results = [b for i in session.items for b in i.blocks if isinstance(b, ToolResult)]
    assert [(b.name, b.call_id, b.input) for b in calls] == [
        *(("find", "c1", {"q": "y"}), ("find", "c2", {"q": "x"}))
    ]
    assert [(b.call_id, text_of(b)) for b in results] == [("c1", "1"), ("c2", "2")]
    assert not session.notices


# mini-swe-agent: times only on answers, and an old form without tool calls.


def answer(at: float, text: str, call: str) -> dict[str, Any]:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    response = {"id": f"r-{call}", "model": "deep", "usage": usage}
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call, "type": "function", "function": function}],
        "extra": {"timestamp": at, "response": response},
    }


def output(at: float, call: str, code: int) -> dict[str, Any]:
    extra = {"timestamp": at, "returncode": code}
    return {"role": "tool", "tool_call_id": call, "content": "out", "extra": extra}


def trajectory(*messages: dict[str, Any]) -> dict[str, Any]:
    head = [{"role": "system", "content": "Be helpful."}, {"role": "user", "content": "Fix it."}]
    return {
        "info": {"mini_version": "2.0"},
        "trajectory_format": "mini-swe-agent-1.1",
        "messages": [*head, *messages, {"role": "exit", "content": "diff"}],
    }


def test_the_first_question_is_five_seconds_older_than_its_answer(document: Document) -> None:
    session = read_session(
        document(
            trajectory(
                answer(1000.0, "a", "c1"), output(1003.0, "c1", 0), answer(1010.0, "b", "c2")
            )
        )
    )
    assert [call.at for call in session.calls] == [995.0, 1003.0]
    assert session.items[0].at == pytest.approx(995.0)


def test_system_model_usage_and_exit_codes_are_kept(document: Document, kinds: Kinds) -> None:
    session = read_session(document(trajectory(answer(1000.0, "a", "c1"), output(1001.0, "c1", 2))))
    assert (session.system, session.model) == ("Be helpful.", "deep")
    assert kinds(session) == ["turn prompt", "[text call]", "result"]
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.output) == (36, 64, 7)
    block = session.items[-1].blocks[0]
    assert isinstance(block, ToolResult)
    assert block.envelope.key_fields == {"exit_code": 2}
    assert block.envelope.outcome == "failure"


def test_a_complaint_of_the_environment_opens_no_turn(document: Document, kinds: Kinds) -> None:
    complaint = {"role": "user", "content": "Format error: one action, please."}
    session = read_session(document(trajectory(answer(1000.0, "a", "c1"), complaint)))
    assert kinds(session) == ["turn prompt", "[text call]", "attachment"]


def test_observations_of_the_old_list_can_be_pruned(document: Document, kinds: Kinds) -> None:
    session = read_session(
        document(
            [
                {"role": "system", "content": "One block."},
                {"role": "user", "content": "Fix it."},
                {"role": "assistant", "content": "```bash\nls\n```"},
                {"role": "user", "content": "<returncode>0</returncode>\n<output>a</output>"},
                {"role": "assistant", "content": "```bash\ncat a\n```"},
            ]
        )
    )
    assert session.format == "mini-swe-agent"
    assert kinds(session) == ["turn prompt", "[text]", "attachment", "[text]"]
    block = session.items[2].blocks[0]
    assert isinstance(block, UserAttachment)
    assert block.name == "observation"


def test_without_any_time_the_clock_stays_at_zero(document: Document) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    session = read_session(document(messages))
    assert {item.at for item in session.items} == {0.0}


# Agents whose logs are plain messages with one thing of their own: Cursor, Droid, Grok.


Write = Callable[..., Path]
Json = dict[str, Any]


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def used(path: str, **more: Any) -> Json:
    return {"type": "tool_use", "name": "Read", "input": {"file_path": path}, **more}


def result(call: str, words: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": [text(words)]}


def cursor(role: str, *content: Json) -> Json:
    return {"role": role, "message": {"content": list(content)}}


def test_cursors_calls_have_no_ids_and_results_come_in_their_order(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(
        write(
            cursor("user", text("go")),
            cursor("assistant", text("I look."), used("a"), used("b"), used("c", id="own")),
            cursor("user", result("own", "C"), result("t1", "A"), result("t2", "B")),
            cursor("assistant", text("Done.")),
        )
    )
    assert session.format == "cursor"
    assert kinds(session) == [
        *("turn prompt", "[text call call call]", "result", "result", "result", "[text]")
    ]
    assert not session.notices
    shown = [(b.call_id, text_of(b)) for i in session.items for b in i.blocks if isinstance(b, ToolResult)]  # fmt: skip
    assert shown == [("own", "C"), ("call_1", "A"), ("call_2", "B")]


def test_a_result_of_cursors_with_nobody_to_have_asked_is_reported(write: Write) -> None:
    session = read_session(write(cursor("user", text("go")), cursor("user", result("t1", "A"))))
    assert [notice.line for notice in session.notices] == [2]


def droid(second: int, role: str, *content: Json) -> Json:
    message = {"role": role, "content": list(content)}
    at = f"2026-01-01T00:00:{second:02}Z"
    return {"type": "message", "id": f"m{second}", "timestamp": at, "message": message}


def _named(line: Json, model: str) -> Json:
    return {**line, "message": {**line["message"], "model": model}}


def test_droids_messages_are_read_in_the_order_of_the_file(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            {"type": "session_start", "id": "s", "title": "t"},
            droid(1, "user", text("<system-reminder>mind</system-reminder>"), text("go")),
            droid(3, "assistant", text("I look."), used("a", id="c1")),
            {"type": "todo_state", "todos": []},
            droid(4, "user", result("c1", "A"), text("also this")),
            _named(droid(6, "assistant", text("Done.")), "claude-x"),
        )
    )
    assert (session.format, session.model) == ("droid", "claude-x")
    assert kinds(session) == ["turn attachment prompt", "[text call]", "result", "steer", "[text]"]
    assert [call.id for call in session.calls] == ["m3", "m6"]
    assert session.calls[1].at - session.calls[0].at == pytest.approx(3)


@pytest.mark.parametrize(("models", "of_session"), [("xyy", "y"), ("yxy", "y"), ("yyx", "y"), ("xy", "y")])  # fmt: skip
def test_a_sessions_model_is_that_of_most_calls_of_several_the_latest(
    models: str, of_session: str, write: Write
) -> None:
    """A session that begins with a trial of another model is not priced by that."""
    said = [_named(droid(n, "assistant", text("Hm.")), name) for n, name in enumerate(models, 1)]
    session = read_session(write(droid(0, "user", text("go")), *said))
    assert [call.model for call in session.calls] == list(models)
    assert session.model == of_session


def test_groks_reasoning_belongs_to_what_it_led_to(write: Write, kinds: Kinds) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    call = {"id": "c1", "name": "read_file", "arguments": '{"target_file": "a"}'}
    picture = {"type": "image", "url": "data:image/png;base64,AAAA"}
    told = {"type": "user", "content": [text("on a Mac")], "synthetic_reason": "environment"}
    answer = {"type": "assistant", "content": "", "tool_calls": [call], "model_id": "grok-x"}
    session = read_session(
        write(
            {"type": "system", "content": "You are it."},
            *(told, {"type": "user", "content": [text("go")], "prompt_index": 0}),
            *(reasoning, answer, {"type": "tool_result", "tool_call_id": "c1", "content": "A"}),
            {"type": "backend_tool_call", "kind": {"tool_type": "web_search"}},
            {"type": "assistant", "content": "Done.", "model_id": "grok-x"},
            *(reasoning, {"type": "user", "content": [picture, text("this one")]}),
            {"type": "assistant", "content": "Seen.", "model_id": "grok-x"},
        )
    )
    assert (session.format, session.model, session.system) == ("grok", "grok-x", "You are it.")
    assert kinds(session) == [
        *("turn attachment", "prompt", "[thinking call]", "result"),
        *("[text]", "turn prompt", "[text]"),
    ]
    context, prompt = session.items[0].blocks[1], session.items[5].blocks[1]
    assert isinstance(context, UserAttachment)
    assert context.name == "environment"
    assert isinstance(prompt, UserPrompt)
    assert isinstance(prompt.parts[0], ImagePart)
    thought = session.calls[0].blocks[0]
    assert isinstance(thought, AssistantThinking)
    assert thought.provider == reasoning


# Trajectories of benchmarks: SWE-agent, tau-bench, Inspect.


SYSTEM = {"role": "system", "content": "Be precise."}
TASK = {"role": "user", "content": "Fix it."}


def call(call_id: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    return {
        "role": "assistant",
        "content": "look",
        "tool_calls": [{"id": call_id, "function": function}],
    }


def swe(*history: dict[str, Any]) -> dict[str, Any]:
    return {"environment": "e", "trajectory": [], "history": [SYSTEM, *history], "info": {}}


def test_swe_agents_repeated_call_ids_pair_by_position(document: Document, kinds: Kinds) -> None:
    def result(text: str) -> dict[str, Any]:
        return {"role": "tool", "content": text, "tool_call_ids": ["c"]}

    session = read_session(document(swe(TASK, call("c"), result("1\r\n"), call("c"), result("2"))))
    assert (session.format, session.system) == ("swe-agent", "Be precise.")
    assert kinds(session) == ["turn prompt", "[text call]", "result", "[text call]", "result"]
    calls = [b.call_id for c in session.calls for b in c.blocks if isinstance(b, ToolCall)]
    assert calls == ["c", "c_2"]
    assert text_of(session.items[2].blocks[0]) == "1\r\n"


def test_swe_agents_demonstrations_and_observations_are_context(
    document: Document, kinds: Kinds
) -> None:
    demo = {"role": "user", "content": "Here is how", "is_demo": True}
    session = read_session(
        document(
            swe(
                demo, TASK, {"role": "assistant", "content": "ls"}, {"role": "user", "content": "a"}
            )
        )
    )
    assert kinds(session) == ["turn attachment", "prompt", "[text]", "attachment"]
    names = [b.name for i in session.items for b in i.blocks if isinstance(b, UserAttachment)]
    assert names == ["demonstration", "observation"]


def tau(*talks: str) -> list[dict[str, Any]]:
    return [
        {"task_id": n, "reward": 1.0, "traj": [SYSTEM, {"role": "user", "content": talk}]}
        for n, talk in enumerate(talks)
    ]


def test_a_conversation_is_chosen_by_its_number(document: Document) -> None:
    path = document(tau("first", "second"))
    session = read_session(f"{path}#1")
    assert (session.format, session.name) == ("tau-bench", "sample#1")
    assert text_of(session.items[0].blocks[1]) == "second"
    assert not session.notices


def test_without_a_number_it_is_the_first_and_the_others_are_mentioned(document: Document) -> None:
    session = read_session(document(tau("first", "second")))
    assert text_of(session.items[0].blocks[1]) == "first"
    assert "the first of 2 conversations" in session.notices[0].text


def test_a_number_too_high_says_how_many_there_are(document: Document) -> None:
    with pytest.raises(SessionFormatError, match="no conversation #2; the file has 2"):
        read_session(f"{document(tau('a', 'b'))}#2")


def test_a_file_with_a_hash_in_its_name_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "talk#1"
    path.write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    assert len(read_session(path).items) == 1


def test_inspects_samples_have_tool_calls_of_their_own_shape(
    document: Document, kinds: Kinds
) -> None:
    asked = {"id": "c1", "function": "web_go", "arguments": {"url": "x"}}
    messages = [
        TASK,
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "content": [{"type": "text", "text": "ok"}], "tool_call_id": "c1"},
    ]
    log = {"version": 2, "eval": {"model": "m"}, "samples": [{"id": 1, "messages": messages}]}
    session = read_session(document(log))
    assert (session.format, session.model) == ("inspect", "m")
    assert kinds(session) == ["turn prompt", "[call]", "result"]
    block = session.calls[0].blocks[0]
    assert isinstance(block, ToolCall)
    assert (block.name, block.input) == ("web_go", {"url": "x"})


def test_lines_that_are_no_chat_messages_are_reported(write: Callable[..., Path]) -> None:
    """A log of an unknown program looks like a list of messages, and nothing of it is lost without a word."""
    session = read_session(
        write(
            {"role": "user", "content": "go"},
            {"type": "tool_started", "name": "ls"},
            {"type": "tool_started", "name": "cat"},
            {"ended": True},
            {"role": "assistant-subagent-a1", "content": "I look."},
            {"role": "assistant", "content": "Done."},
        )
    )
    assert session.format == "openai"
    assert [notice.text for notice in session.notices] == [
        "what is no chat message, skipped: 2 tool_started, 1 without a role, 1 assistant-subagent-a1"
    ]
