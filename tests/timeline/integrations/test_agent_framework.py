"""Agents of Microsoft's Agent Framework with a timeline as a middleware of their client."""

import asyncio
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from pydantic import BaseModel

from blocks import (
    AssistantCompletion,
    BlockAppended,
    ImagePart,
    ToolResult,
    UsageRecorded,
    UserPrompt,
)
from persistence import MemoryStore
from tests.timeline.integrations._play import (
    LAST_WORDS,
    PIXEL,
    ROUNDS,
    Reader,
    Serve,
    blocks_in,
    check_log,
    check_page,
    read_file,
)
from timeline import AsyncTimeline, Timeline, model_named
from timeline.fake_provider import Call, FakeServer, Reply
from timeline.integrations.agent_framework import TimelineMiddleware

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]

MODEL: Final = "gpt-5.6"
IMAGE: Final = Content.from_data(b64decode(PIXEL), "image/png")
each_api = pytest.mark.parametrize("api", ["openai.responses", "openai.chat"])


@attrs.define
class Desk:
    """A provider, and agents of one timeline with it."""

    server: FakeServer
    api: str
    store: MemoryStore = attrs.field(factory=MemoryStore)

    def client(self) -> Any:
        """The framework's."""
        kind = OpenAIChatClient if self.api == "openai.responses" else OpenAIChatCompletionClient
        return kind(MODEL, api_key="test", base_url=f"{self.server.url}/v1")

    async def timeline(self) -> AsyncTimeline:
        """The conversation, opened anew."""
        model = attrs.evolve(model_named(MODEL), provider=self.api)
        return await AsyncTimeline.open("audit", store=self.store, model=model, window=20_000)

    async def agent(self, client: Any = None, **options: Any) -> Agent:
        """One that reads logs, in a new object each time, as in a new process."""
        middleware = [TimelineMiddleware(await self.timeline())]
        given = {"instructions": "You read logs.", "tools": [read_file], **options}
        return Agent(client or self.client(), middleware=middleware, **given)

    async def log(self) -> list[Any]:
        """All events."""
        return [event for _, event in await (await self.timeline()).events()]

    async def blocks(self, kind: type[Any]) -> list[Any]:
        """The blocks of a kind."""
        return blocks_in(await self.log(), kind)


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Serve, report: Callable[..., None]
) -> None:
    report(**check_page("agent-framework", tmp_path, serve))


@each_api
@pytest.mark.parametrize("how", ["whole", "streamed"])
def test_two_long_runs_of_one_session_record_each_thing_once(
    how: str, api: str, serve: Serve, report: Callable[..., None]
) -> None:
    async def play() -> None:
        reader = Reader(thinks=api == "openai.responses", rounds=ROUNDS // 2)
        desk = Desk(serve(responder=reader), api)
        agent = await desk.agent()
        session = agent.create_session()
        for said in ("Read all parts.", "Once more."):
            reader.said = 0
            if how == "streamed":
                stream = agent.run(said, session=session, stream=True)
                texts = [update.text async for update in stream]
                assert len([text for text in texts if text]) >= ROUNDS // 2
                assert "".join(texts).endswith(LAST_WORDS)
                await stream.get_final_response()
            else:
                assert (await agent.run(said, session=session)).text.endswith(LAST_WORDS)
        assert desk.server.refused == []
        prompts = [block.text for block in await desk.blocks(UserPrompt)]
        assert prompts == ["Read all parts.", "Once more."]
        log = await desk.log()
        check_log(log)
        usage = [event for event in log if isinstance(event, UsageRecorded)]
        assert len(usage) == len(desk.server.requests)
        assert sum(one.cache_read for one in usage) > 0
        if api == "openai.responses":
            assert "encrypted_content" in str(desk.server.requests[-1])
        assert "You read logs." in str(desk.server.requests[-1])
        assert [found.id for found in desk.store.list()] == ["audit"]

    asyncio.run(play())
    report(runs="ok", ids="stable", **({"streaming": "ok"} if how == "streamed" else {}))


@each_api
def test_runs_without_a_session_continue_the_timeline(api: str, serve: Serve) -> None:
    async def play() -> None:
        call = Call("read_file", {"path": "part-1.log"})
        script = [Reply(text="So.", calls=[call]), Reply(text="Good morning."), Reply(text="Bye.")]
        desk = Desk(serve(responder=script), api)
        await (await desk.agent()).run("Hello?")
        await (await desk.agent()).run("Hello?")
        assert [block.text for block in await desk.blocks(UserPrompt)] == ["Hello?", "Hello?"]
        assert len(await desk.blocks(ToolResult)) == 1
        assert "Good morning." in str(desk.server.requests[-1])
        assert [found.id for found in desk.store.list()] == ["audit"]
        assert desk.server.refused == []

    asyncio.run(play())


@each_api
def test_pictures_of_the_user_are_sent(api: str, serve: Serve, report: Callable[..., None]) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=[Reply(text="A pixel.")]), api)
        agent = await desk.agent()
        await agent.run(Message("user", ["What is it?", IMAGE]))
        [prompt] = await desk.blocks(UserPrompt)
        assert prompt.parts == (ImagePart(data=PIXEL),)
        assert str(desk.server.requests[-1]).count(PIXEL) == 1
        assert desk.server.refused == []

    asyncio.run(play())
    report(images="ok")


class Finding(BaseModel):
    """What an audit finds."""

    file: str


@each_api
def test_structured_output_comes_as_ever(
    api: str, serve: Serve, report: Callable[..., None]
) -> None:
    async def play() -> None:
        answer = Reply(text='{"file": "part-1.log"}')
        desk = Desk(serve(responder=lambda _: answer), api)
        agent = await desk.agent()
        session = agent.create_session()
        for _ in range(2):
            asked = {"response_format": Finding}
            found = await agent.run("Which file?", session=session, options=asked)
            assert found.value == Finding(file="part-1.log")
        assert desk.server.refused == []

    asyncio.run(play())
    report(structured="ok")


class Fake(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A client for tests, as users of the framework write one: with the layer that calls middleware."""

    async def _inner_get_response(self, *, messages: Any, **_: Any) -> ChatResponse:
        return ChatResponse(messages=Message("assistant", [f"Answer to {len(messages)}."]))


@each_api
def test_a_client_for_tests_gets_messages_and_its_answers_are_recorded(
    api: str, serve: Serve, report: Callable[..., None]
) -> None:
    async def play() -> None:
        desk = Desk(serve(), api)
        agent = await desk.agent(Fake(), instructions=None, tools=None)
        session = agent.create_session()
        texts = [(await agent.run(said, session=session)).text for said in ("One?", "Two?")]
        assert [block.text for block in await desk.blocks(AssistantCompletion)] == texts
        assert texts == ["Answer to 1.", "Answer to 3."]

    asyncio.run(play())
    report(test_model="ok")


def test_a_timeline_without_asyncio_serves_as_well(serve: Serve) -> None:
    async def play(timeline: Timeline) -> str:
        desk = Desk(serve(responder=Reader(rounds=4)), "openai.responses")
        middleware = [TimelineMiddleware(lambda _: timeline)]
        agent = Agent(desk.client(), tools=[read_file], middleware=middleware)
        return (await agent.run("Read all parts.")).text

    with Timeline.open("sync", model=MODEL, window=20_000) as timeline:
        assert asyncio.run(play(timeline)).endswith(LAST_WORDS)
        log = [event.block for _, event in timeline.events() if isinstance(event, BlockAppended)]
    assert sum(isinstance(block, ToolResult) for block in log) == 5
