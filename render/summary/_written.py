"""The written part of a page: its entries, their text, and an update of it by a model.

A model that writes a summary anew each time, from the one before, loses most of it within two folds. So it is shown what
it wrote with an id for each entry, and answers with an *update*:

    {"state": "...", "next": "...",                     texts take the place of those before
     "add":    {"findings": [...], "open": [...]},      new entries
     "change": [{"id": "f3", "evidence": "..."}],       fields of an entry that are different now
     "close":  [{"id": "o1", "outcome": "..."}]}        entries that are settled, wrong, or replaced

What it does not mention stays. The ids are the positions in the lists (`f3`: the third finding, `l1.2`: the second item of
the first list), so they are not stored, and each list has its entries in the order in which they were last touched.
What is closed goes; but an open item with an outcome becomes completed work, and an error that has no resolution is given its
outcome as one.

An update is read with patience: entries may be texts or objects, lists may stand outside of `add`, names of fields may be
those of a stored summary. What cannot be used is left out with a notice; only an answer of which nothing can be used is an
error.

An update is *complete*: it takes the place of the summary before. Any other summary, as a summariser of an application may
write it, is added to that one by rules: what must not drift is carried verbatim. See "Merging" below.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import attrs
from msgspec import structs

from blocks import (
    ArtifactNote,
    Decision,
    ErrorRecord,
    NamedList,
    OpenItem,
    StructuredSummary,
    ToolOutcome,
    Work,
)
from render.policy._context import Context

Item: TypeAlias = (
    str | Decision | Work | ToolOutcome | ArtifactNote | OpenItem | ErrorRecord | NamedList
)
"""An entry of one of the summary's lists."""


@attrs.frozen
class _Kind:
    """The entries of one list."""

    letter: str
    """The beginning of their ids."""
    title: str
    """The heading of their section."""
    name: str
    """What a model calls the list."""
    type: Any
    """The class of an entry, or `str`."""
    fields: Mapping[str, str]
    """By what a model calls a field: its name in the class; of a text, the words before that part of it."""


def _same(*names: str) -> Mapping[str, str]:
    return {name: name for name in names}


_KINDS: Final[Mapping[str, _Kind]] = MappingProxyType({
    "constraints": _Kind("c", "Constraints", "constraints", str, {"constraint": ""}),
    "open_items": _Kind("o", "Open items", "open", OpenItem, _same("item", "priority")),
    "decisions": _Kind("d", "Decisions", "decisions", Decision, _same("decision", "reason", "rejected")),
    "facts": _Kind("f", "Findings", "findings", str, {"finding": "", "evidence": "evidence: "}),
    "lists": _Kind("l", "Lists", "lists", NamedList, _same("title", "items")),
    "errors": _Kind(
        "e", "Errors and their resolution", "errors", ErrorRecord, _same("error", "resolution")
    ),
    "completed": _Kind(
        "w", "Completed work", "done", Work,
        {"what": "component", "action": "action", "outcome": "description"},
    ),
    "tool_outcomes": _Kind(
        "t", "Tool outcomes", "tool_outcomes", ToolOutcome, _same("tool", "outcome", "detail")
    ),
    "artifacts": _Kind(
        "a", "Artifacts", "artifacts", ArtifactNote, _same("path", "description", "read_when")
    ),
})  # fmt: skip
"""The lists of a summary, in the order in which they are shown."""
_TEXTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"task": ("goal", "Goal"), "state": ("state", "Current state"), "plan": ("next", "Next")}
)
"""By field of a summary: what a model calls it, and its heading."""
CONTEXT_TITLE: Final = "Turn Context (split turn)"
_PRIORITIES: Final = ("high", "medium", "low")
DONE: Final = "done"
"""The action of work that a model reports, and of an open item that it closes with an outcome."""

# The text.


def written_text(summary: StructuredSummary) -> Iterator[tuple[str, str]]:
    """The sections of the written part with their titles, in the order of the page, including those with empty texts."""
    for field, (_, title) in _TEXTS.items():
        yield title, getattr(summary, field)
    yield CONTEXT_TITLE, summary.turn_context
    for field, kind in _KINDS.items():
        entries: Sequence[Item] = getattr(summary, field)
        yield kind.title, listed(map(line_of, entries))


def format_written(summary: StructuredSummary) -> str:
    """The text of the written part, to measure it."""
    return "\n\n".join(f"## {title}\n{text}" for title, text in written_text(summary) if text)


def report_history(summary: StructuredSummary) -> str:
    """As `format_written`, without the split turn's context, which has a room of its own."""
    return format_written(structs.replace(summary, turn_context=""))


def numbered(summary: StructuredSummary) -> str:
    """The written part as a model is shown it to update it: each entry on a line of its own, with its id."""
    texts = ((name, getattr(summary, field)) for field, (name, _) in _TEXTS.items())
    lines = [f"{name}: {text}" for name, text in texts if text]
    if summary.turn_context:
        lines.append(f"turn_context: {summary.turn_context}")
    for field, kind in _KINDS.items():
        entries: Sequence[Item] = getattr(summary, field)
        if entries:
            lines.append(f"{kind.name}:")
            lines += [_with_id(f"{kind.letter}{n}", entry) for n, entry in enumerate(entries, 1)]
    return "\n".join(lines)


def _with_id(name: str, entry: Item) -> str:
    """An entry after its id; the items of a list have ids of their own (`l1.3`)."""
    if not isinstance(entry, NamedList):
        return f"{name}. {line_of(entry)}"
    items = (f"  {name}.{n}. {item}" for n, item in enumerate(entry.items, 1))
    return "\n".join([f"{name}. {entry.title}:", *items])


def listed(lines: Iterable[str]) -> str:
    """One line for each entry."""
    return "\n".join(f"- {line}" for line in lines)


def line_of(item: Item) -> str:
    """A list entry as it is shown; a named list has a further line for each of its items."""
    match item:
        case Decision():
            turn = f" ({item.turn})" if item.turn else ""
            reasoned = _joined(", because ", item.decision, item.reason)
            return _joined("; rejected: ", reasoned, item.rejected) + turn
        case Work():
            action = "" if item.action == DONE else item.action
            return _joined(": ", _joined(": ", item.component, action), item.description)
        case ToolOutcome():
            return _joined(": ", _joined(": ", item.tool, item.outcome), item.detail)
        case ArtifactNote():
            about = _joined("; read when ", item.description, item.read_when)
            return _joined(": ", item.path, about)
        case OpenItem():
            return f"[{item.priority}] {item.item}"
        case ErrorRecord():
            return _joined(" -> ", item.error, item.resolution)
        case NamedList():
            return "\n".join([f"{item.title}:", *(f"  - {each}" for each in item.items)])
        case str():
            return item


def _joined(between: str, first: str, second: str) -> str:
    """Both in one line, without the full stop between them; the one that there is, as it is."""
    if not (first and second):
        return first or second
    is_stopped = first.endswith(".") and not first.endswith("..")
    return f"{first[:-1] if is_stopped else first}{between}{second}"


# The update.


@attrs.define
class _Pages:
    """The written part while an update is made, and what could not be used of the update."""

    texts: dict[str, str]
    lists: dict[str, list[Item | None]]
    """By field: the entries; None: it is closed, and its place stays so that ids mean the same to the end."""
    notices: list[str] = attrs.field(factory=list[str])
    uses: int = 0
    """How many parts of the update were used."""


def updated(
    before: StructuredSummary, update: Mapping[str, Any]
) -> tuple[StructuredSummary, tuple[str, ...]]:
    """The written part after an update, and notices of what in it could not be used.

    Raises:
        ValueError: nothing of the update could be used; the message says why.
    """
    pages = _Pages(
        texts={field: getattr(before, field) for field in (*_TEXTS, "turn_context")},
        lists={field: list(getattr(before, field)) for field in _KINDS},
    )
    _say(update, pages)
    for given in _objects(update.get("change"), "change", pages):
        _change(given, pages)
    for given in _objects(update.get("close"), "close", pages, plain="id"):
        _close(given, pages)
    inside = update.get("add")
    added = cast("dict[str, Any]", inside if isinstance(inside, dict) else {})
    if inside and not added:
        pages.notices.append("`add` is no object of lists")
    for field in _KINDS:
        for name in dict.fromkeys((_KINDS[field].name, field)):
            for source in (added, update):
                _add(field, source.get(name), name, pages)
    if not pages.uses:
        raise ValueError("; ".join(pages.notices) or "it is empty")
    lists: dict[str, Any] = {}
    for field, entries in pages.lists.items():
        settled = dict.fromkeys(_settled(entry) for entry in entries if entry)
        touched = settled.keys() - {*getattr(before, field)}
        lists[field] = tuple(sorted(settled, key=touched.__contains__))
    quoted = len(set(before.constraints[: before.quoted]).intersection(lists["constraints"]))
    after = structs.replace(before, **pages.texts, **lists, quoted=quoted, complete=True)
    return after, tuple(pages.notices)


def _settled(entry: Item) -> Item:
    """The entry, a list without the items that were closed."""
    if not isinstance(entry, NamedList):
        return entry
    return structs.replace(entry, items=tuple(filter(None, entry.items)))


def _say(update: Mapping[str, Any], pages: _Pages) -> None:
    """Take over the texts; the goal is never emptied."""
    names = {field: (name, field) for field, (name, _) in _TEXTS.items()}
    for field, known in (names | {"turn_context": ("turn_context",)}).items():
        given = next((update[name] for name in known if update.get(name) is not None), None)
        if given is None:
            continue
        text = _text(given)
        if text or field != "task":
            pages.uses += bool(text)
            pages.texts[field] = text


def _change(given: Mapping[str, Any], pages: _Pages) -> None:
    """Take over the fields that differ; of a list, `add` has further items."""
    field, index, item = _place(given.get("id"), pages)
    if not field or (old := pages.lists[field][index]) is None:
        return
    fields = {name: value for name, value in given.items() if name != "id"}
    more = _texts(fields.pop("add", [])) if isinstance(old, NamedList) else ()
    if item is not None:
        text = _text(next(iter(fields.values()), ""))
        entry = _with_item(old, item, text) if text else None
    else:
        entry = _entry(field, fields, old) or (old if more else None)
    if isinstance(entry, NamedList) and more:
        entry = structs.replace(entry, items=(*entry.items, *more))
    if entry is None:
        pages.notices.append(f"{given['id']}: nothing in it to change")
        return
    pages.uses += 1
    pages.lists[field][index] = entry


def _close(given: Mapping[str, Any], pages: _Pages) -> None:
    field, index, item = _place(given.get("id"), pages)
    if not field or (old := pages.lists[field][index]) is None:
        return
    pages.uses += 1
    outcome = _text(given.get("outcome") or given.get("resolution") or given.get("reason"))
    pages.lists[field][index] = None
    match old:
        case NamedList() if item is not None:
            pages.lists[field][index] = _with_item(old, item, "")
        case OpenItem() if outcome:
            work = Work(component=old.item, action=DONE, description=outcome)
            pages.lists["completed"].append(work)
        case ErrorRecord(resolution="") if outcome:
            pages.lists[field][index] = structs.replace(old, resolution=outcome)
        case _:
            pass


def _with_item(old: Item, index: int, text: str) -> Item:
    """The list with another item in this place; an empty one is no longer shown, so that the others keep their ids."""
    if not isinstance(old, NamedList) or index >= len(old.items):
        return old
    return structs.replace(old, items=(*old.items[:index], text, *old.items[index + 1 :]))


def _add(field: str, given: Any, name: str, pages: _Pages) -> None:
    if given is None:
        return
    if isinstance(given, str | dict):
        given = [given]
    if not isinstance(given, list):
        pages.notices.append(f"`{name}` is no list")
        return
    for each in cast("list[Any]", given):
        entry = _entry(field, each)
        if entry is None:
            pages.notices.append(f"`{name}`: an entry without content")
        else:
            pages.uses += 1
            pages.lists[field].append(entry)


_ID: Final = re.compile(r"\W*([a-z])(\d{1,6})(?:\.(\d{1,6}))?\W*", re.IGNORECASE)


def _place(given: Any, pages: _Pages) -> tuple[str, int, int | None]:
    """The field and the index that an id names, and the index of the item in a list; an empty field, with a notice, if
    there is no such entry."""
    found = _ID.fullmatch(str(given)[:40])
    field, index, item = "", -1, None
    if found:
        letter = found[1].lower()
        field = next((field for field, kind in _KINDS.items() if kind.letter == letter), "")
        index = int(found[2]) - 1
        item = int(found[3]) - 1 if found[3] else None
    if field and 0 <= index < len(pages.lists[field]):
        old = pages.lists[field][index]
        if item is None or (isinstance(old, NamedList) and 0 <= item < len(old.items)):
            return field, index, item
    pages.notices.append(f"there is no entry {str(given)[:40]!r}")
    return "", -1, None


def _objects(given: Any, name: str, pages: _Pages, plain: str = "") -> Iterator[Mapping[str, Any]]:
    """The objects in a list; a text stands for an object with this one field, if any."""
    if given is None:
        return
    for each in cast("list[Any]", given if isinstance(given, list) else [given]):
        if isinstance(each, dict):
            yield cast("Mapping[str, Any]", each)
        elif plain and isinstance(each, str):
            yield {plain: each}
        else:
            pages.notices.append(f"`{name}`: {_text(each)[:20]!r} is no object with an id")


# One entry.


def _entry(field: str, given: Any, old: Item | None = None) -> Item | None:
    """The entry that a model describes, by a text or an object; fields that it does not name are those of `old`. None: it
    says nothing."""
    kind = _KINDS[field]
    main = next(iter(kind.fields))
    fields = cast("Mapping[str, Any]", given) if isinstance(given, dict) else {main: given}
    values: dict[str, Any] = {}
    for name, target in kind.fields.items():
        value = fields.get(name, fields.get(target))
        if value is not None:
            values[name] = value
    if not values and old is None and len(fields) == 1:  # under whatever name
        values = {main: next(iter(fields.values()))}
    if kind.type is str:
        return _in_one_text(values, kind, old)
    return _in_fields(values, kind, old)


def _in_one_text(values: Mapping[str, Any], kind: _Kind, old: Item | None) -> str | None:
    """An entry that is one text: its main part, and the others behind it in parentheses."""
    main, *others = kind.fields
    parts = _parts(str(old or ""), kind) | _parts(_text(values.get(main)), kind)
    parts |= {name: _text(values[name]) for name in others if name in values}
    more = [f"{kind.fields[name]}{parts[name]}" for name in others if parts.get(name)]
    text = parts.get(main, "") if values else ""
    return f"{text} ({'; '.join(more)})" if text and more else text or None


def _parts(text: str, kind: _Kind) -> dict[str, str]:
    """The parts of such a text that are not empty."""
    main, *others = kind.fields
    parts = {main: text}
    for name in others:
        head, mark, tail = text.rpartition(f" ({kind.fields[name]}")
        if mark and tail.endswith((")", "…")):
            parts = {main: head, name: tail.removesuffix(")")}
    return {name: part for name, part in parts.items() if part}


def _in_fields(values: Mapping[str, Any], kind: _Kind, old: Item | None) -> Item | None:
    fields = {kind.fields[name]: _value(name, value) for name, value in values.items()}
    if old is not None:
        changed: Item = structs.replace(cast("Any", old), **fields)
        return changed if fields else None
    if not fields.get(next(iter(kind.fields.values()))):
        return None
    entry: Item = kind.type(**{**_NEEDED.get(kind.type, {}), **fields})
    return entry


_NEEDED: Final[Mapping[Any, Mapping[str, str]]] = MappingProxyType(
    {Work: {"action": DONE}, ToolOutcome: {"outcome": ""}}
)
"""Values of fields that an entry must have."""


def _value(name: str, given: Any) -> Any:
    if name == "priority":
        return given if given in _PRIORITIES else "medium"
    return _texts(given) if name == "items" else _text(given)


def _texts(given: Any) -> tuple[str, ...]:
    many = cast("list[Any]", given) if isinstance(given, list) else [given]
    return tuple(text for text in map(_text, many) if text)


def _text(given: Any) -> str:
    """What a model gave, as one text."""
    match given:
        case None:
            return ""
        case str():
            return given.strip()
        case list():
            return "; ".join(filter(None, map(_text, cast("list[Any]", given))))
        case dict():
            pairs = cast("dict[str, Any]", given).items()
            return "; ".join(f"{name}: {_text(value)}" for name, value in pairs)
        case _:
            return str(given)


# The room: two limits in tokens, to which texts and entries are cut.
#
#     history   task, state, plan, and the lists
#     prefix    turn context                          the beginning and the end of a split turn
#
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
                item = structs.replace(item, items=(GAP, *items))
            return item if items else NamedList(title=self.shortened(item.title, tokens_max))
        texts = {k: getattr(item, k) for k in item.__struct_fields__ if k != "priority"}
        left = tokens_max - self.size(item) + sum(map(self.count, texts.values()))
        for n, name in enumerate(sorted(texts, key=lambda name: self.count(texts[name]))):
            texts[name] = self.shortened(texts[name], left // (len(texts) - n))
            left -= self.count(texts[name])
        return structs.replace(item, **texts)


# Merging with the summary before. One that is not complete is added to it:
#
#     task                          the oldest one
#     constraints decisions facts   joined; see below
#     state plan                    the newest ones
#     the other lists               joined
#
# If history is too long, as much as is over goes: long outcomes of completed work are shortened, then tool outcomes, artifacts,
# completed work, resolved errors, findings and other errors go, what was touched longest ago first; of a complete summary
# first those that it took over, then its own. Only if that is not enough, decisions and lists go, plan and state are
# cut, and then open items, constraints and the task. The last entry to go is shortened if half of it fits.
#
# Of summaries that are added, each list of constraints, decisions and facts has a room of its own. Carried entries stay, new
# ones get the remaining room; among constraints, the user's own words come first. So a long answer of a summariser never
# displaces earlier entries. A sentence equal to an older one (same words in the same order, ignoring case and punctuation) is
# merged with it; one that differs in a word is another.


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
        short = structs.replace(short, turn_context=context)
        return _fitted(short, room, previous or StructuredSummary())
    old, new = _concise(previous or StructuredSummary(), room), _concise(new, room)
    merged = structs.replace(
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
    return structs.replace(summary, **changes, quoted=quoted)


def _continued(old: str, new: str, room: SummaryRoom) -> str:
    """The context of a turn that continued: its beginning and its end, with a gap between them if it is too
    long."""
    text = f"{old}\n{new}".strip() if new.strip() not in old else old
    if room.count(text) <= room.prefix:
        return text
    lines, half = text.split("\n"), int(HEAD_SHARE * room.prefix)
    head = room.first(takewhile(GAP.__ne__, lines), half, half)
    left = room.prefix - room.count("\n".join([*map(str, head), GAP, ""]))
    rest = [line for line in lines[len(head) :] if line != GAP]
    tail = reversed(room.first(reversed(rest), left, left))
    return room.shortened("\n".join(map(str, (*head, GAP, *tail))), room.prefix)


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
    return structs.replace(summary, completed=tuple(works))


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
        summary = structs.replace(summary, **{field: tuple(filter(None, left))})
    return structs.replace(summary, quoted=min(summary.quoted, len(summary.constraints)))


def _shorter(summary: StructuredSummary, name: str, room: SummaryRoom) -> StructuredSummary:
    """The summary with one text cut until it fits."""
    while (text := getattr(summary, name)) and (over := _excess(summary, room)) > 0:
        short = room.shortened(text, room.count(text) - over)
        summary = structs.replace(summary, **{name: short})
    return summary


def _lasting(old: StructuredSummary, new: StructuredSummary, room: SummaryRoom) -> dict[str, Any]:
    """Of the lasting lists of both summaries the oldest entries that have room, each sentence once, in its oldest wording;
    and how many constraints are the user's own words."""
    own = (*old.constraints[: old.quoted], *new.constraints[: new.quoted])
    lists: dict[str, Any] = {}
    for name, share in LASTING.items():
        first = own if name == "constraints" else ()
        left, kept = int(share * room.history), dict[tuple[str, ...], Item]()
        for item in (*first, *getattr(old, name), *getattr(new, name)):
            if (wording := _wording(item)) not in kept and (size := room.size(item)) <= left:
                kept[wording], left = item, left - size
        lists[name] = tuple(kept.values())
    return {**lists, "quoted": sum(item in own for item in lists["constraints"])}


def _wording(item: Item) -> tuple[str, ...]:
    """The words that make two sentences equal; of a decision, without its reason."""
    text = item.decision if isinstance(item, Decision) else line_of(item)
    return tuple(_WORD.findall(text.casefold())) or (text,)
