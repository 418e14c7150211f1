"""Makes a report of timelines and replays: one HTML file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from blocks import Recorded
from timeline.replay import Replayed
from timeline.report._collect import Collector, Prompting
from timeline.report._page import packed, page, plain
from timeline.report._sharing import shareable


@attrs.frozen(kw_only=True)
class Reported:
    """One log in a report, with the facts that its page shows."""

    facts: Mapping[str, Any]
    """`name`, `title`, `timeline`; and, if known, `session`, `format`, `guess`, `notes`, the measures `recall`,
    `quotes` and `rules`, and `summaries`: the dollars paid for summaries."""
    collector: Collector = attrs.field(repr=False)


def reported_log(
    log: Sequence[Recorded],
    prompting: Prompting,
    facts: Mapping[str, Any],
    full: Iterable[tuple[int, float]] = (),
    *,
    hidden: bool,
) -> Reported:
    """Prepare a log for a report; without `hidden`, the texts of blocks hidden on request are left out.

    `full`: tokens and dollars of sending everything for each call, if known.
    """
    collector = Collector(prompting, full=list(full))
    shown = log if hidden else shareable(log)
    for version, event in shown:
        collector.add(version, event)
    return Reported(facts={**facts, "withheld": shown is not log}, collector=collector)


def reported_replay(replayed: Replayed) -> Reported:
    """Prepare a replay for a report."""
    result, ours = replayed.result, replayed.timeline
    prompting = Prompting(
        settings=ours.timeline.settings,
        system=ours.system,
        tools=ours.tools,
        counter=result.counter,
    )
    facts = {
        "name": f"{result.session}, policy {result.policy}",
        "title": result.session,
        "timeline": ours.timeline.id,
        "session": result.session,
        "format": result.format,
        "guess": result.guess,
        "recall": result.recall.far,
        "quotes": result.recall.quotes,
        "rules": result.rules,
        "notes": result.notices,
        "summaries": result.cost.summaries,
    }
    return reported_log(replayed.log, prompting, facts, replayed.full, hidden=True)


def report_html(title: str, reported: Sequence[Reported]) -> bytes:
    """The HTML file, as bytes; it needs no network and forbids the browser any."""
    data = [plain("report", {"runs": [each.facts for each in reported]})]
    for number, each in enumerate(reported):
        data.append(packed(f"overview-{number}", each.collector.overview()))
        data.append(packed(f"contents-{number}", each.collector.contents()))
    return page(title, data)
