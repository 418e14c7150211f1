"""A timeline that is replayed with the clock of the recorded session."""

from collections.abc import Sequence
from time import perf_counter
from typing import Self

import attrs

from blocks import Block
from persistence import EventStore
from persistence.sessions import Session
from render import Rendered, View, show
from timeline._timeline import Timeline
from timeline.arguments._fixed import System, Tools
from timeline.engine._settings import Options, Settings, counted
from timeline.replay._options import ReplayOptions


@attrs.define
class Clock:
    """A clock that returns the time to which it was set."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@attrs.frozen(kw_only=True)
class ReplayTimeline:
    """One timeline, its clock, and the system prompt and tools of its requests."""

    timeline: Timeline
    settings: Settings
    system: System
    tools: Tools
    clock: Clock

    @classmethod
    def begin(
        cls, session: Session, options: ReplayOptions, store: EventStore, extra: Options
    ) -> Self:
        """A new timeline in `store`; `extra` wins over `options`."""
        clock = Clock()
        chosen: Options = {
            "model": options.model_for(session),
            "policy": options.policy_for_replay(),
            "counter": options.counter,
            "keep_thinking": options.keep_thinking,
        }
        if options.window is not None:
            chosen["window"] = options.window
        chosen |= {"store": store, "clock": clock, "ids": counted(), **extra}
        return cls(
            timeline=Timeline.open(options.name or session.name, **chosen),
            settings=Settings.of(chosen),
            system=options.system_for(session),
            tools=options.tools_for(session),
            clock=clock,
        )

    def render(self, at: float) -> tuple[Rendered, float]:
        """The request at this moment, and the milliseconds for rendering it."""
        self.clock.now = at
        began = perf_counter()
        rendered = self.timeline.render(system=self.system, tools=self.tools)
        return rendered, (perf_counter() - began) * 1_000

    def append(self, at: float, blocks: Sequence[Block]) -> None:
        """Append the next item of the session."""
        self.clock.now = at
        self.timeline.append(*blocks)

    def shown(self, view: View) -> Rendered:
        """The request to which a view of this timeline is rendered; this decides nothing."""
        context = self.settings.context(self.system, self.tools, self.clock.now)
        return show(view, context)
