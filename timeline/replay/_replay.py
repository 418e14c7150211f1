"""Replays a recorded session through the engine, call by call.

For each item of the session the clock is set to its time; before a response the next request is
rendered, priced and dumped; then the recorded blocks are appended.  Recorded compactions are ignored,
and recorded usage, which belongs to other prompts, is only the bill to compare with.  Beside it runs the
reference: the same session with everything sent and good cache marks.

The session is replayed in memory.  Its complete log is written to a database in one commit and read
back, so nothing is left half-written.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from os import PathLike
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final, Self, TypeAlias

import attrs

from blocks import (
    Block,
    BlocksHidden,
    CompactionSkipped,
    Event,
    HideReason,
    RangeCompacted,
    Recorded,
    TimelineId,
    text_of,
)
from persistence import EventStore, MemoryStore, locate_store, open_store
from persistence.sessions import Responded, Session
from render import Policy, Rendered, View, open_view, provider_of, show
from timeline import ModelSummarizer, Options, Timeline
from timeline._arguments import System, Tools
from timeline.billing import (
    CacheRequest,
    CacheStep,
    Flattener,
    PromptCache,
    RecordedBill,
    RecordedCall,
    RunningBill,
    compared_bill,
    recorded_bill,
    unlogged_in,
)
from timeline.engine import TimelineSettings, counted
from timeline.replay._coverage import Coverage, coverage
from timeline.replay._handover import Handover, MemoryMeter
from timeline.replay._options import ReplayOptions
from timeline.replay._output import Dump, DumpRecord, reserve_store
from timeline.replay._recall import Recall
from timeline.replay._summarizers import RecordingSummarizer, SilentSummarizer
from timeline.tokens import counter_for

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of calls done and the number of all calls."""
NOTICES_MAX = 100
TELLING_SHARE: Final = 0.6
"""A telling window as a share of the whole session: it is compacted a few times, and much of it stays."""
WINDOWS: Final = tuple(
    digits * 10**zeros for zeros in range(3, 7) for digits in (8, 10, 15, 20, 30, 40, 60)
)
ROOM_TOKENS_MIN: Final = 6_000
"""The least tokens besides system prompt and tools; with fewer, every call would compact."""
_HIDE_WORDS: Final[Mapping[HideReason, str]] = {
    "expired": "pruned",
    "clipped": "clipped",
    "externalized": "moved",
    "cleared": "moved",
    "dropped": "moved",
}
"""The words in `Point.events` for events that hide blocks."""
_COMPACTED: Final = frozenset({"compacted", "moved"})
"""The words for a compaction in `Point.events`."""
_NEVER: Final = 10**9
NOT_IN_JSON = frozenset({"points", "recorded"})
"""Fields that `--json` leaves out."""
EVERYTHING = Policy(
    name="everything",
    trigger_tokens=_NEVER,
    trigger_ratio=1.0,
    cold_ratio=1.0,
    clip_ratio=1.0,
    turns_intact=_NEVER,
    turns_visible=_NEVER,
    rounds_intact=_NEVER,
    rounds_visible=_NEVER,
    prune_tokens_min=_NEVER,
)
"""A policy that prunes, clips and compacts nothing."""


def replay(
    session: Session,
    options: ReplayOptions | None = None,
    *,
    store: "str | PathLike[str] | None" = None,
    dump: Dump | None = None,
    progress: Progress | None = None,
) -> "ReplayResult":
    """Replay a session; with `store` (a path or URL), save its log there.

    Raises:
        MisuseError: there is no such counter or policy; the window cannot even hold system prompt and
            tools; or the store already has a timeline of this name.
        StoreLockedError: another process has the store open.
    """
    options = options or ReplayOptions()
    return replay_with_log(session, options, store=store, dump=dump, progress=progress).result


def replay_with_log(
    session: Session,
    options: ReplayOptions,
    *,
    store: "str | PathLike[str] | None" = None,
    dump: Dump | None = None,
    progress: Progress | None = None,
) -> "Replayed":
    """Like `replay`, but also returns the log, which a report needs."""
    name = TimelineId(options.name or session.name)
    place = nullcontext() if store is None else reserve_store(locate_store(store), name)
    with place as saved:
        running = Replay.begin(session, options, dump)
        running.run(progress)
        size = _save(running, saved)
        return Replayed(
            result=result_of(running, size),
            log=running.replayed.timeline.events(),
            timeline=running.replayed,
            full=running.full,
            session=session,
        )


@attrs.frozen(kw_only=True)
class Replayed:
    """A finished replay with its log."""

    result: "ReplayResult"
    log: Sequence[Recorded] = attrs.field(repr=False)
    timeline: "ReplayTimeline" = attrs.field(repr=False)
    """The timeline that rendered its requests."""
    full: Sequence[tuple[int, float]] = attrs.field(repr=False)
    """Tokens and dollars of sending everything, for each call."""
    session: Session = attrs.field(repr=False)
    """What was replayed."""


def _save(running: "Replay", saved: EventStore | None) -> int:
    """Write the log to a database, and to `saved`, and compare; returns the bytes of a file with only this log."""
    name = running.replayed.timeline.id
    events = [event for _, event in running.replayed.timeline.events()]
    if saved is not None:
        saved.append(name, events, expected_version=0)
    with TemporaryDirectory(prefix="foldline-") as folder:
        path = Path(folder) / "replay.duckdb"
        with closing(open_store(path)) as store:
            store.append(name, events, expected_version=0)
        with closing(open_store(path)) as store:
            running.compare(store)
        return path.stat().st_size


# The result


@attrs.frozen(kw_only=True)
class ReplayResult:
    """The result for one session and one policy."""

    recorded_bill: RecordedBill = attrs.field(factory=RecordedBill)
    """What the session has cost, and what it would have cost with this policy."""
    session: str
    format: str
    model: str
    """The model whose rules and prices apply."""
    recorded: str = ""
    """The model in the recording; empty if it names none."""
    guess: str = ""
    """Why model, window and prices are guesses; empty if they are known."""
    window: int
    """The most tokens of a prompt."""
    room: int
    """Those of them that are left for what the log has."""
    capacity: int
    """As many of these as the policy fills before it compacts."""
    policy: str
    counter: str
    calls: int
    blocks: int
    events: int
    turns: int
    rounds: int
    tool_calls: int
    tool_results: int
    compactions: int
    """All compactions, whatever they did."""
    folds: int
    """The compactions that wrote a summary."""
    prunes: int
    clips: int
    split_turns: int
    externalized: int
    cleared: int
    dropped: int
    """`externalized`, `cleared` and `dropped` count the blocks that compactions took out of the prompt one by one."""
    tokens_max: int
    tokens_mean: int
    over_window_calls: int
    cannot_fit: int
    """The calls over the window that the engine itself reported."""
    validity_violations: int
    warm_busts: int
    """The calls that lost a cached prefix that was still warm."""
    cache: "CacheTotals"
    cost: "Cost"
    """In dollars."""
    units: "Cost"
    """In tokens of ordinary input, independent of the model's prices."""
    recall: Recall
    rules: float | None
    """The share of the user's texts that the request had word for word up to their 300th character, at the same
    calls."""
    handover: Handover
    ms_per_call: "Milliseconds"
    store_bytes: int
    coverage: Coverage
    reopened_equal: bool
    """Whether the log, read back, renders to the same bytes."""
    notices: tuple[str, ...] = ()
    """What was skipped or repaired in the file and in requests."""
    points: tuple["Point", ...] = attrs.field(default=(), repr=False)

    @property
    def problems(self) -> tuple[str, ...]:
        """The violated invariants; empty unless foldline has a bug."""
        problems = list(self.coverage.problems)
        if self.validity_violations:
            problems.append(f"{self.validity_violations} violations of the provider's rules")
        if not self.reopened_equal:
            problems.append("the log, read back, renders differently")
        return tuple(problems)

    def to_json(self) -> dict[str, Any]:
        """The result in the format of `--json`."""
        data = attrs.asdict(self, filter=lambda attribute, _: attribute.name not in NOT_IN_JSON)
        data["recorded_bill"] = self.recorded_bill.to_json()
        data["cost"] = {name: round(value, 6) for name, value in data["cost"].items()}
        data["units"] = {name: round(value) for name, value in data["units"].items()}
        data["coverage"]["problems"] = list(self.coverage.problems)
        data["notices"] = list(self.notices)
        data["cost_ratio"] = round(self.cost.ratio, 4)
        data["units_ratio"] = round(self.units.ratio, 4)
        return data


@attrs.frozen(kw_only=True)
class Point:
    """One call on the token curve."""

    call: int
    at: float
    tokens: int
    full_tokens: int
    """The tokens of the full history."""
    events: tuple[str, ...] = ()
    """The decisions before it: `compacted`, `moved` (externalized, cleared or dropped), `pruned`,
    `clipped`, `skipped`."""


@attrs.frozen(kw_only=True)
class CacheTotals:
    """Prompt tokens by how they were billed."""

    read: int
    write: int
    uncached: int


@attrs.frozen(kw_only=True)
class Cost:
    """The cost of the prompts of a session; answers are left out, since they cost the same in any case."""

    prompt: float
    summaries: float
    total: float
    full_history: float
    """The cost of sending everything."""

    @property
    def ratio(self) -> float:
        """This policy's cost as a share of sending everything."""
        return self.total / self.full_history if self.full_history else 0.0


@attrs.frozen(kw_only=True)
class Milliseconds:
    """The milliseconds that the engine took per call."""

    p50: float
    p99: float
    max: float


# The replay


@attrs.define(kw_only=True)
class Replay:
    """The replay of one session with one policy."""

    session: Session
    options: ReplayOptions
    replayed: "ReplayTimeline"
    bill: RunningBill
    lasting: PromptCache
    """A cache that loses nothing, as no time passes in it; the recording says what the provider's had lost."""
    steps: list[CacheStep] = attrs.field(factory=list[CacheStep])
    """The requests in that cache."""
    full: Sequence[tuple[int, float]]
    """Tokens and dollars of sending everything, for each call."""
    reference: RunningBill
    """The bill for sending everything."""
    memory: MemoryMeter
    writer: SilentSummarizer | RecordingSummarizer | None = None
    """Writes summaries and records their calls; None for extractive summaries, which cost nothing."""
    dump: Dump | None = None
    points: list[Point] = attrs.field(factory=list[Point])
    milliseconds: list[float] = attrs.field(factory=list[float])
    decisions: list[Event] = attrs.field(factory=list[Event])
    notices: dict[str, str] = attrs.field(factory=dict[str, str])
    """Notices by their meaning, each as worded in the latest request that has it."""
    violations: int = 0
    over_window: int = 0
    cannot_fit: int = 0
    coverage: Coverage = attrs.field(factory=Coverage)
    reopened_equal: bool = True

    @property
    def folds(self) -> list[RangeCompacted]:
        """The compactions so far that wrote a summary."""
        return [event for event in self.decisions if isinstance(event, RangeCompacted)]

    @classmethod
    def begin(cls, session: Session, options: ReplayOptions, dump: Dump | None = None) -> "Replay":
        """Prepare a replay; nothing is replayed yet."""
        writer = _writer(options)
        extra: Options = {"summarizer": writer} if writer else {}
        reference, full = sent_whole(session, options)
        if room := _room(session, options, full):
            extra["window"], capacity = room
            policy = attrs.evolve(options.policy_given(), trigger_tokens=capacity)
            options = attrs.evolve(options, policy=policy)
        replayed = ReplayTimeline.begin(session, options, extra)
        return cls(
            session=session,
            options=options,
            replayed=replayed,
            bill=RunningBill(
                model=reference.model, flattener=reference.flattener, ttl_min=reference.ttl_min
            ),
            lasting=PromptCache.of(reference.model),
            full=full,
            reference=reference,
            memory=MemoryMeter.of(session),
            writer=writer,
            dump=dump,
        )

    def run(self, progress: Progress | None = None) -> None:
        """Replay the whole session.

        Raises:
            MisuseError: the window has no room for a conversation.
        """
        self.replayed.settings.check_room(self.replayed.system, self.replayed.tools)
        for call, (at, rendered, ms) in enumerate(self.replayed.requests(self.session)):
            if call and call % 50 == 0:
                self.check()
            self._sent(at, rendered, ms)
            if progress:
                progress(call + 1, len(self.session.calls))
        self.check()

    def _sent(self, at: float, rendered: Rendered, ms: float) -> None:
        """Price and dump the request of one model call."""
        call = len(self.points)
        full_tokens, _ = self.full[call]
        summaries = tuple(self.writer.calls) if self.writer else ()
        self.bill.summarized(summaries)
        request = self.bill.request(rendered)
        step = self.bill.bill(at, request)
        self.steps.append(self.lasting.send(0.0, _marked(request)))
        if self.writer:
            self.writer.calls.clear()
        if isinstance(self.writer, SilentSummarizer):
            self.writer.last = at, step
        if full_tokens > self.replayed.settings.limit:
            self.memory.measure(call, rendered)
        words = tuple(filter(None, map(_word, rendered.decisions)))
        self.points.append(
            Point(call=call, at=at, tokens=rendered.tokens, full_tokens=full_tokens, events=words)
        )
        self.milliseconds.append(ms)
        self.decisions += rendered.decisions
        self.notices |= {n.rpartition(": ")[0]: n for n in rendered.notices}
        self.violations += len(rendered.violations)
        self.over_window += not rendered.fits
        reason = rendered.cannot_fit
        self.cannot_fit += reason is not None and reason.reason == "over_limit"
        if self.dump:
            self.dump(DumpRecord(call=call, ts=at, rendered=rendered, summaries=summaries, ms=ms))

    def check(self) -> None:
        """Check that every block is accounted for and that the log, read back, gives the same view."""
        timeline = self.replayed.timeline
        timeline.flush()
        now = coverage(timeline.events(), timeline.view)
        problems = dict.fromkeys((*self.coverage.problems, *now.problems))
        self.coverage = attrs.evolve(now, problems=tuple(problems))
        self.compare(self.replayed.store)

    def compare(self, store: EventStore) -> None:
        """Check that this timeline, as saved in `store`, renders to the same bytes."""
        timeline = self.replayed.timeline
        reopened = open_view(store.load_window(timeline.id))
        live, again = self.replayed.shown(timeline.view), self.replayed.shown(reopened)
        self.reopened_equal &= live.content_hash == again.content_hash


def _room(
    session: Session, options: ReplayOptions, full: Sequence[tuple[int, float]]
) -> tuple[int, int] | None:
    """The tokens that the session's own window has beside what the log lacks, at least half of them whatever the
    estimate, and as many of those as the policy fills. None without usage, and for a given window."""
    used = zip((call.usage for call in session.calls), full, strict=True)
    sent = [(usage, tokens) for usage, (tokens, _) in used if usage and usage.input]
    if options.window is not None or not sent:
        return None
    own = TimelineSettings.of(
        {"window": options.limit_for(session), "policy": options.policy_given()}
    )
    unlogged, growth = unlogged_in(sent)
    room, capacity = (
        min(max(round((tokens - unlogged) / growth), tokens // 2), tokens)
        for tokens in (own.limit, own.capacity)
    )
    return room, capacity


def telling_window(session: Session, options: ReplayOptions) -> tuple[int | None, int]:
    """The largest round window in which a replay of the session compacts, and the approximate tokens of the whole
    session. It has no more room than the session's own window, so that it saves more. None: the session is too
    small."""
    _, full = sent_whole(session, options)
    room, _ = _room(session, options, full) or (options.limit_for(session), 0)
    count = counter_for("estimate", options.model_for(session)).count
    parts = (options.system_for(session), *(options.tools_for(session) or ()))
    fixed = sum(count(str(part)) for part in parts)
    whole = fixed + sum(count(text_of(b)) for item in session.items for b in item.blocks)
    least, most = fixed + ROOM_TOKENS_MIN, min(TELLING_SHARE * whole, room)
    tried = (
        window
        for window in reversed(WINDOWS)
        if least <= window <= most and _compacts(session, attrs.evolve(options, window=window))
    )
    return next(tried, None), whole


def _compacts(session: Session, options: ReplayOptions) -> bool:
    """Whether a replay compacts anything; it goes no further than that."""
    requests = ReplayTimeline.begin(session, options, {}).requests(session)
    return any(not _COMPACTED.isdisjoint(map(_word, sent.decisions)) for _, sent, _ in requests)


def _marked(request: CacheRequest) -> CacheRequest:
    """A request with a mark at its end if it is too short for marks: what the log lacks stands before it, too."""
    last = len(request.chain) - 1
    return request if request.marks else attrs.evolve(request, marks=[(last, 1)], whole=last)


def _writer(options: ReplayOptions) -> SilentSummarizer | RecordingSummarizer | None:
    match options.summarizer:
        case "extractive":
            return None
        case "stand-in":
            return SilentSummarizer()
        case "anthropic":
            from anthropic import Anthropic  # takes the key in the environment

            client = Anthropic(base_url=options.base_url or None)
            return RecordingSummarizer(ModelSummarizer(client=client))
        case writer:
            return RecordingSummarizer(writer)


def _word(decision: Event) -> str | None:
    """The word for a decision in `Point.events`."""
    match decision:
        case RangeCompacted():
            return "compacted"
        case CompactionSkipped():
            return "skipped"
        case BlocksHidden(reason=reason):
            return _HIDE_WORDS.get(reason)
        case _:
            return None


# The timelines of a replay


@attrs.define
class Clock:
    """A clock that returns the time it was set to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@attrs.frozen(kw_only=True)
class ReplayTimeline:
    """A timeline in memory, its clock, and the system prompt and tools of its requests."""

    store: EventStore
    timeline: Timeline
    settings: TimelineSettings
    system: System
    tools: Tools
    clock: Clock

    @classmethod
    def begin(cls, session: Session, options: ReplayOptions, extra: Options) -> Self:
        """Create a timeline; `extra` overrides `options`."""
        store, clock, policy = MemoryStore(), Clock(), options.policy_for_replay()
        ttl_seconds = max(policy.ttl_seconds, options.kept_for(session))
        settings: Options = {
            "model": options.model_for(session),
            "policy": attrs.evolve(policy, ttl_seconds=ttl_seconds),
            "counter": options.counter,
            "keep_thinking": options.keep_thinking,
        }
        if options.window is not None or session.window:
            settings["window"] = options.limit_for(session)
        settings |= {"store": store, "clock": clock, "ids": counted(), **extra}
        return cls(
            store=store,
            timeline=Timeline.open(options.name or session.name, **settings),
            settings=TimelineSettings.of(settings),
            system=options.system_for(session),
            tools=options.tools_for(session),
            clock=clock,
        )

    def requests(self, session: Session) -> Iterator[tuple[float, Rendered, float]]:
        """For each call of a session its time, and what `render` returns; what came next is appended after each."""
        for item in session.items:
            if isinstance(item, Responded):
                yield item.at, *self.render(item.at)
            self.append(item.at, item.blocks)

    def render(self, at: float) -> tuple[Rendered, float]:
        """Render the request at a time; returns it with the milliseconds that rendering took."""
        self.clock.now = at
        began = perf_counter()
        rendered = self.timeline.render(system=self.system, tools=self.tools)
        return rendered, (perf_counter() - began) * 1_000

    def append(self, at: float, blocks: Sequence[Block]) -> None:
        self.clock.now = at
        self.timeline.append(*blocks)

    def shown(self, view: View) -> Rendered:
        """The request for a view of this timeline; makes no decisions."""
        return show(view, self.settings.context(self.system, self.tools, self.clock.now))


def whole_timeline(session: Session, options: ReplayOptions) -> ReplayTimeline:
    """A timeline for the same session, without a limit on the prompt."""
    return ReplayTimeline.begin(session, options, {"policy": EVERYTHING, "window": _NEVER})


def sent_whole(
    session: Session, options: ReplayOptions
) -> tuple[RunningBill, list[tuple[int, float]]]:
    """Replay the session with everything sent; returns the bill, and the tokens and dollars of each call."""
    model = options.model_for(session)
    flattener = Flattener(counter_for(options.counter, model), provider_of(model))
    bill = RunningBill(model=model, flattener=flattener, ttl_min=options.kept_for(session))
    calls = list[tuple[int, float]]()
    for at, rendered, _ in whole_timeline(session, options).requests(session):
        spent = bill.dollars
        calls.append((bill.send(at, rendered).total, bill.dollars - spent))
    return bill, calls


# The figures of a finished replay


def result_of(replay: Replay, store_bytes: int) -> ReplayResult:
    session, replayed, bill, measures = replay.session, replay.replayed, replay.bill, replay.memory
    tokens, (events, blocks) = [each.tokens for each in replay.points], _hidden(replay)
    return ReplayResult(
        recorded_bill=_recorded_bill(replay),
        session=session.name,
        format=session.format,
        model=replayed.settings.model.name,
        recorded=session.model,
        guess=replay.options.guess_for(session),
        window=replay.options.limit_for(session),
        room=replayed.settings.limit,
        capacity=replayed.settings.capacity,
        policy=replayed.settings.policy.name,
        counter=replay.options.counter,
        calls=len(replay.points),
        blocks=replay.coverage.blocks,
        events=replayed.timeline.version,
        turns=len({block.turn for item in session.items for block in item.blocks}),
        rounds=len(session.calls),
        tool_calls=replay.coverage.tool_calls,
        tool_results=replay.coverage.tool_results,
        compactions=sum(not _COMPACTED.isdisjoint(point.events) for point in replay.points),
        folds=len(replay.folds),
        prunes=events["expired"],
        clips=events["clipped"],
        externalized=blocks["externalized"],
        cleared=blocks["cleared"],
        dropped=blocks["dropped"],
        split_turns=sum(fold.summary.split_turn_id is not None for fold in replay.folds),
        tokens_max=max(tokens, default=0),
        tokens_mean=round(fmean(tokens)) if tokens else 0,
        over_window_calls=replay.over_window,
        cannot_fit=replay.cannot_fit,
        validity_violations=replay.violations,
        warm_busts=bill.busts,
        cache=CacheTotals(read=bill.read, write=bill.write, uncached=bill.uncached),
        cost=_cost(bill.dollars, bill.summary_dollars, replay.reference.dollars),
        units=_cost(bill.units, bill.summary_units, replay.reference.units),
        recall=measures.recall,
        rules=measures.mean("rules"),
        handover=measures.handover,
        ms_per_call=_milliseconds(replay.milliseconds),
        store_bytes=store_bytes,
        coverage=replay.coverage,
        reopened_equal=replay.reopened_equal,
        notices=_notices(replay),
        points=tuple(replay.points),
    )


def _hidden(replay: Replay) -> tuple[Counter[HideReason], Counter[HideReason]]:
    """By reason, how often something was hidden, and how many blocks."""
    hides = [event for event in replay.decisions if isinstance(event, BlocksHidden)]
    blocks: Counter[HideReason] = Counter(hide.reason for hide in hides for _ in hide.hidden)
    return Counter(hide.reason for hide in hides), blocks


def _recorded_bill(replay: Replay) -> RecordedBill:
    """The recorded bill, and what the same calls would have cost here."""
    calls = replay.session.calls
    bill = recorded_bill([call.spent for call in calls], replay.session.aside)
    sent = [
        RecordedCall(point.at, call.spent, point.full_tokens, step)
        for point, call, step in zip(replay.points, calls, replay.steps, strict=True)
        if call.spent
    ]
    is_kept = replay.options.kept_for(replay.session) > 0
    return compared_bill(bill, sent, replay.bill.summary_dollars, is_kept=is_kept)


def _cost(prompt: float, summaries: float, full: float) -> Cost:
    return Cost(prompt=prompt, summaries=summaries, total=prompt + summaries, full_history=full)


def _milliseconds(values: Sequence[float]) -> Milliseconds:
    ordered = sorted(values) or [0.0]
    last = len(ordered) - 1
    p50, p99 = ordered[last // 2], ordered[round(0.99 * last)]
    return Milliseconds(p50=round(p50, 2), p99=round(p99, 2), max=round(ordered[last], 2))


def _notices(replay: Replay) -> tuple[str, ...]:
    read = (f"line {n.line}: {n.text}" if n.line else n.text for n in replay.session.notices)
    notices = (*read, *replay.notices.values())
    if (left := len(notices) - NOTICES_MAX) > 0:
        return (*notices[:NOTICES_MAX], f"{left:,} more such notices are left out here")
    return notices
