"""Operations that return more than a version: `fork`, `sync`, `recording`."""

from typing import Self

import attrs

from blocks import (
    Answered,
    BlockAppended,
    Event,
    EventId,
    TimelineExistsError,
    TimelineForked,
    TimelineId,
)
from blocks.formats import Format, checked_format, stream_of
from render import Rendered
from timeline._flow import Flow, RunBlocking
from timeline.arguments._blocks import answered_by
from timeline.arguments._checks import checked_choice, checked_name, checked_whole
from timeline.engine._engine import Engine
from timeline.engine._hiding import hides_of, inherit
from timeline.engine._history import History, history_of
from timeline.engine._removing import Removing
from timeline.engine._streaming import Arriving
from timeline.engine._sync import (
    ON_DIVERGENCE,
    Agreement,
    OnDivergence,
    Synced,
    agree,
    refused,
)
from timeline.engine._withholding import Hides


@attrs.frozen(kw_only=True)
class Branching(Removing):
    """The operations that return a new timeline or a recording."""

    def fork(self, name: str, *, at: int | None = None) -> Flow[Self]:
        """Create a timeline in the same store that begins as a copy of this one, at version `at` (default: now). What
        is hidden on request now is hidden in it, too, whatever was hidden at that version.

        Raises:
            MisuseError: the name is not valid, or the log has no version `at`.
            ForgottenError: events that the window at `at` needs were forgotten.
            TimelineExistsError: there is already a timeline of this name.
            UnknownTimelineError: nothing was ever appended to this timeline.
        """
        checked_name(name, "fork()")
        if at is not None:
            checked_whole(at, "fork()", "at")
        yield from self.engine.flush()
        version = self.engine.version if at is None else at
        event = TimelineForked(
            id=EventId(self.engine.ids()),
            at=self.engine.clock(),
            parent=self.engine.id,
            version=version,
        )
        source, store, target = self.engine.id, self.engine.store, TimelineId(name)
        yield RunBlocking(lambda: store.fork(source, target, event, at=version))
        forked = attrs.evolve(self, engine=attrs.evolve(self.engine, id=target))
        yield from forked.engine.load()
        if version != self.engine.version:
            yield from inherit(forked.engine, (yield from hides_of(self.engine)), exactly=True)
        return forked

    def recording(
        self,
        format: Format,  # noqa: A002 -- the public name
        rendered: Rendered | None = None,
    ) -> Flow[Arriving]:
        """Record a response while it streams: pass each event to `add` inside a `with` block. Blocks and usage are
        committed at the end of the block. If the stream breaks off, the part that arrived is committed: a text as
        far as it came, but no call with incomplete arguments.

        `format` is `anthropic`, `openai.chat`, `openai.responses` or `gemini`; `rendered` is as for `record`.

        Raises:
            ArgumentError: there is no such format, or it has no streams.
        """
        yield from ()
        stream = stream_of(format, "recording()")
        return Arriving(format=format, rendered=rendered, stream=stream)

    def sync(
        self,
        messages: object,
        *,
        format: Format,  # noqa: A002 -- the public name
        on_divergence: OnDivergence = "raise",
        after: int = 0,
        rendered: Rendered | None = None,
    ) -> Flow[Synced[Self]]:
        """Make the timeline agree with the whole history that another program keeps: append its new messages in
        one commit, and leave the known ones unchanged.

        Args:
            messages: All messages of the history, oldest first: dicts, or an SDK's or a framework's objects.
            format: `anthropic`, `openai.chat`, `openai.responses`, `gemini`, `langchain` or `pydantic_ai`.
            on_divergence: What to do if a message that was synced or recorded has changed since: `raise`;
                or `fork` this timeline before the change and continue in the fork, which the next call
                finds again. `follow` is like `fork`, and also forks if the history ends before the
                timeline does, because the program went back.
            after: `messages` has only those after this version, because the program began anew there.
            rendered: The request that the newest answer in the history answers; None: the one rendered last.

        Raises:
            MisuseError: `rendered` is not a request of this timeline.
            ArgumentError: `messages` is not a list of messages of this format; the error names the wrong one.
            HistoryDivergedError: the history was edited, and `on_divergence` is "raise".
            CodecError: a message holds a value that cannot be stored.
            VersionConflictError: other writers of this timeline were faster at every try.
            ForgottenError: events that a fork needs were forgotten.
        """
        checked_choice(on_divergence, ON_DIVERGENCE, "sync()", "on_divergence")
        checked_whole(after, "sync()", "after")
        history = messages if isinstance(messages, History) else None  # already parsed
        history = history or history_of(messages, checked_format(format, "sync()"), after)
        answers = answered_by(rendered, self.engine.view.version, "sync()")
        operations, parted, found = yield from self._agreeing(history, on_divergence, answers)
        return Synced(
            appended=found.appended,
            kept=history.messages - found.appended,
            diverged_at=None if parted is None else history.number(parted),
            system=history.system,
            timeline=operations,
        )

    def _agreeing(
        self, history: History, on_divergence: OnDivergence, answers: Answered | None
    ) -> Flow[tuple[Self, int | None, Agreement]]:
        """This timeline or its fork, after it was made to agree with a history, and where this one diverged. What is
        hidden on request where the program has been stays hidden where it goes."""
        operations, parted, is_new = self, None, False
        hides = history.hides
        yield from inherit(self.engine, hides, exactly=False)
        newest = yield from _newest(self.engine, BlockAppended, TimelineForked)
        if isinstance(
            newest, TimelineForked
        ):  # the program may send again what came after the copied part
            hides |= yield from self._hides(and_own=False)
        found = yield from agree(
            self.engine, attrs.evolve(history, hides=hides), on_divergence, answers
        )
        while found.diverged_at is not None:
            if on_divergence == "raise" or is_new:
                raise refused(operations.engine, history, found)
            parted = found.diverged_at if parted is None else parted
            hides |= yield from operations._hides(and_own=True)
            operations, is_new = yield from operations._branch(found)
            yield from inherit(operations.engine, hides, exactly=False)
            history = attrs.evolve(history, hides=hides)
            found = yield from agree(operations.engine, history, on_divergence, None, found.origin)
        return operations, parted, found

    def _branch(self, found: Agreement) -> Flow[tuple[Self, bool]]:
        """The fork for a history that has diverged from this timeline, and whether the fork is new: an existing fork
        if the history diverged there before; a new timeline if the two have nothing in common."""
        for name in found.forks[:-1]:
            known = self._elsewhere(name)
            yield from known.engine.load()
            if known.engine.version:
                return known, False
        if found.version:
            try:
                return (yield from self.fork(found.forks[-1], at=found.version)), True
            except TimelineExistsError:
                pass  # an earlier call has already created this fork
        other = self._elsewhere(found.forks[-1])
        yield from other.engine.load()
        return other, not other.engine.version

    def _hides(self, *, and_own: bool) -> Flow[Hides]:
        """What is hidden, by what it says, in the timelines of which this one is a fork; with `and_own`, also what is
        hidden in this one."""
        found = (yield from hides_of(self.engine)) if and_own else Hides()
        names, parent = set[str](), (yield from _parent(self.engine))
        while parent and parent not in names:
            names.add(parent)
            engine = self._elsewhere(parent).engine
            yield from engine.load()
            hides = yield from hides_of(engine)
            found = attrs.evolve(hides, by_block={}) | found
            parent = yield from _parent(engine)
        return found

    def _elsewhere(self, name: str) -> Self:
        return attrs.evolve(self, engine=attrs.evolve(self.engine, id=TimelineId(name)))


def _parent(engine: Engine) -> Flow[str]:
    """The timeline of which this one is a fork; empty: none."""
    name = engine.id.rpartition("~")[0]  # as `sync` names forks
    forked = None if name else (yield from _newest(engine, TimelineForked))
    return forked.parent if isinstance(forked, TimelineForked) else name


def _newest(engine: Engine, *kinds: type[Event]) -> Flow[Event | None]:
    """The newest event of these kinds; the whole log is read only if no such event is behind the newest cut."""
    for is_all in (False, True) if engine.view.compaction else (False,):
        log = (yield from engine.events()) if is_all else engine.view.events_since_cut
        for _, event in reversed(log):
            if isinstance(event, kinds):
                return event
    return None
