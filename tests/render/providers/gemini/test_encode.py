"""Blocks as contents: signatures stay where they came, and what has none says so where one is wanted."""

from functools import partial
from typing import Any

import attrs

from blocks import (
    Block,
    DocumentPart,
    ImagePart,
    OpaqueBlock,
    RequestRendered,
    TextPart,
)
from render import PROVIDERS, provider_of
from render.providers.gemini._provider import function_name
from tests import _builders as make
from tests._builders import call, prompt, result, said, steer, thought
from tests._table import for_each
from tests.render.providers.gemini._play import MODEL, SEALED

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
