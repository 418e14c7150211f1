"""Looks at one timeline of a store, again and again: what is new is read and added, and nothing is read twice."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import attrs

from blocks import Recorded, TimelineId, UsageRecorded
from persistence import EventStore, kept_of
from timeline._models import model_named
from timeline._timeline import Timeline
from timeline.arguments._fixed import System, Tools
from timeline.engine._settings import Options
from timeline.report._collect import Collector, Prompting
from timeline.report._sharing import changes_what_is_shared, shareable

PAGE: Final = 2_000
NO_WINDOW: Final = (
    "A log does not say for which window its requests were rendered: what is shown is that of the model and the "
    "policy. --window N says which it was."
)


def model_in(log: "list[Recorded]") -> str:
    """The model that answered last and is in the table; empty: there is none."""
    named = (event.model for _, event in reversed(log) if isinstance(event, UsageRecorded))
    return next((name for name in named if name and model_named(name).known), "")


@attrs.frozen(kw_only=True)
class Showing:
    """How timelines are shown: options as of `Timeline.open`, what requests begin with, and what is left out."""

    options: Options = attrs.field(factory=Options)
    """Without a store; a model that is not given is the one that answered last."""
    system: System = None
    tools: Tools = None
    hidden: bool = False
    """Whether what is hidden on request is shown."""

    def facts(self, name: str, prompting: Prompting) -> dict[str, Any]:
        """What a page is told of a timeline."""
        facts: dict[str, Any] = dict.fromkeys(("name", "title", "timeline"), name)
        notes = [] if "window" in self.options else [NO_WINDOW]
        return facts | {"guess": "; ".join(prompting.settings.notices), "notes": notes}

    def prompting(self, name: str, store: EventStore, log: "list[Recorded]") -> Prompting:
        """What the requests of a log are rendered with."""
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
    """One timeline as it is seen; safe under threads."""

    name: TimelineId
    showing: Showing
    epoch: int = attrs.field(default=0, init=False)
    """Another number: what was seen before has changed, because something was hidden or restored."""
    _collector: Collector | None = attrs.field(default=None, init=False)
    _version: int = attrs.field(default=0, init=False)
    _withheld: bool = attrs.field(default=False, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def overview(self, store: EventStore) -> dict[str, Any]:
        """What a page needs first, as of now, and the timeline's facts."""
        with self._lock:
            collector = self._caught_up(store)
            return {**collector.overview(), "epoch": self.epoch, "facts": self._facts(collector)}

    def contents(self, store: EventStore, since: Mapping[str, int]) -> dict[str, Any]:
        """All texts, or those that came since: see `Collector.contents`."""
        with self._lock:
            collector = self._caught_up(store)
            known = since if since.get("epoch") == self.epoch else dict[str, int]()
            return {**collector.contents(known), "epoch": self.epoch}

    def _facts(self, collector: Collector) -> dict[str, Any]:
        facts = self.showing.facts(self.name, collector.prompting)
        return {**facts, "withheld": self._withheld}

    def _caught_up(self, store: EventStore) -> Collector:
        read = partial(store.read, self.name)
        begin = kept_of(store, self.name).forgotten
        if begin > self._version:  # of what is new something is gone, or all of it is
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
        """From the beginning: what is hidden now must not be in what was seen before."""
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
