"""Paths are for ever: a path that was given names no other block, whatever is appended, folded, undone or
reopened later; and no two blocks have one path."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from blocks import (
    AlreadyRecordedError,
    Block,
    BlockId,
    CallId,
    Digest,
    FoldlineError,
    MisuseError,
    Naming,
    Note,
    OpaqueBlock,
    RangeSummary,
    StructuredSummary,
    TextPart,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnId,
    UserAttachment,
    UserPrompt,
    UserSteer,
    encode_block,
    text_of,
)
from persistence import DuckDBStore, MemoryStore, block_at
from tests._builders import Ids, blocks_in, open_timeline, response, steady, tool_use
from tests._table import for_each
from timeline import Timeline

Step: TypeAlias = tuple[Any, ...]

TURNS = ("t1", "t2", "t3", "t9", "a", "a.b", "t1.c1", "")
CALLS = ("c1", "c2", "c1.2", "b.c1")
NAMES = ("x", "x.2", "x.3", "y", "c1.x")
KINDS = ("prompt", "steer", "note", "call", "result", "file", "opaque", "summary")


@attrs.define
class Walk:
    """Does steps to a timeline, and notes every path that it shows."""

    store: MemoryStore = attrs.field(factory=MemoryStore)
    timeline: Timeline = attrs.field(init=False)
    shown: dict[str, tuple[int, Block]] = attrs.field(factory=dict[str, tuple[int, Block]])
    """By path: version and block."""
    _ids: Ids = attrs.field(factory=lambda: Ids("i"))
    _numbers: Ids = attrs.field(factory=lambda: Ids("word"))

    def __attrs_post_init__(self) -> None:
        self.timeline = self.open()

    def open(self) -> Timeline:
        policy = steady(keep_ratio=0.3)
        return open_timeline(store=self.store, ids=self._ids, window=2000, policy=policy)

    def run(self, steps: Sequence[Step]) -> "Walk":
        for kind, *rest in steps:
            getattr(self, f"_do_{kind}")(*rest)
            self.look(self.timeline)
        self.look(self.open())
        return self

    def look(self, timeline: Timeline) -> None:
        """What is shown now has paths that no other block had."""
        for path, version, block in _paths(timeline):
            assert self.shown.setdefault(path, (version, block)) == (version, block), path
            assert timeline.read(path) == block, path

    def _do_append(self, kind: str, turn: str, name: str) -> None:
        self.timeline.append(made(kind, TurnId(turn), name, self._ids(), self._numbers()))

    def _do_user(self) -> None:
        self.timeline.user(f"{self._numbers()} " * 20)

    def _do_say(self, kind: str) -> None:
        getattr(self.timeline, kind)(self._numbers())

    def _do_call(self, call: str) -> None:
        self.timeline.record(response(tool_use(call), tool_use(call), id=self._ids()))

    def _do_answer(self, call: str) -> None:
        with suppress(MisuseError):
            self.timeline.tool_result(call, f"{self._numbers()} line\n" * 20)

    def _do_compact(self) -> None:
        self.timeline.compact()

    def _do_expand(self) -> None:
        if self.timeline.view.compaction:
            self.timeline.expand()

    def _do_reopen(self) -> None:
        self.timeline.close()
        self.timeline = self.open()


def made(kind: str, turn: TurnId, name: str, block_id: str, text: str) -> Block:
    at: dict[str, Any] = {"id": BlockId(block_id), "turn": turn}
    match kind:
        case "prompt":
            return UserPrompt(text=text, **at)
        case "steer":
            return UserSteer(text=text, **at)
        case "note":
            return Note(text=text, **at)
        case "call":
            return ToolCall(call_id=CallId(name), name="look", input={"text": text}, **at)
        case "result":
            return ToolResult(call_id=CallId(name), parts=(TextPart(text=text),), **at)
        case "file":
            return UserAttachment(name=name, part=TextPart(text=text), **at)
        case "summary":
            own = StructuredSummary(state=text)
            return RangeSummary(start=1, cut=2, summary=own, digest=Digest(), **at)
        case _:
            return OpaqueBlock(f"their.{name}", {**at, "author": "user", "text": text})


def _paths(timeline: Timeline) -> Iterator[tuple[str, int, Block]]:
    """Paths in the view, with the version and the block that they name."""
    view = timeline.view
    if view.compaction:
        *carried, summary = view.compaction.head.entries
        yield summary.path, view.compaction.version, summary.source
        yield from ((entry.path, entry.version, entry.source) for entry in carried)
    yield from ((entry.path, entry.version, entry.source) for entry in view.entries)


def steps() -> st.SearchStrategy[list[Step]]:
    names = st.one_of(st.sampled_from(CALLS), st.sampled_from(NAMES))
    appends = st.tuples(st.just("append"), st.sampled_from(KINDS), st.sampled_from(TURNS), names)
    others = st.one_of(
        st.tuples(st.sampled_from(("user", "user", "compact", "compact", "expand", "reopen"))),
        st.tuples(st.just("say"), st.sampled_from(("steer", "followup", "note", "notice"))),
        st.tuples(st.sampled_from(("call", "answer")), st.sampled_from(CALLS)),
    )
    return st.lists(st.one_of(appends, others, others), min_size=3, max_size=30)


@given(steps())
def test_a_path_names_one_block_for_ever(all_steps: list[Step]) -> None:
    """Live and reopened, before and after compactions; and by the scan of any store."""
    walk = Walk().run(all_steps)
    event("paths by version", payload=any(path.startswith("at:") for path in walk.shown))
    for path, (_, block) in walk.shown.items():
        assert block_at(walk.store, walk.timeline.id, path) == block, path


@given(steps())
def test_who_reads_the_whole_log_gives_names_that_read_the_same_block(
    all_steps: list[Step],
) -> None:
    walk = Walk().run(all_steps)
    naming, given_names = Naming(), set[str]()
    for version, block in blocks_in(walk.timeline):
        path = naming.path(block, version)
        assert path not in given_names
        given_names.add(path)
        assert block_at(walk.store, walk.timeline.id, path) == block
        known = walk.shown.get(path)
        assert known is None or known[0] == version
    for hit in walk.store.search("word1", walk.timeline.id):
        found = block_at(walk.store, walk.timeline.id, hit.path)
        assert found == dict(blocks_in(walk.timeline))[hit.version]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBStore]:
    path: Path = tmp_path_factory.mktemp("paths") / "walks.duckdb"
    with DuckDBStore(path) as store:
        yield store


@given(steps())
def test_a_database_finds_the_same(database: DuckDBStore, all_steps: list[Step]) -> None:
    walk = Walk().run(all_steps)
    log = [found for _, found in walk.timeline.events()]
    if not log:
        return
    name = TimelineId(f"walk {len(database.list())}")
    database.append(name, log, expected_version=0)
    for path in walk.shown:
        assert block_at(database, name, path) == block_at(walk.store, walk.timeline.id, path)
    there = database.search("word", name, limit=100)
    here = walk.store.search("word", walk.timeline.id, limit=100)
    assert {hit.version: hit.path for hit in there} == {hit.version: hit.path for hit in here}


def busy(timeline: Timeline, number: int) -> None:
    for count in range(number):
        timeline.user(f"question {count} " + "filler words here " * 20)


def test_a_late_block_of_a_folded_turn_has_a_path_of_its_own() -> None:
    timeline = open_timeline(window=4000)
    timeline.user("first")
    timeline.steer("A: never touch db-2")
    busy(timeline, 30)
    timeline.compact()
    late = UserSteer(id=BlockId("late"), turn=TurnId("t1"), text="B: something else")
    version = timeline.append(late)
    assert text_of(timeline.read("ar:t1.user.steer")) == "A: never touch db-2"
    [path] = [entry.path for entry in timeline.view.entries if entry.block.id == "late"]
    assert path == f"at:{version}.t1.user.steer"
    assert timeline.read(path) == late


def test_a_path_that_an_older_version_gave_is_read_as_before() -> None:
    """It counted the blocks of a turn also when the turn had been left and entered again."""
    timeline = open_timeline()
    for turn, text in (("t1", "A"), ("t2", "B"), ("t1", "C")):
        timeline.append(UserSteer(id=BlockId(text), turn=TurnId(turn), text=text))
    assert text_of(timeline.read("ar:t1.user.steer.2")) == "C"
    assert [entry.path for entry in timeline.view.entries][2] == "at:3.t1.user.steer"


def test_each_summary_of_one_turn_has_a_path() -> None:
    timeline = open_timeline(window=1500)
    timeline.user("one long turn")
    paths: list[str] = []
    for number in range(3):
        for count in range(6):
            timeline.record(response(tool_use(f"c{number}_{count}"), id=f"m{number}_{count}"))
            timeline.tool_result(f"c{number}_{count}", f"result {number} {count}\n" * 40)
        timeline.compact()
        assert timeline.view.compaction
        head = timeline.view.compaction.head.entries[-1]
        paths.append(head.path)
        assert timeline.read(head.path) == head.block
    stem = "su:t1.conv.range.summary"
    assert paths == [stem, f"{stem}.2", f"{stem}.3"]
    assert len({encode_block(timeline.read(path)) for path in paths}) == 3


@for_each("compacts", [False, True])
def test_results_of_a_repeated_id_go_to_the_call_that_waits(compacts: bool) -> None:  # noqa: FBT001
    """Not to the one of an older turn that has its result, nor to another turn's."""
    timeline = open_timeline(window=3000)
    timeline.user("one")
    timeline.record(response(tool_use("c1"), id="m1"))
    timeline.tool_result("c1", "first\n" * 200)
    busy(timeline, 5)
    if compacts:
        timeline.compact()
    timeline.record(response(tool_use("c1"), id="m2"))
    timeline.tool_result("c1", "second")
    newest = timeline.view.entries[-1]
    assert newest.block.turn == "t6"
    assert newest.path == "tc:t6.c1.result"
    assert text_of(timeline.read("tc:t1.c1.result")).startswith("first")
    with pytest.raises(AlreadyRecordedError):
        timeline.tool_result("c1", "third")


def test_a_result_of_an_older_turn_does_not_answer_a_newer_call_of_its_id() -> None:
    timeline = open_timeline()
    timeline.user("one")
    timeline.record(response(tool_use("c1"), id="m1"))
    timeline.render()  # shows it as interrupted
    timeline.user("two")
    timeline.record(response(tool_use("c1"), id="m2"))
    old = ToolResult(
        id=BlockId("old"), turn=TurnId("t1"), call_id=CallId("c1"), parts=(TextPart(text="old"),)
    )
    timeline.append(old)
    assert timeline.open_calls == ("c1",)
    timeline.tool_result("c1", "new")
    assert timeline.view.entries[-1].block.turn == "t2"
    said = str(timeline.render().messages)
    assert said.index("old") != said.index("new")
    assert timeline.render().violations == ()


def test_a_new_turn_has_a_name_that_no_turn_had() -> None:
    timeline = open_timeline()
    timeline.append(UserPrompt(id=BlockId("a"), turn=TurnId("t2"), text="a"))
    timeline.user("b")
    assert timeline.view.turn == "t3"


def test_what_is_remembered_of_folded_names_does_not_grow() -> None:
    sizes: list[int] = []
    for number in (20, 200):
        naming = Naming()
        for count in range(number):
            call = made("call", TurnId("t1"), f"c{count}", f"b{count}", "x")
            naming.path(call, count + 1)
        naming.cut([(number + 1, made("prompt", TurnId("t1"), "", "p", "x"))])
        sizes.append(len(str(naming.named())))
    assert sizes[0] == sizes[1]


def test_a_damaged_memory_names_by_version() -> None:
    from blocks import FoldState
    from blocks._fold_state import Named

    for damaged in ("?", "AAAA", None):
        state = FoldState(named=Named(turn=TurnId("t1"), calls=damaged, turns=damaged))
        path = Naming(state, since=5).path(made("call", TurnId("t1"), "c1", "b", "x"), 9)
        assert path == "at:9.t1.c1.call"


def test_a_path_by_version_of_another_block_is_unknown() -> None:
    timeline = open_timeline()
    timeline.user("hello")
    assert text_of(timeline.read("at:2.t1.user.prompt")) == "hello"
    for path in ("at:1.t1.user.prompt", "at:9.t1.user.prompt", "at:0.t1.user.prompt", "at:2."):
        with pytest.raises(FoldlineError):
            timeline.read(path)
