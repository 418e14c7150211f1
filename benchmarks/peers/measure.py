"""Measures one engine, ours or a peer, on one session, with the project's cache simulation, units and recall."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any

import attrs
import msgspec

from benchmarks.peers.driver import Answer, Child, Message
from benchmarks.peers.masking import Masking
from persistence.sessions import Responded, Session
from render import PROVIDERS, Rendered
from timeline.billing import Flattener, RunningBill
from timeline.replay import ReplayOptions
from timeline.replay._handover import MemoryMeter
from timeline.replay._replay import Replay, whole_timeline
from timeline.tokens import O200kCounter

_MARK = {"type": "ephemeral"}
_CALLED = {"tool_use"}
_THERE = {"text", "tool_use", "tool_result"}


@attrs.frozen(kw_only=True)
class Row:
    """The figures of one engine on one session; `over`, `busts` and `sums` are per 100 calls."""

    engine: str
    cost: float
    far: float
    farctx: float
    farwide: float
    quotes: float | None
    """None if no far line was repeated."""
    around: float
    rules: float
    edits: float | None = None
    """Of the edits made next, those that could be written from the request; None if none was made."""
    standing: float | None = None
    """Of the lines of standing instructions, those kept; None if there are none."""
    whole: float | None = None
    """Of the user's prompts, those that are there whole."""
    busts: float
    over: float
    sums: float
    ms: float


@attrs.frozen(kw_only=True)
class Moment:
    """One recorded call: the full history at that point, and what is new since the previous call."""

    at: float
    full: Rendered
    full_tokens: int
    new: tuple[Message, ...]


@attrs.frozen(kw_only=True)
class Recording:
    """A session in the form that every engine gets."""

    session: Session
    window: int
    moments: tuple[Moment, ...]
    flattener: Flattener
    units: float
    """The cost of sending everything, in units."""

    @property
    def is_long(self) -> bool:
        """Whether the full history ever exceeds the window; if not, there is nothing to compare."""
        return any(moment.full_tokens > self.window for moment in self.moments)

    @property
    def fixed_tokens(self) -> int:
        """The tokens of system prompt and tools."""
        full = self.moments[0].full
        flat = self.flattener.flatten(full.system, full.tools)
        return sum(block.tokens for block in flat)


def options(window: int, policy: str = "default") -> ReplayOptions:
    """The replay options, the same for every engine."""
    return ReplayOptions(
        window=window, counter="o200k", keep_thinking=False, policy=policy, provider="anthropic"
    )


def recorded(session: Session, window: int) -> Recording:
    """Replay the session without a limit."""
    flattener = Flattener(O200kCounter(), PROVIDERS["anthropic"])
    chosen = options(window)
    reference = whole_timeline(session, chosen)
    bill = RunningBill(model=chosen.model_for(session), flattener=flattener)
    moments: list[Moment] = []
    seen = 0
    for item in session.items:
        if isinstance(item, Responded):
            full, _ = reference.render(item.at)
            tokens = bill.send(item.at, full).total
            blocks = [(m["role"], block) for m in full.messages for block in m["content"]]
            new = tuple(neutral(blocks[seen:], flattener))
            seen = len(blocks)
            moments.append(Moment(at=item.at, full=full, full_tokens=tokens, new=new))
        reference.append(item.at, item.blocks)
    return Recording(
        session=session,
        window=window,
        moments=tuple(moments),
        flattener=flattener,
        units=bill.units,
    )


def neutral(
    blocks: Sequence[tuple[str, dict[str, Any]]], flattener: Flattener
) -> Iterator[Message]:
    """Request blocks as messages: one for each response, result and user text."""
    message: Message | None = None
    for role, block in blocks:
        kind = block["type"]
        text = _text(block)
        tokens = flattener.flatten((), (), [{"role": role, "content": [block]}])[0].tokens
        if role == "assistant":
            message = message or {"role": role, "text": "", "calls": [], "tokens": 3}
            if kind in _CALLED:
                call = {key: block[key] for key in ("id", "name", "input")}
                message["calls"].append({**call, "tokens": tokens})
            elif text:
                message["text"] = f"{message['text']}\n{text}".strip()
                message["tokens"] += tokens
            continue
        if message:
            yield message
            message = None
        if kind == "tool_result":
            what = {"id": block["tool_use_id"], "error": bool(block.get("is_error"))}
            yield {"role": "tool", "text": text, "tokens": tokens, **what}
        else:
            yield {"role": "user", "text": text, "tokens": tokens}
    if message:
        yield message


def _text(block: dict[str, Any]) -> str:
    """The text of a block for a peer; a picture is replaced by a word."""
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_result":
            content = block.get("content") or ""
            if isinstance(content, str):
                return content
            return "\n".join(_text(part) for part in content)
        case "tool_use" | "thinking" | "redacted_thinking":
            return ""
        case kind:
            return f"[{kind}]"


@attrs.define
class Writer:
    """Turns a peer's messages into messages of a request with good cache marks.

    Equal messages share their block objects, so that each is counted and read once.
    """

    _known: dict[bytes, list[dict[str, Any]]] = attrs.field(
        init=False, factory=dict[bytes, list[dict[str, Any]]]
    )
    _last: dict[str, Any] | None = attrs.field(init=False, default=None)

    def messages(self, sent: Sequence[Message]) -> tuple[dict[str, Any], ...]:
        """The messages, with marks on the last block and where the previous request ended."""
        out: list[dict[str, Any]] = []
        for message in sent:
            role = "assistant" if message["role"] == "assistant" else "user"
            if not out or out[-1]["role"] != role:
                out.append({"role": role, "content": []})
            out[-1]["content"] += self._blocks(message)
        last = out[-1]["content"][-1] if out and out[-1]["content"] else None
        marked = [block for block in (self._last, last) if block is not None]
        self._last = last
        return tuple(_marked(message, marked) for message in out if message["content"])

    def _blocks(self, message: Message) -> list[dict[str, Any]]:
        key = msgspec.json.encode(message)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = list(_made(message))
        return known


def _made(message: Message) -> Iterator[dict[str, Any]]:
    text = message["text"]
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["id"], "content": text}
        yield {**result, "is_error": True} if message.get("error") else result
        return
    if text:
        yield {"type": "text", "text": text}
    for call in message.get("calls", ()):
        yield {"type": "tool_use", **{key: call[key] for key in ("id", "name", "input")}}


def _marked(message: dict[str, Any], marked: Sequence[dict[str, Any]]) -> dict[str, Any]:
    content = [
        {**block, "cache_control": _MARK} if any(block is one for one in marked) else block
        for block in message["content"]
    ]
    return {"role": message["role"], "content": content}


def measured(child: Child, recording: Recording) -> Row:
    """Measure a peer on a session."""
    child.begin(recording.window, recording.fixed_tokens)
    return _stepped(child.peer.name, child.step, recording)


def masked(recording: Recording) -> Row:
    """Measure masking on a session."""
    engine = Masking(window=recording.window, fixed_tokens=recording.fixed_tokens)
    return _stepped("masking", engine.step, recording)


def _stepped(name: str, step: Callable[[Sequence[Message]], Answer], recording: Recording) -> Row:
    """Measure what is sent, given by `step` for the new messages of each call."""
    model = options(recording.window).model_for(recording.session)
    bill = RunningBill(model=model, flattener=recording.flattener)
    memory, writer = MemoryMeter.of(recording.session), Writer()
    over, sums = 0, 0
    milliseconds: list[float] = []
    for call, moment in enumerate(recording.moments):
        answer = step(moment.new)
        rendered = attrs.evolve(moment.full, messages=writer.messages(answer.messages))
        bill.summarized(answer.summaries)
        over += bill.send(moment.at, rendered).total > recording.window
        sums += len(answer.summaries)
        if moment.full_tokens > recording.window:
            memory.measure(call, rendered)
        milliseconds.append(answer.ms)
    cost = (bill.units + bill.summary_units) / recording.units
    counted = (bill.busts, over, sums)
    return row_of(name, cost, memory, counted, milliseconds)


def ours(policy: str, recording: Recording) -> Row:
    """Measure one of our policies on a session."""
    replay = Replay.begin(recording.session, options(recording.window, policy))
    replay.run()
    cost = (replay.bill.units + replay.bill.summary_units) / recording.units
    counted = (replay.bill.busts, replay.over_window, 0)
    return row_of(f"foldline {policy}", cost, replay.memory, counted, replay.milliseconds)


def full_history(recording: Recording) -> Row:
    """Measure sending everything, the reference for costs."""
    memory = MemoryMeter.of(recording.session)
    over = 0
    for call, moment in enumerate(recording.moments):
        if moment.full_tokens > recording.window:
            memory.measure(call, moment.full)
            over += 1
    return row_of("full history", 1.0, memory, (0, over, 0), [0.0])


def row_of(
    engine: str,
    cost: float,
    memory: MemoryMeter,
    counted: tuple[int, int, int],
    ms: Sequence[float],
) -> Row:
    """The figures of an engine on one session."""
    recall, rules, handover = memory.recall, memory.mean("rules"), memory.handover
    calls = max(1, len(memory.needs))
    busts, over, sums = (100 * count / calls for count in counted)
    return Row(
        engine=engine,
        cost=cost,
        far=recall.far or 0.0,
        farctx=recall.far_context or 0.0,
        farwide=recall.far_wide or 0.0,
        quotes=recall.quotes,
        around=recall.surroundings or 0.0,
        rules=1.0 if rules is None else rules,
        edits=handover.edits,
        standing=handover.standing,
        whole=handover.prompts,
        busts=busts,
        over=over,
        sums=sums,
        ms=fmean(ms),
    )
