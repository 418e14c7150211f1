"""The live view shows what a store has, follows it, changes nothing, and answers only who may look."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from blocks import Bill, EventId, TimelineId, UsageRecorded
from persistence import MemoryStore
from tests.timeline.report.pages import Page, request_in
from tests.timeline.report.serving import Site, serving
from timeline import Timeline, model_named
from timeline.billing import usage_price
from timeline.report import Showing, live_app
from timeline.report._savings import accounts, conversation_of

pytestmark = pytest.mark.network

USAGE = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 5}


def answer(number: int, text: str = "Done.") -> dict[str, Any]:
    return {
        "id": f"m{number}",
        "model": "claude-sonnet-5-5",
        "content": [{"type": "text", "text": text}],
        "usage": USAGE,
    }


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    store = MemoryStore()
    with Timeline.open("first", store=store) as timeline:
        timeline.user("Why does the nightly job fail?")
        timeline.render(system="Be brief.")
        timeline.record(answer(1))
    yield store
    store.close()


@pytest.fixture
def site(store: MemoryStore) -> Iterator[Site]:
    with serving(live_app(store, showing=Showing(system="Be brief."))) as site:
        yield site


def test_the_list_tells_each_timeline_by_its_first_prompt(site: Site, store: MemoryStore) -> None:
    with Timeline.open("second", store=store) as timeline:
        timeline.user("Another\n  question")
    found = site.get("timelines.json").json
    assert found["all"] == 2
    rows = {row["id"]: row for row in found["rows"]}
    assert rows["first"]["prompt"] == "Why does the nightly job fail?"
    assert (rows["first"]["calls"], rows["first"]["tokens"]) == (1, 1_000)
    assert rows["first"]["model"] == "claude-sonnet-5-5"
    assert rows["first"]["dollars"] > 0
    assert (rows["second"]["prompt"], rows["second"]["dollars"]) == ("Another question", None)


def test_the_list_says_of_a_gateway_s_calls_what_the_gateway_says(
    site: Site, store: MemoryStore
) -> None:
    assert site.get("timelines.json").json["savings"] == []
    bill = Bill(paid=0.25, full=0.5, full_tokens=9, rewritten=True)
    for name in ("agent-1", "agent-1~fork"):  # a fork begins with a copy of the same event
        event = UsageRecorded(id=EventId("u1"), at=1.0, model="m", uncached=7, bill=bill)
        store.append(TimelineId(name), [event], expected_version=0)
    found = site.get("timelines.json").json
    total, _ = accounts(store, conversation_of)
    assert found["savings"][::2] == [*total.lines()[::2]]
    rows = {row["id"]: row for row in found["rows"]}
    said = {rows[name]["verdict"] for name in ("agent-1", "agent-1~fork")}
    assert said == {"", "without foldline $0.500: saved $0.250 (50%)"}, "counted once"
    assert (rows["agent-1"]["dollars"], rows["first"]["verdict"]) == (0.25, "")


def test_a_page_of_a_gateway_s_timeline_has_its_bills(site: Site, store: MemoryStore) -> None:
    with Timeline.open("first", store=store) as timeline:
        timeline.user("And now?")
        timeline.render(system="Be brief.")
        for rewritten in (True, False):
            bill = Bill(paid=0.75, full=0.5, full_tokens=1_234, rewritten=rewritten)
            timeline.learn(UsageRecorded(id=EventId(""), at=0.0, uncached=1_000, bill=bill))
            timeline.user("And then?")
            timeline.render(system="Be brief.")
        timeline.learn(UsageRecorded(id=EventId(""), at=0.0, bill=Bill()))
    calls = site.get("overview.json?id=first").json["calls"]
    assert (calls["paid"][1], calls["fullPaid"][1], calls["full"][1]) == (0.75, 0.5, 1_234)
    assert (calls["fullPaid"][2], calls["full"][2]) == (0.75, 1_000), "everything was sent"
    assert calls["usage"][3] is None, "nothing was reported"
    assert calls["paid"][3] > 0, "so it is estimated"


def test_the_figures_of_a_timeline_are_its_usage_or_what_the_gateway_says(
    site: Site, store: MemoryStore
) -> None:
    def figures(name: str) -> list[tuple[str, float | None, bool]]:
        told = site.get(f"overview.json?id={name}").json["figures"]
        return [(each["name"], each["dollars"], each["is_loss"]) for each in told]

    [used] = [e for _, e in store.read(TimelineId("first")) if isinstance(e, UsageRecorded)]
    paid = usage_price(used, model_named("claude-sonnet-5-5"))
    assert figures("first") == [
        ("bill", pytest.approx(paid), False),
        ("would be", None, False),
        ("saved", None, False),
    ]
    with Timeline.open("silent", store=store) as timeline:
        timeline.user("Is anybody there?")
        timeline.render()
    bill, prompts, saved = figures("silent")
    assert (bill[1], saved[1]) == (None, None), "without usage there is no bill"
    assert (prompts[1] or 0) > 0
    cases = [
        (
            Bill(paid=0.25, full=0.5, rewritten=True),
            ("without foldline", 0.5),
            ("saved", 0.25, False),
        ),
        (
            Bill(paid=0.75, full=0.5, rewritten=True),
            ("without foldline", 0.5),
            ("more", 0.25, True),
        ),
        (
            Bill(paid=0.75, possible=-0.25),
            ("with foldline", 1.0),
            ("would have been more", 0.25, True),
        ),
        (Bill(paid=0.75), ("without foldline", None), ("saved", None, False)),
    ]
    for number, (bill_, would, difference) in enumerate(cases):
        name = f"agent-{number}"
        with Timeline.open(name, store=store) as timeline:
            timeline.user("Go on.")
            timeline.render()
            timeline.learn(UsageRecorded(id=EventId(""), at=0.0, uncached=1_000, bill=bill_))
        assert figures(name) == [("bill", bill_.paid, False), (*would, False), difference]


def test_a_timeline_is_shown_as_in_a_report_and_goes_on(site: Site, store: MemoryStore) -> None:
    query = "?id=first"
    overview, contents = (site.get(f"{n}.json{query}").json for n in ("overview", "contents"))
    request = request_in(overview, contents, 0)
    assert request["system"][0]["text"] == "Be brief."
    assert overview["calls"]["exact"] == [1]
    with Timeline.open("first", store=store) as timeline:
        timeline.user("And now?")
        sent = timeline.render(system="Be brief.").request()
        timeline.record(answer(2))
    since = (
        f"&epoch={contents['epoch']}&blocks={len(contents['texts'])}&changes={contents['changes']}"
        f"&pieces={len(contents['pieces'])}&summaries={len(contents['summaries'])}"
    )
    new = site.get(f"contents.json{query}{since}").json
    assert new["texts"] == ["", "And now?", "Done."]
    overview = site.get(f"overview.json{query}").json
    pieces = {"pieces": contents["pieces"] + new["pieces"]}
    assert request_in(overview, pieces, 1) == sent
    assert overview["calls"]["exact"] == [1, 1]


def test_who_follows_is_told_of_every_append_at_once(site: Site, store: MemoryStore) -> None:
    told = site.told("changes?id=first")
    first = int(next(told))
    with Timeline.open("first", store=store) as timeline:
        timeline.user("Are you there?")
    assert int(next(told)) > first
    everything = site.told("changes")
    before = next(everything)
    with Timeline.open("third", store=store) as timeline:
        timeline.user("A new one")
    assert next(everything) != before


def test_what_is_hidden_on_request_is_not_served_from_then_on(
    site: Site, store: MemoryStore
) -> None:
    shown = site.get("contents.json?id=first").json
    assert "nightly" in str(shown)
    with Timeline.open("first", store=store) as timeline:
        timeline.hide("v2", replacement="(gone)")
    since = f"&epoch={shown['epoch']}&blocks={len(shown['texts'])}"
    again = site.get(f"contents.json?id=first{since}").json
    assert again["epoch"] != shown["epoch"], "who looks begins anew"
    assert "(gone)" in str(again)
    for path in ("contents.json?id=first", "overview.json?id=first", "timelines.json"):
        assert "nightly" not in site.get(path).text, path
    with serving(live_app(store, showing=Showing(hidden=True))) as open_site:
        assert "nightly" in open_site.get("contents.json?id=first").text
    with Timeline.open("first", store=store) as timeline:
        timeline.restore("v2")
    assert "nightly" in site.get("contents.json?id=first").text
    assert "nightly" in site.get("timelines.json").text


def test_a_timeline_whose_beginning_is_forgotten_is_shown_from_there_on(
    site: Site, store: MemoryStore
) -> None:
    looked_at_before = site.get("overview.json?id=first").json["blocks"]["version"]
    assert site.get("timelines.json").json["all"] == 1
    with Timeline.open("first", store=store, window=3_000) as timeline:
        for number in range(6):
            timeline.user(f"Question {number}: " + "and another word " * 200)
            timeline.record(answer(number + 2, "a long answer " * 200))
            timeline.compact()
        store.trim(TimelineId("first"), store.load_window(TimelineId("first")).events[0][0])
    rows = {row["id"]: row for row in site.get("timelines.json").json["rows"]}
    assert rows["first"]["prompt"] == "Why does the nightly job fail?", "it was read before"
    with serving(live_app(store)) as new_site:
        for each in (site, new_site):
            for path in ("timelines.json", "overview.json?id=first", "contents.json?id=first"):
                assert each.get(path).status == 200, path
            shown = each.get("overview.json?id=first").json["blocks"]["version"]
            assert min(shown) > max(looked_at_before)


def test_a_page_may_only_ask_its_own_server(site: Site) -> None:
    for path in ("", "timeline?id=first"):
        page = Page.of(site.get(path).text.encode())
        assert "connect-src 'self'" in page.policy
        assert "default-src 'none'" in page.policy
        assert page.addresses == []


def test_nothing_can_be_changed(site: Site) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert site.get("timelines.json", method).status == 405


def test_what_is_not_there_is_said(site: Site) -> None:
    for path in ("overview.json?id=none", "contents.json?id=none", "overview.json"):
        answer = site.get(path)
        assert (answer.status, "no timeline" in answer.text) == (404, True)
    assert site.get("nowhere").status == 404


def test_without_a_token_no_other_name_of_this_machine_is_answered(site: Site) -> None:
    """A page of somebody else's may have a name that leads here."""
    assert site.get("timelines.json", Host="evil.example").status == 403
    assert site.get("timelines.json", Host="localhost:1").status == 200
    assert site.get("timelines.json", Origin="http://evil.example").status == 403


def test_with_a_token_only_who_has_it_may_look(store: MemoryStore) -> None:
    with serving(live_app(store, token="open sesame")) as site:  # noqa: S106 -- a test's
        assert site.get("timelines.json").status == 401
        assert site.get("?token=wrong").status == 401
        assert site.get("timelines.json", Authorization="Bearer wrong").status == 401
        assert site.get("timelines.json", Authorization="Bearer open sesame").status == 200
        let_in = site.get("timeline?id=first&token=open%20sesame")
        assert (let_in.status, let_in.headers["location"]) == (303, "/timeline?id=first")
        cookie = let_in.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert site.get("timelines.json", Cookie=cookie.partition(";")[0]).status == 200


def test_it_can_be_mounted_in_another_app(store: MemoryStore) -> None:
    outer = Starlette(routes=[Mount("/look", live_app(store))])
    with serving(outer) as site:
        assert site.get("look/timelines.json").json["all"] == 1
        assert "Foldline.startLive" in site.get("look/timeline?id=first").text


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_store_given_by_its_address_is_free_between_two_looks(tmp_path: Path, kind: str) -> None:
    path = f"{kind}:///{tmp_path / 'store'}"
    with Timeline.open("first", store=path) as timeline:
        timeline.user("Hello")
    with serving(live_app(path)) as site:
        assert site.get("timelines.json").json["all"] == 1
        with Timeline.open("second", store=path) as timeline:
            timeline.user("Hello again")
            while_held = site.get("timelines.json")
        assert while_held.status == (503 if kind == "duckdb" else 200)
        assert site.get("timelines.json").json["all"] == 2


def test_a_long_list_is_cut_and_says_so(store: MemoryStore) -> None:
    for number in range(205):
        with Timeline.open(f"n{number}", store=store) as timeline:
            timeline.user(f"Question {number}")
    with serving(live_app(store)) as site:
        found = site.get("timelines.json").json
    assert (found["all"], len(found["rows"])) == (206, 200)
