"""The turns share the room: newer ones have more, each has a line, and nothing is written anew."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from blocks import Finding
from render.summary._findings import LIST_SHARE, ORDER, fitted
from render.summary._findings import text_of_findings as text
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
    shown = text((on_the_way(3, 1), on_the_way(3, 2, kind="rule"), report(3, "Done.\n\n- a\n- b")))
    row = "of ledger_3.py failed because the lock was held."
    assert shown.split("\n") == [
        ORDER, "t3 [v30]: Done.", "  - a", "  - b", f"- [v22]: Row 1 {row}", f"- [v23]: the user: Row 2 {row}",
    ]  # fmt: skip


def test_which_of_two_that_differ_holds_is_said_only_where_there_are_two() -> None:
    assert text((report(1, "Done."), report(2, "Done, too."))).startswith("t1")
    assert text((report(1, "Done."), on_the_way(1, 1))).startswith(f"{ORDER}\nt1")


def test_what_fits_stays_as_it_is() -> None:
    findings = (on_the_way(1, 1), report(1), report(2))
    assert fitted(findings, 10_000, count) == findings


def test_if_items_must_go_it_is_told_how_many() -> None:
    [short] = fitted(
        (report(1, f"Done.\n\n{LIST.replace('- file', '- /very/long/way/to/the/file')}"),),
        90,
        count,
    )
    assert short.gone > 0
    assert short.gone + f"\n{short.text}".count("\n- ") == 5
    assert f"(and {short.gone} more)" in text((short,))


@for_each("room", [500, 700, 1000])
def test_newer_turns_have_more_room(room: int) -> None:
    left = fitted([report(n) for n in range(1, 13)], room, count)
    sizes = [len(each.text) for each in left]
    assert [each.turn for each in left] == [f"t{n}" for n in range(1, 13)]
    assert sizes[0] < sizes[-1] == max(sizes)
    assert sum(sizes[6:]) > sum(sizes[:6])


def test_each_turn_has_a_line_as_long_as_there_is_room_for_one_each() -> None:
    told = [report(n) for n in range(1, 31)]
    assert len({each.turn for each in fitted(told, 1000, count)}) == 30
    few = [each.turn for each in fitted(told, 200, count)]
    assert few == [f"t{n}" for n in range(31 - len(few), 31)], "else the newest"


@for_each("behind", ["", "\n\nCan you run ledger.py again?"])
@for_each("room", [40, 60, 80, 100])
def test_of_a_list_at_least_a_third_is_told_or_nothing_not_even_its_lead(
    room: int, behind: str
) -> None:
    told = f"{CAUSE}\n\nThe tables of ledger.py keep the sign:\n{LIST}{behind}"
    left = text(fitted((report(1, told),), room, count))
    items = left.count("  - file_")
    assert items == 0 or items >= LIST_SHARE * 5
    assert ("The tables" in left) == (items > 0)


def test_a_report_that_is_a_list_is_told_by_a_point_of_it_rather_than_by_nothing() -> None:
    told = f"All of these:\n{LIST}"
    for room in range(60, 400, 5):
        left = fitted((on_the_way(1, 1, told), on_the_way(1, 2), report(1, told)), room, count)
        assert left
        assert all(each.text.strip() for each in left)


def test_what_sums_up_a_turn_in_one_line_names_something() -> None:
    told = "Found it. Confirmed with benchmarks and a profiler, not guessed.\n\nRoot cause:\n`Ledger.rows` is never cleared in ledger.py."
    [line] = fitted((report(1, told),), 25, count)
    assert "Ledger.rows" in line.text
    assert "Confirmed" not in line.text


def test_thousands_of_points_and_lists_are_condensed_at_once() -> None:
    """Their time grew with the square: a list of 20,000 points took half a minute, a thousand lists eleven seconds."""
    points = "".join(f"{n}. a\n" for n in range(20_000))
    lists = "\n\n".join(f"It fails because of {n}:\n{LIST}" for n in range(1_000))
    for told in (points, lists):
        assert count(text(fitted((report(1, told),), 300, count))) <= 300


def test_items_are_told_whole_or_not_at_all() -> None:
    [short] = fitted((report(1),), count(REPORT) * 3 // 4, count)
    assert all(line in REPORT.split("\n") for line in short.text.split("\n"))
    assert short.gone + short.text.count("\n- ") == 5


def test_a_report_that_must_be_shortened_fills_its_room() -> None:
    told = " ".join(
        f"Row {n} of ledger_{n}.py failed because the lock of the reader was held."
        for n in range(40)
    )
    sizes = {room: count(text(fitted((report(1, told),), room, count))) for room in range(60, 400)}
    assert [room for room, size in sizes.items() if not room / 2 < size <= room] == []


ENDLESS = f"The cause is `parse_amount`, because the mark is cut{', and so is the sign' * 60}."


def test_a_report_of_one_statement_without_room_is_cut_though_other_findings_fit() -> None:
    found = on_the_way(1, 1)
    first, cut = fitted((found, report(1, ENDLESS)), 200, count)
    assert first == found
    assert (cut.kind, cut.text[:20], cut.text[-1]) == ("report", ENDLESS[:20], "…")


def test_a_finding_of_one_statement_without_room_beside_a_report_is_left_out_and_not_cut() -> None:
    told = report(1, "All 214 tests pass now.")
    assert fitted((on_the_way(1, 1, ENDLESS), told), 200, count) == (told,)


def test_of_many_statements_the_most_telling_stay_whole() -> None:
    weak = [
        on_the_way(1, n, f"It is a nice day in the garden of the house number {n}.")
        for n in range(8)
    ]
    strong = on_the_way(
        1, 8, "The cause is `parse_amount` in ledger.py:48, because the mark is cut."
    )
    assert strong in fitted([*weak, strong], 80, count)


MUCH = f"\n\n{'And so it goes on and on, with more of the same. ' * 9}"
CAUSE = "The cause is `parse_amount` in ledger.py:48, because the mark is cut."


@for_each(
    "shell",
    ["Great news!", "This is it.", "I looked at all of this with care for a while and wrote down what there is to see."],
)  # fmt: skip
def test_the_one_line_of_a_turn_is_the_statement_that_tells_most(shell: str) -> None:
    left = fitted([report(1, f"{shell}\n\n{CAUSE}{MUCH}"), *map(report, range(2, 9))], 280, count)
    assert left[0].text == CAUSE


def agents(turn: int, told: str) -> Finding:
    return Finding(turn=f"t{turn}", version=10 * turn - 5, kind="agent", text=told)


@for_each(
    ("turn", "kind"),
    [
        ([agents(1, CAUSE + MUCH)], "agent"),
        ([agents(1, CAUSE + MUCH), on_the_way(1, 6, f"The lock of the file is held by the reader.{MUCH}")], "found"),
        ([on_the_way(1, 1, CAUSE + MUCH), report(1, f"The lock of the file is held by the reader.{MUCH}")], "report"),
    ],
    ids=["of others alone", "of the agent", "of its report"],
)  # fmt: skip
def test_the_one_line_of_a_turn_is_of_its_report_or_else_the_agents_own(
    turn: list[Finding], kind: str
) -> None:
    first = fitted([*turn, *map(report, range(2, 9))], 280, count)[0]
    assert (first.turn, first.kind) == ("t1", kind)


def test_a_report_begins_with_its_first_statement_that_tells_something() -> None:
    """It sums up, so it stands though others tell more for their length."""
    first = (
        "All 214 tests pass now, and the reader keeps the sign, as it was agreed with the others."
    )
    told = "\n\n".join(
        [first, *(f"ledger.py:{n}8 failed: `parse_{n}` cut the mark." for n in range(60))]
    )
    [short] = fitted((report(1, told),), 200, count)
    assert short.text.startswith(first)


def test_beside_a_long_report_what_was_found_has_room() -> None:
    told = " ".join(
        f"Row {n} of ledger_{n}.py failed because the lock was held." for n in range(60)
    )
    left = fitted(
        [
            *(
                on_the_way(1, n, f"ledger.py:{n}8 failed: `parse_{n}` cut the mark.")
                for n in range(9)
            ),
            report(1, told),
        ],
        300,
        count,
    )
    assert len(left) > 3


def test_of_two_that_tell_as_much_the_newer_is_told() -> None:
    found = [
        on_the_way(1, n, f"ledger.py:{n}8 failed: `parse_{n}` cut the mark of it.")
        for n in range(9)
    ]
    left = fitted(found, 90, count)
    assert 1 < len(left) < 9
    assert left == tuple(found[-len(left) :])


def test_a_short_statement_is_told_whole_rather_than_a_long_one_cut() -> None:
    long = f"The cause is in `parse_amount` {'and in the reader of it ' * 9} too."
    left = fitted(
        [report(1, f"{long}\n\nledger.py:48 is fixed."), *map(report, range(2, 9))], 270, count
    )
    assert left[0].text == "ledger.py:48 is fixed."


def test_a_line_has_the_lead_of_its_statement() -> None:
    told = f"I kept the old reader.\n\nNot done yet:\n- {CAUSE}{MUCH}"
    left = fitted([report(1, told), *map(report, range(2, 9))], 320, count)
    assert left[0].text == f"Not done yet: {CAUSE}"


def test_what_is_left_out_is_counted_only_in_a_list_that_is_told_in_part() -> None:
    told = f"{CAUSE}\n\nSee also:\n{LIST}"
    [short] = fitted((report(1, told),), count(CAUSE) + 16, count)
    assert text((short,)) == f"t1 [v10]: {CAUSE}"


def test_an_item_is_told_with_the_item_and_the_lead_above_it() -> None:
    told = f"Changed:\n- nothing at all\n- the reader:\n  - {CAUSE}\n- nothing else, and no more than that{MUCH}"
    [short] = fitted((report(1, told),), 45, count)
    assert short.text == f"Changed: the reader: {CAUSE}"


def test_a_report_that_the_user_contradicted_says_so() -> None:
    shown = text((structs.replace(report(1, "It works."), disputed="t2"),))
    assert shown == "t1 [v10]: (contested in t2) It works."


TEXTS = st.text(max_size=80) | st.sampled_from(
    [
        REPORT,
        LIST,
        f"All of these:\n{LIST}",
        f"See `a.py`:\n{LIST}\n\nAnd `b.py`:\n{LIST}",
        "So:\n- a",
        "| a |\n| b |",
        "Never. (a [b",
        "x " * 400,
    ]
)
FINDINGS = st.lists(
    st.builds(
        Finding,
        turn=st.sampled_from(["t1", "t2", "t3", "t4"]),
        version=st.integers(1, 40),
        kind=st.sampled_from(["report", "found", "agent", "rule"]),
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
    assert all(each.text.strip() for each in once)
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
