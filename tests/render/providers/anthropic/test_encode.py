"""Blocks as Anthropic messages: whatever the log holds, the request is valid and says what happened."""

from typing import Any

import attrs

from blocks import (
    Block,
    DocumentPart,
    EventId,
    ImagePart,
    Part,
    ProviderPart,
    RequestRendered,
    TextPart,
    text_of,
)
from render import Rendered, commit
from tests import _builders as make
from tests._builders import call, context, prompt, result, said, steer, thought
from tests._table import for_each

PNG = "iVBORw0KGgo="


def shown(*items: Block | RequestRendered, **changes: Any) -> Rendered:
    rendered = make.shown(make.view_of(*items), context(**changes))
    assert rendered.violations == ()
    return rendered


def lines(rendered: Rendered) -> list[str]:
    """One short line a content block."""
    return [
        f"{message['role']}: {_line(content)}"
        for message in rendered.messages
        for content in message["content"]
    ]


def _line(content: dict[str, Any]) -> str:
    match content["type"]:
        case "text":
            return str(content["text"])
        case "tool_use":
            return f"call {content['id']}"
        case "tool_result":
            return f"result {content['tool_use_id']} {content['content']}"
        case kind:
            return str(kind)


def sent() -> RequestRendered:
    return RequestRendered(id=EventId("sent"), at=0.0, content_hash="", tokens=0)


# Rounds.


def test_results_come_first_and_in_the_order_of_the_calls() -> None:
    rendered = shown(
        prompt("go"), call("a", response="r"), call("b", response="r"), steer("and?"),
        result("b", "B"), result("a", "A"),
    )  # fmt: skip
    assert lines(rendered) == [
        "user: go", "assistant: call a", "assistant: call b", "user: result a A",
        "user: result b B", "user: and?",
    ]  # fmt: skip


def test_a_round_that_a_request_has_shown_whole_is_not_encoded_again() -> None:
    view = make.view_of(prompt("go"), call("a", response="r"), result("a"))
    encoder = context().encoder
    pieces = [encoder.shown(group) for group in view.groups]
    after = commit(view, sent())
    assert all(new is not old for new, old in zip(after.groups[1:], view.groups[1:], strict=True))
    assert all(encoder.shown(g) is p for g, p in zip(after.groups, pieces, strict=True))


def test_without_response_ids_what_follows_directly_is_one_response() -> None:
    rendered = shown(prompt("go"), said("hm"), call("a"), call("b"), result("a"), result("b"))
    assert make.roles(rendered.messages) == ["user", "assistant", "user"]


def test_another_response_is_another_round_even_without_results_between() -> None:
    rendered = shown(prompt("go"), said("one", response="r1"), said("two", response="r2"))
    assert lines(rendered) == [
        "user: go", "assistant: one", "user: [continue]", "assistant: two", "user: [continue]",
    ]  # fmt: skip


def test_blocks_of_one_response_stay_together_around_an_early_result() -> None:
    rendered = shown(
        prompt("go"), call("a", response="r"), result("a", "A"), call("b", response="r"),
        result("b", "B"),
    )  # fmt: skip
    assert lines(rendered)[1:] == [
        "assistant: call a", "assistant: call b", "user: result a A", "user: result b B",
    ]  # fmt: skip


# Repairs.


def test_a_call_without_a_result_is_answered_as_interrupted() -> None:
    rendered = shown(prompt("go"), call("a"))
    assert lines(rendered)[-1] == "user: result a interrupted, no result was recorded"
    assert rendered.messages[-1]["content"][0]["is_error"] is True
    assert rendered.notices == ("a call without a result is answered as interrupted: tc:t1.a.call",)


def test_a_result_that_comes_after_it_was_reported_as_interrupted_is_told_as_text() -> None:
    """Changing the answer that was sent would rewrite the prefix."""
    rendered = shown(prompt("go"), call("a"), sent(), result("a", "late"))
    before = shown(prompt("go"), call("a"))
    assert make.flat(rendered)[:3] == make.flat(before)
    assert lines(rendered)[-1].endswith("late")


def test_a_result_before_the_request_is_in_time() -> None:
    assert (
        lines(shown(prompt("go"), call("a"), steer("?"), result("a", "A")))[2] == "user: result a A"
    )


def test_a_second_result_does_not_replace_the_first() -> None:
    rendered = shown(prompt("go"), call("a"), result("a", "first"), result("a", "second"))
    assert lines(rendered)[2] == "user: result a first"
    assert lines(rendered)[3].endswith("second")


def test_a_result_without_a_call_is_not_shown_but_noticed() -> None:
    rendered = shown(prompt("go"), result("z", "orphan"))
    assert lines(rendered) == ["user: go"]
    assert rendered.notices == ("a result without a call is not shown: tc:t1.z.result",)


@for_each("blank", ["", " ", "\n\t", "\u00a0\u2003"])
def test_blank_text_is_not_shown(blank: str) -> None:
    rendered = shown(
        prompt(blank), make.attachment("f", blank), said(blank, response="r"),
        call("a", response="r"), result("a", blank), steer(blank),
    )  # fmt: skip
    assert lines(rendered) == [
        "user: [the beginning of this conversation is missing]", "assistant: call a", "user: result a (no output)",
    ]  # fmt: skip


def test_a_log_of_nothing_is_a_valid_request() -> None:
    for items in ((), (make.header(),), (prompt(" "),), (result("a"),), (thought(),)):
        assert lines(shown(*items)) == ["user: [the beginning of this conversation is missing]"]


def test_an_answer_that_nobody_replied_to_is_followed_by_a_line() -> None:
    """Most models refuse a request that ends in their own words."""
    assert lines(shown(prompt("go"), said("done")))[-1] == "user: [continue]"


def test_once_sent_the_line_stays_when_the_user_speaks_at_last() -> None:
    rendered = shown(prompt("go"), said("done"), sent(), prompt("more", "t2"))
    assert lines(rendered)[-2:] == ["user: [continue]", "user: more"]


def test_an_answer_that_was_replied_to_needs_no_line() -> None:
    assert lines(shown(prompt("go"), said("done"), prompt("more", "t2")))[-1] == "user: more"
    assert "[continue]" not in str(lines(shown(prompt("go"), said("done"), prompt("more", "t2"))))


# Ids and names.


def test_foreign_ids_are_mapped_and_repeated_ones_told_apart() -> None:
    rendered = shown(
        prompt("go"),
        *(b for i in ("x y", "x_y", "é", "", "x y", "a" * 99) for b in (call(i), result(i, i))),
    )
    pairs = [line.split()[2] for line in lines(rendered) if line.startswith("assistant: call")]
    assert len(pairs) == len(set(pairs)) == 6
    answers = [line.split()[2] for line in lines(rendered) if line.startswith("user: result")]
    assert answers == pairs


def test_an_id_that_looks_like_a_mapped_one_collides_with_nothing() -> None:
    blocks = [b for i in ("x", "x_4", "x", "x_6", "x") for b in (call(i), result(i))]
    shown(prompt("go"), *blocks)


def test_a_repeated_id_gets_each_time_its_own_result() -> None:
    blocks = [b for n in range(3) for b in (call("same", response=f"r{n}"), result("same", str(n)))]
    found = [
        line.rsplit(" ", 1)[1] for line in lines(shown(prompt("go"), *blocks)) if ": result" in line
    ]
    assert found == ["0", "1", "2"]


def test_a_repeated_id_within_one_response_too() -> None:
    calls = [call("same", response="r") for _ in range(2)]
    rendered = shown(prompt("go"), *calls, result("same", "one"), result("same", "two"))
    assert [line.rsplit(" ", 1)[1] for line in lines(rendered)[-2:]] == ["one", "two"]


@for_each("name", ["", "a.b/c d", "x" * 100, "é", "\0"])
def test_foreign_tool_names_are_mapped(name: str) -> None:
    shown(prompt("go"), call("a", name=name), result("a"))


# Thinking.


def test_signed_thinking_is_sent_verbatim() -> None:
    odd = {"type": "thinking", "thinking": "", "signature": "c2ln", "extra": [1]}
    rendered = shown(prompt("go"), thought(provider=odd), said("hi"))
    assert rendered.messages[1]["content"][0] == odd


@for_each(
    "provider",
    [
        {"type": "thinking", "thinking": "x"},
        {"type": "thinking", "thinking": "x", "signature": ""},
        {"type": "thinking", "thinking": "x", "signature": 5},
        {"type": "thinking", "signature": "c2ln"},
        {"type": "thinking", "thinking": None, "signature": "c2ln"},
        {"type": "redacted_thinking"},
        {"type": "reasoning", "summary": "x"},
        {},
        {"type": ["thinking"]},
    ],
)
def test_thinking_that_the_provider_would_refuse_is_not_shown(provider: dict[str, Any]) -> None:
    rendered = shown(prompt("go"), make.thought(provider={**provider, "x": 1}), said("hi"))
    assert lines(rendered) == ["user: go", "assistant: hi", "user: [continue]"]
    assert len(rendered.notices) == 1


def test_redacted_thinking_is_sent() -> None:
    redacted = {"type": "redacted_thinking", "data": "abc"}
    assert "redacted_thinking" in str(
        shown(prompt("go"), thought(provider=redacted), said("hi")).messages
    )


def test_a_message_never_ends_in_thinking() -> None:
    rendered = shown(prompt("go"), said("hm", response="r"), thought(response="r"))
    assert lines(rendered) == ["user: go", "assistant: hm", "user: [continue]"]


def test_a_cache_mark_that_came_with_thinking_is_not_sent_along() -> None:
    provider = {**make.SIGNED, "cache_control": {"type": "ephemeral"}}
    shown(prompt("go"), thought(provider=provider), said("hi"))


def test_thinking_can_be_left_out_altogether() -> None:
    rendered = shown(prompt("go"), thought(), said("hi"), keep_thinking=False)
    assert "thinking" not in str(rendered.messages)


# Parts.


@for_each(
    "part",
    [
        ImagePart(data="not base64!"),
        ImagePart(data=""),
        ImagePart(data=PNG, media_type="image/bmp"),
        ImagePart(data=PNG, media_type=""),
        DocumentPart(data="?"),
        DocumentPart(data=PNG, media_type="text/html"),
        ProviderPart(value={}),
        ProviderPart(value={"type": "tool_reference", "tool_name": 5}),
        ProviderPart(value={"type": "search_result", "content": []}),
        ProviderPart(value={"type": "search_result", "content": [{"type": "text", "text": ""}]}),
        ProviderPart(value={"type": "search_result", "cache_control": {"type": "ephemeral"}}),
        ProviderPart(value={"type": "search_result", "content": "x"}),
        TextPart(text=" "),
    ],
    ids=repr,
)
def test_a_part_that_the_provider_would_refuse_is_named_or_left_out(part: Part) -> None:
    shown(prompt("see", "t1", part), call("a"), result("a", parts=(part,)))
    shown(prompt("see", "t1", part), call("a"), result("a", parts=(part, TextPart(text="x"))))


FOUND = {
    "type": "search_result",
    "source": "https://example.org/a",
    "title": "A",
    "content": [{"type": "text", "text": "found it"}],
}
PROVIDERS: dict[str, dict[str, Any]] = {
    "search result": FOUND,
    "to be cited": {**FOUND, "citations": {"enabled": True}},
    "of several texts": {**FOUND, "content": [*FOUND["content"], *FOUND["content"]]},
    "text document": {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "words"},
        "title": "T",
        "context": "C",
        "citations": {"enabled": True},
    },
    "document of parts": {
        "type": "document",
        "source": {"type": "content", "content": [{"type": "text", "text": "words"}]},
    },
    "file": {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
    "image file": {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
}


@for_each("value", PROVIDERS.values(), ids=PROVIDERS)
def test_a_part_that_the_api_defines_is_sent_as_it_is_from_users_and_tools(
    value: dict[str, Any],
) -> None:
    part = ProviderPart(value=value)
    rendered = shown(prompt("see", "t1", part), call("a"), result("a", parts=(part,)))
    assert rendered.messages[0]["content"][1] == value
    assert make.unmarked(rendered.messages[-1]["content"][0])["content"] == [value]
    assert rendered.tokens > shown(prompt("see"), call("a"), result("a", parts=())).tokens


def test_cache_marks_blank_texts_and_foreign_citations_inside_a_part_are_left_out() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    inner = [{"type": "text", "text": "found it", "citations": [{}], **mark}, make.text(" ")]
    rendered = shown(prompt("see", "t1", ProviderPart(value={**FOUND, "content": inner, **mark})))
    assert make.unmarked(rendered.messages[0]["content"][1]) == FOUND


def test_what_only_one_place_takes_is_named_in_the_other() -> None:
    upload = ProviderPart(value={"type": "container_upload", "file_id": "file_1"})
    rendered = shown(prompt("see", "t1", upload), call("a"), result("a", parts=(upload,)))
    assert rendered.messages[0]["content"][1] == upload.value
    assert lines(rendered)[-1].endswith("[{'type': 'text', 'text': '[tool container_upload]'}]")


def test_a_reference_loads_a_tool_of_the_request_and_any_other_is_only_named() -> None:
    """A client's search of its tools answers with references; the provider refuses those to tools that it does not get."""
    deploy: dict[str, Any] = {"type": "tool_reference", "tool_name": "deploy"}
    marked = {**deploy, "cache_control": {"type": "ephemeral"}}
    odd: tuple[Any, ...] = ("gone", 5, [], "")
    values = [deploy, marked, *({**deploy, "tool_name": name} for name in odd)]
    parts = tuple(ProviderPart(value=value) for value in values)
    search: dict[str, Any] = {"name": "search", "input_schema": {"type": "object"}}
    late = {**search, "name": "deploy", "defer_loading": True}
    blocks = (prompt("Deploy."), call("a"), result("a", parts=parts))
    for tools, expected in (
        ((search, late), [deploy, deploy]),
        ((search,), ["[tool deploy]"] * 2),
        ((), ["[tool deploy]"] * 2),
    ):
        rendered = shown(*blocks, tools=tools)
        content = make.unmarked(rendered.messages[-1]["content"][0])["content"]
        named = [item.get("text", item) for item in content]
        assert named[:3] == [*expected, "[tool gone]"]
        assert all(isinstance(item, str) for item in named[2:])


@for_each("kind", [ImagePart, DocumentPart])
@for_each("url", ["file:///a", "data:image/png;base64,AAAA", "a.png", "https://"])
def test_an_address_where_no_provider_can_fetch_is_named(kind: Any, url: str) -> None:
    assert "its url could not be read" in str(shown(prompt("see", "t1", kind(url=url))).messages)


def test_the_text_of_a_search_result_can_be_read_searched_and_clipped() -> None:
    block = result("a", parts=(ProviderPart(value=FOUND), TextPart(text="more")))
    assert text_of(block) == "A\nhttps://example.org/a\nfound it\nmore"


def test_many_search_results_are_no_pictures() -> None:
    timeline = make.open_timeline()
    timeline.user("see", *[ProviderPart(value=FOUND)] * 150)
    assert str(timeline.render().messages).count("found it") == 150


def test_a_picture_of_more_than_the_provider_takes_is_named() -> None:
    shown(prompt("see", "t1", ImagePart(data="A" * (10 * 1024 * 1024 + 4))))


def test_the_text_of_a_result_is_plain_and_parts_stay_parts() -> None:
    one = shown(prompt("go"), call("a"), result("a", "text"))
    assert one.messages[-1]["content"][0]["content"] == "text"
    two = shown(
        prompt("go"), call("a"), result("a", parts=(TextPart(text="x"), ImagePart(data=PNG)))
    )
    assert [part["type"] for part in two.messages[-1]["content"][0]["content"]] == ["text", "image"]


def test_an_error_is_marked_as_one() -> None:
    rendered = shown(prompt("go"), call("a"), result("a", "bad", is_error=True))
    assert rendered.messages[-1]["content"][0]["is_error"] is True


# Blocks of unknown kinds.


def test_an_unknown_kind_is_told_by_its_text_in_the_voice_of_its_author() -> None:
    rendered = shown(
        prompt("go"),
        make.opaque("their.kind", author="assistant", text="theirs"),
        make.opaque("their.kind", author="user", text="mine"),
        make.opaque("their.kind", author="", text="nobody's"),
        make.opaque("their.kind", value={"no": "text"}),
        make.opaque("their.kind", text=["no text"]),
    )
    assert lines(rendered) == ["user: go", "assistant: theirs", "user: mine", "user: nobody's"]


# Prefill and what callers may do.


def test_callers_may_add_to_what_they_are_given() -> None:
    rendered = shown(prompt("go"))
    request = rendered.anthropic(max_tokens=10)
    request["messages"].append({"role": "assistant", "content": "prefill"})
    request["messages"][0]["content"].append({"type": "text", "text": "more"})
    assert lines(rendered) == ["user: go"]
    assert rendered.anthropic(max_tokens=10)["model"] == "loose"


def test_equal_views_give_equal_hashes_and_others_others() -> None:
    blocks: list[Block] = [prompt("go"), call("a", command="ls"), result("a", "b")]
    one, two = shown(*blocks), shown(*blocks)
    assert one.content_hash == two.content_hash
    assert one.content_hash != shown(*blocks[:2]).content_hash
    system = ({"type": "text", "text": "x"},)
    assert one.content_hash != shown(*blocks, system=system).content_hash
    assert one.prefix_hash != shown(*blocks, system=system).prefix_hash


def test_keys_stand_in_the_order_in_which_they_came() -> None:
    rendered = shown(prompt("go"), call("a", zebra=1, apple=2))
    assert list(rendered.messages[1]["content"][0]["input"]) == ["zebra", "apple"]


def test_the_model_that_accepts_prefill_gets_the_same_request() -> None:
    lenient = attrs.evolve(make.LOOSE, prefill=True)
    assert lines(shown(prompt("go"), said("hi"), model=lenient))[-1] == "user: [continue]"
