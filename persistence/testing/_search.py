"""What search, reading by path and `verify` promise for every store, with or without an index of its own."""

from collections.abc import Iterator

from blocks import (
    Block,
    BlockAppended,
    BlockId,
    CallId,
    Event,
    EventId,
    Naming,
    SummaryReplaced,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    UserPrompt,
    label_of,
)
from persistence._memory import MemoryStore
from persistence._store import EventStore
from persistence._verify import verify
from persistence.search._find_by_path import block_at
from persistence.search._search import search_blocks
from persistence.testing._events import T, U, compacted, many

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
        asked, given = {"n": 1e-5}, (TextPart(text=text),)
        yield UserPrompt(id=BlockId(f"p{number}"), turn=turn, text=text)
        yield ToolCall(id=BlockId(f"c{number}"), turn=turn, call_id=call, name="run", input=asked)
        yield ToolResult(id=BlockId(f"r{number}"), turn=turn, call_id=call, parts=given)


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
            found = search_blocks(store, query)
            assert found, query
            assert found == search_blocks(plain, query), query
            assert search_blocks(store, query, T) == search_blocks(plain, query, T), query

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
        named = (f"at:{folded}.t1.conv.range.summary", label_of(folded))
        for path in ("su:t1.conv.range.summary", *named):
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
