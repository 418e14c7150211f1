"""Making a timeline agree with the history that another program keeps.

A `History` is what the other program has, piece by piece, with a hash of each of its prefixes. Synced messages are
recognized by such a hash, which is stored with the last block (`BlockAppended.agrees`): they are not compared again, and
no edit of them goes unnoticed.  Messages that were recorded in other ways since then may differ in details. They are
recognized by ids (`parting`): a message by its own id, a call and its result by the id of the call; without ids, by
their content.  The history need not contain thinking, notes, plans, notices, steers and follow-ups.

What the log lacks is appended, in one commit (`Filler`). If the two have diverged, the timeline is forked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import msgspec
from msgspec.structs import replace

from blocks import (
    Agreed,
    Answered,
    ArgumentError,
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    CallId,
    CodecError,
    Event,
    EventId,
    HistoryDivergedError,
    OpaqueBlock,
    Part,
    Recorded,
    SystemMessage,
    TextPart,
    TimelineExistsError,
    TimelineForked,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UsageRecorded,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    text_of_parts,
)
from blocks.formats import (
    INTERRUPTION,
    BlockMaker,
    Call,
    ClientText,
    Content,
    Format,
    Message,
    ModelText,
    Result,
    Thought,
    Verbatim,
    client_text,
    fingerprint,
    items,
    messages_from,
    parts_in,
)
from render import View, response_of
from timeline._flow_drivers import Flow, blocking
from timeline.engine._engine import Engine
from timeline.engine._hiding import Hides, blocks_of, hides_of, inherit

if TYPE_CHECKING:
    from timeline.engine._operations import OnDivergence


@attrs.frozen(kw_only=True)
class Origin:
    """The timelines that a history has diverged from: the thinking that it brings answers their requests."""

    answered: Mapping[bytes, str] = attrs.field(factory=dict[bytes, str], repr=False)
    """By thinking that they have: the hash of the request that it answers there."""
    newest: str = Answered.UNKNOWN
    """The hash of their newest request without an answer, which all other thinking answers."""

    def after(self, other: Origin | None) -> Origin:
        """Both, of which the history has diverged from the other one first."""
        if other is None:
            return self
        return Origin(answered={**self.answered, **other.answered}, newest=other.newest)

    def requests(self, missing: Sequence[Missing]) -> dict[int, str]:
        """For the messages with thinking, by index: the hash of the request that their first thinking answers."""
        requests = (
            (each.step.number, self.answered.get(_signed(piece.value), self.newest))
            for each in reversed(missing)
            for piece in reversed(each.pieces)
            if isinstance(piece, Thought)
        )
        return {number: sent for number, sent in requests if sent}


@attrs.frozen(kw_only=True)
class Agreement:
    """How far a timeline agrees with a history, and where to fork if they differ."""

    appended: int = 0
    """Number of messages that were appended."""
    diverged_at: int | None = None
    """Number of steps of the history before the first one that differs."""
    place: int = 0
    """Version of the block that the timeline has in place of that message."""
    version: int = 0
    """Version of the last event before the two diverged."""
    forks: tuple[str, ...] = ()
    """Names for a fork at this point, always the same for the same history. The last one is for a new fork; the
    others may exist already."""
    origin: Origin = attrs.field(factory=Origin, repr=False)
    """If they differ: what the timeline knows about the thinking of the history."""


def agreeing(
    engine: Engine, history: History, on_divergence: OnDivergence, answers: Answered | None
) -> Flow[tuple[Engine, int | None, Agreement]]:
    """A timeline or its fork, after it was made to agree with a history; and the number of steps of the history before
    the timeline diverged from it, None if it did not. What is hidden on request where the program has been stays hidden
    where it goes.

    Raises:
        HistoryDivergedError: the two have diverged, and `on_divergence` is "raise".
    """
    parted, is_new, origin = None, False, None
    hides = history.hides
    yield from inherit(engine, hides, exactly=False)
    if _is_fresh_copy(engine.view):  # the program may send again what came after the copied part
        hides |= yield from _ancestors_hides(engine)
    while True:
        history = attrs.evolve(history, hides=hides)
        agreement = yield from engine.repeated(
            _agreed, engine, history, on_divergence, answers, origin
        )
        if agreement.diverged_at is None:
            return engine, parted, agreement
        if on_divergence == "raise" or is_new:
            number = history.number(agreement.diverged_at)
            raise HistoryDivergedError(engine.id, message=number, version=agreement.place)
        if parted is None:  # the ancestors of the forks that follow are among those and this
            parted = agreement.diverged_at
            hides |= yield from _ancestors_hides(engine)
        hides |= yield from hides_of(engine)
        engine, is_new = yield from _branch(engine, agreement)
        yield from inherit(engine, hides, exactly=False)
        first = Origin(newest=answers.sent) if answers else origin
        answers, origin = None, agreement.origin.after(first)


def fork(engine: Engine, name: TimelineId, at: int | None = None) -> Flow[Engine]:
    """A new timeline in the same store that begins as a copy of this one at version `at` (None: now), with what is hidden
    on request now.

    Raises:
        MisuseError: the log has no such version.
        ForgottenError: events that the window there needs were forgotten.
        TimelineExistsError: there is already a timeline of this name.
        UnknownTimelineError: nothing was ever appended to this timeline.
    """
    yield from engine.flush()
    version = engine.version if at is None else at
    event = TimelineForked(
        id=EventId(engine.ids()), at=engine.clock(), parent=engine.id, version=version
    )
    yield from blocking(engine.store.fork, engine.id, name, event, at=version)
    copy = attrs.evolve(engine, id=name)
    yield from copy.load()
    if version != engine.version:
        yield from inherit(copy, (yield from hides_of(engine)), exactly=True)
    return copy


def _branch(engine: Engine, agreement: Agreement) -> Flow[tuple[Engine, bool]]:
    """The fork for a history that has diverged from this timeline, and whether the fork is new: an existing fork if the
    history diverged there before; a new timeline if the two have nothing in common."""
    for name in agreement.forks[:-1]:
        branch = yield from _loaded(engine, name)
        if branch.version:
            return branch, False
    if agreement.version:
        try:
            name = TimelineId(agreement.forks[-1])
            return (yield from fork(engine, name, agreement.version)), True
        except TimelineExistsError:
            pass  # an earlier call has already created this fork
    other = yield from _loaded(engine, agreement.forks[-1])
    return other, not other.version


def _ancestors_hides(engine: Engine) -> Flow[Hides]:
    """What is hidden in the timelines of which this one is a fork, by what it says."""
    hides, names, parent = Hides(), set[str](), _parent(engine)
    while parent and parent not in names:
        names.add(parent)
        ancestor = yield from _loaded(engine, parent)
        hides = attrs.evolve((yield from hides_of(ancestor)), by_block={}) | hides
        parent = _parent(ancestor)
    return hides


def _loaded(engine: Engine, name: str) -> Flow[Engine]:
    """Another timeline of the same store."""
    other = attrs.evolve(engine, id=TimelineId(name))
    yield from other.load()
    return other


def _parent(engine: Engine) -> str:
    """The timeline of which this one is a fork; empty: none."""
    return engine.view.state.parent or engine.id.rpartition("~")[0]  # "~": as `sync` names forks


def _fork_name(parent: str, chain: str, *, is_whole: bool) -> str:
    """The name of the fork for the histories with this hash: for one that differs in the piece before it, or for the one
    that ends there. Names do not grow, however often forks are forked again."""
    root, kind = parent.partition("~")[0], "=" if is_whole else "~"
    digest = sha256(f"{parent}{kind}{chain}".encode("utf-8", "surrogatepass"))
    return f"{root}~{digest.hexdigest()[:12]}"


def _is_fresh_copy(view: View) -> bool:
    """Whether nothing was appended since the timeline began as a copy."""
    kinds = (BlockAppended, TimelineForked)
    newest = next((e for _, e in reversed(view.events_since_cut) if isinstance(e, kinds)), None)
    return isinstance(newest, TimelineForked)


def _agreed(
    engine: Engine,
    history: History,
    on_divergence: OnDivergence,
    answers: Answered | None,
    origin: Origin | None,
) -> Flow[Agreement]:
    """Append the messages of a history that a log lacks, in one commit, unless the two have diverged.

    `answers` is the request that the newest answer in the history answers. `origin` are the timelines that the history
    has diverged from, if any: a provider that binds thinking to what precedes it gets it only if the same does here.
    """
    start, log = yield from _behind(engine, history)
    if on_divergence == "append":
        diff = additions(history, log, start, engine.view)
    else:
        diff = parting(history, log, start)
    if diff.diverged is not None:
        return _parted(engine, history, log, diff.diverged, diff.version)
    if on_divergence == "follow":
        count = diff.missing[0].count - 1 if diff.missing else len(history.steps)
        if place := diff.ahead or _rest(engine, history, log, count):
            return _parted(engine, history, log, count, place)
    events = _events(engine, history, diff, answers, origin)
    if events:
        yield from engine.append_sealed([*events, *(yield from _hides(engine, history, events))])
    return Agreement(appended=len({missing.step.number for missing in diff.missing}))


def _rest(engine: Engine, history: History, log: Sequence[Recorded], count: int) -> int:
    """If the log shares `count` pieces with a longer history, and is a fork for those that end there: the version before
    which the history parts from it; 0: it may go on here. Such a fork stays as it is, for all who send the same once more,
    and what each of them got is in a fork of its own."""
    if count >= len(history.chain) - 1:
        return 0
    if engine.id != _fork_name(_parent(engine), history.chain[count], is_whole=True):
        return 0
    own = takewhile(lambda each: not isinstance(each[1], TimelineForked), reversed(log))
    first = (version for version, event in own if isinstance(event, UsageRecorded))
    return min(first, default=engine.view.version) + 1


def _parted(
    engine: Engine, history: History, log: Sequence[Recorded], count: int, place: int
) -> Agreement:
    """The agreement of a log and a history that share `count` steps, after which the log differs at `place`.

    A fork is named after the first step that differs; if the history has no further step, after the whole history.
    """
    whole, further = history.chain[: count + 1], history.chain[count + 1 :]
    names = [_fork_name(engine.id, whole[-1], is_whole=True)]
    names += [_fork_name(engine.id, chain, is_whole=False) for chain in further[:1]]
    return Agreement(
        diverged_at=count,
        place=place,
        version=_before(log, place),
        forks=tuple(names),
        origin=_origin(engine, log),
    )


def _origin(engine: Engine, log: Sequence[Recorded]) -> Origin:
    blocks = [event.block for _, event in log if isinstance(event, BlockAppended)]
    answered = {
        _signed(b.provider): Answered.UNKNOWN for b in blocks if isinstance(b, AssistantThinking)
    }
    for entry in engine.view.entries if answered else ():
        if isinstance(entry.source, AssistantThinking) and entry.request and entry.request.sent:
            answered[_signed(entry.source.provider)] = entry.request.sent
    waiting = engine.view.state.waiting
    return Origin(answered=answered, newest=waiting[-1].sent if waiting else Answered.UNKNOWN)


def _signed(own: object) -> bytes:
    return msgspec.json.encode(own, order="sorted")


def _behind(engine: Engine, history: History) -> Flow[tuple[Agreed | None, Sequence[Recorded]]]:
    """The newest stored hash that matches a beginning of the history, and the log after it.

    If the history continues from where it was last synced, no older events are read.
    """
    view = engine.view
    state, window = view.state, view.events_since_cut
    if history.is_at(state.agreed):
        first = window[0][0] if window else view.version + 1
        if first <= state.agreed_at + 1:
            return state.agreed, [r for r in window if r[0] > state.agreed_at]
        return state.agreed, (yield from engine.events(state.agreed_at))
    is_all = view.compaction is None and not history.after
    log = window if is_all else (yield from engine.events(history.after))
    for index in reversed(range(len(log))):
        event = log[index][1]
        if isinstance(event, BlockAppended) and history.is_at(event.agrees):
            return event.agrees, log[index + 1 :]
    return None, log


def _before(log: Sequence[Recorded], version: int) -> int:
    """The last version before a block and the blocks that only introduce it: its turn header and its thinking."""
    for recorded, event in reversed(log):
        if recorded < version and not (recorded == version - 1 and _leads(event)):
            break
        version = min(version, recorded)
    return version - 1


def _leads(event: Event) -> bool:
    if not isinstance(event, BlockAppended):
        return False
    is_own = isinstance(event.block, OpaqueBlock) and event.block.author == "assistant"
    return is_own or isinstance(event.block, TurnHeader | AssistantThinking)


def _events(
    engine: Engine,
    history: History,
    diff: Parting,
    answers: Answered | None,
    origin: Origin | None,
) -> list[Event]:
    filler = Filler(view=engine.view, new_id=lambda: BlockId(engine.ids()), now=engine.clock())
    events: list[Event] = []
    answer, is_behind = _newest_answer(diff.missing), False
    is_waited = bool(engine.view.state.waiting)
    requests = {} if origin is None else origin.requests(diff.missing)
    for missing in diff.missing:
        blocks = filler.blocks(missing)
        batch: list[Any] = engine.appended(blocks) if blocks else []
        opening = next((n for n, b in enumerate(blocks) if b.author == "assistant"), len(blocks))
        request = answers if missing is answer else None
        sent = requests.pop(missing.step.number, "")
        if is_behind and not request and is_waited:  # that request did not show these words
            sent = sent or Answered.UNKNOWN
        if sent:
            shown = engine.view.version + len(engine.pending) + len(events) + opening
            request = Answered(shown=shown, sent=sent)
        is_behind = missing.step.message.role != "assistant"
        if request and opening < len(blocks):
            batch[opening] = replace(batch[opening], answers=request)
        last = batch[-1] if batch else None
        count = max(missing.count, diff.last_match if missing is diff.missing[-1] else 0)
        # Content that only a provider reads gets no mark: it may come again before the next piece.
        if isinstance(last, BlockAppended) and missing.step.piece and count >= diff.last_match:
            batch[-1] = replace(last, agrees=history.agrees(count))
        events += batch
    return events


def _hides(engine: Engine, history: History, events: Sequence[Event]) -> Flow[list[Event]]:
    """The event that hides what is sent again and was hidden where the program has been."""
    if not history.hides.by_content:
        return []
    there = {block.id for _, block in blocks_of((yield from engine.events()))}
    blocks = (event.block for event in events if isinstance(event, BlockAppended))
    hidden = tuple(history.hides.again(blocks, there))
    if not hidden:
        return []
    new, now = EventId(engine.ids()), engine.clock()
    return [BlocksHidden(id=new, at=now, hidden=hidden, reason="requested")]


def _newest_answer(missing: Sequence[Missing]) -> Missing | None:
    """The first missing step of the newest answer in the history."""
    runs = groupby(missing, lambda each: each.step.message.role == "assistant")
    answers = [next(run) for is_answer, run in runs if is_answer]
    return answers[-1] if answers else None


# The history.


FORM: Final = "2"
"""The prefix of the hash of a history; hashes with different prefixes are not comparable."""
_FORGOTTEN: Final = Message(role="user")
"""The message of a step whose content is not kept."""
Own: TypeAlias = Thought | Verbatim
"""Content that only a provider reads. It is not compared, because a program may drop it."""
Piece: TypeAlias = Message | ModelText | Call | Result
"""Content that becomes one block. A `Message` holds all parts of a message by the user or the system."""


@attrs.frozen(kw_only=True)
class Passage:
    """One piece of a history, with the content before it that only a provider reads."""

    number: int
    """Index of its message in the given list."""
    message: Message
    own: tuple[Own, ...]
    """The content just before it that only a provider reads."""
    piece: Piece | None
    """The piece; None: the history ends with content that only a provider reads."""


@attrs.frozen(kw_only=True)
class History:
    """The history of another program's conversation.

    Histories are compared piece by piece and not by messages, because a message that has one result now may have two
    later.
    """

    steps: tuple[Passage, ...]
    chain: tuple[str, ...]
    """For each number of pieces, from 0: the hash of that many pieces."""
    system: str
    """The system prompt at its beginning; empty: none."""
    after: int = 0
    """The timeline's version after which the history begins."""
    hides: Hides = attrs.field(factory=Hides)
    """What is hidden on request where the program has been so far, if that is not the timeline that is synced."""

    @property
    def messages(self) -> int:
        """Number of messages with content."""
        return len({step.number for step in self.steps})

    def number(self, step: int) -> int:
        """Index in the given list of a step's message; for the number after the last step, the next index."""
        if step < len(self.steps):
            return self.steps[step].number
        return self.steps[-1].number + 1 if self.steps else 0

    def agrees(self, count: int) -> Agreed:
        """The mark for the first `count` pieces."""
        return Agreed(pieces=count, chain=self.chain[count])

    def is_like(self, mark: Agreed) -> bool:
        """Whether a mark is of a history with the same hash form and the same starting version."""
        return mark.chain.startswith(self.chain[0])

    def is_at(self, mark: Agreed | None) -> bool:
        """Whether the history begins with the pieces that a mark stands for."""
        return mark is not None and (
            mark.pieces < len(self.chain) and self.chain[mark.pieces] == mark.chain
        )


@attrs.define
class HistoryMemory:
    """What was read of a history that is given again and again, so that only its new messages are read. Of those that the
    log has, only hashes are kept."""

    _hashes: list[bytes | None] = attrs.field(factory=list["bytes | None"], init=False)
    """A hash of each message that was read; None: it has none."""
    _reader: HistoryReader | None = attrs.field(default=None, init=False)

    def history(
        self,
        messages: object,
        format: Format,  # noqa: A002 -- as everywhere
        after: int,
        agreed: Agreed | None,
    ) -> History:
        """The history in a list of messages that begins after version `after` of a timeline; `agreed` is the newest mark of
        its log.

        Raises:
            ArgumentError: it is not a list of messages of this format.
            CodecError: a message holds a value that cannot be stored.
        """
        reader, self._reader = self._reader, None
        entries, before = items(messages), self._hashes
        self._hashes = [*map(fingerprint, entries)] or [None]
        begins, is_kept = self._hashes[: len(before)] == before, None not in self._hashes
        if reader and (reader.format, reader.after) == (format, after) and begins:
            with suppress(ArgumentError, CodecError):  # raised again below, with the right number
                reader.add(entries[len(before) :])
                history = reader.history()
                if agreed and agreed.pieces >= reader.forgotten and history.is_at(agreed):
                    reader.forget(agreed.pieces)
                    self._reader = reader if is_kept else None
                    return history
        reader = HistoryReader(format=format, after=after)
        reader.add(messages)
        self._reader = reader if is_kept else None
        return reader.history()


@attrs.define(kw_only=True)
class HistoryReader:
    """Reads a growing history; each message is read once."""

    format: Format
    after: int = 0
    """The timeline's version after which the history begins."""
    _steps: list[Passage] = attrs.field(factory=list[Passage], init=False)
    _chain: list[str] = attrs.field(init=False)
    _digest: bytes = attrs.field(default=b"", init=False)
    _own: list[Own] = attrs.field(factory=list[Own], init=False)
    """Content that only a provider reads, to be attached to the next step."""
    _last: tuple[int, Message] | None = attrs.field(default=None, init=False)
    _system: list[str] = attrs.field(factory=list[str], init=False)
    _newest: str = attrs.field(default="", init=False)
    _count: int = attrs.field(default=0, init=False)
    """Number of messages that were read."""
    forgotten: int = attrs.field(default=0, init=False)
    """Number of steps at the beginning whose content is not kept."""

    def __attrs_post_init__(self) -> None:
        self._chain = [f"{FORM}@{self.after}:" if self.after else f"{FORM}:"]

    def add(self, messages: object) -> None:
        """Read further messages.

        Raises:
            ArgumentError: it is not a list of messages of this format; the error names the wrong one.
            CodecError: a message holds a value that cannot be stored.
        """
        for read in messages_from(messages, self.format):
            for message in read:
                self._newest = message.instructions or self._newest
                if message.role == "system" and self._last is None:
                    self._system.append(text_of_parts(parts_in(message.content)))
                elif message.content:
                    self._say(message)
            self._count += 1

    def history(self) -> History:
        """The history of all messages that were read so far."""
        steps = tuple(self._steps)
        if self._last and self._own:
            number, message = self._last
            steps += (Passage(number=number, message=message, own=tuple(self._own), piece=None),)
        return History(
            steps=steps,
            chain=tuple(self._chain),
            system="\n\n".join(text for text in (*self._system, self._newest) if text.strip()),
            after=self.after,
        )

    def forget(self, count: int) -> None:
        """Drop the content of the first `count` steps; only a log that is known to have them may be compared then."""
        span = slice(self.forgotten, count)
        self._steps[span] = [
            Passage(number=step.number, message=_FORGOTTEN, own=(), piece=None)
            for step in self._steps[span]
        ]
        self.forgotten = max(self.forgotten, count)

    def _say(self, message: Message) -> None:
        for piece in _pieces(message):
            self._last = self._count, message
            if isinstance(piece, Thought | Verbatim):
                self._own.append(piece)
                continue
            step = Passage(number=self._count, message=message, own=tuple(self._own), piece=piece)
            self._steps.append(step)
            self._own.clear()
            self._digest = sha256(self._digest + _content(piece)).digest()
            self._chain.append(f"{self._chain[0]}{self._digest.hex()[:32]}")


def _pieces(message: Message) -> Iterator[Piece | Own]:
    """The pieces of a message, one per block; tool results come first."""
    for content in message.content:
        if isinstance(content, ModelText | Call | Result | Thought | Verbatim):
            yield content
    if parts := parts_in(message.content):
        yield replace(message, content=tuple(parts))


def _content(piece: Piece) -> bytes:
    """The content of a piece as JSON, without ids that a program may change; a database may have sorted its keys."""
    match piece:
        case Message(role=role, content=content):
            value: object = (role, content)
        case ModelText(text=text):
            value = ("said", text)
        case Call(call_id=call_id, name=name, input=arguments):
            value = ("call", call_id, name, arguments)
        case Result(call_id=call_id, parts=parts, is_error=is_error):
            value = ("result", call_id, parts, is_error)
    return msgspec.json.encode(value, order="sorted")


# How far a history and a log agree.


@attrs.frozen(kw_only=True)
class Missing:
    """The part of a step that the log lacks."""

    count: int
    """Number of steps up to and including this one."""
    step: Passage
    pieces: tuple[Piece | Own, ...]


@attrs.frozen(kw_only=True)
class Parting:
    """How far a history and a log agree."""

    missing: tuple[Missing, ...] = ()
    """The parts that the log lacks, in order."""
    last_match: int = 0
    """Number of steps up to and including the last one that the log has."""
    diverged: int | None = None
    """Number of steps before the first one that differs from the log; None: none differs."""
    version: int = 0
    """Version of the block in the log that differs from that step."""
    ahead: int = 0
    """Version of the first block that follows in the log after the history ends; 0: none."""


def parting(history: History, log: Sequence[Recorded], start: Agreed | None) -> Parting:
    """Compare a history with a log; `log` has the events after the mark `start`."""
    appended = [(version, e) for version, e in log if isinstance(e, BlockAppended)]
    marks = (event.agrees for _, event in appended if event.agrees is not None)
    counts = (mark.pieces for mark in marks if history.is_like(mark))
    differs = min((count for count in counts if count < len(history.chain)), default=0)
    blocks = [(version, event.block) for version, event in appended]
    return _Matcher(blocks).along(history.steps, start.pieces if start else 0, differs)


def additions(
    history: History, log: Sequence[Recorded], start: Agreed | None, view: View
) -> Parting:
    """What a log lacks of a history of which it may have more: nothing diverges."""
    last_match = offset = start.pieces if start else 0
    blocks = [event.block for _, event in log if isinstance(event, BlockAppended)]
    if overlap := _overlap(blocks, history.steps, offset):
        return overlap
    held = _Held(view=view, blocks=dict(enumerate(blocks)))
    missing: list[Missing] = []
    for count, step in enumerate(history.steps[offset:], offset + 1):
        pieces = step.own if step.piece is None else (*step.own, step.piece)
        lacking = tuple(piece for piece in pieces if not held.take(piece))
        if step.piece in lacking or (lacking and step.piece is None):
            missing.append(Missing(count=count, step=step, pieces=lacking))
        elif step.piece is not None:
            last_match = count
    return Parting(missing=tuple(missing), last_match=last_match)


OVERLAP_MIN: Final = 2
"""So many pieces tell that a history begins where the end of a log does; one may be there by chance."""


def _overlap(blocks: Sequence[Block], steps: Sequence[Passage], offset: int) -> Parting | None:
    """What a log lacks if its end is the beginning of the history, as where a program keeps only its newest messages; None if it
    is not."""
    required = [n for n, block in enumerate(blocks) if isinstance(block, REQUIRED)]
    for begin in required[-len(steps) :]:
        diff = _Matcher([(0, block) for block in blocks[begin:]]).along(steps, offset, 0)
        shared = len(steps) - offset - len(diff.missing)
        if diff.diverged is None and not diff.ahead and shared >= OVERLAP_MIN:
            return diff
    return None


@attrs.define(kw_only=True)
class _Held:
    """The blocks of a log that no piece of a history has taken yet, by their place. Those with ids may be in any order. Words
    stand behind those that were taken before: equal ones may be said again."""

    view: View
    blocks: dict[int, Block]
    at: int = 0
    """The first place at which words may stand."""

    def take(self, piece: Piece | Own) -> bool:
        """Whether one of these blocks is a piece; or one of the round before them, if that has a call without a result, which
        had to wait."""
        own = piece.id if isinstance(piece, Message) else piece.source
        is_named = isinstance(piece, Call | Result)
        for place, block in self.blocks.items():
            is_free = is_named or place >= self.at or (own and own == block.source)
            if is_free and _is_same(piece, block):
                del self.blocks[place]
                self.at = self.at if isinstance(piece, Result) else max(self.at, place + 1)
                return True
        newest = self.view.groups[-1] if self.view.groups else None
        if newest is None or not newest.open_calls:
            return False
        if isinstance(piece, Call):
            return piece.call_id in newest.open_calls
        return bool(own) and self.view.sourced_at(own) >= newest.first


REQUIRED: Final = UserPrompt, AssistantCompletion, ToolCall, ToolResult
"""Blocks of a log that the history must contain, too."""


@attrs.define
class _Matcher:
    """Matches the blocks of a log, with their versions, with the pieces of a history, in order."""

    _blocks: Sequence[tuple[int, Block]]
    _taken: set[int] = attrs.field(factory=set[int], init=False)
    """Indexes of the blocks that were matched."""
    _at: int = attrs.field(default=0, init=False)
    """Index before which all blocks were matched or skipped."""
    _is_over: bool = attrs.field(default=False, init=False)
    """Whether the log has no more blocks to compare."""
    _response: str = attrs.field(default="", init=False)
    """Id of the response that was last matched as a whole."""

    def along(self, steps: Sequence[Passage], start: int, differs: int) -> Parting:
        """The result for the steps after the first `start`; `differs` is the number of the first step that is known
        to differ, or 0."""
        missing: list[Missing] = []
        last_match = start
        for count, step in enumerate(steps[start:], start + 1):
            place, lacking = self._next(), self._lacking(step)
            if lacking is None or count == differs:
                return Parting(diverged=count - 1, version=place[0] if place else 0)
            if lacking:
                missing.append(Missing(count=count, step=step, pieces=lacking))
            elif step.piece is not None:
                last_match = count
        further = self._next()
        ahead = further[0] if further and not missing else 0
        return Parting(missing=tuple(missing), last_match=last_match, ahead=ahead)

    def _ahead(self) -> Iterator[tuple[int, Block]]:
        """The indexes of the blocks that were not matched or skipped yet, and these blocks."""
        for index in range(self._at, len(self._blocks)):
            if index not in self._taken:
                yield index, self._blocks[index][1]

    def _next(self) -> tuple[int, Block] | None:
        """The version of the first block ahead that the history must contain, and this block."""
        ahead = (self._blocks[n] for n, block in self._ahead() if isinstance(block, REQUIRED))
        return next(ahead, None)

    def _lacking(self, step: Passage) -> tuple[Piece | Own, ...] | None:
        """The pieces of a step that the log lacks; pieces that it has are marked as matched. None: the log has
        something else there."""
        piece = step.piece
        if self._is_over:
            return step.own if piece is None else (*step.own, piece)
        own = () if self._next() else tuple(one for one in step.own if not self._take(one))
        if piece is None:
            return own
        if self._take_response(step.message) or self._take(piece):
            return ()
        place = self._next()
        self._is_over = place is None
        if place and not (isinstance(piece, Result) and isinstance(place[1], ToolResult)):
            return () if isinstance(piece, Message) and piece.role == "system" else None
        return (*own, piece)

    def _take(self, piece: Piece | Own) -> bool:
        """Match a piece with a block. Tool results may be in any order, so a result may match any of the results
        that come next."""
        is_result = isinstance(piece, Result)
        for index, block in self._ahead():
            if _is_same(piece, block):
                self._taken.add(index)
                self._at = self._at if is_result else index + 1
                return True
            if isinstance(block, REQUIRED) and not (is_result and isinstance(block, ToolResult)):
                return False
        return False

    def _take_response(self, message: Message) -> bool:
        """Match all blocks of a response with its message, if they come next or were matched last."""
        if message.role != "assistant" or not message.id:
            return False
        if message.id == self._response:
            return True
        for index in range(self._at, len(self._blocks)):
            _, block = self._blocks[index]
            if message.id in (block.source, response_of(block)):
                self._taken.add(index)
                self._at, self._response = index + 1, message.id
            elif isinstance(block, REQUIRED):
                break
        return message.id == self._response


def _is_same(piece: Piece | Own, block: Block) -> bool:
    own = piece.id if isinstance(piece, Message) else piece.source
    if own and own == block.source:
        return True
    match piece, block:
        case (Call(call_id=call_id), ToolCall(call_id=other)) | (
            Result(call_id=call_id),
            ToolResult(call_id=other),
        ):
            return call_id == other
        case ModelText(text=text), AssistantCompletion():
            return text.strip() == block.text.strip()
        case Thought(value=value), AssistantThinking():
            return value == block.provider
        case Verbatim(value=value), OpaqueBlock():
            return bool(value == block.fields.get("value"))
        case Message(role="system"), SystemMessage():
            return text_of_parts(parts_in(piece.content)) == block.text
        case Message(), _:
            return _are_words(parts_in(piece.content), block)
        case _:
            return False


def _are_words(parts: Sequence[Part], block: Block) -> bool:
    """Whether a block has the content of a user's message: the same text or, without any text, the same parts."""
    if isinstance(block, UserAttachment):
        return tuple(parts) == (block.part,)
    if not isinstance(block, UserPrompt | UserSteer | UserFollowup):
        return False
    texts = [part for part in parts if isinstance(part, TextPart)]
    own = [TextPart(text=block.text), *(p for p in block.parts if isinstance(p, TextPart))]
    if texts:
        return text_of_parts(texts) == text_of_parts(own if block.text else own[1:])
    return not block.text and tuple(parts) == block.parts


# The blocks that a log lacks.


@attrs.define(kw_only=True)
class Filler:
    """Makes the blocks for the missing messages of a history, one message after the other."""

    view: View
    new_id: Callable[[], BlockId]
    now: float
    _turn: TurnId = attrs.field(init=False)
    _turns: int = attrs.field(default=0, init=False)
    """Number of turns that were opened here."""
    _is_fresh: bool = attrs.field(default=False, init=False)
    """Whether the newest turn was opened here and contains only context so far."""
    _is_opening: bool = attrs.field(init=False)
    """Whether the model has not answered yet."""
    _call_turns: dict[CallId, TurnId] = attrs.field(factory=dict[CallId, TurnId], init=False)
    """The turns of the calls that were made here."""

    def __attrs_post_init__(self) -> None:
        self._turn = self.view.turn
        self._is_opening = not self.view.state.rounds

    def blocks(self, missing: Missing) -> list[Block]:
        """The blocks for the missing pieces of one step."""
        message, own = missing.step.message, list[Content]()
        content = [
            content
            for piece in missing.pieces
            for content in (piece.content if isinstance(piece, Message) else (piece,))
        ]
        if message.role != "assistant":  # what ended the model's message before
            own = [each for each in content if isinstance(each, Own)]
            content = [each for each in content if each not in own]
        # Text beside tool results reaches an agent that is still working.
        is_meanwhile = any(isinstance(c, Result) for c in message.content)
        voice = UserSteer if is_meanwhile else UserPrompt
        messages = (
            Message(role="assistant", content=tuple(own)),
            replace(message, content=tuple(content)),
        )
        blocks = [b for each in messages if each.content for b in self._blocks_of(each, voice)]
        self._call_turns.update((b.call_id, b.turn) for b in blocks if isinstance(b, ToolCall))
        return blocks

    def _blocks_of(self, message: Message, voice: type[UserPrompt | UserSteer]) -> Iterator[Block]:
        for result in [piece for piece in message.content if isinstance(piece, Result)]:
            yield from self._opened()
            call_id = CallId(result.call_id)
            turn = self._call_turns.get(call_id) or self.view.turn_of(call_id) or self._turn
            yield attrs.evolve(self._maker, turn=turn).result(result, message.id)
        match message.role:
            case "assistant":
                yield from self._opened()
                self._is_fresh = self._is_opening = False
                yield from self._maker.spoken(message)
            case "system":
                yield from self._opened()
                yield from self._maker.operator(message)
            case _ if parts_in(message.content):
                yield from self._from_user(message, voice)
            case _:
                pass

    def _from_user(self, message: Message, voice: type[UserPrompt | UserSteer]) -> Iterator[Block]:
        """The blocks of a user's message in its order: the user's words, and attachments for what the user's program
        added. Words after an attachment are a prompt of their own; after an interruption, even beside results."""
        parts = parts_in(message.content)
        has_words_ahead = not all(map(self._client_text, parts))
        for client, run in groupby(parts, self._client_text):
            opens_turn = voice is UserPrompt and (has_words_ahead or not client)
            yield from self._next_turn() if opens_turn and not self._is_fresh else self._opened()
            if client:
                for part in run:
                    yield UserAttachment(
                        id=self.new_id(),
                        turn=self._turn,
                        source=message.id,
                        name=client.name,
                        part=part,
                        standing=client.standing,
                    )
                voice = UserPrompt if client.name == INTERRUPTION else voice
            else:
                has_words_ahead = self._is_fresh = False
                yield from self._maker.words(replace(message, content=tuple(run)), voice)

    @property
    def _maker(self) -> BlockMaker:
        return BlockMaker(new_id=self.new_id, turn=self._turn)

    def _opened(self) -> Iterator[Block]:
        """A turn header, if no turn is open yet."""
        return iter(()) if self._turn else self._next_turn()

    def _next_turn(self) -> Iterator[Block]:
        number = int(self.view.new_turn.removeprefix("t")) + self._turns
        self._turn, self._turns = TurnId(f"t{number}"), self._turns + 1
        self._is_fresh = True
        yield TurnHeader(id=self.new_id(), turn=self._turn, started_at=self.now)

    def _client_text(self, part: Part) -> ClientText | None:
        """What a part is that the user's client wrote; None for the user's own words and for pictures."""
        if not isinstance(part, TextPart):
            return None
        return client_text(part.text, is_opening=self._is_opening)
