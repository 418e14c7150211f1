"""Makes a report of timelines and replays: one HTML file with everything in it, which cannot load anything else.

Its Content-Security-Policy allows only its own scripts and styles, by their hashes.  The data of a report is
compressed and embedded as base64, which cannot end a script element.
"""

import base64
import gzip
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Final

import attrs

from blocks import Recorded
from timeline.replay import Replayed
from timeline.report._collect import Collector, Prompting, shareable
from timeline.report._money import replay_figures
from timeline.report._requests import json_bytes


@attrs.frozen(kw_only=True)
class Reported:
    """One log in a report, with the facts that its page shows."""

    facts: Mapping[str, Any]
    """`name`, `timeline`; and, if known, `title` (otherwise the page has the first prompt), `folder`, `models`, `session`, `format`,
    `guess`, `figures`, `notes`, the measures `recall`, `quotes`, `rules`, `edits`, `standing` and `prompts`, and
    `summaries`: the dollars paid for summaries."""
    collector: Collector = attrs.field(repr=False)


def reported_log(
    log: Sequence[Recorded], prompting: Prompting, facts: Mapping[str, Any], *, hidden: bool
) -> Reported:
    """Prepare a log for a report; without `hidden`, the texts of blocks hidden on request are left out."""
    visible = log if hidden else shareable(log)
    facts = {**facts, "withheld": visible is not log}
    return Reported(facts=facts, collector=Collector(prompting).read(visible))


def reported_replay(replayed: Replayed) -> Reported:
    result, ours = replayed.result, replayed.timeline
    bill = result.recorded_bill
    prompting = Prompting(
        settings=ours.timeline.settings,
        system=ours.system,
        tools=ours.tools,
        counter=result.counter,
    )
    cost = result.cost
    figures = replay_figures(bill, cost.total, cost.full_history, guess=bool(result.guess))
    facts = {
        "name": f"{result.session}, policy {result.policy}",
        "title": replayed.session.title,
        "folder": replayed.session.folder,
        "models": list(bill.models) or [result.recorded or result.model],
        "timeline": ours.timeline.id,
        "session": result.session,
        "format": result.format,
        "guess": result.guess,
        "figures": [attrs.asdict(each) for each in figures],
        "recall": result.recall.far,
        "quotes": result.recall.quotes,
        "rules": result.rules,
        **attrs.asdict(result.handover),
        "notes": [*bill.lines(), *result.notices],
        "summaries": cost.summaries,
    }
    recorded = [call.spent for call in replayed.session.calls]
    collector = Collector(prompting, full=list(replayed.full), recorded=recorded)
    return Reported(facts=facts, collector=collector.read(replayed.log))


def report_html(title: str, reported: Sequence[Reported]) -> bytes:
    """The HTML file, as bytes; it needs no network and forbids the browser any."""
    data = [plain("report", {"runs": [each.facts for each in reported]})]
    for number, each in enumerate(reported):
        data.append(packed(f"overview-{number}", each.collector.overview()))
        data.append(packed(f"contents-{number}", each.collector.contents()))
    return page(title, data)


# The page around the data


LIBRARIES: Final = ("vendor/uplot.js", "vendor/htm-preact.js")
SCRIPTS: Final = (
    "data.js",
    "diff.js",
    "document.js",
    "chart.js",
    "lanes.js",
    "treemap.js",
    "words.js",
    "panels.js",
    "details.js",
    "picture.js",
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
        '</noscript><main><p class="waiting">Opening …</p></main></div>',
        '<div id="said" class="said" role="status"></div><div id="tip" hidden></div>',
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


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
