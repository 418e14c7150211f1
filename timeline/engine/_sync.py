"""Making a timeline agree with the history that another program keeps."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import attrs
import msgspec
from msgspec.structs import replace

from blocks import (
    Agreed,
    Answered,
    AssistantThinking,
    BlockAppended,
    BlockId,
    BlocksHidden,
    Event,
    EventId,
    HistoryDivergedError,
    OpaqueBlock,
    Recorded,
    TurnHeader,
)
from blocks.formats import Thought
from timeline._flow import Flow
from timeline.engine._engine import Engine
from timeline.engine._foreign import Filler
from timeline.engine._history import History
from timeline.engine._parting import Missing, Parting, parting
from timeline.engine._sharing import blocks_of

_T = TypeVar("_T")
_U = TypeVar("_U")
OnDivergence: TypeAlias = Literal["raise", "fork", "follow"]
ON_DIVERGENCE: Final[tuple[OnDivergence, ...]] = ("raise", "fork", "follow")
FORK_HASH: Final = 12
"""Length of the hash at the end of a fork's name."""
ELSEWHERE: Final = "?"
"""For thinking of an unknown request: a hash that no request has."""


@attrs.frozen(kw_only=True)
class Origin:
    """The timelines that a history has diverged from: the thinking that it brings answers their requests."""

    answered: Mapping[bytes, str] = attrs.field(factory=dict[bytes, str], repr=False)
    """By thinking that they have: the hash of the request that it answers there."""
    newest: str = ELSEWHERE
    """The hash of their newest request without an answer, which all other thinking answers."""

    def after(self, other: "Origin | None") -> "Origin":
        """Both, of which the history has diverged from the other one first."""
        if other is None:
            return self
        return Origin(answered={**self.answered, **other.answered}, newest=other.newest)

    def request_of(self, missing: Missing) -> str:
        """The hash of the request that the thinking of a missing step answers; empty: it has none."""
        own = (piece.value for piece in missing.pieces if isinstance(piece, Thought))
        return next((self.answered.get(_signed(each), self.newest) for each in own), "")


@attrs.frozen(kw_only=True)
class Synced(Generic[_T]):
    """The result of `sync`."""

    appended: int
    """Messages of the history that were new, in whole or in part."""
    kept: int
    """Messages of the history that were already in the timeline."""
    diverged_at: int | None = None
    """Index, in the list that was given, of the first message that differs from this timeline; None:
    none differs."""
    system: str = ""
    """The system prompt of the history, for `render(system=...)`."""
    timeline: _T
    """The timeline that now agrees with the history: this one, or a fork of it if they diverged."""

    def on(self, timeline: _U) -> "Synced[_U]":
        """The same result with another timeline object."""
        return Synced(
            appended=self.appended,
            kept=self.kept,
            diverged_at=self.diverged_at,
            system=self.system,
            timeline=timeline,
        )


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
    origin: Origin | None = attrs.field(default=None, repr=False)
    """If they differ: what the timeline knows about the thinking of the history."""


def agree(
    engine: Engine,
    history: History,
    on_divergence: OnDivergence,
    answers: Answered | None,
    origin: Origin | None = None,
) -> Flow[Agreement]:
    """Append the messages of a history that a log lacks, in one commit, unless the two have diverged.

    `answers` is the request that the newest answer in the history answers. `origin` are the timelines that the history
    has diverged from, if any: a provider that binds thinking to what precedes it gets it only if the same does here.
    """
    appending = partial(_agreed, engine, history, on_divergence, answers, origin)
    found: Agreement = yield from engine.repeated(appending)
    first = Origin(newest=answers.sent) if answers else origin
    return attrs.evolve(found, origin=found.origin and found.origin.after(first))


def refused(engine: Engine, history: History, found: Agreement) -> HistoryDivergedError:
    """The error for a history that was edited."""
    number = history.number(found.diverged_at or 0)
    return HistoryDivergedError(engine.id, message=number, version=found.place)


def _agreed(
    engine: Engine,
    history: History,
    on_divergence: OnDivergence,
    answers: Answered | None,
    origin: Origin | None,
) -> Flow[Agreement]:
    start, log = yield from _behind(engine, history)
    found = parting(history, log, start)
    if found.diverged is not None:
        return _parted(engine, history, log, found.diverged, found.version)
    if found.ahead and on_divergence == "follow":
        return _parted(engine, history, log, len(history.steps), found.ahead)
    events = _events(engine, history, found, answers, origin)
    if events:
        yield from engine.append_sealed([*events, *(yield from _hides(engine, history, events))])
    return Agreement(appended=len({missing.step.number for missing in found.missing}))


def _parted(
    engine: Engine, history: History, log: Sequence[Recorded], count: int, place: int
) -> Agreement:
    """The agreement of a log and a history that share `count` steps, after which the log differs at `place`.

    A fork is named after the first step that differs; if the history has no further step, after the whole history.
    """
    names = history.chain[count : count + 2] if count < len(history.steps) else history.chain[-1:]
    return Agreement(
        diverged_at=count,
        place=place,
        version=_before(log, place),
        forks=tuple(f"{engine.id}~{name[-FORK_HASH:]}" for name in names),
        origin=_origin(engine, log),
    )


def _origin(engine: Engine, log: Sequence[Recorded]) -> Origin:
    blocks = [event.block for _, event in log if isinstance(event, BlockAppended)]
    answered = {_signed(b.provider): ELSEWHERE for b in blocks if isinstance(b, AssistantThinking)}
    for entry in engine.view.entries if answered else ():
        if isinstance(entry.source, AssistantThinking) and entry.asked and entry.asked.sent:
            answered[_signed(entry.source.provider)] = entry.asked.sent
    waiting = engine.view.state.waiting
    return Origin(answered=answered, newest=waiting[-1].sent if waiting else ELSEWHERE)


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
    found: Parting,
    answers: Answered | None,
    origin: Origin | None,
) -> list[Event]:
    filler = Filler(view=engine.view, new_id=lambda: BlockId(engine.ids()), now=engine.clock())
    events: list[Event] = []
    answer = _newest_answer(found.missing)
    requests = {} if origin is None else _requests(found.missing, origin)
    for missing in found.missing:
        blocks = filler.blocks(missing)
        made: list[Any] = engine.appended(blocks) if blocks else []
        opening = next((n for n, b in enumerate(blocks) if b.author == "assistant"), len(blocks))
        said = answers if missing is answer else None
        if sent := requests.pop(missing.step.number, ""):
            shown = engine.view.version + len(engine.pending) + len(events) + opening
            said = Answered(shown=shown, sent=sent)
        if said and opening < len(blocks):
            made[opening] = replace(made[opening], answers=said)
        last = made[-1] if made else None
        count = (
            missing.count if missing is not found.missing[-1] else max(missing.count, found.found)
        )
        # Content that only a provider reads gets no mark: it may come again before the next piece.
        if isinstance(last, BlockAppended) and missing.step.piece and count >= found.found:
            made[-1] = replace(last, agrees=history.agrees(count))
        events += made
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


def _requests(missing: Sequence[Missing], origin: Origin) -> dict[int, str]:
    """For the messages with thinking, by index: the hash of the request that they answered."""
    requests = [(each.step.number, origin.request_of(each)) for each in reversed(missing)]
    return {number: sent for number, sent in requests if sent}


def _newest_answer(missing: Sequence[Missing]) -> Missing | None:
    """The first missing step of the newest answer in the history."""
    found, is_behind = None, False
    for each in missing:
        is_said = each.step.message.role == "assistant"
        found = each if is_said and not is_behind else found
        is_behind = is_said
    return found
