"""Runs of Pydantic AI with a timeline as a capability, on each API."""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import attrs
import pytest
from anthropic import AsyncAnthropic
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    CachePoint,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    NativeOutput,
    PromptedOutput,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolOutput,
    capture_run_messages,
)
from pydantic_ai.direct import model_request
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from blocks import (
    AssistantCompletion,
    BlockAppended,
    ImagePart,
    SystemMessage,
    TimelineForked,
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
    blocks_in,
    check_log,
    check_page,
    read_file,
)
from timeline import AsyncTimeline, Timeline, model_named
from timeline.fake_provider import Call, FakeServer, Fault, Reply
from timeline.integrations.pydantic_ai import TimelineCapability, messages_of

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]
WINDOW: Final = 20_000
IMAGE: Final = BinaryContent(b64decode(PIXEL), media_type="image/png")
APIS: Final = ("anthropic", "openai.responses", "openai.chat", "gemini")
SENT: Final = APIS[:3]
"""Those whose requests are sent as they were rendered."""
NAMES: Final[Mapping[str, str]] = {"anthropic": "claude-sonnet-5-5", "gemini": "gemini-3.8-flash"}
each_api = pytest.mark.parametrize("api", APIS)


@attrs.define
class Desk:
    """A provider, and agents of one timeline with it."""

    server: FakeServer
    api: str = "anthropic"
    store: MemoryStore = attrs.field(factory=MemoryStore)

    @property
    def name(self) -> str:
        """The model's."""
        return NAMES.get(self.api, "gpt-5.6")

    def model(self) -> Model[Any]:
        """The framework's."""
        if self.api == "anthropic":
            anthropic = AnthropicProvider(api_key="test", base_url=self.server.url)
            return AnthropicModel(self.name, provider=anthropic)
        if self.api == "gemini":
            google = GoogleProvider(api_key="test", base_url=self.server.url)
            return GoogleModel(self.name, provider=google)
        kind = OpenAIResponsesModel if self.api == "openai.responses" else OpenAIChatModel
        openai = OpenAIProvider(api_key="test", base_url=f"{self.server.url}/v1")
        return kind(self.name, provider=openai)

    async def capability(self) -> TimelineCapability:
        """In a new object each time, as in a new process."""
        model = attrs.evolve(model_named(self.name), provider=self.api)
        opened = AsyncTimeline.open("audit", store=self.store, model=model, window=WINDOW)
        return TimelineCapability(await opened)

    def agent(self, capability: TimelineCapability, **options: Any) -> Agent[Any, Any]:
        """One that reads logs."""
        given = {"instructions": "You read logs.", "retries": 3, **options}
        agent = Agent(self.model(), capabilities=[capability], **given)
        agent.tool_plain(read_file)
        agent.tool_plain(look_at)
        return agent

    async def run(self, said: Any, history: Any = None, **options: Any) -> Any:
        """One run, with an agent of its own; what it came to."""
        agent = self.agent(await self.capability(), **options)
        return await agent.run(said, message_history=history)

    async def log(self) -> list[Any]:
        """All events."""
        return [event for _, event in await (await self.capability()).timeline.events()]

    async def blocks(self, *kinds: type[Any]) -> list[Any]:
        """The blocks of these kinds."""
        return blocks_in(await self.log(), kinds)


def look_at(path: str) -> BinaryContent:
    """Look at a picture."""
    assert path
    return IMAGE


def glance() -> str:
    """Look around."""
    return "nothing"


def stored(messages: list[ModelMessage]) -> list[ModelMessage]:
    """A history as it comes back from where it was kept."""
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    report(**check_page("pydantic-ai", tmp_path, serve))


@each_api
def test_a_long_run_sends_what_is_rendered_and_records_each_thing_once(
    api: str, serve: Callable[..., FakeServer]
) -> None:
    """With thinking, which goes back as it came, and the usage of each answer."""

    async def play() -> None:
        desk = Desk(serve(responder=Reader(thinks=api != "openai.chat")), api)
        assert (await desk.run("Read all parts.")).output == LAST_WORDS
        log = await desk.log()
        check_log(log)
        assert desk.server.refused == []
        usage = [event for event in log if isinstance(event, UsageRecorded)]
        assert len(usage) == len(desk.server.requests) == ROUNDS
        assert sum(one.cache_read for one in usage) > 3 * sum(one.uncached for one in usage)
        if api not in SENT:
            assert "thoughtSignature" in str(desk.server.requests[-1])
            return
        again = (await desk.capability()).timeline
        versions = [v for v, e in await again.events() if isinstance(e, UsageRecorded)]
        tools = desk.server.requests[0]["tools"]
        at = range(versions[-2] + 1, versions[-1])
        found = [await again.render_at(v, system="You read logs.", tools=tools) for v in at]
        sent = desk.server.requests[-1]
        own = [name for name in found[0].request() if name != "tools"]
        rendered = [{name: one.request().get(name) for name in own} for one in found]
        assert {name: sent[name] for name in own} in rendered
        if api != "openai.chat":
            kind = "reasoning" if api == "openai.responses" else "thinking"
            every = desk.server.requests  # a change unsigns the thinking after it
            assert f"'type': '{kind}'" in str(every)

    asyncio.run(play())


@each_api
@pytest.mark.parametrize("late", [0, 2], ids=["saved in time", "saved too early"])
def test_a_run_that_died_goes_on_from_the_history_that_was_stored(
    api: str, late: int, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        reader = Reader()
        desk = Desk(serve(responder=reader), api)
        kept: list[list[ModelMessage]] = []
        async with desk.agent(await desk.capability()).iter("Read all parts.") as run:
            async for _ in run:
                kept.append(stored(run.all_messages()))
                if reader.said == ROUNDS // 2:
                    break
        capability = await desk.capability()
        found = await desk.agent(capability).run(message_history=kept[-1 - late])
        assert found.output == LAST_WORDS
        check_log([event for _, event in await capability.timeline.events()])
        assert desk.server.refused == []
        assert capability.timeline.open_calls == ()
        forked = [e for e in await capability.timeline.events() if isinstance(e[1], TimelineForked)]
        assert bool(forked) == bool(late)

    asyncio.run(play())
    report(resumed="ok")


@each_api
def test_runs_follow_each_other_with_or_without_their_history(
    api: str, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        script = [Reply(text=text) for text in ("Good morning.", "It is noon.", "Bye.", "Bye!")]
        desk = Desk(serve(responder=script), api)
        await desk.run("Hello?")
        agent = desk.agent(await desk.capability())
        first = await agent.run("And now?")
        second = await agent.run("And now?", message_history=first.all_messages())
        history = stored(second.all_messages())
        await agent.run("So?", message_history=history)
        prompts = await desk.blocks(UserPrompt)
        assert [prompt.text for prompt in prompts] == ["Hello?", "And now?", "And now?", "So?"]
        assert [one.text for one in await desk.blocks(AssistantCompletion)] == [
            "Good morning.", "It is noon.", "Bye.", "Bye!"
        ]  # fmt: skip
        assert "Good morning." in str(desk.server.requests[-1])
        assert [found.id for found in desk.store.list()] == ["audit"]

    asyncio.run(play())
    report(runs="ok", ids="stable")


def test_an_edited_history_goes_on_in_a_fork(serve: Callable[..., FakeServer]) -> None:
    async def play() -> None:
        script = [Reply(text="Good morning."), Reply(text="It is noon."), Reply(text="Bye.")]
        desk = Desk(serve(responder=script))
        first = await desk.run("Hello?")
        second = await desk.run("And now?", first.all_messages())
        edited = [m for m in second.all_messages() if m not in first.all_messages()[1:]]
        capability = await desk.capability()
        await desk.agent(capability).run("And now?", message_history=edited)
        assert capability.timeline.id != "audit"
        assert "Good morning." not in str(desk.server.requests[-1])
        assert len(await desk.blocks(AssistantCompletion)) == 2

    asyncio.run(play())


@each_api
def test_a_streamed_run_is_recorded(
    api: str, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=Reader(thinks=api != "openai.chat")), api)
        agent = desk.agent(await desk.capability())
        async with agent.run_stream_events("Read all parts.") as events:
            kinds = {event.event_kind async for event in events}
        assert {"part_delta", "function_tool_result"} <= kinds
        log = await desk.log()
        check_log(log)
        assert sum(isinstance(event, UsageRecorded) for event in log) == ROUNDS
        assert desk.server.refused == []
        assert desk.server.requests[0].get("stream") or api == "gemini"

    asyncio.run(play())
    report(streaming="ok")


@each_api
def test_text_that_streams_is_recorded_and_so_is_what_it_left_undone(
    api: str, serve: Callable[..., FakeServer]
) -> None:
    """`run_stream` ends with the first text, and answers the calls beside it when it is over."""

    async def play() -> None:
        calls = [Call("read_file", {"path": "part-1.log"})]
        script = [Reply(text="I read it.", calls=calls), Reply(text="Nothing.")]
        desk = Desk(serve(responder=script), api)
        async with desk.agent(await desk.capability()).run_stream("What is wrong?") as streamed:
            assert [text async for text in streamed.stream_text()][-1] == "I read it."
        await desk.run("Well?", streamed.all_messages())
        assert len(await desk.blocks(ToolResult)) == 1
        assert [block.text for block in await desk.blocks(AssistantCompletion)] == [
            "I read it.", "Nothing."
        ]  # fmt: skip
        assert desk.server.refused == []

    asyncio.run(play())


@each_api
def test_a_stream_that_its_reader_left_is_in_the_log_as_far_as_it_came(
    api: str, serve: Callable[..., FakeServer]
) -> None:
    async def play() -> None:
        words = " ".join(f"word-{number}" for number in range(400))
        desk = Desk(serve(responder=[Reply(text=words), Reply(text="Nothing.")]), api)
        agent = desk.agent(await desk.capability())
        with capture_run_messages() as kept, suppress(KeyError):
            async with agent.run_stream("What is wrong?") as streamed:
                async for _ in streamed.stream_text(debounce_by=None):
                    raise KeyError
        await desk.run("Well?", stored(kept))
        [begun, answer] = await desk.blocks(AssistantCompletion)
        assert words.startswith(begun.text)
        assert begun.text != words
        assert answer.text == "Nothing."
        assert desk.server.refused == []

    asyncio.run(play())


@each_api
def test_pictures_of_the_user_and_of_tools_are_sent(
    api: str, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        calls = [Call("look_at", {"path": "a.png"})]
        desk = Desk(serve(responder=[Reply(calls=calls), Reply(text="Two red dots.")]), api)
        await desk.run(["Is it the same as this?", IMAGE])
        [prompt] = await desk.blocks(UserPrompt)
        [result] = await desk.blocks(ToolResult)
        assert [type(part) for part in (*prompt.parts, *result.parts)] == [ImagePart, ImagePart]
        assert str(desk.server.requests[-1]).count(PIXEL) == 2
        assert desk.server.refused == []

    asyncio.run(play())
    report(images="ok")


class Finding(BaseModel):
    """What an audit finds."""

    file: str
    rows: int


FOUND: Final = {"file": "part-1.log", "rows": 25}
FOUND_TEXT: Final = '{"file": "part-1.log", "rows": 25}'
SHAPES: Final = ("output_config", "text", "response_format", "config")


@each_api
def test_output_by_a_tool_has_its_result_in_the_log(
    api: str, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        asked = [Call("read_file", {"path": "part-1.log"}), Call("final_result", FOUND)]
        wrong = Call("final_result", {"file": "part-1.log"})
        desk = Desk(
            serve(responder=[Reply(calls=[call]) for call in (asked[0], wrong, asked[1])]), api
        )
        found = await desk.run("Which file?", output_type=ToolOutput(Finding))
        assert found.output == Finding(file="part-1.log", rows=25)
        results = await desk.blocks(ToolResult)
        assert [result.is_error for result in results] == [False, True, False]
        assert (await desk.capability()).timeline.open_calls == ()
        assert desk.server.refused == []

    asyncio.run(play())
    report(structured="ok")


@each_api
def test_output_that_the_provider_shapes_is_asked_for(
    api: str, serve: Callable[..., FakeServer]
) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=[Reply(text=FOUND_TEXT)]), api)
        found = await desk.run("Which file?", output_type=NativeOutput(Finding))
        assert isinstance(found.output, Finding)
        asked = {name: desk.server.requests[0].get(name) for name in SHAPES}
        assert "json_schema" in str(asked) or "responseJsonSchema" in str(asked)
        assert desk.server.refused == []

    asyncio.run(play())


@each_api
def test_output_that_the_prompt_asks_for_is_asked_for_again(
    api: str, serve: Callable[..., FakeServer]
) -> None:
    """What is wrong with it is told by the program, and not by the user."""

    async def play() -> None:
        said = [Reply(text='{"file": "part-1.log"}'), Reply(text=FOUND_TEXT)]
        desk = Desk(serve(responder=said), api)
        found = await desk.run("Which file?", output_type=PromptedOutput(Finding))
        assert found.output == Finding(file="part-1.log", rows=25)
        assert [one.text for one in await desk.blocks(UserPrompt)] == ["Which file?"]
        [told] = await desk.blocks(SystemMessage)
        assert "missing" in told.text
        assert "missing" in str(desk.server.requests[-1])
        assert "rows" in str(desk.server.requests[0])  # the shape, which is in the prompt
        assert desk.server.refused == []

    asyncio.run(play())


def test_what_a_caller_sets_is_kept_except_its_cache_marks(
    serve: Callable[..., FakeServer],
) -> None:
    """The timeline's marks are as many as a request may have."""

    async def play() -> None:
        desk = Desk(serve(responder=Reader(rounds=8)))
        settings = {
            "max_tokens": 900,
            "extra_body": {"metadata": {"user_id": "ann"}},
            "cache": True,
            "anthropic_cache_tool_definitions": True,
            "anthropic_cache_instructions": True,
            "anthropic_cache_messages": True,
        }
        await desk.run("Read all parts.", model_settings=settings)
        assert desk.server.refused == []
        sent = desk.server.requests[-1]
        assert (sent["max_tokens"], sent["metadata"]) == (900, {"user_id": "ann"})
        assert "cache_control" not in str(sent["tools"])
        assert "cache_control" in str(sent["messages"])

    asyncio.run(play())


@each_api
def test_an_effort_that_changes_is_the_requests(api: str, serve: Callable[..., FakeServer]) -> None:
    """Pydantic AI would tell some models in its messages, which are not sent."""

    async def play() -> None:
        desk = Desk(serve(responder=[Reply(text="Good morning."), Reply(text="Bye.")]), api)
        first = await desk.run("Hello?", model_settings={"thinking": "low"})
        await desk.run("And now?", first.all_messages(), model_settings={"thinking": "high"})
        names = ("output_config", "reasoning", "reasoning_effort", "config")
        efforts = [str([sent.get(name) for name in names]).lower() for sent in desk.server.requests]
        assert ["low" in effort for effort in efforts] == [True, False]
        assert ["high" in effort for effort in efforts] == [False, True]

    asyncio.run(play())


@pytest.mark.parametrize("api", APIS[1:])
def test_when_one_vendor_fails_the_request_is_rendered_for_the_next(
    api: str, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        reader = Reader(thinks=True)
        down, up = serve(responder=reader), serve(responder=Reader(rounds=12))
        reader.before = lambda n: down.fault(Fault.server_error()) if n >= 3 else None
        desk = Desk(down)
        client = AsyncAnthropic(api_key="test", base_url=down.url, max_retries=0)
        first = AnthropicModel(desk.name, provider=AnthropicProvider(anthropic_client=client))
        model = FallbackModel(first, Desk(up, api).model())
        agent = Agent(model, capabilities=[await desk.capability()], retries=3)
        agent.tool_plain(read_file)
        assert (await agent.run("Read all parts.")).output == LAST_WORDS
        assert up.refused == []
        log = await desk.log()
        models = [event.model for event in log if isinstance(event, UsageRecorded)]
        assert (models[0], models[-1]) == (desk.name, model_named(Desk(up, api).name).name)
        calls = [call.call_id for call in await desk.blocks(ToolCall)]
        assert sorted(calls) == sorted(one.call_id for one in await desk.blocks(ToolResult))

    asyncio.run(play())
    report(fallback="ok")


@each_api
def test_a_model_for_tests_sees_messages_and_its_answers_are_recorded(
    api: str, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    """Of the framework's own kinds, and as what is rendered for the timeline's model."""
    seen = list[list[ModelMessage]]()

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen.append(messages)
        return ModelResponse([TextPart(f"Answer {len(seen)}.")])

    async def play() -> None:
        desk = Desk(serve(), api)
        for _ in range(2):
            capability = await desk.capability()
            agent = Agent(
                FunctionModel(answer), instructions="Be brief.", capabilities=[capability]
            )
            await agent.run("Hello?")
        kinds = [type(part).__name__ for message in seen[-1] for part in message.parts]
        assert kinds == ["SystemPromptPart", "UserPromptPart", "TextPart", "UserPromptPart"]
        desk = Desk(desk.server, api)
        capability = await desk.capability()
        agent = Agent(desk.model(), capabilities=[capability], output_type=ToolOutput(Finding))
        agent.tool_plain(glance)
        with agent.override(model=TestModel()):
            found = await agent.run("Which file?")
        assert isinstance(found.output, Finding)
        calls = [call.name for call in await desk.blocks(ToolCall)]
        assert calls == ["glance", "final_result"]
        assert len(await desk.blocks(ToolResult)) == 2

    asyncio.run(play())
    report(test_model="ok")


def test_a_timeline_of_a_program_without_asyncio_goes_with_run_sync(
    serve: Callable[..., FakeServer],
) -> None:
    server = serve(responder=Reader(rounds=5))
    with Timeline.open("sync", window=WINDOW) as timeline:
        agent = Desk(server).agent(TimelineCapability(timeline))
        assert agent.run_sync("Read all parts.").output == LAST_WORDS
        log = [event.block for _, event in timeline.events() if isinstance(event, BlockAppended)]
    assert sum(isinstance(block, ToolResult) for block in log) == 6
    assert server.refused == []


@each_api
def test_a_program_of_one_s_own_sends_the_messages_of_the_request(
    api: str, serve: Callable[..., FakeServer]
) -> None:
    """Each kind of block goes to the vendor's own model and comes back as it was."""

    async def play() -> None:
        desk = Desk(serve(responder=Reader(thinks=api != "openai.chat")), api)
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        tool = ToolDefinition(name="read_file", parameters_json_schema=schema)
        parameters = ModelRequestParameters(function_tools=[tool])
        settings: Any = {"openai_store": False, "max_tokens": 2000}
        own: Any = {"tools": [{"name": "read_file", "input_schema": schema}], "system": "Read."}
        timeline = cast("AsyncTimeline", (await desk.capability()).timeline)
        await timeline.user("Read all parts.", ImagePart(data=PIXEL))
        await timeline.note("Be brief.")
        asked = True
        while asked:
            rendered = await timeline.render(**own)
            sent = messages_of(rendered)
            answer = await model_request(
                desk.model(), sent, model_settings=settings, model_request_parameters=parameters
            )
            await timeline.record(answer, rendered, format="pydantic_ai")
            calls = [part for part in answer.parts if isinstance(part, ToolCallPart)]
            asked = bool(calls)
            for call in calls:
                path = call.args_as_dict()["path"]
                await timeline.tool_result(call.tool_call_id, read_file(path))
        assert desk.server.refused == []
        check_log(await desk.log())
        copy = await AsyncTimeline.open("copy", model=rendered.model and timeline.settings.model)
        await copy.sync(stored(sent), format="pydantic_ai")
        again = messages_of(await copy.render(**own))
        assert [spoken(one) for one in again] == [spoken(one) for one in sent]

    asyncio.run(play())


def spoken(message: ModelMessage) -> list[Any]:
    """The content of a message without cache marks, whose places depend on the size of the window, and times."""
    found = list[Any]()
    for each in message.parts:
        content: Any = getattr(each, "content", None)
        listed = content if isinstance(content, list) else [content]
        bare = [one for one in listed if not isinstance(one, CachePoint)]
        own = getattr(each, "signature", None), getattr(each, "provider_details", None)
        found.append((each.part_kind, bare, getattr(each, "tool_call_id", None), *own))
    return found
