"""The page loads nothing, may load nothing, and holds what others wrote without obeying it."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from persistence import MemoryStore
from tests._table import for_each
from tests.timeline.report.pages import Page
from timeline import Timeline
from timeline.report import Prompting, report_html, reported_log
from timeline.report._page import LIBRARIES, STYLES, asset

STATIC = Path(__file__).parents[3] / "timeline/report/static"
MANIFEST: list[dict[str, str]] = json.loads((STATIC / "vendor/manifest.json").read_text())
NASTY = "</script><script>alert(1)</script><!-- <script> ]]> \ud800 \u2028 <b>"


def nasty() -> bytes:
    with Timeline.open("x", store=MemoryStore()) as timeline:
        timeline.user(NASTY.replace("\ud800", ""))
        timeline.render()
        facts = {"name": NASTY, "title": NASTY, "timeline": "x"}
        prompting = Prompting(settings=timeline.settings, system=NASTY.replace("\ud800", ""))
        reported = reported_log(list(timeline.events()), prompting, facts, hidden=False)
    return report_html(NASTY, [reported])


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_only_what_is_in_the_page_may_run_and_nothing_may_be_loaded() -> None:
    page = Page.of(nasty())
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'none'"
    assert rules["script-src"].split() == [hashed(script) for script in page.scripts]
    assert rules["style-src"].split() == [hashed(style) for style in page.styles]
    assert page.addresses == []


def test_nothing_that_others_wrote_ends_a_script_or_begins_one() -> None:
    page = Page.of(nasty())
    assert len(page.scripts) == len(LIBRARIES) + 1
    assert all("alert(1)" not in script for script in page.scripts)
    facts = page.json("report")["runs"][0]
    assert facts["title"].startswith("</script><script>alert(1)")
    assert "</script><script>alert(1)" in page.json("contents-0")["texts"][-1]


def test_our_own_scripts_hold_nothing_that_ends_them() -> None:
    for path in STATIC.rglob("*.js"):
        text = path.read_text(encoding="utf-8").lower()
        assert "</script" not in text, path.name
        assert "<!--" not in text, path.name
    for path in STATIC.rglob("*.css"):
        assert "</style" not in path.read_text(encoding="utf-8").lower(), path.name


def test_our_own_scripts_ask_nobody_and_run_no_text() -> None:
    for path in STATIC.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?://|\beval\(|new Function|innerHTML|document\.write", text), (
            path
        )
        assert path.name == "live.js" or "fetch(" not in text, path


@for_each("row", MANIFEST, ids=lambda row: row["file"])
def test_what_is_not_ours_is_what_was_published(row: dict[str, Any]) -> None:
    """Its hash, its version and its licence stand beside it."""
    content = (STATIC / "vendor" / row["file"]).read_bytes()
    found = base64.b64encode(hashlib.sha384(content).digest()).decode()
    assert row["integrity"] == f"sha384-{found}"
    for name in row["licence_file"].split(", "):
        assert len((STATIC / "vendor" / name).read_text()) > 500, name
    assert row["version"] in row["from"]


def test_nothing_else_is_vendored() -> None:
    listed = {name for row in MANIFEST for name in (row["file"], *row["licence_file"].split(", "))}
    assert {path.name for path in (STATIC / "vendor").iterdir()} == {*listed, "manifest.json"}
    used = {name.removeprefix("vendor/") for name in (*LIBRARIES, *STYLES) if "vendor" in name}
    assert used == {row["file"] for row in MANIFEST}


def test_every_number_on_the_page_has_an_explanation() -> None:
    words, found = asset("words.js"), list[str]()
    for script in ("panels.js", "details.js", "app.js"):
        found += re.findall(r'Foldline\.Number\} name="([^"]+)"', asset(script))
        found += re.findall(r'\{ name: "([^"]+)"', asset(script))
        found += re.findall(r'\b(?:money|kept|total|tokens)\("([^"]+)", ', asset(script))
    source = (STATIC.parent / "_money.py").read_text(encoding="utf-8")
    found += re.findall(r'(?:Figure|_unknown)\(\s*"([^"]+)"', source)
    assert len(found) > 30
    assert [name for name in found if f'"{name}":' not in words] == []
