"""Savings: in words, and read back from any store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from blocks import Bill, Event, EventId, TimelineId, UsageRecorded
from persistence import EventStore, MemoryStore, open_store
from tests import _builders as make
from timeline.report._savings import (
    PAGE,
    Savings,
    accounts,
    conversation_of,
    lately_billed,
)

NAME = TimelineId("agent-1")


@pytest.fixture(params=["memory", "a.sqlite", "a.duckdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    where = request.param
    if where == "memory":
        yield MemoryStore()
        return
    url = f"sqlite:///{tmp_path / where}" if where.endswith("sqlite") else str(tmp_path / where)
    with closing(open_store(url)) as opened:
        yield opened


def usage(number: int, paid: float | None = 0.25) -> UsageRecorded:
    bill = Bill(paid=paid, full=0.5, full_tokens=20, sent_at=float(number))
    return UsageRecorded(
        id=EventId(f"u{number}"), at=float(number), model="m", uncached=10, output=1, bill=bill
    )


def log(count: int, words: int = 1) -> list[Event]:
    """Every hundredth event is a bill, the others are blocks."""
    found: list[Event] = []
    for number in range(1, count + 1):
        text = f'{{"bill":{number}}} ' * words
        found.append(usage(number) if number % 100 == 0 else make.appended(make.note(text)))
    return found


@pytest.mark.parametrize("words", [1, 200])
def test_bills_are_found_in_a_log_of_any_size_and_the_newest_without_reading_all(
    store: EventStore, words: int
) -> None:
    events = log(2 * PAGE + 150, words)
    store.append(NAME, events, expected_version=0)
    every = [event for event in events if isinstance(event, UsageRecorded)]
    assert lately_billed(store, NAME, 0, 0.0) == every
    assert lately_billed(store, NAME, 350, 0.0) == every[3:]
    assert accounts(store, conversation_of)[0].calls == len(every)
    for since in (0.0, 250.0, 1e9):
        found = lately_billed(store, NAME, 0, since)
        assert found == every[len(every) - len(found) :]
        assert {each.id for each in every if each.at >= since} <= {each.id for each in found}
        assert found, "at least one"
    assert lately_billed(store, NAME, len(events), 0.0) == []
    assert lately_billed(store, TimelineId("nobody"), 0, 0.0) == []


def test_copies_in_forks_are_counted_once_and_forks_belong_to_their_conversation() -> None:
    store = MemoryStore()
    store.append(NAME, [usage(1), usage(2)], expected_version=0)
    store.append(TimelineId(f"{NAME}~ab"), [usage(1), usage(3)], expected_version=0)
    store.append(TimelineId("other"), [usage(4)], expected_version=0)
    total, parts = accounts(store, conversation_of)
    assert {name: part.calls for name, part in parts.items()} == {NAME: 3, "other": 1}
    assert (total.calls, total.paid, total.alone, total.timelines) == (4, 1.0, 2.0, 3)


def test_the_sum_of_savings_has_all_that_each_has() -> None:
    one = Savings.of(usage(1)) + Savings.of(usage(2, None))
    two = attrs.evolve(one, passed=3, failed=1)
    total = sum([one, two], Savings())
    assert (total.calls, total.paid, total.unpriced) == (2, 0.5, {"m": 2})
    assert (total.passed, total.failed, total.requests) == (3, 1, 8)


def test_words_say_saved_or_more_and_nothing_only_if_it_is_nothing() -> None:
    known = Savings(calls=3, rewritten=2, tokens=9_000, alone_tokens=8_000, paid=0.2, alone=0.2)
    assert known.verdict() == "nothing saved, nothing lost"
    saved = attrs.evolve(known, alone=0.3)
    assert saved.verdict() == "without foldline $0.300: saved $0.100 (33%)"
    assert saved.lines()[0] == f"bill $0.200 recorded; {saved.verdict()}"
    long = attrs.evolve(saved, too_long=2)
    assert long.verdict() == "without foldline $0.300: saved at most $0.100 (33%)"
    assert "in 2 calls longer than the model takes" in long.lines()[2]
    dearer = attrs.evolve(known, paid=0.2132)
    assert dearer.lines()[0] == "bill $0.213 recorded; with foldline it cost $0.013 more (7%)"
    assert attrs.evolve(known, paid=0.2004).verdict() == "nothing saved, nothing lost"
    untouched = attrs.evolve(known, rewritten=0, paid=0.21)
    assert (untouched.saved, untouched.full, untouched.full_tokens) == (0, 0.21, 9_000)
    assert untouched.verdict().startswith("nothing saved; the tools that read folded")
    assert untouched.verdict().endswith("content back cost $0.010 (5%)")
    watched = attrs.evolve(known, record_only=True, rewritten=0, possible=0.05)
    assert watched.verdict() == "with foldline it would have cost $0.050 less (25%)"
    assert watched.would == pytest.approx(0.15)
    mixed = attrs.evolve(known, alone=0.3, possible=-0.06)
    assert mixed.verdict().endswith("what was only recorded would have cost $0.060 more (20%)")
    read_back = attrs.evolve(watched, record_only=False)
    assert read_back.verdict() == watched.verdict(), "a store does not say that it was only watched"


def test_words_name_what_is_not_counted() -> None:
    some = Savings(calls=1, tokens=5, paid=0.1, alone=0.1, unreported=2, unpriced={"b": 1, "a": 2})
    *_, usage_unknown, price_unknown = some.lines()
    assert usage_unknown == "not counted: 2 calls whose usage is not known"
    assert price_unknown.startswith("not counted: 3 calls at unknown prices (a, b);")
    assert Savings(passed=4).lines() == ("no calls to a model; 4 other requests forwarded",)
    assert "2 refused or failed" in Savings(failed=2).lines()[0]
    assert some.json()["saved"] == 0
