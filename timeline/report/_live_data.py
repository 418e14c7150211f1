"""What the live view shows of a store: one timeline, followed event by event, and the list of all."""

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
from timeline import Options, Timeline, model_named
from timeline._arguments import System, Tools
from timeline.billing import timeline_bill
from timeline.report._collect import Collector, Prompting, changes_what_is_shared, shareable
from timeline.report._description import beginning, first_prompt
from timeline.report._savings import Savings

PAGE: Final = 2_000
NO_WINDOW: Final = (
    "A log does not record the window of its requests: the window shown is that of the model and the policy. "
    "Give the real one with --window N."
)


def model_in(log: list[Recorded]) -> str:
    """The latest model in the log that is in the table of models; empty if there is none."""
    models = (event.model for _, event in reversed(log) if isinstance(event, UsageRecorded))
    return next((name for name in models if name and model_named(name).known), "")


@attrs.frozen(kw_only=True)
class Showing:
    """How to show timelines: options as for `Timeline.open`, system prompt, tools, hidden blocks or not."""

    options: Options = attrs.field(factory=Options)
    """Options without a store; the model defaults to the latest in the log."""
    system: System = None
    tools: Tools = None
    hidden: bool = False
    """Whether to show blocks that were hidden on request."""

    def facts(self, name: str, prompting: Prompting) -> dict[str, Any]:
        """The facts about a timeline that its page shows."""
        guess = "; ".join(prompting.settings.notices)
        notes = [] if "window" in self.options else [NO_WINDOW]
        return {"name": name, "timeline": name, "guess": guess, "notes": notes}

    def prompting(self, name: str, store: EventStore, log: list[Recorded]) -> Prompting:
        """The settings, system prompt and tools for the requests of a log."""
        options: Options = {**self.options, "store": store}
        if "model" not in options and (model := model_in(log)):
            options["model"] = model
        counter = options.get("counter", "model")
        with Timeline.open(name, **options) as timeline:
            return Prompting(
                settings=timeline.settings,
                system=self.system,
                tools=self.tools,
                counter=counter if isinstance(counter, str) else "model",
            )


@attrs.define
class Look:
    """The current state of one timeline for its page; thread-safe."""

    name: TimelineId
    showing: Showing
    epoch: int = attrs.field(default=0, init=False)
    """Grows when earlier data changed, because a block was hidden or restored."""
    _collector: Collector | None = attrs.field(default=None, init=False)
    _withheld: bool = attrs.field(default=False, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def overview(self, store: EventStore) -> dict[str, Any]:
        """What a page needs first, up to date, with the timeline's facts."""
        with self._lock:
            collector = self._caught_up(store)
            overview = {**collector.overview(), "epoch": self.epoch}
            facts = self.showing.facts(self.name, collector.prompting)
            return {**overview, "facts": {**facts, "withheld": self._withheld}}

    def contents(self, store: EventStore, since: Mapping[str, int]) -> dict[str, Any]:
        """All texts, or those added since: see `Collector.contents`."""
        with self._lock:
            collector = self._caught_up(store)
            counts = since if since.get("epoch") == self.epoch else dict[str, int]()
            return {**collector.contents(counts), "epoch": self.epoch}

    def _caught_up(self, store: EventStore) -> Collector:
        version = self._collector.version if self._collector else 0
        if store.kept(self.name).forgotten > version:  # some or all of the new events
            return self._anew(store)
        new = [*store.log(self.name, after=version)]
        hides = not self.showing.hidden and any(changes_what_is_shared(e) for _, e in new)
        if self._collector is None or hides or (self._withheld and new):
            return self._anew(store)
        return self._collector.read(new)

    def _anew(self, store: EventStore) -> Collector:
        """Collect again from the beginning, so that blocks hidden since are left out."""
        log = [*store.log(self.name)]
        self.epoch += 1
        visible = log if self.showing.hidden else shareable(log)
        self._withheld = visible is not log
        prompting = self.showing.prompting(self.name, store, log)
        self._collector = Collector(prompting).read(visible)
        return self._collector


# The list of timelines: first prompt, model, tokens and cost of each


ROWS_MAX: Final = 200
HIDDEN: Final = "(hidden)"


@attrs.define
class LogRow:
    """One timeline, up to the point to which its log was read."""

    id: TimelineId
    version: int = 0
    model: str = ""
    calls: int = 0
    tokens: int = 0
    """The tokens of all prompts: reported by the provider, or else estimated."""
    dollars: float | None = None
    """The cost of all calls, as `foldline list` says it. None if no call has usage and a price."""
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
                        self.savings += Savings.of(event)
                case _:
                    pass

    def _used(self, usage: UsageRecorded) -> None:
        bill = timeline_bill([usage])
        if bill.calls:
            self.dollars = (self.dollars or 0.0) + bill.dollars
        if not usage.input or usage.aside:  # nothing was reported, or of another prompt
            return
        self.calls += not self._estimated
        self.tokens += usage.input - self._estimated
        self._estimated = 0
        self.model = usage.model or self.model


@attrs.define
class Listing:
    """The newest timelines of a store; each log is read only once."""

    _rows: dict[TimelineId, LogRow] = attrs.field(factory=dict[TimelineId, LogRow], init=False)
    _counted: set[EventId] = attrs.field(factory=set[EventId], init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def rows(self, store: EventStore) -> dict[str, Any]:
        """The rows, newest first, and the number of all timelines."""
        with self._lock:
            infos = sorted(store.list(), key=lambda info: -info.updated_at)
            page = infos[:ROWS_MAX]
            rows = [self._row(store, info) for info in page]
            parts = [self._rows[info.id].savings for info in page]
            own = (attrs.evolve(part, timelines=1) for part in parts if part.requests)
            total = sum(own, Savings())
            words = total.lines() if total.requests else ()
            return {"all": len(infos), "rows": rows, "savings": words}

    def _row(self, store: EventStore, info: TimelineInfo) -> dict[str, Any]:
        row = self._rows.setdefault(info.id, LogRow(info.id))
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
