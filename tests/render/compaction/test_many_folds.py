"""A turn without end, and hundreds of compactions: the beginning stays, what was pinned stays, nothing grows."""

import re
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import Block, Decision, StructuredSummary, encode_event
from render import Summary, SummaryRoom, View, apply_range, extractive, range_before_tail
from render.policy._context import Context
from render.summary._written import numbered, updated
from tests import _builders as make
from tests._table import for_each

LIMIT = 2500
TINY = make.context(
    limit=LIMIT, policy=make.steady(gain_min=0.0, user_ratio=0.1, summary_tokens=300)
)
ROOMY = make.context(limit=20_000, policy=make.steady(gain_min=0.0))
WIDE = make.context(limit=60_000, policy=make.steady(gain_min=0.0))
TASK = "Migrate the ledger, and never touch the archive."
FIRST = "The approach is decided: `ledger_v2` is filled beside the old one, row by row."
WORDS = st.sampled_from(
    ("The test in row_7.py failed because of a lock.", "Let me see.", "Done.", "", "x " * 300)
)
PINNED = StructuredSummary(
    constraints=("Never touch the archive.",),
    facts=("The port is 48231.",),
    decisions=(Decision(decision="Amounts are in cents."),),
)


def worked(number: int, text: str, turn: str) -> list[Block]:
    """A round: some words, a call, its result."""
    words = [make.said(text, turn)] if text else []
    return [
        *words,
        make.call(f"c{number}", turn, path=f"f{number}"),
        make.result(f"c{number}", "r " * 90, turn),
    ]


def folded(view: View, summary: StructuredSummary | None = None, within: Context = TINY) -> View:
    fold = range_before_tail(view, within, "forced", 0.0)
    assert fold
    answer = Summary(summary=summary) if summary else extractive(fold)
    return apply_range(view, fold, answer, within)


def summary_of(view: View) -> StructuredSummary:
    assert view.compaction
    return view.compaction.event.summary.summary


@settings(max_examples=15)
@given(st.lists(WORDS, min_size=2, max_size=25))
def test_a_turn_of_many_folds_keeps_its_beginning(texts: Sequence[str]) -> None:
    """What was asked, and what was decided first, whatever comes after."""
    view = make.view_of(make.prompt(TASK), *worked(0, FIRST, "t1"), *worked(1, "", "t1"))
    for number, text in enumerate(texts, 2):
        view = folded(view)
        assert TASK in make.text_in(make.shown(view, TINY))
        assert view.compaction
        assert FIRST in [each.text for each in view.compaction.event.summary.digest.findings]
        view = make.grown(view, *worked(number, text, "t1"))


def files_after(folds: int, within: Context) -> list[tuple[str, str]]:
    """The working set after so many folds, each of a large result, behind the reading of a file."""
    code = "def total(rows):\n    amounts = [row.amount for row in rows]\n    return sum(amounts)"
    read = make.call("e", "t1", name="read", path="ledger.py"), make.result("e", code, "t1")
    view = make.view_of(make.prompt(TASK), *read, *worked(0, "", "t1"))
    for number in range(1, folds + 1):
        log = make.call(f"l{number}", "t1", path="log")
        large = log, make.result(f"l{number}", "r " * 9_000, "t1")
        view = folded(make.grown(view, *large, *worked(number, "", "t1")), within=within)
    assert view.compaction
    regions = view.compaction.event.summary.digest.regions
    return [(region.file, region.text.split("\n")[0]) for region in regions]


def test_compactions_long_before_the_window_is_full_keep_the_file_that_is_worked_on() -> None:
    """A cold cache is compacted with little at hand, so few versions are not two windows."""
    assert files_after(5, WIDE) == [("ledger.py", "def total(rows):")]


def test_a_window_is_no_longer_than_the_trigger() -> None:
    """In a window of a million that is compacted at 8,000, two windows are 16,000."""
    policy = make.steady(gain_min=0.0, working_ratio=0.5, trigger_tokens=8_000)
    within = make.context(limit=1_000_000, policy=policy)
    assert files_after(2, within) == [("ledger.py", "def total(rows):")]
    assert files_after(12, within) == []


@for_each(("policy", "is_there"), [({}, True), ({"working_ratio": 0.0}, False)])
def test_in_the_room_that_the_report_leaves_stands_what_the_agent_wrote(
    policy: dict[str, float],
    is_there: bool,  # noqa: FBT001 -- data
) -> None:
    within = make.context(limit=60_000, policy=make.steady(gain_min=0.0, **policy))
    script = "\n".join(f"rotate --keep {n} /var/log/part_{n}" for n in range(12))
    write = make.call("w", "t1", name="write", path="rotate.sh", content=script)
    large = make.call("l", "t1", path="log"), make.result("l", "r " * 9_000, "t1")
    view = make.view_of(make.prompt(TASK), write, make.result("w", "ok", "t1"), *large)
    view = folded(make.grown(view, *worked(1, "", "t1")), within=within)
    assert (script.split("\n")[-1] in make.text_in(make.shown(view, within))) is is_there


def test_three_hundred_compactions_forget_nothing_pinned_and_do_not_grow() -> None:
    note = "  keep\tthis exactly: é \n"
    view = make.view_of(make.prompt(TASK), make.note(note), *worked(0, FIRST, "t1"))
    view = folded(make.grown(view, *worked(1, "", "t1")), PINNED)
    sizes: list[tuple[int, int]] = []
    for number in range(2, 302):
        turn = f"t{number}"
        news = f"Row {number} failed because of key-{number}."
        view = make.grown(
            view, make.prompt(f"Now row {number}.", turn), *worked(number, news, turn)
        )
        view = folded(view)
        assert view.compaction
        event = view.compaction.event
        sizes.append((len(encode_event(event)), len(make.text_in(make.shown(view, TINY)))))
    summary, text = summary_of(view), make.text_in(make.shown(view, TINY))
    assert summary.constraints[0] == PINNED.constraints[0]
    assert summary.facts == PINNED.facts
    assert summary.decisions == PINNED.decisions
    assert note in text
    assert TASK in text
    assert "Row 300 failed" in text
    for early, late in zip(
        *(map(max, zip(*part, strict=True)) for part in (sizes[50:100], sizes[-50:])), strict=True
    ):
        assert late <= 1.15 * early, "full by then: nothing grows any more"


LISTS = ("constraints", "open", "findings", "decisions", "lists", "errors", "done")
ENTRY = re.compile(r"^ *(\w[\d.]+) \[\d+\]\. .*?(entry-\d+)", re.MULTILINE)
FOLDS = st.lists(
    st.tuples(st.sets(st.sampled_from(LISTS), min_size=1), st.sets(st.integers(0, 69), max_size=2)),
    min_size=10,
    max_size=10,
)


def added(kind: str, name: str) -> Any:
    """An entry of a list, as a model gives it."""
    return {"title": "A list:", "items": [name, "second"]} if kind == "lists" else name


@settings(max_examples=15)
@given(FOLDS)
def test_over_ten_folds_of_a_model_that_updates_nothing_goes_that_it_did_not_close(
    folds: Sequence[tuple[set[str], set[int]]],
) -> None:
    """Each fold adds entries to some lists and closes some that the model was shown, by their ids."""
    view, there = make.view_of(make.prompt(TASK), *worked(0, "", "t1")), set[str]()
    written, number = StructuredSummary(), 0
    room = SummaryRoom(history=10**6, prefix=0, count=len)
    for fold, (kinds, closing) in enumerate(folds, 1):
        view = make.grown(view, *worked(fold, "", "t1"))
        ids = {name: label for label, name in ENTRY.findall(numbered(written, room))}
        assert ids.keys() == there, "each has an id of its own"
        closed = {name for place, name in enumerate(sorted(there)) if place in closing}
        names = {f"entry-{number + place}": kind for place, kind in enumerate(sorted(kinds))}
        add = {kind: [added(kind, name)] for name, kind in names.items()}
        update = {"add": add, "close": [{"id": ids[name]} for name in sorted(closed)]}
        answer, notices = updated(written, update)
        assert not notices
        view = folded(view, answer, ROOMY)
        written, number = summary_of(view), number + len(names)
        there = (there - closed) | names.keys()
    shown = {*re.findall(r"entry-\d+", make.text_in(make.shown(view, ROOMY)))}
    assert shown == there
