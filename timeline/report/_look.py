"""Follows one timeline of a store: each look reads and adds only the new events."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import attrs

from blocks import Recorded, TimelineId, UsageRecorded
from persistence import EventStore
from timeline._arguments import System, Tools
from timeline._models import model_named
from timeline._timeline import Timeline
from timeline.engine._settings import Options
from timeline.report._collect import Collector, Prompting
from timeline.report._sharing import changes_what_is_shared, shareable

PAGE: Final = 2_000
NO_WINDOW: Final = (
    "A log does not record the window of its requests: the window shown is that of the model and the policy. "
    "Give the real one with --window N."
)


def model_in(log: "list[Recorded]") -> str:
    """The latest model in the log that is in the table of models; empty if there is none."""
    named = (event.model for _, event in reversed(log) if isinstance(event, UsageRecorded))
    return next((name for name in named if name and model_named(name).known), "")


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
        facts: dict[str, Any] = dict.fromkeys(("name", "title", "timeline"), name)
        notes = [] if "window" in self.options else [NO_WINDOW]
        return facts | {"guess": "; ".join(prompting.settings.notices), "notes": notes}

    def prompting(self, name: str, store: EventStore, log: "list[Recorded]") -> Prompting:
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
    _version: int = attrs.field(default=0, init=False)
    _withheld: bool = attrs.field(default=False, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def overview(self, store: EventStore) -> dict[str, Any]:
        """What a page needs first, up to date, with the timeline's facts."""
        with self._lock:
            collector = self._caught_up(store)
            return {**collector.overview(), "epoch": self.epoch, "facts": self._facts(collector)}

    def contents(self, store: EventStore, since: Mapping[str, int]) -> dict[str, Any]:
        """All texts, or those added since: see `Collector.contents`."""
        with self._lock:
            collector = self._caught_up(store)
            known = since if since.get("epoch") == self.epoch else dict[str, int]()
            return {**collector.contents(known), "epoch": self.epoch}

    def _facts(self, collector: Collector) -> dict[str, Any]:
        facts = self.showing.facts(self.name, collector.prompting)
        return {**facts, "withheld": self._withheld}

    def _caught_up(self, store: EventStore) -> Collector:
        read = partial(store.read, self.name)
        begin = store.kept(self.name).forgotten
        if begin > self._version:  # some or all of the new events were forgotten
            return self._anew(store, _pages(read, begin))
        new = _pages(read, self._version)
        hides = not self.showing.hidden and any(changes_what_is_shared(e) for _, e in new)
        if self._collector is None or hides or (self._withheld and new):
            return self._anew(store, _pages(read, begin))
        for version, event in new:
            self._collector.add(version, event)
            self._version = version
        return self._collector

    def _anew(self, store: EventStore, log: "list[Recorded]") -> Collector:
        """Collect again from the beginning, so that blocks hidden since are left out."""
        self.epoch += 1
        shown = log if self.showing.hidden else shareable(log)
        self._withheld = shown is not log
        collector = Collector(self.showing.prompting(self.name, store, log))
        for version, event in shown:
            collector.add(version, event)
        self._collector, self._version = collector, log[-1][0] if log else 0
        return collector


def _pages(read: "Callable[..., Any]", after: int) -> "list[Recorded]":
    found: list[Recorded] = []
    while page := read(after=after, limit=PAGE):
        found += page
        after = page[-1][0]
    return found
