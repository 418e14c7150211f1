"""A run of an agent is a span, with its calls of the model and of tools in it; what was said is in none."""

from collections.abc import Iterable

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from tests._practice import Practice
from tests._tracing import Watched, told
from timeline.fake_provider import Call, Fault, Reply

from .both import Agents

CANARY = "hunter2-4711"


def look(path: str) -> str:
    """Look at a file."""
    return f"{CANARY} in {path}"


def broken() -> str:
    """Fail."""
    raise OSError(CANARY)


@pytest.fixture
def script() -> Iterable[Reply | Fault]:
    calls = [Call("look", {"path": CANARY}), Call("broken", {})]
    return [Reply(text=CANARY, calls=calls), Reply(text="Done.")]


def test_a_run_of_an_agent_holds_its_calls_of_models_and_tools(
    practice: Practice, script: list[Reply | Fault]
) -> None:
    watched = Watched()
    agents = Agents(practice, timeline={"tracer": watched.tracer})
    for ran in agents.run(script, tools=[look, broken], name="reader"):
        assert ran.outcome.stop == "end_turn"
        [run] = watched.spans("invoke_agent")
        assert run.name == "invoke_agent reader"
        chats = watched.spans("chat")
        assert {span.kind for span in chats} == {SpanKind.CLIENT}
        tools = watched.spans("execute_tool")
        assert [span.name for span in tools] == ["execute_tool look", "execute_tool broken"]
        failed = StatusCode.ERROR
        assert [span.status.status_code for span in tools] == [StatusCode.UNSET, failed]
        renders = [s for s in watched.spans("foldline.render") if watched.parents(s)]
        assert len(renders) == len(chats) == ran.outcome.rounds
        for span in (*chats, *tools, *renders):
            assert watched.parents(span) == [run.name]
        assert told(chats[0])["gen_ai.response.finish_reasons"] == ("tool_use",)
        assert told(chats[0])["gen_ai.response.id"]
        costs = [told(span)["gen_ai.usage.input_tokens"] for span in chats]
        assert told(run)["gen_ai.usage.input_tokens"] == sum(map(int, map(str, costs)))
        assert told(run)["gen_ai.usage.output_tokens"] == ran.outcome.usage.output
        watched.exporter.clear()


def test_no_span_holds_content(practice: Practice, script: list[Reply | Fault]) -> None:
    watched = Watched()
    agents = Agents(practice, prompt=CANARY, timeline={"tracer": watched.tracer})
    for ran in agents.run(script, tools=[look, broken], system=CANARY):
        assert ran.outcome.rounds == 2
    assert watched.spans("execute_tool")
    assert not [span for span in watched.spans() if CANARY in span.to_json()]
