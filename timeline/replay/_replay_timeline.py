"""A timeline that repeats a session at the recorded times."""

from collections.abc import Sequence
from time import perf_counter
from typing import Self

import attrs

from blocks import Block
from persistence import EventStore
from persistence.sessions import Session
from render import Rendered, View, show
from timeline._arguments import System, Tools
from timeline._timeline import Timeline
from timeline.engine._engine import counted
from timeline.engine._settings import Options, Settings
from timeline.replay._options import ReplayOptions


@attrs.define
class Clock:
    """A clock that returns the time it was set to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@attrs.frozen(kw_only=True)
class ReplayTimeline:
    """A timeline, its clock, and the system prompt and tools of its requests."""

    timeline: Timeline
    settings: Settings
    system: System
    tools: Tools
    clock: Clock

    @classmethod
    def begin(
        cls, session: Session, options: ReplayOptions, store: EventStore, extra: Options
    ) -> Self:
        """Create a timeline in `store`; `extra` overrides `options`."""
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
        """Render the request at a time; returns it with the milliseconds that rendering took."""
        self.clock.now = at
        began = perf_counter()
        rendered = self.timeline.render(system=self.system, tools=self.tools)
        return rendered, (perf_counter() - began) * 1_000

    def append(self, at: float, blocks: Sequence[Block]) -> None:
        """Append the blocks that came next."""
        self.clock.now = at
        self.timeline.append(*blocks)

    def shown(self, view: View) -> Rendered:
        """The request for a view of this timeline; makes no decisions."""
        context = self.settings.context(self.system, self.tools, self.clock.now)
        return show(view, context)
