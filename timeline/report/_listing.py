"""The timelines of a store as a list: the first prompt, the model, tokens and money of each."""

import threading
from typing import Any, Final

import attrs

from blocks import (
    BlockAppended,
    BlocksHidden,
    BlocksRestored,
    Event,
    RequestRendered,
    TimelineId,
    UsageRecorded,
    UserPrompt,
)
from persistence import EventStore, TimelineInfo
from timeline._models import model_named
from timeline.report._calls import billed
from timeline.report._look import PAGE

ROWS_MAX: Final = 200
PROMPT_MAX: Final = 200
HIDDEN: Final = "(hidden)"


@attrs.define
class Row:
    """One timeline, as far as its log was read."""

    id: TimelineId
    version: int = 0
    prompt: str = ""
    model: str = ""
    calls: int = 0
    tokens: int = 0
    """Of all prompts: as the provider reported or, where it reported nothing, as they were estimated."""
    dollars: float | None = None
    """Of all prompts that the provider reported; None: none, or no price is known."""
    _first: UserPrompt | None = None
    _estimated: int = 0

    def add(self, event: Event) -> None:
        """One event of its log."""
        match event:
            case BlockAppended(block=UserPrompt() as block) if self._first is None:
                self._first = block
                self.prompt = " ".join(block.text[: 4 * PROMPT_MAX].split())[:PROMPT_MAX]
            case BlocksHidden(reason="requested"):
                if self._first and any(item.block == self._first.id for item in event.hidden):
                    self.prompt = HIDDEN
            case BlocksRestored():
                if self._first and self._first.id in event.blocks:
                    self.prompt = " ".join(self._first.text[: 4 * PROMPT_MAX].split())[:PROMPT_MAX]
            case RequestRendered():
                self.calls += 1
                self._estimated = event.tokens
                self.tokens += event.tokens
            case UsageRecorded():
                self._used(event)
            case _:
                pass

    def _used(self, usage: UsageRecorded) -> None:
        self.calls += not self._estimated
        self.tokens += usage.input - self._estimated
        self._estimated = 0
        self.model = usage.model or self.model
        model = model_named(self.model)
        if model.known and usage.input:
            self.dollars = (self.dollars or 0.0) + billed(usage, model)


@attrs.define
class Listing:
    """The newest timelines of a store; what was read of one stays read."""

    _rows: dict[TimelineId, Row] = attrs.field(factory=dict[TimelineId, Row], init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def rows(self, store: EventStore) -> dict[str, Any]:
        """The newest first, and how many there are in all."""
        with self._lock:
            found = sorted(store.list(), key=lambda info: -info.updated_at)
            shown = found[:ROWS_MAX]
            return {"all": len(found), "rows": [self._row(store, info) for info in shown]}

    def _row(self, store: EventStore, info: TimelineInfo) -> dict[str, Any]:
        row = self._rows.setdefault(info.id, Row(info.id))
        while row.version < info.version and (
            page := store.read(info.id, after=row.version, limit=PAGE)
        ):
            for version, event in page:
                row.add(event)
                row.version = version
        return {
            "id": row.id,
            "events": info.version,
            "updated": info.updated_at,
            "prompt": row.prompt,
            "model": row.model,
            "calls": row.calls,
            "tokens": row.tokens,
            "dollars": row.dollars,
        }
