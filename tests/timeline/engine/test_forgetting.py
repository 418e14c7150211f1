"""Forgetting on request: nothing of it is left in the store's files, and the statement says what may be elsewhere."""

from pathlib import Path
from typing import Any

import pytest

from blocks import (
    BlockAppended,
    BlockId,
    BlocksHidden,
    Carried,
    Digest,
    EventId,
    ForgottenError,
    Hidden,
    MisuseError,
    Provenance,
    RangeCompacted,
    RangeSummary,
    Recorded,
    StructuredSummary,
    SummaryPrepared,
    TimelineId,
    TurnId,
    UnknownPathError,
    UserPrompt,
    text_of,
)
from persistence import ArtifactDescription, DuckDBStore, EventStore, MemoryStore, verify
from persistence.duckdb._file import OPTIONS
from render import Summary
from tests._builders import Ids, open_timeline, request_bytes
from timeline import SummaryRequest, Timeline
from timeline.engine._hiding import without_hidden

T = TimelineId("talk")
SECRET = "xyzzy4711plugh"  # noqa: S105 -- of nobody
PROMPT, ANSWER = "ar:t1.user.prompt", "ar:t1.assistant.completion"


class Quoting:
    """A model that writes everything down."""

    name = "quoting"

    def __call__(self, request: SummaryRequest) -> Summary:
        known = Provenance(source_hash=request.range.source_hash, model="m", input_tokens=1)
        facts = (f"the key is {SECRET}", "the sky is blue")
        return Summary(summary=StructuredSummary(task="keys", facts=facts), provenance=known)


def told(store: EventStore, **options: Any) -> Timeline:
    """A timeline that was told a secret, has quoted it, and folded it twice."""
    options = {"ids": Ids("i"), "window": 3_000, **options}
    timeline = open_timeline(store=store, **options)
    timeline.user(f"The key is {SECRET}, keep it.\n" + "pad and on\n" * 150)
    timeline.record({"id": "r", "content": [{"type": "text", "text": "I shall keep it."}]})
    for number in range(6):
        timeline.user(f"question {number}\n" + "pad and on\n" * 150)
        timeline.record(
            {"id": f"r{number}", "content": [{"type": "text", "text": f"yes {number}"}]}
        )
        timeline.render()
        timeline.compact()
    return timeline


@pytest.fixture(autouse=True)
def plain_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database compresses no text, so that a secret in its files can be found."""
    monkeypatch.setitem(OPTIONS, "force_compression", "uncompressed")


def in_files(folder: Path, secret: str = SECRET) -> list[str]:
    return [p.name for p in folder.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]


@pytest.mark.parametrize("summarizer", [None, Quoting()], ids=["extractive", "model"])
def test_nothing_of_a_forgotten_block_is_left_in_the_files(tmp_path: Path, summarizer: Any) -> None:
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        timeline = told(store, summarizer=summarizer)
        if summarizer:
            assert any(isinstance(event, SummaryPrepared) for _, event in timeline.events())
        timeline.flush()
        before = store.head(T)
        done = timeline.forget(PROMPT)
        assert (done.blocks, done.events > 1, done.size > 0) == (1, True, True)
        assert store.head(T) > before, "that it was hidden is on record"
        assert SECRET.encode() not in request_bytes(timeline.render())
        assert text_of(timeline.read(PROMPT)) == "[forgotten on request]"
        assert not timeline.search(SECRET)
        assert verify(store).ok
    assert in_files(tmp_path) == []
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        again = open_timeline(store=store, window=3_000)
        assert SECRET.encode() not in request_bytes(again.render())
        assert "yes 1" in text_of(again.read("ar:t3.assistant.completion"))
        again.expand()
        again.restore(PROMPT)
        assert SECRET.encode() not in request_bytes(again.render())


def test_a_secret_that_is_only_hidden_is_still_in_the_files(tmp_path: Path) -> None:
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        told(store).hide(PROMPT)
    assert in_files(tmp_path) == ["a.duckdb"], "this is what forget is for"


def test_what_other_blocks_say_stays_and_requests_are_those_after_a_hide(store: Any) -> None:
    hidden, forgotten = told(MemoryStore()), told(store)
    hidden.hide(PROMPT, replacement="[forgotten on request]")
    forgotten.forget(PROMPT)
    assert request_bytes(forgotten.render()) == request_bytes(hidden.render())
    forgotten.hide("ar:t7.user.prompt")
    hidden.hide("ar:t7.user.prompt")
    assert request_bytes(forgotten.render()) == request_bytes(hidden.render())


def test_a_call_to_forget_can_be_repeated(store: Any) -> None:
    timeline = told(store)
    timeline.forget(PROMPT)
    request = request_bytes(timeline.render())
    assert timeline.forget(PROMPT).events == 0
    assert request_bytes(timeline.render()) == request


def test_a_forgotten_result_takes_its_artifact_with_it(tmp_path: Path) -> None:
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        timeline = open_timeline(store=store)
        timeline.user("look")
        call = {"type": "tool_use", "id": "c1", "name": "cat", "input": {"file": "keys"}}
        timeline.record({"id": "r", "content": [call]})
        timeline.tool_result("c1", f"{SECRET}\n")
        about = ArtifactDescription(timeline=T)
        timeline.artifacts.put(f"{SECRET}\n".encode(), about)  # type: ignore[union-attr]
        done = timeline.forget("tc:t1.c1.result")
        assert (done.blocks, done.artifacts) == (1, 1)
        assert verify(store).ok
    assert in_files(tmp_path) == []


def test_a_forgotten_artifact_is_gone_and_its_block_is_not(store: Any) -> None:
    timeline = open_timeline(store=store)
    timeline.user("look")
    artifacts: Any = timeline.artifacts
    first = artifacts.put(b"one", ArtifactDescription(timeline=T))
    artifacts.put(b"one", ArtifactDescription(timeline=TimelineId("other")))
    done = timeline.forget(artifact=first)
    assert (done.artifacts, done.size, done.events) == (1, 3, 0)
    assert any("block" in place for place in done.may_remain)
    with pytest.raises(MisuseError, match="was not removed"):
        timeline.forget(artifact=first)
    with pytest.raises(MisuseError, match="was not removed"):
        timeline.forget(artifact="../../etc")
    assert verify(store).ok
    assert artifacts.audit()[-1].action == "forget"


def test_nothing_of_a_forgotten_timeline_is_left_in_the_files(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        open_timeline("other", store=store, ids=Ids("o")).user("hello")
        timeline = told(store, retention="archive", archive=old)
        timeline.artifacts.put(SECRET.encode(), ArtifactDescription(timeline=T))  # type: ignore[union-attr]
        assert list(old.iterdir())
        events = store.head(T)
        done = timeline.forget()
        assert done.events == events, "with those that were in archives"
        assert (done.artifacts, done.blocks > 10) == (1, True)
        assert list(old.iterdir()) == []
        assert (timeline.version, [info.id for info in store.list()]) == (0, ["other"])
        timeline.user("anew")
        assert store.head(T) == 2
        assert verify(store).ok
    assert in_files(tmp_path) == []
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        assert store.head(T) == 2


def test_the_statement_names_forks_and_what_they_read(store: Any, tmp_path: Path) -> None:
    timeline = told(store, retention="archive", archive=tmp_path)
    open_timeline("stranger", store=store, ids=Ids("s")).user("hello")
    fork = timeline.fork("fork")
    assert [p for p in timeline.forget(PROMPT).may_remain if "timeline" in p] == ["timeline 'fork'"]
    timeline.fork("later")
    kept = len(list(tmp_path.glob("*.parquet")))
    done = timeline.forget()
    assert {"timeline 'fork'", "timeline 'later'"} <= {*done.may_remain}
    assert len([place for place in done.may_remain if "the archive" in place]) > 0
    assert len(list(tmp_path.glob("*.parquet"))) == kept, "the forks read them"
    assert SECRET in text_of(fork.read(PROMPT))
    assert verify(store).ok


def test_an_archived_block_is_forgotten_in_its_archive(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        timeline = told(store, retention="archive", archive=tmp_path / "old")
        before = len(list((tmp_path / "old").iterdir()))
        timeline.forget(PROMPT)
        assert text_of(timeline.read(PROMPT)) == "[forgotten on request]"
        assert len(list((tmp_path / "old").iterdir())) == before
        assert not [e for _, e in timeline.events() if SECRET in repr(e)]
        assert verify(store).ok
    assert in_files(tmp_path) == []


def test_the_next_copy_forgets_it_in_the_backup(store: Any, tmp_path: Path) -> None:
    timeline = told(store)
    (tmp_path / "backup").mkdir()
    with DuckDBStore(tmp_path / "backup" / "a.duckdb") as backup:
        store.copy_to(backup)
        timeline.hide(ANSWER)
        assert store.copy_to(backup).replaced == 0, "what is hidden stays in both"
        done = timeline.forget(PROMPT)
        report = store.copy_to(backup)
        assert (report.timelines, report.replaced) == (1, done.events)
        assert [*backup.log_bytes(T)] == [*store.log_bytes(T)]
        assert store.copy_to(backup).replaced == 0
        assert verify(backup).ok
    assert in_files(tmp_path / "backup") == []


def test_what_cannot_be_forgotten_is_refused_and_nothing_changes(store: Any) -> None:
    timeline = told(store)
    timeline.flush()
    head = store.head(T)
    with pytest.raises(UnknownPathError):
        timeline.forget("ar:t99.user.prompt")
    with pytest.raises(MisuseError, match="not both"):
        timeline.forget(PROMPT, artifact="art_1")
    timeline.retain("forget")
    with pytest.raises(ForgottenError):
        timeline.forget(ANSWER)
    assert store.head(T) == head


def test_what_was_carried_cut_short_is_not_handed_on_either() -> None:
    block = UserPrompt(id=BlockId("p"), turn=TurnId("t1"), text=f"the key is {SECRET}, and more")
    summary = RangeSummary(
        id=BlockId("s"), turn=TurnId("t1"), summary=StructuredSummary(), digest=Digest()
    )
    log: list[Recorded] = [
        (1, BlockAppended(id=EventId("1"), at=0.0, block=block)),
        (
            2,
            RangeCompacted(
                id=EventId("2"),
                at=0.0,
                start=1,
                cut=2,
                summary=summary,
                carried=(Carried(version=1, block=block, clipped=f"the key is {SECRET}…"),),
            ),
        ),
        (
            3,
            BlocksHidden(
                id=EventId("3"), at=0.0, hidden=(Hidden(block=block.id),), reason="requested"
            ),
        ),
    ]
    assert SECRET not in repr(without_hidden(log))
