"""Wrong use of the agent is refused before anything happens; a tool's is told to the model."""

from types import SimpleNamespace
from typing import Any

import pytest

from blocks import ArgumentError, ImagePart, MisuseError
from tests._builders import open_timeline
from tests._practice import Practice
from tests._table import for_each
from timeline import AsyncReactAgent, ReactAgent, Timeline, tool
from timeline.fake_provider import Call, Reply
from timeline.react import AgentHooks, ToolReply

from .both import Agents

CLIENT = SimpleNamespace(messages=SimpleNamespace(create=lambda **_: {}))
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"tols": []}, "'tols'; did you mean 'tools'"),
    ({"max_token": 5}, "did you mean 'max_tokens'"),
    ({"tools": 5}, "tools must be a list"),
    ({"tools": "bash"}, "tools must be a list"),
    ({"tools": {"name": "bash"}}, "tools must be a list"),
    ({"tools": [5]}, "a tool must be a Tool"),
    ({"tools": [{"input_schema": {}}]}, "has no name"),
    ({"tools": [{"name": "a"}, {"name": "a"}]}, "two tools"),
    ({"system": 5}, "system must be a text"),
    ({"system": [{"type": "image"}]}, "not a text block"),
    ({"max_tokens": "5"}, "max_tokens must be a whole number"),
    ({"max_tokens": 0}, "max_tokens must be a whole number, 1 or more"),
    ({"limits": 5}, "limits must be Limits"),
    ({"hooks": [print]}, "hooks must be AgentHooks"),
    ({"stream": "no"}, "stream must be True or False"),
    ({"options": [1]}, "options must be a dict"),
    ({"clock": 5}, "clock must be a function"),
]


@for_each(("given", "said"), WRONG, ids=[str(given) for given, _ in WRONG])
def test_an_agent_is_not_made_with_what_it_cannot_use(given: dict[str, Any], said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        ReactAgent(open_timeline(), CLIENT, **given)


@for_each("kind", [ReactAgent, AsyncReactAgent])
def test_an_agent_needs_its_kind_of_timeline_and_a_client(kind: Any) -> None:
    with pytest.raises(MisuseError, match="timeline must be a"):
        kind("talk", CLIENT)
    with pytest.raises(MisuseError, match="timeline must be an AsyncTimeline"):
        AsyncReactAgent(open_timeline(), CLIENT)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"client must be an anthropic.Anthropic\(\)"):
        ReactAgent(open_timeline(), "sk-key")
    with pytest.raises(ArgumentError, match="missing 1 required positional argument: 'client'"):
        ReactAgent(open_timeline())  # type: ignore[call-arg]


def test_hooks_are_lists_of_functions_with_the_right_names() -> None:
    with pytest.raises(MisuseError, match="did you mean 'before_step'"):
        AgentHooks(before_stp=[print])  # type: ignore[call-arg]
    with pytest.raises(MisuseError, match="after_step must be a list of functions"):
        AgentHooks(after_step=print)  # type: ignore[arg-type]


def test_a_tool_is_declared_with_the_right_names() -> None:
    with pytest.raises(MisuseError, match="did you mean 'durability'"):
        tool(durabilty="ephemeral")(lambda: "")  # type: ignore[call-overload]
    with pytest.raises(MisuseError, match="did you mean 'is_error'"):
        ToolReply(output="", is_eror=True)  # type: ignore[call-arg]


@for_each("prompt", [None, 5, b"x", "", " ", "cut \ud83d"])
def test_a_prompt_that_is_none_is_refused_before_open_calls_are_closed(prompt: Any) -> None:
    timeline = open_timeline()
    timeline.user("go")
    timeline.record({"id": "r", "content": [{"type": "tool_use", "id": "a", "name": "f"}]})
    before = timeline.version
    with pytest.raises(MisuseError):
        ReactAgent(timeline, CLIENT).run(prompt)
    assert timeline.version == before
    assert timeline.open_calls == ("a",)


@for_each(
    "answer",
    [
        {"id": "x", "choices": [{"message": {"role": "assistant", "content": "hello"}}]},
        "hello",
        {},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}},
    ],
    ids=str,
)
def test_a_client_of_another_provider_is_told_apart(answer: Any) -> None:
    timeline = open_timeline()
    client = SimpleNamespace(messages=SimpleNamespace(create=lambda **_: answer))
    with pytest.raises(MisuseError, match="response"):
        ReactAgent(timeline, client).run("go")
    assert [type(entry.block).__name__ for entry in timeline.view.entries] == [
        "TurnHeader",
        "UserPrompt",
    ]


@pytest.mark.parametrize(
    "output",
    [
        [ImagePart(url="file:///etc/passwd")],
        ToolReply(output=[ImagePart(data="no base64!")]),
        ToolReply(output=5),  # type: ignore[arg-type]
        ToolReply(output=[{"type": "serch_result"}]),
    ],
    ids=repr,
)
def test_a_reply_that_cannot_be_shown_is_told_to_the_model(practice: Practice, output: Any) -> None:
    def look() -> Any:
        return output

    for ran in Agents(practice).run(
        [Reply(calls=[Call("look", {})]), Reply(text="Done.")], tools=[look]
    ):
        assert ran.outcome.text == "Done."
        [result] = ran.server.requests[-1]["messages"][-1]["content"]
        assert result["is_error"] is True
        assert result["content"].startswith("MisuseError: the output")


def test_a_search_result_is_a_tools_reply() -> None:
    words = [{"type": "text", "text": "found it"}]
    found = {"type": "search_result", "source": "s", "title": "t", "content": words}
    timeline = open_timeline()
    timeline.user("go")
    timeline.record({"id": "r", "content": [{"type": "tool_use", "id": "a", "name": "f"}]})
    timeline.tool_result("a", [found])
    assert timeline.render().messages[-1]["content"][0]["content"] == [found]


def test_the_agent_is_printed_without_its_secrets() -> None:
    agent = ReactAgent(
        Timeline.open("x"), CLIENT, system="hunter2", options={"extra_headers": {"k": "hunter2"}}
    )
    assert "hunter2" not in repr(agent)
