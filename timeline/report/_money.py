"""The money on a page: three figures, the cost of each call by kind, and what each block cost over all calls.

A call is priced at its own model by the usage that was reported for it.  A replay shows the recorded calls, if the
recording has usage.  Only where no call of a log has any, the simulated cache tells what the prompts would cost, and
the page says so.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import attrs

from blocks import AssistantCompletion, AssistantThinking, Block, ToolCall, UsageRecorded
from render import Model, provider_of
from timeline.billing import (
    CallCost,
    PaidBlock,
    RecordedBill,
    call_costs,
    file_of,
    part_of,
    piece_costs,
    plural,
    reasons,
)
from timeline.report._savings import Savings

ANSWERS: Final = (AssistantCompletion, AssistantThinking, ToolCall)
"""The kinds of blocks that a model writes."""
_LINES: Final = ("command", "cmd", "script")
"""The arguments that have a command line."""
_STARTS: Final = ("cd", "env", "sudo", "time", "timeout")
"""Commands before the one that a command line is about."""


@attrs.frozen(kw_only=True)
class Money:
    """What the calls of a page cost."""

    source: str
    """`recorded`: by the recording of a replay; `reported`: by these calls' own usage; `simulated`."""
    costs: Sequence[CallCost]
    """Those of the calls with a known price."""
    numbers: Sequence[int]
    """The numbers of these calls."""

    @classmethod
    def of(
        cls,
        recorded: Sequence[UsageRecorded | None],
        reported: Sequence[UsageRecorded | None],
        simulated: Sequence[UsageRecorded],
        model: Model,
    ) -> "Money":
        """The first of the three that has any call with a known price; `model`: of calls that do not name theirs."""
        of = {"recorded": recorded, "reported": reported, "simulated": simulated}
        sources = [(source, call_costs(usages, model)) for source, usages in of.items()]
        source, costs = next((each for each in sources if each[1]), sources[-1])
        return cls(source=source, costs=costs, numbers=[cost.number for cost in costs])

    def by_call(self, times: Sequence[float], pieces: Sequence[PaidBlock]) -> dict[str, list[Any]]:
        """The columns of the calls: `money`, the dollars for cache reads, cache writes, the rest of the prompt and the
        answer; `sent`, the tokens of the prompt; `why`, the reason in words. Each None without usage or a known price."""
        columns: dict[str, list[Any]] = {
            name: [None] * len(times) for name in ("money", "sent", "why")
        }
        for cost, why in zip(self.costs, reasons(self.costs, times, pieces), strict=True):
            rates = provider_of(cost.model).rates(cost.model, cost.usage.input)
            uncached = cost.usage.uncached * rates.input / 1e6
            kinds = cost.read, max(cost.written - uncached, 0.0), uncached, cost.output
            columns["money"][cost.number] = [round(dollars, 7) for dollars in kinds]
            columns["sent"][cost.number] = cost.usage.input
            columns["why"][cost.number] = why
        return columns

    def by_block(self, pieces: Sequence[PaidBlock]) -> dict[str, Any]:
        """The columns of the blocks: what each cost, the tool or part that it belongs to, and the file or command."""
        parts, part = distinct(piece.part for piece in pieces)
        files, file = distinct(piece.file for piece in pieces)
        return {
            "parts": parts,
            "files": files,
            "part": part,
            "file": file,
            "dollars": [round(dollars, 7) for dollars in piece_costs(self.costs, pieces)],
        }

    def piece(self, each: PaidBlock) -> PaidBlock:
        """A block whose calls are numbered among all, with their numbers among the priced ones."""
        place = bisect_left(self.numbers, each.born)
        is_priced = each.born in self.numbers[place : place + 1]
        end = None if self.source == "recorded" else each.end
        return each._replace(
            born=place if is_priced else -1,
            first=bisect_left(self.numbers, each.first),
            end=None if end is None else bisect_left(self.numbers, end),
        )


def distinct(names: Iterable[str]) -> tuple[list[str], list[int]]:
    """The names that differ, in order, and for each name its number among them."""
    numbers = dict[str, int]()
    places = [numbers.setdefault(name, len(numbers)) for name in names]
    return list(numbers), places


def belonging(block: Block, call: ToolCall | None) -> tuple[str, str]:
    """The part to which a block belongs, and its file or program; `call`: itself, or the one whose result it is."""
    return part_of(block, call), file_of(call) or _program(call)


def _program(call: ToolCall | None) -> str:
    """The program that a command line is about; empty if the call is none."""
    line = next((call.input[key] for key in _LINES if key in call.input), "") if call else ""
    line = " ".join(map(str, cast("list[object]", line))) if isinstance(line, list) else str(line)
    for part in re.split(r"\n|&&|;", line):
        words = [word for word in part.split() if "=" not in word and not word.startswith("-")]
        if words and words[0] not in _STARTS and not words[0].startswith("#"):
            return words[0]
    return ""


# The three figures.


@attrs.frozen
class Figure:
    """An amount of the first screen."""

    name: str
    dollars: float | None
    """None if nothing computed it."""
    says: str
    """What it consists of, in words."""
    is_loss: bool = attrs.field(default=False, kw_only=True)
    is_guess: bool = attrs.field(default=False, kw_only=True)
    """Whether prices are a guess."""


def replay_figures(
    bill: RecordedBill, prompts: float, everything: float, *, guess: bool
) -> list[Figure]:
    """What a recorded session has cost, what it would have cost, and the difference. `prompts`, `everything`: the
    dollars of the prompts alone, in a simulated cache; `guess`: whether their prices are one."""
    if not bill.calls:
        nobody = f"sending everything: ${everything:,.3f}, which nobody paid"
        return [
            Figure("bill", None, bill.headline().removeprefix("no bill: ")),
            Figure(
                "with foldline", prompts, "its prompts alone, in a simulated cache", is_guess=guess
            ),
            Figure("saved", None, nobody),
        ]
    where = (
        f"{bill.aside:,} of them outside the conversation" if bill.aside else "by the log's usage"
    )
    basis, is_guess = f"{plural(bill.calls, 'call')}, {where}", bill.is_guess
    paid = Figure("bill", bill.dollars, basis, is_guess=is_guess)
    if bill.foldline is None:
        return [paid, *_unknown("with foldline", "not computed: no call can be compared")]
    would = Figure("with foldline", bill.foldline, "the same calls, estimated", is_guess=is_guess)
    return [paid, would, _difference(bill.saved, bill.dollars, "of the bill")]


def timeline_figures(
    money: Money, bill: RecordedBill, savings: Savings, prompts: float
) -> list[Figure]:
    """The same for a timeline: by the bills of a gateway, or by usage; `prompts`: what the simulated prompts cost."""
    if savings.calls:
        basis = f"{plural(savings.calls, 'call')} through the gateway"
        return [Figure("bill", savings.paid, basis), *_gateway_figures(savings)]
    if not bill.calls:
        is_guess = not all(cost.model.known for cost in money.costs)
        basis = "their prompts alone, in a simulated cache"
        return [
            Figure("bill", None, "no usage with a known price was reported"),
            Figure("these requests", prompts, basis, is_guess=is_guess),
            Figure("saved", None, "no bill to compare with"),
        ]
    part = f"{bill.calls:,} of " if bill.calls < bill.all_calls else ""
    basis = f"{part}{plural(bill.all_calls, 'call')}, by the reported usage"
    return [
        Figure("bill", bill.dollars, basis, is_guess=bill.is_guess),
        *_unknown("would be", "only a replay or a gateway computes another bill"),
    ]


def _gateway_figures(savings: Savings) -> list[Figure]:
    if savings.rewritten:
        basis = "sending everything, with the client's own cache marks"
        full = Figure("without foldline", savings.full, basis)
        return [full, _difference(savings.saved, savings.full, "of that")]
    if savings.possible:
        basis = "these requests were recorded, but not sent"
        would = Figure("with foldline", savings.would, basis)
        possible = _difference(savings.possible, savings.paid, "of the bill")
        return [would, attrs.evolve(possible, name=f"would have been {possible.name}")]
    return _unknown("without foldline", "the same: nothing was rewritten")


def _unknown(name: str, says: str) -> list[Figure]:
    return [Figure(name, None, says), Figure("saved", None, "nothing to compare with")]


def _difference(saved: float, whole: float, of: str) -> Figure:
    share = f"{abs(saved) / whole:.0%} {of}" if whole else ""
    return Figure("more" if saved < 0 else "saved", abs(saved), share, is_loss=saved < 0)
