"""Drop, the last resort: whole rounds leave the prompt, and one line says how to find them.

User texts, notes and plans stay. A non-replayable result that is not in the artifact store stays with its
call, unless the request would not fit.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from blocks import DroppedSpan, SystemMessage, ToolCall, text_of
from blocks.formats import lays_down
from render.compaction.rungs._plan import Drop
from render.compaction.rungs._scope import RungScope
from render.policy._context import Context
from render.stages._visibility import offered
from render.summary._identifiers import identifiers
from render.summary._text import span_line
from render.view._group import Entry, Group, Place

KEYWORDS_MAX: Final = 8
TEXT_MAX: Final = 20_000
"""Characters of each block that are searched for keywords."""
LINE: Final = "[dropped to save space: {}]"
READ: Final = "{}; {} reads it back"
"""Used when the agent has a tool that reads the timeline."""
_RARE: Final = "non-replayable"
_GONE: Final = frozenset({Place.RESPONSE, Place.RESULT, Place.LATE})

_Priced: TypeAlias = tuple[Entry, int]
"""An entry and its tokens as it is shown."""


class DropRung:
    """Proposes to drop the oldest rounds before the tail, as many as the goal needs."""

    name = "drop"

    def propose(self, scope: RungScope) -> list[Drop]:
        """One `Drop` for each run of adjacent rounds."""
        rare = (found for found in scope.results() if found.durability == _RARE)
        kept = set[str]() if scope.is_last_resort else {found.entry.pair for found in rare}
        kept |= {e.pair for g in scope.groups for e in g.placed(Place.RESULT) if lays_down(e.block)}
        spans = list(_spans(scope, kept))
        if not spans:
            return []
        used = scope.used()
        proposals = (_proposal(span, used, scope.context) for span in spans)
        return [proposal for proposal in proposals if proposal.tokens_freed > 0]


def _spans(scope: RungScope, kept: set[str]) -> Iterator[list[_Priced]]:
    """Runs of dropped rounds between which nothing stays in the prompt."""
    encoder, missing = scope.context.encoder, scope.missing
    span: list[_Priced] = []
    for group in scope.groups:
        if missing <= 0:
            break
        piece = encoder.shown(group)
        gone = [(e, piece.tokens_of(e.version)) for e in group.entries if _goes(e, kept)]
        missing -= sum(tokens for _, tokens in gone)
        span += gone
        if span and (not gone or _is_seen(group, kept)):
            yield span
            span = []
    if span:
        yield span


def _goes(entry: Entry, kept: set[str]) -> bool:
    return may_go(entry) and entry.pair not in kept


def may_go(entry: Entry) -> bool:
    """Whether the entry is shown, and was written by the model, a tool or the engine."""
    is_there = entry.replacement != "" and entry.dropped is None
    is_notice = isinstance(entry.block, SystemMessage) and not entry.block.standing
    return is_there and (entry.place in _GONE or is_notice)


def _is_seen(group: Group, kept: set[str]) -> bool:
    """Whether a part of the group stays in the prompt, so that the run must end here."""
    return any(e.place is not Place.SILENT and not _goes(e, kept) for e in group.entries)


def _proposal(span: Sequence[_Priced], used: Mapping[str, int], context: Context) -> Drop:
    entries = [entry for entry, _ in span]
    record = DroppedSpan(
        first=entries[0].version,
        last=entries[-1].version,
        turns=tuple(dict.fromkeys(entry.block.turn for entry in entries)),
        started_at=min(entry.at for entry in entries),
        ended_at=max(entry.at for entry in entries),
        about=_about(entries),
        keywords=_keywords(entries, used),
        paths=tuple(dict.fromkeys((entries[0].name, entries[-1].name))),
    )
    said, tool = span_line(record), offered("read_timeline", context)
    text = LINE.format(READ.format(said, tool) if tool else said)
    return Drop(
        blocks=tuple(entry.block.id for entry in entries),
        first=record.first,
        last=record.last,
        turns=record.turns,
        tokens_freed=sum(tokens for _, tokens in span) - context.counter.count(text),
        reason="the oldest that is left",
        entry=record,
        replacement=text,
    )


def _about(entries: Sequence[Entry]) -> str:
    """The number of blocks, and how often each tool was called."""
    tools = Counter(e.block.name for e in entries if isinstance(e.block, ToolCall))
    names = ", ".join(f"{name} {count}" for name, count in sorted(tools.items()))
    return f"{len(entries)} blocks" + (f" ({names})" if names else "")


def _keywords(entries: Sequence[Entry], used: Mapping[str, int]) -> tuple[str, ...]:
    """Ids of moved artifacts, then the identifiers that the agent has used most, the newest first among
    equals."""
    seen: dict[str, int] = {}
    for entry in entries:
        seen |= dict.fromkeys(identifiers(text_of(entry.block)[:TEXT_MAX]), entry.version)
    ranked = sorted(seen, key=lambda name: (-used.get(name, 0), -seen[name], name))
    moved = [entry.artifact for entry in entries if entry.artifact]
    return (*moved, *ranked)[:KEYWORDS_MAX]
