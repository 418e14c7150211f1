"""Retention: what the window does not need is kept, archived or forgotten, and no request tells which."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import settings as limits

from blocks import (
    DamagedStoreError,
    ForgottenError,
    MisuseError,
    RangeCompacted,
    TimelineId,
    UnknownPathError,
)
from persistence import EventStore, MemoryStore, Removed, open_store, verify
from render import Compaction
from tests._builders import Ids, open_timeline, request_bytes
from tests._postgres import Server
from tests._sizes import sized
from tests._table import for_each
from tests.conftest import SLOW_IS_FINE
from tests.persistence.test_store import Plain
from tests.strategies import Play, settings, steps
from tests.strategies import Step as Doing
from timeline import AsyncTimeline, Step, Timeline

T = TimelineId("talk")
NewStore = Callable[[str], Any]
SOME = sized(5, 100)
LINES = 120
STEPS: tuple[str, ...] = ("expand", "hide", "restore")
"""What needs what is folded: of that, `forget` leaves nothing."""


def talked(store: EventStore, rounds: int = 6, **options: Any) -> Timeline:
    """A timeline that has compacted."""
    timeline = open_timeline(store=store, window=1_500, ids=Ids(), **options)
    for number in range(rounds):
        timeline.user(
            f"question {number}\n" + "\n".join(f"line {n} of {number}" for n in range(LINES))
        )
        timeline.record({"id": f"r{number}", "content": [{"type": "text", "text": f"a{number}"}]})
        timeline.render()
    return timeline


def compaction_of(timeline: Timeline) -> Compaction:
    """The compaction that the timeline's view begins with."""
    compaction = timeline.view.compaction
    assert compaction is not None, "it has compacted"
    return compaction


def compactions(timeline: Timeline) -> list[int]:
    log = timeline.events(after=compaction_of(timeline).event.cut - 1)
    return [version for version, event in log if isinstance(event, RangeCompacted)]


def played(all_steps: list[Doing], options: dict[str, Any], store: Any) -> Play:
    play = Play(options, store=store)
    return play.run([step for step in all_steps if step[0] not in STEPS])


def _sent(play: Play) -> Iterator[bytes]:
    return (request_bytes(request.rendered) for request in play.requests)


def _same_requests(new: NewStore, all_steps: list[Doing], options: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        stores = [stack.enter_context(closing(new(folder))) for _ in range(3)]
        kept, archived, forgotten = (
            played(all_steps, {**options, **more}, store)
            for store, more in zip(
                stores,
                ({}, {"retention": "archive", "archive": folder}, {"retention": "forget"}),
                strict=True,
            )
        )
        sent = [[*_sent(play)] for play in (kept, archived, forgotten)]
        reopened: list[bytes] = []
        assert sent[0] == sent[1] == sent[2]
        for play in (kept, archived, forgotten):
            with play.open() as timeline:
                reopened.append(request_bytes(timeline.render()))
        assert reopened[0] == reopened[1] == reopened[2]
        assert list(archived.store.read(T, limit=10_000)) == list(kept.store.read(T, limit=10_000))
        window = kept.store.load_window(T)
        first = window.events[0][0] if window.events else 1
        assert forgotten.store.kept(T).first == archived.store.kept(T).first == first


@limits(max_examples=25)  # three timelines each, and files
@given(steps(), settings())
def test_the_same_log_renders_to_the_same_requests_whatever_is_kept(
    all_steps: list[Doing], options: dict[str, Any]
) -> None:
    _same_requests(lambda _: MemoryStore(), all_steps, options)


def public(options: dict[str, Any]) -> dict[str, Any]:
    """Without tools whose results are confidential: a log that lies somewhere wants keys for these."""
    return {**options, "policy": attrs.evolve(options["policy"], tools={})}


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
@limits(max_examples=SOME)
@given(all_steps=steps(), options=settings())
def test_the_same_in_every_kind_of_file(
    kind: str, all_steps: list[Doing], options: dict[str, Any]
) -> None:
    numbers = count()
    _same_requests(
        lambda folder: open_store(f"{kind}:///{folder}/{next(numbers)}.{kind}"),
        all_steps,
        public(options),
    )


@limits(max_examples=SOME, suppress_health_check=SLOW_IS_FINE)
@given(all_steps=steps(), options=settings())
def test_the_same_on_a_server(
    postgres: Server, all_steps: list[Doing], options: dict[str, Any]
) -> None:
    _same_requests(lambda _: open_store(postgres.new_url()), all_steps, public(options))


def test_by_default_everything_is_kept(store: Any) -> None:
    assert talked(store).events()[0][0] == 1
    assert store.kept(T).first == 1


def test_what_a_compaction_has_folded_is_forgotten_once_it_is_committed(store: Any) -> None:
    timeline = talked(store, retention="forget")
    cut = compaction_of(timeline).event.cut
    assert store.kept(T).forgotten == cut - 1 > 0
    assert timeline.events(after=cut - 1)[0][0] == cut
    assert verify(store).ok


def test_what_is_archived_reads_as_if_it_were_kept(store: Any, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    kept = talked(MemoryStore())
    timeline = talked(store, retention="archive", archive=tmp_path / "old")
    assert store.kept(T).archives
    assert timeline.read("ar:t1.user.prompt") == kept.read("ar:t1.user.prompt")
    assert timeline.search("question 0") == kept.search("question 0")
    assert request_bytes(timeline.render_at(3)) == request_bytes(kept.render_at(3))
    assert timeline.fork("early", at=3).view.version == 4
    assert timeline.expand() == kept.expand()
    assert request_bytes(timeline.render()) == request_bytes(kept.render())


def test_what_is_forgotten_says_so_wherever_it_is_asked_for(store: Any) -> None:
    timeline = talked(store, retention="forget")
    timeline.flush()
    first, head = store.kept(T).first, store.head(T)
    for ask in (
        lambda: timeline.read("ar:t1.assistant.completion"),
        lambda: timeline.read("v1"),
        timeline.events,
        lambda: timeline.at(first),
        lambda: timeline.render_at(2),
        lambda: timeline.fork("early", at=first),
        timeline.expand,
        timeline.upgrade_summary,
        lambda: timeline.hide("ar:t1.assistant.completion"),
    ):
        with pytest.raises(ForgottenError, match=f"read on from version {first}"):
            ask()
    assert store.head(T) == head, "nothing was written"
    assert [info.id for info in store.list()] == [T]
    assert request_bytes(timeline.render_at(head)) == request_bytes(timeline.render())
    carried = compaction_of(timeline).head.entries[0]
    assert timeline.read(carried.path) == timeline.read(f"v{carried.version}") == carried.source
    assert timeline.fork("late").view.version == timeline.version + 1


def test_what_is_left_is_read_searched_and_hidden_as_ever(store: Any) -> None:
    timeline = talked(store, retention="forget")
    kept = talked(MemoryStore())
    for entry in timeline.view.entries:
        assert timeline.read(entry.path) == kept.read(entry.path)
    hits = timeline.search("line")
    assert {hit.path for hit in hits} <= {entry.path for entry in timeline.view.entries}
    assert hits == [
        hit for hit in kept.search("line", limit=100) if hit.version in {h.version for h in hits}
    ]
    path = hits[0].path
    timeline.hide(path)
    kept.hide(path)
    assert request_bytes(timeline.render()) == request_bytes(kept.render())
    with pytest.raises(UnknownPathError):
        kept.read("ar:t99.user.prompt")


def test_what_hidden_blocks_said_is_not_given_back_when_they_are_gone(store: Any) -> None:
    timeline = talked(store, rounds=0)
    timeline.user("the password is xyzzy-4711\n" + "pad\n" * 300)
    timeline.record(
        {"id": "r", "content": [{"type": "text", "text": "noted: xyzzy-4711 " + "pad " * 300}]}
    )
    for number in range(4):
        timeline.user(f"more {number}\n" + "pad\n" * 200)
        timeline.record({"id": f"s{number}", "content": [{"type": "text", "text": "fine"}]})
    timeline.compact()
    assert b"xyzzy" in request_bytes(timeline.render())
    timeline.hide("ar:t1.user.prompt", "ar:t1.assistant.completion")
    assert b"xyzzy" not in request_bytes(timeline.render())
    assert timeline.retain("forget").events
    timeline.hide(timeline.view.entries[0].path)
    timeline.restore(timeline.view.entries[0].path)
    assert b"xyzzy" not in request_bytes(timeline.render())


def test_what_was_kept_so_far_is_removed_by_command(store: Any, tmp_path: Path) -> None:
    timeline = talked(store)
    before = request_bytes(timeline.render())
    assert timeline.retain("keep") == Removed()
    done = timeline.retain("archive", archive=tmp_path)
    assert done.events == store.kept(T).first - 1 > 0
    assert timeline.retain("archive", archive=tmp_path) == Removed()
    assert timeline.events()[0][0] == 1
    [file] = tmp_path.glob("*.parquet")
    forgotten = timeline.retain("forget")
    assert (forgotten.events, forgotten.unused) == (done.events, ())
    assert not file.exists(), "no log names it any more"
    with pytest.raises(ForgottenError):
        timeline.events()
    assert request_bytes(timeline.render()) == before


def test_an_archive_that_cannot_be_deleted_is_named(store: Any, tmp_path: Path) -> None:
    timeline = talked(store)
    timeline.retain("archive", archive=tmp_path)
    [file] = tmp_path.glob("*.parquet")
    file.rename(tmp_path / "moved")
    assert timeline.retain("forget").unused == (str(file),)


def test_an_archive_that_is_away_takes_only_its_own_events_with_it(
    store: Any, tmp_path: Path
) -> None:
    timeline = talked(store)
    other = open_timeline("other", store=store, ids=Ids("o"))
    other.user("question of another timeline")
    timeline.retain("archive", archive=tmp_path)
    [file] = tmp_path.glob("*.parquet")
    file.rename(tmp_path / "moved")
    first = store.kept(T).first
    request = request_bytes(timeline.render())

    left, why = store.at_hand(T)
    assert (left.first, left.forgotten, left.archives) == (first, first - 1, ())
    assert file.name in why
    assert store.at_hand(other.id) == (store.kept(other.id), "")
    skims = dict(store.skim([T, other.id], 3, (), ("UsageRecorded",)))
    assert [version for version, _ in skims[T].first][:1] == [first]
    assert len(skims[other.id].first) == other.version
    assert {hit.timeline for hit in store.search("question")} == {T, "other"}
    assert all(hit.version >= first for hit in store.search("question") if hit.timeline == T)
    assert request_bytes(timeline.render_at(timeline.version)) == request
    for needs_it in (
        timeline.events,
        lambda: timeline.at(1),
        lambda: store.search("question", T),
    ):
        with pytest.raises(DamagedStoreError, match=file.name):
            needs_it()

    with closing(MemoryStore()) as target:
        with pytest.raises(DamagedStoreError, match=f"{T}: archive .*everything else was copied"):
            store.copy_to(target)
        assert [info.id for info in target.list()] == ["other"]
        (tmp_path / "moved").rename(file)
        assert store.copy_to(target).timelines == 1
        file.rename(tmp_path / "moved")

    done = timeline.forget()
    assert f"the archive {file}, which could not be removed" in done.may_remain
    assert [info.id for info in store.list()] == ["other"]


def test_a_place_to_which_archives_were_moved_is_noted(store: Any, tmp_path: Path) -> None:
    (old := tmp_path / "old").mkdir()
    timeline = talked(store)
    timeline.retain("archive", archive=old)
    before, [file] = timeline.events(), old.iterdir()
    (tmp_path / "further").mkdir()
    moved = old.rename(tmp_path / "further" / "moved")
    with pytest.raises(DamagedStoreError, match="foldline retain ID --archive PLACE"):
        timeline.events()
    other = moved / file.name
    content = other.read_bytes()
    other.write_bytes(b"another file of the same name")
    assert timeline.retain("archive", archive=moved) == Removed()
    assert store.kept(T).archives[0].file == str(file), (
        "what has another content is not the archive"
    )
    other.write_bytes(content)
    assert timeline.retain("archive", archive=moved) == Removed()
    assert store.kept(T).archives[0].file == str(other)
    assert timeline.events() == before
    assert verify(store).ok


def test_an_archive_stays_while_a_fork_reads_it(store: Any, tmp_path: Path) -> None:
    timeline = talked(store)
    timeline.retain("archive", archive=tmp_path)
    fork = timeline.fork("fork")
    assert timeline.retain("forget").unused == ()
    assert fork.events()[0][0] == 1
    assert fork.retain("forget").unused == ()
    assert list(tmp_path.glob("*.parquet")) == []


def test_without_a_compaction_there_is_nothing_to_remove() -> None:
    timeline = open_timeline()
    timeline.user("hello")
    assert timeline.retain("forget") == Removed()


def test_a_compaction_holds_when_the_archive_fails_and_the_next_one_catches_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, store = tmp_path / "old", MemoryStore()
    folder.mkdir()
    told: list[Step] = []
    timeline = talked(store, rounds=0, retention="archive", archive=folder, observers=[told.append])
    folder.rmdir()
    with caplog.at_level(logging.WARNING, "foldline"):
        for number in range(6):
            timeline.user(f"question {number}\n" + "pad and on\n" * 150)
            timeline.record({"id": f"r{number}", "content": [{"type": "text", "text": "fine"}]})
            timeline.render()
    assert timeline.view.compaction is not None
    assert "retention must be repeated" in caplog.text
    [step, *_] = [step for step in told if step.kind == "unretained"]
    assert step.timeline == T
    assert step.last > 0
    assert str(folder) in step.detail
    assert store.kept(T).first == 1
    folder.mkdir()
    timeline.user("more\n" + "pad\n" * 300)
    timeline.compact()
    assert store.kept(T).first == timeline.view.compaction.event.cut
    assert timeline.events()[0][0] == 1


def test_a_draft_that_is_committed_is_followed_by_retention_too(store: Any) -> None:
    timeline = talked(store, rounds=0, retention="forget")
    for number in range(4):
        timeline.user(f"question {number}\n" + "pad and on\n" * 150)
        timeline.record({"id": f"s{number}", "content": [{"type": "text", "text": "fine"}]})
    timeline.commit_draft(timeline.propose())
    assert store.kept(T).first == compaction_of(timeline).event.cut


@for_each(
    ("options", "why"),
    [
        ({"retention": "archive"}, "must be given together"),
        ({"archive": "."}, "must be given together"),
        ({"retention": "archive", "archive": "missing"}, "create it"),
        ({"retention": "burn"}, "keep, archive, forget"),
    ],
)
def test_a_retention_that_cannot_be_is_refused_at_once(options: dict[str, Any], why: str) -> None:
    with pytest.raises(MisuseError, match=why):
        open_timeline(**options)


def test_a_store_that_cannot_remove_is_not_asked_to() -> None:
    with pytest.raises(MisuseError, match="cannot remove events"):
        open_timeline(store=Plain(), retention="forget")


def test_the_same_for_asyncio(tmp_path: Path) -> None:
    asyncio.run(_with_asyncio(tmp_path))


async def _with_asyncio(tmp_path: Path) -> None:
    async with await AsyncTimeline.open(
        "talk", store=MemoryStore(), window=1_500, policy="default", retention="forget"
    ) as timeline:
        for number in range(8):
            await timeline.user(f"question {number}\n" + "pad and on\n" * 150)
            await timeline.render()
        assert timeline.view.compaction is not None
        assert (await timeline.retain("archive", archive=tmp_path)).events == 0
        with pytest.raises(ForgottenError):
            await timeline.read("v1")
