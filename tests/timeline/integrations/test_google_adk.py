"""Agents of Google's ADK with a timeline as a plugin."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models import BaseLlm, Gemini, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import BaseModel

from blocks import (
    AssistantCompletion,
    BlockAppended,
    ImagePart,
    ToolCall,
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
from timeline import AsyncTimeline, Timeline
from timeline.fake_provider import Call, FakeServer, Reply
from timeline.integrations.google_adk import TimelinePlugin

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]

MODEL: Final = "gemini-3.8-flash"


@attrs.define
class Desk:
    """A provider, and runners of one timeline with it."""

    server: FakeServer
    store: MemoryStore = attrs.field(factory=MemoryStore)

    def agent(self, **options: Any) -> Agent:
        """One that reads logs."""
        model = Gemini(model=MODEL, base_url=self.server.url)
        given = {"name": "auditor", "model": model, "instruction": "You read logs.", **options}
        return Agent(**{"tools": [read_file], **given})

    async def runner(self, agent: Agent | None = None) -> tuple[InMemoryRunner, AsyncTimeline]:
        """In a new object each time, as in a new process."""
        opened = AsyncTimeline.open("audit", store=self.store, model=MODEL, window=20_000)
        timeline = await opened
        return runner_of(agent or self.agent(), timeline), timeline

    async def log(self) -> list[Any]:
        """All events."""
        _, timeline = await self.runner()
        return [event for _, event in await timeline.events()]

    async def blocks(self, kind: type[Any]) -> list[Any]:
        """The blocks of a kind."""
        return blocks_in(await self.log(), kind)


def runner_of(agent: Agent, timeline: Any) -> InMemoryRunner:
    app = App(name="audits", root_agent=agent, plugins=[TimelinePlugin(timeline)])
    return InMemoryRunner(app=app)


async def say(runner: InMemoryRunner, *parts: Any, **config: Any) -> list[Any]:
    """One run in the same session; its events."""
    session = {"app_name": runner.app_name, "user_id": "ann", "session_id": "1"}
    if await runner.session_service.get_session(**session) is None:
        await runner.session_service.create_session(**session)
    said = [types.Part(text=one) if isinstance(one, str) else one for one in parts]
    run = runner.run_async(
        user_id="ann",
        session_id="1",
        new_message=types.Content(role="user", parts=said),
        run_config=RunConfig(**config),
    )
    return [event async for event in run]


def last_text(events: list[Any]) -> str:
    return "".join(part.text or "" for part in events[-1].content.parts if not part.thought)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key its client looks for one of another service."""
    monkeypatch.setenv("GOOGLE_API_KEY", "test")


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Serve, report: Callable[..., None]
) -> None:
    report(**check_page("google-adk", tmp_path, serve))


@pytest.mark.parametrize("how", ["whole", "streamed"])
def test_two_long_runs_of_one_runner_record_each_thing_once(
    how: str, serve: Serve, report: Callable[..., None]
) -> None:
    async def play() -> None:
        reader = Reader(thinks=True, rounds=ROUNDS // 2)
        desk = Desk(serve(responder=reader))
        runner, timeline = await desk.runner()
        mode = StreamingMode.SSE if how == "streamed" else StreamingMode.NONE
        events = await say(runner, "Read all parts.", streaming_mode=mode)
        assert last_text(events) == LAST_WORDS
        assert any(event.partial for event in events) is (how == "streamed")
        await say(runner, "And once more.", streaming_mode=mode)
        reader.said = 0
        await say(runner, "From the beginning.", streaming_mode=mode)
        assert desk.server.refused == []
        assert timeline.id == "audit"
        assert [block.text for block in await desk.blocks(UserPrompt)] == [
            "Read all parts.", "And once more.", "From the beginning."
        ]  # fmt: skip
        log = await desk.log()
        check_log(log)
        assert sum(isinstance(event, UsageRecorded) for event in log) == len(desk.server.requests)
        assert "thoughtSignature" in str(desk.server.requests[-1])
        assert "You read logs." in str(desk.server.requests[-1])

    asyncio.run(play())
    report(runs="ok", ids="stable", **({"streaming": "ok"} if how == "streamed" else {}))


def test_a_picture_of_the_user_is_sent(serve: Serve, report: Callable[..., None]) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=[Reply(text="A pixel.")]))
        runner, _ = await desk.runner()
        picture = types.Part.from_bytes(data=b64decode(PIXEL), mime_type="image/png")
        await say(runner, "What is it?", picture)
        [prompt] = await desk.blocks(UserPrompt)
        assert prompt.parts == (ImagePart(data=PIXEL),)
        assert PIXEL in str(desk.server.requests[-1])
        assert desk.server.refused == []

    asyncio.run(play())
    report(images="ok")


class Finding(BaseModel):
    """What an audit finds."""

    file: str


def test_structured_output_comes_as_ever(serve: Serve, report: Callable[..., None]) -> None:
    async def play() -> None:
        answer = Reply(text='{"file": "part-1.log"}')
        desk = Desk(serve(responder=lambda _: answer))
        agent = desk.agent(output_schema=Finding, tools=[])
        runner, _ = await desk.runner(agent)
        for _ in range(2):
            found = Finding.model_validate_json(last_text(await say(runner, "Which file?")))
            assert found.file == "part-1.log"
        assert desk.server.refused == []

    asyncio.run(play())
    report(structured="ok")


def test_a_tool_that_ends_the_run_has_its_result_in_the_log(serve: Serve) -> None:
    def ends(tool_context: Any) -> str:
        """Ends it."""
        tool_context.actions.skip_summarization = True
        return "the end"

    async def play() -> None:
        desk = Desk(serve(responder=[Reply(calls=[Call("ends")]), Reply(text="Hello.")]))
        runner, timeline = await desk.runner(desk.agent(tools=[ends]))
        await say(runner, "Go.")
        assert timeline.open_calls == ()
        assert len(await desk.blocks(ToolResult)) == 1
        await say(runner, "Are you there?")
        assert len(await desk.blocks(ToolResult)) == 1
        assert timeline.id == "audit"
        assert desk.server.refused == []

    asyncio.run(play())


def test_an_agent_to_which_another_transfers_sees_its_history_and_loses_nothing(
    serve: Serve,
) -> None:
    async def play() -> None:
        hand = Call("transfer_to_agent", {"agent_name": "clerk"})
        script = [Reply(text="I ask the clerk.", calls=[hand]), Reply(text="At your service.")]
        desk = Desk(serve(responder=[*script, Reply(text="Still here.")]))
        clerk = desk.agent(name="clerk", description="Files.", tools=[])
        runner, timeline = await desk.runner(desk.agent(sub_agents=[clerk]))
        assert last_text(await say(runner, "Help.")) == "At your service."
        assert last_text(await say(runner, "More.")) == "Still here."
        assert desk.server.refused == []
        assert timeline.id == "audit"
        names = [found.id for found in desk.store.list()]
        texts = set[str]()
        for name in names:
            with Timeline.open(name, store=desk.store) as one:
                log = [event.block for _, event in one.events() if isinstance(event, BlockAppended)]
            texts |= {block.text for block in log if isinstance(block, AssistantCompletion)}
        assert texts == {"I ask the clerk.", "At your service.", "Still here."}

    asyncio.run(play())


class Fake(BaseLlm):
    """A model for tests, as ADK's users write one."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 -- ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        assert not stream
        text = f"Answer to {len(llm_request.contents)}."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


def test_a_model_for_tests_gets_contents_and_its_answers_are_recorded(
    serve: Serve, report: Callable[..., None]
) -> None:
    async def play() -> None:
        desk = Desk(serve())
        runner, _ = await desk.runner(desk.agent(model=Fake(model="fake")))
        texts = [last_text(await say(runner, said)) for said in ("One?", "Two?")]
        assert texts == ["Answer to 1.", "Answer to 3."]
        assert [block.text for block in await desk.blocks(AssistantCompletion)] == texts
        assert await desk.blocks(ToolCall) == []

    asyncio.run(play())
    report(test_model="ok")


def test_a_timeline_of_a_program_without_asyncio_goes_with_run(serve: Serve) -> None:
    desk = Desk(serve(responder=Reader(rounds=4)))
    with Timeline.open("sync", model=MODEL, window=20_000) as timeline:
        runner = runner_of(desk.agent(), timeline)
        runner.auto_create_session = True
        said = types.Content(role="user", parts=[types.Part(text="Read all parts.")])
        events = list(runner.run(user_id="ann", session_id="1", new_message=said))
        assert last_text(events) == LAST_WORDS
        log = [event.block for _, event in timeline.events() if isinstance(event, BlockAppended)]
    assert sum(isinstance(block, ToolResult) for block in log) == 5
    assert desk.server.refused == []
