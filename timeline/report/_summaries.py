"""The summaries of a log, each with its text, range, provenance and cost."""

from typing import Any

import msgspec

from blocks import Provenance, RangeCompacted, RangeSummary, SummaryReplaced
from render import format_summary


def summary_row(
    version: int, event: RangeCompacted | SummaryReplaced, blocks: int
) -> dict[str, Any]:
    """One summary in the page's format, its text under `text`. `blocks`: the number of blocks it covers."""
    summary = event.summary
    row = {
        "version": version,
        "at": event.at,
        "start": summary.start,
        "cut": summary.cut,
        "blocks": blocks,
        "degraded": summary.degraded,
        "turns": list(summary.covered_turn_ids),
        "split": summary.split_turn_id or "",
        "digest": _digest(summary),
        "text": format_summary(summary),
        "provenance": _provenance(event.provenance),
    }
    if isinstance(event, RangeCompacted):
        return row | {
            "start": event.start,
            "cut": event.cut,
            "trigger": event.trigger,
            "before": event.tokens_before,
            "after": event.tokens_after,
            "policy": event.policy,
            "carried": [item.version for item in event.carried],
        }
    return row | {"replaces": event.compaction}


def _digest(summary: RangeSummary) -> dict[str, Any]:
    """The digest without its index, which the text contains already."""
    digest: dict[str, Any] = msgspec.to_builtins(
        msgspec.structs.replace(summary.digest, index=type(summary.digest.index)())
    )
    index = summary.digest.index
    layers = [*index.layers]
    digest.pop("index", None)
    return digest | {
        "excerpts": len(index.excerpts) + sum(len(layer.excerpts) for layer in layers),
        "names": len(index.terms),
        "layers": len(layers),
    }


def _provenance(provenance: Provenance | None) -> dict[str, Any]:
    return msgspec.to_builtins(provenance) if provenance else {}
