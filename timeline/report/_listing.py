"""Lists the timelines of a store with first prompt, model, tokens and cost of each."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from blocks import (
    BlockId,
    EventId,
    Hidden,
    Recorded,
    RequestRendered,
    TimelineId,
    UsageRecorded,
    UserPrompt,
    withheld_in,
)
from persistence import EventStore, TimelineInfo
from timeline._models import model_named
from timeline.engine._gist import beginning, first_prompt
from timeline.report._calls import billed
from timeline.report._look import PAGE
from timeline.report._savings import Savings, sum_of

ROWS_MAX: Final = 200
HIDDEN: Final = "(hidden)"


@attrs.define
class Row:
    """One timeline, up to the point to which its log was read."""

    id: TimelineId
    version: int = 0
    model: str = ""
    calls: int = 0
    tokens: int = 0
    """The tokens of all prompts: reported by the provider, or else estimated."""
    dollars: float | None = None
    """The cost of all calls as billed, if they went through a gateway; otherwise of all prompts with reported usage.
    None if there are none, or the price is unknown."""
    savings: Savings = attrs.field(factory=Savings)
    """Of the calls that went through a gateway, without those that a fork has from its origin."""
    _first: UserPrompt | None = None
    _withheld: Mapping[BlockId, Hidden] = attrs.field(factory=dict[BlockId, Hidden])
    _estimated: int = 0

    @property
    def prompt(self) -> str:
        """The beginning of the first prompt."""
        if self._first is None:
            return ""
        return HIDDEN if self._first.id in self._withheld else beginning(self._first)

    def add(self, page: Sequence[Recorded], counted: set[EventId]) -> None:
        """Add the next events of the log; `counted` are the bills that are in any row."""
        self._first = self._first or first_prompt(event for _, event in page)
        self._withheld = withheld_in(page, self._withheld)
        for self.version, event in page:
            match event:
                case RequestRendered():
                    self.calls += 1
                    self._estimated = event.tokens
                    self.tokens += event.tokens
                case UsageRecorded():
                    self._used(event)
                    if event.bill and event.id not in counted:
                        counted.add(event.id)
                        self.savings = self.savings.plus(event)
                case _:
                    pass

    def _used(self, usage: UsageRecorded) -> None:
        if not usage.input:  # the provider has reported nothing
            return
        self.calls += not self._estimated
        self.tokens += usage.input - self._estimated
        self._estimated = 0
        self.model = usage.model or self.model
        model = model_named(self.model)
        if usage.bill and usage.bill.paid is not None:
            self.dollars = (self.dollars or 0.0) + usage.bill.paid
        elif model.known:
            self.dollars = (self.dollars or 0.0) + billed(usage, model)


@attrs.define
class Listing:
    """The newest timelines of a store; each log is read only once."""

    _rows: dict[TimelineId, Row] = attrs.field(factory=dict[TimelineId, Row], init=False)
    _counted: set[EventId] = attrs.field(factory=set[EventId], init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def rows(self, store: EventStore) -> dict[str, Any]:
        """The rows, newest first, and the number of all timelines."""
        with self._lock:
            found = sorted(store.list(), key=lambda info: -info.updated_at)
            shown = found[:ROWS_MAX]
            rows = [self._row(store, info) for info in shown]
            total = sum_of(self._rows[info.id].savings for info in shown)
            words = total.lines() if total.requests else ()
            return {"all": len(found), "rows": rows, "savings": words}

    def _row(self, store: EventStore, info: TimelineInfo) -> dict[str, Any]:
        row = self._rows.setdefault(info.id, Row(info.id))
        if row.version < info.version:  # forgotten events cannot be read
            row.version = max(row.version, store.kept(info.id).forgotten)
        while row.version < info.version and (
            page := store.read(info.id, after=row.version, limit=PAGE)
        ):
            row.add(page, self._counted)
        return {
            "id": row.id,
            "events": info.version,
            "updated": info.updated_at,
            "prompt": row.prompt,
            "model": row.model,
            "calls": row.calls,
            "tokens": row.tokens,
            "dollars": row.dollars,
            "verdict": row.savings.verdict() if row.savings.calls else "",
        }
