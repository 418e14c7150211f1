"""Draw docs/images/session.svg: the tokens of the example session, call by call, with and without the engine; and, if
there is a Chromium, docs/images/report.png: the first screen of the report that `make demo` writes of it.

python docs/build_pictures.py            # or: make docs

Colours are of middle brightness on no background, so that the picture can be read on a light and on a dark page.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from persistence.sessions import read_session
from timeline.replay import Point, ReplayOptions, ReplayResult, replay, replay_with_log
from timeline.report import report_html, reported_replay

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "images" / "session.svg"
SCREEN = ROOT / "docs" / "images" / "report.png"
SESSION = ROOT / "docs" / "examples" / "invoice-service.jsonl"
WINDOW: Final = 30_000

WIDTH, HEIGHT = 760, 330
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 34, 52
TEXT, BAR, EVERYTHING, FOLD = "#7b828c", "#2f9e6e", "#d9822b", "#b25cc4"


def picture() -> str:
    """The whole file."""
    result = replay(read_session(SESSION), ReplayOptions(window=WINDOW))
    top = max(point.full_tokens for point in result.points) * 1.04
    return "".join(f"{line}\n" for line in drawn(result, top))


def drawn(result: ReplayResult, top: float) -> Iterator[str]:
    """Its lines."""
    told = (
        f"Tokens of the prompt at each of {result.calls} calls. Sending everything grows to "
        f"{top / 1.04:,.0f} tokens; foldline stays below its window of {WINDOW:,}."
    )
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="system-ui, sans-serif" font-size="12" role="img">'
    )
    yield f"<title>{told}</title>"
    for tokens in range(0, int(top), 30_000):
        y = down(tokens, top)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{TEXT}" stroke-opacity="0.35"/>'
        yield words(LEFT - 6, y + 4, f"{tokens // 1000}k" if tokens else "0", "end")
    yield from bars(result.points, top)
    yield from marks(result, top)
    yield "</svg>"


def bars(points: Sequence[Point], top: float) -> Iterator[str]:
    """A bar for each request, the curve of sending everything, a mark where something was folded."""
    step = (WIDTH - LEFT - RIGHT) / len(points)
    for at, point in enumerate(points):
        x, y = LEFT + at * step, down(point.tokens, top)
        yield (
            f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{step - 2:.1f}" '
            f'height="{down(0, top) - y:.1f}" fill="{BAR}"/>'
        )
        if "compacted" in point.events:
            y = down(0, top) + 5
            yield f'<path d="M{x + step / 2:.1f} {y:.1f}l5 9h-10z" fill="{FOLD}"/>'
    line = " ".join(
        f"{LEFT + (at + 0.5) * step:.1f},{down(point.full_tokens, top):.1f}"
        for at, point in enumerate(points)
    )
    yield f'<polyline points="{line}" fill="none" stroke="{EVERYTHING}" stroke-width="2.5"/>'


def marks(result: ReplayResult, top: float) -> Iterator[str]:
    """What the colours stand for, and the window."""
    y, base = down(WINDOW, top), HEIGHT - 12
    yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{TEXT}" stroke-dasharray="6 4"/>'
    yield words(WIDTH - RIGHT, y - 5, f"window of {WINDOW:,} tokens", "end")
    yield words(LEFT, 18, "tokens in the prompt", "start")
    yield f'<rect x="{LEFT}" y="{base - 10}" width="12" height="11" fill="{BAR}"/>'
    yield words(LEFT + 18, base, f"foldline: ${result.cost.total:.2f} for all calls", "start")
    yield f'<path d="M262 {base - 4}h20" stroke="{EVERYTHING}" stroke-width="2.5"/>'
    yield words(288, base, f"sending everything: ${result.cost.full_history:.2f}", "start")
    yield f'<path d="M482 {base - 9}l5 9h-10z" fill="{FOLD}"/>'
    yield words(494, base, "older blocks folded", "start")
    yield words(WIDTH - RIGHT, base, f"{result.calls} calls →", "end")


def down(tokens: float, top: float) -> float:
    """Where a number of tokens is, from above."""
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - tokens / top)


def words(x: float, y: float, text: str, anchor: str) -> str:
    """A label."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{TEXT}">{text}</text>'


def screen(chromium: str) -> None:
    """Paint the first screen of the report, as the browser at this path shows it."""
    from playwright.sync_api import sync_playwright  # only who tests has it

    done = replay_with_log(read_session(SESSION), ReplayOptions(window=WINDOW))
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        page.write_bytes(report_html(SESSION.stem, [reported_replay(done)]))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 800}, locale="en-US")
        tab.goto(page.as_uri())
        tab.wait_for_selector("canvas")
        tab.wait_for_timeout(500)
        tab.screenshot(path=SCREEN)
        browser.close()


if __name__ == "__main__":
    OUT.write_text(picture(), encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)}: drawn")
    if found := os.environ.get("FOLDLINE_CHROMIUM") or shutil.which("chromium"):
        screen(found)
        print(f"{SCREEN.relative_to(ROOT)}: drawn")
    else:
        print(f"{SCREEN.relative_to(ROOT)}: as it was, since there is no Chromium")
