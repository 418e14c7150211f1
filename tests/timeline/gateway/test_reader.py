"""What another program may read of a store: everything that was said, and nothing that is confidential or was
hidden on request."""

from pathlib import Path

import pytest

from blocks import Envelope, Sensitivity, TimelineId, text_of
from persistence import (
    ArtifactDescription,
    DuckDBStore,
    EventStore,
    MemoryStore,
    Requester,
)
from tests._builders import appended, response, result, text, tool_use
from tests._table import for_each
from timeline import Timeline
from timeline.gateway._reader import StoreReader, answered, version_range
from timeline.react import ToolReply

FILLER = "the same words again and again " * 60
FACT = "The gateway answers on port 48231."


@pytest.fixture
def store() -> MemoryStore:
    """Two agents' timelines: of `long` nearly everything is folded, of `short` nothing."""
    store = MemoryStore()
    with Timeline.open("long", store=store, window=9_000) as timeline:
        for number in range(12):
            timeline.user(f"Question {number}. {FACT if number == 0 else ''} {FILLER}")
            timeline.record(response(text(f"Answer {number}. {FILLER}")))
            timeline.render()
        assert timeline.view.compaction is not None
    with Timeline.open("short", store=store) as timeline:
        timeline.user("Which port?")
        timeline.record(response(text("I do not know the port.")))
    return store


def asked(reader: StoreReader, name: str, **given: object) -> ToolReply:
    return answered(reader.tools(), name, given)


def told(store: EventStore, name: str, **given: object) -> str:
    reply = asked(StoreReader(store=store), name, **given)
    assert not reply.is_error, reply.output
    assert isinstance(reply.output, str)
    assert len(reply.output) <= 12_000
    return reply.output


def refused(store: EventStore, name: str, **given: object) -> str:
    reply = asked(StoreReader(store=store), name, **given)
    assert reply.is_error, reply.output
    assert FACT not in str(reply.output)
    return str(reply.output)


# Timelines and paths.


def test_what_was_folded_is_read_back_whole_and_in_order(store: MemoryStore) -> None:
    with Timeline.open("long", store=store) as timeline:
        original = timeline.read("ar:t1.user.prompt")
    said = told(store, "read_timeline", timeline="long", path="ar:t1.user.prompt")
    header, _, body = said.partition("\n")
    assert header.startswith("[read back ar:t1.user.prompt (user.prompt)")
    assert body == text_of(original)
    part = told(store, "read_timeline", timeline="long", path="ar:t1.user.prompt", start=13)
    assert part.partition("\n")[2] == body[13:]


def test_a_path_alone_is_enough_where_only_one_timeline_has_folded_anything(
    store: MemoryStore,
) -> None:
    assert FACT in told(store, "read_timeline", path="ar:t1.user.prompt")


def test_a_path_that_several_could_mean_is_asked_back(store: MemoryStore) -> None:
    with Timeline.open("long", store=store) as timeline, timeline.fork("other"):
        pass
    said = refused(store, "read_timeline", path="ar:t1.user.prompt")
    assert "one of: " in said
    assert "long" in said
    assert "other" in said


def test_without_a_path_one_sees_what_there_is_and_how_to_go_on(store: MemoryStore) -> None:
    everything = told(store, "read_timeline")
    assert "long" in everything
    assert "short" in everything
    assert "Which port?" in everything
    rows = told(store, "read_timeline", timeline="short").splitlines()[1:]
    assert [row.split()[1].rstrip(",:") for row in rows if "prompt" in row or "compl" in row] == [
        "user.prompt",
        "assistant.completion",
    ]
    version = next(row.split()[0] for row in rows if "Which port?" in row)
    assert "Which port?" in told(store, "read_timeline", timeline="short", path=version)


def test_a_list_that_does_not_fit_goes_on_where_it_ended(store: MemoryStore) -> None:
    with Timeline.open("many", store=store) as timeline:
        for number in range(300):
            timeline.note(f"Note {number}.")
    seen: list[str] = []
    path = ""
    while True:
        said = told(store, "read_timeline", timeline="many", path=path)
        seen += [row.partition(": ")[2] for row in said.splitlines()[1:] if "note" in row]
        if "[go on with path=" not in said:
            break
        path = said.rpartition("[go on with path=")[2].rstrip("]")
    assert seen == [f"Note {number}." for number in range(300)]


@for_each(
    ("path", "span"),
    [("", (1, 90)), ("v4-v6", (4, 6)), ("4-6", (4, 6)), ("v4-", (4, 90)), ("v0-v999", (1, 90))],
)
def test_a_range_of_versions_is_no_path(path: str, span: tuple[int, int]) -> None:
    assert version_range(path, 90) == span


@pytest.mark.parametrize("path", ["v4", "tc:t1.c-2.result", "ar:t1.user.prompt"])
def test_a_path_is_no_range_of_versions(path: str) -> None:
    assert version_range(path, 90) is None


@for_each(
    ("given", "advice"),
    [
        ({"timeline": "lng", "path": "v3"}, "did you mean 'long'?"),
        ({"timeline": "long", "path": "ar:t1.user.promt"}, "ar:t1.user.prompt"),
        ({"path": "v9999"}, "read_timeline without arguments lists them"),
        ({"timeline": "short", "path": "v8000-v9000"}, "ends at"),
        ({"timeline": "long", "path": "ar:t1.user.prompt", "start": 10**6}, "past the end"),
        ({"path": 7}, "path"),
        ({"paths": "v3"}, "paths"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(
    store: MemoryStore, given: dict[str, object], advice: str
) -> None:
    assert advice in refused(store, "read_timeline", **given)


def test_an_unknown_tool_is_told_which_there_are(store: MemoryStore) -> None:
    assert "read_artifact" in refused(store, "read_everything")


def test_nothing_is_written_by_reading(store: MemoryStore) -> None:
    before = {info.id: info.version for info in store.list()}
    told(store, "read_timeline")
    told(store, "read_timeline", timeline="long")
    told(store, "read_timeline", timeline="long", path="ar:t1.user.prompt")
    told(store, "search", query="port")
    assert {info.id: info.version for info in store.list()} == before


# Search.


def test_a_search_finds_what_no_prompt_shows_and_says_where_to_read_it(store: MemoryStore) -> None:
    row = told(store, "search", query="48231").splitlines()[1]
    timeline, path = row.split()
    assert FACT in told(store, "read_timeline", timeline=timeline, path=path)


def test_a_search_of_one_timeline_leaves_out_the_others(store: MemoryStore) -> None:
    assert "long" in told(store, "search", query="port")
    assert "long" not in told(store, "search", query="port", timeline="short")


def test_hits_come_a_few_at_a_time(store: MemoryStore) -> None:
    first = told(store, "search", query="question", lines=2).splitlines()[1::2]
    second = told(store, "search", query="question", lines=2, start=2).splitlines()[1::2]
    assert len({*first, *second}) == 4
    assert "no more than" in told(store, "search", query="question", start=500)


def test_what_was_only_read_back_is_not_found_again(store: MemoryStore) -> None:
    with Timeline.open("short", store=store) as timeline:
        timeline.record(response(tool_use("c1", "mcp__foldline__search", query="48231")))
        timeline.tool_result("c1", told(store, "search", query="48231"))
    assert "short" not in told(store, "search", query="48231")


# What is kept back.


@pytest.mark.parametrize("sensitivity", ["confidential", "restricted"])
def test_a_confidential_result_does_not_leave(sensitivity: Sensitivity) -> None:
    store = MemoryStore()
    block = result("c1", FACT, envelope=Envelope(sensitivity=sensitivity))
    store.append(TimelineId("t"), [appended(block)], expected_version=0)
    assert "confidential" in refused(store, "read_timeline", timeline="t", path="v1")
    assert "confidential" in told(store, "read_timeline", timeline="t")
    for name, given in (("read_timeline", {"timeline": "t"}), ("search", {"query": "48231"})):
        assert FACT not in told(store, name, **given)


@pytest.mark.parametrize("sensitivity", ["public", "internal"])
def test_any_other_result_does(sensitivity: Sensitivity) -> None:
    store = MemoryStore()
    block = result("c1", FACT, envelope=Envelope(sensitivity=sensitivity))
    store.append(TimelineId("t"), [appended(block)], expected_version=0)
    assert FACT in told(store, "read_timeline", timeline="t", path="v1")
    assert FACT in told(store, "search", query="48231")


def test_what_was_hidden_on_request_is_not_given_out(store: MemoryStore) -> None:
    with Timeline.open("long", store=store) as timeline:
        timeline.hide("ar:t1.user.prompt")
    refused(store, "read_timeline", timeline="long", path="ar:t1.user.prompt")
    for given in ({}, {"timeline": "long"}):
        assert FACT not in told(store, "read_timeline", **given)
    assert "nothing matches" in told(store, "search", query="48231")


def test_an_artifact_is_read_in_pieces_and_by_its_tenant_alone(tmp_path: Path) -> None:
    with DuckDBStore(tmp_path / "s.duckdb") as store:
        artifacts = store.artifacts()
        about = ArtifactDescription(timeline=TimelineId("t"), tenant="ours")
        artifact = artifacts.put(f"{FACT}\n".encode() * 2_000, about)
        reader = StoreReader(store=store, requester=Requester("mcp", tenant="ours"))
        first = asked(reader, "read_artifact", artifact_id=artifact)
        assert FACT in str(first.output)
        assert "go on with start=" in str(first.output)
        theirs = StoreReader(store=store, requester=Requester("mcp", tenant="theirs"))
        assert asked(theirs, "read_artifact", artifact_id=artifact).is_error


def test_a_store_without_artifacts_says_so_itself() -> None:
    store = MemoryStore()
    reply = asked(StoreReader(store=store), "read_artifact", artifact_id="art-" + "0" * 32)
    assert reply.is_error
