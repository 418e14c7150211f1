"""A search finds what is there, wherever it is stored, and says where to read it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    CallId,
    Digest,
    DocumentPart,
    Event,
    EventId,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    RangeCompacted,
    RangeSummary,
    StructuredSummary,
    SummaryReplaced,
    TextPart,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnId,
    UserAttachment,
    UserPrompt,
    label_of,
    path_at,
    path_of,
    path_stem,
    turn_in,
)
from persistence import EventStore, Hit, MemoryStore, block_at, source_at
from persistence._store import Scan
from persistence.search._index import CONDITIONS_MAX, FOLDED_TO_ASCII
from persistence.search._search import Query
from tests import _builders as make
from tests._sizes import sized
from tests._table import for_each
from tests.persistence.contract import STORES, new_store
from timeline import Timeline

T = TimelineId("talk")
_ids = count()


def prompt(text: str, turn: str = "t1") -> UserPrompt:
    return UserPrompt(id=BlockId(f"b{next(_ids)}"), turn=TurnId(turn), text=text)


def said(text: str, turn: str = "t1") -> AssistantCompletion:
    return AssistantCompletion(id=BlockId(f"b{next(_ids)}"), turn=TurnId(turn), text=text)


def call(call_id: str, turn: str = "t1", **arguments: Any) -> ToolCall:
    return ToolCall(
        id=BlockId(f"b{next(_ids)}"),
        turn=TurnId(turn),
        call_id=CallId(call_id),
        name="bash",
        input=arguments,
    )


def result(call_id: str, text: str, turn: str = "t1") -> ToolResult:
    return ToolResult(
        id=BlockId(f"b{next(_ids)}"),
        turn=TurnId(turn),
        call_id=CallId(call_id),
        parts=(TextPart(text=text),),
    )


def put(
    store: EventStore, *blocks: Block, name: str = T, at: Sequence[float] = ()
) -> Sequence[BlockAppended]:
    times = at or [1_000.0 + n for n in range(len(blocks))]
    events = [
        BlockAppended(id=EventId(f"e{n}"), at=times[n], block=block)
        for n, block in enumerate(blocks)
    ]
    store.append(TimelineId(name), events, expected_version=0)
    return events


@pytest.fixture(scope="module", params=STORES[1:])
def file(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EventStore]:
    with closing(new_store(request, tmp_path_factory.mktemp("search"))) as store:
        yield store


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    with closing(new_store(request, tmp_path)) as store:
        yield store


def paths(hits: Sequence[Hit]) -> list[str]:
    return [hit.path for hit in hits]


def marked(hit: Hit) -> list[str]:
    return [hit.snippet[start:end] for start, end in hit.matches]


def test_all_words_must_be_there_in_any_order_and_case(store: EventStore) -> None:
    put(store, prompt("The disk is FULL."), said("A full disk, again."), said("The disk is fine."))
    hits = store.search("disk full")
    assert sorted(paths(hits)) == ["ar:t1.assistant.completion", "ar:t1.user.prompt"]
    assert {word.casefold() for hit in hits for word in marked(hit)} == {"disk", "full"}


def test_a_phrase_stands_as_it_is_whatever_white_space_is_in_it(store: EventStore) -> None:
    put(store, result("a", "No space\n  left on device"), result("b", "left on no space device"))
    (hit,) = store.search('"no space left"')
    assert hit.path == "tc:t1.a.result"
    assert marked(hit) == ["No space\n  left"]


def test_what_is_excluded_is_not_found(store: EventStore) -> None:
    put(store, prompt("error, fatal"), said("error: out of memory"), said("error of the disk"))
    assert len(store.search("error")) == 3
    assert paths(store.search('error -fatal -"out of memory"')) == ["ar:t1.assistant.completion.2"]


def test_kinds_and_turns_say_where_to_look(store: EventStore) -> None:
    put(store, prompt("port 80"), said("port 80"), prompt("port 80", "t2"), result("c", "port"))
    assert paths(store.search("port type:user.prompt turn:t2")) == ["ar:t2.user.prompt"]
    assert len(store.search("port type:user.prompt type:react.tool.result")) == 3
    assert len(store.search("port -type:user.prompt")) == 2
    assert paths(store.search("turn:t2")) == ["ar:t2.user.prompt"]


def test_words_inside_words_are_found_and_rank_lower(store: EventStore) -> None:
    put(store, said("reparsed"), said("parse it"), said("parser"))
    assert [hit.snippet for hit in store.search("parse")] == [
        "parse it",
        "parser",
        "reparsed",
    ]


def test_of_equal_hits_the_newest_is_first(store: EventStore) -> None:
    put(store, prompt("same"), prompt("same"), prompt("same"), at=[5.0, 9.0, 9.0])
    assert [hit.version for hit in store.search("same")] == [3, 2, 1]
    assert [hit.version for hit in store.search("same", limit=1)] == [3]


def test_a_short_block_that_repeats_the_word_comes_before_a_long_one(store: EventStore) -> None:
    put(store, said("timeout " + "filler " * 900), said("timeout, again timeout"))
    assert [hit.version for hit in store.search("timeout")] == [2, 1]


@for_each(
    ("text", "query"),
    [
        ('say "hi"\n\tthen go', 'hi"'),
        ('say "hi"\n\tthen go', "then"),
        ("C:\\temp\\new", "c:\\temp\\new"),
        ("Straße", "STRASSE"),
        ("273 \u212a", "k"),
        ("\u017feen", "seen"),
        ("größer als ПРИВЕТ", "привет GRÖSSER"),
        ("語 日本語です", "日本語"),
        ("nul \0 here", "nul \0"),
        ("lone \ud800 half", "\ud800"),
        ("📦 shipped", "📦"),
        ("a/b&c<d>", "/b&c<d>"),
    ],
)
def test_what_json_escapes_or_case_folds_is_found(store: EventStore, text: str, query: str) -> None:
    name = f"about {text!a}"
    put(store, prompt("other"), prompt(text), name=name)
    assert [hit.version for hit in store.search(query, timeline=TimelineId(name))] == [2]


@for_each("number", [1e16, 1e-05, 1.5e17, 5e-324, 2**70, 12345, 0.1])
def test_numbers_are_found_as_python_writes_them(store: EventStore, number: float) -> None:
    put(store, call("c", limit=number), name=str(number))
    found = store.search(str(number), timeline=TimelineId(str(number)))
    assert paths(found) == ["tc:t1.c.call"]


def test_everything_that_a_block_says_is_searched_and_no_stand_in(store: EventStore) -> None:
    image = ImagePart(data="aGVsbG8=")
    put(
        store,
        UserAttachment(
            id=BlockId("a"), turn=TurnId("t1"), name="plan.md", part=TextPart(text="step")
        ),
        UserPrompt(
            id=BlockId("b"),
            turn=TurnId("t1"),
            text="see",
            parts=(image, DocumentPart(name="x.pdf")),
        ),
        AssistantThinking(id=BlockId("c"), turn=TurnId("t1"), provider={"thinking": "hm, odd"}),
        call("c1", command="make all", nested={"deep": ["leaf"]}),
        OpaqueBlock("their.kind", {"id": "o", "turn": "t1", "text": "foreign words"}),
        AssistantThinking(
            id=BlockId("d"), turn=TurnId("t1"), provider={"summary": [{"text": "perhaps rather"}]}
        ),
    )
    for query, version in (
        ("plan.md", 1),
        ("x.pdf", 2),
        ("odd", 3),
        ("leaf", 4),
        ("foreign", 5),
        ("rather", 6),
    ):
        assert [hit.version for hit in store.search(query)] == [version], query
    assert store.search("image") == []
    assert store.search("aGVsbG8") == []


def test_the_path_of_a_hit_reads_the_block(store: EventStore) -> None:
    """Repeated call ids and several completions in a turn: the ordinal counts."""
    timeline = Timeline.open("x", store=store)
    for number in range(4):
        timeline.append(said(f"step {number}"), call("c1", n=f"go {number}"))
        timeline.append(result("c1", f"ran {number}"))
    for query in ("step 2", "go 3", "ran 1"):
        (hit,) = store.search(query)
        assert hit.path.endswith((".2", ".3", ".4"))
        text = getattr(timeline.read(hit.path), "text", None) or str(timeline.read(hit.path))
        assert query.split()[1] in text


def test_timelines_are_searched_together_or_one_alone(store: EventStore) -> None:
    put(store, prompt("needle"), name="one")
    put(store, prompt("hay"), prompt("needle"), name="two", at=[1.0, 2.0])
    assert [(hit.timeline, hit.version) for hit in store.search("needle")] == [
        ("one", 1),
        ("two", 2),
    ]
    assert [hit.timeline for hit in store.search("needle", TimelineId("two"))] == ["two"]
    assert store.search("needle", TimelineId("nobody")) == []


def test_a_snippet_is_bounded_and_shows_where_the_words_are_together(store: EventStore) -> None:
    filler = "lorem ipsum " * 200
    put(store, prompt(f"alpha {filler}\n{filler} beta with alpha {filler}"))
    (hit,) = store.search("alpha beta")
    assert len(hit.snippet) <= 240
    assert marked(hit) == ["beta", "alpha"]


def test_positions_hold_where_folding_makes_two_letters_of_one(store: EventStore) -> None:
    put(store, prompt("ßßß İ Straße ﬁn"))
    (hit,) = store.search("strasse fin")
    assert marked(hit) == ["Straße", "ﬁn"]


@for_each("query", ["", "  ", '""', "-only", "-type:user.prompt", "x" * 5_000])
def test_a_query_that_asks_for_nothing_is_refused(query: str) -> None:
    with pytest.raises(MisuseError):
        MemoryStore().search(query)


@for_each("limit", [0, -1, 1_001])
def test_a_limit_out_of_range_is_refused(limit: int) -> None:
    with pytest.raises(MisuseError, match="limit"):
        MemoryStore().search("x", limit=limit)


def test_what_is_typed_is_never_sql_and_never_a_pattern(store: EventStore) -> None:
    put(store, prompt("100% of it's (all) [a-z]*"))
    for query in ("100%", "it's", "(all)", "[a-z]*", "' OR 1=1 --"):
        hits = store.search(query)
        assert len(hits) == (query[0] != "'"), query


def test_the_longest_queries_and_limits_are_answered(store: EventStore) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = " ".join(a + b for a in letters for b in letters)
    put(store, prompt(words), prompt("x" * 4_000), *(result(f"c{n}", "port") for n in range(1_200)))
    assert [hit.version for hit in store.search(words)] == [1]
    assert [hit.version for hit in store.search("x" * 4_000)] == [2]
    assert store.search(" ".join(f"type:k{n}" for n in range(400))) == []
    hits = store.search("port", limit=1_000)
    assert [hit.path for hit in hits] == [f"tc:t1.c{n}.result" for n in range(1_199, 199, -1)]


def test_a_search_and_appends_do_not_disturb_each_other(store: EventStore) -> None:
    put(store, *(prompt(f"needle {n}") for n in range(3_000)), name="old")

    def append(worker: int) -> None:
        for n in range(20):
            event = BlockAppended(id=EventId(f"{worker}.{n}"), at=1.0, block=prompt("hay"))
            store.append(TimelineId(f"new {worker}"), [event], expected_version=n)

    with ThreadPoolExecutor(3) as pool:
        appends = [pool.submit(append, worker) for worker in range(2)]
        found = [store.search("needle", limit=50) for _ in range(4)]
        for each in appends:
            each.result()
    assert all(hits == found[0] for hits in found)
    assert len(store.search("hay", limit=50)) == 40


# Both ways find the same.

PIECES = (
    *("disk", "Disk", "FULL", "tool", "react", "t1", "block", "type", "e1", "1e-05", "12", "x_1"),
    *('"', "\\", "\\u0041", "\n", "\t", " ", "-", "ß", "ſ", "\u212a", "İ", "ﬁ", "ς", "Σ", "é", "É"),
    *("ж", "Ж", "語", "א", "\ud800", "\0", "📦", "'", "%", "_", "[", "1", "."),
)
texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
turns = st.sampled_from(("t1", "t2", "t1.user", "3", 'a"b', "None"))
call_ids = st.sampled_from(("c1", "c1.x", "12", 'q"', "toolu_1"))
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from((1e16, 1e-5, 1e-7)),
    st.integers(-(2**70), 2**70),
)


def opaque(turn: object, tag: str, text: str) -> OpaqueBlock:
    return OpaqueBlock(tag, {"id": "o", "turn": turn, "text": text})


blocks = st.one_of(
    st.builds(prompt, texts, turns),
    st.builds(said, texts, turns),
    st.builds(call, call_ids, turns, a=st.one_of(texts, numbers, st.lists(texts, max_size=2))),
    st.builds(result, call_ids, texts, turns),
    st.builds(
        opaque,
        st.one_of(turns, st.sampled_from((3, None, 1e16, True))),
        st.sampled_from(("prompt", "user.prompt", "x")),
        texts,
    ),
)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Sequence[Block], str]:
    """A few blocks, and a query that is made of what they say, mostly."""
    made = draw(st.lists(blocks, min_size=1, max_size=12))
    words = [word for block in made for word in str(getattr(block, "text", "")).split()]
    words += [
        str(value)
        for block in made
        if isinstance(block, ToolCall)
        for value in block.input.values()
    ]
    pieces = st.sampled_from([*words, "disk", "1"]).flatmap(
        lambda word: st.integers(0, len(word)).map(lambda start: word[start : start + 5])
    )
    shapes = st.sampled_from(
        ("{}", "{}", "{}", '"{}"', "-{}", "type:{}", "turn:t1 {}", "type:x {}")
    )
    parts = draw(st.lists(st.builds(str.format, shapes, pieces), min_size=1, max_size=3))
    return made, " ".join(parts)


@given(asked())
def test_the_fast_way_and_the_slow_one_find_the_same(
    file: EventStore, case: tuple[Sequence[Block], str]
) -> None:
    made, query = case
    name, memory = TimelineId(f"log {next(_ids)}"), MemoryStore()
    put(file, *made, name=name)
    put(memory, *made, name=name)
    try:
        Query.read(query)
    except MisuseError:
        return
    assert not isinstance(file.block_index(), Scan)
    assert isinstance(memory.block_index(), Scan)
    fast = file.search(query, name)
    assert fast == memory.search(query, name)
    timeline = Timeline.open(name, store=memory)
    for hit in fast:
        assert hit.version in {v for v, e in timeline.events() if isinstance(e, BlockAppended)}
        assert all(0 <= start < end <= len(hit.snippet) for start, end in hit.matches)


said_in = st.sampled_from(("t1", "t2", "t1.user", "x", 'a"b', "é", ""))
spoken = st.one_of(
    st.builds(prompt, st.sampled_from(("needle", "hay")), said_in),
    st.builds(result, call_ids, st.sampled_from(("needle", "hay")), said_in),
    st.builds(opaque, st.sampled_from(("t1", "x", 3, None)), st.just("prompt"), texts),
)
LATE = [prompt("needle"), result("c1", "hay", "t2"), prompt("hay", "t2"), prompt("needle")]
"""The second turn begins behind a late result of its own."""


@given(st.lists(spoken, min_size=1, max_size=16))
@example(LATE)
@example([result("c1", "needle", "x"), prompt("needle", "x"), prompt("needle", "x")])
@example([prompt("hay", "x"), prompt("hay", ""), result("c", "needle", "t1"), prompt("needle")])
@example([opaque(None, "prompt", ""), result("c1", "needle", "t1")])
def test_paths_are_the_same_however_turns_and_late_results_mix(
    file: EventStore, made: list[Block]
) -> None:
    name, memory = TimelineId(f"log {next(_ids)}"), MemoryStore()
    put(file, *made, name=name)
    put(memory, *made, name=name)
    fast = file.search("needle", name)
    assert fast == memory.search("needle", name)


def test_hits_of_more_turns_than_are_asked_for_one_by_one(file: EventStore) -> None:
    made = [prompt("needle", f"t{n}") for n in range(1, 3 * CONDITIONS_MAX)] * 2
    made = [msgspec.structs.replace(block, id=BlockId(f"{n}")) for n, block in enumerate(made)]
    name, memory = TimelineId(f"log {next(_ids)}"), MemoryStore()
    put(file, *made, name=name)
    put(memory, *made, name=name)
    fast = file.search("needle", name, limit=1_000)
    assert len(fast) == len(made)
    assert fast == memory.search("needle", name, limit=1_000)


def test_every_letter_that_folds_to_ascii_is_known() -> None:
    """The stability policy of Unicode fixes this set; a new letter would break the fast way."""
    letters = (chr(code) for code in range(128, 0x110000))
    found = {one for one in letters if any(part.isascii() for part in one.casefold())}
    assert found == set(FOLDED_TO_ASCII)


def test_letters_without_case_are_left_alone_by_python_and_by_the_database() -> None:
    import unicodedata

    plain = [c for c in map(chr, range(128, 0x110000)) if unicodedata.category(c) == "Lo"]
    everything = map(chr, range(128, 0x110000))
    folded = {part for c in everything if c.casefold() != c for part in c.casefold()}
    assert not folded & set(plain)
    joined = "".join(plain)
    ((lowered,),) = duckdb.connect().execute("SELECT lower(?)", [joined]).fetchall()
    assert lowered == joined


# A block is found at its path in every store alike, and in the same place as in the whole log.


TALK = TimelineId("a talk")
U = TimelineId("another")
NAMES = (
    *("t1", "t.1", "1", "2", "t1.c1", "call", "c1", "c1.2", 'say "hi"', "back\\slash", "naïve", ""),
    *("None", "line\nbreak", "語", "\0", "result.call", "conv.range.summary"),
)
"""Of turns, calls and files: what a path, JSON or SQL could trip over."""


def summary(turn: str, task: str) -> RangeSummary:
    return RangeSummary(
        id=BlockId("s"),
        turn=TurnId(turn),
        start=1,
        cut=2,
        summary=StructuredSummary(task=task),
        digest=Digest(),
    )


def made(kind: str, turn: str, name: str, n: int) -> Event:
    """An event of a kind; its number is in it, so that no two are equal."""
    at: dict[str, object] = {"id": BlockId(f"b{n}"), "turn": TurnId(turn)}
    text = f'{n}: "{name}" t1 c1 call'
    blocks: dict[str, Block] = {
        "call": ToolCall(
            id=BlockId(f"b{n}"), turn=TurnId(turn), call_id=CallId(name), name="x", input={"n": n}
        ),
        "result": ToolResult(
            id=BlockId(f"b{n}"),
            turn=TurnId(turn),
            call_id=CallId(name),
            parts=(TextPart(text=text),),
        ),
        "file": UserAttachment(
            id=BlockId(f"b{n}"), turn=TurnId(turn), name=name, part=TextPart(text=text)
        ),
        "prompt": UserPrompt(id=BlockId(f"b{n}"), turn=TurnId(turn), text=text),
        "answer": AssistantCompletion(id=BlockId(f"b{n}"), turn=TurnId(turn), text=text),
        "foreign": OpaqueBlock(name or "x", {**at, "text": text}),
        "odd": OpaqueBlock("react.tool.call", {"id": f"b{n}", "turn": n % 3}),
        "imported": summary(turn, text),
    }
    match kind:
        case "compacted":
            return RangeCompacted(
                id=EventId(f"e{n}"), at=0.0, start=1, cut=2, summary=summary(turn, text)
            )
        case "replaced":
            return SummaryReplaced(
                id=EventId(f"e{n}"),
                at=0.0,
                compaction=1,
                summary=summary(turn, text),
            )
        case _:
            return BlockAppended(id=EventId(f"e{n}"), at=0.0, block=blocks[kind])


KINDS = (
    *("call", "result", "file", "prompt", "answer", "foreign", "odd", "imported"),
    *("compacted", "replaced"),
)
EVENTS = st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES), st.sampled_from(NAMES))


def everything(log: Sequence[Event]) -> dict[str, Block]:
    """By path: what is there, worked out from the whole log."""
    own: dict[str, Block] = {}
    alike: dict[str, Block] = {}
    counts, all_counts, folds = Counter[str](), Counter[str](), Counter[str]()
    summaries: dict[int, list[str]] = {}
    for version, event in enumerate(log, 1):
        if isinstance(event, BlockAppended):
            block, stem = event.block, path_stem(event.block)
            all_counts[stem] += 1
            alike.setdefault(path_of(block, all_counts[stem]), block)
            if block.turn == turn_in(stem) and not isinstance(block, RangeSummary):
                counts[stem] += 1
                own.setdefault(path_of(block, counts[stem]), block)
            own |= dict.fromkeys((path_at(block, version), label_of(version)), block)
        elif isinstance(event, RangeCompacted):
            stem = path_stem(event.summary)
            folds[stem] += 1
            named = (path_at(event.summary, version), label_of(version))
            paths = [path_of(event.summary, folds[stem]), *named]
            summaries[version] = [path for path in paths if path not in own]
            own |= dict.fromkeys(summaries[version], event.summary)
        elif isinstance(event, SummaryReplaced):
            stem = path_stem(event.summary)
            paths = summaries.get(event.compaction, [])
            own |= {path: event.summary for path in paths if path_stem(own[path]) == stem}
    return {**alike, **own}


@pytest.fixture(scope="module", params=STORES)
def shared_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EventStore]:
    with closing(new_store(request, tmp_path_factory.mktemp("paths"))) as shared_store:
        yield shared_store


@settings(max_examples=sized(15, 60), deadline=None)
@given(log=st.lists(EVENTS, min_size=1, max_size=25))
def test_every_path_of_a_log_leads_to_its_block_in_every_store(
    shared_store: EventStore, log: list[tuple[str, str, str]]
) -> None:
    events = [made(kind, turn, name, n) for n, (kind, turn, name) in enumerate(log)]
    there = everything(events)
    asked = [*there, *(f"{path}.2" for path in there), *(f"{path}.x" for path in there)]
    timeline = TimelineId(f"log {len(shared_store.list())}")
    shared_store.append(timeline, events, expected_version=0)
    for path in asked:
        assert block_at(shared_store, timeline, path) == there.get(path), path


def test_another_timelines_blocks_are_not_found(shared_store: EventStore) -> None:
    shared_store.append(TALK, [made("prompt", "t1", "", 1)], expected_version=0)
    shared_store.append(U, [made("prompt", "t1", "", 2)], expected_version=0)
    first, second = (block_at(shared_store, name, "ar:t1.user.prompt") for name in (TALK, U))
    assert first
    assert second
    assert (first.id, second.id) == ("b1", "b2")
    assert block_at(shared_store, TimelineId("nobody"), "ar:t1.user.prompt") is None


def test_a_block_is_found_by_where_it_came_from(shared_store: EventStore) -> None:
    talk = TimelineId("sources")
    blocks: list[Block] = [
        replace(make.prompt("m3 is no source here"), source="m1"),
        make.said("b", response="msg_ÄÖ\"'%_\\1"),
        replace(make.said("c"), source="M1"),
        replace(make.said("d"), source="m1"),
    ]
    events = [BlockAppended(id=EventId(str(n)), at=float(n), block=b) for n, b in enumerate(blocks)]
    shared_store.append(talk, events, expected_version=0)
    found = [
        source_at(shared_store, talk, name) for name in ("m1", "M1", "msg_ÄÖ\"'%_\\1", "m3", "m")
    ]
    assert found == [4, 3, 2, 0, 0]
    assert source_at(shared_store, TimelineId("other"), "m1") == 0
