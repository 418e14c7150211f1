"""Builds the page: one HTML file with everything in it, which cannot load anything else.

Its Content-Security-Policy allows only its own scripts and styles, by their hashes.  The data of a report is
compressed and embedded as base64, which cannot end a script element.
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
    """The text of a file of the page."""
    return files("timeline.report").joinpath(f"static/{name}").read_text(encoding="utf-8")


def page(title: str, data: Sequence[str], *, start: str = START, connects: str = "'none'") -> bytes:
    """The page around elements of data; `connects`: the sources that it may fetch from."""
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
    """An element of compressed data, which the page unpacks when needed."""
    text = base64.b64encode(gzip.compress(json_bytes(value), 6, mtime=0)).decode()
    return DATA.format(name, text)


def plain(name: str, value: Any) -> str:
    """An element of JSON data that is needed at once; escaped so that it cannot end a script element."""
    text = json_bytes(value).decode(errors="replace")
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return DATA.format(name, text)


def json_bytes(value: Any) -> bytes:
    """A value as JSON; lone surrogates, which JSON cannot hold, become question marks."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, msgspec.EncodeError):
        return msgspec.json.encode(clean_json(value))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
