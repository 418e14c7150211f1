"""An outline of a timeline with one line for each block, for readers who do not know a path yet."""

import re
from collections.abc import Collection, Iterator
from typing import Final

import attrs

from blocks import (
    ENCRYPTED,
    BlockAppended,
    Event,
    RangeCompacted,
    TimelineId,
    ToolResult,
    tag_of,
    text_of,
)
from persistence import EventStore
from timeline.react import ToolReply
from timeline.react._reading import MARK, Room, refused

PAGE: Final = 200
ROWS_MAX: Final = 200
WORDS: Final = 120
_RANGE: Final = re.compile(r"v?(?P<first>\d{1,12})\s*-\s*(?:v?(?P<last>\d{1,12}))?")


def version_range(path: str, head: int) -> tuple[int, int] | None:
    """The first and last version of a range `v40-v60` or `v40-` (to the end), or of an empty path (all); None: it is
    another path."""
    if not path:
        return 1, head
    found = _RANGE.fullmatch(path)
    if found is None:
        return None
    return max(int(found["first"]), 1), min(int(found["last"] or head), head)


def first_words(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: 4 * WORDS].split())
    return line if len(line) <= WORDS else f"{line[:WORDS]}…"


@attrs.frozen
class Outline:
    """The blocks of one timeline; `withheld` are those that are hidden on request."""

    store: EventStore
    timeline: TimelineId
    withheld: Collection[str]

    def page(self, first: int, last: int, room: Room) -> ToolReply:
        """The rows of the blocks in these versions, as many as fit."""
        head = self.store.head(self.timeline)
        if first > last:
            return refused(
                f"There is nothing from v{first} to v{last}: {self.timeline} ends at v{head}."
            )
        header = (
            f"{MARK} {self.timeline}, v{first} to v{last} of v{head}; read one with path=v57]\n"
        )
        rows: list[tuple[int, str]] = []
        for row in self._rows(first, last):
            rows.append(row)
            if len(rows) == ROWS_MAX:
                break
        shown = room.cut("".join(text for _, text in rows), header)
        count = shown.count("\n")
        end = rows[count - 1][0] if 0 < count < len(rows) or len(rows) == ROWS_MAX else last
        rest = f"[go on with path=v{end + 1}-v{last}]" if end < last else ""
        return ToolReply(output=f"{header}{shown}{rest}".rstrip("\n"))

    def _rows(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        after = first - 1
        while after < last and (page := self.store.read(self.timeline, after=after, limit=PAGE)):
            for version, event in page:
                if version <= last and (said := self._said(event)):
                    yield version, f"v{version} {said}\n"
            after = page[-1][0]

    def _said(self, event: Event) -> str:
        """The row of an event; empty if it is neither a block nor a summary."""
        if isinstance(event, RangeCompacted):
            return f"summary of v{event.start} to v{event.cut - 1}"
        if not isinstance(event, BlockAppended):
            return ""
        block, kind = event.block, tag_of(event.block)
        if block.id in self.withheld:
            return f"{kind}: hidden on request"
        if isinstance(block, ToolResult) and block.envelope.sensitivity in ENCRYPTED:
            return f"{kind}: confidential"
        text = text_of(block)
        return f"{kind}, {len(text):,} characters: {first_words(text)}" if text else kind
