"""Folding events into a view.

A live view and a reopened one are equal by construction: when a compaction is folded, the view is built anew from that
event and the events since its cut, exactly as when a store loads a window.

An event that hides a block puts a mask on its entry, which takes effect where the group is shown (`_view.as_shown`). A
block that is hidden on request is replaced at once, so that no stage can quote it.

The reducer folds events one by one into mutable lists and freezes them into a view at the end. The numbers of the
state (requests that wait for an answer, what may still be used, the calibration of token counts) change by pure
functions below it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

import attrs
import msgspec
from msgspec.structs import replace

from blocks import (
    Answered,
    ArtifactId,
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    Calibration,
    Carried,
    CompactionSkipped,
    Event,
    FoldState,
    Hidden,
    HideReason,
    LogWindow,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    RequestRendered,
    SummaryPrepared,
    SummaryReplaced,
    SummaryRequested,
    TimelineForked,
    TokensCounted,
    ToolResult,
    UsageRecorded,
    Waiting,
    images_of,
    is_sealed,
    stands_for,
)
from render.view._view import (
    NO_ARTIFACT,
    Compaction,
    Entry,
    Group,
    Place,
    Registry,
    RequestRef,
    View,
    is_server_compaction,
    path_in,
    place_of,
    response_of,
    stand_in,
    summary_entry,
    was_paused,
)


def open_view(window: LogWindow) -> View:
    """The view of a window that a store has loaded."""
    view = View() if window.compaction is None else _after(*window.compaction)
    return attrs.evolve(fold(view, window.events), version=window.version)


def commit(view: View, *events: Event) -> View:
    """The view after `events` took the next versions of the log; they are not added to its decisions."""
    for index, event in enumerate(events):
        if isinstance(event, RangeCompacted):
            before = commit(view, *events[:index])
            version = before.version + 1
            events_since_cut = [
                recorded for recorded in before.events_since_cut if recorded[0] >= event.cut
            ]
            after = fold(_after(version, event), events_since_cut)
            after = attrs.evolve(after, decisions=before.decisions, shared=before.shared)
            return commit(after, *events[index + 1 :])
    return fold(view, enumerate(events, view.version + 1))


def decide(view: View, event: Event) -> View:
    """The view after `event`, which is also added to the decisions that the caller must commit."""
    return attrs.evolve(commit(view, event), decisions=(*view.decisions, event))


def _after(version: int, event: Event) -> View:
    """The view right after a compaction, before the events since its cut are folded."""
    if not isinstance(event, RangeCompacted):  # head lost by the store: show the rest
        return View(version=version)
    compaction = Compaction(version=version, event=event, head=head_of(event, version))
    return View(
        version=version,
        compaction=compaction,
        state=event.state,
        registry=Registry(naming=compaction.naming),
        turn=event.state.turn,
        rewritten=version,
        compacted=version,
    )


# The head of a compaction.


def head_of(event: RangeCompacted, version: int) -> Group:
    """The head group of a compaction: standing instructions, what else it carried (the user's words), its summary. What
    changes least comes first, so that it stays in the provider's cache."""
    carried = [_carried_entry(item, event.at) for item in event.carried]
    standing = [entry for entry in carried if entry.standing]
    others = [entry for entry in carried if not entry.standing]
    return Group(entries=(*standing, *others, summary_entry(event, version)))


def _carried_entry(item: Carried, at: float) -> Entry:
    entry = Entry(
        version=item.version,
        at=at,
        block=item.block,
        path=path_in(item.block, item.ordinal, item.version),
        place=Place.CARRIED,
        replacement=item.clipped or None,
        state=FoldState(),
    )
    hidden = Hidden(block=item.block.id, replacement=item.clipped)
    return _masked(entry, Mask(hidden, "requested")) if item.withheld else entry


# Hidden blocks.


LADDER: Final[frozenset[HideReason]] = frozenset({"externalized", "cleared", "dropped"})
"""The reasons with which rungs of a compaction hide blocks."""


class Mask(msgspec.Struct, frozen=True):
    """The text that is shown instead of a block, and the reason."""

    hidden: Hidden
    reason: HideReason


Replacements: TypeAlias = Mapping[BlockId, Mask | None]
"""The mask by block id; None: the block itself is shown."""


def rehide(group: Group, replacements: Replacements) -> Group:
    """The group with these blocks hidden, or shown if the mask is None; the same object if nothing changes."""
    ids = group.memo("ids", lambda: frozenset(entry.block.id for entry in group.entries))
    if ids.isdisjoint(replacements):
        return group
    return rehide_at(group, range(len(group.entries)), replacements)


def rehide_at(group: Group, places: Iterable[int], replacements: Replacements) -> Group:
    """As `rehide`, for known indices of its entries."""
    entries = list(group.entries)
    for place in places:
        entries[place] = _rehide_entry(entries[place], replacements)
    if all(new is old for new, old in zip(entries, group.entries, strict=True)):
        return group
    return attrs.evolve(group, entries=tuple(entries))


def _rehide_entry(entry: Entry, replacements: Replacements) -> Entry:
    if entry.block.id not in replacements:
        return entry
    mask = replacements[entry.block.id]
    new = _masked(entry, mask) if mask is not None else _unmasked(entry)
    return entry if _mask_of(new) == _mask_of(entry) else new


def _mask_of(entry: Entry) -> tuple[object, ...]:
    shown = (entry.block, entry.original, entry.replacement, entry.ends)
    return *shown, entry.hidden_as, entry.artifact, entry.dropped


def _unmasked(entry: Entry) -> Entry:
    return replace(
        entry,
        block=entry.source,
        original=None,
        replacement=None,
        hidden_as=None,
        artifact=NO_ARTIFACT,
        dropped=None,
        ends=(0, 0),
    )


def _masked(entry: Entry, mask: Mask) -> Entry:
    """The entry with its replacement.

    A block hidden on request leaves the view completely, even if a later event also hides it, so stages can
    quote only its replacement.
    """
    text, is_requested = mask.hidden.replacement, mask.reason == "requested"
    return replace(
        entry,
        block=stand_in(entry.source, text) if is_requested else entry.block,
        original=entry.source if is_requested else entry.original,
        replacement=text,
        hidden_as=mask.reason,
        artifact=NO_ARTIFACT if is_requested else mask.hidden.artifact,
        dropped=mask.hidden.dropped,
        ends=(0, 0) if is_requested else (mask.hidden.head, mask.hidden.tail),
    )


def unbind(group: Group, first: int) -> Group:
    """The group after a change of how the block of version `first` is shown, which later thinking does not match."""
    if not any(_is_behind(entry, first) for entry in group.entries):
        return group
    entries = (
        replace(entry, unbound=True) if _is_behind(entry, first) else entry
        for entry in group.entries
    )
    return attrs.evolve(group, entries=tuple(entries))


def _is_behind(entry: Entry, first: int) -> bool:
    is_thinking = isinstance(entry.block, AssistantThinking)
    return is_thinking and entry.version > first and not entry.unbound


# The reducer.


PREPARED_MAX = 4


def fold(view: View, events: Iterable[Recorded]) -> View:
    """The view after `events`, none of which is a new compaction."""
    building = _Reducer(view)
    for version, event in events:
        building.add(version, event)
    return building.freeze()


class _Reducer:
    """Folds events one by one; `freeze` gives the view."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._version = view.version
        self._groups = list(view.groups)
        self._state = view.state
        self._compaction = view.compaction
        self._turn, self._turn_start = view.turn, view.turn_start
        self._owned: Registry | None = None
        self._bound = list(view.bound)
        self._pictured, self._thought = view.pictured, view.thought
        self._prepared, self._summarised = view.prepared, view.summarised
        self._rewritten, self._compacted = view.rewritten, view.compacted
        self._tape: list[Recorded] = []
        self._joined: list[Entry] = []  # entries that are not yet added to the last group

    def add(self, version: int, event: Event) -> None:
        """Fold one event."""
        self._version = max(self._version, version)
        self._tape.append((version, event))
        match event:
            case BlockAppended():
                self._append(version, event)
            case BlocksHidden():
                if event.reason == "requested":
                    self._withhold({h.block: h.artifact for h in event.hidden})
                self._hide({h.block: Mask(h, event.reason) for h in event.hidden}, version)
                if event.reason in LADDER and not event.redacted:
                    self._compacted = max(self._compacted, version)
            case BlocksRestored():
                withheld = self._state.withheld
                self._evolve(withheld={b: withheld[b] for b in withheld if b not in event.blocks})
                self._hide(dict.fromkeys(event.blocks), version)
            case RequestRendered():
                self._rendered(version, event)
            case UsageRecorded() | TokensCounted():
                self._calibrate(event)
            case CompactionSkipped():
                self._skipped(version, event)
            case SummaryReplaced():
                self._replace_summary(version, event)
            case SummaryPrepared() | SummaryRequested():
                self._summarise(event)
            case RangeExpanded() | TimelineForked():
                self._branch(version, event)
            case _:  # compactions start a new view (see `View`); other events change nothing shown
                pass

    def freeze(self) -> View:
        """The view after all added events."""
        self._close()
        if self._owned:
            self._owned.release(self._groups[-1].last if self._groups else 0)
        return View(
            version=self._version,
            compaction=self._compaction,
            groups=tuple(self._groups),
            state=self._state,
            turn=self._turn,
            turn_start=self._turn_start,
            registry=self._owned or self._view.registry,
            bound=tuple(self._bound),
            pictured=self._pictured,
            thought=self._thought,
            prepared=self._prepared,
            rewritten=self._rewritten,
            summarised=self._summarised,
            compacted=self._compacted,
            events_since_cut=self._view.events_since_cut + tuple(self._tape),
            decisions=self._view.decisions,
            group_memo=self._view.group_memo,
            shared=self._view.shared,
        )

    # Blocks.

    def _append(self, version: int, event: BlockAppended) -> None:
        block = event.block
        before, registry = self._state, self._registry
        # A late result belongs to the turn of its call, but does not start that turn again.
        if block.turn != self._turn and not isinstance(block, ToolResult):
            self._turn, self._turn_start = block.turn, version
            self._evolve(turns=before.turns + 1, turn=block.turn)
        self._turn_start = self._turn_start or version
        place = place_of(block)
        if place is Place.RESPONSE and not registry.joins(self._current, block):
            self._answer(block, event.answers)
        if is_server_compaction(block):
            self._summarised = version
        place, pair = registry.pair(version, block, place, self._current.sealed)
        entry = Entry(
            version=version,
            at=event.at,
            block=stands_for(block),
            opened=block if is_sealed(block) else None,
            path=registry.naming.path(block, version),
            place=place,
            round=self._current.round,
            pair=pair,
            unbound=self._current.stale and place is Place.RESPONSE,
            request=self._current.request if place is Place.RESPONSE else None,
            state=before,
        )
        registry.add(entry)
        if isinstance(block, AssistantThinking):
            self._bound.append(version)
            self._thought = version
        if images_of(block):
            self._pictured = version
        self._joined.append(entry)
        agreed = {"agreed": event.agrees, "agreed_at": version} if event.agrees else {}
        self._evolve(blocks=self._state.blocks + 1, **agreed)

    @property
    def _current(self) -> Group:
        if not self._groups:
            self._groups.append(Group(entries=()))
        return self._groups[-1]

    @property
    def _registry(self) -> Registry:
        """The old view's registry, or a new one if another view already continued with it."""
        if self._owned is None:
            self._owned = self._view.own_registry()
        return self._owned

    def _answer(self, block: Block, answers: Answered | None) -> None:
        """Begin a response: after the blocks that its request showed, and before later ones."""
        self._close()
        request, waiting = answered_of(answers, self._state)
        newest = next((group.last for group in reversed(self._groups) if group.entries), 0)
        # As far as a log without hashes of requests can tell: whether anything came or changed after its request.
        stale = not request.sent and 0 < request.shown < max(newest, self._rewritten)
        before = self._groups.pop()
        index = before.meanwhile(request)
        if was_paused(before.entries[:index]) and not self._registry.is_calling:
            entries, rounds = before.entries, before.round  # the paused turn goes on
        else:
            self._evolve(rounds=self._state.rounds + 1)
            entries, rounds = self._begin_round(before, index), self._state.rounds
        own, response = RequestRef(sent=request.sent, start=self._version), response_of(block)
        self._groups.append(
            Group(entries=entries, round=rounds, response=response, request=own, stale=stale)
        )
        self._evolve(waiting=waiting)

    def _begin_round(self, before: Group, index: int) -> tuple[Entry, ...]:
        """Begin a new round; its first entries are those from `index` on of the previous round."""
        since = tuple(replace(e, round=self._state.rounds) for e in before.entries[index:])
        if since:
            before = attrs.evolve(before, entries=before.entries[:index])
        self._groups += [before] if before.entries else []
        self._registry.begin_group()
        return since

    def _close(self) -> None:
        if self._joined:
            entries = self._groups[-1].entries + tuple(self._joined)
            self._groups[-1] = attrs.evolve(self._groups[-1], entries=entries)
            self._joined = []

    # Other events.

    def _hide(self, replacements: Replacements, version: int) -> None:
        self._close()
        blocks = self._registry.blocks
        targets = [version for block in replacements for version in blocks.get(block, ())]
        changed: list[int] = []
        for index, versions in self._by_group(targets).items():
            group = self._groups[index]
            places = [group.place_of(version) for version in versions]
            new = self._groups[index] = rehide_at(group, places, replacements)
            pairs = zip(versions, places, strict=True)
            changed += [v for v, place in pairs if new.entries[place] is not group.entries[place]]
        if self._compaction:
            head = rehide(self._compaction.head, replacements)
            changed += [0] if head is not self._compaction.head else []
            self._compaction = attrs.evolve(self._compaction, head=head)
        if changed:
            self._rewrite(version, min(changed))

    def _withhold(self, hidden: Mapping[BlockId, ArtifactId]) -> None:
        """Record blocks that may not be shown, and discard the prepared summaries whose model saw one of them behind the
        range; for blocks of the range itself, the key differs."""
        self._evolve(withheld={**self._state.withheld, **hidden})
        if self._prepared:
            events = (*self._view.events_since_cut, *self._tape)
            event_versions = {event.id: version for version, event in events}
            blocks = self._registry.blocks
            versions = [version for block in hidden for version in blocks.get(block, ())]
            self._prepared = tuple(
                event
                for event in self._prepared
                if not any(event.cut <= v < event_versions.get(event.id, 0) for v in versions)
            )

    def _rewrite(self, version: int, first: int) -> None:
        """Record that the block of version `first` is shown differently from now on."""
        self._close()
        bound = bisect_right(self._bound, first)
        for index in self._by_group(self._bound[bound:]):
            self._groups[index] = unbind(self._groups[index], first)
        del self._bound[bound:]
        self._rewritten = version

    def _by_group(self, versions: Iterable[int]) -> dict[int, list[int]]:
        """Versions of blocks by the index of their group."""
        indexes: dict[int, list[int]] = {}
        for version in versions:
            index = bisect_left(self._groups, version, key=attrgetter("last"))
            indexes.setdefault(index, []).append(version)
        return indexes

    def _rendered(self, version: int, event: RequestRendered) -> None:
        """Close the newest group that the request showed."""
        self._close()
        shown = event.shown or version
        self._state = after_request(self._state, event, shown)
        for index in reversed(range(len(self._groups))):
            group = self._groups[index]
            if group.entries and group.first <= shown:
                if not group.sealed:
                    self._groups[index] = group.sealed_at(shown)
                return

    def _skipped(self, version: int, event: CompactionSkipped) -> None:
        """Count a failure for the circuit breaker, unless a compaction succeeded since."""
        if self._compaction is None or version > self._compaction.version:
            self._evolve(failures=self._state.failures + 1, failed_tokens=event.tokens)

    def _calibrate(self, event: UsageRecorded | TokensCounted) -> None:
        if isinstance(event, UsageRecorded) and event.response:
            self._registry.responses[event.response] = self._version
        self._state = after_usage(self._state, event)

    def _summarise(self, event: SummaryPrepared | SummaryRequested) -> None:
        if isinstance(event, SummaryRequested):
            self._evolve(summaries=self._state.summaries + event.calls)
        else:
            self._prepared = (*self._prepared, event)[-PREPARED_MAX:]

    def _branch(self, version: int, event: RangeExpanded | TimelineForked) -> None:
        """A compaction was undone, or the log before this event is a copy."""
        if isinstance(event, TimelineForked):
            self._evolve(parent=event.parent)
        else:
            self._rewrite(version, 0)

    def _replace_summary(self, version: int, event: SummaryReplaced) -> None:
        if self._compaction and self._compaction.version == event.compaction:
            self._compaction = self._compaction.rewritten(event)
            self._rewrite(version, 0)

    def _evolve(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)


# The numbers of the state.


REMEMBERED_MAX: Final = 32
"""Number of artifacts for which the fold remembers when they came back: more than any cool-down needs."""
ANSWER_SECONDS: Final = 3600.0
"""Seconds after which a request without an answer is assumed to get none."""
WAITING_MAX: Final = 16


def after_request(before: FoldState, event: RequestRendered, shown: int) -> FoldState:
    """The state after a request of the view at version `shown` was handed out."""
    tail = event.cache_points[-1] if event.cache_points else 0
    return replace(
        before,
        touched_at=event.at,
        ttl=event.ttl,
        prefix_hash=event.prefix_hash,
        tail=tail,
        tail_before=before.tail if tail != before.tail else before.tail_before,
        tokens=event.tokens,
        shown=shown,
        waiting=now_waiting(before.waiting, event, shown),
        rehydrated=_return_turns(before, event.rehydrated),
    )


def _return_turns(state: FoldState, artifacts: Sequence[ArtifactId]) -> dict[ArtifactId, int]:
    """When each artifact last came back, including these in the current turn; only the newest are kept."""
    latest = state.rehydrated
    if not artifacts:
        return latest
    earlier = {artifact: turn for artifact, turn in latest.items() if artifact not in artifacts}
    now = {**earlier, **dict.fromkeys(artifacts, state.turns)}
    return dict(list(now.items())[-REMEMBERED_MAX:])


def now_waiting(
    waiting: Sequence[Waiting], event: RequestRendered, shown: int
) -> tuple[Waiting, ...]:
    """The requests without an answer, after another one was sent; a request that is sent twice counts once."""
    if not event.sent:
        return tuple(waiting)
    new = Waiting(shown=shown, sent=event.sent, at=event.at)
    still = [w for w in waiting if w.sent != new.sent and new.at - w.at <= ANSWER_SECONDS]
    if len(still) == WAITING_MAX:
        still[:2] = [replace(still[1], sent=Answered.UNKNOWN)]
    return (*still, new)


def answered_of(answers: Answered | None, state: FoldState) -> tuple[Answered, tuple[Waiting, ...]]:
    """The request that a response answers, and those still waiting for an answer.

    It is the request that the response names, or else the newest. If several wait, that is a guess, and any
    of the remaining ones may be the real one; their hashes are then unknown.
    """
    waiting = state.waiting
    if answers is not None:
        return answers, tuple(each for each in waiting if each.sent != answers.sent)
    if not waiting:
        return Answered(shown=state.shown, sent=""), ()
    newest, left = waiting[-1], waiting[:-1]
    sent = Answered.UNKNOWN if left else newest.sent
    guessed = (replace(each, sent=Answered.UNKNOWN) for each in left)
    return Answered(shown=newest.shown, sent=sent), tuple(guessed)


def after_usage(before: FoldState, event: UsageRecorded | TokensCounted) -> FoldState:
    """The calibration of a model, corrected by the real size of a request."""
    calibrations = before.calibrations
    new = calibrated(calibrations.get(event.model, Calibration()), event)
    if isinstance(event, TokensCounted) and event.limit:
        new = replace(new, limit=event.limit)
    return replace(
        before,
        calibrations={**calibrations, event.model: new} if new != Calibration() else calibrations,
    )


# The calibration of token counts with those that the provider reports.
#
#     real = prefix + ratio * estimated
#
# Two consecutive requests differ by what was appended, and the ratio is learnt from this difference: the
# prefix (content that foldline does not count, such as the provider's own additions) cancels out. The prefix
# is then set so that the newest sample is exact. The next request is the last one plus a little more, so its
# estimate is nearly exact.


FADING: Final = 0.98
"""Factor on the weight of older samples when a new one arrives."""
PRIOR_TOKENS: Final = 2000
"""Tokens of growth that weigh as much as the initial ratio of 1."""
GROWTH_MAX: Final = 3.0
"""Largest plausible number of real tokens per estimated token; more means that the hidden prefix has changed."""


def calibrated(old: Calibration, usage: UsageRecorded | TokensCounted) -> Calibration:
    """The calibration after one more request was measured; unchanged if the sample is not usable."""
    if usage.estimated <= 0 or usage.input <= 0:
        return old
    expected = old.prefix + old.ratio * usage.estimated
    estimated, real = old.estimated_growth, old.real_growth
    grown = usage.estimated - old.estimated_last
    if old.samples and grown > 0:
        explained = min(max(usage.input - old.real_last, 0), GROWTH_MAX * grown)
        estimated, real = FADING * estimated + grown, FADING * real + explained
    ratio = (real + PRIOR_TOKENS) / (estimated + PRIOR_TOKENS)
    return Calibration(
        ratio=ratio,
        prefix=usage.input - ratio * usage.estimated,
        samples=old.samples + 1,
        error_last=(expected - usage.input) / usage.input,
        estimated_last=usage.estimated,
        real_last=usage.input,
        estimated_growth=estimated,
        real_growth=real,
        limit=old.limit,
    )
