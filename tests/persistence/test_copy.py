"""A copy of a timeline is the timeline: the same versions, bytes, artifacts and requests."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    DamagedStoreError,
    MisuseError,
    StoreError,
    TimelineId,
    UnknownTimelineError,
    artifact_ids_in,
)
from persistence import (
    ArtifactDescription,
    DuckDBStore,
    EventStore,
    Keys,
    MemoryStore,
    Requester,
    open_store,
    repair,
    verify,
)
from persistence._copy import CopyReport, stand_in
from persistence.sessions import export_lines, exported_events
from tests.persistence.contract import T, U, compacted, forked, many, prompt
from tests.persistence.test_store import Plain
from tests.strategies import Play, settings, steps

KEYS = Keys({"k1": b"1" * 32}, current="k1")
READER = Requester("host", permissions=frozenset({"read", "read:confidential"}))


def two_timelines() -> MemoryStore:
    store = MemoryStore()
    store.append(T, [*many(6), compacted("c1", cut=4)], expected_version=0)
    store.fork(T, U, forked(T, 3), at=3)
    return store


@given(steps(), settings())
def test_a_copied_timeline_is_rendered_to_the_same_request(
    all_steps: list[Any], options: dict[str, Any]
) -> None:
    play = Play(options).run([*all_steps, ("render",)])
    copy = MemoryStore()
    play.store.copy_to(copy)
    name = play.timeline.id
    assert copy.read_bytes(name) == play.store.read_bytes(name)
    again = Play(options, clock=play.clock, store=copy)
    assert again.timeline.render() == play.open().render()


@given(all_steps=steps(), options=settings())
def test_an_export_holds_the_bytes_of_the_log(
    all_steps: list[Any], options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    play = Play(options).run(all_steps)
    name = play.timeline.id
    stored = play.store.read_bytes(name)
    path = tmp_path_factory.mktemp("export") / "talk.jsonl"
    path.write_text("".join(export_lines(name, stored)), encoding="utf-8", newline="")
    assert exported_events(str(path)) == [data for _, data in stored]


def test_a_copy_says_what_was_new_and_copies_it_once() -> None:
    source, target = two_timelines(), MemoryStore()
    assert source.copy_to(target) == CopyReport(timelines=2, events=11)
    assert source.copy_to(target) == CopyReport()
    source.append(U, [prompt("new")], expected_version=4)
    assert source.copy_to(target) == CopyReport(timelines=1, events=1)
    assert target.read(U) == source.read(U)


@given(st.integers(0, 7), st.sampled_from([Plain, MemoryStore]))
def test_a_copy_that_stopped_anywhere_goes_on_there(done: int, kind: type[EventStore]) -> None:
    source, target = two_timelines(), kind()
    if done:
        begun = [event for _, event in source.read(T, limit=done)]
        target.append(T, begun, expected_version=0)
    source.copy_to(target)
    for name in (T, U):
        assert target.read(name) == source.read(name)


def test_only_the_timelines_that_are_named_are_copied() -> None:
    target = MemoryStore()
    assert two_timelines().copy_to(target, [U]).timelines == 1
    assert [info.id for info in target.list()] == [U]
    with pytest.raises(UnknownTimelineError, match="nobody"):
        two_timelines().copy_to(target, [T, "nobody"])
    assert not target.head(T), "nothing is copied when a name is wrong"


def test_another_timeline_of_the_same_name_is_left_alone() -> None:
    source, target = two_timelines(), MemoryStore()
    target.append(T, [prompt("somebody else's")], expected_version=0)
    with pytest.raises(MisuseError, match=r"different timeline 'my talk': its event 1"):
        source.copy_to(target)
    assert target.head(T) == 1


def test_a_target_that_is_ahead_is_told() -> None:
    source, target = two_timelines(), MemoryStore()
    source.copy_to(target)
    target.append(T, [prompt("later")], expected_version=7)
    with pytest.raises(
        MisuseError, match="has 8 events in the target store and only 7 in the source"
    ):
        source.copy_to(target)


def test_artifacts_go_with_the_timelines_that_put_or_name_them(tmp_path: Path) -> None:
    source = MemoryStore()
    with source.artifacts(keys=KEYS, clock=lambda: 1.0) as artifacts:
        about = ArtifactDescription(timeline=T, sensitivity="confidential")
        own = artifacts.put(b"secret" * 400_000, about)
        named = artifacts.put(b"", ArtifactDescription(timeline=TimelineId("a third")))
        other = artifacts.put(b"other", ArtifactDescription(timeline=TimelineId("a third")))
    source.append(T, [prompt(f"see {named}")], expected_version=0)
    path = tmp_path / "copy.duckdb"
    with DuckDBStore(path) as target:
        assert source.copy_to(target, [T]) == CopyReport(timelines=1, events=1, artifacts=2)
        assert source.copy_to(target, [T]) == CopyReport()
    with DuckDBStore(path) as target, target.artifacts(keys=KEYS, clock=lambda: 2.0) as artifacts:
        assert artifacts.read(own, READER) == b"secret" * 400_000
        assert artifacts.read(named, READER) == b""
        assert [found.id for found in artifacts.list(READER)] == [own, named]
        assert other not in {found.id for found in artifacts.list(READER)}
    assert verify(path, keys=KEYS).ok


def test_artifacts_need_a_store_that_keeps_some() -> None:
    source = two_timelines()
    with source.artifacts(clock=lambda: 1.0) as artifacts:
        artifacts.put(b"x", ArtifactDescription(timeline=T))
    with pytest.raises(MisuseError, match="cannot hold artifacts"):
        source.copy_to(Plain())
    assert source.copy_to(Plain(), [U]).events == 4


def test_a_copy_into_a_store_that_fails_goes_on_when_it_is_repeated(tmp_path: Path) -> None:
    source = two_timelines()

    class Failing(DuckDBStore):
        """Fails once, at the second append."""

        appends = 0

        def append_bytes(
            self, timeline_id: TimelineId, events: Sequence[bytes], *, expected_version: int
        ) -> int:
            self.appends += 1
            if self.appends == 2:
                raise StoreError("the disk is full")
            return super().append_bytes(timeline_id, events, expected_version=expected_version)

    with Failing(tmp_path / "copy.duckdb") as target:
        with pytest.raises(StoreError, match="full"):
            source.copy_to(target)
        assert target.head(T) == 7
        assert source.copy_to(target) == CopyReport(timelines=1, events=4)
        assert target.read_bytes(U) == source.read_bytes(U)


class Counting(MemoryStore):
    """Counts the events that are read."""

    events = 0

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        page = super().read_bytes(timeline_id, after=after, limit=limit)
        self.events += len(page)
        return page


def test_a_copy_reads_what_is_new_and_not_the_history() -> None:
    source, target = Counting(), Counting()
    source.append(T, many(3000), expected_version=0)
    source.copy_to(target)
    assert (source.events, target.events) == (3000, 0)
    source.append(T, [prompt("new")], expected_version=3000)
    source.events = 0
    assert source.copy_to(target).events == 1
    assert source.events + target.events <= 3, "the end of the copy in both, and the new one"


@given(st.integers(0, 11))
def test_wherever_a_copy_is_interrupted_it_has_the_artifacts_that_its_events_name(
    done: int,
) -> None:
    source = MemoryStore()
    with source.artifacts(clock=lambda: 1.0) as artifacts:
        named = [
            artifacts.put(text.encode(), ArtifactDescription(timeline=TimelineId(text)))
            for text in (T, U, "elsewhere")
        ]
    for name in (T, U):
        texts = [prompt(f"{name} {artifact}") for artifact in named]
        source.append(name, texts, expected_version=0)

    class Interrupted(MemoryStore):
        """Appends one event at a time, and stops after some."""

        def append_bytes(
            self, timeline_id: TimelineId, events: Sequence[bytes], *, expected_version: int
        ) -> int:
            for at, data in enumerate(events, expected_version):
                if sum(info.version for info in self.list()) == done:
                    raise StoreError("the disk is full")
                super().append_bytes(timeline_id, [data], expected_version=at)
            return expected_version + len(events)

    target = Interrupted()
    if done < 6:
        with pytest.raises(StoreError, match="full"):
            source.copy_to(target)
    else:
        source.copy_to(target)
    held = {found.id for found in target.artifacts().list(READER)}
    for info in target.list():
        for _, data in target.read_bytes(info.id):
            assert {*artifact_ids_in(data.decode())} <= held


def test_an_artifact_that_is_damaged_keeps_nothing_else_from_being_copied() -> None:
    source, target = two_timelines(), MemoryStore()
    with source.artifacts(clock=lambda: 1.0) as artifacts:
        bad, good = (
            artifacts.put(content, ArtifactDescription(timeline=T)) for content in (b"a", b"b")
        )
        [entry] = artifacts.backend.entries(bad)
        artifacts.backend.discard(entry.slot)
    with pytest.raises(DamagedStoreError, match=f"artifact {bad}: .*foldline repair"):
        source.copy_to(target)
    assert target.read(T) == source.read(T)
    assert target.read(U) == source.read(U)
    assert [found.id for found in target.artifacts().list(READER)] == [good]


RETAINED = [*many(6), compacted("c1", cut=4), *many(3, first=8), compacted("c2", start=4, cut=9)]


def test_a_copy_of_what_is_left_has_the_same_versions(tmp_path: Path) -> None:
    targets = [open_store(f"{kind}:///{tmp_path}/a.{kind}") for kind in ("duckdb", "sqlite")]
    for target in (MemoryStore(), *targets):
        source = MemoryStore()
        source.append(T, RETAINED, expected_version=0)
        source.append(U, RETAINED, expected_version=0)
        before = source.read_bytes(U)
        source.trim(T, 9)
        source.trim(U, 9, archive=tmp_path)
        report = source.copy_to(target)
        assert report == CopyReport(timelines=2, events=14, forgotten=8)
        assert target.kept(T) == source.kept(T)
        assert target.kept(U).first == 1, "what was archived arrives as events"
        assert target.read_bytes(U) == before
        assert target.load_window(T) == source.load_window(T)
        assert target.list() == source.list()
        source.append(T, [prompt("more")], expected_version=11)
        assert source.copy_to(target).events == 1
        assert source.copy_to(target) == CopyReport()
        assert verify(target).ok
        target.close()


def test_a_copy_of_what_is_left_goes_on_where_it_stopped() -> None:
    source, target = MemoryStore(), MemoryStore()
    source.append(T, RETAINED, expected_version=0)
    source.trim(T, 9)
    for already in (3, 8):
        stand_in(target, source.list()[0], already)
        assert target.head(T) == already
    assert source.copy_to(target).events == 3
    assert target.kept(T) == source.kept(T)


def test_a_backup_keeps_what_the_source_forgets_later() -> None:
    source, target = MemoryStore(), MemoryStore()
    source.append(T, RETAINED, expected_version=0)
    source.copy_to(target)
    source.trim(T, 9)
    source.append(T, [prompt("more")], expected_version=11)
    assert source.copy_to(target).events == 1
    assert target.kept(T).first == 1
    assert len(target.read(T)) == 12
    shorter = MemoryStore()
    shorter.append(T, RETAINED[:5], expected_version=0)
    with pytest.raises(
        MisuseError, match="ends at event 5 in the target and begins at event 9 in the source"
    ):
        source.copy_to(shorter)
    assert shorter.head(T) == 5


def test_a_store_that_cannot_forget_is_given_no_log_that_has() -> None:
    source, target = MemoryStore(), Plain()
    source.append(T, RETAINED, expected_version=0)
    source.trim(T, 9)
    with pytest.raises(MisuseError, match=r"events 1 to 8 .* were removed"):
        source.copy_to(target)
    assert target.head(T) == 0


def test_what_is_left_is_saved_from_damage(tmp_path: Path) -> None:
    for kind in ("duckdb", "sqlite"):
        where, saved = f"{kind}:///{tmp_path}/b.{kind}", f"sqlite:///{tmp_path}/saved.{kind}"
        with closing(open_store(where)) as store:
            store.append(T, RETAINED, expected_version=0)
            store.trim(T, 9)
            window, kept = store.load_window(T), store.kept(T)
        report = repair(where, saved)
        assert (report.events, report.lost) == (3, ())
        with closing(open_store(saved)) as store:
            assert store.load_window(T) == window
            assert store.kept(T) == kept
        assert verify(saved).ok
