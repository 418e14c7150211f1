"""A run of an agent is a span, with its calls of the model and of tools in it; what was said is in none."""

from collections.abc import Iterable
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import (
    gen_ai_attributes,
    openai_attributes,
    session_attributes,
)
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, server_attributes
from opentelemetry.trace import SpanKind, StatusCode

from render import PROVIDERS
from tests._practice import Practice
from tests._tracing import Broken, Watched, told
from timeline import ReactAgent, Timeline
from timeline.fake_provider import Call, Fault, Reply

from .both import Agents
from .test_long import modelled

NAMES = {
    name
    for module in (
        *(gen_ai_attributes, gen_ai_metrics, openai_attributes, session_attributes),
        *(error_attributes, server_attributes),
    )
    for name in vars(module).values()
    if isinstance(name, str)
}
"""The names of the conventions."""
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
    options = {"tracer": watched.tracer, "meter": watched.meter}
    agents = Agents(practice, prompt=CANARY, timeline=options)
    for ran in agents.run(script, tools=[look, broken], system=CANARY):
        assert ran.outcome.rounds == 2
    assert watched.spans("execute_tool")
    assert not [span for span in watched.spans() if CANARY in span.to_json()]
    assert not [point for point in watched.measured() if CANARY in str(point)]


EXPECTED: dict[str, dict[str, object]] = {
    "anthropic": {
        "gen_ai.provider.name": "anthropic",
        "gen_ai.operation.name": "chat",
        "gen_ai.response.finish_reasons": ("tool_use",),
        "gen_ai.response.model": "claude-sonnet-5-5",
    },
    "openai.responses": {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.response.finish_reasons": ("completed",),
        "openai.api.type": "responses",
    },
    "openai.chat": {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "openai.api.type": "chat_completions",
    },
    "gemini": {
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.operation.name": "generate_content",
        "gen_ai.response.finish_reasons": ("STOP",),
        "gen_ai.response.model": "gemini-3.8-flash",
    },
}
ALWAYS = {
    *("gen_ai.conversation.id", "gen_ai.request.model", "gen_ai.request.max_tokens"),
    *("gen_ai.response.id", "gen_ai.response.model", "gen_ai.response.finish_reasons"),
    *("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_creation.input_tokens"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_call_of_a_model_is_named_by_the_conventions_for_every_provider(
    practice: Practice, script: list[Reply | Fault], provider: str, *, stream: bool
) -> None:
    watched = Watched()
    clients: dict[str, Any] = {"anthropic": practice.client, "gemini": practice.google}
    client = clients.get(provider, practice.openai)(practice.serve(responder=script))
    options: Any = {"tracer": watched.tracer, "meter": watched.meter, "model": modelled(provider)}
    with Timeline.open("agent", **options) as timeline:
        agent = ReactAgent(timeline, client, tools=[look, broken], stream=stream, max_tokens=900)
        usage = agent.run("Look.").usage
    operation = EXPECTED[provider]["gen_ai.operation.name"]
    call = told(watched.spans(f"{operation} ")[0])
    assert call.items() >= EXPECTED[provider].items()
    assert call.keys() >= ALWAYS
    assert call["gen_ai.request.max_tokens"] == 900
    assert call.get("gen_ai.request.stream", False) is stream
    foreign = [name for span in watched.spans() for name in told(span)]
    foreign += [name for point in watched.measured() for name in point]
    assert {name for name in foreign if not name.startswith("foldline.")} <= NAMES
    values = {value.value for value in gen_ai_attributes.GenAiOperationNameValues}
    durations = watched.measures("gen_ai.client.operation.duration")
    assert {about["gen_ai.operation.name"] for about, _ in durations} <= values
    assert {operation, "invoke_agent", "execute_tool"} == {
        about["gen_ai.operation.name"] for about, _ in durations
    }
    tokens = watched.measures("gen_ai.client.token.usage")
    by_type = {about["gen_ai.token.type"]: count for about, count in tokens}
    assert by_type == {"input": usage.input, "output": usage.output}
    [(_, dollars)] = watched.measures("foldline.cost")
    assert dollars > 0


def test_an_agent_with_a_broken_tracer_runs_as_without(
    practice: Practice, script: list[Reply | Fault]
) -> None:
    broken_one = Broken(lambda _: True)
    agents = Agents(practice, timeline={"tracer": broken_one, "meter": broken_one})
    for ran in agents.run(script, tools=[look, broken]):
        assert (ran.outcome.text, ran.outcome.rounds) == ("Done.", 2)
