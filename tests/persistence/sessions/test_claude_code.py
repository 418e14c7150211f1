"""Claude Code's logs: torn responses, late results, words that no user wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import (
    AssistantThinking,
    ImagePart,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserPrompt,
    UserSteer,
    text_of,
)
from persistence.sessions import Session, read_session
from tests._table import for_each

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]


def stamp(second: float) -> str:
    return f"2026-01-01T10:00:{second:06.3f}Z"


def user(second: float, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {
        "type": "user",
        "uuid": f"u{second}",
        "timestamp": stamp(second),
        "message": message,
        **more,
    }


def result(second: float, call: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": content, **more}
    return user(second, [block])


def answer(second: float, response: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"id": response, "role": "assistant", "model": "claude-x", "content": list(blocks)}
    return {
        "type": "assistant",
        "uuid": f"a{second}",
        "timestamp": stamp(second),
        "message": {**message, **more},
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool(call: str, **tool_input: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call,
        "name": "Bash",
        "input": tool_input or {"command": "ls"},
    }


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def test_lines_of_one_response_are_one_call_however_they_are_scattered(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(
        write(
            user(0, "list"),
            answer(1, "m1", THOUGHT),
            answer(2, "m1", tool("c1")),
            result(3, "c1", "one"),
            answer(4, "m1", tool("c2")),
            result(5, "c2", "two"),
            answer(6, "m2", text("done")),
        )
    )
    assert kinds(session) == [
        "turn prompt",
        "[thinking call call]",
        "result",
        "result",
        "[text]",
    ]
    assert [call.id for call in session.calls] == ["m1", "m2"]
    assert {b.response for b in session.calls[0].blocks if isinstance(b, ToolCall)} == {"m1"}


def test_a_call_was_made_when_the_last_thing_before_it_was_logged(write: Write) -> None:
    session = read_session(
        write(
            user(1, "go"),
            answer(9, "m1", tool("c1")),
            result(12, "c1"),
            answer(30, "m2", text("x")),
        )
    )
    first, second = session.calls
    assert second.at - first.at == pytest.approx(11)
    assert first.at == session.items[0].at


def test_a_clock_that_runs_backwards_stands_still(write: Write) -> None:
    session = read_session(
        write(
            user(9, "go"), answer(3, "m1", tool("c1")), result(2, "c1"), answer(1, "m2", text("x"))
        )
    )
    assert len({item.at for item in session.items}) == 1


def test_a_result_that_comes_late_stands_behind_its_call(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            user(0, "go"),
            answer(1, "m1", tool("c1")),
            user(2, "still there?"),
            answer(3, "m2", text("yes")),
            result(9, "c1"),
        )
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "turn prompt", "[text]"]
    times = [item.at for item in session.items]
    assert times == sorted(times)
    assert session.calls[1].at - session.calls[0].at == pytest.approx(2)


def test_a_result_logged_before_its_call_waits_for_it(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(user(0, "go"), result(1, "c1", "early"), answer(2, "m1", tool("c1")))
    )
    assert kinds(session) == ["turn prompt", "[call]", "result"]


def test_a_result_without_a_call_is_reported_with_its_line(write: Write) -> None:
    session = read_session(
        write(
            result(0, "gone"),
            user(1, "go"),
            answer(2, "m1", tool("c1")),
            result(3, "c1"),
            result(4, "c1"),
        )
    )
    assert [(n.line, n.text) for n in session.notices] == [
        (1, "result without a call ('gone'), skipped"),
        (5, "second result of call 'c1', skipped"),
    ]


def test_a_call_id_that_comes_twice_is_made_unique_and_paired_by_position(write: Write) -> None:
    session = read_session(
        write(
            user(0, "go"),
            answer(1, "m1", tool("c")),
            result(2, "c", "first"),
            answer(3, "m2", tool("c")),
            result(4, "c", "second"),
        )
    )
    results = [b for i in session.items for b in i.blocks if isinstance(b, ToolResult)]
    assert [(r.call_id, text_of(r)) for r in results] == [("c", "first"), ("c_2", "second")]


def test_placeholders_thoughts_and_blanks_are_no_calls(write: Write) -> None:
    session = read_session(
        write(
            user(0, "go"),
            answer(1, "m1", text("API Error"), model="<synthetic>"),
            {**answer(2, "m2", text("Overloaded")), "isApiErrorMessage": True},
            answer(3, "m3", THOUGHT),
            answer(4, "m4", text("\n\n")),
            answer(5, "m5", text("hello")),
        )
    )
    assert [call.id for call in session.calls] == ["m5"]


def test_usage_counts_once_per_response_and_its_output_is_the_largest_seen(write: Write) -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 7}
    session = read_session(
        write(
            user(0, "go"),
            answer(1, "m1", text("a"), usage={**usage, "output_tokens": 40}),
            answer(2, "m1", tool("c1"), usage={**usage, "output_tokens": 1}),
        )
    )
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.cache_write, used.output) == (3, 20, 7, 40)
    assert (used.response, used.model) == ("m1", session.model)


def test_usage_says_what_is_kept_for_an_hour_and_another_tier_than_the_standard_one(
    write: Write,
) -> None:
    usage = {
        "cache_creation_input_tokens": 7,
        "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 5},
    }
    session = read_session(
        write(
            user(0, "go"),
            answer(1, "m1", text("a"), usage={**usage, "service_tier": "standard"}),
            answer(2, "m2", text("b"), usage={**usage, "service_tier": "priority"}),
        )
    )
    used = [call.usage for call in session.calls if call.usage]
    assert [(u.cache_write, u.cache_write_long, u.tier) for u in used] == [
        (7, 5, ""),
        (7, 5, "priority"),
    ]


def test_usage_outside_the_conversation_is_kept_aside(write: Write) -> None:
    """Of responses that broke off while thinking, and of sub-agents."""
    side = answer(2, "s1", text("found"), usage={"input_tokens": 30}) | {"isSidechain": True}
    session = read_session(
        write(
            user(0, "go"),
            answer(1, "m1", text("a"), usage={"input_tokens": 1}),
            side,
            side,
            answer(3, "m2", THOUGHT, usage={"input_tokens": 2}),
            answer(4, "m3", text("b"), usage={"input_tokens": 3}),
        )
    )
    assert [call.usage and call.usage.input for call in session.calls] == [1, 3]
    assert [(used.input, used.model) for used in session.aside] == [
        (30, "claude-x"),
        (2, "claude-x"),
    ]
    assert session.aside[0].at == session.items[0].at + 2


def test_the_window_is_the_prompt_at_which_the_agent_compacted_by_itself(write: Write) -> None:
    def cut(trigger: str, tokens: int) -> dict[str, Any]:
        meta = {"trigger": trigger, "preTokens": tokens}
        return {"type": "system", "subtype": "compact_boundary", "compactMetadata": meta}

    spoken = user(0, "go"), answer(1, "m1", text("a"))
    assert read_session(write(*spoken, cut("manual", 180_000))).window == 0
    assert read_session(write(*spoken, cut("auto", 167_000))).window == 167_000


@for_each(
    ("content", "name"),
    [
        ("<command-name>/clear</command-name>", "command-name"),
        ("<local-command-stdout>x</local-command-stdout>", "local-command-stdout"),
        ("  <bash-input>ls</bash-input>", "bash-input"),
        ("<task-notification>done</task-notification>", "task-notification"),
        (
            "<task-notification>done</task-notification>\nRead the output file to retrieve the result: /tmp/b1.output",
            "task-notification",
        ),
        (
            "<task-notification>done</task-notification>\nFull transcript available at: /tmp/a4.output",
            "task-notification",
        ),
        (
            (
                '<teammate-message teammate_id="ann" color="blue">\nIt is done.\n</teammate-message>\n\n'
                '<teammate-message teammate_id="bob">\n{"type":"idle_notification"}\n</teammate-message>'
            ),
            "teammate-message",
        ),
        ("<system-reminder>be brief</system-reminder>", "system-reminder"),
        ("[Request interrupted by user]", "interruption"),
        ("Caveat: the messages below", "caveat"),
    ],
)
def test_what_no_user_typed_is_an_attachment(write: Write, content: str, name: str) -> None:
    session = read_session(write(user(0, "go"), answer(1, "m1", text("ok")), user(2, content)))
    block = session.items[-1].blocks[0]
    assert isinstance(block, UserAttachment)
    assert (block.name, block.turn) == (name, "t1")


@for_each(
    "content",
    [
        '<teammate-message teammate_id="team-lead">\nFix the parser.\n</teammate-message>',
        '<teammate-message teammate_id="ann">\nDone.\n</teammate-message>\nTell ann to go on.',
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>all</command-args>",
    ],
)
def test_the_lead_of_a_team_a_user_who_answers_a_teammate_and_a_command_speak_as_the_user(
    write: Write, content: str
) -> None:
    block = read_session(write(user(0, content))).items[0].blocks[-1]
    assert isinstance(block, UserPrompt)


def test_meta_lines_are_attachments_and_open_a_turn_when_they_come_first(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(
        write(user(0, "Base directory", isMeta=True), user(1, "go"), answer(2, "m1", text("ok")))
    )
    assert kinds(session) == ["turn attachment", "prompt", "[text]"]
    assert {block.turn for item in session.items for block in item.blocks} == {"t1"}


def test_a_queued_command_steers_the_running_turn(write: Write, kinds: Kinds) -> None:
    queued = {"type": "queued_command", "prompt": "and the tests"}
    line = {"type": "attachment", "timestamp": stamp(3), "attachment": queued}
    reminder = {**line, "attachment": {"type": "task_reminder", "content": "x"}}
    session = read_session(
        write(user(0, "go"), answer(1, "m1", tool("c1")), result(2, "c1"), line, reminder)
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "steer"]


def test_words_that_are_only_in_the_queue_steer_when_they_are_taken_out_of_it(
    write: Write, kinds: Kinds
) -> None:
    """Versions up to 2.1.52 at least. What has ended, what the user took back and what became a prompt is no steer."""

    def queue(at: int, operation: str, content: str | None = None) -> dict[str, Any]:
        line = {"type": "queue-operation", "operation": operation, "timestamp": stamp(at)}
        return line if content is None else {**line, "content": content}

    session = read_session(
        write(
            user(0, "go"), answer(1, "m1", tool("c1")),
            queue(1, "enqueue", "not that one"), queue(1, "popAll", "not that one"),
            queue(2, "enqueue", '{"task_id":"b1","task_type":"local_bash"}'), queue(2, "enqueue", "and the tests"),
            result(3, "c1"), queue(3, "remove"), queue(3, "remove"), answer(4, "m2", text("ok")),
            queue(4, "enqueue", "now the docs"), queue(5, "dequeue"), user(5, "now the docs"),
        )
    )  # fmt: skip
    assert kinds(session) == ["turn prompt", "[call]", "result", "steer", "[text]", "turn prompt"]
    steer = session.items[3].blocks[-1]
    assert isinstance(steer, UserSteer)
    assert steer.text == "and the tests"


def test_what_claude_code_lays_down_in_attachments_is_standing(write: Write) -> None:
    """As it sends them: the CLAUDE.md of a folder, and what was added to its lists."""

    def line(**attachment: Any) -> dict[str, Any]:
        return {"type": "attachment", "timestamp": stamp(1), "attachment": attachment}

    memory = {"path": "/p/api/CLAUDE.md", "content": "No mocks.", "type": "Project"}
    session = read_session(
        write(
            user(0, "go"),
            line(type="nested_memory", path="/p/api/CLAUDE.md", content=memory),
            line(type="skill_listing", content="- sing: Sings."),
            line(type="agent_listing_delta", addedTypes=["Plan"], addedLines=["- Plan: plans"]),
            line(type="deferred_tools_delta", addedLines=["CronList"], removedNames=[]),
            line(type="mcp_instructions_delta", addedBlocks=["## db\nAsk first."]),
            line(type="mcp_instructions_delta", addedBlocks=None),
            line(type="nested_memory", path="/p/CLAUDE.md", content=None),
            line(type="task_reminder", content=[]),
            answer(2, "m1", text("ok")),
        )
    )
    blocks = [block for item in session.items for block in item.blocks]
    found = [(b.standing, text_of(b)) for b in blocks if isinstance(b, UserAttachment)]
    assert [key.split(":")[:2] for key, _ in found] == [
        ["rules", "CLAUDE.md"],
        ["list", "skills"],
        ["list", "agents"],
        ["list", "deferred tools"],
        ["rules", "mcp"],
    ]
    for words, (_, said) in zip(
        ("No mocks.", "sing", "plans", "CronList", "Ask"), found, strict=True
    ):
        assert words in said


def test_pictures_keep_their_data_even_when_it_is_not_base64(write: Write) -> None:
    source = {"type": "base64", "media_type": "image/jpeg", "data": "/9j/REDACTED!"}
    session = read_session(write(user(0, [text("look"), {"type": "image", "source": source}])))
    prompt = session.items[0].blocks[1]
    assert isinstance(prompt, UserPrompt)
    assert prompt.text == "look"
    assert prompt.parts == (ImagePart(media_type="image/jpeg", data="/9j/REDACTED!"),)


def test_recorded_compactions_and_sidechains_leave_no_trace(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            user(0, "go"),
            {**user(1, "sub task"), "isSidechain": True},
            {**answer(1, "s1", text("sub answer")), "isSidechain": True},
            {"type": "system", "subtype": "compact_boundary", "timestamp": stamp(2)},
            user(2, "This session is being continued", isCompactSummary=True),
            answer(3, "m1", text("ok")),
        )
    )
    assert kinds(session) == ["turn prompt", "[text]"]


def test_a_file_of_nothing_but_a_sidechain_is_the_session_of_that_subagent(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(
        write(
            {**user(0, "sub task"), "isSidechain": True},
            {**answer(1, "s1", text("sub answer")), "isSidechain": True},
        )
    )
    assert kinds(session) == ["turn prompt", "[text]"]


def test_errors_show_in_the_result_and_its_envelope(write: Write) -> None:
    session = read_session(
        write(user(0, "go"), answer(1, "m1", tool("c1")), result(2, "c1", "no", is_error=True))
    )
    block = session.items[-1].blocks[0]
    assert isinstance(block, ToolResult)
    assert block.is_error
    assert block.envelope.outcome == "failure"


def test_thinking_is_kept_as_the_provider_sent_it(write: Write) -> None:
    thought = {"type": "thinking", "thinking": "", "signature": "c2ln", "extra": 1}
    session = read_session(write(user(0, "go"), answer(1, "m1", thought, text("ok"))))
    block = session.calls[0].blocks[0]
    assert isinstance(block, AssistantThinking)
    assert block.provider == thought


def test_words_beside_a_result_steer_and_results_come_first(write: Write, kinds: Kinds) -> None:
    content = [text("use the other one"), {"type": "tool_result", "tool_use_id": "c1"}]
    session = read_session(write(user(0, "go"), answer(1, "m1", tool("c1")), user(2, content)))
    assert kinds(session) == ["turn prompt", "[call]", "result", "steer"]


def test_blocks_are_numbered_in_the_order_in_which_they_stand(write: Write) -> None:
    session = read_session(
        write(user(0, "go"), answer(1, "m1", tool("c1")), user(2, "hm"), result(3, "c1"))
    )
    ids = [block.id for item in session.items for block in item.blocks]
    assert ids == [f"b{n}" for n in range(1, len(ids) + 1)]


def test_a_session_tells_its_id_its_folder_and_its_title(write: Write) -> None:
    named = {"sessionId": "8f1c", "cwd": "/home/me/shop"}
    lines = [
        {"type": "summary", "summary": "Before a resume", "leafUuid": "x"},
        user(1, "Add a cart.") | named,
        {"type": "ai-title", "aiTitle": "Add a cart", "sessionId": "8f1c"},
    ]
    session = read_session(write(*lines))
    assert (session.id, session.folder, session.title) == ("8f1c", "/home/me/shop", "Add a cart")
    own = {"type": "custom-title", "customTitle": "The cart", "sessionId": "8f1c"}
    later = {"type": "ai-title", "aiTitle": "A cart, tested"}
    assert read_session(write(*lines, own, later)).title == "The cart", "the user's own stands"


def test_the_stream_of_a_headless_run_is_read_without_its_sub_agents(
    write: Write, kinds: Kinds
) -> None:
    """As `claude -p --output-format stream-json` prints it: no ids of lines, and no prompt."""

    def printed(line: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
        bare = {name: line[name] for name in ("type", "message")}
        return {**bare, "session_id": "s", "parent_tool_use_id": parent}

    session = read_session(
        write(
            {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w"},
            printed(answer(1, "m1", text("Look."), tool("c1"))),
            printed(answer(2, "x1", text("Aside."), usage={"input_tokens": 7}), "c1"),
            printed(result(3, "c1")),
            printed(answer(4, "m2", text("Done."))),
            {"type": "result", "subtype": "success", "result": "Done.", "session_id": "s"},
        )
    )
    assert (session.format, session.id, session.folder) == ("claude-code", "s", "/w")
    assert kinds(session) == ["turn", "[text call]", "result", "[text]"]
    assert [usage.uncached for usage in session.aside] == [7]
