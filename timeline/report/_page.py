"""The page: one HTML file with everything in it, which loads nothing and may load nothing.

Its Content-Security-Policy allows the scripts and styles in it by their hashes, and nothing else.  What a report
holds is compressed and stands in it as base64, in which nothing can end a script.
"""

import base64
import gzip
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Final

import msgspec

from blocks import clean_json

LIBRARIES: Final = ("vendor/uplot.js", "vendor/htm-preact.js")
SCRIPTS: Final = (
    "data.js",
    "diff.js",
    "chart.js",
    "lanes.js",
    "words.js",
    "panels.js",
    "app.js",
    "live.js",
)
STYLES: Final = ("vendor/uplot.css", "style.css")
START: Final = "Foldline.start();"
DATA: Final = '<script type="text/plain" id="{}">{}</script>'


@cache
def asset(name: str) -> str:
    """A file of the page's."""
    return files("timeline.report").joinpath(f"static/{name}").read_text(encoding="utf-8")


def page(title: str, data: Sequence[str], *, start: str = START, connects: str = "'none'") -> bytes:
    """The page around elements of data; `connects`: what it may fetch from."""
    scripts = [*map(asset, LIBRARIES), "\n".join([*map(asset, SCRIPTS), start])]
    styles = [*map(asset, STYLES)]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            f"connect-src {connects}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(title)} · foldline</title>",
        *(f"<style>{style}</style>" for style in styles),
        '</head><body><div id="app"><header><h1>',
        escape(title),
        "</h1></header><noscript><main><p>This report needs JavaScript; it loads nothing from the network.</p></main>",
        '</noscript></div><div id="said" class="said" role="status"></div>',
        *data,
        *(f"<script>{script}</script>" for script in scripts),
        "</body></html>\n",
    ]
    return "\n".join(parts).encode(errors="replace")


def packed(name: str, value: Any) -> str:
    """An element of data that the page unpacks when it needs it."""
    text = base64.b64encode(gzip.compress(json_bytes(value), 6, mtime=0)).decode()
    return DATA.format(name, text)


def plain(name: str, value: Any) -> str:
    """An element of data as JSON, for what is needed at once; nothing in it ends a script."""
    text = json_bytes(value).decode(errors="replace")
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return DATA.format(name, text)


def json_bytes(value: Any) -> bytes:
    """A value as JSON; what has no place in it, as half a character, becomes a question mark."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, msgspec.EncodeError):
        return msgspec.json.encode(clean_json(value))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
