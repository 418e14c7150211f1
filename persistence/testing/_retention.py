"""What a store promises about removing events; these tests pass for a store that cannot remove events."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from blocks import (
    BlockAppended,
    DamagedStoreError,
    Event,
    ForgottenError,
    MisuseError,
    Naming,
    TimelineId,
    UnknownTimelineError,
    UserPrompt,
    label_of,
)
from persistence._store import EventStore
from persistence._verify import verify
from persistence.search._paths import block_at
from persistence.testing._events import (
    T,
    U,
    compacted,
    expanded,
    forked,
    many,
    prompt,
    refused,
    versions,
    where_they_can,
)


def _paths(log: Iterable[Event]) -> Iterator[str]:
    """The paths of all blocks, by number and by version."""
    naming = Naming()
    for version, event in enumerate(log, 1):
        if isinstance(event, BlockAppended):
            yield naming.path(event.block, version)
            yield label_of(version)


def saying(text: str, event: BlockAppended) -> BlockAppended:
    """The same event, with another text in its block."""
    block = UserPrompt(id=event.block.id, turn=event.block.turn, text=text)
    return msgspec.structs.replace(event, block=block)


LOG = [*many(6), compacted("c1", cut=4), *many(3, first=8), compacted("c2", start=4, cut=9)]
"""A log whose window begins at version 9 of 11."""
LARGE_LOG = [prompt("x" * 40_000, at=1.0), *LOG[1:]]


@where_they_can
class RetentionContract:
    """Events that the window does not need can be removed or archived; everything else stays the same."""

    def test_what_is_forgotten_is_gone_and_all_else_is_as_it_was(self, store: EventStore) -> None:
        store.append(T, LOG, expected_version=0)
        store.append(U, many(3), expected_version=0)
        before, infos = store.load_window(T), list(store.list())
        removed = store.trim(T, 9)
        assert (removed.events, removed.size > 0, removed.unused) == (8, True, ())
        assert store.load_window(T) == before
        assert (store.head(T), list(store.list())) == (11, infos), "it began when it began"
        assert versions(store.read(T, after=8)) == [9, 10, 11]
        assert versions(store.read(U)) == [1, 2, 3]
        rest = store.kept(T)
        assert (rest.forgotten, rest.first, rest.archives) == (8, 9, ())
        assert store.kept(U) == store.kept(TimelineId("nobody"))
        assert store.trimmed() == {T: rest}
        assert verify(store).ok

    def test_what_is_forgotten_says_what_can_still_be_read(self, store: EventStore) -> None:
        store.append(T, LOG, expected_version=0)
        store.trim(T, 5)
        with refused(ForgottenError):
            store.rewrite(T, {2: prompt("2", at=2.0)})
        for after in (0, 3):
            with refused(ForgottenError, "up to version 4 .*read on from version 5"):
                store.read(T, after=after)
        assert versions(store.read(T, after=4, limit=2)) == [5, 6]

    def test_nothing_that_the_window_needs_is_removed(self, store: EventStore) -> None:
        store.append(T, LOG, expected_version=0)
        store.append(U, many(3), expected_version=0)
        for name, before, start in ((T, 10, 9), (T, 12, 9), (T, 0, 9), (U, 2, 1)):
            with refused(MisuseError, f"window begins at version {start}"):
                store.trim(name, before)
        with refused(UnknownTimelineError):
            store.trim(TimelineId("nobody"), 1)
        assert versions(store.read(T)) == list(range(1, 12))

    def test_a_second_removal_goes_on_where_the_first_ended(self, store: EventStore) -> None:
        store.append(T, LOG, expected_version=0)
        assert [store.trim(T, n).events for n in (4, 4, 2, 9)] == [3, 0, 0, 5]
        assert store.kept(T).first == 9
        store.append(T, [prompt("x"), compacted("c3", start=9, cut=11)], expected_version=11)
        assert store.trim(T, 11).events == 2
        assert versions(store.read(T, after=10)) == [11, 12, 13]
        assert store.load_window(T).compaction == (13, compacted("c3", start=9, cut=11))

    def test_archived_events_are_read_through_the_store(self, store: EventStore) -> None:
        with TemporaryDirectory() as folder:
            store.append(T, LARGE_LOG, expected_version=0)
            before, window = list(store.read(T)), store.load_window(T)
            assert store.trim(T, 4, archive=folder).events == 3
            assert store.trim(T, 9, archive=folder).events == 5
            assert store.kept(T).first == 9
            assert [(a.first, a.last) for a in store.kept(T).archives] == [(1, 3), (4, 8)]
            assert list(store.read(T)) == before
            assert list(store.read(T, after=2, limit=3)) == before[2:5]
            assert list(store.read(T, after=7)) == before[7:]
            assert store.load_window(T) == window
            assert len(list(Path(folder).iterdir())) == 2, "nothing unfinished is left behind"
            assert verify(store).ok

    def test_an_archive_that_is_not_there_or_was_changed_is_named(self, store: EventStore) -> None:
        with TemporaryDirectory() as folder:
            store.append(T, LOG, expected_version=0)
            store.trim(T, 9, archive=folder)
            [file] = Path(folder).iterdir()
            data = file.read_bytes()
            for harm in (file.unlink, lambda: file.write_bytes(data[:-1] + b"x")):
                harm()
                with refused(DamagedStoreError, file.name):
                    store.read(T)
                assert [file.name in problem.what for problem in verify(store).problems] == [True]
                assert versions(store.read(T, after=8)) == [9, 10, 11]
                assert store.load_window(T).version == 11
            file.write_bytes(data)
            assert versions(store.read(T)) == list(range(1, 12))

    def test_what_is_archived_is_found_as_before(self, store: EventStore) -> None:
        with TemporaryDirectory() as folder:
            store.append(T, LARGE_LOG, expected_version=0)
            paths = [path for path in _paths(LARGE_LOG) if block_at(store, T, path)]
            before = [block_at(store, T, path) for path in paths]
            hits = store.search("text"), store.search("x" * 40)
            store.trim(T, 9, archive=folder)
            assert [block_at(store, T, path) for path in paths] == before
            assert (store.search("text"), store.search("x" * 40)) == hits
            assert len(hits[0]) > len(hits[1]) > 0

    def test_what_is_forgotten_is_found_nowhere_and_the_rest_at_a_path_of_its_own(
        self, store: EventStore
    ) -> None:
        store.append(T, LARGE_LOG, expected_version=0)
        left = {9: prompt("9", at=9.0).block, 10: prompt("10", at=10.0).block}
        store.trim(T, 9)
        paths = {hit.version: hit.path for hit in store.search("text")}
        assert paths.keys() == left.keys()
        for version, block in left.items():
            assert block_at(store, T, paths[version]) == block
            assert block_at(store, T, f"v{version}") == block
        for path in ("v3", "ar:t1.user.prompt"):
            with refused(ForgottenError, "read on from version 9"):
                block_at(store, T, path)

    def test_an_archive_needs_its_folder(self, store: EventStore) -> None:
        store.append(T, LOG, expected_version=0)
        with TemporaryDirectory() as folder, refused(MisuseError, "create it"):
            store.trim(T, 9, archive=Path(folder) / "missing")
        assert versions(store.read(T)) == list(range(1, 12))

    def test_what_was_archived_can_be_forgotten(self, store: EventStore) -> None:
        with TemporaryDirectory() as folder:
            store.append(T, LOG, expected_version=0)
            store.trim(T, 3, archive=folder)
            store.trim(T, 5, archive=folder)
            older, newer = sorted(str(path.resolve()) for path in Path(folder).iterdir())
            assert store.trim(T, 3).unused == (older,)
            assert (store.kept(T).forgotten, store.kept(T).first) == (2, 5)
            assert versions(store.read(T, after=2)) == list(range(3, 12))
            assert store.trim(T, 9).unused == (newer,)
            assert (store.kept(T).forgotten, store.kept(T).archives) == (8, ())

    def test_a_fork_has_what_its_parent_has(self, store: EventStore) -> None:
        with TemporaryDirectory() as folder:
            store.append(T, LOG, expected_version=0)
            before = list(store.read(T))
            store.trim(T, 9, archive=folder)
            assert store.fork(T, U, forked(T, 5), at=5) == 6
            assert list(store.read(U)) == [*before[:5], (6, forked(T, 5))]
            assert store.load_window(U).version == 6
            assert verify(store).ok
            assert store.trim(T, 9).unused == (), "the fork reads it"

    def test_a_fork_whose_window_is_gone_is_refused(self, store: EventStore) -> None:
        store.append(T, LOG, expected_version=0)
        store.trim(T, 9)
        with refused(ForgottenError, "cannot fork"):
            store.fork(T, U, forked(T, 10), at=10)
        assert store.head(U) == 0
        assert store.fork(T, U, forked(T, 11), at=11) == 12
        assert versions(store.read(U, after=8)) == [9, 10, 11, 12]
        assert store.load_window(U).compaction == (11, compacted("c2", start=4, cut=9))

    def test_an_archived_window_can_be_expanded_into(self, store: EventStore) -> None:
        with TemporaryDirectory() as folder:
            store.append(T, LOG, expected_version=0)
            store.trim(T, 9, archive=folder)
            store.append(T, [expanded("x", 11)], expected_version=11)
            assert versions(store.load_window(T).events) == list(range(4, 13))

    def test_a_forgotten_window_cannot_be_expanded_into(self, store: EventStore) -> None:
        store.append(T, LOG, expected_version=0)
        store.trim(T, 9)
        before = store.load_window(T)
        older: tuple[list[Event], ...] = (
            [expanded("x", 11)],
            [prompt("y"), compacted("c3", start=1, cut=2)],
        )
        for events in older:
            with refused(ForgottenError, "nothing was appended"):
                store.append(T, events, expected_version=11)
        assert store.load_window(T) == before
        more: list[Event] = [compacted("c3", start=9, cut=11), expanded("x", 12)]
        assert store.append(T, more, expected_version=11) == 13
        assert store.load_window(T).compaction == (11, compacted("c2", start=4, cut=9))

    def test_an_event_is_replaced_by_one_that_only_says_something_else(
        self, store: EventStore
    ) -> None:
        old, second = prompt("x" * 40_000, at=1.0), prompt("2", at=2.0)
        store.append(T, [old, second], expected_version=0)
        new = saying("gone", old)
        assert store.rewrite(T, {1: new}).events == 1
        assert list(store.read(T)) == [(1, new), *list(store.read(T, after=1))]
        assert store.load_window(T).events[0] == (1, new)
        for wrong in (prompt("other"), msgspec.structs.replace(new, at=5.0), compacted("c", cut=1)):
            with refused(MisuseError, "event 1 has the"):
                store.rewrite(T, {1: wrong, 2: second})
        with refused(MisuseError, "no version 9"):
            store.rewrite(T, {1: old, 9: old})
        assert list(store.read(T, limit=1)) == [(1, new)]
        assert verify(store).ok

    def test_an_archived_event_is_replaced_in_a_new_file(self, store: EventStore) -> None:
        with TemporaryDirectory() as folder:
            store.append(T, LOG, expected_version=0)
            store.trim(T, 9, archive=folder)
            [file] = Path(folder).iterdir()
            other = saying("gone", prompt("2", at=2.0))
            assert store.rewrite(T, {2: other}).unused == (str(file.resolve()),)
            assert store.read(T)[1] == (2, other)
            assert store.read(T)[2] == (3, LOG[2])

    def test_a_timeline_is_removed_and_its_name_is_free(self, store: EventStore) -> None:
        store.append(T, LARGE_LOG, expected_version=0)
        store.append(U, many(3), expected_version=0)
        assert store.remove(T).events == 11
        assert (store.head(T), [info.id for info in store.list()]) == (0, [U])
        assert list(store.read(T)) == []
        with refused(UnknownTimelineError):
            store.remove(T)
        assert store.append(T, many(2), expected_version=0) == 2
        store.append(TimelineId("third"), many(1), expected_version=0)
        assert [versions(store.read(n)) for n in (T, U, TimelineId("third"))] == [
            [1, 2],
            [1, 2, 3],
            [1],
        ]
        assert verify(store).ok

    def test_what_was_removed_can_be_erased(self, store: EventStore) -> None:
        store.append(T, LARGE_LOG, expected_version=0)
        store.append(U, many(3), expected_version=0)
        store.trim(T, 9)
        window = store.load_window(T)
        store.erase()
        assert store.load_window(T) == window
        assert store.append(U, many(1, first=4), expected_version=3) == 4
        assert versions(store.read(U)) == [1, 2, 3, 4]
        assert verify(store).ok
