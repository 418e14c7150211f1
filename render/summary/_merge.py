"""The room of the written part, and merging it with the one before by rules: what must not drift is carried verbatim.

It has two parts, each with a room of its own, a limit in tokens to which its texts and entries are cut:

    history   task, state, plan, and the lists
    prefix    turn context                          the beginning and the end of a split turn

A summary that is *complete* (a model's update, see `_written`) takes the place of the one before. Any other is added to it:

    task                          the oldest one
    constraints decisions facts   joined; see below
    state plan                    the newest ones
    the other lists               joined

If history is too long, as much as is over goes: long outcomes of completed work are shortened, then tool outcomes, artifacts,
completed work, resolved errors, findings and other errors go, what was touched longest ago first; of a complete summary
first those that it took over, then its own. Only if that is not enough, decisions and lists go, plan and state are
cut, and then open items, constraints and the task. The last entry to go is shortened if half of it fits.

Of summaries that are added, each list of constraints, decisions and facts has a room of its own. Carried entries stay, new
ones get the remaining room; among constraints, the user's own words come first. So a long answer of a summariser never
displaces earlier entries. A sentence equal to an older one (same words in the same order, ignoring case and punctuation) is
merged with it; one that differs in a word is another.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, cast

import attrs
import msgspec

from blocks import Decision, NamedList, StructuredSummary, Work
from render.policy._context import Context
from render.summary._written import Item, line_of, report_history

# Room.


# What must be said of any session (the goal, the state, what the user demands) needs about a thousand tokens; what was
# found and decided grows with the window, because a larger one is folded less often and holds more when it is:
#
#     window      12,000   30,000   60,000   75,000 and more
#     history      1,800    3,000    5,000     6,000      with the defaults of the policy
#     prefix         460      550      700       775 (200,000: 1,400)
#
# A summary that other engines ask of a model has 2,000 to 4,000 tokens, from a window of 200,000 in one pass; one that is
# updated holds the whole session, so it has more.

WRITTEN_BASE: Final = 1000
WRITTEN_SHARE: Final = 1 / 15
"""History has this many tokens, and this share of the window, up to `Policy.summary_tokens`."""
PREFIX_BASE: Final = 400
PREFIX_SHARE: Final = 1 / 200
"""The same for the beginning of a split turn, up to `Policy.prefix_tokens`."""
LIMIT_SHARE: Final = 0.25
"""The largest share of a small window that history may have; the prefix may have half of that."""


@attrs.frozen(kw_only=True)
class SummaryRoom:
    """The token limits of a summary's parts, and the token counter."""

    history: int
    prefix: int
    """For the beginning of a split turn."""
    count: Callable[[str], int] = attrs.field(repr=False)

    @classmethod
    def of(cls, context: Context) -> "SummaryRoom":
        """The policy's limits, bounded by what the window needs and has."""
        policy, window = context.policy, context.capacity
        most = int(LIMIT_SHARE * window)
        history = min(int(WRITTEN_BASE + WRITTEN_SHARE * window), most)
        prefix = min(int(PREFIX_BASE + PREFIX_SHARE * window), most // 2)
        return cls(
            history=min(policy.summary_tokens, history),
            prefix=min(policy.prefix_tokens, prefix),
            count=context.counter.count,
        )

    def size(self, item: Item) -> int:
        """Tokens of a list entry as it is shown."""
        return self.count(f"- {line_of(item)}\n")

    def shortened(self, text: str, tokens_max: int) -> str:
        """The beginning of a text, in at most `tokens_max` tokens."""
        if self.count(text) <= tokens_max:
            return text
        keep = min(len(text), 16 * max(tokens_max, 0))
        while keep > 0:
            short = text[:keep].rstrip() + "…"
            if (tokens := self.count(short)) <= tokens_max:
                return short
            keep = min(keep * tokens_max // tokens, keep - 1)
        return ""

    def first(self, items: Iterable[Item], tokens_max: int, each_max: int) -> tuple[Item, ...]:
        """The first items that fit together into `tokens_max`, each cut to `each_max`."""
        kept: list[Item] = []
        for item in items:
            short = item if self.size(item) <= each_max else self.cut(item, each_max)
            tokens_max -= self.size(short)
            if tokens_max < 0:
                break
            kept.append(short)
        return tuple(kept)

    def cut(self, item: Item, tokens_max: int) -> Item:
        """The entry in at most `tokens_max`, its longest texts cut; of a list the last items, behind a gap."""
        if isinstance(item, str):
            return self.shortened(item, tokens_max - self.size(""))
        if isinstance(item, NamedList):
            items = tuple(each for each in item.items if each != GAP)
            while items and self.size(item) > tokens_max:
                items = items[
                    max(1, len(items) * (self.size(item) - tokens_max) // self.size(item)) :
                ]
                item = msgspec.structs.replace(item, items=(GAP, *items))
            return item if items else NamedList(title=self.shortened(item.title, tokens_max))
        texts = {k: getattr(item, k) for k in item.__struct_fields__ if k != "priority"}
        left = tokens_max - self.size(item) + sum(map(self.count, texts.values()))
        for n, name in enumerate(sorted(texts, key=lambda name: self.count(texts[name]))):
            texts[name] = self.shortened(texts[name], left // (len(texts) - n))
            left -= self.count(texts[name])
        return msgspec.structs.replace(item, **texts)


# Merging.


LASTING: Final = {"constraints": 0.35, "decisions": 0.2, "facts": 0.2}
"""The lists that are carried verbatim, and each one's share of the history's room."""
_WORD: Final = re.compile(r"\w(?:[\w.:/@#'’-]*\w)?")
EXPENDABLE: Final = ("tool_outcomes", "artifacts", "completed", "errors", "lists", "open_items")
"""Lists that are joined as they are."""
FORCED_OUT: Final = ("tool_outcomes", "artifacts", "completed", "resolved", "facts", "errors")
"""Lists that lose entries when history is too long, in this order; `resolved` are the errors with a resolution."""
HELD: Final = ("decisions", "lists")
"""Lists that lose entries after all of those, also after what is new in them."""
HELD_FAST: Final = ("open_items", "constraints")
"""Lists that lose entries only if nothing else is left."""
PROSE: Final = {"task": 0.25, "state": 0.15, "plan": 0.15}
"""Share of the history's room for each of these texts."""
ITEM_SHARE: Final = 0.25
"""Share of the history's room for one entry; a named list, which is of use only as a whole, may have twice as much."""
BRIEF_SHARE: Final = 0.015
"""The same for completed work whose outcome is shortened."""
HEAD_SHARE: Final = 0.5
"""Share of the prefix's room for the beginning of the turn."""
GAP: Final = "[…]"
"""Replaces the middle of a turn's context."""


def merge_summaries(
    previous: StructuredSummary | None, new: StructuredSummary, room: SummaryRoom
) -> StructuredSummary:
    """One summary that covers both, with each part within its room."""
    if new.complete:
        short = _concise(new, room) if _excess(new, room) > 0 else new
        context = room.shortened(new.turn_context, room.prefix)
        short = msgspec.structs.replace(short, turn_context=context)
        return _fitted(short, room, previous or StructuredSummary())
    old, new = _concise(previous or StructuredSummary(), room), _concise(new, room)
    merged = msgspec.structs.replace(
        new,
        task=old.task or new.task,
        state=new.state or old.state,
        plan=new.plan or old.plan,
        turn_context=_continued(old.turn_context, new.turn_context, room),
        complete=old.complete,
        **{k: tuple(dict.fromkeys((*getattr(old, k), *getattr(new, k)))) for k in EXPENDABLE},
        **_lasting(old, new, room),
    )
    return _fitted(merged, room, StructuredSummary())


def _concise(summary: StructuredSummary, room: SummaryRoom) -> StructuredSummary:
    """The summary with long texts and lists cut, so that the later rules only select entries."""
    each = int(ITEM_SHARE * room.history)
    most = sum(map(room.size, _entries(summary))) if summary.complete else room.history
    changes: dict[str, Any] = {
        name: room.shortened(getattr(summary, name), int(share * room.history))
        for name, share in PROSE.items()
    }
    for name in (*LASTING, "open_items"):
        changes[name] = room.first(getattr(summary, name), most, each)
    for name in EXPENDABLE[:-1]:
        size = 2 * each if name == "lists" else each
        changes[name] = room.first(reversed(getattr(summary, name)), most, size)[::-1]
    quoted = min(summary.quoted, len(changes["constraints"]))
    return msgspec.structs.replace(summary, **changes, quoted=quoted)


def _continued(old: str, new: str, room: SummaryRoom) -> str:
    """The context of a turn that continued: its beginning and its end, with a gap between them if it is too
    long."""
    text = f"{old}\n{new}".strip() if new.strip() not in old else old
    if room.count(text) <= room.prefix:
        return text
    lines = text.split("\n")
    head = _head(lines, room)
    tail = _tail(lines[len(head) :], room.prefix - room.count("\n".join([*head, GAP, ""])), room)
    return room.shortened("\n".join([*head, GAP, *tail]), room.prefix)


def _head(lines: Sequence[str], room: SummaryRoom) -> list[str]:
    """The first lines, up to the gap of an earlier merge."""
    most = int(HEAD_SHARE * room.prefix)
    head: list[str] = []
    for line in lines:
        if line == GAP or room.count("\n".join([*head, line])) > most:
            break
        head.append(line)
    return head or [room.shortened(lines[0], most)]


def _tail(lines: Sequence[str], tokens_max: int, room: SummaryRoom) -> list[str]:
    """The last lines; the first of them that does not fit is cut to its beginning."""
    tail: list[str] = []
    for line in reversed([line for line in lines if line != GAP]):
        left = tokens_max - room.count("\n".join(["", *tail]))
        short = room.shortened(line, left)
        if short:
            tail.insert(0, short)
        if short != line:
            break
    return tail


def _fitted(
    summary: StructuredSummary, room: SummaryRoom, before: StructuredSummary
) -> StructuredSummary:
    """The summary with its history reduced to its room; what `before` has as well goes before the like that is new."""
    known = set(_entries(_concise(before, room)))
    summary = _briefer(summary, room, known)
    for names in (FORCED_OUT, HELD):
        for old in (known, None):
            for name in names:
                summary = _fewer(summary, name, room, old)
    for name in ("plan", "state"):
        summary = _shorter(summary, name, room)
    for name in HELD_FAST:
        summary = _fewer(summary, name, room, None)
    return _shorter(summary, "task", room)


def _entries(summary: StructuredSummary) -> Iterator[Item]:
    return (item for name in (*LASTING, *EXPENDABLE) for item in getattr(summary, name))


def _excess(summary: StructuredSummary, room: SummaryRoom) -> int:
    return room.count(report_history(summary)) - room.history


def _briefer(summary: StructuredSummary, room: SummaryRoom, known: set[Item]) -> StructuredSummary:
    """The summary with completed work that is known made shorter until it fits, the oldest first."""
    over, brief, works = _excess(summary, room), int(BRIEF_SHARE * room.history), list[Item]()
    for work in summary.completed:
        size, short = room.size(work), work
        if over > 0 and size > brief and work in known:
            short = cast("Work", room.cut(work, max(size - over, brief)))
            over -= size - room.size(short)
            known.add(short)
        works.append(short)
    return msgspec.structs.replace(summary, completed=tuple(works))


def _fewer(
    summary: StructuredSummary, name: str, room: SummaryRoom, known: set[Item] | None
) -> StructuredSummary:
    """The summary with entries of a list removed until it fits, only `known` ones if they are given: the oldest ones, or
    the newest of what was carried. The last of them is only cut if half of it fits."""
    field = "errors" if name == "resolved" else name
    is_newest = name in HELD_FAST or (name in LASTING and not summary.complete)
    while (over := _excess(summary, room)) > 0:
        items: list[Item] = [*getattr(summary, field)]
        left: list[Item | None] = [*items]
        going = [n for n, item in enumerate(items) if known is None or item in known]
        if name == "resolved":
            going = [n for n in going if summary.errors[n].resolution]
        if not going:
            break
        for n in reversed(going) if is_newest else going:
            size = room.size(items[n])
            short = room.cut(items[n], size - over) if size >= 2 * over and not is_newest else None
            left[n] = short = short if short and room.size(short) < size else None
            over -= size - (room.size(short) if short else 0)
            if short and known is not None:
                known.add(short)
            if over <= 0:
                break
        summary = msgspec.structs.replace(summary, **{field: tuple(filter(None, left))})
    return msgspec.structs.replace(summary, quoted=min(summary.quoted, len(summary.constraints)))


def _shorter(summary: StructuredSummary, name: str, room: SummaryRoom) -> StructuredSummary:
    """The summary with one text cut until it fits."""
    while (text := getattr(summary, name)) and (over := _excess(summary, room)) > 0:
        short = room.shortened(text, room.count(text) - over)
        summary = msgspec.structs.replace(summary, **{name: short})
    return summary


# The lasting lists.


def _lasting(old: StructuredSummary, new: StructuredSummary, room: SummaryRoom) -> dict[str, Any]:
    """The lasting lists of both summaries within their rooms, and how many constraints are the user's own
    words."""
    own = _distinct((*old.constraints[: old.quoted], *new.constraints[: new.quoted]))
    others = (*old.constraints[old.quoted :], *new.constraints[new.quoted :])
    joined = {name: _distinct((*getattr(old, name), *getattr(new, name))) for name in LASTING}
    joined["constraints"] = _distinct((*own, *others))
    chosen = {
        name: _let_in(items, int(LASTING[name] * room.history), room)
        for name, items in joined.items()
    }
    lists = {name: tuple(joined[name][index] for index in chosen[name]) for name in LASTING}
    return {**lists, "quoted": sum(index < len(own) for index in chosen["constraints"])}


def _distinct(items: Iterable[Item]) -> Sequence[Item]:
    """Each sentence once, in its oldest wording."""
    found: dict[tuple[str, ...], Item] = {}
    for item in items:
        found.setdefault(_wording(item), item)
    return tuple(found.values())


def _let_in(items: Sequence[Item], tokens_max: int, room: SummaryRoom) -> list[int]:
    """Indices of the items that fit, the oldest first."""
    left, chosen = tokens_max, list[int]()
    for index, item in enumerate(items):
        if (size := room.size(item)) <= left:
            chosen.append(index)
            left -= size
    return chosen


def _wording(item: Item) -> tuple[str, ...]:
    """The words that make two sentences equal; of a decision, without its reason."""
    text = item.decision if isinstance(item, Decision) else line_of(item)
    return tuple(_WORD.findall(text.casefold())) or (text,)
