"""Replays a recorded session through the engine, call by call.

For each item of the session the clock is set to its time; before a response the next request is
rendered, priced and dumped; then the recorded blocks are appended.  Recorded compactions and usage
are ignored, since they belong to other prompts.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from blocks import BlocksHidden, CompactionSkipped, Event, RangeCompacted
from persistence import EventStore
from persistence.sessions import Item, Responded, Session
from render import Rendered, open_view, provider_of
from timeline.replay._asked import Asked
from timeline.replay._bill import Bill
from timeline.replay._coverage import Coverage, coverage
from timeline.replay._dump import Dump, Sent
from timeline.replay._flatten import Flattener
from timeline.replay._options import ReplayOptions
from timeline.replay._recall import Memory
from timeline.replay._reference import FullHistory
from timeline.replay._replay_timeline import ReplayTimeline
from timeline.replay._result import Point
from timeline.replay._standin import StandIn
from timeline.tokens import counter_for

CHECK_EVERY_CALLS = 50

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of calls done and the number of all calls."""


@attrs.define(kw_only=True)
class Replay:
    """The replay of one session with one policy."""

    session: Session
    store: EventStore
    replayed: ReplayTimeline
    bill: Bill
    reference: FullHistory
    memory: Memory
    writer: StandIn | Asked | None = None
    """Writes summaries and records their calls; None for extractive summaries, which cost nothing."""
    dump: Dump | None = None
    guess: str = ""
    """Why window and prices are guesses; empty if they are known."""
    points: list[Point] = attrs.field(factory=list[Point])
    full: list[tuple[int, float]] = attrs.field(factory=list[tuple[int, float]])
    """Tokens and dollars of sending everything, for each call."""
    milliseconds: list[float] = attrs.field(factory=list[float])
    decisions: list[Event] = attrs.field(factory=list[Event])
    notices: dict[str, str] = attrs.field(factory=dict[str, str])
    """Notices by their meaning, each as worded in the latest request that has it."""
    violations: int = 0
    over_window: int = 0
    cannot_fit: int = 0
    coverage: Coverage = attrs.field(factory=Coverage)
    reopened_equal: bool = True

    @classmethod
    def begin(
        cls, session: Session, options: ReplayOptions, store: EventStore, dump: Dump | None = None
    ) -> "Replay":
        """Prepare a replay; nothing is replayed yet."""
        writer = _writer(options)
        extra = {"summarizer": writer} if writer else {}
        replayed = ReplayTimeline.begin(session, options, store, extra)  # type: ignore[arg-type]
        model = replayed.settings.model
        counter = counter_for(options.counter, model)
        flattener = Flattener(counter, provider_of(model))
        bill = Bill(model=model, flattener=flattener)
        full = Bill(model=model, flattener=flattener)
        return cls(
            session=session,
            store=store,
            replayed=replayed,
            bill=bill,
            reference=FullHistory.begin(session, options, full),
            memory=Memory.of(session),
            writer=writer,
            dump=dump,
            guess=options.guess_for(session),
        )

    def run(self, progress: Progress | None = None) -> None:
        """Replay the whole session.

        Raises:
            MisuseError: the window has no room for a conversation.
        """
        self.replayed.settings.check_room(self.replayed.system, self.replayed.tools)
        total = len(self.session.calls)
        for item in self.session.items:
            spent = self.reference.bill.dollars
            full_tokens = self.reference.step(item)
            if isinstance(item, Responded):
                self.full.append((full_tokens, self.reference.bill.dollars - spent))
                self._call(item, full_tokens)
            self.replayed.append(item.at, item.blocks)
            done = len(self.points)
            if isinstance(item, Responded) and progress:
                progress(done, total)
            if isinstance(item, Responded) and done % CHECK_EVERY_CALLS == 0:
                self.check()
        self.check()

    def _call(self, item: Item, full_tokens: int) -> None:
        """Render, price and dump the request of one model call."""
        rendered, ms = self.replayed.render(item.at)
        summaries = self.writer.taken() if self.writer else ()
        self.bill.summarized(summaries)
        step = self.bill.send(item.at, rendered)
        if self.writer:
            self.writer.sent(item.at, step)
        if full_tokens > self.replayed.settings.limit:
            self.memory.measure(len(self.points), rendered)
        self._note(rendered, item.at, full_tokens)
        self.milliseconds.append(ms)
        if self.dump:
            call = len(self.points) - 1
            self.dump(Sent(call=call, ts=item.at, rendered=rendered, summaries=summaries, ms=ms))

    def _note(self, rendered: Rendered, at: float, full_tokens: int) -> None:
        self.points.append(
            Point(
                call=len(self.points),
                at=at,
                tokens=rendered.tokens,
                full_tokens=full_tokens,
                events=_words(rendered.decisions),
            )
        )
        self.decisions += rendered.decisions
        self.notices |= {n.rpartition(": ")[0]: n for n in rendered.notices}
        self.violations += len(rendered.violations)
        self.over_window += not rendered.fits
        reason = rendered.cannot_fit
        self.cannot_fit += reason is not None and reason.reason == "over_limit"

    def check(self) -> None:
        """Check that every block is accounted for and that the log, read back, gives the same view."""
        timeline = self.replayed.timeline
        timeline.flush()
        found = coverage(timeline.events(), timeline.view)
        problems = (*self.coverage.problems, *found.problems)
        self.coverage = attrs.evolve(found, problems=tuple(dict.fromkeys(problems)))
        self.compare(self.store)

    def compare(self, store: EventStore) -> None:
        """Check that this timeline, as saved in `store`, renders to the same bytes."""
        timeline = self.replayed.timeline
        reopened = open_view(store.load_window(timeline.id))
        live, again = self.replayed.shown(timeline.view), self.replayed.shown(reopened)
        self.reopened_equal &= live.content_hash == again.content_hash


def _writer(options: ReplayOptions) -> StandIn | Asked | None:
    match options.summarizer:
        case "extractive":
            return None
        case "stand-in":
            return StandIn()
        case "anthropic":
            return Asked.at(options.base_url)


def _words(decisions: Sequence[Event]) -> tuple[str, ...]:
    """A word for each decision."""
    words: list[str] = []
    for event in decisions:
        match event:
            case RangeCompacted():
                words.append("compacted")
            case CompactionSkipped():
                words.append("skipped")
            case BlocksHidden(reason="expired"):
                words.append("pruned")
            case BlocksHidden(reason="clipped"):
                words.append("clipped")
            case BlocksHidden(reason="externalized" | "cleared" | "dropped"):
                words.append("moved")
            case _:
                pass
    return tuple(words)
