"""The report and the live view in a real browser: every feature is clicked, and the browser complains of nothing.

Screenshots are kept in `.screenshots`, with the times that were measured.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from blocks import EventId, RangeCompacted, UsageRecorded
from persistence import MemoryStore
from persistence.sessions import Responded, read_session
from tests._sizes import PATIENCE
from tests.conftest import SCREENSHOTS
from tests.timeline.replay.test_replay import FILES, RECORDED
from tests.timeline.report.long_log import long_log
from tests.timeline.report.serving import serving
from timeline import Timeline, model_named
from timeline.billing import usage_price
from timeline.replay import ReplayOptions, replay_with_log
from timeline.report import Prompting, live_app, report_html, reported_log, reported_replay

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs/examples/invoice-service.jsonl"
CHROMIUM = os.environ.get("FOLDLINE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
SWITCHES = (
    *("--no-sandbox", "--headless", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
TABS = ("request", "compare", "summary", "search", "all", "policies", "numbers")

if CHROMIUM is None:
    pytest.skip(
        "no Chromium: apt-get install chromium, or set FOLDLINE_CHROMIUM", allow_module_level=True
    )
pytestmark = [pytest.mark.network, pytest.mark.enable_socket]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright for this platform")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def example(folder: Path) -> str:
    """Two policies side by side, of a session with a long name, and a note of one long word."""
    file = folder / f"rollout-2026-11-20T10-00-00-{'0a1b2c3d' * 4}.jsonl"
    file.write_bytes(EXAMPLE.read_bytes())
    session = read_session(file)
    policies = ("default", "frugal")
    done = [
        replay_with_log(session, ReplayOptions(window=20_000, counter="estimate", policy=policy))
        for policy in policies
    ]
    shown = list(map(reported_replay, done))
    notes = [f"interrupted: tc:t19.{'toolu' * 12}.call"]
    shown[0] = attrs.evolve(shown[0], facts={**shown[0].facts, "notes": notes})
    return written(folder / "example.html", report_html("example", shown))


def written(path: Path, html: bytes) -> str:
    path.write_bytes(html)
    return path.as_uri()


@attrs.define
class Visit:
    """A page in a browser, and what the browser complained of."""

    page: Any
    complaints: list[str] = attrs.field(factory=list[str])

    def open(self, url: str, wait: str = "canvas") -> "Visit":
        self.page.on("console", lambda said: self._said(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda asked: self._failed(asked.url))
        self.page.goto(url)
        self.page.wait_for_selector(wait)
        return self

    def _failed(self, url: str) -> None:
        if "/changes" not in url:  # it ends with the page
            self.complaints.append(url)

    def _said(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    def until(self, condition: str) -> None:
        """Wait for it. (Playwright's own way is forbidden by the page's policy.)"""
        end = time.monotonic() + PATIENCE
        while not self.page.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(20)  # between two looks

    def tab(self, name: str) -> None:
        self.page.click(f"#tab-{name}")
        self.until(f"location.hash.includes('tab={name}')")
        self.page.wait_for_timeout(30)  # most is drawn by then; `says` waits for the rest

    def says(self, words: str, selector: str = "#panel") -> None:
        """Wait until a part of the page says this: what was clicked is drawn a moment later."""
        self.until(f"document.querySelector({selector!r})?.innerText.includes({words!r})")

    def text(self, selector: str = "#panel") -> str:
        return str(self.page.inner_text(selector))

    def shot(self, name: str, *, whole: bool = True) -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)

    def no_complaint(self) -> None:
        assert self.complaints == []


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Opens pages: `visit(size, colours)`."""
    contexts: list[Any] = []

    def visit(size: dict[str, int] = WIDE, colours: str = "light") -> Visit:
        contexts.append(browser.new_context(viewport=size, color_scheme=colours, locale="en-US"))
        contexts[-1].set_default_timeout(1_000 * PATIENCE)
        return Visit(contexts[-1].new_page())

    yield visit
    for context in contexts:
        context.close()


def everything_is_clicked(at: Visit, name: str) -> None:
    """Each feature once, on whatever report."""
    at.until("!document.querySelector('#panel').innerText.includes('Opening')")
    assert "Request of call" in at.text()
    chosen_with_the_chart_and_the_keys(at)
    what_was_big_is_clicked(at)
    calls_are_sorted(at)
    the_chart_is_zoomed(at)
    a_block_is_clicked(at)
    requests_are_read(at)
    two_requests_are_compared(at)
    summaries_are_read(at)
    something_is_searched(at)
    tables_are_read(at)
    at.tab("request")
    at.shot(name)
    at.no_complaint()


def chosen(at: Visit) -> int:
    return int(at.page.get_attribute("[role=slider]", "aria-valuenow"))


def chosen_with_the_chart_and_the_keys(at: Visit) -> None:
    page, count = at.page, int(at.page.get_attribute("[role=slider]", "aria-valuemax"))
    assert chosen(at) == count, "the newest call, to begin with"
    box = page.locator(".u-over").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 20)
    at.until(f"document.querySelector('[role=slider]').ariaValueNow !== '{count}'")
    assert abs(chosen(at) - count / 2) <= max(2, count / 50)
    page.focus("[role=slider]")
    for key, call in (
        ("Home", 1),
        ("ArrowRight", 2),
        ("PageUp", 12),
        ("ArrowLeft", 11),
        ("End", count),
    ):
        page.keyboard.press(key)
        at.until(f"document.querySelector('[role=slider]').ariaValueNow === '{min(call, count)}'")
    assert f"call {count} of {count}" in page.get_attribute("[role=slider]", "aria-valuetext")
    assert "tokens" in at.text(".readout")


def what_was_big_is_clicked(at: Visit) -> None:
    """Every cell has the area that its tokens have; a block is told at the pointer, and shown beside the chart."""
    page = at.page
    found = page.evaluate("""() => {
        const { map, run } = Foldline.shown, { width, height } = map.canvas.getBoundingClientRect();
        const cells = map.cells.filter((cell) => !cell.isHeading), block = cells.find((cell) => cell.block != null);
        const bounds = map.canvas.getBoundingClientRect();
        return {
            cells: cells.length,
            tokens: cells.reduce((sum, cell) => sum + cell.size, 0) / run.blocks.tokens.reduce((a, b) => a + b, 0),
            area: cells.reduce((sum, cell) => sum + cell.width * cell.height, 0) / (width * height),
            at: block && [bounds.left + block.x + block.width / 2, bounds.top + block.y + block.height / 2],
        };
    }""")
    assert found["tokens"] == pytest.approx(1)
    assert 0.6 < found["area"] <= 1.001, "the rest is headings"
    assert found["cells"] < 4_000, "what is too small to be seen is drawn together"
    if found["at"]:
        page.mouse.move(*found["at"])
        at.says("tokens", "#tip")
        page.mouse.click(*found["at"])
        at.says("Where it went", "#aside")
        assert page.locator(".beside").bounding_box()["y"] < page.viewport_size["height"]
    page.click("text=by money")
    at.until("Foldline.shown.map.money")
    page.click("text=by tokens")
    page.click("[aria-label='Colours of the map'] button >> nth=0")
    at.until("Foldline.shown.map.inside && location.hash.includes('aside=largest')")
    assert page.locator("#aside tbody tr").count() > 0
    page.click(".charts button.link:has-text('all')")
    at.until("!Foldline.shown.map.inside")


def calls_are_sorted(at: Visit) -> None:
    """With the keys as with the pointer."""
    page = at.page
    page.click("#tab-calls")
    for name in ("money", "tokens", "time", "call"):
        page.focus(f"#aside button.sort:has-text('{name}')")
        page.keyboard.press("Enter")
        heading = f"[...document.querySelectorAll('#aside th')].find((th) => th.innerText.startsWith('{name}'))"
        at.until(f"{heading}.ariaSort !== 'none'")
    first = "document.querySelector('#aside tbody button.link').innerText"
    assert page.evaluate(first) == "call 1"
    page.keyboard.press("Enter")
    at.until(f"{first} !== 'call 1'")
    page.click("#aside tbody button.link >> nth=0")
    at.until(
        "document.querySelector('[role=slider]').ariaValueNow === document.querySelector('[role=slider]').ariaValueMax"
    )


def the_chart_is_zoomed(at: Visit) -> None:
    page = at.page
    page.click("[aria-label='By call'] >> text=tokens")
    page.click("text=Where blocks went")
    at.until("Foldline.shown.lanes")
    shown = "(() => { const s = Foldline.shown.plot.scales.x; return s.max - s.min; })()"
    whole = page.evaluate(shown)
    page.focus("[role=slider]")
    page.keyboard.press("+")
    assert page.evaluate(shown) == pytest.approx(whole / 2, rel=0.3)
    page.click("[title^='Show all calls']")
    assert page.evaluate(shown) == pytest.approx(whole)
    box = page.locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 30, steps=4)
    page.mouse.up()
    assert page.evaluate(shown) == pytest.approx(whole * 0.2, rel=0.2)
    lanes = page.evaluate("[Foldline.shown.lanes.left, Foldline.shown.lanes.width]")
    curve = page.evaluate(
        "[Foldline.shown.plot.bbox.left / devicePixelRatio, Foldline.shown.plot.bbox.width / devicePixelRatio]"
    )
    assert lanes == curve, "a call is at the same place in the lanes and in the chart"
    page.click("[title^='Show all calls']")
    page.select_option("text=colour by >> select", "kind")
    page.select_option("text=colour by >> select", "state")
    page.click("text=scale to everything")
    page.click("text=scale to everything")


def a_block_is_clicked(at: Visit) -> None:
    page = at.page
    block = page.evaluate("""() => {
        const { run, lanes } = Foldline.shown;
        const block = run.changes.block.find((at) => lanes.placeOf(at));
        const { x, y, width, height } = lanes.placeOf(block ?? 1);
        const bounds = lanes.canvas.getBoundingClientRect();
        return [bounds.left + x + width / 2, bounds.top + y + height / 2];
    }""")
    page.mouse.move(block[0] + 1, block[1])
    page.mouse.move(*block)
    at.says("at the chosen call", "#tip")
    page.mouse.click(*block)
    at.says("Block v", "#aside")
    told = at.text("#aside")
    for words in (
        "Where it went",
        "appended",
        "The way back to it",
        "foldline show",
        "timeline.read(",
    ):
        assert words in told, words
    at.page.click("[aria-label='block after']")
    at.page.click("[aria-label='block before']")


def requests_are_read(at: Visit) -> None:
    page = at.page
    at.tab("request")
    told = at.text()
    for words in ("read", "written", "uncached", "paid", "sending everything", "cache point"):
        assert words in told, words
    page.click("text=As JSON >> nth=0")
    page.wait_for_selector("#panel pre.json")
    request = json.loads(page.inner_text("#panel pre.json"))
    assert request["messages"][0]["role"] == "user"
    assert request == page.evaluate("Foldline.shown.run.request(Foldline.shown.run.length - 1)")
    page.click("text=As text")
    page.click("text=Copy as JSON")
    at.says("Copied", "#said")
    page.click("#panel .piece .head button.link >> nth=-1")
    at.says("Block v", "#aside")
    page.keyboard.press("Escape")


def two_requests_are_compared(at: Visit) -> None:
    at.tab("request")
    at.page.click("text=Compare with the call before")
    at.says("only in the second")
    assert re.search(
        r"pieces? in both, [\d,]+ only in the first, [\d,]+ only in the second", at.text()
    )
    at.page.fill("#panel fieldset >> nth=0 >> input[type=number]", "1")
    at.page.keyboard.press("Tab")
    at.until("location.hash.includes('other=0')")
    at.says("only in the second", ".sides")


def summaries_are_read(at: Visit) -> None:
    at.tab("summary")
    at.page.click("#panel .choices button >> nth=-1")
    at.page.wait_for_selector("#panel .document h4")
    assert at.page.locator("#panel .document p").count() > 0
    told = at.text()
    for words in (
        "Coverage",
        "Provenance and cost",
        "Digest",
        "covers versions",
        "written by",
        "tokens before",
    ):
        assert words in told, words
    at.page.click("text=changes since the one before")
    at.page.wait_for_selector("#panel .diff .added")
    at.page.click("text=as it was sent")
    at.says("<summary", "#panel pre.json")
    at.page.click("text=Show the request that has it first")
    at.says("compacted", "#panel h3")


def something_is_searched(at: Visit) -> None:
    at.page.focus("#tab-request")
    at.page.keyboard.press("/")
    at.page.keyboard.type("module")
    at.until("document.querySelector('#panel').innerText.includes('with “module”')")
    assert at.page.locator("#panel mark").count() > 0
    at.page.click("#panel tbody button.link >> nth=0")
    at.says("Block v", "#aside")
    at.page.keyboard.press("Escape")


def tables_are_read(at: Visit) -> None:
    at.tab("all")
    assert at.page.locator("#panel tbody tr").count() <= 100
    at.page.click("#panel tbody button.link >> nth=0")
    at.says("Request of")
    at.tab("numbers")
    assert "caches lost" in at.text()
    at.page.keyboard.press("ArrowLeft")
    at.until("!location.hash.includes('tab=numbers')")


def measured(at: Visit, name: str) -> dict[str, float]:
    """Seconds until the bill was painted, milliseconds in which the map is placed and drawn, and those of a frame of
    the lanes."""
    times: dict[str, float] = at.page.evaluate("""() => {
        const { map, run } = Foldline.shown, frames = [], lanes = new Foldline.Lanes(document.createElement("canvas"), run);
        document.createElement("div").append(lanes.canvas);
        const before = performance.now();
        run.partsOf.clear();
        map.key = "";
        map.draw(0, 1);
        const map_ms = performance.now() - before;
        for (let at = 0; at < 20; at++) {
            const began = performance.now();
            lanes.draw(Math.floor((run.length * at) / 20), 1);
            frames.push(performance.now() - began);
        }
        const [paint] = performance.getEntriesByName("first-contentful-paint");
        return { first_paint_s: (paint?.startTime ?? 0) / 1000, bill_s: performance.getEntriesByName("bill")[0].startTime / 1000, map_ms, frame_ms: frames.sort((a, b) => a - b)[10] };
    }""")
    SCREENSHOTS.mkdir(exist_ok=True)
    (SCREENSHOTS / f"{name}.json").write_text(
        json.dumps({k: round(v, 2) for k, v in times.items()})
    )
    return times


def test_everything_works_on_twenty_thousand_blocks(visit: Any, folder: Path) -> None:
    with Timeline.open("x") as timeline:
        prompting = Prompting(settings=timeline.settings, counter="estimate")
    facts = {"name": "long", "title": "Twenty thousand blocks", "timeline": "long"}
    html = report_html("long", [reported_log(long_log(), prompting, facts, hidden=True)])
    at = visit().open(written(folder / "long.html", html))
    times = measured(at, "long")
    everything_is_clicked(at, "long")
    assert times["frame_ms"] < 500, "smooth is 30; this only notices what is quadratic"
    assert times["map_ms"] < 3_000, "as quick is 50"


@pytest.mark.recorded
# Recorded sessions are no part of the project: a clone has none.
@pytest.mark.skipif(not FILES, reason=f"no recorded sessions in {RECORDED}")
def test_everything_works_on_the_largest_recorded_session(visit: Any, folder: Path) -> None:
    largest = max((RECORDED / name for name in FILES), key=lambda path: path.stat().st_size)
    done = replay_with_log(read_session(largest), ReplayOptions(window=30_000))
    assert any(isinstance(event, RangeCompacted) for _, event in done.log)
    at = visit().open(
        written(folder / "recorded.html", report_html("recorded", [reported_replay(done)]))
    )
    measured(at, "recorded")
    everything_is_clicked(at, "recorded")


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_view_can_be_used_by_everybody_and_fits_its_screen(
    visit: Any, example: str, size: dict[str, int], colours: str
) -> None:
    """By the rules of axe-core; nothing is wider than the screen."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    at = visit(size, colours).open(f"{example}#query=invoice&block=40")
    at.until("!document.querySelector('#panel').innerText.includes('Opening')")
    for aside in ("calls", "largest", "block"):
        at.page.click(f"#tab-{aside}")
        at.page.wait_for_selector("#aside")
        name = f"first-{'wide' if size is WIDE else 'narrow'}-{colours}-{aside}"
        at.shot(name, whole=False)
        assert axe.run(at.page).response["violations"] == [], aside
        assert at.page.evaluate("document.documentElement.scrollWidth") <= size["width"], aside
    for tab in TABS:
        at.tab(tab)
        at.shot(f"{'wide' if size is WIDE else 'narrow'}-{colours}-{tab}")
        found = axe.run(at.page).response["violations"]
        told = [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]
        assert told == [], tab
        width = at.page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], f"{tab} is {width} wide"
    at.no_complaint()


def test_an_imported_log_is_not_measured_against_what_it_does_not_hold(visit: Any) -> None:
    """What its agent sent had a system prompt and tools, and the log has blocks alone."""
    store = MemoryStore()
    with Timeline.open("imported", store=store) as timeline:
        timeline.user("Why does the nightly job fail?")
        content = [{"type": "text", "text": "The disk is full."}]
        usage = {"input_tokens": 50_000, "output_tokens": 5}
        model = "claude-sonnet-5-5"
        timeline.record({"id": "m1", "content": content, "usage": usage, "model": model})
    with serving(live_app(store)) as site:
        list_ = visit(NARROW).open(site.url, "table")
        assert "$0.1" in list_.text("table")
        width = list_.page.evaluate("document.querySelector('.scroll').scrollWidth")
        assert width <= NARROW["width"], "the money is seen without scrolling"
        list_.shot("live-list-narrow")
        list_.no_complaint()
        list_.page.goto("about:blank")
        at = visit().open(f"{site.url}timeline?id=imported")
        at.until("document.querySelector('.figures')")
        figures = at.text(".figures")
        assert "$0.1" in figures
        assert "by the reported usage" in figures
        assert figures.count("–") == 2, "what nothing computed is not said"
        for tab in ("request", "all"):
            at.tab(tab)
            assert "blocks alone" in at.text()
            assert "sending everything" not in at.text()
        assert "the log was imported" in at.text("main")
        at.no_complaint()
        at.page.goto("about:blank")


def test_a_difference_is_one(visit: Any, example: str) -> None:
    """What it keeps and adds is the new list, what it keeps and takes the old one; of little that is new, little
    is said."""
    at = visit().open(example)
    wrong = at.page.evaluate("""() => {
        let seed = 7;
        const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
        const list = () => Array.from({ length: random(14) }, () => "abcd"[random(4)]);
        for (let at = 0; at < 2000; at++) {
            const old = list(), now = list(), found = Foldline.diff(old, now);
            const kept = (sign) => found.filter(([each]) => each !== sign).map(([, item]) => item);
            if (String(kept("+")) !== String(old) || String(kept("-")) !== String(now)) return [old, now];
        }
        return Foldline.diff([..."ABCABBA"], [..."CBABAC"]).filter(([sign]) => sign !== " ").length;
    }""")
    assert wrong == 5, "the least that there is, by Myers"


@pytest.fixture(scope="module")
def billed(folder: Path) -> str:
    """A recorded session with usage, of which foldline would have cost more; its log names title and folder."""
    session = read_session(EXAMPLE)
    items = tuple(
        attrs.evolve(item, model="claude-sonnet-5-5", usage=usage(number))
        if isinstance(item, Responded)
        else item
        for number, item in enumerate(session.items)
    )
    session = attrs.evolve(
        session, items=items, aside=(usage(200),), title="The nightly job", folder="/home/dev/shop"
    )
    done = replay_with_log(session, ReplayOptions(window=20_000, counter="estimate"))
    dearer = attrs.evolve(done.result.recorded_bill, foldline=done.result.recorded_bill.dollars + 1)
    done = attrs.evolve(done, result=attrs.evolve(done.result, recorded_bill=dearer))
    return written(folder / "billed.html", report_html("billed", [reported_replay(done)]))


def usage(number: int) -> UsageRecorded:
    return UsageRecorded(
        id=EventId("u"),
        at=0.0,
        model="claude-sonnet-5-5",
        uncached=3,
        cache_read=400 * number,
        cache_write=500,
        output=90,
    )


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_first_screen_says_where_the_money_went(
    visit: Any, billed: str, size: dict[str, int]
) -> None:
    """Without scrolling: what it is, the bill, what it would have been, and that this is more."""
    at = visit(size).open(billed)
    header = at.text("header")
    for words in ("The nightly job", "/home/dev/shop", "2026-03-11 09:03 to 09:28", "sonnet"):
        assert words in header, words
    bill, would, more = at.page.locator(".figure").all_inner_texts()
    assert re.match(r"(?i)bill\s+\$\d+\.\d+\s+64 calls, 1 of them outside", bill)
    assert "estimated" in would
    assert re.match(r"(?i)more\s+\$1\.00\s+\d+% of the bill", more)
    assert at.page.locator(".figure.loss").count() == 1
    assert "Recorded bill by call" in at.text(".charts")
    money = at.page.evaluate("Foldline.sum(Foldline.shown.run.paid)")
    outside = usage_price(usage(200), model_named("claude-sonnet-5-5"))
    assert f"${money + outside:.3f}" in bill, "the bars add up to the bill"
    assert f"outside the conversation ${outside:.3f}" in at.text(".charts")
    told = at.text(".charts .legend >> nth=0")
    assert all(f"{kind} $" in told for kind in ("cache read", "cache write", "uncached", "answer"))
    if size is WIDE:
        for part in (".figures", ".map", ".beside"):
            box = at.page.locator(part).bounding_box()
            assert box["y"] + box["height"] <= size["height"], part
    at.no_complaint()


def test_a_block_far_from_its_place_is_shown_over_the_page(visit: Any, example: str) -> None:
    at = visit(NARROW).open(example)
    at.page.click("#panel .piece .head button.link >> nth=-1")
    at.says("Where it went", ".sheet")
    box = at.page.locator(".sheet").bounding_box()
    assert box["y"] + box["height"] <= NARROW["height"]
    at.page.keyboard.press("Escape")
    at.until("!document.querySelector('.sheet')")
    at.no_complaint()


def test_a_text_is_a_document_and_nothing_in_it_is_obeyed(visit: Any, example: str) -> None:
    text = (
        "<summary-204 version='5'>\n# Where things <b>stand</b>\n\nA **strong** word, `code <i>`, "
        "<img src=x onerror=alert(1)> [a](javascript:alert(1)) [v2]\n\n- one\n  - inner\n  goes on\n- two\n\n"
        "3. three\n\n> said\n\n```js\n<script>alert(1)</script>\n# no heading\n```\n\n"
        "| a | b |\n|---|---|\n| <u>1</u> | 2 |\n</summary-204>"
    )
    at = visit().open(example)
    found = at.page.evaluate(
        """(text) => {
            const place = document.createElement("div"), { run } = Foldline.shown;
            htmPreact.render(htmPreact.html`<${Foldline.Document} text=${text} run=${run} go=${() => 0} />`, place);
            const count = (selector) => place.querySelectorAll(selector).length;
            return {
                strange: count("img, script, b, i, u, a"),
                known: ["h4", "strong", "code", "button.link", "ul ul li", "ul > li", "ol[start='3']", "blockquote", "pre.code", "td"].map(count),
                code: place.querySelector("pre").textContent,
                words: place.textContent,
            };
        }""",
        text,
    )
    assert found["strange"] == 0
    assert found["known"] == [1, 1, 1, 1, 1, 3, 1, 1, 1, 2]
    assert found["code"] == "<script>alert(1)</script>\n# no heading"
    assert "<img src=x onerror=alert(1)> [a](javascript:alert(1))" in found["words"]
    assert "<summary" not in found["words"]
    at.no_complaint()


def test_texts_that_load_later_are_waited_for(visit: Any, example: str) -> None:
    at = visit().open(example)
    waiting = at.page.evaluate("""() => {
        const place = document.createElement("div"), { run } = Foldline.shown;
        const state = { block: 1, call: 0, query: "x", summary: 0, inside: "" };
        return [Foldline.BlockDetails, Foldline.RequestPanel, Foldline.SummaryPanel, Foldline.SearchPanel].map((part) => {
            htmPreact.render(htmPreact.html`<${part} run=${run} runs=${[run]} state=${state} call=${0} ready=${false} go=${() => 0} />`, place);
            return Boolean(place.querySelector(".waiting[role=status]"));
        });
    }""")
    assert waiting == [True] * 4


def test_policies_stand_side_by_side(visit: Any, example: str) -> None:
    at = visit().open(example)
    at.tab("policies")
    rows = at.page.locator("#panel tbody tr")
    assert rows.count() == 2
    at.page.click("#panel tbody button.link >> nth=1")
    at.says("policy frugal", ".counts")
    assert at.page.input_value("#run") == "1"
    at.tab("compare")
    at.page.select_option("#panel fieldset >> nth=0 >> select", "0")
    at.says(" in both, ")
    at.no_complaint()


def test_the_theme_is_the_readers_choice(visit: Any, example: str) -> None:
    at = visit(WIDE, "light").open(example)
    themes = []
    for _ in range(3):
        at.page.click("text=theme:")
        at.page.wait_for_timeout(100)  # a click is handled before it returns
        themes.append(at.page.evaluate("document.documentElement.dataset.theme"))
    assert themes == ["dark", "light", "light"]
    at.page.emulate_media(color_scheme="dark")
    at.until("document.documentElement.dataset.theme === 'dark'")
    at.no_complaint()


def test_an_address_leads_to_what_it_says(visit: Any, example: str) -> None:
    at = visit().open(f"{example}#run=1&call=7&tab=summary")
    assert at.page.input_value("#run") == "1"
    assert chosen(at) == 7
    assert at.page.get_attribute("#tab-summary", "aria-selected") == "true"
    at = visit().open(f"{example}#inside=99/99&block=99999&aside=block&view=nowhere")
    assert "Choose a block" in at.text("#aside")
    at.page.click("#tab-largest")
    at.page.click("#aside tbody button.link >> nth=0")
    at.until("/inside=\\d+%2F\\d+/.test(location.hash)")
    at.page.select_option("#run", "1")
    at.until("!location.hash.includes('inside=')")
    at.no_complaint()


def test_the_live_view_follows_an_agent(visit: Any) -> None:
    store = MemoryStore()
    timeline = Timeline.open("agent at work", store=store)
    timeline.user("Why does the nightly job fail?")
    with serving(live_app(store)) as site:
        at = visit().open(site.url, "table")
        assert "Why does the nightly job fail?" in at.text("table")
        at.shot("live-list")
        with Timeline.open("another", store=store) as other:
            other.user("A second agent")
        at.until("document.querySelector('table').innerText.includes('A second')")
        at.page.click("text=agent at work")
        at.until("document.querySelector('.figures')")
        for call in range(1, 4):
            timeline.render()
            content = [{"type": "text", "text": f"I have looked {call} times."}]
            timeline.record({"id": f"m{call}", "content": content})
            at.until(f"document.querySelector('[role=slider]')?.ariaValueNow === '{call}'")
        at.page.click("text=follow")
        at.page.focus("[role=slider]")
        at.page.keyboard.press("Home")
        timeline.render()
        timeline.record({"id": "m9", "content": [{"type": "text", "text": "Once more."}]})
        at.until("document.querySelector('[role=slider]').ariaValueMax === '4'")
        assert chosen(at) == 1, "who looks at something is not taken away from it"
        at.tab("search")
        at.page.fill("#query", "Once more")
        at.until("document.querySelector('#panel mark')")
        at.shot("live-timeline")
        at.no_complaint()
        at.page.goto("about:blank")
    timeline.close()
