"""The turns share the room: newer ones have more, each has a line, and nothing is written anew."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from blocks import Finding
from render.summary._turns import fitted, text
from tests._builders import CharCounter
from tests._table import for_each

count = CharCounter().count
LIST = "\n".join(
    f"- file_{n}.py: the sign of the amounts is kept (see row {n} of the log)" for n in range(5)
)
REPORT = (
    f"All 214 tests pass now, and the reader keeps the sign of each amount.\n\nChanged:\n{LIST}"
)


def report(turn: int, told: str = REPORT) -> Finding:
    return Finding(turn=f"t{turn}", version=10 * turn, kind="report", text=told)


def on_the_way(turn: int, number: int, told: str = "", kind: str = "found") -> Finding:
    said = told or f"Row {number} of ledger_{turn}.py failed because the lock was held."
    return Finding(turn=f"t{turn}", version=10 * turn - 9 + number, kind=kind, text=said)


def test_a_turn_begins_with_its_report_and_each_line_has_its_label() -> None:
    shown = text((on_the_way(3, 1), on_the_way(3, 2, kind="doing"), report(3, "Done.\n\n- a\n- b")))
    row = "of ledger_3.py failed because the lock was held."
    assert shown.split("\n") == [
        "t3 [v30]: Done.", "  - a", "  - b", f"- [v22]: Row 1 {row}", f"- [v23]: doing: Row 2 {row}",
    ]  # fmt: skip


def test_what_fits_stays_as_it_is() -> None:
    findings = (on_the_way(1, 1), report(1), report(2))
    assert fitted(findings, 10_000, count) == findings


def test_if_items_must_go_it_is_told_how_many() -> None:
    [short] = fitted(
        (report(1, f"Done.\n\n{LIST.replace('- file', '- /very/long/way/to/the/file')}"),),
        40,
        count,
    )
    assert short.gone + short.text.count("\n- ") == 5
    assert f"(and {short.gone} more)" in text((short,))


@for_each("room", [500, 700, 1000])
def test_newer_turns_have_more_room(room: int) -> None:
    left = fitted([report(n) for n in range(1, 13)], room, count)
    sizes = [len(each.text) for each in left]
    assert [each.turn for each in left] == [f"t{n}" for n in range(1, 13)]
    assert sizes[0] == min(sizes)
    assert sizes[0] < sizes[-1] == max(sizes)


def test_each_turn_has_a_line_as_long_as_there_is_room_for_one_each() -> None:
    told = [report(n) for n in range(1, 31)]
    assert len({each.turn for each in fitted(told, 800, count)}) == 30
    few = [each.turn for each in fitted(told, 200, count)]
    assert few == [f"t{n}" for n in range(31 - len(few), 31)], "else the newest"


def test_what_is_being_done_stands_before_what_was_found() -> None:
    others = [on_the_way(1, n) for n in range(9)]
    left = fitted([*others, on_the_way(1, 9, "The reader of b is next.", "doing")], 60, count)
    assert any(each.kind == "doing" for each in left)


def test_items_are_told_whole_or_not_at_all() -> None:
    [short] = fitted((report(1),), count(REPORT) * 3 // 4, count)
    assert all(line in REPORT.split("\n") for line in short.text.split("\n"))
    assert short.gone + short.text.count("\n- ") == 5


def test_of_many_statements_the_most_telling_stay_whole() -> None:
    weak = [
        on_the_way(1, n, f"It is a nice day in the garden of the house number {n}.")
        for n in range(8)
    ]
    strong = on_the_way(
        1, 8, "The cause is `parse_amount` in ledger.py:48, because the mark is cut."
    )
    assert strong in fitted([*weak, strong], 80, count)


TEXTS = st.text(max_size=80) | st.sampled_from(
    [REPORT, LIST, "So:\n- a", "| a |\n| b |", "Never. (a [b", "x " * 400]
)
FINDINGS = st.lists(
    st.builds(
        Finding,
        turn=st.sampled_from(["t1", "t2", "t3", "t4"]),
        version=st.integers(1, 40),
        kind=st.sampled_from(["report", "found", "agent", "document", "doing"]),
        text=TEXTS.filter(str.strip),
        source=st.sampled_from(["", "a.md"]),
    ),
    max_size=12,
)


@given(FINDINGS, st.integers(0, 600))
def test_any_findings_fit_and_what_fits_does_not_change(
    findings: Sequence[Finding], room: int
) -> None:
    once = fitted(findings, room, count)
    assert count(text(once)) <= room
    assert fitted(once, room, count) == once
    assert fitted(findings, room, count) == once
    known = {(each.turn, each.version, each.kind, each.source) for each in findings}
    assert {(each.turn, each.version, each.kind, each.source) for each in once} <= known


@given(FINDINGS, st.lists(st.integers(20, 400), max_size=6))
def test_what_is_folded_again_and_again_gets_only_shorter(
    findings: Sequence[Finding], rooms: Sequence[int]
) -> None:
    words = {word.strip("…`") for each in findings for word in each.text.split()}
    for room in rooms:
        findings = fitted(findings, room, count)
        assert count(text(findings)) <= room
    marks = {"-", "—", "…", ""}
    told = {word.strip("…`;:.,") for each in findings for word in each.text.split()}
    assert all(any(word in known for known in words) for word in told - marks)
