"""Agents of Strands with a timeline as the manager of their conversation."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from pydantic import BaseModel
from strands import Agent, tool
from strands.models import Model
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel

from blocks import (
    AssistantCompletion,
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
from timeline.fake_provider import Call, FakeServer, Fault, Reply
from timeline.integrations.strands_agents import TimelineConversationManager

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]

APIS: Final = ("anthropic", "openai.chat")
NAMES: Final = {"anthropic": "claude-sonnet-5-5", "openai.chat": "gpt-5.6"}
each_api = pytest.mark.parametrize("api", APIS)


read_log = tool(read_file)


@tool
def look_at() -> dict[str, Any]:
    """Look at a picture."""
    return {"status": "success", "content": [picture()]}


def say(agent: Agent, *said: Any, **options: Any) -> list[Any]:
    """Runs of one agent, one after the other; the client of its model belongs to one event loop."""

    async def talk() -> list[Any]:
        return [await agent.invoke_async(one, **options) for one in said]

    return asyncio.run(talk())


def text_in(result: Any) -> str:
    return str(result).strip()


def picture() -> dict[str, Any]:
    return {"image": {"format": "png", "source": {"bytes": b64decode(PIXEL)}}}


@attrs.define
class Desk:
    """A provider, and agents of one timeline with it."""

    server: FakeServer
    api: str
    store: MemoryStore = attrs.field(factory=MemoryStore)
    thinks: bool = False

    def model(self) -> Model:
        """The framework's."""
        known: Any = {"model_id": NAMES[self.api]}
        if self.api == "anthropic":
            params = {"thinking": {"type": "adaptive"}} if self.thinks else {}
            args = {"base_url": self.server.url, "api_key": "test", "max_retries": 0}
            return AnthropicModel(client_args=args, max_tokens=2000, params=params, **known)
        args = {"base_url": f"{self.server.url}/v1", "api_key": "test", "max_retries": 0}
        return OpenAIModel(client_args=args, **known)

    def timeline(self) -> Timeline:
        """The conversation, opened anew."""
        model = attrs.evolve(model_named(NAMES[self.api]), provider=self.api)
        return Timeline.open("audit", store=self.store, model=model, window=20_000)

    def agent(self, timeline: Any = None, **options: Any) -> Agent:
        """One that reads logs, in a new object each time, as in a new process."""
        given = {"model": self.model(), "system_prompt": "You read logs.", **options}
        manager = TimelineConversationManager(timeline or self.timeline())
        tools = [read_log, look_at]
        return Agent(conversation_manager=manager, tools=tools, callback_handler=None, **given)

    def log(self) -> list[Any]:
        """All events."""
        return [event for _, event in self.timeline().events()]

    def blocks(self, kind: type[Any]) -> list[Any]:
        """The blocks of a kind."""
        return blocks_in(self.log(), kind)


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Serve, report: Callable[..., None]
) -> None:
    report(**check_page("strands-agents", tmp_path, serve))


@each_api
def test_two_long_runs_of_one_agent_record_each_thing_once(
    api: str, serve: Serve, report: Callable[..., None]
) -> None:
    reader = Reader(thinks=api == "anthropic", rounds=ROUNDS // 2)
    desk = Desk(serve(responder=reader), api, thinks=api == "anthropic")
    agent = desk.agent()

    async def talk() -> None:
        for said in ("Read all parts.", "Once more."):
            reader.said = 0
            assert text_in(await agent.invoke_async(said)).endswith(LAST_WORDS)

    asyncio.run(talk())
    assert desk.server.refused == []
    assert [block.text for block in desk.blocks(UserPrompt)] == ["Read all parts.", "Once more."]
    log = desk.log()
    check_log(log)
    usage = [event for event in log if isinstance(event, UsageRecorded)]
    assert len(usage) == len(desk.server.requests)
    assert sum(one.cache_read for one in usage) > 2 * sum(one.uncached for one in usage)
    assert len(agent.messages) > ROUNDS, "the agent keeps all of them"
    if api == "anthropic":
        assert "signature" in str(desk.server.requests[-1])
    report(runs="ok", ids="stable")


def test_events_stream_as_ever(serve: Serve, report: Callable[..., None]) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=Reader(rounds=4)), "anthropic")
        opened = AsyncTimeline.open("audit", store=desk.store, window=20_000)
        agent = desk.agent(await opened)
        chunks = [event["data"] async for event in agent.stream_async("Go.") if "data" in event]
        assert "".join(chunks).endswith(LAST_WORDS)
        assert len(chunks) >= 4
        assert desk.server.refused == []
        assert len(desk.blocks(ToolResult)) == 5

    asyncio.run(play())
    report(streaming="ok")


@each_api
def test_pictures_of_the_user_and_of_tools_are_sent(
    api: str, serve: Serve, report: Callable[..., None]
) -> None:
    desk = Desk(serve(responder=[Reply(calls=[Call("look_at")]), Reply(text="A pixel.")]), api)
    desk.agent()([{"text": "What is it?"}, picture()])
    [prompt], [result] = desk.blocks(UserPrompt), desk.blocks(ToolResult)
    assert prompt.parts == result.parts == (ImagePart(data=PIXEL),)
    assert str(desk.server.requests[-1]).count(PIXEL) == 2
    assert desk.server.refused == []
    report(images="ok")


class Finding(BaseModel):
    """What an audit finds."""

    file: str


@each_api
def test_structured_output_comes_as_ever(
    api: str, serve: Serve, report: Callable[..., None]
) -> None:
    script = [Reply(calls=[Call("Finding", {"file": "part-1.log"})])] * 2
    desk = Desk(serve(responder=script), api)
    agent = desk.agent()
    for found in say(agent, *["Which file?"] * 2, structured_output_model=Finding):
        assert found.structured_output == Finding(file="part-1.log")
    assert desk.server.refused == []
    assert len(desk.blocks(ToolResult)) == 2
    report(structured="ok")


@each_api
def test_a_prompt_that_was_too_long_is_compacted_and_sent_again(api: str, serve: Serve) -> None:
    reader = Reader(rounds=12)
    desk = Desk(serve(responder=reader), api)

    def overflow(rounds: int) -> None:
        if rounds == 8:
            desk.server.fault(Fault.overflow(tokens=30_000, tokens_max=24_000))

    reader.before = overflow
    assert str(desk.agent()("Read all parts.")).strip().endswith(LAST_WORDS)
    assert desk.server.refused == []


class Fake(Model):
    """A model for tests, as users of Strands write one."""

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": f"Answer to {len(messages)}."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@each_api
def test_a_model_for_tests_gets_messages_and_its_answers_are_recorded(
    api: str, serve: Serve, report: Callable[..., None]
) -> None:
    desk = Desk(serve(), api)
    agent = desk.agent(model=Fake())
    texts = [text_in(result) for result in say(agent, "One?", "Two?")]
    assert texts == ["Answer to 1.", "Answer to 3."]
    assert [block.text for block in desk.blocks(AssistantCompletion)] == texts
    report(test_model="ok")


def test_a_new_agent_continues_the_timeline(serve: Serve) -> None:
    script = [Reply(text=text) for text in ("Good morning.", "It is noon.", "Bye.")]
    desk = Desk(serve(responder=script), "anthropic")
    desk.agent()("Hello?")
    say(desk.agent(), "And now?", "And now?")
    assert [block.text for block in desk.blocks(UserPrompt)] == ["Hello?", "And now?", "And now?"]
    assert "Good morning." in str(desk.server.requests[-1])
    assert [found.id for found in desk.store.list()] == ["audit"]
