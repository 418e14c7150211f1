"""Where the money of a session went: call by call, and by what its prompts carried.

Each call is paid once, but for many things: what is new in its prompt, at the price of a cache write or of ordinary
input, and all that came before, mostly as cache reads.  So a block costs what it cost to write (if the model wrote it),
what it cost in the first prompt that had it, and its share of each later prompt until the agent cut it out.  What no
block of the log accounts for, such as the system prompt and the tools, is a part by itself; the parts add up to the bill.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    CallId,
    ImagePart,
    ToolCall,
    ToolResult,
    UsageRecorded,
    UserFollowup,
    UserPrompt,
    UserSteer,
    text_of,
    tool_kind,
    tool_target,
    written_paths,
)
from persistence.sessions import Responded, Session
from render import Model, provider_of
from timeline._models import priced_model
from timeline.billing._prices import usage_price
from timeline.billing._recorded import CUT, RecordedBill, recorded_bill, unlogged_in

COLD_SHARE: Final = 0.5
"""Where less than this share of the previous prompt was read from the cache, the cache was lost."""
IMAGE_TOKENS: Final = 1_500
CHARS_PER_TOKEN: Final = 4
"""Rough sizes; what is charged is in proportion to them, and scaled to the recorded prompts."""
REST: Final = "system prompt, tools, the rest"
HELPERS: Final = "calls outside the conversation"
WORDS: Final = "the user's words"
ANSWERS: Final = "answers and thinking"
CONTEXT: Final = "context that the agent added"
TOOL: Final = "tool "
"""What the money was for, besides tools by name."""


class CallCost(NamedTuple):
    """What a call cost, in dollars."""

    number: int
    """Its number among all calls, from 0."""
    usage: UsageRecorded
    model: Model
    """The model whose prices apply."""
    read: float
    """For what was read from the cache."""
    written: float
    """For the rest of the prompt: written to the cache or ordinary input."""
    output: float
    old: float
    """For each token that was in the previous prompt."""
    new: float
    """For each token that was not."""

    @property
    def dollars(self) -> float:
        """The whole cost."""
        return self.read + self.written + self.output


def call_costs(usages: Iterable[UsageRecorded | None], own: Model | None = None) -> list[CallCost]:
    """The cost of each call of a conversation that has tokens and a known price, in order; `own`: the model of calls
    that do not name theirs."""
    costs, before = list[CallCost](), 0
    for number, usage in enumerate(usages):
        if usage is None or not usage.input + usage.output:
            continue
        model = priced_model(usage.model) if usage.model else own
        if model is None:
            continue
        rates = provider_of(model).rates(model, usage.input)
        read, output = usage.cache_read * rates.read / 1e6, usage.output * rates.output / 1e6
        written = usage_price(usage, model) - read - output
        fresh = written / max(usage.input - usage.cache_read, 1)
        prefix = min(before, usage.input)
        old = min(prefix, usage.cache_read)
        late = usage.cache_read - old
        price = rates.read / 1e6
        costs.append(
            CallCost(
                number=number,
                usage=usage,
                model=model,
                read=read,
                written=written,
                output=output,
                old=(old * price + (prefix - old) * fresh) / max(prefix, 1),
                new=(late * price + (usage.input - prefix - late) * fresh)
                / max(usage.input - prefix, 1),
            )
        )
        before = usage.input or before
    return costs


@attrs.frozen(kw_only=True)
class PaidCall:
    """A call at a known price, and why it cost what it did."""

    number: int
    """Its number in the session, from 1; 0: it is outside the conversation."""
    at: float
    """In seconds since the epoch; for a call outside the conversation of unknown time, that of the session's end."""
    cost: CallCost
    why: str


@attrs.frozen(kw_only=True)
class Spending:
    """What a session cost, and what it was for."""

    bill: RecordedBill
    calls: tuple[PaidCall, ...] = ()
    parts: Mapping[str, float] = attrs.field(factory=dict[str, float])
    """Dollars by what they were for; tools begin with `TOOL`."""
    files: Mapping[str, float] = attrs.field(factory=dict[str, float])
    """Dollars by file, for what tools read and wrote by its name."""


Wanted: TypeAlias = Callable[[float, UsageRecorded | None], bool]
"""Whether a call at a time counts."""


class PaidBlock(NamedTuple):
    """A block in the prompts; calls are numbered among the priced ones."""

    part: str
    file: str
    tokens: float
    born: int
    """The call that wrote it; -1: none."""
    first: int
    """The first call whose prompt had it."""
    end: int | None = None
    """The first later call whose prompt did not have it; None: the first that the agent cut."""


def spending_of(
    session: Session, aside: Iterable[UsageRecorded] = (), wanted: Wanted = lambda _at, _usage: True
) -> Spending:
    """Where the money of a session went.

    `aside`: calls outside the conversation that are in other files.  `wanted` chooses the calls that count, for example
    those of a day; it is asked once for each, in order.
    """
    end = session.items[-1].at if session.items else 0.0
    others = [(usage.at or end, usage) for usage in (*session.aside, *aside)]
    is_wanted = [wanted(each.at, each.usage) for each in session.calls]
    others = [(at, usage) for at, usage in others if wanted(at, usage)]
    usages = [each.usage for each, is_one in zip(session.calls, is_wanted, strict=True) if is_one]
    full = call_costs(each.usage for each in session.calls)
    counted = [is_wanted[cost.number] for cost in full]
    pieces = list(_pieces(session, {cost.number: place for place, cost in enumerate(full)}))
    parts, files = _attributed(full, counted, pieces)
    times = [each.at for each in session.calls]
    why = reasons(full, times, pieces)
    calls = [
        PaidCall(number=cost.number + 1, at=times[cost.number], cost=cost, why=reason)
        for cost, reason, is_one in zip(full, why, counted, strict=True)
        if is_one
    ]
    for at, usage in others:
        for cost in call_costs([usage]):
            calls.append(PaidCall(number=0, at=at, cost=cost, why=HELPERS))
            parts[HELPERS] = parts.get(HELPERS, 0.0) + cost.dollars
    return Spending(
        bill=recorded_bill(usages, [usage for _, usage in others]),
        calls=tuple(calls),
        parts={name: paid for name, paid in parts.items() if paid > 0},
        files=files,
    )


def _pieces(session: Session, places: Mapping[int, int]) -> Iterable[PaidBlock]:
    """The blocks of the session; `places`: the number of each priced call among the priced ones."""
    calls, number, place, born = dict[CallId, ToolCall](), -1, 0, -1
    for item in session.items:
        if isinstance(item, Responded):
            number += 1
            born = places.get(number, -1)
            place = born + 1 if born >= 0 else place
        for block in item.blocks:
            call = call_of(block, calls)
            writer = born if isinstance(item, Responded) else -1
            yield PaidBlock(part_of(block, call), file_of(call), _size(block), writer, place)


def call_of(block: Block, calls: dict[CallId, ToolCall]) -> ToolCall | None:
    """The tool call that a block is, which is noted in `calls`, or whose result it is."""
    if isinstance(block, ToolCall):
        calls[block.call_id] = block
        return block
    return calls.get(block.call_id) if isinstance(block, ToolResult) else None


def part_of(block: Block, call: ToolCall | None) -> str:
    """What a block is a part of; `call`: itself, or the one whose result it is."""
    match block:
        case _ if call:
            return f"{TOOL}{call.name}"
        case UserPrompt() | UserFollowup() | UserSteer():
            return WORDS
        case AssistantCompletion() | AssistantThinking():
            return ANSWERS
        case _:
            return CONTEXT


def file_of(call: ToolCall | None) -> str:
    """The file that a call reads or writes by its name; empty if it is none, or several."""
    if call is None:
        return ""
    written = written_paths(call.name, call.input)
    if tool_kind(call.name, call.input) == "read":
        return tool_target(call.input)
    return written[0] if len(written) == 1 else ""


def _size(block: Block) -> float:
    parts = block.parts if isinstance(block, ToolResult | UserPrompt) else ()
    images = sum(isinstance(part, ImagePart) for part in parts)
    return len(text_of(block)) / CHARS_PER_TOKEN + IMAGE_TOKENS * images


def _attributed(
    costs: Sequence[CallCost], counted: Sequence[bool], pieces: Sequence[PaidBlock]
) -> tuple[dict[str, float], dict[str, float]]:
    """The dollars of those calls that are counted, by part and by file."""
    parts, files = defaultdict[str, float](float), defaultdict[str, float](float)
    for piece, dollars in zip(pieces, piece_costs(costs, pieces, counted), strict=True):
        parts[piece.part] += dollars
        if piece.file:
            files[piece.file] += dollars
    whole = sum(cost.dollars for cost, is_one in zip(costs, counted, strict=True) if is_one)
    return {**parts, REST: max(whole - sum(parts.values()), 0.0)}, files


def piece_costs(
    costs: Sequence[CallCost], pieces: Sequence[PaidBlock], counted: Sequence[bool] = ()
) -> list[float]:
    """The dollars of each piece: for writing it, for the first prompt that had it, and for each later one.

    `counted`: for each call, whether it counts; empty: all do.
    """
    added, written = Counter[int](), Counter[int]()
    for piece in pieces:
        added[piece.first] += round(piece.tokens)
        written[piece.born] += round(piece.tokens) + 1
    sizes = accumulate(added[place] for place in range(len(costs)))
    grown = [(cost.usage, size) for cost, size in zip(costs, sizes, strict=True)]
    growth = unlogged_in(grown)[1] if grown else 1.0
    inputs = [cost.usage.input for cost in costs]
    cuts = [n for n in range(1, len(inputs)) if _is_cut(inputs[n], inputs[n - 1])]
    paid = [
        cost if is_one else cost._replace(read=0.0, written=0.0, output=0.0, old=0.0, new=0.0)
        for cost, is_one in zip(costs, counted or [True] * len(costs), strict=True)
    ]
    old, estimates = list(accumulate((cost.old for cost in paid), initial=0.0)), list[float]()
    for piece in pieces:
        first, end = piece.first, piece.end
        if end is None:
            end = next((cut for cut in cuts if cut > first), len(costs))
        dollars = 0.0
        if first < min(end, len(costs)):
            dollars = growth * piece.tokens * (paid[first].new + old[end] - old[first + 1])
        if piece.born >= 0:
            dollars += paid[piece.born].output * (round(piece.tokens) + 1) / written[piece.born]
        estimates.append(dollars)
    whole, total = sum(cost.dollars for cost in paid), sum(estimates)
    share = min(whole / total, 1.0) if total else 1.0  # the sizes are rough
    return [share * dollars for dollars in estimates]


def reasons(
    costs: Sequence[CallCost], times: Sequence[float], pieces: Sequence[PaidBlock]
) -> Iterable[str]:
    """In words, what made each call as dear as it was; `times`: of all calls."""
    added, is_cached = defaultdict[int, Counter[str]](Counter), False
    for piece in pieces:
        about = f"{piece.part.removeprefix(TOOL)} {piece.file}".strip()
        added[piece.first][about] += round(piece.tokens)
    for place, cost in enumerate(costs):
        usage = cost.usage
        before = costs[place - 1].usage.input if place else 0
        new = max(usage.input - before, 0)
        lost = min(before, usage.input) - usage.cache_read
        if cost.output > max(cost.read, cost.written):
            yield f"wrote {usage.output:,} tokens"
        elif cost.read > cost.written:
            yield f"read {usage.cache_read:,} tokens from the cache"
        elif _is_cut(usage.input, before):
            yield f"the first after the agent cut its prompt to {usage.input:,} tokens"
        elif lost > new and not is_cached:
            yield f"{usage.input:,} tokens, none from a cache"
        elif lost > new:
            what = "the cache of" if lost > (1 - COLD_SHARE) * before else "part of the cache:"
            pause = _pause(times[cost.number] - times[costs[place - 1].number])
            yield f"lost {what} {lost:,} tokens, {pause} after the last call"
        elif place and added[place]:
            about, tokens = added[place].most_common(1)[0]
            share = "most" if 2 * tokens > added[place].total() else "many"
            yield f"{new:,} new tokens, {share} of them of {about}"
        else:
            yield f"{new:,} new tokens"
        is_cached = is_cached or usage.cache_read + usage.cache_write > 0


def _is_cut(tokens: int, before: int) -> bool:
    """Whether the agent cut its history, so that earlier blocks are no longer in a prompt of so many tokens."""
    return 0 < tokens < (1 - CUT) * before


def _pause(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
