"""Runs of the OpenAI Agents SDK in a session that is a timeline."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import attrs
import pytest
from agents import (
    Agent,
    ApplyPatchResult,
    ApplyPatchTool,
    ModelSettings,
    OpenAIProvider,
    RunConfig,
    Runner,
    SQLiteSession,
    ToolOutputImage,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message
from openai import APIStatusError, AsyncOpenAI
from openai.types.responses import ResponseApplyPatchToolCall
from pydantic import BaseModel

from blocks import (
    AssistantCompletion,
    DocumentPart,
    ImagePart,
    MisuseError,
    Recorded,
    RequestRendered,
    TimelineId,
    ToolCall,
    ToolResult,
    UsageRecorded,
    UserPrompt,
)
from persistence import MemoryStore
from tests.timeline.integrations._play import (
    LAST_WORDS,
    PICTURE,
    ROUNDS,
    Reader,
    blocks_in,
    check_log,
    check_page,
    part,
    read_file,
)
from timeline import AsyncTimeline, model_named
from timeline.fake_provider import Call, FakeServer, Fault, Reply
from timeline.integrations.openai_agents import TimelineSession, _content

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("ignore")]
set_tracing_disabled(True)
WINDOW = 20_000


read_log = function_tool(read_file)


@function_tool
def look_at(path: str) -> ToolOutputImage:
    """Look at a picture."""
    assert path
    return ToolOutputImage(image_url=PICTURE, detail="low")


AUDITOR = Agent[Any](name="auditor", instructions="You read logs.", tools=[read_log, look_at])


class Counting(MemoryStore):
    """Counts the events that are read from it."""

    events_read = 0

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        found = super().read(timeline_id, after=after, limit=limit)
        self.events_read += len(found)
        return found


@attrs.define
class Desk:
    """A provider, and sessions of one timeline with it."""

    server: FakeServer
    store: MemoryStore = attrs.field(factory=MemoryStore)

    async def session(self) -> TimelineSession:
        """In a new object each time, as in a new process."""
        opened = AsyncTimeline.open("audit", store=self.store, model="gpt-5.6", window=WINDOW)
        return TimelineSession(await opened)

    def options(
        self, session: TimelineSession, config: RunConfig | None = None, *, chat: bool = False
    ) -> dict[str, Any]:
        """What a run takes besides the agent and the input."""
        client = AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key="test", max_retries=0)
        provider = OpenAIProvider(openai_client=client, use_responses=not chat)
        config = config or session.run_config
        config.model, config.model_provider = "gpt-5.6", provider
        hooks = session.hooks
        return {"session": session, "hooks": hooks, "run_config": config, "max_turns": 2 * ROUNDS}

    async def run(self, given: Any, agent: Agent[Any] = AUDITOR) -> Any:
        """One run, in a session of its own; what it came to."""
        return await Runner.run(agent, given, **self.options(await self.session()))

    async def log(self) -> list[Any]:
        """All events."""
        return [event for _, event in await (await self.session()).timeline.events()]

    async def blocks(self, *kinds: type[Any]) -> list[Any]:
        """The blocks of these kinds."""
        return blocks_in(await self.log(), kinds)


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    report(**check_page("openai-agents", tmp_path, serve))


def test_a_long_run_sends_what_is_rendered_and_records_each_thing_once(
    serve: Callable[..., FakeServer],
) -> None:
    """With reasoning, which goes back as it came, and the usage of each answer."""

    async def play() -> None:
        desk = Desk(serve(responder=Reader(thinks=True)))
        found = await desk.run("Read all parts.")
        assert found.final_output == LAST_WORDS
        log = await desk.log()
        check_log(log)
        assert desk.server.refused == []
        usage = [event for event in log if isinstance(event, UsageRecorded)]
        assert len(usage) == len(desk.server.requests) == ROUNDS
        assert sum(one.cache_read for one in usage) > 3 * sum(one.uncached for one in usage)
        again = (await desk.session()).timeline
        shown = [event.shown for event in log if isinstance(event, RequestRendered)]
        tools = desk.server.requests[0]["tools"]
        rendered = await again.render_at(shown[-1], system="You read logs.", tools=tools)
        wanted, sent = rendered.openai_responses(), desk.server.requests[-1]
        for item in sent["input"]:
            if item.get("role") == "assistant":
                [said] = item["content"]
                item["content"] = said["text"]
        assert {name: sent[name] for name in wanted if name != "model"} == {
            name: value for name, value in wanted.items() if name != "model"
        }

    asyncio.run(play())


def test_a_run_reads_nothing_of_what_came_before_it(serve: Callable[..., FakeServer]) -> None:
    """Nor of itself, what it has synced: costs follow what is new."""

    async def play() -> None:
        reader, store = Reader(), Counting()
        desk = Desk(serve(responder=reader), store=store)
        for _ in range(2):
            reader.said = store.events_read = 0
            await desk.run("Read all parts.")
            assert store.events_read < ROUNDS
        check_log(await desk.log())

    asyncio.run(play())


def test_runs_follow_each_other_in_new_objects(serve: Callable[..., FakeServer]) -> None:
    async def play() -> None:
        script = [Reply(text="Good morning."), Reply(text="It is noon."), Reply(text="Bye.")]
        desk = Desk(serve(responder=script))
        for said in ("Hello?", "And now?", "And now?"):
            await desk.run(said)
        prompts = await desk.blocks(UserPrompt)
        assert [prompt.text for prompt in prompts] == ["Hello?", "And now?", "And now?"]
        assert [one.text for one in await desk.blocks(AssistantCompletion)] == [
            "Good morning.", "It is noon.", "Bye."
        ]  # fmt: skip
        assert "Good morning." in str(desk.server.requests[-1]["input"])

    asyncio.run(play())


def test_a_streamed_run_is_recorded(
    serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=Reader()))
        session = await desk.session()
        running = Runner.run_streamed(AUDITOR, "Read all parts.", **desk.options(session))
        kinds = {event.type async for event in running.stream_events()}
        assert "raw_response_event" in kinds
        assert running.final_output == LAST_WORDS
        check_log(await desk.log())
        assert desk.server.refused == []

    asyncio.run(play())
    report(streaming="ok")


def test_pictures_of_the_user_and_of_tools_are_sent(
    serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        calls = [Call("look_at", {"path": "a.png"})]
        desk = Desk(serve(responder=[Reply(calls=calls), Reply(text="Two red dots.")]))
        shown = [
            {"type": "input_text", "text": "Is it the same as this?"},
            {"type": "input_image", "image_url": PICTURE, "detail": "low"},
        ]
        await desk.run([{"role": "user", "content": shown}])
        [prompt] = await desk.blocks(UserPrompt)
        [result] = await desk.blocks(ToolResult)
        assert [type(part) for part in (*prompt.parts, *result.parts)] == [ImagePart, ImagePart]
        assert str(desk.server.requests[-1]["input"]).count(PICTURE) == 2
        assert desk.server.refused == []

    asyncio.run(play())
    report(images="ok")


def test_a_document_of_plain_text_is_sent_as_text() -> None:
    part = DocumentPart(media_type="text/plain", data="The rate is 1.07.")
    assert _content(part) == {"type": "input_text", "text": "The rate is 1.07."}


class Finding(BaseModel):
    """What an audit finds."""

    file: str
    rows: int


def test_structured_output_is_asked_for_and_recorded(
    serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    async def play() -> None:
        said = [Reply(calls=[Call("read_file", {"path": "part-1.log"})]), Reply(text=FOUND)]
        desk = Desk(serve(responder=lambda _: said.pop(0)))
        agent = AUDITOR.clone(output_type=Finding)
        found = await desk.run("Which file?", agent)
        assert found.final_output == Finding(file="part-1.log", rows=25)
        assert desk.server.requests[-1]["text"]["format"]["type"] == "json_schema"
        assert [one.text for one in await desk.blocks(AssistantCompletion)] == [FOUND]
        assert desk.server.refused == []

    asyncio.run(play())
    report(structured="ok")


FOUND = '{"file": "part-1.log", "rows": 25}'


def test_without_a_session_the_list_that_goes_in_is_known(serve: Callable[..., FakeServer]) -> None:
    async def play() -> None:
        script = [Reply(text="Good morning."), Reply(text="It is noon.")]
        desk = Desk(serve(responder=script))
        given: list[Any] = [{"role": "user", "content": "Hello?"}]
        for said in ("And now?", ""):
            options = desk.options(await desk.session()) | {"session": None}
            given = (await Runner.run(AUDITOR, given, **options)).to_input_list()
            given += [{"role": "user", "content": said}]
        prompts = await desk.blocks(UserPrompt)
        assert [prompt.text for prompt in prompts] == ["Hello?", "And now?"]
        assert len(await desk.blocks(AssistantCompletion)) == 2

    asyncio.run(play())


def test_a_tool_that_ends_the_run_has_its_result_in_the_log(
    serve: Callable[..., FakeServer],
) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=[Reply(calls=[Call("read_file", {"path": "part-1.log"})])]))
        await desk.run("Read it.", AUDITOR.clone(tool_use_behavior="stop_on_first_tool"))
        assert len(await desk.blocks(ToolResult)) == 1

    asyncio.run(play())


QUESTIONS: Sequence[str] = ("What is in part 1?", "And in part 2?", "And now?")


def reading(request: dict[str, Any]) -> Reply:
    """For each question one part is read, and then there is an answer."""
    items = request.get("input") or request["messages"]
    asked = sum(item.get("role") == "user" for item in items)
    if items[-1].get("role") == "user":
        return Reply(text="I look.", calls=[Call("read_file", {"path": f"part-{asked}.log"})])
    return Reply(text=f"It is part {asked}.")


async def ask(session: TimelineSession, agent: Agent[Any], options: dict[str, Any]) -> None:
    """All questions, each in a run of its own on this session."""
    for question in QUESTIONS:
        await Runner.run(agent, question, **options)
        assert session.timeline.id == "audit"


async def check_runs(desk: Desk) -> None:
    """Everything that was said is in the timeline that has the name, once and in order, when it is opened again."""
    kinds = (UserPrompt, ToolCall, ToolResult, AssistantCompletion)
    found = [
        block for block in await desk.blocks(*kinds) if getattr(block, "text", "") != "I look."
    ]
    assert [type(block) for block in found] == [
        UserPrompt,
        ToolCall,
        ToolResult,
        AssistantCompletion,
    ] * 3
    assert [block.text for block in found[::4]] == list(QUESTIONS)
    assert [block.text for block in found[3::4]] == [f"It is part {n}." for n in (1, 2, 3)]
    for number, block in enumerate(found[2::4], 1):
        assert part(number).strip() in str(block.parts[0].text)
    assert desk.server.refused == []
    sent = desk.server.requests[-1]
    assert len(sent.get("input") or sent["messages"]) >= 3 * 4


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
def test_runs_on_one_session_all_continue_its_timeline(
    serve: Callable[..., FakeServer], report: Callable[..., None], *, chat: bool
) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=reading))
        session = await desk.session()
        await ask(session, AUDITOR, desk.options(session, chat=chat))
        await check_runs(desk)
        used = [event for event in await desk.log() if isinstance(event, UsageRecorded)]
        assert len(used) == len(desk.server.requests) == 6

    asyncio.run(play())
    report(runs="ok", ids="stable")


def test_the_model_for_tests_of_the_sdk_and_its_answers_are_recorded(
    serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    """It gives the same id to all answers."""

    async def play() -> None:
        desk = Desk(serve())
        model = ScriptedModel([[assistant_message("One.")], [assistant_message("Two.")]])
        session = await desk.session()
        given = desk.options(session)
        given["run_config"].model = None
        agent = Agent[Any](name="tester", model=model)
        outputs = [(await Runner.run(agent, said, **given)).final_output for said in ("1?", "2?")]
        assert outputs == ["One.", "Two."]
        assert [one.text for one in await desk.blocks(AssistantCompletion)] == outputs
        assert [one.text for one in await desk.blocks(UserPrompt)] == ["1?", "2?"]
        assert session.timeline.id == "audit"

    asyncio.run(play())
    report(test_model="ok")


def test_a_model_of_litellm_is_asked_with_what_is_rendered(
    serve: Callable[..., FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    pytest.importorskip("litellm")
    from agents.extensions.models import litellm_model

    async def play() -> None:
        desk = Desk(serve(responder=reading))
        url = f"{desk.server.url}/v1"
        model = litellm_model.LitellmModel("openai/gpt-5.6", base_url=url, api_key="test")
        session = await desk.session()
        given = desk.options(session)
        given["run_config"].model = None
        await ask(session, AUDITOR.clone(model=model), given)
        await check_runs(desk)

    asyncio.run(play())


def test_streamed_runs_on_one_session_all_continue_its_timeline(
    serve: Callable[..., FakeServer],
) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=reading))
        session = await desk.session()
        for question in QUESTIONS:
            running = Runner.run_streamed(AUDITOR, question, **desk.options(session))
            async for _ in running.stream_events():
                assert session.timeline.id == "audit"
        await check_runs(desk)

    asyncio.run(play())


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
def test_a_session_without_its_run_config_gives_the_whole_history_and_keeps_everything(
    serve: Callable[..., FakeServer], *, chat: bool
) -> None:
    """With the hooks or without them; then usage is not known."""

    async def play() -> None:
        for hooks in ({}, {"hooks": None}):
            desk = Desk(serve(responder=reading))
            session = await desk.session()
            options = desk.options(session, RunConfig(workflow_name="mine"), chat=chat)
            await ask(session, AUDITOR, options | hooks)
            await check_runs(desk)

    asyncio.run(play())


def test_a_run_config_of_ones_own_is_made_of_that_of_the_session(
    serve: Callable[..., FakeServer],
) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=reading))
        session = await desk.session()
        config = replace(session.run_config, workflow_name="mine")
        await ask(session, AUDITOR, desk.options(session, config))
        await check_runs(desk)

    asyncio.run(play())


def test_items_are_those_that_the_sessions_of_the_sdk_have(
    serve: Callable[..., FakeServer],
) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=Reader(rounds=3, thinks=True)))
        session, other = await desk.session(), SQLiteSession("audit")
        options = desk.options(session)
        await Runner.run(AUDITOR, "Read three parts.", **options)
        desk.server.provider.responder = Reader(rounds=3, thinks=True)
        plain = {"session": other, "hooks": None}
        config = RunConfig(model="gpt-5.6", model_provider=options["run_config"].model_provider)
        await Runner.run(AUDITOR, "Read three parts.", **options | plain | {"run_config": config})
        ours, theirs = await session.get_items(), await other.get_items()
        assert list(map(essence, ours)) == list(map(essence, theirs))
        assert await session.get_items(2) == ours[-2:]

    asyncio.run(play())


def essence(item: Any) -> dict[str, Any]:
    """An item without what differs from call to call."""
    varies = ("id", "call_id", "status", "encrypted_content", "logprobs")
    known = {key: value for key, value in item.items() if key not in varies and value is not None}
    if isinstance(known.get("content"), list):
        known["content"] = [essence(part) for part in known["content"]]
    return known


def test_what_is_hidden_on_request_is_in_no_item(serve: Callable[..., FakeServer]) -> None:
    async def play() -> None:
        desk = Desk(serve(responder=reading))
        session = await desk.session()
        await Runner.run(AUDITOR, "My key is k-4711.", **desk.options(session))
        read = [e.path for e in session.timeline.view.entries if e.path.endswith(".result")]
        await session.timeline.hide("ar:t1.user.prompt", read[0])
        items = await session.get_items()
        assert [item.get("type", "message") for item in items] == [
            "message", "message", "function_call", "function_call_output", "message"
        ]  # fmt: skip
        assert "4711" not in str(items)
        assert "the job read" not in str(items)

    asyncio.run(play())


class Patches:
    """Applies patches, or says that it does."""

    def create_file(self, operation: Any) -> ApplyPatchResult:
        return ApplyPatchResult(status="completed", output=f"created {operation.path}")

    update_file = delete_file = create_file


@pytest.mark.parametrize("options", ["all", "session alone"])
def test_a_tool_of_the_provider_that_the_client_runs_has_its_result_in_the_next_request(
    options: str,
) -> None:
    """With the SDK's own test model, whose answers have the same ids in every run."""

    def calls(number: int) -> list[Any]:
        operation = {"type": "create_file", "path": f"{number}.py", "diff": "+x"}
        known = {"type": "apply_patch_call", "status": "completed", "operation": operation}
        call = {"id": f"ap_{number}", "call_id": f"c{number}", **known}
        return [ResponseApplyPatchToolCall.model_validate(call)]

    async def play() -> None:
        done = [assistant_message("Done.")]
        model = ScriptedModel([calls(1), done, calls(2), done, calls(3), done])
        agent = Agent[Any](name="a", model=model, tools=[ApplyPatchTool(editor=Patches())])
        timeline = await AsyncTimeline.open("audit", model="gpt-5.6", window=WINDOW)
        session = TimelineSession(timeline)
        for _ in range(3):
            given: dict[str, Any] = {"session": session}
            if options == "all":
                given |= {"hooks": session.hooks, "run_config": session.run_config}
            await Runner.run(agent, "Patch it.", **given)
        items: list[Any] = [item for item in model.calls[-1].input if isinstance(item, dict)]
        asked = [item for item in items if item.get("type") == "apply_patch_call"]
        given_back = [item for item in items if item.get("type") == "apply_patch_call_output"]
        assert [item["operation"]["path"] for item in asked] == ["1.py", "2.py", "3.py"]
        assert [item["output"] for item in given_back] == [f"created {n}.py" for n in (1, 2, 3)]
        kinds = [item.get("type", "message") for item in await session.get_items()]
        assert kinds == ["message", "apply_patch_call", "apply_patch_call_output", "message"] * 3

    asyncio.run(play())


def test_a_handoff_continues_the_timeline(serve: Callable[..., FakeServer]) -> None:
    async def play() -> None:
        clerk = Agent[Any](name="clerk", instructions="You answer.")
        said = [
            Reply(calls=[Call("transfer_to_clerk", {})]),
            Reply(text="Done."),
            Reply(text="And done again."),
        ]
        desk = Desk(serve(responder=said))
        session = await desk.session()
        agent = AUDITOR.clone(handoffs=[clerk])
        for question in ("Hand it over.", "Once more."):
            await Runner.run(agent, question, **desk.options(session))
            assert session.timeline.id == "audit"
        assert [one.text for one in await desk.blocks(AssistantCompletion)] == [
            "Done.", "And done again."
        ]  # fmt: skip
        assert len(await desk.blocks(ToolCall)) == len(await desk.blocks(ToolResult)) == 1
        assert desk.server.refused == []

    asyncio.run(play())


@pytest.mark.parametrize("nested", [False, True], ids=["without tools", "nested"])
def test_a_handoff_that_edits_the_history_does_so_for_the_run_alone(
    serve: Callable[..., FakeServer], *, nested: bool
) -> None:
    """Its requests show what the filter left; the session has everything, as the SDK's own have."""
    from agents import handoff
    from agents.extensions import handoff_filters

    async def play() -> None:
        edited = None if nested else handoff_filters.remove_all_tools
        clerk = Agent[Any](name="clerk", instructions="You answer.", tools=[read_log])
        given = handoff(clerk, input_filter=edited, nest_handoff_history=nested)
        said = [
            Reply(text="Good morning."),
            Reply(calls=[Call("read_file", {"path": "part-1.log"})]),
            Reply(calls=[Call("transfer_to_clerk", {})]),
            Reply(calls=[Call("read_file", {"path": "part-2.log"})]),
            Reply(text="Done."),
            Reply(text="And done again."),
        ]
        desk = Desk(serve(responder=said))
        session = await desk.session()
        agent = AUDITOR.clone(handoffs=[given])
        for question in ("Hello?", "Read it, and hand it over.", "Once more."):
            await Runner.run(agent, question, **desk.options(session))
            assert session.timeline.id == "audit"
        edited_request, whole_request = desk.server.requests[-2], desk.server.requests[-1]
        kinds = [item["type"] for item in edited_request["input"]]
        assert kinds.count("function_call") == kinds.count("function_call_output") == 1
        assert "Good morning." in str(edited_request["input"])
        kinds = [item["type"] for item in whole_request["input"]]
        assert kinds.count("function_call") == kinds.count("function_call_output") == 3
        assert len(await desk.blocks(ToolResult)) == 3
        assert [one.text for one in await desk.blocks(AssistantCompletion)] == [
            "Good morning.", "Done.", "And done again."
        ]  # fmt: skip
        assert desk.server.refused == []

    asyncio.run(play())


def test_a_run_that_failed_is_continued_by_the_next_one(serve: Callable[..., FakeServer]) -> None:
    """In the same object, and in that of a new process."""
    calls = [Call("read_file", {"path": "part-1.log"})]
    later = [Reply(calls=calls), Reply(text="Done.")]

    async def play() -> None:
        for is_new in (False, True):
            desk = Desk(serve(responder=[Reply(calls=calls), Fault.overloaded(), *later]))
            session = await desk.session()
            with pytest.raises(APIStatusError):
                await Runner.run(AUDITOR, QUESTIONS[0], **desk.options(session))
            session = await desk.session() if is_new else session
            await Runner.run(AUDITOR, QUESTIONS[1], **desk.options(session))
            prompts = await desk.blocks(UserPrompt)
            assert [prompt.text for prompt in prompts] == list(QUESTIONS[:2])
            assert len(await desk.blocks(ToolResult)) == len(await desk.blocks(ToolCall)) == 2
            assert session.timeline.id == "audit"
            assert desk.server.refused == []

    asyncio.run(play())


def test_a_run_that_waited_for_approval_goes_on_in_a_new_object(
    serve: Callable[..., FakeServer],
) -> None:
    async def play() -> None:
        @function_tool(needs_approval=True)
        def restart(service: str) -> str:
            """Restart a service."""
            return f"{service} is up."

        calls = [Call("restart", {"service": "disk"})]
        desk = Desk(serve(responder=[Reply(text="May I?", calls=calls), Reply(text="Done.")]))
        agent = AUDITOR.clone(tools=[restart])
        waiting = await desk.run("Restart it.", agent)
        state = waiting.to_state()
        state.approve(waiting.interruptions[0])
        assert (await desk.run(state, agent)).final_output == "Done."
        [result] = await desk.blocks(ToolResult)
        assert "disk is up." in str(result.parts)
        assert len(await desk.blocks(UserPrompt)) == len(await desk.blocks(ToolCall)) == 1
        assert desk.server.refused == []

    asyncio.run(play())


def test_what_a_timeline_cannot_do_is_said(serve: Callable[..., FakeServer]) -> None:
    async def play() -> None:
        session = await Desk(serve(responder=[])).session()
        for call in (session.pop_item, session.clear_session):
            with pytest.raises(MisuseError, match=r"cannot remove|cannot be cleared"):
                await call()
        assert await session.get_items() == []
        other = attrs.evolve(model_named("gpt-5.6"), provider="openai.chat")
        with pytest.raises(MisuseError, match=r"provider='openai.responses'"):
            TimelineSession(await AsyncTimeline.open("other", model=other))
        assert session.run_config.model_settings == ModelSettings(
            store=False,
            prompt_cache_options={"mode": "explicit"},
            extra_args={"prompt_cache_key": session.timeline.settings.cache_key},
        )

    asyncio.run(play())
