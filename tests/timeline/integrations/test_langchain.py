"""Agents of LangChain whose requests are what a timeline renders: each API, streamed, with pictures, killed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelFallbackMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from blocks import (
    AssistantCompletion,
    BlockAppended,
    Event,
    ImagePart,
    MisuseError,
    ToolCall,
    ToolResult,
    UsageRecorded,
    UserPrompt,
    text_of,
)
from persistence import MemoryStore
from render import Json, Model, Rendered
from tests.timeline.integrations._play import (
    LAST_WORDS,
    PIXEL,
    ROUNDS,
    Reader,
    Serve,
    check_log,
    check_page,
    part,
    read_file,
)
from timeline import AsyncTimeline, Timeline, model_named
from timeline.fake_provider import Call, FakeServer, Fault, Reply
from timeline.integrations.langchain import TimelineMiddleware, messages_of

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]

PROVIDERS: Final = ("anthropic", "openai.responses", "openai.chat", "gemini")
NAMES: Final = {"anthropic": "claude-sonnet-5-5", "gemini": "gemini-3.8-flash"}
SEALS: Final = ("'signature'", "'encrypted_content'", "'thoughtSignature'")
THREAD: Final[Any] = {"configurable": {"thread_id": "1"}}
TASK: Final[Any] = {"messages": [("user", "Read all parts.")]}
PATH: Final[Json] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
TOOLS: Final[list[Json]] = [{"name": "read_file", "input_schema": PATH}]


class Verdict(BaseModel):
    """What was found."""

    fault: str


def model_of(provider: str) -> Model:
    return attrs.evolve(model_named(NAMES.get(provider, "gpt-5.6")), provider=provider)


def chat_of(server: FakeServer, provider: str, **more: Any) -> BaseChatModel:
    if provider == "anthropic":
        known: Json = {"model": "claude-sonnet-5-5", "max_tokens": 2000, "api_key": "test"}
        return ChatAnthropic(base_url=server.url, **known | more)
    if provider == "gemini":
        known = {"model": NAMES[provider], "api_key": "test", "max_retries": 1}
        return ChatGoogleGenerativeAI(base_url=server.url, **known | more)
    known = {"model": "gpt-5.6", "api_key": "test", "stream_usage": True}
    return ChatOpenAI(base_url=f"{server.url}/v1", **known | more)


@attrs.define
class Turns:
    """Says one after the other, whatever is asked for."""

    replies: list[Reply]

    def __call__(self, _: Json) -> Reply:
        return self.replies.pop(0)


@attrs.define(kw_only=True)
class Desk:
    """An agent, its provider, and where its state and its timeline are kept."""

    server: FakeServer
    provider: str
    chat: dict[str, Any] = attrs.field(factory=dict[str, Any])
    agent: dict[str, Any] = attrs.field(factory=dict[str, Any])
    store: MemoryStore = attrs.field(factory=MemoryStore)
    saver: BaseCheckpointSaver[Any] = attrs.field(factory=InMemorySaver)
    rendered: list[Rendered] = attrs.field(factory=list[Rendered])

    def timeline(self) -> Timeline:
        """The conversation, opened anew, as by another process."""
        desk = self

        class Watched(Timeline):
            def render(self, **given: Any) -> Rendered:
                desk.rendered.append(Timeline.render(self, **given))
                return desk.rendered[-1]

        model = model_of(self.provider)
        return Watched.open("audit", store=self.store, model=model, window=20_000)

    def opened(self, timeline: Any = None) -> Any:
        """The agent, made anew."""
        middleware = [TimelineMiddleware(timeline or self.timeline())]
        chat = chat_of(self.server, self.provider, **self.chat)
        given = {"tools": [read_file], "system_prompt": "You read logs.", **self.agent}
        return create_agent(chat, middleware=middleware, checkpointer=self.saver, **given)

    def check(self) -> None:
        """Nothing was refused, and each request was what was rendered for it, byte for byte."""
        assert self.server.refused == []
        assert len(self.server.requests) == len(self.rendered)
        for request, rendered in zip(self.server.requests, self.rendered, strict=True):
            wanted, given = wire_of(rendered.request()), wire_of(request)
            sent = {name: given[name] for name in wanted}
            assert msgspec.json.encode(sent) == msgspec.json.encode(wanted)

    def log(self, name: str = "audit") -> list[Event]:
        """All events."""
        with Timeline.open(name, store=self.store) as timeline:
            return [event for _, event in timeline.events()]


def wire_of(request: Json) -> Json:
    """What is rendered of a request; of Gemini's, the tools are the framework's own."""
    if "contents" not in request:
        return request
    told = request["config"].get("systemInstruction")
    return {"contents": request["contents"], "systemInstruction": told}


def blocks(log: list[Event], kind: type[Any]) -> list[Any]:
    return [e.block for e in log if isinstance(e, BlockAppended) and isinstance(e.block, kind)]


def check_money(log: list[Event], provider: str) -> None:
    """Each answer told what it cost, and most of what was sent came out of the provider's cache."""
    usage = [event for event in log if isinstance(event, UsageRecorded)]
    assert len(usage) >= ROUNDS
    read, uncached = sum(u.cache_read for u in usage), sum(u.uncached for u in usage)
    assert read > 3 * uncached
    assert bool(sum(u.cache_write for u in usage)) is (provider != "gemini")  # where a write costs


@pytest.mark.parametrize("how", ["invoke", "stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_many_rounds_are_what_was_rendered(
    provider: str, how: str, serve: Serve, report: Callable[..., None]
) -> None:
    thinks = provider != "openai.chat"
    more = {"thinking": {"type": "adaptive"}} if provider == "anthropic" else {}
    desk = Desk(server=serve(responder=Reader(thinks=thinks)), provider=provider, chat=more)
    agent = desk.opened()
    if how == "invoke":
        agent.invoke(TASK, THREAD)
    else:
        chunks = [c for c, _ in agent.stream(TASK, THREAD, stream_mode="messages")]
        assert len([c for c in chunks if isinstance(c, AIMessage)]) > 3 * ROUNDS
        report(streaming="ok")
    messages = agent.get_state(THREAD).values["messages"]
    assert messages[-1].text == LAST_WORDS
    assert len(messages) == 2.5 * ROUNDS, "the state keeps all of them"
    desk.check()
    check_log(desk.log())
    check_money(desk.log(), provider)
    if thinks:
        assert any(seal in str(r) for r in desk.server.requests for seal in SEALS)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("version", ["v0", "v1", "responses/v1"])
def test_whatever_the_model_s_output_version_thinking_goes_back_as_it_came(
    provider: str, version: str, serve: Serve
) -> None:
    if (provider == "openai.responses") is not (version != "v1") and version != "v1":
        return  # of OpenAI's Responses alone
    more = {"thinking": {"type": "adaptive"}} if provider == "anthropic" else {}
    for streaming in (False, True):
        server = serve(responder=Reader(thinks=True, rounds=6))
        chat = {**more, "output_version": version, "streaming": streaming}
        desk = Desk(server=server, provider=provider, chat=chat)
        desk.opened().invoke(TASK, THREAD)
        desk.check()
        last = str(server.requests[-1])
        if provider != "openai.chat":
            assert sum(map(last.count, SEALS)) == 5


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Serve, report: Callable[..., None]
) -> None:
    report(**check_page("langchain", tmp_path, serve))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_run_that_failed_goes_on_in_new_objects_and_doubles_nothing(
    provider: str, serve: Serve
) -> None:
    reader = Reader()
    desk = Desk(server=serve(responder=reader), provider=provider, chat={"max_retries": 0})

    def die(rounds: int) -> None:
        if rounds in (5, 20):
            desk.server.fault(Fault.server_error())

    reader.before = die
    given = TASK
    for _ in range(2):
        with pytest.raises(Exception, match=r"50\d|error"):
            desk.opened().invoke(given, THREAD)
        given = None
    assert desk.opened().invoke(None, THREAD)["messages"][-1].text == LAST_WORDS
    assert desk.server.refused == []
    check_log(desk.log())


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_state_that_went_back_goes_on_in_a_fork(provider: str, serve: Serve) -> None:
    desk = Desk(server=serve(responder=Reader(rounds=4)), provider=provider)
    agent = desk.opened()
    agent.invoke(TASK, THREAD)
    before = desk.log()
    earlier = next(s for s in agent.get_state_history(THREAD) if s.next == ("model",))
    again = desk.opened()
    again.invoke(None, earlier.config)
    state = again.invoke({"messages": [("user", "And then?")]}, THREAD)
    desk.check()
    assert desk.log() == before
    [fork] = [found.id for found in desk.store.list() if found.id != "audit"]
    said = [block.text for block in blocks(desk.log(fork), AssistantCompletion)]
    assert said == [m.text for m in state["messages"] if isinstance(m, AIMessage)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_person_who_is_asked_may_answer_in_another_process(provider: str, serve: Serve) -> None:
    calls = [Call("read_file", {"path": f"part-{n}.log"}) for n in (1, 2)]
    server = serve(responder=Turns([Reply(text="May I?", calls=calls), Reply(text="Done.")]))
    desk = Desk(server=server, provider=provider)
    asks = HumanInTheLoopMiddleware({"read_file": True})
    chat = chat_of(server, provider)

    def ask(given: Any) -> Any:
        middleware = [asks, TimelineMiddleware(desk.timeline())]
        agent: Any = create_agent(chat, [read_file], middleware=middleware, checkpointer=desk.saver)
        return agent.invoke(given, THREAD)

    assert "__interrupt__" in ask(TASK)
    decisions = [{"type": "reject", "message": "Not that one."}, {"type": "approve"}]
    assert ask(Command(resume={"decisions": decisions}))["messages"][-1].text == "Done."
    desk.check()
    refused, given = [text_of(block) for block in blocks(desk.log(), ToolResult)]
    assert "Not that one." in refused
    assert given == part(2)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_prompt_that_was_too_long_is_compacted_and_sent_again(
    provider: str, serve: Serve
) -> None:
    reader = Reader(rounds=12)
    desk = Desk(server=serve(responder=reader), provider=provider)

    def overflow(rounds: int) -> None:
        if rounds == 8:
            desk.server.fault(Fault.overflow(tokens=30_000, tokens_max=24_000))

    reader.before = overflow
    assert desk.opened().invoke(TASK, THREAD)["messages"][-1].text == LAST_WORDS
    assert desk.server.refused == []


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_structured_output_comes_as_ever(
    provider: str, strategy: Any, serve: Serve, report: Callable[..., None]
) -> None:
    read = Reply(text="So.", calls=[Call("read_file", {"path": "part-1.log"})])
    by_call = Reply(calls=[Call("Verdict", {"fault": "none"})])
    by_text = Reply(text='{"fault": "none"}')
    answer = by_call if strategy is ToolStrategy else by_text
    desk = Desk(
        server=serve(responder=Turns([read, answer] * 2)),
        provider=provider,
        agent={"response_format": strategy(Verdict)},
    )
    agent = desk.opened()
    for _ in range(2):
        assert agent.invoke(TASK, THREAD)["structured_response"] == Verdict(fault="none")
    desk.check()
    assert [found.id for found in desk.store.list()] == ["audit"]
    assert len(blocks(desk.log(), UserPrompt)) == 2
    last = desk.server.requests[-1]
    tools = str(last.get("tools") or last["config"]["tools"])
    assert ("'Verdict'" in tools) is (strategy is ToolStrategy)
    report(structured="ok", runs="ok", ids="stable")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_picture_is_sent_as_the_provider_takes_it(
    provider: str, serve: Serve, report: Callable[..., None]
) -> None:
    def screenshot() -> list[Any]:
        """Look at the screen."""
        return [{"type": "image", "base64": PIXEL, "mime_type": "image/png"}]

    replies = [Reply(calls=[Call("screenshot")]), Reply(text="A pixel.")]
    server = serve(responder=Turns(replies))
    desk = Desk(server=server, provider=provider, agent={"tools": [screenshot]})
    picture = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    message = HumanMessage([{"type": "text", "text": "What is it?"}, picture])
    desk.opened().invoke({"messages": [message]}, THREAD)
    desk.check()
    [prompt] = blocks(desk.log(), UserPrompt)
    assert prompt.parts == (ImagePart(data=PIXEL),)
    assert str(server.requests[-1]).count(PIXEL) == 2
    report(images="ok")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_many_threads_are_served_by_one_agent_in_asyncio(provider: str, serve: Serve) -> None:
    server = serve(responder=Turns([Reply(text=f"Answer {n}.") for n in range(6)]))
    desk = Desk(server=server, provider=provider)

    async def talk() -> list[int]:
        names = ("a", "b", "c")
        opened = {
            name: await AsyncTimeline.open(name, store=desk.store, model=model_of(provider))
            for name in names
        }
        agent = desk.opened(opened.__getitem__)
        for _ in range(2):
            asked = [{"configurable": {"thread_id": name}} for name in names]
            await asyncio.gather(*(agent.ainvoke(TASK, one) for one in asked))
        return [len(blocks([e for _, e in await t.events()], UserPrompt)) for t in opened.values()]

    assert asyncio.run(talk()) == [2, 2, 2]
    assert server.refused == []


def test_what_does_not_go_together_is_told(serve: Serve) -> None:
    server = serve()
    desk = Desk(server=server, provider="anthropic")
    with pytest.raises(MisuseError, match="with an AsyncTimeline; this is"):
        asyncio.run(desk.opened().ainvoke(TASK, THREAD))
    agent = create_agent(
        chat_of(server, "anthropic"), middleware=[TimelineMiddleware(lambda _: desk.timeline())]
    )
    with pytest.raises(MisuseError, match="a function of the thread's id needs one"):
        agent.invoke(TASK)
    assert server.requests == []


@pytest.mark.parametrize("how", ["middleware", "with_fallbacks"])
@pytest.mark.parametrize("other", PROVIDERS)
def test_when_one_vendor_fails_the_request_is_rendered_for_the_next(
    other: str, how: str, serve: Serve, report: Callable[..., None]
) -> None:
    """Of another API than the timeline's; calls, thinking and usage of both are in one log."""
    reader = Reader(thinks=True)
    down, up = serve(responder=reader), serve(responder=Reader(rounds=12))
    first = chat_of(down, "anthropic", max_retries=0, thinking={"type": "adaptive"})
    second = chat_of(up, other, model=NAMES.get(other, "gpt-5.6"))
    desk = Desk(server=down, provider="anthropic")
    timeline = desk.timeline()
    fails, model = [TimelineMiddleware(timeline)], first
    if how == "middleware":
        fails = [ModelFallbackMiddleware(second), *fails]
    else:
        model = first.with_fallbacks([second])  # type: ignore[assignment]
    agent = create_agent(model, [read_file], middleware=fails, checkpointer=desk.saver)
    reader.before = lambda rounds: down.fault(Fault.server_error()) if rounds > 3 else None
    assert agent.invoke(TASK, THREAD)["messages"][-1].text == LAST_WORDS
    assert (down.refused, up.refused) == ([], [])
    log = desk.log()
    models = [event.model for event in log if isinstance(event, UsageRecorded)]
    assert models[0] == NAMES["anthropic"]
    assert models[-1] == model_of(other).name
    calls = [block.call_id for block in blocks(log, ToolCall)]
    assert calls
    assert sorted(calls) == sorted(block.call_id for block in blocks(log, ToolResult))
    report(fallback="ok")


TESTERS: Final = {
    "FakeListChatModel": lambda: FakeListChatModel(responses=["One.", "Two."]),
    "GenericFakeChatModel": lambda: GenericFakeChatModel(messages=iter(["One.", "Two."])),
    "FakeMessagesListChatModel": lambda: FakeMessagesListChatModel(
        responses=[AIMessage("One."), AIMessage("Two.")]
    ),
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", TESTERS)
def test_a_model_for_tests_gets_messages_and_its_answers_are_recorded(
    name: str, provider: str, serve: Serve, report: Callable[..., None]
) -> None:
    desk = Desk(server=serve(), provider=provider)
    agent = create_agent(
        TESTERS[name](), middleware=[TimelineMiddleware(desk.timeline())], checkpointer=desk.saver
    )
    texts = [
        agent.invoke({"messages": [("user", said)]}, THREAD)["messages"][-1].text
        for said in ("One.", "Two.")
    ]
    assert texts == ["One.", "Two."]
    assert [block.text for block in blocks(desk.log(), UserPrompt)] == texts
    assert [block.text for block in blocks(desk.log(), AssistantCompletion)] == texts
    report(test_model="ok")


def test_a_model_for_tests_may_call_tools_and_be_asked_again_and_again(serve: Serve) -> None:
    """Messages that a model repeats have the ids of the first time."""

    class Fake(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            assert tools
            return self

    call = {"name": "read_file", "args": {"path": "part-1.log"}, "id": "call_1"}
    model = Fake(responses=[AIMessage("", tool_calls=[call]), AIMessage("Done.")])
    desk = Desk(server=serve(), provider="anthropic")
    middleware = [TimelineMiddleware(desk.timeline())]
    agent = create_agent(model, [read_file], middleware=middleware)
    assert agent.invoke(TASK)["messages"][-1].text == "Done."
    assert [text_of(block) for block in blocks(desk.log(), ToolResult)] == [part(1)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_node_of_one_s_own_sends_the_messages_of_the_request(provider: str, serve: Serve) -> None:
    """Each kind of block goes to the vendor's own chat model and comes back as it was."""
    thinks = provider != "openai.chat"
    more: Json = {"thinking": {"type": "adaptive"}} if provider == "anthropic" else {}
    if provider == "openai.responses":
        more = {"use_responses_api": True, "store": False}
    server = serve(responder=Reader(thinks=thinks))
    model = chat_of(server, provider, **more).bind_tools([read_file])
    desk = Desk(server=server, provider=provider)
    timeline = desk.timeline()
    timeline.user("Read all parts.", ImagePart(data=PIXEL))
    timeline.note("Be brief.")
    asked = True
    while asked:
        rendered = timeline.render(system="You read logs.", tools=TOOLS)
        answer = model.invoke(messages_of(rendered))
        timeline.record(answer, rendered, format="langchain")
        asked = list(timeline.open_calls)
        for call in answer.tool_calls:
            timeline.tool_result(call["id"], read_file(call["args"]["path"]))
    assert server.refused == []
    check_log(desk.log())
    last = messages_of(desk.rendered[-1])
    with Timeline.open("copy", model=model_of(provider)) as copy:
        copy.sync(last, format="langchain")
        again = messages_of(copy.render(system="You read logs.", tools=TOOLS))
    assert [spoken(one) for one in again] == [spoken(one) for one in last]


def spoken(message: BaseMessage) -> tuple[Any, ...]:
    """A message without cache marks, whose places depend on the size of the window."""
    content = message.content if isinstance(message.content, list) else [message.content]
    bare = [
        {k: v for k, v in block.items() if "cache" not in k} if isinstance(block, dict) else block
        for block in content
    ]
    texts = [b["text"] if isinstance(b, dict) and b.keys() == {"type", "text"} else b for b in bare]
    calls = getattr(message, "tool_calls", None) or getattr(message, "tool_call_id", None)
    return message.type, texts, calls
