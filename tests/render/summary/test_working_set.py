"""The working set: what was seen or changed last, as it is now, within its room."""

import msgspec

from blocks import Digest, Region
from render.summary._calls import runs_of, without_number
from render.summary._working_set import (
    VisibleLines,
    followed,
    oldest_of,
    own_files,
    working_text,
)
from render.view._view import Entry
from tests.render.summary.disk import FILE, code, edit, ran, regions_of, viewed


def read(version: int, first: int, last: int, file: str = FILE) -> list[Entry]:
    lines = code(*range(first, last + 1))
    return ran(version, "Read", viewed(lines, first), {"file_path": file, "offset": first})


def page(
    log: list[Entry],
    visible: VisibleLines | None = None,
    tokens: int = 9999,
    wanted: frozenset[str] = frozenset(),
) -> tuple[Region, ...]:
    copies = followed((), runs_of(log).values(), 0)
    return regions_of(copies, tokens, lambda text: len(text) // 4, visible, wanted=wanted)


def test_regions_are_shown_under_their_file_with_numbers_and_gaps() -> None:
    text = working_text(page([*read(1, 8, 11), *read(3, 30, 32)]))
    assert text.split("\n") == [
        f"### {FILE}",
        *(f"{n:2}→{code(n)[0]}" for n in (8, 9, 10, 11)),
        "…",
        *(f"{n}→{code(n)[0]}" for n in (30, 31, 32)),
    ]


def test_a_region_that_was_edited_is_shown_as_it_is_now() -> None:
    text = working_text(page([*read(1, 1, 9), *edit(3, code(4), code(40, 41))]))
    assert code(4)[0] not in text
    assert [f"{n:2}→{code(m)[0]}" in text for n, m in ((4, 40), (5, 41), (10, 9))] == [True] * 3
    assert "…" not in text, "one region though its lines have different histories"


def test_between_pieces_without_numbers_there_is_a_gap() -> None:
    first, later = code(*range(40, 46)), code(*range(50, 56))
    lines = working_text(page([*edit(1, code(1), first), *edit(3, code(2), later)])).split("\n")
    assert lines == [f"### {FILE}", *first[1:-1], "…", *later[1:-1]]


def test_what_an_edit_replaced_is_gone_also_where_the_tool_forgave_a_difference() -> None:
    said = [*code(4), "    # not as it stands in the file", *code(6)]
    text = working_text(page([*read(1, 1, 9), *edit(3, said, code(40))]))
    assert [code(n)[0] in text for n in range(1, 10)] == [True] * 3 + [False] * 3 + [True] * 3


def test_what_such_an_edit_replaced_is_one_place_and_not_all_between_lines_that_occur_again() -> (
    None
):
    said = [*code(4), "    # not as it stands in the file", *code(6)]
    lines = [*code(*range(1, 30)), *code(6), *code(*range(31, 36))]
    log = [*ran(1, "Read", viewed(lines), {"file_path": FILE}), *edit(3, said, code(40))]
    text = working_text(page(log))
    assert [n for n in range(1, 36) if n != 30 and code(n)[0] not in text] == [4, 5, 6]


def test_what_the_request_shows_has_no_place_but_what_it_changed_has() -> None:
    log = [*read(1, 1, 9), *read(3, 50, 70), *edit(5, code(4), code(40))]
    text = working_text(page(log, dict.fromkeys((3, 4, 5, 6))))
    assert code(60)[0] not in text
    assert code(40)[0] in text, "a small gap is filled, so that the region can be read"
    assert code(4)[0] not in text


def test_of_a_result_that_is_shown_in_part_the_rest_has_a_place() -> None:
    shortened = (
        viewed(code(*range(1, 20)), 1) + "\n[… cut here …]\n" + viewed(code(*range(80, 91)), 80)
    )
    lines = frozenset(map(without_number, shortened.split("\n")))
    text = working_text(page(read(1, 1, 90), {2: lines}))
    assert [code(n)[0] in text for n in (1, 19, 20, 79, 80, 90)] == [
        False,
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_number_within_a_line_belongs_to_the_line() -> None:
    lines = ["12→case 1: return", "case 2: return"]
    assert list(map(without_number, lines)) == ["case 1: return", "case 2: return"]


def test_what_the_agent_wrote_once_and_lists_of_changes_are_not_worked_on() -> None:
    write = {"content": "\n".join(code(1, 2, 3))}
    log = ran(1, "Write", "done", {"file_path": "try.py", **write})
    patch = ran(3, "Read", viewed(code(1, 2, 3), 1), {"file_path": "fix.patch"})
    assert page([*log, *patch]) == ()
    looked_at = ran(5, "Read", viewed(code(2), 2), {"file_path": "try.py", "offset": 2, "limit": 1})
    assert {region.file for region in page([*log, *patch, *looked_at])} == {"try.py"}


def test_what_the_agent_wrote_once_is_read_newest_first_and_not_shown_twice() -> None:
    first = ran(1, "Write", "done", {"file_path": "old.py", "content": "\n".join(code(1, 2, 3))})
    second = ran(3, "Write", "done", {"file_path": "new.py", "content": "\n".join(code(4, 5, 6))})
    copies = followed((), runs_of([*first, *second, *read(5, 1, 3)]).values(), 0)
    assert [each.file for each in own_files(copies, {}, 0)] == ["new.py"] * 3 + ["old.py"] * 3
    assert {each.file for each in own_files(copies, {}, 3)} == {"new.py"}
    assert {each.file for each in own_files(copies, {3: None}, 0)} == {"old.py"}


def test_of_what_has_no_room_the_oldest_is_left_out() -> None:
    regions = page([*read(1, 1, 50, "old.py"), *read(3, 1, 50, "new.py")], tokens=600)
    assert {region.file for region in regions} == {"new.py"}
    assert page([*read(1, 1, 50)], tokens=3) == ()


def test_the_surroundings_of_a_change_are_as_new_as_the_change() -> None:
    log = [*read(1, 1, 50, "a.py"), *read(3, 1, 50, "b.py")]
    change = {"file_path": "a.py", "old_string": code(25)[0], "new_string": code(99)[0]}
    regions = page([*log, *ran(5, "Edit", "done", change)], tokens=700)
    text = working_text(regions)
    assert f"\n26→{code(26)[0]}" in text
    assert text.index("### a.py") == 0


def test_an_overview_counts_as_older_than_what_is_worked_on() -> None:
    log = [
        *read(1, 1, 30),
        *edit(3, code(4), code(40)),
        *read(5, 1, 99, "log.json"),
        *read(9, 1, 2, "c.py"),
    ]
    assert {region.file for region in page(log, tokens=300)} == {FILE, "c.py"}
    assert {region.file for region in page(log)} == {FILE, "log.json", "c.py"}


def test_of_what_was_read_at_once_the_places_that_the_work_is_about_come_first() -> None:
    log = [*read(1, 1, 300), *read(3, 1, 300, "b.py"), *read(5, 1, 2, "c.py")]
    name, everywhere = "compute_the_value_0200", "with_option"
    text = working_text(page(log, tokens=1_900, wanted=frozenset({name, everywhere})))
    for file in (FILE, "b.py"):
        (shown,) = (part for part in text.split("### ") if part.startswith(file))
        assert all(f"{n}→{code(n)[0]}" in shown for n in range(180, 221)), "with its surroundings"
    assert page(log, tokens=600, wanted=frozenset({everywhere})) == page(log, tokens=600)


def test_what_was_not_seen_for_two_windows_is_left_out_unless_it_was_changed_since() -> None:
    log = [*read(1, 1, 9), *read(3, 1, 9, "b.py"), *edit(31, code(4), code(40))]
    assert oldest_of(log[-4:], 1.0) == 32 - 2 * (32 - 3)
    assert oldest_of(log[-4:], 1.5) == 32 - 3 * (32 - 3)
    copies = followed((), runs_of(log).values(), 0)
    regions = regions_of(copies, oldest=5)
    assert {region.file for region in regions} == {FILE}
    assert sum(region.text.count("\n") + 1 for region in regions) == 9


def test_a_page_made_of_the_page_before_is_the_same_if_nothing_happened() -> None:
    log = [
        *read(1, 1, 9),
        *edit(3, code(4), code(40, 41)),
        *edit(5, code(70), code(71, 72, 73, 74)),
    ]
    regions = page(log)
    again = regions_of(followed(regions, (), 6))
    assert working_text(again) == working_text(regions)


def test_regions_are_stored_and_older_digests_have_none() -> None:
    digest = Digest(regions=page(read(1, 1, 9)))
    assert msgspec.json.decode(msgspec.json.encode(digest), type=Digest) == digest
    assert msgspec.json.decode(b"{}", type=Digest).regions == ()
