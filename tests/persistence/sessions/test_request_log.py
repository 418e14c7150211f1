"""Requests and responses, as proxies and SDKs log them, are conversations again."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    AssistantCompletion,
    SessionFormatError,
    ToolCall,
    ToolResult,
    UserPrompt,
    UserSteer,
    text_of,
)
from blocks.formats import Format
from persistence.sessions import Session, read_conversations, read_session
from tests._table import for_each
from tests.foreign import Model, Talk, Tool, User, responded, talks, told, written

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]
Json = dict[str, Any]

TALK: dict[Format, str] = {
    "anthropic": "messages",
    "openai.chat": "messages",
    "openai.responses": "input",
    "gemini": "contents",
}


# One exchange, as each of them writes it.


def whole(number: int, request: Json, response: Json | None) -> list[Json]:
    return [{"request": request, "response": response, "timestamp": number + 1}]


def traced(number: int, request: Json, response: Json | None) -> list[Json]:
    answered = {"response": {"timestamp": number + 2, "status_code": 200, "body": response}}
    return [{"request": {"timestamp": number + 1, "body": request}, **(answered if response else {})}]  # fmt: skip


def parted(number: int, request: Json, response: Json | None) -> list[Json]:
    """A line for each."""
    lines: list[Json] = [{"type": "request", "timestamp": number + 1, "request_params": request}]
    answered = {"type": "response", "timestamp": number + 2, "response": response}
    return [*lines, *([answered] if response else [])]


def archived(number: int, request: Json, response: Json | None) -> list[Json]:
    content = {"mimeType": "application/json", "text": json.dumps(response)}
    posted = {"method": "POST", "postData": {"text": json.dumps(request)}}
    return [{"startedDateTime": number + 1, "request": posted, "response": {"content": content}}]


WRITERS = (whole, traced, parted, archived)


def exchanges(talk: Talk, name: Format, own: str) -> Iterator[tuple[Json, Json | None]]:
    """What was sent and what came back, the last of it perhaps never."""
    for place, line in enumerate(talk):
        if isinstance(line, Model):
            yield asked(talk[:place], name), responded(line, name, f"{own}{place}")
    if not isinstance(talk[-1], Model):
        yield asked(talk, name), None


def asked(talk: Sequence[Any], name: Format) -> Json:
    return {"model": "m", TALK[name]: written(talk, name)}


def heard(session: Session) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for block in (block for item in session.items for block in item.blocks):
        match block:
            case UserPrompt() | UserSteer():
                found.append(("user", text_of(block)))
            case ToolResult(call_id=call):
                found.append(("result", call, text_of(block)))
            case AssistantCompletion(text=text):
                found.append(("said", text))
            case ToolCall(call_id=call):
                found.append(("call", call))
            case _:
                pass
    return found


@given(
    many=st.lists(talks(), min_size=1, max_size=3),
    name=st.sampled_from(list(TALK)),
    writer=st.sampled_from(WRITERS),
    data=st.data(),
)
def test_conversations_that_were_logged_in_turns_are_told_apart(
    many: list[Talk],
    name: Format,
    writer: Callable[..., list[Json]],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    many = [(User(f"Task {n}."), *talk) for n, talk in enumerate(many)]
    waiting = [list(exchanges(talk, name, f"r{n}.")) for n, talk in enumerate(many)]
    lines: list[Json] = []
    while any(waiting):
        exchange = data.draw(st.sampled_from([w for w in waiting if w])).pop(0)
        lines += writer(len(lines), *exchange)
    path = tmp_path_factory.getbasetemp() / "log.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    if not any(isinstance(line, Model) for talk in many for line in talk):
        return
    found = [heard(read_session(f"{path}#{n}", format="request-log")) for n in range(len(many))]
    assert sorted(found) == sorted(told(talk) for talk in many)


# What single logs have of their own.


def said(text: str, **more: Any) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}], **more}  # fmt: skip


def user(text: str) -> Json:
    return {"role": "user", "content": text}


CALL = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a"}]}
CALLED: Json = {"type": "message", "role": "assistant", "content": [CALL]}


def pair(messages: list[Json], response: Json | None, **more: Any) -> Json:
    return {"request": {"body": {"messages": messages, **more}}, "response": {"body": response}}


def test_a_traced_client_brings_its_system_text_tools_usage_and_times(
    write: Write, kinds: Kinds
) -> None:
    tool = {"name": "bash", "description": "Runs.", "input_schema": {"type": "object"}}
    usage = {"input_tokens": 4, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 6}
    start = {"type": "message_start", "message": {"id": "m1", "model": "claude-x", "usage": usage}}
    events: list[Json] = [
        {"type": "ping"},
        start,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"text": "Hel"}},
        {"type": "content_block_delta", "index": 0, "delta": {"text": "lo."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]
    body = {"model": "alias", "system": "Be brief.", "tools": [tool], "messages": [user("go")]}
    stream = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    session = read_session(
        write(
            {
                "request": {"timestamp": 1767225601.0, "url": "/v1/messages", "body": body},
                "response": {"timestamp": 1767225604.5, "status_code": 200, "body_raw": stream},
                "logged_at": "2026-01-01T00:00:05Z",
            }
        )
    )
    assert (session.format, session.model, session.system) == (
        *("request-log", "claude-x", "Be brief."),
    )
    assert session.tools == (tool,)
    assert kinds(session) == ["turn prompt", "[text]"]
    [call] = session.calls
    assert (call.id, call.at) == ("m1", 1767225601.0)
    used = call.usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.cache_write, used.output) == (4, 90, 6, 7)
    assert (used.model, used.response) == ("claude-x", "m1")


def test_what_litellm_logs_is_read(write: Write, kinds: Kinds) -> None:
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    call = {"id": "c1", "type": "function", "function": function}
    usage = {"prompt_tokens": 50, "completion_tokens": 3}
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
    session = read_session(
        write(
            {
                "id": "chatcmpl-1",
                "call_type": "acompletion",
                "startTime": 1767225601.0,
                "endTime": 1767225603.0,
                "model": "gpt-x",
                "messages": [{"role": "system", "content": "Be brief."}, user("go")],
                "model_parameters": {"tools": [tool], "temperature": 0},
                "response": {
                    "id": "chatcmpl-1",
                    "model": "gpt-x-2026",
                    "choices": [{"message": {"content": None, "tool_calls": [call]}}],
                    "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 20}},
                },
            }
        )
    )
    assert (session.model, session.system) == ("gpt-x-2026", "Be brief.")
    assert [tool["name"] for tool in session.tools] == ["bash"]
    assert kinds(session) == ["turn prompt", "[call]"]
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.output) == (30, 20, 3)


ASKED: Json = {"model": "m", "messages": [user("go")]}
CAME = said("Hello.", usage={"input_tokens": 4, "output_tokens": 1})


@for_each(
    "record",
    [
        {"request": json.dumps(ASKED), "response": json.dumps(CAME)},
        {"request_body": ASKED, "response_body": CAME},
        {"requestBody": json.dumps(ASKED), "responseBody": json.dumps(CAME)},
        {"input": {"inputBodyJson": ASKED}, "output": {"outputBodyJson": CAME}, "modelId": "m"},
        {"proxy_server_request": {"body": ASKED}, "messages": [], "response": CAME},
        {"additional_args": {"complete_input_dict": ASKED}, "original_response": json.dumps(CAME)},
        {**ASKED, "tools": [], "kwargs": {}, "response": CAME, "latency_sec": 2.0},
    ],
    ids=["texts", "bodies", "camels", "bedrock", "spend log", "callback", "beside"],
)
def test_bodies_are_found_where_gateways_keep_them(
    record: Json, write: Write, kinds: Kinds
) -> None:
    session = read_session(write(record))
    assert session.format == "request-log"
    assert kinds(session) == ["turn prompt", "[text]"]
    assert session.calls[0].usage is not None


def test_a_call_that_was_cut_off_is_none(write: Write, kinds: Kinds) -> None:
    content = [{"type": "text", "text": "I look."}, CALL]
    cut = {**CALLED, "content": content, "stop_reason": "max_tokens"}
    session = read_session(
        write(
            pair([user("go")], cut),
            pair([user("go"), said("I look."), user("Go on.")], said("Done.")),
        )
    )
    assert kinds(session) == ["turn prompt", "[text]", "turn prompt", "[text]"]
    assert not session.notices


def test_a_response_names_the_one_before_it(write: Write, kinds: Kinds) -> None:
    def response(own: str, text: str) -> Json:
        content = [{"type": "output_text", "text": text}]
        return {"id": own, "output": [{"type": "message", "role": "assistant", "content": content}]}

    first = {"model": "m", "instructions": "Be brief.", "input": "go"}
    then = {"model": "m", "input": "and then?", "previous_response_id": "r1"}
    session = read_session(
        write(
            {"request": first, "response": response("r1", "Hello.")},
            {"request": then, "response": response("r2", "That is all.")},
        )
    )
    assert session.system == "Be brief."
    assert kinds(session) == ["turn prompt", "[text]", "turn prompt", "[text]"]
    assert [call.id for call in session.calls] == ["r1", "r2"]


def test_an_http_archive_is_read_whatever_else_is_in_it(
    document: Callable[[Any], Path], kinds: Kinds
) -> None:
    body = json.dumps({**CALLED, "usage": {"input_tokens": 4, "output_tokens": 1}}).encode()
    content = {"encoding": "base64", "text": b64encode(body).decode()}
    posted = {"text": json.dumps({"model": "claude-x", "messages": [user("go")]})}
    asked_at = {"startedDateTime": "2026-01-01T00:00:01Z", "time": 2_500}
    page = {"mimeType": "text/html", "text": "<p>data: none</p>"}
    then = {"text": json.dumps({"messages": [user("go"), CALLED, RESULT]})}
    entries = [
        {"request": {"method": "GET", "url": "/"}, "response": {"content": page}},
        {**asked_at, "request": {"postData": posted}, "response": {"content": content}},
        {"startedDateTime": "2026-01-01T00:00:05Z", "request": {"postData": then}},
    ]
    session = read_session(document({"log": {"version": "1.2", "entries": entries}}))
    assert (session.format, session.model) == ("request-log", "claude-x")
    assert kinds(session) == ["turn prompt", "[call]", "result"]
    assert session.calls[0].usage is not None
    result = session.items[-1].blocks[0]
    assert isinstance(result, ToolResult)
    times = result.envelope.started_at, result.envelope.ended_at
    assert times == (1767225603.5, 1767225605.0), "from the answer to the next request"


def test_geminis_instruction_and_functions_are_kept(write: Write, kinds: Kinds) -> None:
    function = {"name": "bash", "description": "Runs.", "parameters": {"type": "object"}}
    request = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [function]}],
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
    }
    content = {"role": "model", "parts": [{"text": "Hello."}]}
    usage = {"promptTokenCount": 9, "cachedContentTokenCount": 5, "candidatesTokenCount": 2}
    response = {"candidates": [{"content": content}], "usageMetadata": usage, "modelVersion": "g"}
    session = read_session(write({"request": request, "response": response}))
    assert (session.model, session.system) == ("g", "Be brief.")
    assert [tool["name"] for tool in session.tools] == ["bash"]
    assert kinds(session) == ["turn prompt", "[text]"]
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.output) == (4, 5, 2)


def test_marks_that_move_and_text_in_another_shape_are_no_other_history(
    write: Write, kinds: Kinds
) -> None:
    marked = {"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}
    again = {"role": "assistant", "content": "Hello. "}
    session = read_session(
        write(
            pair([{"role": "user", "content": [marked]}], said("Hello.")),
            pair([user("go"), again, user("on")], said("Bye.")),
        )
    )
    assert kinds(session) == ["turn prompt", "[text]", "turn prompt", "[text]"]


def test_an_answer_that_was_asked_for_again_is_left_out_with_its_line(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(
        write(
            *(pair([user("go")], said("Well.")), pair([user("go")], None)),
            pair([user("go")], CALLED),
            pair([user("go"), CALLED, RESULT], said("Done.")),
        )
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "[text]"]
    [notice] = session.notices
    assert (notice.line, notice.text[:11]) == (1, "2 requests,")


def test_an_answer_that_the_client_changed_stays_as_it_was_given(
    write: Write, kinds: Kinds
) -> None:
    """A harness that wants one call at a time takes both back, and asks for one."""
    two = {**CALLED, "content": [{**CALL, "id": "c2"}, {**CALL, "id": "c3"}]}
    empty = {"role": "assistant", "content": ""}
    session = read_session(
        write(
            pair([user("go")], two),
            pair([user("go"), empty, user("One call, please.")], CALLED),
            pair([user("go"), CALLED, RESULT], said("Done.")),
        )
    )
    assert kinds(session)[:2] == ["turn prompt", "[call call]"]
    assert kinds(session)[2:] == ["turn prompt", "[call]", "result", "[text]"]
    assert not session.notices


def test_an_answer_of_several_items_that_the_client_changed_is_still_one(
    write: Write, kinds: Kinds
) -> None:
    def item(text: str) -> Json:
        content = [{"type": "output_text", "text": text}]
        return {"type": "message", "role": "assistant", "content": content}

    def call(arguments: str) -> Json:
        return {"type": "function_call", "call_id": "c1", "name": "f", "arguments": arguments}

    output = {"type": "function_call_output", "call_id": "c1", "output": "a"}
    changed = [user("go"), item("Hello."), call("{}"), output]
    session = read_session(
        write(
            {
                "request": {"input": [user("go")]},
                "response": {"output": [item("Hello!"), call('{"x": 1}')]},
            },
            {"request": {"input": changed}, "response": {"output": [item("Done.")]}},
        )
    )
    assert kinds(session) == ["turn prompt", "[text call]", "result", "[text]"]


def test_an_answer_that_the_log_lost_is_taken_from_the_history(write: Write, kinds: Kinds) -> None:
    first = pair([user("go")], None)
    session = read_session(write(first, pair([user("go"), CALLED, RESULT], said("Done."))))
    assert kinds(session) == ["turn prompt", "[call]", "result", "[text]"]


def test_an_exchange_that_the_log_lost_is_taken_from_the_history(
    write: Write, kinds: Kinds
) -> None:
    """Words that were said twice do not hide the call that stands beside them."""

    def looks(call: str) -> Json:
        return {**CALLED, "content": [{"type": "text", "text": "I look."}, {**CALL, "id": call}]}

    def seen(call: str) -> Json:
        content = [{"type": "tool_result", "tool_use_id": call, "content": "a"}]
        return {"role": "user", "content": content}

    history = [user("go"), looks("c1"), seen("c1"), looks("c2"), seen("c2")]
    session = read_session(write(pair([user("go")], looks("c1")), pair(history, said("Done."))))
    assert kinds(session) == [
        *("turn prompt", "[text call]", "result", "[text call]", "result", "[text]")
    ]


def test_the_same_answer_twice_is_found_by_its_place(write: Write) -> None:
    history = [user("go"), said("Well."), user("more")]
    session = read_session(
        write(
            pair([user("go")], said("Well.")),
            pair(history, said("Well.")),
            pair(history, said("Here.")),
        )
    )
    assert heard(session) == [
        *(("user", "go"), ("said", "Well."), ("user", "more"), ("said", "Here."))
    ]


def test_an_answer_in_several_texts_is_found_again(write: Write, kinds: Kinds) -> None:
    twice = {
        **CALLED,
        "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}],
    }
    history = [user("go"), twice, user("on")]
    session = read_session(write(pair([user("go")], twice), pair(history, said("Done."))))
    assert kinds(session) == ["turn prompt", "[text text]", "turn prompt", "[text]"]


def test_an_aside_is_one_wherever_it_stands(write: Write, kinds: Kinds) -> None:
    history = [user("go"), CALLED, RESULT]
    session = read_session(
        write(
            *(pair([user("go")], CALLED), pair(history, said("Done."))),
            pair([*history, said("Done."), user("more")], said("Here.")),
            pair([user("go"), CALLED, user("Suggest what to say.")], said("Thanks!")),
        )
    )
    assert kinds(session)[-2:] == ["turn prompt", "[text]"]
    assert [notice.line for notice in session.notices] == [4]


def test_a_request_that_adds_nothing_is_a_call_at_its_own_time(write: Write) -> None:
    cut = {**said("One, two"), "stop_reason": "max_tokens"}
    session = read_session(
        write(
            {**pair([user("count")], cut), "timestamp": 100},
            {**pair([user("count"), cut], said(", three.")), "timestamp": 200},
        )
    )
    assert [call.at for call in session.calls] == [100, 200]


def test_a_response_that_nobody_waits_for_answers_nothing(write: Write) -> None:
    late = {"response": said("Late.")}
    session = read_session(write(pair([user("go")], said("Hello.")), late))
    assert heard(session) == [("user", "go"), ("said", "Hello.")]
    assert [notice.line for notice in session.notices] == [2]
    lines = [{"request": {"messages": [user("go")]}}, {"response": said("Hello.")}, late]
    assert heard(read_session(write(*lines))) == [("user", "go"), ("said", "Hello.")]


def test_items_of_a_history_without_a_log_are_one_response(write: Write, kinds: Kinds) -> None:
    talk = (User("go"), Model("let me see", ("c0", "c1")), Tool("c0", "a"), Tool("c1", "b"))
    request = asked(talk, "openai.responses")
    session = read_session(
        write({"request": request, "response": responded(Model("yes"), "openai.responses", "r")})
    )
    assert kinds(session) == [
        *("turn prompt", "[thinking text call call]", "result", "result", "[thinking text]")
    ]


def test_a_history_that_was_cut_goes_on_with_the_calls_that_it_kept(
    write: Write, kinds: Kinds
) -> None:
    summary = user("So far: the user asked for a list.")
    session = read_session(
        write(pair([user("go")], CALLED), pair([summary, CALLED, RESULT], said("Done.")))
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "[text]"]


def test_a_log_that_begins_in_the_middle_has_the_history_of_its_first_request(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(write(pair([user("go"), CALLED, RESULT], said("Done."))))
    assert kinds(session) == ["turn prompt", "[call]", "result", "[text]"]
    assert [bool(call.usage) for call in session.calls] == [False, False]


def test_a_last_request_without_an_answer_keeps_what_it_brought(write: Write, kinds: Kinds) -> None:
    session = read_session(write(pair([user("go")], CALLED), pair([user("go"), CALLED, RESULT], None)))  # fmt: skip
    assert kinds(session) == ["turn prompt", "[call]", "result"]
    [notice] = session.notices
    assert (notice.line, notice.text) == (2, "request without a response that could be read")


def test_a_branch_that_went_on_is_a_conversation_of_its_own(write: Write, kinds: Kinds) -> None:
    other = {**CALLED, "content": [{**CALL, "id": "c2"}]}
    answered = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2"}]}
    path = write(
        *(pair([user("go")], CALLED), pair([user("go")], other)),
        pair([user("go"), CALLED, RESULT], said("Done.")),
        pair([user("go"), other, answered], said("Otherwise.")),
        pair([user("go"), CALLED, RESULT, said("Done."), user("more")], said("Here.")),
    )
    session = read_session(path)
    assert len(session.calls) == 3
    assert "the first of 2 conversations" in session.notices[0].text
    assert kinds(read_session(f"{path}#1")) == ["turn prompt", "[call]", "result", "[text]"]
    assert [*read_conversations(path)] == [session, read_session(f"{path}#1")]
    assert [*read_conversations(f"{path}#1")] == [read_session(f"{path}#1")]


def test_what_an_answer_cost_that_nothing_followed_is_outside_the_conversation(
    write: Write,
) -> None:
    """It is that of the file: the first conversation has it, and no other."""
    retried, other = said("Well.", usage={"input_tokens": 7, "output_tokens": 1}), user("Hello.")
    path = write(
        {**pair([user("go")], retried, model="m"), "timestamp": 50},
        pair([user("go")], CALLED),
        pair([user("go"), CALLED, RESULT], said("Done.")),
        pair([other], said("Hello!")),
    )
    first, second = read_conversations(path)
    [aside] = first.aside
    assert (aside.uncached, aside.output, aside.model, aside.at) == (7, 1, "m", 50)
    assert second.aside == ()


def test_two_lines_find_each_other_by_their_id_or_else_by_their_place(write: Write) -> None:
    def request(own: str, text: str) -> Json:
        return {"request_id": own, "request": {"messages": [user(text)]}}

    def response(own: str, text: str) -> Json:
        return {"request_id": own, "response": said(text)}

    path = write(
        *(
            request("1", "one"),
            request("2", "two"),
            response("1", "first"),
            response("2", "second"),
        ),
        *(request("", "three"), request("", "four"), response("", "last")),
    )
    found = {
        heard(read_session(f"{path}#{n}"))[0][1]: heard(read_session(f"{path}#{n}"))[1:]
        for n in range(4)
    }
    assert found == {
        "one": [("said", "first")],
        "two": [("said", "second")],
        "three": [],
        "four": [("said", "last")],
    }


def test_requests_without_any_answer_are_no_log(write: Write) -> None:
    with pytest.raises(SessionFormatError, match="unknown session format"):
        read_session(write({"request": {"messages": [user("go")]}}))
