"""Draw docs/images/session.svg: the tokens of the example session, call by call, with and without the engine.

python docs/build_pictures.py            # or: make docs

Colours are of middle brightness on no background, so that the picture can be read on a light and on a dark page.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from persistence.sessions import read_session
from timeline.replay import Point, ReplayOptions, ReplayResult, replay

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "images" / "session.svg"
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


if __name__ == "__main__":
    OUT.write_text(picture(), encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)}: drawn")
