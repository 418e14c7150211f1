"""Gemini behind the seam: the request as the client takes it."""

from functools import partial
from typing import Any

import attrs
import pytest
from hypothesis import given

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    CodecError,
    DocumentPart,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    Part,
    ProviderPart,
    RequestRendered,
    TextPart,
    ToolCall,
    TurnId,
    tag_of,
)
from blocks.formats._message import Answer
from render import PROVIDERS, provider_of, show
from render.providers.gemini._provider import function_name, part_of, part_tokens, tool_tokens
from render.providers.gemini._rules import refusal_of
from tests import _builders as make
from tests._builders import Ids, call, deep, prompt, result, said, steer, thought
from tests._table import for_each
from tests.render.providers.gemini._play import API, MODEL, OLD, SEALED, parts_of
from tests.render.providers.openai._play import CHAT, PLAIN
from tests.strategies import Step, steps
from timeline import model_named
from timeline.tokens import ModelCounter

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
    request = PROVIDER.extended({}, ["a", "b"])
    extended = PROVIDER.extended(request, ["Summarise."])
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


# Blocks as contents: signatures stay where they came, and what has none says so where one is wanted.


CONTEXT = make.context(model=MODEL, provider=provider_of(MODEL))
shown = partial(make.valid, CONTEXT)
PNG = "iVBORw0KGgo="
UNSIGNED = "skip_thought_signature_validator"
CALL = {"functionCall": {"id": "a", "name": "bash", "args": {"command": "ls"}}}
SEAL = {"thoughtSignature": SEALED}


def contents(*blocks: Block | RequestRendered, **changes: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(*blocks, **changes).gemini()["contents"]
    return found


def parts(*blocks: Block, **changes: Any) -> list[dict[str, Any]]:
    return [part for content in contents(*blocks, **changes) for part in content["parts"]]


def recorded(*said_parts: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    """What is sent back of a response with these parts."""
    timeline = make.open_timeline(model=MODEL)
    timeline.user("go")
    candidate = {"content": {"role": "model", "parts": list(said_parts)}}
    timeline.record({"responseId": "r1", "candidates": [candidate]})
    rendered = make.shown(timeline.view, attrs.evolve(CONTEXT, **changes))
    found: list[dict[str, Any]] = rendered.gemini()["contents"]
    return found[1]["parts"] if found[1]["role"] == "model" else []


def test_a_round_is_a_content_of_the_models_and_one_of_the_users() -> None:
    found = contents(
        prompt("go"), said("I look.", response="r"), call("a", response="r", command="ls"),
        call("b", response="r"), steer("and?"), result("b", "B", is_error=True), result("a", "A"),
    )  # fmt: skip
    assert [content["role"] for content in found] == ["user", "model", "user"]
    named = {"id": "b", "name": "bash"}
    assert found[1]["parts"] == [
        {"text": "I look."},
        {**CALL, "thoughtSignature": UNSIGNED},
        {"functionCall": {**named, "args": {}}},
    ]
    assert found[2]["parts"] == [
        {"functionResponse": {"id": "a", "name": "bash", "response": {"output": "A"}}},
        {"functionResponse": {**named, "response": {"error": "B"}}},
        {"text": "and?"},
    ]


def test_what_the_model_said_comes_back_as_it_came() -> None:
    said_parts: list[dict[str, Any]] = [
        {"text": "So. ", **SEAL},
        {"executableCode": {"language": "PYTHON", "code": "1"}, **SEAL},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "a thought", "thought": True, **SEAL},
        {**CALL, **SEAL},
        {"functionCall": {"id": "b", "name": "bash", "args": {}}},
        {"text": "", **SEAL},
    ]
    assert recorded(*said_parts) == said_parts


def test_a_summary_of_thoughts_is_not_sent_and_nobody_is_told() -> None:
    timeline = make.open_timeline(model=MODEL)
    timeline.user("go")
    said_parts = [{"text": "I think.", "thought": True}, {"text": "so"}]
    timeline.record({"candidates": [{"content": {"parts": said_parts}}]})
    rendered = timeline.render()
    assert "I think." not in str(rendered.gemini())
    assert rendered.notices == ()


def test_without_thinking_only_what_has_to_be_there_stands_in_for_signatures() -> None:
    said_parts: list[dict[str, Any]] = [
        {"text": "", **SEAL},
        {"text": "so", **SEAL},
        {**CALL, **SEAL},
    ]
    wanted = [{"text": "so"}, {**CALL, "thoughtSignature": UNSIGNED}]
    assert recorded(*said_parts, keep_thinking=False) == wanted
    request = {"contents": [{"role": "user"}, {"role": "model", "parts": said_parts}]}
    stripped = PROVIDERS["gemini"].without_thinking(request)["contents"]
    assert stripped == [{"role": "user"}, {"role": "model", "parts": wanted}]


def test_a_call_that_was_hidden_loses_its_signature() -> None:
    """It belongs to arguments that are not sent any more."""
    timeline = make.open_timeline(model=MODEL)
    timeline.user("go")
    timeline.record({"candidates": [{"content": {"parts": [{**CALL, **SEAL}]}}]})
    timeline.tool_result("a", "done")
    [path] = [entry.path for entry in timeline.view.entries if entry.block.author == "assistant"]
    timeline.hide(path, replacement="[hidden]")
    timeline.user("on")
    sent = str(timeline.render().gemini())
    assert SEALED not in sent
    assert UNSIGNED in sent


def test_thinking_of_another_provider_is_not_sent_and_a_notice_says_so() -> None:
    rendered = shown(prompt("go"), thought(response="r"), said("so", response="r"))
    assert [c["role"] for c in rendered.gemini()["contents"]] == ["user", "model", "user"]
    assert rendered.notices == (
        "thinking that cannot be sent back is not shown: ar:t1.assistant.thinking",
    )


def test_pictures_of_a_result_follow_all_responses() -> None:
    """Not every model reads anything but text in a response."""
    seen = (TextPart(text="see"), ImagePart(data=PNG), DocumentPart(data=PNG, name="a.pdf"))
    found = contents(
        prompt("go"), call("a", response="r"), call("b", response="r"), result("a", parts=seen),
        result("b", "done"), steer("and?"),
    )[2]["parts"]  # fmt: skip
    assert found[0]["functionResponse"]["response"] == {
        "output": "see\n[image] [shown below]\n[document a.pdf] [shown below]"
    }
    kinds = [next(iter(part)) for part in found]
    assert kinds == [*["functionResponse"] * 2, "text", *["inlineData"] * 2, "text"]
    assert found[2] == {"text": "[from the result of call a]"}


def test_what_another_provider_ran_itself_is_left_out_with_a_notice_and_its_summary_is_told() -> (
    None
):
    def other(kind: str, **value: Any) -> OpaqueBlock:
        fields = {"id": kind, "turn": "t1", "author": "assistant", "response": "r"}
        return OpaqueBlock(f"provider.{kind}", {**fields, "value": {"type": kind, **value}})

    rendered = shown(prompt("go"), other("server_tool_use", id="srvtoolu_1"), said("so"))
    assert "srvtoolu_1" not in str(rendered.gemini())
    assert any("not shown" in notice for notice in rendered.notices)
    told = parts(prompt("go"), other("compaction", content="So far: X."), steer("and?"))
    assert {"text": "So far: X."} in told


@for_each(("name", "sent"), [("1st", "_1st"), ("-x", "_-x"), ("a b", "a_b"), ("", "tool")])
def test_names_begin_with_a_letter_or_an_underscore(name: str, sent: str) -> None:
    assert function_name(name) == sent
    assert len(function_name("9" * 80)) == 64


# A response of Gemini as blocks: of the REST interface, or of the SDK, which names its fields otherwise.


CALL_OF_READ = {"functionCall": {"id": "c1", "name": "bash", "args": {"command": "ls"}}}
USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 40,
    "toolUsePromptTokenCount": 5,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 30,
    "totalTokenCount": 142,
}


def answer(*parts: Any, reason: str = "STOP", **fields: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}
    known = {"responseId": "r1", "modelVersion": "gemini-9-flash"}
    return {**known, "candidates": [candidate], **fields}


def read(found: object) -> Answer:
    ids = Ids()
    return PROVIDER.read(found, lambda: BlockId(ids()), TurnId("t1"))


def test_parts_become_blocks_that_keep_their_signatures() -> None:
    found = read(
        answer(
            {"text": "I think.", "thought": True},
            {"text": "So.", **SEAL},
            {**CALL_OF_READ, **SEAL},
            {"functionCall": {"name": "bash"}},
            {"executableCode": {"code": "1"}},
            {"text": "", **SEAL},
            usageMetadata=USAGE,
        )
    )
    thinking, text, call, bare, code, seal = found.blocks
    assert isinstance(thinking, AssistantThinking)
    assert thinking.provider == {"text": "I think.", "thought": True}
    assert isinstance(text, AssistantCompletion)
    assert (text.text, text.provider) == ("So.", SEAL)
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.input, call.provider) == ("c1", {"command": "ls"}, SEAL)
    assert isinstance(bare, ToolCall)
    assert (bare.call_id, bare.input, bare.provider) == ("call_r1_3", {}, {})
    assert isinstance(code, OpaqueBlock)
    assert tag_of(code) == "provider.gemini.part"
    assert isinstance(seal, AssistantThinking)
    assert seal.provider == {"text": "", **SEAL}
    assert (found.id, {b.response for b in (text, call, bare)}) == ("r1", {"r1"})


def test_what_came_from_the_cache_is_not_counted_twice_and_thoughts_are_output() -> None:
    for found in (read(answer({"text": "a"}, usageMetadata=USAGE)).usage, PROVIDER.usage({"usage_metadata": {"prompt_token_count": 105, "cached_content_token_count": 40, "candidates_token_count": 37}})):  # fmt: skip
        assert found is not None
        assert (found.uncached, found.cache_read, found.cache_write) == (65, 40, 0)
        assert (found.input, found.output) == (105, 37)
    assert PROVIDER.usage(answer()) is None


def test_the_sdks_object_is_read_with_its_names_its_bytes_and_its_nothings() -> None:
    class Response:
        def model_dump(self) -> dict[str, Any]:
            parts = [
                {"text": "So.", "thought": None, "thought_signature": b"sealed", "function_call": None},
                {"function_call": {"id": None, "name": "bash", "args": {"a_b": None}}, "text": None},
                {"executable_code": {"code": "1", "language": None}, "text": None},
            ]  # fmt: skip
            content = {"role": "model", "parts": parts}
            return {
                "candidates": [{"content": content, "finish_reason": "STOP"}],
                "response_id": "r1",
                "prompt_feedback": None,
            }

    text, call, code = read(Response()).blocks
    assert isinstance(text, AssistantCompletion)
    assert text.provider == SEAL
    assert isinstance(call, ToolCall)
    assert call.input == {"a_b": None}
    assert isinstance(code, OpaqueBlock)
    assert code.fields["value"] == {"executableCode": {"code": "1"}}
    assert PROVIDER.stop(Response()) == "tool_use"


@for_each(
    ("found", "stop"),
    [
        (answer({"text": "a"}), "end_turn"),
        (answer(CALL_OF_READ), "tool_use"),
        (answer(CALL_OF_READ, reason="MAX_TOKENS"), "max_tokens"),
        (answer(reason="SAFETY"), "refusal"),
        (answer(reason="MALFORMED_FUNCTION_CALL"), "malformed_function_call"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "refusal"),
        ({"candidates": [{}], "usageMetadata": USAGE}, ""),
    ],
)
def test_why_it_stopped(found: Any, stop: str) -> None:
    assert PROVIDER.stop(found) == stop


def test_the_last_call_of_a_response_that_was_cut_off_is_discarded() -> None:
    blocks = read(answer({"text": "a"}, CALL_OF_READ, reason="MAX_TOKENS")).blocks
    assert [tag_of(block) for block in blocks] == ["assistant.completion"]


def test_a_response_without_a_word_is_one_if_it_says_what_it_cost_or_why() -> None:
    assert read({"usageMetadata": USAGE}).usage is not None
    blocked = read({"promptFeedback": {"blockReason": "SAFETY"}})
    assert (blocked.blocks, blocked.usage) == ((), None)


@for_each(
    ("found", "said"),
    [
        ({"output": []}, "not a response of OpenAI's Responses API"),
        ({"choices": []}, "not a response of OpenAI's Chat Completions API"),
        ({"content": []}, "not a response of Anthropic's"),
        ({"error": {"message": "boom"}}, "an error of the provider.*boom"),
        ({"candidates": "hm"}, "candidates must be a list, not 'hm'"),
        ({"candidates": []}, "empty"),
        ({"candidates": [{}, {}]}, "2 candidates"),
        (answer({"functionCall": {"args": {"a": 1}}}), r"parts\.0: the function call has no name"),
        (None, "not None"),
        ("hm", "not 'hm'"),
    ],
)
def test_what_is_no_response_is_refused_by_name(found: object, said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        read(found)


def test_what_cannot_be_stored_is_refused_and_says_where() -> None:
    with pytest.raises(CodecError, match="nested deeper than"):
        read(answer({"functionCall": {"name": "bash", "args": deep(300)}}))


# Parts as Gemini takes them: what it would refuse is told by name, never left out silently.


INLINE = {"inlineData": {"mimeType": "audio/mp3", "data": PNG}}


@for_each(
    ("part", "sent"),
    [
        (TextPart(text="a"), {"text": "a"}),
        (ImagePart(data=PNG), {"inlineData": {"mimeType": "image/png", "data": PNG}}),
        (ImagePart(url="https://a.b/c.JPG?d=1"), {"fileData": {"fileUri": "https://a.b/c.JPG?d=1", "mimeType": "image/jpeg"}}),
        (ImagePart(url="https://a.b/c"), {"fileData": {"fileUri": "https://a.b/c", "mimeType": "image/png"}}),
        (DocumentPart(data=PNG), {"inlineData": {"mimeType": "application/pdf", "data": PNG}}),
        (DocumentPart(url="https://a.b/c"), {"fileData": {"fileUri": "https://a.b/c", "mimeType": "application/pdf"}}),
        (DocumentPart(media_type="text/plain", data="hm", name="a.txt"), {"text": "[document a.txt]\nhm"}),
        (ProviderPart(value=INLINE), INLINE),
        (ProviderPart(value={"inline_data": {"mime_type": "audio/mp3", "data": PNG}}), INLINE),
        (ProviderPart(value={"file_data": {"file_uri": "gs://a/b"}}), {"fileData": {"fileUri": "gs://a/b"}}),
    ],
)  # fmt: skip
def test_a_part_is_sent(part: Part, sent: dict[str, Any]) -> None:
    assert part_of(part, refusal_of) == sent
    assert PROVIDERS["gemini"].refusal(part, "user") == ""
    content = {"role": "user", "parts": [sent]}
    assert PROVIDERS["gemini"].violations({"contents": [content]}, None) == ()


@for_each(
    ("part", "why", "told"),
    [
        (ImagePart(data=PNG, media_type="image/gif"), "'image/gif' is none of", "[image: image/gif is a type that"),
        (ImagePart(data="?"), "not base64", "[image: its data could not be read]"),
        (ImagePart(url="file:///a"), "no http", "[image: its url could not be read]"),
        (DocumentPart(data=PNG, media_type="text/rtf"), "neither", "[document: its data could not be read]"),
        (DocumentPart(data="?"), "not base64", "[document: its data could not be read]"),
        (DocumentPart(data=" ", media_type="text/plain"), "empty", "[document: its data could not be read]"),
        (ProviderPart(value={"type": "search_result", "title": "T"}), "cannot go there", "T"),
        (ProviderPart(value={"type": "tool_reference", "tool_name": "x"}), "cannot go there", "[tool x]"),
        (ProviderPart(value={"inlineData": 5}), "no object", "part"),
    ],
)  # fmt: skip
def test_a_part_that_would_be_refused_is_told_by_name(part: Part, why: str, told: str) -> None:
    assert why in PROVIDERS["gemini"].refusal(part, "user")
    assert told in part_of(part, refusal_of)["text"]


# Tokens of parts and tools: text by the counter, pictures by the model's rule, signatures by their length.


@attrs.frozen
class Letters:
    """A token a letter; a picture is a thousand, a document two, anything else three."""

    name: str = "letters"

    def count(self, text: str) -> int:
        return len(text)

    def part(self, part: ImagePart | DocumentPart | ProviderPart) -> int:
        return {"ImagePart": 1000, "DocumentPart": 2000}.get(type(part).__name__, 3000)


@for_each(
    ("part", "tokens"),
    [
        ({"text": "abc"}, 3),
        ({"text": "abc", "thoughtSignature": "x" * 40}, 13),
        ({"functionCall": {"name": "ab", "args": {"c": "d"}}}, 8 + 2 + 9),
        ({"functionResponse": {"name": "ab", "response": {"output": "abcd"}}}, 8 + len("output\nabcd")),
        ({"inlineData": {"mimeType": "image/png", "data": "x"}}, 1000),
        ({"fileData": {"mimeType": "image/png", "fileUri": "x"}}, 1000),
        ({"inlineData": {"mimeType": "application/pdf", "data": "x"}}, 2000),
        ({"inlineData": {"mimeType": "audio/mp3", "data": "x"}}, 3000),
        ({"executableCode": {"code": "1"}}, 3000),
        ({"text": None}, 0),
        ({"functionCall": "hm"}, 8 + 2),
    ],
)  # fmt: skip
def test_tokens_of_a_part(part: dict[str, Any], tokens: int) -> None:
    assert part_tokens(part, Letters()) == tokens


def test_tokens_of_a_tool() -> None:
    tool = {"name": "a", "description": "bc", "parametersJsonSchema": {"type": "object"}}
    assert tool_tokens(tool, Letters()) == 8 + len('a\nbc\n{"type":"object"}')
    assert tool_tokens({"googleSearch": {}}, Letters()) == 3000


@for_each(("name", "tokens"), [("gemini-3.8-flash", 1_120), ("gemini-2.5-pro", 1_032)])
def test_an_image_costs_what_its_model_takes_at_most(name: str, tokens: int) -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    assert part_tokens(part, ModelCounter(model_named(name))) == tokens


# A request as its cache sees it: part by part, signatures included; and what it costs.


def test_parts_come_in_the_order_of_the_cache() -> None:
    tools = [{"name": "look"}]
    contents: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"parts": [{"text": "c"}]},
    ]
    found = list(PROVIDER.contents([{"text": "s"}], tools, contents))
    assert [place for place, _ in found] == ["system", "tools", "user", "user", "user"]


def test_parts_are_equal_where_all_of_them_is() -> None:
    plain, sealed = {"text": "a"}, {"text": "a", "thoughtSignature": SEALED}
    segment = PROVIDER.segment("model", plain)
    assert (segment.kind, segment.ttl, segment.tokens(Letters())) == ("text", 0, 3 + 1)
    assert segment.key == PROVIDER.segment("model", dict(plain)).key
    assert segment.key != PROVIDER.segment("user", plain).key
    assert segment.key != PROVIDER.segment("model", sealed).key
    assert PROVIDER.segment("tools", {"name": "a"}).tokens(Letters()) == 8 + len("a\n\n{}")


@for_each(
    ("part", "text"),
    [
        ({"text": "a"}, "a"),
        ({"text": "a", "thought": True}, ""),
        ({"functionCall": {"name": "f", "args": {"b": "c"}}}, "f\nb\nc"),
        ({"functionResponse": {"name": "f", "response": {"output": "c"}}}, "c"),
        ({"inlineData": {"mimeType": "image/png"}}, "[image]"),
        ({"fileData": {"mimeType": "application/pdf"}}, "[document]"),
        ({"executableCode": {"code": "1 + 1"}}, "code\n1 + 1"),
        ({"text": 5}, ""),
        ({}, ""),
    ],
)
def test_what_a_model_reads_of_a_part(part: dict[str, Any], text: str) -> None:
    assert PROVIDER.text(part) == text


def test_a_read_costs_a_tenth_a_write_nothing_and_a_long_prompt_more() -> None:
    rates = PROVIDER.rates(MODEL, 1)
    assert (rates.read, rates.writes) == (MODEL.price_input / 10, {300: MODEL.price_input})
    pro = model_named("gemini-3.1-pro-preview")
    short, long = (PROVIDER.rates(pro, tokens).input for tokens in (200_000, 200_001))
    assert (short, long) == (2.0, 4.0)


# What Gemini alone wants of every request, over generated logs; see `tests/render/providers/test_encoding.py`.


@given(steps(), API.options)
def test_the_user_and_the_model_speak_in_turn(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    for request in API.played([*all_steps, ("render",)], options).requests:
        roles = [content["role"] for content in API.sent(request.rendered)["contents"]]
        assert roles == ["user" if n % 2 == 0 else "model" for n in range(len(roles))]


@pytest.mark.parametrize("model", [make.BOUND, PLAIN, CHAT], ids=lambda model: model.provider)
@given(steps())
def test_what_others_recorded_gemini_can_be_asked_with(model: Any, all_steps: list[Step]) -> None:
    """A model changes in the middle of a conversation: calls that it did not make say so."""
    options = {"model": model, "window": 100_000}
    view = API.played(all_steps, options, native=False).timeline.view
    rendered = show(view, make.context(model=MODEL, provider=provider_of(MODEL)))
    assert rendered.violations == ()
    sealed = {
        part["thoughtSignature"] for _, part in parts_of(rendered) if "thoughtSignature" in part
    }
    assert sealed <= {"skip_thought_signature_validator"}
