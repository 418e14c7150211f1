"""A key is the client's and the provider's, a token the reader's: none is in a report or a page of the live view."""

import json
from pathlib import Path

import pytest

from tests.timeline.cli.conftest import Run, run
from tests.timeline.gateway._two_ways import KEY, WIRES, Ways, ways
from tests.timeline.report.pages import Page
from tests.timeline.report.serving import serving
from timeline import Timeline
from timeline.report import live_app

__all__ = ["run", "ways"]

pytestmark = pytest.mark.network

TOKEN = "open-sesame-0123456789"  # noqa: S105 -- a test's
OF_A_TIMELINE = ("timeline", "overview.json", "contents.json")


def told_by(page: bytes) -> str:
    """All that a report says, as it is written and unpacked."""
    return page.decode() + Page.of(page).everything


def test_no_key_of_an_agent_behind_the_gateway_is_shown(run: Run, ways: Ways) -> None:
    for wire in WIRES.values():
        ways.both(wire, stream=True)
    ways.raw("POST", "/v1/messages", content=b"{", headers={"authorization": f"Bearer {KEY}"})
    ways.close()
    store = ("--store", str(ways.store))
    names = [row["id"] for row in json.loads(run("list", "--json", *store).out)]
    assert names
    with serving(live_app(str(ways.store))) as site:
        for name in names:
            assert run("report", name, "--output", "out.html", *store).code == 0
            report = told_by(Path("out.html").read_bytes())
            pages = [site.get(f"{path}?id={name}").text for path in OF_A_TIMELINE]
            shown = [report, *pages, site.get().text, site.get("timelines.json").text]
            assert "notes.md" in report, "what was said is shown"
            assert [text for text in shown if KEY in text] == []


def test_no_header_or_address_of_a_recorded_request_is_shown(run: Run) -> None:
    """An archive of HTTP traffic has them all."""
    asked = {**WIRES["messages"].body}
    answer = {
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [{"type": "text", "text": "Done."}],
        "usage": {"input_tokens": 100, "output_tokens": 5},
    }
    content = {"mimeType": "application/json", "text": json.dumps(answer)}
    keys = [{"name": n, "value": f"Bearer {KEY}"} for n in ("authorization", "x-api-key", "cookie")]
    entry = {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "request": {
            "method": "POST",
            "url": f"https://api.example/v1/messages?key={KEY}",
            "headers": keys,
            "cookies": keys,
            "queryString": keys,
            "postData": {"text": json.dumps(asked)},
        },
        "response": {"headers": keys, "content": content},
    }
    Path("traffic.json").write_text(json.dumps({"log": {"entries": [entry]}}))
    ran = run("replay", "traffic.json", "--html", "out.html", "--store", "s.duckdb")
    assert ran.code == 0, ran.err
    report = told_by(Path("out.html").read_bytes())
    assert "notes.md" in report, "what was said is shown"
    assert KEY not in report + ran.out + ran.err
    assert KEY.encode() not in Path("s.duckdb").read_bytes()


def test_no_page_of_the_live_view_has_the_token(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store'}"
    with Timeline.open("first", store=store) as timeline:
        timeline.user("Hello")
    with serving(live_app(store, token=TOKEN)) as site:
        paths = ["", "timelines.json", "nowhere", *(f"{path}?id=first" for path in OF_A_TIMELINE)]
        answers = [site.get(path, Authorization=f"Bearer {TOKEN}") for path in paths]
        assert [answer.status for answer in answers] == [200, 200, 404, 200, 200, 200]
        refused = [site.get(f"{path}{'&' if '?' in path else '?'}token=x") for path in paths]
        assert {answer.status for answer in refused} == {401}
        let_in = site.get(f"?token={TOKEN}")
        assert TOKEN not in let_in.headers["location"]
        said = [f"{answer.headers} {answer.text}" for answer in (*answers, *refused)]
        assert TOKEN not in " ".join([*said, let_in.text])
