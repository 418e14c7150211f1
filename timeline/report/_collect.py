"""Collects what a report shows: folds the log again, event by event, and records the state on the way.

All decisions are taken from the log.  Each request is rendered again from its view; the recorded hash tells
whether the result is the same to the byte.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    Event,
    Naming,
    RangeCompacted,
    RequestRendered,
    SummaryReplaced,
    ToolCall,
    UsageRecorded,
    tag_of,
    text_of,
)
from render import Context, Group, Rendered, View, commit, fold, show
from timeline._arguments import System, Tools
from timeline.billing import Flattener, RunningBill
from timeline.engine._settings import Settings
from timeline.report._calls import Call, Everything, billed, columns, word_of
from timeline.report._lives import VISIBLE, Lives
from timeline.report._requests import Requests
from timeline.report._summaries import summary_row
from timeline.report._whole import Whole
from timeline.tokens import counter_for

NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
TEXT_MAX: Final = 200_000
"""The most characters of one block's text in a report."""


@attrs.frozen(kw_only=True)
class Prompting:
    """The settings, system prompt and tools with which the requests of a log are rendered."""

    settings: Settings
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
    calls: list[Call] = attrs.field(factory=list[Call], init=False)
    blocks: "list[_Row]" = attrs.field(factory=list["_Row"], init=False)
    summaries: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]], init=False)
    requests: Requests = attrs.field(factory=Requests, init=False)
    lives: Lives = attrs.field(factory=Lives, init=False)
    version: int = attrs.field(default=0, init=False)
    _view: View = attrs.field(factory=View, init=False)
    _views: dict[int, View] = attrs.field(factory=dict[int, View], init=False)
    """The views since the latest request, by version."""
    _whole: Whole = attrs.field(init=False)
    _bill: RunningBill = attrs.field(init=False)
    _everything: Everything = attrs.field(init=False)
    _naming: Naming = attrs.field(factory=Naming, init=False)
    _decided: list[str] = attrs.field(factory=list[str], init=False)
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

    def add(self, version: int, event: Event) -> None:
        """Add the next event."""
        if not self.version and version > 1:  # the beginning of the log was forgotten
            self._view = View(version=version - 1)
        match event:
            case RequestRendered():
                view = self._views.get(event.shown, self._view)
                self._called(event.at, view, event)
                self._awaited = True
            case BlockAppended():
                self._appended(version, event)
            case RangeCompacted() | SummaryReplaced():
                self._summarized(version, event)
            case UsageRecorded() if self.calls:
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
        response = block.response if isinstance(block, _ANSWERS) else None
        if response is not None and response != self._answering:
            if not self._awaited:
                self._called(event.at, self._view, None)
            self._awaited = False
        self._answering = response
        path = self._naming.path(block, version)
        self._whole.add(version, event)
        self.blocks.append(_Row(version, event.at, block, path, len(self.calls)))

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
            Call(
                at=at,
                shown=event.shown if event else view.version,
                tokens=tokens,
                full=full[0],
                account=account,
                bust=step.bust,
                read=step.read,
                write=step.write,
                uncached=step.uncached,
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
        self.requests.add(_request(rendered), points)

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
        if not event.input:
            return
        ttl = int(self.prompting.context(0.0).ttl_seconds)
        last = self.calls[-1]
        paid = billed(event, self.prompting.settings.model, ttl)
        tokens = last.tokens if last.is_rendered else event.input or last.tokens
        call = attrs.evolve(last, usage=event, paid=paid, tokens=tokens)
        bill = event.bill
        if bill is not None and bill.paid is not None:
            full, size = bill.full, bill.full_tokens
            if not bill.rewritten:  # everything was sent
                full, size = bill.paid, event.input
            call = attrs.evolve(call, paid=bill.paid, full_paid=full, full=size)
        self.calls[-1] = call

    def _summarized(self, version: int, event: RangeCompacted | SummaryReplaced) -> None:
        start, cut = event.summary.start, event.summary.cut
        count = sum(start <= row.version < cut for row in self.blocks)
        row = summary_row(version, event, count)
        self.summaries.append(row | {"call": len(self.calls)})

    def overview(self) -> dict[str, Any]:
        """What a page needs first: numbers and a few names, no texts."""
        settings, tokens = self.prompting.settings, self._whole.by_version()
        kinds = list(dict.fromkeys(tag_of(row.block) for row in self.blocks))
        turns = list(dict.fromkeys(str(row.block.turn) for row in self.blocks))
        numbers = {name: at for at, name in enumerate(kinds)}
        turn_numbers = {name: at for at, name in enumerate(turns)}
        index = {row.version: at for at, row in enumerate(self.blocks)}
        states = list(dict.fromkeys([VISIBLE, *(c.state for c in self.lives.changes)]))
        state_numbers = {name: at for at, name in enumerate(states)}
        changes = [change for change in self.lives.changes if change.block in index]
        return {
            "version": self.version,
            "model": settings.model.name,
            "policy": settings.policy.name,
            "window": settings.limit,
            "calls": columns(self.calls),
            "kinds": kinds,
            "turns": turns,
            "states": states,
            "blocks": {
                "version": [row.version for row in self.blocks],
                "at": [row.at for row in self.blocks],
                "kind": [numbers[tag_of(row.block)] for row in self.blocks],
                "turn": [turn_numbers[str(row.block.turn)] for row in self.blocks],
                "call": [row.call for row in self.blocks],
                "tokens": [tokens.get(row.version, 0) for row in self.blocks],
            },
            "changes": {
                "event": [change.event for change in changes],
                "block": [index[change.block] for change in changes],
                "state": [state_numbers[change.state] for change in changes],
            },
            "requests": {
                "kept": self.requests.kept,
                "added": self.requests.added,
                "marks": self.requests.marks,
            },
            "pieces": {"slot": self.requests.slots, "version": self.requests.versions},
            "summaries": [{k: v for k, v in row.items() if k != "text"} for row in self.summaries],
        }

    def contents(self, since: Mapping[str, int] = NOTHING) -> dict[str, Any]:
        """The texts, which a page loads later: all, or those after the first `since` of `blocks`, `changes`,
        `pieces` and `summaries`."""
        blocks = self.blocks[since.get("blocks", 0) :]
        known = since.get("changes", 0)
        return {
            "paths": [row.path for row in blocks],
            "texts": [text_of(row.block)[:TEXT_MAX] for row in blocks],
            "names": [str(getattr(row.block, "name", "")) for row in blocks],
            "calls": [str(getattr(row.block, "call_id", "")) for row in blocks],
            "stands": {
                str(at): [change.replacement, change.artifact]
                for at, change in enumerate(self.lives.changes[known:], known)
                if change.replacement or change.artifact
            },
            "changes": len(self.lives.changes),
            "pieces": self.requests.texts[since.get("pieces", 0) :],
            "summaries": [row["text"] for row in self.summaries[since.get("summaries", 0) :]],
        }


_ANSWERS: Final = (AssistantCompletion, AssistantThinking, ToolCall)


@attrs.frozen
class _Row:
    """One block in a report."""

    version: int
    at: float
    block: Block
    path: str
    call: int
    """The number of requests before this block."""


def _folded(view: View, version: int, event: Event) -> View:
    if isinstance(event, RangeCompacted):
        return commit(attrs.evolve(view, version=version - 1), event)
    return fold(view, [(version, event)])


def _request(rendered: Rendered) -> dict[str, Any]:
    parts = rendered.system, rendered.tools, rendered.messages, rendered.cache_key
    return rendered.provider.request(*parts)
