"""The model reads back what its prompt no longer shows, in pieces, and is told how to go on."""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from blocks import (
    BlockAppended,
    BlockId,
    BlocksHidden,
    CallId,
    Digest,
    EventId,
    ImagePart,
    RangeCompacted,
    RangeSummary,
    StructuredSummary,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnId,
    text_of,
)
from persistence import ArtifactDescription, MemoryArtifacts, Requester
from render import Json
from tests._builders import call, log, open_timeline, prompt
from tests._practice import Practice
from tests.persistence.contract import compacted
from timeline import AsyncReactAgent, AsyncTimeline, ReactAgent, Timeline, quality_of
from timeline.fake_provider import Call, Reply, summary_reply, wants_summary
from timeline.react import Limits, Tool, reading_tools
from timeline.react._events import ToolDone
from timeline.react._tools import Caller

FACT = "The gateway answers on port 48231, behind the blue door."
ROUNDS = 40
LIMIT = 12_000


# A run: the model finds and reads what was folded.


def read_part(number: int) -> str:
    """Read a part of the log."""
    filler = "".join(f"part {number} line {line}: all is well\n" for line in range(60))
    return f"{filler}{FACT}\n{filler}" if number == 0 else filler


def last_result(request: Json) -> str:
    content = request["messages"][-1]["content"][-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def responder() -> Callable[[Json], Reply]:
    """Reads part after part; then wants to know what part 0 said, finds it and reads it."""
    asked, paths = iter(range(ROUNDS)), list[str]()

    def answer(request: Json) -> Reply:
        if wants_summary(request):
            return summary_reply(request)
        number = next(asked, None)
        if number is not None:
            return Reply(text=f"Part {number}.", calls=[Call("read_part", {"number": number})])
        said = last_result(request)
        if "[read back" not in said:
            return Reply(calls=[Call("read_timeline", {"query": "gateway port"})])
        if found := re.search(r"^(tc:\S+)$", said, re.MULTILINE):
            paths.append(found[1])
            return Reply(calls=[Call("read_timeline", {"path": paths[0]})])
        if FACT not in said and (start := re.search(r"go on with start=(\d+)\]", said)):
            further = {"path": paths[0], "start": int(start[1])}
            return Reply(calls=[Call("read_timeline", further)])
        return Reply(text=f"It said: {FACT}" if FACT in said else "It is gone.")

    return answer


def check(events: list[Any], text: str) -> None:
    assert text == f"It said: {FACT}"
    cut = max(event.cut for event in events if isinstance(event, RangeCompacted))
    blocks = [e.block for e in events if isinstance(e, BlockAppended)]
    original = next(block for block in blocks if isinstance(block, ToolResult))
    versions = [n for n, e in enumerate(events, 1) if isinstance(e, BlockAppended)]
    assert versions[blocks.index(original)] < cut, "it was out of sight"
    results = [block for block in blocks if isinstance(block, ToolResult)]
    *_, before, last = results
    assert last.envelope.durability == "ephemeral"
    assert "go on with start=" in text_of(before), "it takes several pieces"
    hidden = [item.block for e in events if isinstance(e, BlocksHidden) for item in e.hidden]
    assert not {before.id, last.id} & set(hidden), "no piece is larger than what is shown"
    body = text_of(last).partition("\n")[2]
    assert FACT in body
    assert body in text_of(original)


def test_a_run_reads_back_what_was_folded(practice: Practice) -> None:
    server = practice.serve(responder=responder())
    with Timeline.open("agent", window=12_000) as timeline:
        tools: list[Any] = [read_part, *reading_tools(timeline)]
        agent = ReactAgent(timeline, practice.client(server), tools=tools, limits=Limits(rounds=80))
        outcome = agent.run("Read all parts.")
        assert not server.refused
        check([event for _, event in timeline.events()], outcome.text)


def test_an_async_run_does_so_too(practice: Practice) -> None:
    server = practice.serve(responder=responder())

    async def run() -> None:
        timeline = await AsyncTimeline.open("agent", window=12_000)
        tools: list[Any] = [read_part, *reading_tools(timeline)]
        async with practice.aclient(server) as client:
            agent = AsyncReactAgent(timeline, client, tools=tools, limits=Limits(rounds=80))
            outcome = await agent.run("Read all parts.")
        check([event for _, event in await timeline.events()], outcome.text)
        await timeline.close()

    asyncio.run(run())
    assert not server.refused


# read_timeline.


def called(tool: Tool, **given: Any) -> ToolDone:
    caller = Caller(tools={tool.name: tool}, clock=lambda: 0.0)
    block = ToolCall(
        id=BlockId("b"), turn=TurnId("t"), call_id=CallId("c"), name=tool.name, input=given
    )
    done = caller.call(block)
    assert isinstance(done, ToolDone)
    return done


def told(tool: Tool, **given: Any) -> str:
    done = called(tool, **given)
    assert not done.is_error, done.output
    assert len(str(done.output)) <= LIMIT
    return str(done.output)


def refusal(tool: Tool, **given: Any) -> str:
    done = called(tool, **given)
    assert done.is_error
    assert "\n" not in str(done.output)
    return str(done.output)


@pytest.fixture
def timeline() -> Iterator[Timeline]:
    with open_timeline() as timeline:
        yield timeline


def pieces(tool: Tool, **given: Any) -> Iterator[str]:
    """The contents of all pieces, following what each says."""
    start: str | None = "0"
    while start is not None:
        header, _, body = told(tool, **given, start=int(start)).partition("\n")
        yield body
        going = re.search(r"go on with start=(\d+)\]", header)
        assert going or header.endswith("this is the end]")
        start = going[1] if going else None


@pytest.mark.parametrize(
    "text",
    [
        "short",
        "".join(f"line {n} of a long file\n" for n in range(3_000)),
        "one line without an end " * 2_000,
        "语言\n" * 20_000,
    ],
    ids=["short", "lines", "one line", "not ascii"],
)
def test_a_long_content_comes_whole_in_pieces(timeline: Timeline, text: str) -> None:
    timeline.user(text)
    tool, _ = reading_tools(timeline)
    assert "".join(pieces(tool, path="ar:t1.user.prompt")) == text


def test_so_many_lines_and_no_more(timeline: Timeline) -> None:
    timeline.user("one\ntwo\nthree\nfour")
    tool, _ = reading_tools(timeline)
    header, *body = told(tool, path="ar:t1.user.prompt", start=4, lines=2).splitlines()
    assert body == ["two", "three"]
    assert "characters 4 to 14 of 18; go on with start=14" in header


def test_every_kind_of_block_can_be_read(timeline: Timeline) -> None:
    timeline.user("Look.", ImagePart(data="aGVsbG8="))
    timeline.record(
        {"id": "r", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]}
    )
    tool, _ = reading_tools(timeline)
    assert "[image]" in told(tool, path="ar:t1.user.prompt")
    assert '"input":{"a":1}' in told(tool, path="tc:t1.c1.call")
    assert '"type":"turn.header"' in told(tool, path="ar:t1.turn.header")


def test_a_label_reads_what_its_path_does(timeline: Timeline) -> None:
    """As it is written in a summary, with brackets, or without."""
    timeline.user("Look.")
    tool, _ = reading_tools(timeline)
    version = timeline.view.find("ar:t1.user.prompt").version  # type: ignore[union-attr]  # it is there
    for label in (f"v{version}", f"[v{version}]", f" v{version}\n"):
        assert told(tool, path=label).endswith("\nLook.")
    assert "There is no block at 'v99'" in refusal(tool, path="v99")


def test_a_summary_is_read_as_the_model_saw_it(timeline: Timeline) -> None:
    timeline.user("Hello.")
    summary = RangeSummary(
        id=BlockId("s"),
        turn=TurnId("t1"),
        summary=StructuredSummary(task="the task", facts=("port 48231",)),
        digest=Digest(),
    )
    event = RangeCompacted(id=EventId("c"), at=1.0, start=1, cut=2, summary=summary)
    version = timeline.version
    timeline._operations.engine.store.append(timeline.id, [event], expected_version=version)
    tool, _ = reading_tools(timeline)
    timeline.user("Later.")
    assert "port 48231" in told(tool, path="su:t1.conv.range.summary")


def test_a_query_answers_with_paths_and_leaves_out_what_was_read_back(timeline: Timeline) -> None:
    timeline.user("The gateway listens on port 48231.")
    tool, _ = reading_tools(timeline)
    for number in range(3):
        asked = {"query": "gateway 48231"}
        content = {"type": "tool_use", "id": f"c{number}", "name": tool.name, "input": asked}
        timeline.record({"id": f"r{number}", "content": [content]})
        timeline.tool_result(f"c{number}", told(tool, **asked))
    header, path, line = told(tool, query="gateway 48231").splitlines()
    assert header.startswith("[read back")
    assert (path, line.strip()) == ("ar:t1.user.prompt", "The gateway listens on port 48231.")


def test_hits_are_bounded_and_can_be_paged(timeline: Timeline) -> None:
    for number in range(80):
        timeline.user(f"word number {number} " + "and more words " * 20)
    tool, _ = reading_tools(timeline)
    assert told(tool, query="word").count("ar:") == 10
    assert told(tool, query="word", lines=3).count("ar:") == 3
    first = told(tool, query="word", lines=3).splitlines()[5]
    assert first in told(tool, query="word", start=2, lines=1)
    assert told(tool, query="word", lines=1_000).count("ar:") <= 50
    assert "no more than 90 blocks match" in told(tool, query="word", start=90)
    assert "nothing matches 'absent'" in told(tool, query="absent")


def test_what_cannot_be_answered_is_told_in_one_line(timeline: Timeline) -> None:
    timeline.user("Hello.")
    tool, _ = reading_tools(timeline)
    said = refusal(tool, path="ar:t1.user.promt")
    assert "There is no block at 'ar:t1.user.promt'. Close to it: ar:t1.user.prompt." in said
    assert "a query finds them" in refusal(tool, path="nonsense " * 1_000)
    assert refusal(tool) == refusal(tool, path="a", query="b") == "give either a path or a query"
    assert "past the end: ar:t1.user.prompt has 6" in refusal(
        tool, path="ar:t1.user.prompt", start=99
    )
    assert "nothing to search for" in called(tool, query="-not").output
    assert "limit" in refusal(tool, query="x", start=5_000)


# read_artifact.


def artifacts(content: bytes, **about: Any) -> tuple[MemoryArtifacts, str]:
    store = MemoryArtifacts()
    return store, store.put(content, ArtifactDescription(timeline=TimelineId("talk"), **about))


def artifact_tool(timeline: Timeline, store: MemoryArtifacts, requester: Requester) -> Tool:
    _, tool = reading_tools(timeline, store, requester)
    assert tool.name == "read_artifact"
    assert tool.durability == "ephemeral"
    return tool


READER = Requester("agent")


@pytest.mark.parametrize("text", ["short", "", "line\n" * 9_000, "é语📦" * 9_000, "x" * 100_000])
def test_an_artifact_comes_whole_in_pieces(timeline: Timeline, text: str) -> None:
    store, name = artifacts(text.encode())
    tool = artifact_tool(timeline, store, READER)
    assert "".join(pieces(tool, artifact_id=name)) == text


def test_a_start_inside_a_character_begins_with_the_next(timeline: Timeline) -> None:
    store, name = artifacts("语言".encode())
    tool = artifact_tool(timeline, store, READER)
    assert told(tool, artifact_id=name, start=1).endswith("bytes 3 to 6 of 6; this is the end]\n言")


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\xff", b"text\0with nul", b"\xff" * 99_999])
def test_what_is_no_text_is_described_and_not_dumped(timeline: Timeline, content: bytes) -> None:
    store, name = artifacts(content, mime="image/png", about="the chart")
    said = told(artifact_tool(timeline, store, READER), artifact_id=name)
    assert said == (
        f"[read back artifact {name} (image/png): {len(content):,} bytes that are no text: the chart]"
    )


def test_a_refusal_is_told_in_one_line_without_content(timeline: Timeline) -> None:
    store, name = artifacts(b"the secret plan", tenant="a")
    tool = artifact_tool(timeline, store, Requester("agent", tenant="b"))
    said = refusal(tool, artifact_id=name)
    assert name in said
    assert "secret" not in said
    assert "unknown" in refusal(tool, artifact_id="art-none")
    assert "past the end" in refusal(
        artifact_tool(timeline, store, Requester("x", tenant="a")), artifact_id=name, start=15
    )


def test_the_tools_have_the_names_that_quality_counts(timeline: Timeline) -> None:
    made = reading_tools(timeline, MemoryArtifacts(), READER)
    reads = [call(tool.name, name=tool.name) for tool in made]
    events = log(prompt("x"), compacted("c", cut=1), *reads)
    assert quality_of(events).totals["explicit_read"] == len(made) == 2


def test_without_a_store_given_it_is_the_timelines_own() -> None:
    with Timeline.open("talk", counter="estimate") as timeline:
        _, tool = reading_tools(timeline)
        assert timeline.artifacts is not None
        about = ArtifactDescription(timeline=timeline.id)
        name = timeline.artifacts.put(b"moved out", about)
        assert told(tool, artifact_id=name).endswith("moved out")
        [*_, read] = timeline.artifacts.audit(name)
        assert read.requester == timeline.requester.id == "talk"


def test_without_any_store_there_is_nothing_to_read_artifacts_from() -> None:
    with Timeline.open("talk", artifacts=None) as timeline:
        assert [tool.name for tool in reading_tools(timeline)] == ["read_timeline"]
