"""What copies, search, paths, `verify` and skims promise for every store, whatever it does for them itself."""

from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from blocks import (
    Block,
    BlockAppended,
    BlockId,
    CallId,
    CodecError,
    Event,
    EventId,
    MisuseError,
    Naming,
    SummaryReplaced,
    TextPart,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnId,
    UserPrompt,
    VersionConflictError,
    decode_event,
    encode_event,
    kind_of,
    label_of,
)
from persistence._memory import MemoryStore
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
    where_it_can,
)

OLD = b'{"event":"FromTheFuture","id":"e",  "at":1.50, "deep":{"b":1e2,"a":null}}'
"""JSON in a form that this version would not write."""


class CopyContract:
    """Timelines can be copied from a store into another one and back."""

    def test_bytes_come_back_as_they_went_in(self, store: EventStore) -> None:
        assert store.append_bytes(T, [OLD, encode_event(compacted("c", cut=1))], expected_version=0)
        store.append(T, many(2), expected_version=2)
        rows = store.read_bytes(T, limit=3)
        is_exact = type(store).append_bytes is not EventStore.append_bytes
        assert rows[0] == (1, OLD if is_exact else encode_event(decode_event(OLD)))
        assert versions(store.read(T)) == [1, 2, 3, 4]
        assert [data for _, data in store.read_bytes(T, after=2)] == [
            encode_event(event) for event in many(2)
        ]
        assert store.load_window(T).compaction == (2, compacted("c", cut=1))

    def test_bytes_are_appended_under_the_rules_of_append(self, store: EventStore) -> None:
        data = [encode_event(event) for event in many(2)]
        assert store.append_bytes(T, data, expected_version=0) == 2
        assert store.append_bytes(T, data, expected_version=0) == 2, "a repeat"
        with refused(VersionConflictError):
            store.append_bytes(T, [OLD], expected_version=1)
        with refused(MisuseError):
            store.append_bytes(T, [], expected_version=2)
        with refused(CodecError):
            store.append_bytes(T, [*data, b"[1]"], expected_version=2)
        assert store.head(T) == 2

    def test_a_copy_of_a_copy_is_the_original(self, store: EventStore) -> None:
        first, last = MemoryStore(), MemoryStore()
        first.append(T, odd_log(), expected_version=0)
        first.append(U, many(3), expected_version=0)
        first.copy_to(store)
        store.copy_to(last)
        for name in (T, U):
            assert last.read_bytes(name) == first.read_bytes(name)
            assert store.load_window(name) == first.load_window(name)
        assert [info.id for info in store.list()] == [info.id for info in first.list()]


NAMES = ("t1", "t.1", "7", 'say "hi"', "back\\slash", "naïve", "None", "line\nbreak", "語")
"""Names of turns and calls that are difficult for paths, JSON or SQL."""
TEXTS = (
    *("Error", "ERRORS", "straße", "STRASSE", "ﬁle", 'say "hi"', "back\\slash", "100%", "語", "İ"),
    "far behind " + "x" * 40_000 + " needle",
)
QUERIES = (
    *("error", '"say "', "strasse", "file", "back\\slash", "100%", "語", "needle", "1e-05"),
    *("error -errors", "type:react.tool.call", "error type:user.prompt", "x turn:t.1"),
)


def _blocks() -> Iterator[Block]:
    for number, name in enumerate(NAMES * 2):
        turn, call = TurnId(name), CallId(NAMES[-number % len(NAMES)])
        text = TEXTS[number % len(TEXTS)]
        value, parts = {"n": 1e-5}, (TextPart(text=text),)
        yield UserPrompt(id=BlockId(f"p{number}"), turn=turn, text=text)
        yield ToolCall(id=BlockId(f"c{number}"), turn=turn, call_id=call, name="run", input=value)
        yield ToolResult(id=BlockId(f"r{number}"), turn=turn, call_id=call, parts=parts)


def odd_log() -> list[Event]:
    """A log of blocks with difficult names and texts, some of them folded."""
    blocks = [*_blocks()]
    log: list[Event] = [
        BlockAppended(id=EventId(f"e{number}"), at=float(number), block=block)
        for number, block in enumerate(blocks)
    ]
    fold = compacted("fold", cut=len(log) // 2)
    again = SummaryReplaced(
        id=EventId("again"),
        at=3.0,
        compaction=len(log) + 1,
        summary=compacted("better", cut=len(log) // 2).summary,
    )
    return [*log, fold, again]


class SearchContract:
    """Whatever index a store has, its results are those of reading everything."""

    def test_search_finds_what_a_scan_finds(self, store: EventStore) -> None:
        plain = MemoryStore()
        for each in (store, plain):
            each.append(T, odd_log(), expected_version=0)
            each.append(U, many(3), expected_version=0)
        for query in QUERIES:
            hits = store.search(query)
            assert hits, query
            assert hits == plain.search(query), query
            assert store.search(query, T) == plain.search(query, T), query

    def test_every_path_leads_to_its_block(self, store: EventStore) -> None:
        log, naming = odd_log(), Naming()
        store.append(T, log, expected_version=0)
        blocks = [event.block for event in log if isinstance(event, BlockAppended)]
        for version, block in enumerate(blocks, 1):
            path = naming.path(block, version)
            assert block_at(store, T, path) == block, path
            assert block_at(store, T, label_of(version)) == block
            assert block_at(store, T, f"[{label_of(version)}]") == block
        rewritten, folded = log[-1], len(blocks) + 1
        assert isinstance(rewritten, SummaryReplaced)
        names = (f"at:{folded}.t1.conv.range.summary", label_of(folded))
        for path in ("su:t1.conv.range.summary", *names):
            assert block_at(store, T, path) == rewritten.summary, path
        for none in ("ar:t9.user.prompt", label_of(len(log)), label_of(len(log) + 1), "v0", "v1.2"):
            assert block_at(store, T, none) is None, none
        assert block_at(store, U, "ar:t1.user.prompt") is None

    def test_a_sound_store_is_found_to_be_sound(self, store: EventStore) -> None:
        store.append(T, odd_log(), expected_version=0)
        store.append(U, many(3), expected_version=0)
        report = verify(store)
        assert report.ok, report.problems
        assert (report.timelines, report.events) == (2, len(odd_log()) + 3)


FIRST = 3
KINDS = ("RangeExpanded", "TimelineForked", "its kind")
ALWAYS = ("RangeExpanded", "RangeCompacted")
LOGS: dict[TimelineId, list[Event]] = {
    TimelineId("short"): many(2),
    TimelineId("large"): [prompt("x" * 40_000), *many(5, first=2), expanded("e" * 40_000, 1)],
    TimelineId("folded"): [*many(6), compacted("c1", cut=4), *many(3, first=8), expanded("e", 2)],
    TimelineId("undone"): [
        *many(4),
        compacted("c1", cut=3),
        compacted("c2", cut=5),
        expanded("e", 6),
    ],
    T: [*many(6), compacted("c1", cut=4), *many(3, first=8), compacted("c2", start=4, cut=9)],
}


def filled(store: EventStore) -> list[TimelineId]:
    """Append all logs and a fork; return their names and one of an unknown timeline."""
    for name, events in LOGS.items():
        store.append(name, events, expected_version=0)
    store.fork(T, U, forked(T, 8), at=8)
    return [U, TimelineId("nobody's"), *LOGS]


def slowly(store: EventStore, name: TimelineId, kinds: Collection[str]) -> tuple[object, ...]:
    """The parts of a skim, found by reading the whole window."""
    window, forgotten = store.load_window(name), store.kept(name).forgotten
    return (
        list(store.read(name, after=forgotten, limit=FIRST)),
        window.compaction,
        [each for each in window.events if kind_of(each[1]) in kinds],
        [each for each in store.read(name, after=forgotten) if kind_of(each[1]) in ALWAYS],
    )


def _check(store: EventStore, names: list[TimelineId]) -> None:
    for kinds in (KINDS, ("RangeCompacted",), ()):
        skims = {
            name: (list(skim.first), skim.compaction, list(skim.window), list(skim.always))
            for name, skim in store.skim(names, FIRST, kinds, ALWAYS)
        }
        assert skims.keys() == set(names)
        for name in names:
            assert skims[name] == slowly(store, name, kinds), (name, kinds)


class SkimContract:
    """A skim returns what reading the logs would return."""

    def test_a_little_of_many_timelines_is_what_reading_them_finds(self, store: EventStore) -> None:
        _check(store, filled(store))
        assert list(store.skim([], FIRST, KINDS)) == []

    def test_more_timelines_than_go_into_one_question_are_found(self, store: EventStore) -> None:
        names = [TimelineId(f"n{number}") for number in range(300)]
        for name in names:
            store.append(name, [prompt(name)], expected_version=0)
        events = {n: [e for _, e in s.first] for n, s in store.skim(names, 1, KINDS)}
        assert events == {name: [prompt(name)] for name in names}

    @where_it_can
    def test_where_events_were_removed_the_first_are_those_that_are_left(
        self, store: EventStore
    ) -> None:
        names = filled(store)
        with TemporaryDirectory() as folder:
            store.trim(T, 5, archive=Path(folder))
            _check(store, names)
            store.trim(TimelineId("folded"), 3)
            _check(store, names)
