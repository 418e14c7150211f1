"""Every rule of the Messages API: a request that breaks it and no other, and its repaired twin."""

import re
from typing import Any

import attrs
from anthropic import types
from hypothesis import given, settings
from hypothesis import strategies as st

from render import Model, validate_request
from render.providers.anthropic._rules import KNOWN_FIELDS, Rule
from tests._table import for_each

MARK_5M = {"type": "ephemeral"}
MARK_1H = {"type": "ephemeral", "ttl": "1h"}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
TEN_MB = 10 * 1024 * 1024


MODEL = Model(name="m", tokens_window=1_000_000, output_tokens_max=128_000)
PREFILL = attrs.evolve(MODEL, prefill=True)
SMALL = attrs.evolve(MODEL, tokens_window=200_000)
SYSTEM = attrs.evolve(MODEL, system_messages=True)


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def system(*content: Any) -> dict[str, Any]:
    return {"role": "system", "content": list(content)}


def text(words: Any = "hello", **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def use(identity: Any = "t1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": "read", "input": {}, **fields}


def result(identity: Any = "t1", content: Any = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content}


def think(signature: str = "sig", **fields: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": signature, **fields}


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": {**PNG, **source}}


def document(**source: Any) -> dict[str, Any]:
    return {"type": "document", "source": source}


def search_result(**fields: Any) -> dict[str, Any]:
    where = {"source": "https://x.org/a", "title": "A"}
    return {"type": "search_result", **where, "content": [text()], **fields}


def pdf(data: str = "JVBERi0=") -> dict[str, Any]:
    return document(type="base64", media_type="application/pdf", data=data)


def tool(name: Any = "read", **fields: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **fields}


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": list(messages), **fields}


def said(*content: Any) -> dict[str, Any]:
    """A request whose only message holds `content`."""
    return request(user(*content))


def answered(*content: Any) -> dict[str, Any]:
    """A request whose assistant message holds `content`, between two user messages."""
    return request(user(text()), assistant(*content), user(text()))


def called(*results: Any) -> dict[str, Any]:
    """A request that answers the calls t1 and t2 with `results`."""
    return request(user(text()), assistant(use("t1"), use("t2")), user(*results))


def marked(count: int, **fields: Any) -> dict[str, Any]:
    """A request with `count` marks of five minutes."""
    return request(user(*[text(cache_control=MARK_5M)] * count, text()), **fields)


FINE = said(text())
FOUND_TOOL = request(
    user(text()),
    assistant(use()),
    user(result(content=[{"type": "tool_reference", "tool_name": "deploy"}])),
)

# Rule, place, the broken request, its repaired twin, and the model that it is meant for.
Case = tuple[str, str, dict[str, Any], dict[str, Any], Model | None]

SHAPES: list[Case] = [
    ("shape", "messages", {"messages": "hi"}, FINE, None),
    ("shape", "tools", request(user(text()), tools={}), request(user(text()), tools=[]), None),
    ("shape", "system", request(user(text()), system=1), request(user(text()), system=""), None),
    ("shape", "messages.0", request("hi"), FINE, None),
    ("shape", "messages.0", request({"role": "user"}), FINE, None),
    ("shape", "messages.0.content.0", said("hi"), FINE, None),
    ("shape", "messages.0.content.0", said(text(None)), FINE, None),
    ("unknown_block", "messages.0.content.0", said({"type": "poem"}), FINE, None),
    ("unknown_block", "messages.0.content.0", said({"type": ["text"]}), FINE, None),
    ("unknown_block", "system.0", {**FINE, "system": [image()]}, {**FINE, "system": "be"}, None),
    (
        "unknown_block",
        "messages.2.content.0.content.0",
        called(result("t1", [result("t3")]), result("t2")),
        called(result("t1", [text()]), result("t2")),
        None,
    ),
]

CONVERSATION: list[Case] = [
    ("no_messages", "messages", request(), FINE, None),
    ("no_messages", "messages", {}, FINE, None),
    ("messages_max", "messages", request(*[user(text())] * 100_001), FINE, None),
    ("role", "messages.0", request({"role": "tool", "content": "hi"}), FINE, None),
    ("role", "messages.0", request({"role": ["user"], "content": "hi"}), FINE, None),
    (
        "system_refused",
        "messages.1",
        request(user(text()), system(text())),
        request(user(text()), user(text())),
        None,
    ),
    (
        "system_place",
        "messages.1",
        request(user(text()), system(text()), user(text())),
        request(user(text()), system(text()), assistant(text()), user(text()), system(text())),
        SYSTEM,
    ),
    ("first_not_user", "messages.0", request(assistant(text()), user(text())), FINE, None),
    (
        "first_not_user",
        "messages.0",
        request(assistant(text(), {"type": "compaction", "content": "so far"}), user(text())),
        request(assistant({"type": "compaction", "content": "so far"}), user(text())),
        None,
    ),
    ("last_not_user", "messages.1", request(user(text()), assistant(text())), FINE, None),
    (
        "last_not_user",
        "messages.1",
        request(user(text()), assistant(text())),
        request(user(text()), assistant({"type": "web_search_tool_result"})),
        SMALL,
    ),
    (
        "prefill_trailing_space",
        "messages.1",
        request(user(text()), assistant(text("so "))),
        request(user(text()), assistant(text("so"))),
        PREFILL,
    ),
    (
        "prefill_trailing_space",
        "messages.2",
        request(user(text()), assistant(text("so")), assistant(text("on "))),
        request(user(text()), assistant(text("so ")), assistant(text("on"))),
        PREFILL,
    ),
    ("content_empty", "messages.1", answered(), answered(text()), None),
    ("content_empty", "messages.0", request({"role": "user", "content": ""}), FINE, None),
]

TEXTS: list[Case] = [
    ("text_empty", "messages.0.content.1", said(text(), text("")), FINE, None),
    ("text_blank", "messages.0.content.0", request({"role": "user", "content": " \n"}), FINE, None),
    ("text_empty", "system.0", {**FINE, "system": [text("")]}, {**FINE, "system": ""}, None),
    ("text_blank", "system", {**FINE, "system": "\t"}, {**FINE, "system": "be brief"}, None),
    (
        "text_blank",
        "messages.2.content.1.content.0",
        called(result("t1", ""), result("t2", [text(" ")])),
        called(result("t1", ""), result("t2", " ")),
        None,
    ),
    (
        "text_empty",
        "messages.0.content.0.source",
        said(document(type="text", media_type="text/plain", data="")),
        said(document(type="text", media_type="text/plain", data="words")),
        None,
    ),
    (
        "text_empty",
        "messages.0.content.0.content.0",
        said(search_result(content=[text("")])),
        said(search_result(citations={"enabled": True})),
        None,
    ),
    (
        "text_empty",
        "messages.0.content.0",
        said(search_result(content=[])),
        said(search_result()),
        None,
    ),
    (
        "text_empty",
        "messages.0.content.0",
        request(assistant({"type": "compaction", "content": ""}), user(text())),
        request(assistant({"type": "compaction", "content": None}), user(text())),
        None,
    ),
    (
        "citations_in_user",
        "messages.0.content.0",
        said(text(citations=[{}])),
        answered(text(citations=[{}])),
        None,
    ),
    ("document_in_assistant", "messages.1.content.0", answered(pdf()), said(pdf()), None),
    ("wrong_role", "messages.0.content.0", said(use()), FINE, None),
    ("wrong_role", "messages.0.content.0", said(think()), FINE, None),
    ("wrong_role", "messages.1.content.0", answered(result()), answered(text()), None),
    (
        "wrong_role",
        "messages.1.content.0",
        request(user(text()), system(image())),
        request(user(text()), system(text())),
        SYSTEM,
    ),
]

TOOLS: list[Case] = [
    ("tool_name", "tools.0", {**FINE, "tools": [tool("a b")]}, {**FINE, "tools": [tool()]}, None),
    (
        "tool_name",
        "tools.0",
        {**FINE, "tools": [tool("x" * 65)]},
        {**FINE, "tools": [tool("x" * 64)]},
        None,
    ),
    (
        "tool_name",
        "tools.0",
        {**FINE, "tools": [{"type": "web_search_20250305"}]},
        {**FINE, "tools": [{"type": "browser_toolset_20260801"}]},
        None,
    ),
    (
        "tool_name_duplicate",
        "tools.1",
        {**FINE, "tools": [tool(), tool()]},
        {**FINE, "tools": [tool(), tool("write")]},
        None,
    ),
    (
        "tool_reference",
        "messages.2.content.0.content.0",
        {**FOUND_TOOL, "tools": [tool()]},
        {**FOUND_TOOL, "tools": [tool(), tool("deploy")]},
        None,
    ),
    (
        "tool_schema",
        "tools.0",
        {**FINE, "tools": [tool(input_schema={"type": "array"})]},
        {**FINE, "tools": [tool(type="custom")]},
        None,
    ),
    *(
        (
            rule,
            "messages.1.content.0",
            request(user(text()), assistant(broken), user(result(answer))),
            request(user(text()), assistant(use()), user(result())),
            None,
        )
        for rule, broken, answer in [
            ("tool_use_id", use("a b"), "a b"),
            ("tool_use_id", use("t1\n"), "t1\n"),
            ("tool_input", use(input="{}"), "t1"),
            ("tool_name", use(name=""), "t1"),
        ]
    ),
    (
        "server_tool_use_id",
        "messages.1.content.0",
        answered({"type": "server_tool_use", "id": "t1", "input": {}}),
        answered({"type": "server_tool_use", "id": "srvtoolu_1", "input": {}}),
        None,
    ),
    (
        "tool_use_id_duplicate",
        "messages.3.content.0",
        request(user(text()), *[assistant(use()), user(result())] * 2),
        request(
            user(text()), assistant(use()), user(result()), assistant(use("b")), user(result("b"))
        ),
        None,
    ),
]

PAIRED = called(result("t2"), result("t1"), text())
PAIRS: list[Case] = [
    ("tool_use_unanswered", "messages.1.content.1", called(result("t1")), PAIRED, None),
    ("tool_use_unanswered", "messages.1.content.0", called(result("t2"), text()), PAIRED, None),
    (
        "tool_use_unanswered",
        "messages.1.content.0",
        request(user(text()), assistant(use())),
        request(user(text()), assistant(text())),
        PREFILL,
    ),
    (
        "tool_result_unexpected",
        "messages.2.content.1",
        called(result("t1"), result("t0"), result("t2")),
        PAIRED,
        None,
    ),
    ("tool_result_unexpected", "messages.0.content.0", said(result()), FINE, None),
    (
        "tool_result_duplicate",
        "messages.2.content.2",
        called(result("t1"), result("t2"), result("t1")),
        PAIRED,
        None,
    ),
    (
        "tool_result_late",
        "messages.2.content.2",
        called(result("t1"), text(), result("t2")),
        PAIRED,
        None,
    ),
    (
        "tool_result_late",
        "messages.4.content.0",
        request(
            user(text()), assistant(use("t1")), assistant(use("t2")),
            user(result("t1"), text()), user(result("t2")),
        ),
        request(
            user(text()), assistant(use("t1")), assistant(use("t2")),
            user(result("t1")), user(result("t2"), text()),
        ),
        None,
    ),
]  # fmt: skip

THINKING: list[Case] = [
    ("thinking_unsigned", "messages.1.content.0", answered(think(""), text()), FINE, None),
    (
        "thinking_unsigned",
        "messages.1.content.0",
        answered({"type": "redacted_thinking"}, text()),
        answered({"type": "redacted_thinking", "data": "x"}, text()),
        None,
    ),
    ("thinking_last", "messages.1", answered(text(), think()), answered(think(), text()), None),
    (
        "thinking_first",
        "messages.1.content.0",
        {**PAIRED, "thinking": {"type": "enabled"}},
        {**PAIRED, "thinking": {"type": "adaptive"}},
        None,
    ),
]

MARKS: list[Case] = [
    ("mark_form", "messages.0.content.0", said(text(cache_control={})), marked(1), None),
    (
        "mark_ttl",
        "messages.0.content.0",
        said(text(cache_control={"type": "ephemeral", "ttl": "2h"})),
        said(text(cache_control=MARK_1H)),
        None,
    ),
    ("marks_max", "messages.0.content.4", marked(5), marked(4), None),
    (
        "marks_max",
        "messages.0.content.2",
        marked(3, tools=[tool(cache_control=MARK_5M)], system=[text(cache_control=MARK_5M)]),
        marked(2, tools=[tool(cache_control=MARK_5M)], system=[text(cache_control=MARK_5M)]),
        None,
    ),
    (
        "marks_max",
        "messages.0.content.4",
        marked(4, cache_control=MARK_5M),
        marked(3, cache_control=MARK_5M),
        None,
    ),
    (
        "mark_conflict",
        "messages.0.content.0",
        {**said(text(cache_control=MARK_5M)), "cache_control": MARK_1H},
        {**said(text(cache_control=MARK_5M)), "cache_control": MARK_5M},
        None,
    ),
    (
        "extra_field",
        "messages.1.content.0",
        answered(think(cache_control=MARK_5M), text()),
        answered(think(), text(cache_control=MARK_5M)),
        None,
    ),
    (
        "extra_field",
        "messages.0.content.0",
        said(text(words="a", annotations=[])),
        said(text(words="a")),
        None,
    ),
    (
        "mark_order",
        "messages.0.content.0",
        {**said(text(cache_control=MARK_1H)), "system": [text(cache_control=MARK_5M)]},
        {**said(text(cache_control=MARK_5M)), "system": [text(cache_control=MARK_1H)]},
        None,
    ),
]

LIMITS: list[Case] = [
    ("images_max", "messages", said(*[image()] * 101), said(*[image()] * 100), SMALL),
    ("images_max", "messages", said(*[image()] * 601), said(*[image()] * 600), None),
    (
        "images_max",
        "messages",
        called(result("t1", [image()] * 601), result("t2")),
        called(result("t1", [image()] * 600), result("t2")),
        None,
    ),
    (
        "image_bytes",
        "messages.0.content.0",
        said(image(data="A" * (TEN_MB + 4))),
        said(image(data="A" * TEN_MB)),
        None,
    ),
    ("media_type", "messages.0.content.0", said(image(media_type="image/svg")), FINE, None),
    ("source", "messages.0.content.0", said(image(type="ftp")), said(image()), None),
    ("source", "messages.0.content.0", said({"type": "image"}), said(image()), None),
    (
        "shape",
        "messages.0.content.0",
        said(document(type="url")),
        said(document(type="url", url="https://example.com/a.pdf")),
        None,
    ),
    *(
        (
            "url",
            "messages.0.content.0",
            said(document(type="url", url=url)),
            said({"type": "image", "source": {"type": "url", "url": "HTTP://x.org/a.png"}}),
            None,
        )
        for url in (
            "file:///a.pdf",
            "data:application/pdf;base64,AAAA",
            "a.pdf",
            "https://",
            "https://a b",
        )
    ),
    *(
        ("shape", "messages.0.content.0", said(broken), said(search_result()), None)
        for broken in (
            search_result(source={"type": "url"}),
            search_result(title=None),
            search_result(citations=True),
            document(type="url", url="https://x.org/a.pdf") | {"title": 5},
            {"type": "container_upload"},
        )
    ),
    ("base64", "messages.0.content.0", said(image(data="[redacted]")), said(image()), None),
    ("base64", "messages.0.content.0", said(pdf("")), said(pdf()), None),
    ("request_bytes", "request", said(*[text("x" * TEN_MB)] * 4), FINE, None),
    ("max_tokens", "max_tokens", {**FINE, "max_tokens": 128_001}, {**FINE, "max_tokens": 0}, SMALL),
    ("shape", "max_tokens", {**FINE, "max_tokens": "1"}, {**FINE, "max_tokens": 1}, None),
]

CASES = [*SHAPES, *CONVERSATION, *TEXTS, *TOOLS, *PAIRS, *THINKING, *MARKS, *LIMITS]


@for_each(
    ("rule", "place", "broken", "repaired", "model"),
    CASES,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)],
)
def test_a_request_that_breaks_one_rule_gets_that_violation_and_its_twin_none(
    rule: str,
    place: str,
    broken: dict[str, Any],
    repaired: dict[str, Any],
    model: Model | None,
) -> None:
    found = validate_request(broken, model)
    assert [(violation.rule, violation.place) for violation in found] == [(rule, place)]
    assert re.match(rf"{re.escape(place)}[a-z0-9_.]*: ", found[0].message)
    assert "%s" not in found[0].message
    assert validate_request(repaired, model) == ()


URL = {"type": "url", "url": "https://x.org/a.pdf"}
STRING, LIST, OBJECT = (
    f"Input should be a valid {kind}" for kind in ("string", "list", "dictionary")
)
FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("text.text", text(None), STRING),
    ("text.citations", text(citations=[{}]), "citations"),
    ("", text(""), "text content blocks must be non-empty"),
    ("tool_result.tool_use_id", result(None), STRING),
    ("search_result.source", search_result(source=None), STRING),
    ("search_result.title", search_result(title=None), STRING),
    ("search_result.content", search_result(content=[]), ""),
    ("search_result.citations", search_result(citations=True), OBJECT),
    ("search_result.citations", search_result(citations={"enabled": 1}), OBJECT),
    ("content", search_result(content="x"), LIST),
    ("content.0", search_result(content=[image()]), "Input tag 'image'"),
    ("content.1", search_result(content=[text(), text("")]), ""),
    ("container_upload.file_id", {"type": "container_upload"}, STRING),
    ("document.title", document(**URL) | {"title": ""}, STRING),
    ("document.context", document(**URL) | {"context": 5}, STRING),
    ("document.citations", document(**URL) | {"citations": []}, OBJECT),
    ("document.source", document(type="ftp"), "base64, text, content, url, file"),
    ("document.source.url.url", document(type="url", url="a.pdf"), ""),
    ("document.source.file.file_id", document(type="file"), STRING),
    ("source", document(type="text", data=""), ""),
    ("source.content", document(type="text"), LIST),
    ("source", document(type="content", content=" "), ""),
    ("source.content", document(type="content", content=5), LIST),
    ("source.content.0", document(type="content", content=[pdf()]), "Input tag 'document'"),
    ("source.base64.media_type", image(media_type="image/svg"), "image/jpeg, image/png, "),
    ("source.base64.media_type", document(**PNG), "application/pdf"),
    ("source.base64.data", image(data="[redacted]"), ""),
    ("image.source", {"type": "image"}, "base64, url, file"),
    ("image.source.url.url", image(type="url", url="a.png"), ""),
]


@for_each(("field", "block", "words"), FIELDS)
def test_a_violation_names_the_field_and_what_would_be_right(
    field: str, block: dict[str, Any], words: str
) -> None:
    """As the provider does: so that it can be found, and searched for."""
    first, *_ = validate_request(said(block))
    place, said_of_it = first.message.split(": ", 1)
    assert place == f"messages.0.content.0.{field}".rstrip(".")
    assert words in said_of_it


@for_each(
    ("field", "block", "words"),
    [
        ("tool_use.id", use("a b"), ""),
        ("tool_use.name", use(name=""), ""),
        ("tool_use.input", use(input=[]), ""),
        ("server_tool_use.id", {"type": "server_tool_use", "input": {}}, ""),
        ("server_tool_use.input", {"type": "server_tool_use", "id": "srvtoolu_1"}, ""),
        ("thinking.thinking", think(thinking=None), STRING),
        ("thinking", think(""), ""),
        ("redacted_thinking", {"type": "redacted_thinking"}, ""),
        ("compaction.content", {"type": "compaction", "content": 7}, STRING),
        ("thinking.cache_control", think(cache_control=MARK_5M), ""),
    ],
)
def test_so_it_does_in_what_the_assistant_said(
    field: str, block: dict[str, Any], words: str
) -> None:
    first, *_ = validate_request(answered(block, text()))
    place, said_of_it = first.message.split(": ", 1)
    assert place == f"messages.1.content.0.{field}"
    assert words in said_of_it


def test_a_mark_on_an_empty_text_breaks_two_rules() -> None:
    found = validate_request(said(text("", cache_control=MARK_5M)))
    assert [violation.rule for violation in found] == ["mark_on_empty_text", "text_empty"]


@for_each(
    ("kind", "params"),
    [
        ("document", types.DocumentBlockParam),
        ("image", types.ImageBlockParam),
        ("text", types.TextBlockParam),
        ("tool_result", types.ToolResultBlockParam),
        ("tool_use", types.ToolUseBlockParam),
    ],
)
def test_the_fields_of_a_block_are_those_of_the_sdk(kind: str, params: type) -> None:
    assert KNOWN_FIELDS[kind] == set(params.__annotations__)


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} | {"mark_on_empty_text"} == {
        rule.name.lower() for rule in Rule
    }


def test_a_violation_speaks_the_words_of_the_provider() -> None:
    (violation,) = validate_request(called(result("t1")))
    assert violation.message == (
        "messages.1.content.1: `tool_use` ids were found without `tool_result` blocks immediately "
        "after: t2. Each `tool_use` block must have a corresponding `tool_result` block in the "
        "next message."
    )


def test_what_is_no_request_at_all_is_a_violation_too() -> None:
    nothing: Any = None
    assert [violation.rule for violation in validate_request(nothing)] == ["shape"]


# Whatever the input is.

Message = dict[str, Any]

WORDS = st.sampled_from(
    ["", " ", "hi", "t1", "t2", "read", "a b", "user", "assistant", "system", "ephemeral", "5m", "1h",
     "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document",
     "search_result", "compaction", "server_tool_use", "base64", "url", "content", "image/png",
     "object", "custom", "enabled"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["type", "text", "id", "name", "input", "tool_use_id", "content", "source", "data", "media_type",
     "role", "cache_control", "ttl", "signature", "thinking", "citations", "url", "input_schema"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | WORDS
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=5)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=25,
)
ANY_FIELDS = st.sampled_from(
    ["messages", "tools", "system", "thinking", "max_tokens", "cache_control", "model"]
)

IDS = st.sampled_from(["t1", "t2", "t3", "", "a b"])
ANY_MARK = st.sampled_from([None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, {}])
BLOCKS = st.one_of(
    st.builds(
        lambda words, mark: {"type": "text", "text": words, "cache_control": mark},
        st.sampled_from(["hi", "so ", " ", ""]),
        ANY_MARK,
    ),
    st.builds(lambda i: {"type": "tool_use", "id": i, "name": "read", "input": {}}, IDS),
    st.builds(lambda i: {"type": "tool_result", "tool_use_id": i, "content": "x"}, IDS),
    st.just({"type": "thinking", "thinking": "", "signature": "s"}),
    st.just({"type": "web_search_tool_result"}),
    st.just({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
)
MESSAGES = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "user", "assistant", "assistant", "system"]),
    st.lists(BLOCKS, max_size=3),
)
REQUESTS = st.lists(MESSAGES, max_size=8)


@settings(deadline=None)
@given(ANYTHING)
def test_it_never_raises_whatever_the_request_is(anything: Any) -> None:
    validate_request(anything)


@settings(deadline=None)
@given(st.dictionaries(ANY_FIELDS, ANYTHING))
def test_it_never_raises_whatever_the_fields_hold(request: dict[str, Any]) -> None:
    validate_request(request)


@settings(deadline=None)
@given(st.lists(st.dictionaries(KEYS, ANYTHING), max_size=4))
def test_it_never_raises_whatever_stands_in_a_conversation(blocks: list[Any]) -> None:
    messages = [{"role": role, "content": blocks} for role in ("user", "assistant", "user")]
    validate_request({"messages": messages, "tools": blocks, "system": blocks})


def test_no_nesting_is_too_deep() -> None:
    part: dict[str, Any] = {"type": "text", "text": "deep"}
    for _ in range(5_000):
        part = {"type": "tool_result", "tool_use_id": "t1", "content": [part], "input": part}
    validate_request({"messages": [{"role": "user", "content": [part]}]})


@settings(deadline=None)
@given(REQUESTS)
def test_joined_messages_fare_as_one(messages: list[Message]) -> None:
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            content = [*joined[-1]["content"], *message["content"]]
            joined[-1] = {**message, "content": content}
        else:
            joined.append(message)
    pairs = {
        rule
        for rule in ("tool_use_unanswered", "tool_result_unexpected", "tool_result_late")
        if any(violation.rule == rule for violation in validate_request({"messages": joined}))
    }
    found = {violation.rule for violation in validate_request({"messages": messages})}
    assert pairs == found & {
        "tool_use_unanswered",
        "tool_result_unexpected",
        "tool_result_late",
    }
