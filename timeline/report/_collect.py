"""Collects what a report shows: folds the log again, event by event, and records the state on the way.

All decisions are taken from the log.  Each request is rendered again from its view; the recorded hash tells
whether the result is the same to the byte.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Self

import attrs
import msgspec
from msgspec.structs import replace

from blocks import (
    ENCRYPTED,
    Block,
    BlockAppended,
    BlocksHidden,
    BlocksRestored,
    CallId,
    CompactionSkipped,
    Event,
    EventId,
    Naming,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    RequestRendered,
    SummaryPrepared,
    SummaryReplaced,
    ToolCall,
    ToolResult,
    UsageRecorded,
    UserPrompt,
    is_sealed,
    tag_of,
    text_of,
)
from render import (
    Account,
    Context,
    Group,
    Model,
    Rendered,
    View,
    commit,
    fold,
    format_summary,
    provider_of,
    show,
)
from timeline._arguments import System, Tools
from timeline.billing import (
    CacheStep,
    Flattener,
    PaidBlock,
    RunningBill,
    call_of,
    timeline_bill,
    usage_price,
)
from timeline.engine import TimelineSettings, taken_back, without_hidden
from timeline.replay import CARRIED, STATES, VISIBLE, Lives
from timeline.report._description import beginning
from timeline.report._money import ANSWERS, Money, belonging, distinct, timeline_figures
from timeline.report._requests import Requests
from timeline.report._savings import Savings
from timeline.tokens import counter_for

NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
TEXT_MAX: Final = 200_000
"""The most characters of one block's text in a report."""


@attrs.frozen(kw_only=True)
class Prompting:
    """The settings, system prompt and tools with which the requests of a log are rendered."""

    settings: TimelineSettings
    system: System = None
    tools: Tools = None
    counter: str = "model"
    """The token counter for the simulated cache."""

    def context(self, at: float) -> Context:
        """The context for a render at a time, in seconds since the epoch."""
        return self.settings.context(self.system, self.tools, at)


@attrs.define
class Collector:
    """Collects the data of one log; `add` takes its events in order."""

    prompting: Prompting
    full: list[tuple[int, float]] = attrs.field(factory=list[tuple[int, float]], kw_only=True)
    """Tokens and dollars of sending everything, for the first calls, if already known."""
    recorded: Sequence[UsageRecorded | None] = attrs.field(default=(), kw_only=True)
    """Of a replay: the usage of each call in the recording."""
    calls: "list[CallFigures]" = attrs.field(factory=list["CallFigures"], init=False)
    blocks: "list[_ReportRow]" = attrs.field(factory=list["_ReportRow"], init=False)
    summaries: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]], init=False)
    usage: list[UsageRecorded] = attrs.field(factory=list[UsageRecorded], init=False)
    """All that was reported, of calls outside the conversation, too."""
    savings: Savings = attrs.field(factory=Savings, init=False)
    """Of the calls that went through a gateway."""
    requests: Requests = attrs.field(factory=Requests, init=False)
    lives: Lives = attrs.field(factory=Lives, init=False)
    version: int = attrs.field(default=0, init=False)
    _view: View = attrs.field(factory=View, init=False)
    _views: dict[int, View] = attrs.field(factory=dict[int, View], init=False)
    """The views since the latest request, by version."""
    _whole: "Whole" = attrs.field(init=False)
    _bill: RunningBill = attrs.field(init=False)
    _everything: "Everything" = attrs.field(init=False)
    _naming: Naming = attrs.field(factory=Naming, init=False)
    _decided: list[str] = attrs.field(factory=list[str], init=False)
    _tool_calls: dict[CallId, ToolCall] = attrs.field(factory=dict[CallId, ToolCall], init=False)
    _awaited: bool = attrs.field(default=False, init=False)
    """Whether a rendered request has no answer yet."""
    _answering: str | None = attrs.field(default=None, init=False)
    """The response that the newest block belongs to; None if it belongs to none."""

    def __attrs_post_init__(self) -> None:
        settings = self.prompting.settings
        model = settings.model
        flattener = Flattener(counter_for(self.prompting.counter, model), settings.provider)
        self._bill = RunningBill(model=model, flattener=flattener)
        self._everything = Everything(model)
        self._whole = Whole(self.prompting.context(0.0))

    def read(self, log: Iterable[Recorded]) -> Self:
        for version, event in log:
            self.add(version, event)
        return self

    def add(self, version: int, event: Event) -> None:
        if not self.version and version > 1:  # the beginning of the log was forgotten
            self._view = View(version=version - 1)
        match event:
            case RequestRendered():
                self._called(event.at, self._views.get(event.shown, self._view), event)
                self._awaited = True
            case BlockAppended():
                self._appended(version, event)
            case RangeCompacted() | SummaryReplaced():
                start, cut = event.summary.start, event.summary.cut
                count = sum(start <= row.version < cut for row in self.blocks)
                row = summary_row(version, event, count)
                self.summaries.append(row | {"call": len(self.calls)})
            case UsageRecorded():
                self.usage.append(event)
                self.savings += Savings.of(event)
                self._charged(event)
            case _:
                pass
        if word := word_of(event):
            self._decided.append(word)
        self.lives.add(version, event)
        self._view = _folded(self._view, version, event)
        self._views[version] = self._view
        self.version = version

    def _appended(self, version: int, event: BlockAppended) -> None:
        block = event.block
        response = block.response if isinstance(block, ANSWERS) else None
        if response is not None and response != self._answering:
            if not self._awaited:
                self._called(event.at, self._view, None)
            self._awaited = False
        self._answering = response
        path = self._naming.path(block, version)
        self._whole.add(version, event)
        part, file = belonging(block, call_of(block, self._tool_calls))
        self.blocks.append(_ReportRow(version, event.at, block, path, len(self.calls), part, file))

    def _called(self, at: float, view: View, event: RequestRendered | None) -> None:
        context = self.prompting.context(at)
        rendered = show(view, context)
        before = self._bill.dollars
        step = self._bill.send(at, rendered)
        number, account = len(self.calls), rendered.account
        is_exact = event is not None and rendered.content_hash == event.content_hash
        tokens = account.total
        if event and not is_exact and event.tokens:
            tokens = round(event.tokens * account.ratio + account.prefix)
        full = self._full(number, at, rendered)
        self.calls.append(
            CallFigures(
                at=at,
                shown=event.shown if event else view.version,
                tokens=tokens,
                full=full[0],
                account=account,
                bust=step.bust,
                simulated=self._in_the_cache(at, step),
                paid=self._bill.dollars - before,
                full_paid=full[1],
                is_rendered=event is not None,
                is_exact=is_exact,
                decisions=tuple(self._decided),
            )
        )
        self._decided.clear()
        self._views.clear()
        points = [point.version for point in rendered.cache_points]
        self._note_contents(view, context)
        parts = rendered.system, rendered.tools, rendered.messages, rendered.cache_key
        self.requests.add(rendered.provider.request(*parts), points)

    def _in_the_cache(self, at: float, step: CacheStep) -> UsageRecorded:
        """What a provider would report of a simulated call."""
        model = self.prompting.settings.model
        times = provider_of(model).rates(model, step.total).writes
        return UsageRecorded(
            id=EventId(""),
            at=at,
            uncached=step.uncached,
            cache_read=step.read,
            cache_write=step.write,
            cache_write_long=step.written.get(max(times, default=0), 0),
        )

    def _note_contents(self, view: View, context: Context) -> None:
        """Note which block each content shows, for groups that are new or changed."""
        shown = context.encoder.shown

        def note(group: Group) -> None:
            piece = shown(group)
            for content, spot in zip(piece.contents, piece.spots, strict=False):
                self.requests.shows(content, spot.version)

        if view.compaction:
            note(view.compaction.head)
        view.group_memo.each("report", view.groups, note)

    def _full(self, number: int, at: float, rendered: Rendered) -> tuple[int, float]:
        if number < len(self.full):
            return self.full[number]
        account = rendered.account
        estimated = account.system + account.tools + self._whole.tokens()
        tokens = round(estimated * account.ratio + account.prefix)
        return tokens, self._everything.send(at, tokens)

    def _charged(self, event: UsageRecorded) -> None:
        """Replace the simulated cost of the latest call by the reported usage.

        If the log has no request, the report also gives the size of what was sent. The bill of a gateway says what the
        call cost, its answer included, and what sending everything would have cost.
        """
        if not event.input or event.aside or not self.calls:
            return
        model, ttl = self.prompting.settings.model, int(self.prompting.context(0.0).ttl_seconds)
        if ttl not in provider_of(model).rates(model, event.input).writes:
            ttl = 0  # the model's shortest time
        last, paid = self.calls[-1], usage_price(replace(event, output=0), model, ttl=ttl)
        tokens = last.tokens if last.is_rendered else event.input
        call = attrs.evolve(last, usage=event, paid=paid, tokens=tokens)
        bill = event.bill
        if bill is not None and bill.paid is not None:
            full, size = bill.full, bill.full_tokens
            if not bill.rewritten:  # everything was sent
                full, size = bill.paid, event.input
            call = attrs.evolve(call, paid=bill.paid, full_paid=full, full=size)
        self.calls[-1] = call

    def overview(self) -> dict[str, Any]:
        """What a page needs first: numbers and a few names, no texts."""
        settings, tokens = self.prompting.settings, self._whole.by_version()
        kinds, kind = distinct(tag_of(row.block) for row in self.blocks)
        turns, turn = distinct(str(row.block.turn) for row in self.blocks)
        index = {row.version: at for at, row in enumerate(self.blocks)}
        changes = self.lives.changes
        states = list(dict.fromkeys([VISIBLE, *(change.state for change in changes)]))
        money, prompts = self.money(), sum(call.paid for call in self.calls)
        figures = timeline_figures(money, timeline_bill(self.usage), self.savings, prompts)
        pieces = [money.piece(each) for each in self._pieces(tokens)]
        times = [call.at for call in self.calls]
        return {
            "version": self.version,
            "prompt": self.prompt(),
            "figures": [attrs.asdict(each) for each in figures],
            "priced": money.source,
            "model": settings.model.name,
            "policy": settings.policy.name,
            "window": settings.limit,
            "calls": columns(self.calls) | money.by_call(times, pieces),
            "kinds": kinds,
            "turns": turns,
            "states": states,
            "blocks": {
                "version": [row.version for row in self.blocks],
                "at": [row.at for row in self.blocks],
                "kind": kind,
                "turn": turn,
                "call": [row.call for row in self.blocks],
                "tokens": [tokens.get(row.version, 0) for row in self.blocks],
            },
            "spent": money.by_block(pieces),
            "changes": {
                "event": [change.event for change in changes],
                "block": [index[change.block] for change in changes],
                "state": [states.index(change.state) for change in changes],
            },
            "requests": {
                "kept": self.requests.kept,
                "added": self.requests.added,
                "marks": self.requests.marks,
            },
            "pieces": {"slot": self.requests.slots, "version": self.requests.versions},
            "summaries": [{k: v for k, v in row.items() if k != "text"} for row in self.summaries],
        }

    def money(self) -> Money:
        """What the calls cost."""
        return Money.of(
            self.recorded,
            [call.usage for call in self.calls],
            [call.simulated for call in self.calls],
            self.prompting.settings.model,
        )

    def prompt(self) -> str:
        """The beginning of the first prompt; empty if there is none."""
        prompts = (row.block for row in self.blocks if isinstance(row.block, UserPrompt))
        return next(map(beginning, prompts), "")

    def _pieces(self, tokens: Mapping[int, int]) -> Iterator[PaidBlock]:
        """The blocks, with calls numbered among all; `tokens`: of each, by version."""
        shown, ends = [call.shown for call in self.calls], dict[int, int]()
        for change in self.lives.changes:
            if change.state not in {VISIBLE, CARRIED}:
                ends.setdefault(change.block, bisect_left(shown, change.event))
        # of a log that was not made here, only its agent may know
        last = len(self.calls) if any(call.is_rendered for call in self.calls) else None
        for row in self.blocks:
            yield PaidBlock(
                part=row.part,
                file=row.file,
                tokens=tokens.get(row.version, 0),
                born=row.call - 1 if isinstance(row.block, ANSWERS) else -1,
                first=row.call,
                end=ends.get(row.version, last),
            )

    def contents(self, since: Mapping[str, int] = NOTHING) -> dict[str, Any]:
        """The texts, which a page loads later: all, or those after the first `since` of `blocks`, `changes`,
        `pieces` and `summaries`."""
        blocks = self.blocks[since.get("blocks", 0) :]
        counts = since.get("changes", 0)
        return {
            "paths": [row.path for row in blocks],
            "texts": [text_of(row.block)[:TEXT_MAX] for row in blocks],
            "names": [str(getattr(row.block, "name", "")) for row in blocks],
            "calls": [str(getattr(row.block, "call_id", "")) for row in blocks],
            "stands": {
                str(at): [change.replacement, change.artifact]
                for at, change in enumerate(self.lives.changes[counts:], counts)
                if change.replacement or change.artifact
            },
            "changes": len(self.lives.changes),
            "pieces": self.requests.texts[since.get("pieces", 0) :],
            "summaries": [row["text"] for row in self.summaries[since.get("summaries", 0) :]],
        }


@attrs.frozen
class _ReportRow:
    """One block in a report."""

    version: int
    at: float
    block: Block
    path: str
    call: int
    """The number of requests before this block."""
    part: str
    file: str
    """What it belongs to: see `belonging`."""


def _folded(view: View, version: int, event: Event) -> View:
    if isinstance(event, RangeCompacted):
        return commit(attrs.evolve(view, version=version - 1), event)
    return fold(view, [(version, event)])


# The calls: the tokens and cost of each request, billed or simulated, and the decisions before it


MILLION: Final = 1_000_000


@attrs.frozen(kw_only=True)
class CallFigures:
    """One request with its tokens, cost and usage."""

    at: float
    """The time of the request, in seconds since the epoch."""
    shown: int
    """The version of the view that the request shows."""
    tokens: int
    """The calibrated tokens of the whole prompt."""
    full: int
    """The tokens of sending everything."""
    account: Account
    bust: bool
    """Whether it lost a prefix that was still in the simulated cache."""
    simulated: UsageRecorded
    """Its tokens by the simulated cache."""
    paid: float
    """The cost of the prompt in dollars, by the simulated cache."""
    full_paid: float
    """The cost of sending everything, in dollars."""
    is_rendered: bool
    """Whether the log recorded this request; otherwise it is rendered now for the response that followed."""
    is_exact: bool
    """Whether the request, rendered now, has the hash in the log."""
    decisions: tuple[str, ...]
    """A word for each decision since the previous call."""
    usage: UsageRecorded | None = None
    """The usage that the provider reported; None if there is no report."""


WORDS: Final[Mapping[type, str]] = {
    BlocksRestored: "restored",
    RangeCompacted: "compacted",
    RangeExpanded: "expanded",
    SummaryReplaced: "rewritten",
    SummaryPrepared: "prepared",
    CompactionSkipped: "skipped",
}


def word_of(event: Event) -> str:
    """A word for the decision that an event records; empty if it records none."""
    return STATES[event.reason] if isinstance(event, BlocksHidden) else WORDS.get(type(event), "")


@attrs.define
class Everything:
    """Prices sending everything: the previous prompt is read while the cache is warm, the rest is written."""

    model: Model
    _last: tuple[float, int] | None = attrs.field(default=None, init=False)

    def send(self, at: float, tokens: int) -> float:
        """The dollars for a prompt of that many tokens that begins with the previous prompt."""
        provider = provider_of(self.model)
        limits = provider.limits(self.model)
        rates = provider.rates(self.model, tokens)
        last, self._last = self._last, (at, tokens)
        ttl = min(rates.writes, default=0)
        if tokens < limits.cache_tokens_min or not ttl:
            return rates.cost(tokens, 0, {}) / MILLION
        read = min(last[1], tokens) if last and at - last[0] < ttl else 0
        return rates.cost(0, read, {ttl: tokens - read}) / MILLION


def columns(calls: Sequence[CallFigures]) -> dict[str, list[Any]]:
    """The calls in the page's format: a list for each field."""
    plain = ("at", "shown", "tokens", "full", "decisions")
    cached = {"read": "cache_read", "write": "cache_write", "uncached": "uncached"}
    parts = ("system", "tools", "summary")
    usages = [call.usage for call in calls]
    return {
        **{name: [getattr(call, name) for call in calls] for name in plain},
        **{name: [getattr(call.simulated, of) for call in calls] for name, of in cached.items()},
        **{name: [getattr(call.account, name) for call in calls] for name in parts},
        "bust": [int(call.bust) for call in calls],
        "paid": [round(call.paid, 7) for call in calls],
        "fullPaid": [round(call.full_paid, 7) for call in calls],
        "rendered": [int(call.is_rendered) for call in calls],
        "exact": [int(call.is_exact) for call in calls],
        "usage": [u and [u.uncached, u.cache_read, u.cache_write, u.output] for u in usages],
    }


@attrs.define
class Whole:
    """All blocks ever appended, as one view; counts the tokens of each and of all."""

    context: Context
    _view: View = attrs.field(factory=View, init=False)
    _waiting: list[Recorded] = attrs.field(factory=list[Recorded], init=False)
    _tokens: list[int] = attrs.field(factory=list[int], init=False)
    """Running totals of tokens after each group except the last."""

    def add(self, version: int, event: BlockAppended) -> None:
        self._waiting.append((version, event))

    def tokens(self) -> int:
        """The tokens of all blocks, before calibration."""
        self._catch_up()
        encoder, groups, sums = self.context.encoder, self._view.groups, self._tokens
        del sums[max(len(groups) - 2, 0) :]
        for group in groups[len(sums) :]:
            sums.append((sums[-1] if sums else 0) + encoder.shown(group).tokens)
        return sums[-1] if sums else 0

    def by_version(self) -> dict[int, int]:
        """The tokens of each block by version, before calibration."""
        self._catch_up()
        encoder, tokens = self.context.encoder, dict[int, int]()
        for group in self._view.groups:
            for spot in encoder.shown(group).spots:
                tokens[spot.version] = tokens.get(spot.version, 0) + spot.tokens
        return tokens

    def _catch_up(self) -> None:
        if self._waiting:
            self._view = fold(self._view, self._waiting)
            self._waiting.clear()


# The summaries: each with its text, range, provenance and cost


def summary_row(
    version: int, event: RangeCompacted | SummaryReplaced, blocks: int
) -> dict[str, Any]:
    """One summary in the page's format, its text under `text`. `blocks`: the number of blocks it covers."""
    summary = event.summary
    row: dict[str, Any] = {
        "version": version,
        "at": event.at,
        "start": summary.start,
        "cut": summary.cut,
        "blocks": blocks,
        "degraded": summary.degraded,
        "turns": list(summary.covered_turn_ids),
        "split": summary.split_turn_id or "",
        "digest": msgspec.to_builtins(summary.digest),
        "text": format_summary(summary),
        "provenance": msgspec.to_builtins(event.provenance) if event.provenance else {},
    }
    if isinstance(event, RangeCompacted):
        return row | {
            "start": event.start,
            "cut": event.cut,
            "trigger": event.trigger,
            "before": event.tokens_before,
            "after": event.tokens_after,
            "policy": event.policy,
            "carried": [item.version for item in event.carried],
        }
    return row | {"replaces": event.compaction}


# What readers may see of a log


CONFIDENTIAL: Final = "[confidential]"


def shareable(log: Sequence[Recorded]) -> Sequence[Recorded]:
    """The log without blocks hidden on request and without confidential results, which a store in memory may
    hold, and without quotations of them. The same object if there is nothing to remove."""
    visible = without_hidden(log)
    secret = {
        event.block.id: CONFIDENTIAL
        for _, event in visible
        if isinstance(event, BlockAppended) and _is_open_secret(event)
    }
    return taken_back(visible, secret, secret)


def changes_what_is_shared(event: Event) -> bool:
    """Whether this event changes which of the earlier blocks may be shown."""
    match event:
        case BlocksHidden():
            return event.reason == "requested"
        case BlockAppended():
            return _is_open_secret(event)
        case _:
            return isinstance(event, BlocksRestored)


def _is_open_secret(event: BlockAppended) -> bool:
    block = event.block
    if not isinstance(block, ToolResult) or is_sealed(block):
        return False
    return block.envelope.sensitivity in ENCRYPTED
