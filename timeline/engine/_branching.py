"""Operations of which more comes than a version: a fork, what a history came to, a response on its way."""

from typing import Self

import attrs

from blocks import EventId, TimelineExistsError, TimelineForked, TimelineId
from blocks.formats import Format, checked_format, stream_of
from render import Rendered
from timeline._flow import Flow, RunBlocking
from timeline.arguments._blocks import answered_by
from timeline.arguments._checks import checked_choice, checked_name, checked_whole
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


@attrs.frozen(kw_only=True)
class Branching(Removing):
    """The operations of which more comes than a version."""

    def fork(self, name: str, *, at: int | None = None) -> Flow[Self]:
        """A new timeline in the same store that begins as a copy of this one.

        Raises:
            MisuseError: the name is none, or the log has no version `at`.
            ForgottenError: what the window at `at` needs is gone.
            TimelineExistsError: there is a timeline of this name.
            UnknownTimelineError: nothing was ever appended to this one.
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
        return forked

    def recording(
        self,
        format: Format,  # noqa: A002 -- as for a session
        rendered: Rendered | None = None,
    ) -> Flow[Arriving]:
        """Record a response while it streams: give each event to `add` inside of a `with` block, at whose end
        blocks and usage are committed. Where the stream breaks off, that is what had arrived whole: a text as
        far as it came, no call whose arguments were not finished.

        `format`: `anthropic`, `openai.chat`, `openai.responses` or `gemini`; `rendered`: as for `record`.

        Raises:
            ArgumentError: there is no such format, or it has no events.
        """
        yield from ()
        stream = stream_of(format, "recording()")
        return Arriving(format=format, rendered=rendered, stream=stream)

    def sync(
        self,
        messages: object,
        *,
        format: Format,  # noqa: A002 -- as for a session
        on_divergence: OnDivergence = "raise",
        after: int = 0,
        rendered: Rendered | None = None,
    ) -> Flow[Synced[Self]]:
        """Make the timeline agree with the whole history that another program keeps: what is new in it is
        appended, in one commit; what is known stays.

        Args:
            messages: All of its messages, oldest first: dicts, or an SDK's or a framework's objects.
            format: `anthropic`, `openai.chat`, `openai.responses`, `gemini`, `langchain` or `pydantic_ai`.
            on_divergence: What to do when a message that was synced or recorded is another one now:
                `raise`, or `fork` this timeline where the two part and go on in the fork, which is
                found again by the next call. `follow` does so, too, where the history ends before the
                timeline does: the program has gone back.
            after: Only those that came behind this version are given, as by a program that begins anew there.
            rendered: The request that their newest answer answers; None: the one rendered last.

        Raises:
            MisuseError: `rendered` is none of this timeline's.
            ArgumentError: it is no list of messages of this format; it says which one is none.
            HistoryDivergedError: the history was edited, and `on_divergence` is "raise".
            CodecError: a message holds what cannot be stored.
            VersionConflictError: other writers of this timeline were faster each time.
            ForgottenError: what a fork needs is gone.
        """
        checked_choice(on_divergence, ON_DIVERGENCE, "sync()", "on_divergence")
        checked_whole(after, "sync()", "after")
        history = messages if isinstance(messages, History) else None  # read already
        history = history or history_of(messages, checked_format(format, "sync()"), after)
        answers = answered_by(rendered, self.engine.view.version, "sync()")
        operations, parted, is_new = self, None, False
        found = yield from agree(self.engine, history, on_divergence, answers)
        while found.diverged_at is not None:
            if on_divergence == "raise" or is_new:
                raise refused(operations.engine, history, found)
            parted = found.diverged_at if parted is None else parted
            operations, is_new = yield from operations._branch(found)
            found = yield from agree(operations.engine, history, on_divergence)
        return Synced(
            appended=found.appended,
            kept=history.messages - found.appended,
            diverged_at=None if parted is None else history.number(parted),
            system=history.system,
            timeline=operations,
        )

    def _branch(self, found: Agreement) -> Flow[tuple[Self, bool]]:
        """The fork for a history that has parted from this timeline, and whether it is new: the one that there
        is, if it did so before, and a new timeline, if the two have nothing in common."""
        for name in found.forks[:-1]:
            known = self._elsewhere(name)
            yield from known.engine.load()
            if known.engine.version:
                return known, False
        if found.version:
            try:
                return (yield from self.fork(found.forks[-1], at=found.version)), True
            except TimelineExistsError:
                pass  # of the last time
        other = self._elsewhere(found.forks[-1])
        yield from other.engine.load()
        return other, not other.engine.version

    def _elsewhere(self, name: str) -> Self:
        return attrs.evolve(self, engine=attrs.evolve(self.engine, id=TimelineId(name)))
