"""Quality signals: what a log tells about how well the agent got along, in a file and out of one."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    ArtifactId,
    Block,
    BlocksHidden,
    BlocksRestored,
    Envelope,
    Event,
    EventId,
    Hidden,
    HideReason,
    RangeExpanded,
    Recorded,
    RequestRendered,
    TimelineId,
    ToolCall,
    ToolKind,
    ToolResult,
)
from persistence import DuckDBStore
from tests import strategies
from tests._builders import call, header, log, prompt, result, said, thought
from tests._table import for_each
from tests.persistence.contract import compacted
from tests.strategies import Play, Step
from tests.timeline.replay.invented import invented
from timeline import Quality, Timeline, quality_of
from timeline.observe._steps import QualityMark

_names = count()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBStore]:
    with DuckDBStore(tmp_path_factory.mktemp("quality") / "talks.duckdb") as store:
        yield store


def in_sql(store: DuckDBStore, name: str) -> set[tuple[object, ...]]:
    query = "SELECT signal, version, turn, detail FROM quality WHERE timeline = ?"
    with store.inspect() as (cursor, _):
        rows = cursor.execute(query, [name]).fetchall()
    assert len(rows) == len(set(rows))
    return set(rows)


def as_tuples(quality: Quality) -> set[tuple[object, ...]]:
    return {(row.signal, row.version, row.turn, row.detail) for row in quality.rows}


def agreed(store: DuckDBStore, name: str, events: Sequence[Recorded]) -> Quality:
    """The quality of a log, which is the same in a file."""
    store.append(TimelineId(name), [event for _, event in events], expected_version=0)
    quality = quality_of(events)
    assert in_sql(store, name) == as_tuples(quality)
    return quality


def told(*items: Block | Event) -> list[tuple[str, int, str]]:
    """Signal, version and detail of a log's rows; ends of turns aside."""
    rows = quality_of(log(*items)).rows
    return [(r.signal, r.version, r.detail) for r in rows if r.signal != "task_end"]


def hides(block: Block, reason: HideReason) -> BlocksHidden:
    hidden = (Hidden(block=block.id, replacement="gone"),)
    return BlocksHidden(id=EventId(f"hide {next(_names)}"), at=1.0, hidden=hidden, reason=reason)


def restores(block: Block) -> BlocksRestored:
    return BlocksRestored(id=EventId(f"restore {next(_names)}"), at=1.0, blocks=(block.id,))


def rendered(*artifacts: str) -> RequestRendered:
    return RequestRendered(
        id=EventId(f"request {next(_names)}"),
        at=1.0,
        content_hash="h",
        tokens=1,
        rehydrated=tuple(map(ArtifactId, artifacts)),
    )


def undoes(version: int) -> RangeExpanded:
    return RangeExpanded(id=EventId(f"undo {next(_names)}"), at=1.0, compaction=version)


def test_a_call_that_is_repeated_while_its_result_is_visible_says_nothing() -> None:
    assert told(prompt("x"), call("a", path="f"), result("a"), call("b", path="f")) == []


def test_a_call_that_is_repeated_after_its_result_was_folded() -> None:
    before = (prompt("x"), call("a", path="f"), result("a"), said("ok"))
    again = ("asked_again", 6, "bash, as at 2")
    assert told(*before, compacted("c", cut=4), call("b", path="f")) == [again]
    assert told(*before, compacted("c", cut=4), call("b", path="g")) == []
    assert told(*before, compacted("c", cut=4), call("b", name="sh", path="f")) == []
    assert told(*before, compacted("c", cut=3), call("b", path="f")) == [], "kept"
    assert told(*before, compacted("c", cut=4), undoes(5), call("b", path="f")) == []
    assert told(
        *before, compacted("c", cut=4), compacted("d", cut=4), undoes(6), call("b", path="f")
    ) == [("asked_again", 8, "bash, as at 2")]
    assert told(*before, undoes(6), compacted("c", cut=4), call("b", path="f")) == [
        ("asked_again", 7, "bash, as at 2")
    ], "an undo comes after what it undoes"


@for_each("reason", ["expired", "cleared", "externalized", "dropped", "clipped"])
def test_a_call_that_is_repeated_after_its_result_was_hidden(reason: HideReason) -> None:
    answer = result("a")
    before = (prompt("x"), call("a", path="f"), answer)
    again = call("b", path="f")
    assert told(*before, hides(answer, reason), again) == [("asked_again", 5, "bash, as at 2")]
    assert told(*before, hides(answer, reason), restores(answer), again) == []
    assert told(*before, again, hides(answer, reason)) == []


@for_each("reason", ["requested", "unsigned"])
def test_what_somebody_asked_to_hide_does_not_count(reason: HideReason) -> None:
    answer = result("a")
    asked = call("b", path="f"), call("c", name="read_timeline")
    assert told(call("a", path="f"), answer, hides(answer, reason), *asked) == []


def test_what_is_compared_is_the_latest_equal_call_and_its_own_result() -> None:
    first, second = (call("a", path="f"), result("a")), (call("a", path="f"), result("a"))
    fold = compacted("c", cut=3)
    assert told(*first, fold, *second, call("z", path="f")) == [
        ("asked_again", 4, "bash, as at 1")
    ], "the third call has the second's result before it"
    assert told(call("a", path="f"), compacted("c", cut=2), call("b", path="f")) == []


def test_a_reading_tool_counts_once_there_is_something_to_read_back() -> None:
    reads = call("r", name="read_timeline", query="x")
    assert told(prompt("x"), reads) == []
    assert told(prompt("x"), compacted("c", cut=1), reads) == [
        ("explicit_read", 3, "read_timeline")
    ]
    hidden = prompt("y")
    reads = call("s", name="read_artifact", artifact_id="art-1")
    assert told(hidden, hides(hidden, "cleared"), reads) == [("explicit_read", 3, "read_artifact")]


def test_what_came_back_by_itself_is_told_once_a_request() -> None:
    events = (prompt("x", "t1"), rendered(), prompt("y", "t2"), rendered("art-1", "art-2"))
    assert told(*events) == [("rehydrated", 4, "art-1 art-2")]
    assert quality_of(log(*events)).rows[-1].turn == "t2"


@for_each(
    ("blocks", "end"),
    [
        ((said("done"),), "completed"),
        ((call("a"), result("a"), said("done")), "completed"),
        ((call("a"), result("a")), "unfinished"),
        ((call("a"), said("done")), "unfinished"),
        ((said("first"), call("a"), result("a"), thought()), "unfinished"),
        ((call("a"), call("a"), result("a"), said("done")), "unfinished"),
        ((said("done"), result("a"), header("t1")), "completed"),
    ],
)
def test_a_turn_is_completed_when_the_agent_gave_the_floor_back(
    blocks: Sequence[Block], end: str
) -> None:
    told(prompt("x"), *blocks)
    (row,) = quality_of(log(prompt("x"), *blocks)).rows
    assert (row.signal, row.turn, row.detail) == ("task_end", "t1", end)


def test_a_turn_without_an_answer_has_no_end() -> None:
    told(prompt("x"))
    assert quality_of(log(prompt("x"))).rows == ()


def test_totals_and_rates() -> None:
    events = log(
        prompt("x"),
        *(call("a", path="f"), result("a")),
        compacted("c", cut=4),
        *(call("b", path="f"), result("b"), said("done")),
        compacted("d", cut=4),
    )
    quality = quality_of(events)
    assert quality.rows[0] == QualityMark("asked_again", 5, quality.rows[0].turn, "bash, as at 2")
    assert quality.totals == {
        "asked_again": 1,
        "explicit_read": 0,
        "rehydrated": 0,
        "task_end": 1,
    }
    assert (quality.compactions, quality.completed) == (2, 1)
    assert quality.per_compaction["asked_again"] == 0.5
    assert quality_of(events[:3]).per_compaction == {}
    assert quality_of([]) == Quality()


# In other words.


def asks(tool: str, **arguments: Any) -> ToolCall:
    return msgspec.structs.replace(call("x", name=tool), input=arguments)


def known(kind: ToolKind | None, target: str) -> ToolResult:
    answer = result("x")
    return msgspec.structs.replace(answer, envelope=Envelope(kind=kind, target=target))


@for_each(
    ("first", "second", "times"),
    [
        (asks("Read", file_path="src/a.py"), asks("view_file", path="./src/a.py"), 1),
        (asks("Read", file_path="src/a.py"), asks("Read", file_path="src/b.py"), 0),
        (asks("Read", file_path="a"), asks("Read", file_path="a", limit=40), 1),
        (asks("Read", file_path="a"), asks("Read", file_path="a", offset=40), 0),
        (asks("Grep", pattern="foo", path="src/"), asks("search", query="Foo", path="src"), 1),
        (asks("Grep", pattern="foo", path="src"), asks("Grep", pattern="bar", path="src"), 0),
        (asks("bash", command="ls  -l"), asks("bash", command=" ls -l\n", timeout=9), 1),
        (asks("bash", command="ls -l"), asks("bash", command="ls -la"), 0),
        (
            asks("WebFetch", url="https://x.example/a/"),
            asks("fetch", url="https://x.example/a"),
            1,
        ),
        (
            asks("str_replace_editor", command="view", path="a"),
            asks("Read", file_path='"a"'),
            1,
        ),
        (asks("Edit", file_path="a", new="1"), asks("Edit", file_path="a", new="2"), 0),
        (asks("Edit", file_path="a", new="1"), asks("Edit", file_path="a", new="1"), 1),
        (asks("Read", file_path=["a"]), asks("Read", file_path=["a"]), 1),
        (asks("Read", file_path=["a"]), asks("Read", file_path=["b"]), 0),
        (asks("Read", file_path=7), asks("Read", path="7"), 1),
        (asks("Read", file_path="src/a.py"), asks("Read", file_path="src//./b/../a.py"), 1),
        (asks("Read", file_path="a"), asks("Read", file_path="../a"), 0),
        (asks("own", a=1, b={"c": [2, "x  y"]}), asks("own", b={"c": [2, "x y "]}, a=1), 1),
        (asks("own", a=1, b={"c": [2, 3]}), asks("own", b={"c": [3, 2]}, a=1), 0),
        (asks("own", at="./src/a.py/"), asks("own", at="src/a.py"), 1),
        (asks("own", at="A"), asks("own", at="a"), 0),
        (asks("own", at=1), asks("own", at="1"), 0),
        (asks("own"), asks("own", at="1"), 0),
        (asks("own"), asks("own"), 1),
        (
            asks("Edit", file_path="a", new="if x:\n y"),
            asks("Edit", file_path="a", new="if x: y"),
            0,
        ),
        (asks("Edit", file_path="a", new="1"), asks("Edit", new="1", file_path="a"), 1),
    ],
)
def test_the_same_kind_and_target_ask_for_the_same(
    first: ToolCall, second: ToolCall, times: int
) -> None:
    found = told(prompt("x"), first, result("x"), said("ok"), compacted("c", cut=4), second)
    assert found == [("asked_again", 6, f"{second.name}, as at 2")] * times


def test_a_tool_that_declares_its_kind_is_compared_by_its_target() -> None:
    first, other = asks("contract", number="K-7", pages=2), asks("contract", number="K-8")
    again = asks("contract", number="k-7", pages=9)
    before = (prompt("x"), first, known("read", "number"), said("ok"), compacted("c", cut=4))
    assert told(*before, again) == [("asked_again", 6, "contract, as at 2")]
    assert told(*before, other) == []
    plain = (prompt("x"), first, result("x"), said("ok"), compacted("c", cut=4))
    assert told(*plain, again) == [], "nobody said what it does"


@for_each(
    ("fact", "question", "times"),
    [
        ("The budget is 1,000 dollars.", "What was the user's budget again?", 1),
        ("Deploy to the staging cluster only.", "Remind me: which cluster is for staging?", 1),
        ("The budget is 1,000 dollars.", "Which currency is the budget in?", 0),
        ("The budget is 1,000 dollars.", "The budget is set. Shall I go on?", 0),
        ("The budget is 1,000 dollars.", "What now?", 0),
        ("What is the budget?", "What was the budget again?", 0),
        ("Das Budget für Möbel beträgt 90.", "Sorry, what was the budget für Möbel?", 1),
        ("Das Budget für ÄRGER beträgt 90.", "Sorry, what was the budget für Ärger?", 1),
    ],
)
def test_a_question_that_a_folded_block_answers(fact: str, question: str, times: int) -> None:
    before = prompt(fact), said("Noted."), prompt("Go on.", "t2")
    found = told(*before, compacted("c", cut=3), said(f"Well. {question}", "t2"))
    assert found == [("asked_again", 5, "question, as at 1")] * times
    assert told(*before, said(question, "t2")) == [], "nothing is out of sight"
    assert told(*before, compacted("c", cut=3), prompt(fact, "t3"), said(question, "t3")) == []


def test_a_question_that_a_hidden_result_answers() -> None:
    answer = result("a", "port 8443 is open")
    asked = (prompt("x"), call("a", path="f"), answer, hides(answer, "cleared"))
    assert told(*asked, said("Which port is open? Which port is open?")) == [
        ("asked_again", 5, "question, as at 3")
    ]


WORDS = st.lists(
    st.sampled_from(
        ["What", "which", "budget", "budgets", "port", "the", "Ärger", "x’s", "1000", "語語語"]
    ),
    max_size=5,
).map(" ".join)
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from("?.!\n")), max_size=4).map(
    lambda pairs: "".join(a + b for a, b in pairs)
)
SCALARS: list[Any] = [
    "a",
    "./a",
    " A ",
    "a/b/",
    "b//../a",
    "",
    " ",
    '"a"',
    ".",
    "//",
    7,
    7.5,
    True,
    None,
]
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [*SCALARS, ["a", {"b": None}], {"c": [], "a.b": "'"}]
)
INPUTS = st.dictionaries(st.sampled_from(["path", "query", "offset", "command", "own"]), VALUES)
NAMES = st.sampled_from(["Read", "grep", "bash", "own", "str_replace_editor", "web_x", "Edit"])
KINDS = st.sampled_from([None, *get_args(ToolKind)])


@given(
    st.lists(
        st.one_of(
            TEXTS.map(prompt),
            TEXTS.map(said),
            st.tuples(NAMES, INPUTS).map(lambda made: asks(made[0], **made[1])),
            st.tuples(KINDS, st.sampled_from(["", "own", "path", "o'w\"n"])).map(
                lambda made: known(*made)
            ),
            st.integers(1, 9).map(lambda cut: compacted(f"c{next(_names)}", cut=cut)),
        ),
        min_size=1,
        max_size=14,
    )
)
def test_what_was_asked_again_was_asked_before(items: list[Block | Event]) -> None:
    for _, version, detail in told(*items):
        assert 0 < int(detail.rpartition(" ")[2]) < version


# A log says the same out of a file and in one, among others.


def test_a_large_answer(file: DuckDBStore) -> None:
    fact = "The budget is 1,000 dollars. " + "All is well. " * 2_000
    items = (prompt(fact), said("Noted."), compacted("c", cut=3), said("What was the budget?"))
    assert agreed(file, "large", log(*items)).totals["asked_again"] == 1


@given(strategies.steps(), strategies.settings())
def test_generated_logs(file: DuckDBStore, steps: list[Step], options: dict[str, object]) -> None:
    play = Play(options).run(steps)
    play.timeline.flush()
    agreed(file, f"generated {next(_names)}", play.timeline.events())


def test_an_agent_that_asks_again(file: DuckDBStore) -> None:
    """A session whose last turns repeat the first ones' calls, in a window that forgot them."""
    name = f"asking {next(_names)}"
    with Timeline.open(name, store=file, window=3_000, counter="estimate") as timeline:
        for round_ in range(2):
            for item in invented(turns=3).items:
                timeline.append(*item.blocks, at=item.at + 10_000 * round_)
                timeline.render()
        quality = quality_of(timeline.events())
    assert quality.totals["asked_again"] >= 10
    assert in_sql(file, name) == as_tuples(quality)
