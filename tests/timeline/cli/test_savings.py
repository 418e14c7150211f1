"""`foldline savings`: what `wrap` and `proxy` have said, read back from the store."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from blocks import Bill, EventId, TimelineId, UsageRecorded
from persistence import open_store
from tests.timeline.gateway._agents import Agent, gateway, provider, working
from timeline.cli import main

DAY = 86_400.0
NOON = 1_700_049_600.0


def kept(path: Path, *bills: tuple[str, float]) -> list[str]:
    """A store with calls, each with the timeline and the days after the first; the options that name it."""
    with closing(open_store(str(path))) as store:
        for number, (name, days) in enumerate(bills):
            bill = Bill(paid=0.1, full=0.2, rewritten=True, sent_at=NOON + days * DAY)
            event = UsageRecorded(id=EventId(f"u{number}"), at=0.0, uncached=9, bill=bill)
            timeline = TimelineId(name)
            store.append(timeline, [event], expected_version=store.head(timeline))
    return ["--store", str(path)]


def test_rows_are_days_or_conversations_and_the_sum_is_said_as_by_wrap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bills = [("later", 1), ("first", 0), ("first", 1), ("first~a1", 0)]
    store = kept(tmp_path / "a.duckdb", *bills)
    assert main(["savings", *store]) == 0
    said = capsys.readouterr().out
    headline, calls, *_ = said.splitlines()
    assert headline == "bill $0.400 recorded; without foldline $0.800: saved $0.400 (50%)"
    assert calls.startswith("4 calls, 4 of them rewritten: 36 prompt tokens, ")
    for by, rows in (("day", 2), ("conversation", 2)):
        assert main(["savings", "--by", by, *store]) == 0
        table = capsys.readouterr().out
        assert table.endswith(said), "the same words"
        assert table.removesuffix(said).count("saved $0.") == rows
        assert main(["savings", "--by", by, "--json", *store]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["total"]["paid"], found["total"]["timelines"]) == (pytest.approx(0.4), 3)
        assert sum(row["calls"] for row in found["by"].values()) == 4
    assert set(found["by"]) == {"first", "later"}


def test_without_a_store_it_is_one_clear_error_and_without_calls_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "nowhere.sqlite"
    assert main(["savings", "--store", str(missing)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not missing.exists()
    assert main(["savings", *kept(tmp_path / "empty.duckdb")]) == 0
    assert capsys.readouterr().out == "no calls through a gateway yet\n"


@pytest.mark.network
def test_the_figures_are_those_of_the_gateway_while_it_runs_and_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sqlite"
    where = ["--store", f"sqlite:///{path}"]

    def read() -> dict[str, float]:
        assert main(["savings", "--json", *where]) == 0
        total: dict[str, float] = json.loads(capsys.readouterr().out)["total"]
        return total

    with provider(working(25)) as up:
        store = open_store(where[1])
        with gateway(store=store, upstream=up.url, window=6_500) as server:
            Agent(server.url).work(rounds_max=22)
            assert read()["calls"] >= 21, "the last one may not be written yet"
        store.close()
        live = server.gateway.savings()
    assert live.rewritten
    found = read()
    for name in (
        "calls",
        "rewritten",
        "tokens",
        "alone_tokens",
        "full_tokens",
        "paid",
        "alone",
        "full",
        "saved",
        "uncached",
    ):
        assert found[name] == pytest.approx(getattr(live, name)), name
