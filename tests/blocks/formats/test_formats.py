"""Messages of six formats say the same, whoever wrote them; what cannot be read keeps its original."""

from base64 import b64encode
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    ArgumentError,
    CodecError,
    DocumentPart,
    FoldlineError,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
    text_of_parts,
)
from blocks.formats import (
    Call,
    Format,
    Message,
    ModelText,
    Result,
    Thought,
    Verbatim,
    messages_from,
    parts_from,
    parts_in,
    response_from,
)
from tests._mutations import mutated_value
from tests._table import for_each
from tests.foreign import EXAMPLES, Talk, talks, told, written

FORMATS: tuple[Format, ...] = get_args(Format)
PICTURE = b64encode(b"picture").decode()
PAPER = b64encode(b"%PDF-1.7").decode()
INLINE = f"data:image/png;base64,{PICTURE}"

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "type", "kind", "content", "text", "parts", "id", "data", "url"]
            )
            | st.text(max_size=5),
            inner
            | st.sampled_from(["user", "assistant", "tool", "ai", "message", "image", "request"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


def read(*messages: object, name: Format) -> list[Message]:
    return [message for found in messages_from(messages, name) for message in found]


def said_in(messages: list[Message]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for message in messages:
        for content in message.content:
            match content:
                case ModelText(text=text):
                    found.append(("said", text))
                case Call(call_id=call_id):
                    found.append(("call", call_id))
                case Result(call_id=call_id, parts=parts):
                    found.append(("result", call_id, text_of_parts(parts)))
                case TextPart(text=text):
                    found.append((message.role, text))
                case _:
                    pass
    return found


def test_a_format_has_its_examples() -> None:
    """They stand in three tables; what is tried in every format is tried with them."""
    for table, place in (
        (EXAMPLES, "EXAMPLES in tests/foreign.py"),
        (STOPPED, "STOPPED in tests/blocks/formats/test_formats.py"),
        (HEARD, "HEARD in tests/blocks/formats/test_formats.py"),
    ):
        assert set(FORMATS) - set(table) == set(), f"add an example in this format to {place}"


@given(talks())
def test_a_conversation_is_the_same_in_every_format(talk: Talk) -> None:
    for name in FORMATS:
        assert said_in(read(*written(talk, name), name=name)) == told(talk)


@for_each(
    ("name", "content", "part"),
    [
        ("anthropic", {"type": "image", "source": {"type": "base64", "data": PICTURE, "media_type": "image/gif"}}, ImagePart(media_type="image/gif", data=PICTURE)),
        ("anthropic", {"type": "document", "title": "a.pdf", "source": {"type": "base64", "data": PAPER, "media_type": "application/pdf"}}, DocumentPart(data=PAPER, name="a.pdf")),
        ("openai.chat", {"type": "image_url", "image_url": {"url": INLINE}}, ImagePart(data=PICTURE)),
        ("openai.chat", {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAPER}"}}, DocumentPart(data=PAPER, name="a.pdf")),
        ("openai.responses", {"type": "input_image", "image_url": "https://x/y.png"}, ImagePart(url="https://x/y.png")),
        ("openai.responses", {"type": "input_file", "file_url": "https://x/y.pdf"}, DocumentPart(url="https://x/y.pdf")),
        ("gemini", {"inlineData": {"mimeType": "image/webp", "data": PICTURE}}, ImagePart(media_type="image/webp", data=PICTURE)),
        ("gemini", {"inline_data": {"mime_type": "image/png", "data": b"picture"}}, ImagePart(data=PICTURE)),
        ("gemini", {"inlineData": {"mimeType": "application/pdf", "data": PAPER, "displayName": "a.pdf"}}, DocumentPart(data=PAPER, name="a.pdf")),
        ("gemini", {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}}, ImagePart(url="https://x/y.png")),
        ("gemini", {"file_data": {"mime_type": "application/pdf", "file_uri": "https://x/y.pdf"}}, DocumentPart(url="https://x/y.pdf")),
        ("langchain", {"type": "image", "base64": PICTURE, "mime_type": "image/jpeg"}, ImagePart(media_type="image/jpeg", data=PICTURE)),
        ("langchain", {"type": "image", "source_type": "url", "url": "https://x/y.png"}, ImagePart(url="https://x/y.png")),
        ("langchain", {"type": "file", "base64": PAPER, "mime_type": "application/pdf"}, DocumentPart(data=PAPER)),
        ("langchain", {"type": "file", "base64": b64encode(b"hi").decode(), "mime_type": "text/csv"}, DocumentPart(media_type="text/plain", data="hi")),
        ("pydantic_ai", {"kind": "image-url", "url": "https://x/y.png"}, ImagePart(url="https://x/y.png")),
        ("pydantic_ai", {"kind": "document-url", "url": "https://x/y.pdf"}, DocumentPart(url="https://x/y.pdf")),
        ("pydantic_ai", {"kind": "binary", "data": b"picture", "media_type": "image/png"}, ImagePart(data=PICTURE)),
        ("pydantic_ai", {"kind": "text-content", "content": "A cat.", "metadata": {"a": 1}}, TextPart(text="A cat.")),
        ("pydantic_ai", {"kind": "structured-content", "content": "<a>1</a>", "value": 1}, TextPart(text="<a>1</a>")),
    ],
)  # fmt: skip
def test_a_picture_or_a_file_of_a_format_is_read(name: Format, content: Any, part: Part) -> None:
    assert parts_from(["See this:", content], name) == (TextPart(text="See this:"), part)


@for_each(
    ("name", "content"),
    [
        ("openai.chat", {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
        ("openai.chat", {"type": "image_url", "image_url": {"url": "file:///tmp/x.png"}}),
        ("openai.responses", {"type": "input_image", "file_id": "file-1"}),
        ("openai.responses", {"type": "input_file", "file_id": "file-2"}),
        ("gemini", {"inlineData": {"mimeType": "audio/mp3", "data": "AAAA"}}),
        (
            "gemini",
            {
                "fileData": {
                    "mimeType": "image/png",
                    "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/1",
                }
            },
        ),
        ("gemini", {"fileData": {"mimeType": "image/png", "fileUri": "gs://a/b.png"}}),
        ("langchain", {"type": "video", "base64": "AAAA", "mime_type": "video/mp4"}),
        ("pydantic_ai", {"kind": "audio-url", "url": "https://x/y.mp3"}),
        ("anthropic", {"type": "from_tomorrow", "value": 1}),
    ],
)
def test_what_cannot_be_read_keeps_its_original(name: Format, content: dict[str, Any]) -> None:
    [part] = parts_from([content], name)
    assert part == ProviderPart(value=content)
    assert text_of_parts([part]) not in ("", "[image]", "[document]")


@dataclass
class Piece:
    """A part as a framework's dataclass."""

    content: str
    part_kind: str = "user-prompt"


@dataclass
class Request:
    """A message as a framework's dataclass."""

    parts: list[Piece] = field(default_factory=lambda: [Piece("hi")])
    kind: str = "request"


class Dumped:
    """A message as a model that can be dumped."""

    def model_dump(self) -> dict[str, Any]:
        return {"type": "human", "content": [SimpleNamespace(type="text", text="hi")], "id": "m1"}


@for_each(
    ("name", "message"),
    [
        ("pydantic_ai", Request()),
        ("langchain", Dumped()),
        ("langchain", {"type": "human", "data": {"content": "hi"}}),
        ("openai.chat", SimpleNamespace(role="user", content="hi")),
        ("anthropic", {"role": "user", "content": [SimpleNamespace(type="text", text="hi")]}),
    ],
)
def test_objects_are_read_by_what_they_say_of_themselves(name: Format, message: object) -> None:
    [found] = read(message, name=name)
    assert (found.role, parts_in(found.content)) == ("user", [TextPart(text="hi")])


def test_what_the_model_said_keeps_what_its_provider_wants_back() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": []}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "f",
        "arguments": '{"a": 1}',
    }
    custom = {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "{}"}
    found = [m.content[0] for m in read(reasoning, search, call, custom, name="openai.responses")]
    assert found == [
        Thought(value=reasoning, source="rs_1"),
        Verbatim(value=search, vendor="openai", source="ws_1"),
        Call(
            call_id="c",
            name="f",
            input={"a": 1},
            provider={"arguments": '{"a": 1}'},
            source="fc_1",
        ),
        Call(call_id="d", name="g", input={"input": "{}"}, provider={"type": "custom"}),
    ]


def heard(*parts: dict[str, Any]) -> tuple[Any, ...]:
    [message] = read({"kind": "response", "parts": parts}, name="pydantic_ai")
    return message.content


def test_the_summaries_of_one_reasoning_item_are_that_item_again() -> None:
    known = {"part_kind": "thinking", "provider_name": "openai"}
    first = {**known, "id": "rs_1", "content": "Logs.", "signature": "sealed"}
    more = {**known, "id": "rs_1", "content": "Then disks."}
    other = {**known, "id": "rs_2", "content": "", "provider_details": {"raw_content": ["Hm."]}}
    texts = [{"type": "summary_text", "text": text} for text in ("Logs.", "Then disks.")]
    raw = [{"type": "reasoning_text", "text": "Hm."}]
    assert heard(first, more, other) == (
        Thought(
            value={
                "type": "reasoning",
                "id": "rs_1",
                "summary": texts,
                "encrypted_content": "sealed",
            },
            source="rs_1",
        ),
        Thought(
            value={"type": "reasoning", "id": "rs_2", "summary": [], "content": raw}, source="rs_2"
        ),
    )


def test_thinking_that_no_provider_takes_back_is_kept_as_it_is() -> None:
    unsigned = {"part_kind": "thinking", "content": "Hm.", "provider_name": "anthropic"}
    unsealed = {**unsigned, "provider_name": "openai", "id": "rs_1"}
    of_chat = {**unsealed, "id": "reasoning_content"}
    assert heard(unsigned, unsealed, of_chat) == (
        Thought(value={"type": "thinking-part", **unsigned}),
        Thought(value={"type": "thinking-part", **unsealed}),
        Thought(value={"type": "reasoning_content", "reasoning_content": "Hm."}),
    )


def test_what_openai_attached_is_kept_by_pydantic_ai_and_read() -> None:
    phase = {"phase": "commentary", "logprobs": []}
    text = {"part_kind": "text", "content": "First.", "id": "m1", "provider_details": phase}
    call = {"part_kind": "tool-call", "tool_call_id": "c", "tool_name": "f", "args": '{"a": 1}'}
    assert heard(text, {**call, "provider_details": {"namespace": "n"}}) == (
        ModelText(text="First.", provider={"phase": "commentary"}),
        Call(
            call_id="c",
            name="f",
            input={"a": 1},
            provider={"namespace": "n", "arguments": '{"a": 1}'},
        ),
    )


def test_a_search_of_anthropics_is_what_the_provider_sent() -> None:
    known = {"tool_name": "web_search", "tool_call_id": "srv_1", "provider_name": "anthropic"}
    hits = [{"type": "web_search_result", "url": "https://x/y", "encrypted_content": "z"}]
    asked = {"part_kind": "builtin-tool-call", "args": '{"query": "y"}', **known}
    found = {"part_kind": "builtin-tool-return", "content": hits, **known}
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "y"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": hits}
    assert heard(asked, found) == (Verbatim(value=call), Verbatim(value=result))
    [other] = heard({**asked, "tool_name": "code_execution"})
    assert (other.vendor, other.value["type"]) == ("pydantic_ai", "builtin-tool-call")


def test_what_pydantic_ai_says_itself_is_not_the_users() -> None:
    feedback = {"part_kind": "retry-feedback", "content": [{"type": "missing"}], "retry": {}}
    books = [
        {"part_kind": kind, "tools_added": ["f"]}
        for kind in ("tool-availability-delta", "instruction-baseline")
    ]
    [message] = read({"kind": "request", "parts": [*books, feedback]}, name="pydantic_ai")
    assert (message.role, message.content) == ("system", (TextPart(text='[{"type":"missing"}]'),))
    assert not read({"kind": "request", "parts": books}, name="pydantic_ai")


def test_a_list_that_a_tool_returned_keeps_its_pictures_and_its_objects() -> None:
    picture = {"kind": "binary", "data": b"picture", "media_type": "image/png"}
    returned = {
        "part_kind": "tool-return",
        "tool_call_id": "c",
        "content": ["Here:", picture, {"rows": 2}],
        "outcome": "retried",
    }
    [message] = read({"kind": "request", "parts": [returned]}, name="pydantic_ai")
    parts = (TextPart(text="Here:"), ImagePart(data=PICTURE), TextPart(text='{"rows":2}'))
    assert message.content == (Result(call_id="c", parts=parts, is_error=True),)


@for_each(
    ("written", "asked", "kept"),
    [
        ('{"a":1}', {"a": 1}, {}),
        ('{ "a": 1 }', {"a": 1}, {"arguments": '{ "a": 1 }'}),
        ({"a": 1}, {"a": 1}, {}),
        ("", {}, {"arguments": ""}),
        (" ", {}, {"arguments": " "}),
        (None, {}, {}),
        ("[1]", {"input": "[1]"}, {"arguments": "[1]"}),
        ([1], {"input": "[1]"}, {}),
        ('{"a": ', {"input": '{"a": '}, {"arguments": '{"a": '}),
        ('{"a":"\\ud83d"}', {"a": "\\ud83d"}, {"arguments": '{"a":"\\ud83d"}'}),
        (f'{{"a":{"9" * 5_000}}}', {"input": f'{{"a":{"9" * 5_000}}}'}, None),
        ("[" * 300, {"input": "[" * 300}, None),
    ],
)
def test_arguments_are_an_object_whatever_the_model_wrote(
    written: Any, asked: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": written}}
    [found] = read({"role": "assistant", "tool_calls": [call]}, name="openai.chat")
    kept = {"arguments": written} if kept is None else kept
    assert found.content == (Call(call_id="c", name="f", input=asked, provider=kept),)


def test_the_texts_of_one_message_are_one_and_say_that_they_refuse() -> None:
    parts = [{"type": "text", "text": "No"}, {"type": "text", "text": " "}, "way."]
    refused = {"type": "refusal", "refusal": "No."}
    for content, text, refuses in ((parts, "No way.", {}), ([refused], "No.", {"refusal": True})):
        [chat] = read({"role": "assistant", "content": content}, name="openai.chat")
        assert chat.content == (ModelText(text=text, provider=refuses),)
        item = {"type": "message", "role": "assistant", "id": "m", "content": content}
        [found] = read({**item, "phase": "final_answer"}, name="openai.responses")
        known = {"phase": "final_answer", **refuses}
        assert found.content == (ModelText(text=text, provider=known, source="m"),)
    [chat] = read({"role": "assistant", "content": None, "refusal": "No."}, name="openai.chat")
    assert chat.content == (ModelText(text="No.", provider={"refusal": True}),)
    assert not read({"role": "assistant", "content": " ", "refusal": None}, name="openai.chat")[
        0
    ].content


def test_a_compaction_that_repeats_what_the_user_said_says_nothing_for_the_model() -> None:
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    item = {"type": "compaction", "encrypted_content": "sealed"}
    found = response_from({"output": [user, item]}, "openai.responses").message.content
    assert found == (Verbatim(value=item, vendor="openai"),)


@for_each(
    ("name", "response"),
    [
        ("anthropic", {"role": "assistant", "content": "ok", "usage": {"input_tokens": 10, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 10, "output_tokens": 5}}),
        ("openai.chat", {"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 10}, "completion_tokens": 5}}),
        ("openai.responses", {"output": [{"type": "message", "role": "assistant", "content": "ok"}], "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 10}, "output_tokens": 5}}),
        ("gemini", {"candidates": [{"content": {"parts": [{"text": "ok"}]}}], "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 80, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}}),
        ("langchain", {"type": "ai", "content": "ok", "usage_metadata": {"input_tokens": 100, "input_token_details": {"cache_read": 80, "cache_creation": 10}, "output_tokens": 5}}),
        ("pydantic_ai", {"kind": "response", "parts": [{"part_kind": "text", "content": "ok"}], "usage": {"input_tokens": 100, "cache_read_tokens": 80, "cache_write_tokens": 10, "output_tokens": 5}}),
    ],
)  # fmt: skip
def test_usage_means_the_same_in_every_format(name: Format, response: Any) -> None:
    usage = response_from(response, name).usage
    assert usage is not None
    written = 0 if name == "gemini" else 10  # whose cache charges nothing for a write
    assert (usage.uncached, usage.cache_read) == (20 - written, 80)
    assert (usage.cache_write, usage.output) == (written, 5)
    assert usage.input == 100


@for_each(
    ("messages", "told_of"),
    [
        ("hello", "expected a list of messages, not 'hello'"),
        (None, "expected a list of messages, not None"),
        ({"role": "user"}, "expected a list of messages"),
        (
            [{"role": "user", "content": "a"}, "b"],
            r"messages\[1\]: expected a message of the format",
        ),
        ([{"role": "nobody"}], r"messages\[0\]: .*nobody.* is not a message of the format"),
        ([3.5], r"messages\[0\]"),
    ],
)
def test_what_is_no_message_is_named(messages: Any, told_of: str) -> None:
    with pytest.raises(ArgumentError, match=told_of):
        list(messages_from(messages, "openai.chat"))


def test_a_format_that_there_is_not_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"did you mean 'openai\.chat'"):
        parts_from("x", "openai.chats")  # type: ignore[arg-type]  # a caller's mistake


@for_each("name", FORMATS)
def test_what_is_no_response_is_refused(name: Format) -> None:
    for response in ({}, {"error": {"message": "overloaded"}}, {"role": "user", "content": "x"}, 1):
        with pytest.raises(ArgumentError, match="response of the format"):
            response_from(response, name)


def test_content_that_cannot_be_stored_is_refused() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    with pytest.raises(CodecError, match="nested deeper"):
        parts_from([{"type": "new", "value": deep}], "anthropic")


@given(anything, st.sampled_from(FORMATS))
def test_any_json_is_messages_or_a_named_error(value: Any, name: Format) -> None:
    for given_value in (value, [value]):
        with suppress(FoldlineError):
            list(messages_from(given_value, name))
        with suppress(FoldlineError):
            response_from(given_value, name)
        parts_from(given_value, name)


STOPPED: dict[Format, Any] = {
    "anthropic": {
        "type": "message",
        "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
        "stop_reason": "max_tokens",
    },
    "openai.chat": {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]},
    "openai.responses": {
        "output": [{"type": "function_call", "call_id": "c", "status": "incomplete"}],
        "status": "incomplete",
    },
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "MAX_TOKENS"}]
    },
    "langchain": {
        "type": "ai",
        "content": [{"type": "text", "text": "x", "id": "msg_1"}],
        "response_metadata": {"finish_reason": "length"},
    },
    "pydantic_ai": {"kind": "response", "parts": [{"part_kind": "text", "content": "x"}]},
}
HEARD: dict[Format, Any] = {
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
    "openai.chat": {"role": "tool", "tool_call_id": "c", "content": "x"},
    "openai.responses": {"type": "function_call_output", "call_id": "c", "output": "x"},
    "gemini": {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    "langchain": {"type": "tool", "tool_call_id": "c", "content": "x", "status": "error"},
    "pydantic_ai": {
        "kind": "request",
        "parts": [{"part_kind": "tool-return", "tool_name": "f", "outcome": "failed"}],
    },
}


@given(st.sampled_from(FORMATS), st.integers(0, 2**32 - 1))
def test_a_field_of_any_type_is_a_message_or_a_named_error(name: Format, seed: int) -> None:
    """Of an answer that was cut off, and of a result: their kinds and reasons are looked up."""
    random = Random(seed)  # noqa: S311 -- no secret
    for known in (STOPPED[name], HEARD[name]):
        damaged = mutated_value(deepcopy(known), random)
        with suppress(FoldlineError):
            list(messages_from([damaged], name))
        with suppress(FoldlineError):
            response_from(damaged, name)


def test_what_gemini_said_keeps_its_signatures_where_they_were() -> None:
    seal, sealed = {"thoughtSignature": "AAEC"}, {"thought_signature": b"\0\1\2"}
    parts: list[Any] = [
        {"text": "hm", "thought": True},
        {"text": "so", **seal},
        {"function_call": {"id": "c", "name": "f", "args": {"a_b": 1}}, **sealed},
        {"executable_code": {"code": "1", "language": None}},
        sealed,
        {"text": " "},
    ]
    [message] = read({"role": "model", "parts": parts}, name="gemini")
    assert message.content == (
        Thought(value={"text": "hm", "thought": True}),
        ModelText(text="so", provider=seal),
        Call(call_id="c", name="f", input={"a_b": 1}, provider=seal),
        Verbatim(value={"executableCode": {"code": "1"}}, vendor="gemini"),
        Thought(value={"text": "", **seal}),
    )


@for_each(
    ("response", "text", "failed"),
    [
        ({"output": "a"}, "a", False),
        ({"error": "b"}, "b", True),
        ({"result": [1]}, '{"result":[1]}', False),
        ({"output": {"x": 1}}, '{"x":1}', False),
        ({}, "", False),
    ],
)
def test_a_function_of_geminis_returns_its_output_its_error_or_all_of_it(
    response: Any, text: str, *, failed: bool
) -> None:
    returned = {"id": "c", "name": "f", "response": response, "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}]}  # fmt: skip
    [message] = read({"role": "user", "parts": [{"functionResponse": returned}]}, name="gemini")
    [found] = message.content
    assert isinstance(found, Result)
    assert found.parts[-1] == ImagePart(data=PICTURE)
    assert (text_of_parts(found.parts[:-1]), found.is_error) == (text, failed)
