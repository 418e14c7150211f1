"""Finds the timeline that a request continues, given that each request contains its whole history.

A timeline's name is made from the client's session and agent, if the client names them, and from the first message of
its history. A history that contains all of a timeline extends it; a history that contains a part of it continues in a
fork; so does one whose beginning was edited, if it brings thinking of a timeline; any other history begins a new
timeline. The store has all data needed for this, so after a restart a request
finds the same timeline.
"""

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import lru_cache
from hashlib import sha256
from threading import Event, Lock
from typing import Any, Final

import attrs

from blocks import AssistantThinking, BlockAppended, FoldlineError
from blocks.formats import Thought
from persistence import EventStore, MemoryStore
from render import Model, Rendered
from timeline import Timeline
from timeline.engine import Hides, History, HistoryReader
from timeline.gateway._admission import AdmittingStore
from timeline.gateway._request import Api, Body, is_same

log = logging.getLogger("foldline.gateway")

NOTED_SECONDS: Final = 5.0
"""How long a request waits at most until the usage of the previous answer is recorded."""
OPEN_MAX: Final = 64
"""Number of conversations that are kept open; the least recently used one is closed first."""
CANDIDATES_MAX: Final = 8
"""Number of timelines of other sessions that a history without a session may continue."""
_LENGTH: Final = 12
_NAMED: Final = re.compile(r"-([0-9a-f]{12})(~[0-9a-f]+)*$")
"""Matches the end of the names that are given here: the hash of the first message, and those of forks."""


def _set() -> Event:
    event = Event()
    event.set()
    return event


@attrs.frozen
class Opening:
    """The settings with which a request's timeline is opened."""

    model: Model
    ttl_seconds: float | None
    """How long the client asks the provider to keep cache entries; None: as in the policy."""


@attrs.define(kw_only=True, eq=False)
class Conversation:
    """One timeline, and how much of its history was read."""

    name: str
    """That of its sender and its first message, whatever fork it is in."""
    timeline: Timeline
    opening: Opening
    reader: HistoryReader
    items: list[bytes] = attrs.field(factory=list[bytes])
    """The messages read so far."""
    lock: Any = attrs.field(factory=Lock)
    """Held by one request at a time."""
    is_noted: Event = attrs.field(factory=_set)
    """Set when the usage of the latest answer is recorded."""
    is_edited: bool = False
    """Whether the latest request's history differs from what its timeline had."""
    answered: Rendered | None = None
    """The newest request that got an answer, which the next request continues."""
    is_closed: bool = False
    hides: Hides = attrs.field(factory=Hides)
    """What is hidden on request in other sessions that began alike; the history with which this one begins may send it
    again."""
    books: Any = None
    """What is known of the tokens of its blocks: see `BillMeter`."""

    def read(self, body: Body) -> History:
        """The history of a request; only its new messages are read."""
        count = len(self.items)
        if len(body.items) < count or not all(map(is_same, self.items, body.items)):
            self.reader, count = HistoryReader(format=self.reader.format), 0
        self.items = []  # in case a message cannot be read
        try:
            self.reader.add(body.history(count))
        except BaseException:
            self.reader = HistoryReader(format=self.reader.format)
            raise
        self.items = body.items
        return self.reader.history()


@attrs.define(kw_only=True, eq=False)
class Lineage:
    """Finds the conversation of a request."""

    store: AdmittingStore
    opener: Callable[[EventStore, str, Opening], Timeline]
    """Opens a timeline in a store, with this name and these settings."""
    unkept: set[str] = attrs.field(factory=set[str], init=False)
    """The names of conversations whose newest request the store could not take."""
    _open: OrderedDict[str, Conversation] = attrs.field(
        factory=OrderedDict[str, Conversation], init=False
    )
    _roots: dict[str, list[str]] | None = attrs.field(default=None, init=False)
    """Names of timelines by the hash of their first message."""
    _lock: Any = attrs.field(factory=Lock, init=False)

    @contextmanager
    def held(self, speaker: str, body: Body, opening: Opening) -> Generator[Conversation]:
        """The conversation of a request, open and locked for this request."""
        while True:
            conversation = self._conversation(f"{speaker}-{_first(body)}", body, opening)
            conversation.is_noted.wait(NOTED_SECONDS)
            with conversation.lock:
                if not conversation.is_closed:  # `_close_old` may have closed it meanwhile
                    yield conversation
                    return

    def _conversation(self, name: str, body: Body, opening: Opening) -> Conversation:
        with self._lock:
            conversation = self._open.get(name)
            if conversation is not None:
                self._open.move_to_end(name)
        if conversation is None:
            reader = HistoryReader(format=body.api.provider)
            timeline = self.opened(name, opening)
            new = Conversation(name=name, timeline=timeline, opening=opening, reader=reader)
            if not new.timeline.version and len(body.items) > 1:
                self._take_over(new, body)
            self._note(name)
            with self._lock:
                conversation = self._open.setdefault(name, new)
                self._close_old()
        return conversation

    def opened(self, name: str, opening: Opening) -> Timeline:
        """The timeline with this name and these settings, opened anew."""
        return self.opener(self.store, name, opening)

    @contextmanager
    def rehearsal(
        self, conversation: Conversation, opening: Opening
    ) -> Generator["tuple[Lineage, Conversation]"]:
        """A copy of a conversation in memory, for a request that is not to be recorded; the caller must hold the
        conversation's lock.

        Raises:
            MisuseError: the oldest events were forgotten, so the timeline cannot be copied.
        """
        conversation.timeline.flush()
        root = _root(conversation.timeline.id)
        names = [info.id for info in self.store.list() if _root(info.id) == root]
        with closing(MemoryStore()) as scratch:
            self.store.copy_to(scratch, names)
            copied = Lineage(store=AdmittingStore(scratch), opener=self.opener)
            timeline = copied.opened(conversation.timeline.id, opening)
            yield copied, attrs.evolve(conversation, timeline=timeline, opening=opening)

    def synced(self, conversation: Conversation, history: History, opening: Opening) -> Timeline:
        """The timeline that agrees with a history; the caller must hold the conversation's lock."""
        if conversation.opening != opening:  # another model
            name = conversation.timeline.id
            conversation.timeline.close()
            conversation.timeline, conversation.opening = self.opened(name, opening), opening
        timeline = conversation.timeline
        hides, conversation.hides = conversation.hides, Hides()
        if not history.is_at(timeline.view.state.agreed) and "~" in timeline.id:
            # Another fork may have continued with this history: start the search at the root.
            if timeline.view.state.withheld:
                hides |= Hides.of(timeline.events())
            timeline = self.opened(_root(timeline.id), opening)
        is_own = timeline is conversation.timeline
        synced = timeline.sync(
            attrs.evolve(history, hides=hides),
            format=conversation.reader.format,
            on_divergence="follow",
            rendered=conversation.answered if is_own else None,
        )
        timeline = synced.timeline
        conversation.answered, conversation.is_edited = None, synced.diverged_at is not None
        if timeline is not conversation.timeline:
            self._note(timeline.id)
        conversation.timeline = timeline
        return timeline

    def forget(self, conversation: Conversation) -> None:
        """Open a conversation anew for its next request, because this one holds what the store has not."""
        with self._lock:
            if self._open.get(conversation.name) is conversation:
                del self._open[conversation.name]
        conversation.is_closed = True

    def close(self) -> None:
        """Close all timelines."""
        with self._lock:
            while self._open:
                _closed(self._open.popitem()[1])

    def _take_over(self, made: Conversation, body: Body) -> None:
        """If a new session begins with a history, use the timeline of another session that has the longest part of
        it."""
        history = made.read(body)
        others = self._names_by_root().get(made.timeline.id[-_LENGTH:], [])
        best, pieces = made.timeline, 0
        for name in reversed(others[-CANDIDATES_MAX:]):
            other = self.opened(name, made.opening)
            if other.view.state.withheld:
                made.hides |= attrs.evolve(Hides.of(other.events()), by_block={})
            agreed = other.view.state.agreed
            if agreed and history.is_at(agreed) and agreed.pieces > pieces:
                best, pieces = other, agreed.pieces
        made.timeline = best if pieces else self._thinking(made, history) or best

    def _thinking(self, made: Conversation, history: History) -> Timeline | None:
        """The timeline of the same sender with thinking of this history, whose beginning the client has then edited: a
        fork of it knows what the thinking is bound to."""
        thoughts = [own.value for s in history.steps for own in s.own if isinstance(own, Thought)]
        sender = made.timeline.id[:-_LENGTH]
        names = [name for conversation in self._names_by_root().values() for name in conversation]
        own = [name for name in names if name.startswith(sender) and name != made.timeline.id]
        for name in reversed(own[-CANDIDATES_MAX:]) if thoughts else ():
            other = self.opened(name, made.opening)
            blocks = (e.block for _, e in other.events() if isinstance(e, BlockAppended))
            if any(isinstance(b, AssistantThinking) and b.provider in thoughts for b in blocks):
                return other
        return None

    def _names_by_root(self) -> dict[str, list[str]]:
        if self._roots is None:
            self._roots = {}
            for info in self.store.list():
                self._note(info.id)
        return self._roots

    def _note(self, name: str) -> None:
        match = _NAMED.search(name)
        if match and self._roots is not None:
            names = self._roots.setdefault(match[1], [])
            if name not in names:
                names.append(name)

    def _close_old(self) -> None:
        for name in [*self._open][: max(0, len(self._open) - OPEN_MAX)]:
            conversation = self._open[name]
            if conversation.lock.acquire(blocking=False):
                del self._open[name]
                _closed(conversation)
                conversation.lock.release()


def _root(name: str) -> str:
    """The name of the timeline from which a fork was made here."""
    return name.partition("~")[0]


def _closed(conversation: Conversation) -> None:
    conversation.is_closed = True
    try:
        conversation.timeline.close()
    except FoldlineError as error:  # an error of the store; decisions that are lost are made again
        log.warning("%s: %s", conversation.timeline.id, error)


def _first(body: Body) -> str:
    """A hash of the first message and of whether there are tools, because side calls have none."""
    has_tools = body.fields.get("tools", b"[]") not in (b"[]", b"null")
    opening = tuple(body.items[: body.leads + 1])
    return _hashed(body.api, opening, body.leads, "tools" if has_tools else "")


@lru_cache(maxsize=OPEN_MAX)
def _hashed(api: Api, opening: tuple[bytes, ...], leads: int, tools: str) -> str:
    """The hash for the first message after `leads` leading ones; cached, because every call of a conversation needs
    it."""
    reader = HistoryReader(format=api.provider)
    reader.add(Body(api, b"", {}, [*opening], leads).history())
    chain = reader.history().chain
    return sha256(f"{chain[min(1, len(chain) - 1)]}{tools}".encode()).hexdigest()[:_LENGTH]
