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
those of a stored summary. What cannot be used is left out with a notice; if nothing can be used, that is an error.

An update is *complete*: it takes the place of the summary before. Any other summary, as an application may write it, is added
to that one by rules, see "Merging" below.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate, product, takewhile
from math import inf
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
from blocks.formats import obj
from render.policy._context import Context, PageRoom

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
    name: str
    """What a model calls the list."""
    type: Callable[..., Item]
    """What makes an entry, or `str`."""
    fields: Mapping[str, str]
    """By what a model calls a field: its name in the class. A text has a main part, and may have evidence."""


DONE: Final = "done"
"""The action of work that a model reports, and of an open item that it closes with an outcome."""


def _same(*names: str) -> Mapping[str, str]:
    return {name: name for name in names}


_KINDS: Final[Mapping[str, _Kind]] = {
    "constraints": _Kind("c", "Constraints", "constraints", str, _same("constraint")),
    "open_items": _Kind("o", "Open items", "open", OpenItem, _same("item", "priority")),
    "decisions": _Kind("d", "Decisions", "decisions", Decision, _same("decision", "reason", "rejected")),
    "facts": _Kind("f", "Findings", "findings", str, _same("finding", "evidence")),
    "lists": _Kind("l", "Lists", "lists", NamedList, _same("title", "items")),
    "errors": _Kind(
        "e", "Errors and their resolution", "errors", ErrorRecord, _same("error", "resolution")
    ),
    "completed": _Kind(
        "w", "Completed work", "done", partial(Work, action=DONE),
        {"what": "component", "action": "action", "outcome": "description"},
    ),
    "tool_outcomes": _Kind(
        "t", "Tool outcomes", "tool_outcomes", partial(ToolOutcome, outcome=""),
        _same("tool", "outcome", "detail"),
    ),
    "artifacts": _Kind(
        "a", "Artifacts", "artifacts", ArtifactNote, _same("path", "description", "read_when")
    ),
}  # fmt: skip
"""The lists of a summary, in the order in which they are shown."""
_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "task": ("goal", "Goal"),
    "state": ("state", "Current state"),
    "plan": ("next", "Next"),
    "turn_context": ("turn_context", "Turn Context (split turn)"),
}  # fmt: skip
"""By field of a summary: what a model calls it, and its heading."""

# The text.


def written_text(summary: StructuredSummary) -> Iterator[tuple[str, str]]:
    """The sections of the written part with their titles, in the order of the page, including those with empty texts."""
    for field, (_, title) in _TEXTS.items():
        yield title, getattr(summary, field)
    for field, kind in _KINDS.items():
        yield kind.title, "\n".join(f"- {line_of(each)}" for each in getattr(summary, field))


def format_written(summary: StructuredSummary) -> str:
    """The text of the written part, to measure it."""
    return "\n\n".join(f"## {title}\n{text}" for title, text in written_text(summary) if text)


def report_history(summary: StructuredSummary) -> str:
    """As `format_written`, without the split turn's context, which has a room of its own."""
    return format_written(structs.replace(summary, turn_context=""))


def numbered(summary: StructuredSummary, room: "SummaryRoom") -> str:
    """The written part as a model is shown it to update it: each entry on a line of its own, with its id and its tokens, and
    with `!` if it would go, or be cut, for an answer that adds `GROWTH` of the room."""
    less = attrs.evolve(room, history=int((1 - GROWTH) * room.history))
    left = {*_entries(_fitted(summary, less, summary))}
    pages = _Pages.of(summary)
    lines = [f"{_TEXTS[field][0]}: {text}" for field, text in pages.texts.items() if text]
    for field, kind in _KINDS.items():
        entries = [(name, each) for name, each in pages.entries.items() if name[0] == kind.letter]
        lines += [f"{kind.name}:"] if entries else []
        going = {
            f"{kind.letter}{n}" for n, e in enumerate(getattr(summary, field), 1) if e not in left
        }
        for name, entry in entries:
            line = line_of(entry or "")
            mark = "!" * (name in going)
            lines.append(f"{'  ' * ('.' in name)}{name} [{room.count(line)}]{mark}. {line}")
    return "\n".join(lines)


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
    return re.sub(r"(?<!\.)\.\Z", "", first) + between + second


# The update.


@attrs.define
class _Pages:
    """The written part while an update is made, and what could not be used of the update."""

    texts: dict[str, str]
    entries: dict[str, Item | None] = attrs.field(factory=dict[str, Item | None])
    """By id; items of a list are apart from it (`l1.3`). None: it is closed, and its place stays, so that ids mean the same."""
    notices: list[str] = attrs.field(factory=list[str])
    uses: int = 0
    """How many parts of the update were used."""

    @classmethod
    def of(cls, summary: StructuredSummary) -> "_Pages":
        pages = cls({field: getattr(summary, field) for field in _TEXTS})
        for field, kind in _KINDS.items():
            for entry in getattr(summary, field):
                pages.append(kind.letter, entry)
        return pages

    def append(self, start: str, entry: Item) -> None:
        """Add an entry under the next id that starts like this: `f`, or `l1.` for an item."""
        numbers = [name.removeprefix(start) for name in self.entries if name.startswith(start)]
        self.put(f"{start}{sum(map(str.isdigit, numbers)) + 1}", entry)

    def put(self, name: str, entry: Item | None) -> None:
        """Set the entry of an id; further items of a list are added to those that it has."""
        self.entries[name] = entry
        if isinstance(entry, NamedList):
            self.entries[name] = structs.replace(entry, items=())
            for item in entry.items:
                self.append(f"{name}.", item)

    def listed(self, letter: str) -> Iterator[Item]:
        """The entries of a list that are not closed, as they are now."""
        for name, entry in self.entries.items():
            if isinstance(entry, NamedList) and name.startswith(letter):
                items = (each for key, each in self.entries.items() if key.startswith(f"{name}."))
                yield structs.replace(entry, items=tuple(filter(None, items)))
            elif entry and name.startswith(letter) and "." not in name:
                yield entry

    def references(self, value: Any) -> Iterator[tuple[str, Item, Mapping[str, Any]]]:
        """The objects in a list that name an entry by its id, which may stand for such an object, and these entries."""
        for each in _many(value):
            fields = cast("Mapping[str, Any]", each if isinstance(each, dict) else {"id": each})
            name = str(fields.get("id"))[:40]
            key = re.sub(r"\A\W+|\W+\Z", "", name).lower()
            if key not in self.entries:
                self.notices.append(f"there is no entry {name!r}")
            elif (entry := self.entries[key]) is not None:
                yield key, entry, fields

    def say(self, update: Mapping[str, Any]) -> None:
        """Take over the texts; the goal is never emptied."""
        for field, (name, _) in _TEXTS.items():
            value = update.get(field) if update.get(name) is None else update[name]
            text = _text(value)
            if text or (value is not None and field != "task"):
                self.uses += bool(text)
                self.texts[field] = text

    def change(self, name: str, old: Item, update: Mapping[str, Any]) -> None:
        """Take over the fields that differ; of a list, `add` has further items."""
        fields = {key: value for key, value in update.items() if key != "id"}
        more = _texts(fields.pop("add", [])) if name[0] == _KINDS["lists"].letter else ()
        if "." in name:
            entry: Item | None = _text(next(iter(fields.values()), ""))
        else:
            kind = next(each for each in _KINDS.values() if each.letter == name[0])
            entry = _entry(kind, fields, old)
        if not (entry or more):
            self.notices.append(f"{update['id']}: nothing in it to change")
            return
        self.uses += 1
        if "items" in fields:
            self.entries = {k: v for k, v in self.entries.items() if not k.startswith(f"{name}.")}
        self.put(name, entry or old)
        for item in more:
            self.append(f"{name.partition('.')[0]}.", item)

    def close(self, name: str, old: Item, update: Mapping[str, Any]) -> None:
        """Take away an entry, or say what came of it."""
        self.uses += 1
        outcome = _text(update.get("outcome") or update.get("resolution") or update.get("reason"))
        self.entries[name] = None
        if isinstance(old, OpenItem) and outcome:
            what = _text(update.get("what")) or old.item
            work = Work(component=what, action=DONE, description=outcome)
            self.append(_KINDS["completed"].letter, work)
        elif isinstance(old, ErrorRecord) and outcome and not old.resolution:
            self.entries[name] = structs.replace(old, resolution=outcome)

    def add(self, kind: _Kind, value: Any, name: str) -> None:
        if not isinstance(value, list | str | dict | None):
            self.notices.append(f"`{name}` is no list")
            return
        for each in _many(value):
            entry = _entry(kind, each)
            if entry is None:
                self.notices.append(f"`{name}`: an entry without content")
            else:
                self.uses += 1
                self.append(kind.letter, entry)


def updated(
    before: StructuredSummary, update: Mapping[str, Any]
) -> tuple[StructuredSummary, tuple[str, ...]]:
    """The written part after an update, and notices of what in it could not be used.

    Raises:
        ValueError: nothing of the update could be used; the message says why.
    """
    pages = _Pages.of(before)
    pages.say(update)
    for each in pages.references(update.get("change")):
        pages.change(*each)
    for each in pages.references(update.get("close")):
        pages.close(*each)
    added = obj(update.get("add"))
    if update.get("add") and not added:
        pages.notices.append("`add` is no object of lists")
    for field, kind in _KINDS.items():
        for name, source in product(dict.fromkeys((kind.name, field)), (added, update)):
            pages.add(kind, source.get(name), name)
    if not pages.uses:
        raise ValueError("; ".join(pages.notices) or "it is empty")
    lists: dict[str, Any] = {}
    for field, kind in _KINDS.items():
        settled = dict.fromkeys(pages.listed(kind.letter))
        touched = settled.keys() - {*getattr(before, field)}
        lists[field] = tuple(sorted(settled, key=touched.__contains__))
    quoted = len(set(before.constraints[: before.quoted]).intersection(lists["constraints"]))
    after = structs.replace(before, **pages.texts, **lists, quoted=quoted, complete=True)
    return after, tuple(pages.notices)


# One entry.


def _entry(kind: _Kind, item: Any, old: Item | None = None) -> Item | None:
    """The entry that a text or an object describes; what it does not name is as in `old`. None: it says nothing."""
    main = next(iter(kind.fields))
    fields = cast("Mapping[str, Any]", item) if isinstance(item, dict) else {main: item}
    pairs = ((name, fields.get(name, fields.get(target))) for name, target in kind.fields.items())
    values = {name: value for name, value in pairs if value is not None}
    if not values and old is None and len(fields) == 1:  # under whatever name
        values = {main: next(iter(fields.values()))}
    if kind.type is str:
        return _in_one_text(values, kind, old)
    parts = {kind.fields[name]: _value(name, value) for name, value in values.items()}
    if old is None:
        return kind.type(**parts) if parts.get(kind.fields[main]) else None
    return structs.replace(cast("Any", old), **parts) if parts else None


def _in_one_text(values: Mapping[str, Any], kind: _Kind, old: Item | None) -> str | None:
    """An entry that is one text: its main part, and the evidence, if it has some, behind it in parentheses."""
    main, *others = kind.fields
    parts: dict[str, str] = {}
    for text in (str(old or ""), _text(values.get(main))):
        head, mark, tail = text.rpartition(" (evidence: ")
        is_both = others and mark and tail.endswith((")", "…"))
        named = {main: head, "evidence": tail.removesuffix(")")} if is_both else {main: text}
        parts |= {name: part for name, part in named.items() if part}
    parts |= {name: _text(values[name]) for name in others if name in values}
    text, evidence = parts.get(main, "") if values else "", parts.get("evidence")
    return f"{text} (evidence: {evidence})" if text and evidence else text or None


def _value(name: str, value: Any) -> Any:
    if name == "priority":
        return value if value in ("high", "medium", "low") else "medium"
    return _texts(value) if name == "items" else _text(value)


def _many(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value] * (value is not None)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, _many(value))))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(filter(None, map(_text, cast("list[Any]", value))))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_text(each)}" for name, each in obj(value).items())
    return "" if value is None else str(value).strip()


# The room.


@attrs.frozen(kw_only=True)
class SummaryRoom:
    """The token limits of a summary's parts, and the token counter."""

    history: int
    """For task, state, plan, and the lists."""
    prefix: int
    """For the beginning of a split turn."""
    count: Callable[[str], int] = attrs.field(repr=False)

    @classmethod
    def of(cls, context: Context) -> "SummaryRoom":
        """The policy's limits, bounded by what the window needs and has."""
        room = PageRoom.of(context.policy, context.capacity)
        return cls(history=room.history, prefix=room.prefix, count=context.counter.count)

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

    def first(self, items: Iterable[Item], tokens_max: float, each_max: int) -> tuple[Item, ...]:
        """The first items that fit together into `tokens_max`, each cut to `each_max`."""
        short = [x if self.size(x) <= each_max else self.cut(x, each_max) for x in items]
        sizes = accumulate(map(self.size, short))
        return tuple(short[: sum(size <= tokens_max for size in sizes)])

    def cut(self, item: Item, tokens_max: int) -> Item:
        """The entry in at most `tokens_max`, its longest texts cut; of a list the last items, behind a gap."""
        if isinstance(item, str):
            return self.shortened(item, tokens_max - self.size(""))
        if isinstance(item, NamedList):
            items = tuple(each for each in item.items if each != GAP)
            while items and (over := self.size(item) - tokens_max) > 0:
                items = items[max(1, len(items) * over // (over + tokens_max)) :]
                item = structs.replace(item, items=(GAP, *items))
            return item if items else NamedList(title=self.shortened(item.title, tokens_max))
        texts = {k: getattr(item, k) for k in item.__struct_fields__ if k != "priority"}
        left = tokens_max - self.size(item) + sum(map(self.count, texts.values()))
        for n, name in enumerate(sorted(texts, key=lambda name: self.count(texts[name]))):
            texts[name] = self.shortened(texts[name], left // (len(texts) - n))
            left -= self.count(texts[name])
        return structs.replace(item, **texts)


# Merging with the summary before. One that is not complete is joined to it: of two texts the newer stands, of two tasks the
# older, and of entries with the same words in the same order, whatever their case and punctuation, the older.
#
# If history is too long, as much as is over goes, in the order of `_fitted`, what was touched longest ago first; of a complete
# summary first what it took over, then its own. The last entry to go is shortened if half of it fits.
#
# Joined lists of constraints, decisions and facts have a room of their own, in which carried entries stay and, among
# constraints, the user's own words come first: a long answer never displaces earlier entries.


LASTING: Final = {"constraints": 0.35, "decisions": 0.2, "facts": 0.2, "open_items": 1.0}
"""The lists of which joined ones keep the oldest entries, and each one's share of the history's room."""
_WORD: Final = re.compile(r"\w(?:[\w.:/@#'’-]*\w)?")
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
GROWTH: Final = 0.2
"""What an answer adds to a full part, as a share of its room: what goes for that is marked before."""
GAP: Final = "[…]"
"""Replaces the middle of a turn's context."""


def merge_summaries(
    previous: StructuredSummary | None, new: StructuredSummary, room: SummaryRoom
) -> StructuredSummary:
    """One summary that covers both, with each part within its room."""
    before = previous or StructuredSummary()
    whole = new if new.complete else _joined_to(before, new)
    short = whole if whole.complete and _excess(whole, room) <= 0 else _concise(whole, room)
    short = structs.replace(short, turn_context=_ends(whole.turn_context, room))
    return _fitted(short, room, before if whole.complete else StructuredSummary())


def _joined_to(old: StructuredSummary, new: StructuredSummary) -> StructuredSummary:
    """What is new, behind what there was; the user's own constraints before all others."""
    own = (*old.constraints[: old.quoted], *new.constraints[: new.quoted])
    lists: dict[str, Any] = {}
    for name in _KINDS:
        by_wording = dict[object, Item]()
        first = own if name == "constraints" else ()
        for item in (*first, *getattr(old, name), *getattr(new, name)):
            by_wording.setdefault(_wording(item) if name in LASTING else item, item)
        lists[name] = tuple(by_wording.values())
    begun, more = old.turn_context, new.turn_context.strip()
    return structs.replace(
        new,
        task=old.task or new.task,
        state=new.state or old.state,
        plan=new.plan or old.plan,
        turn_context=begun if more in begun else f"{begun}\n{more}".strip(),
        quoted=len(set(map(_wording, own))),
        complete=old.complete,
        **lists,
    )


def _wording(item: Item) -> tuple[str, ...]:
    """The words that make two sentences equal; of a decision, without its reason."""
    text = item.decision if isinstance(item, Decision) else line_of(item)
    return tuple(_WORD.findall(text.casefold())) or (text,)


def _concise(summary: StructuredSummary, room: SummaryRoom) -> StructuredSummary:
    """The summary with long texts and lists cut, so that the later rules only select entries."""
    changes: dict[str, Any] = {}
    for name, share in PROSE.items():
        changes[name] = room.shortened(getattr(summary, name), int(share * room.history))
    for name in _KINDS:
        step = 1 if name in LASTING else -1
        most = inf if summary.complete else LASTING.get(name, 1.0) * room.history
        each = int(ITEM_SHARE * room.history) * (2 if name == "lists" else 1)
        changes[name] = room.first(getattr(summary, name)[::step], most, each)[::step]
    quoted = min(summary.quoted, len(changes["constraints"]))
    return structs.replace(summary, **changes, quoted=quoted)


def _ends(text: str, room: SummaryRoom) -> str:
    """The context of a turn; if it is too long, its beginning and its end, with a gap between them."""
    if room.count(text) <= room.prefix:
        return text
    lines, half = text.split("\n"), room.prefix // 2
    head = room.first(takewhile(GAP.__ne__, lines), half, half)
    left = room.prefix - room.count("\n".join([*map(str, head), GAP, ""]))
    rest = [line for line in lines[len(head) :] if line != GAP]
    tail = reversed(room.first(reversed(rest), left, left))
    return room.shortened("\n".join(map(str, (*head, GAP, *tail))), room.prefix)


def _fitted(
    summary: StructuredSummary, room: SummaryRoom, before: StructuredSummary
) -> StructuredSummary:
    """The summary with its history reduced to its room; what `before` has as well goes before the like that is new."""
    older = set(_entries(_concise(before, room)))
    summary = _briefer(summary, room, older)
    for names, old in product((FORCED_OUT, HELD), (older, None)):
        for name in names:
            summary = _fewer(summary, name, room, old)
    for name in ("plan", "state"):
        summary = _shorter(summary, name, room)
    for name in HELD_FAST:
        summary = _fewer(summary, name, room, None)
    return _shorter(summary, "task", room)


def _entries(summary: StructuredSummary) -> Iterator[Item]:
    return (item for name in _KINDS for item in getattr(summary, name))


def _excess(summary: StructuredSummary, room: SummaryRoom) -> int:
    return room.count(report_history(summary)) - room.history


def _briefer(summary: StructuredSummary, room: SummaryRoom, older: set[Item]) -> StructuredSummary:
    """The summary with completed work that is in `older` made shorter until it fits, the oldest first."""
    over, brief, works = _excess(summary, room), int(BRIEF_SHARE * room.history), list[Item]()
    for work in summary.completed:
        size, short = room.size(work), work
        if over > 0 and size > brief and work in older:
            short = cast("Work", room.cut(work, max(size - over, brief)))
            over -= size - room.size(short)
            older.add(short)
        works.append(short)
    return structs.replace(summary, completed=tuple(works))


def _fewer(
    summary: StructuredSummary, name: str, room: SummaryRoom, older: set[Item] | None
) -> StructuredSummary:
    """The summary without the oldest entries of a list (of `older`, if given) until it fits; of what was carried, the newest."""
    field = "errors" if name == "resolved" else name
    is_newest = name in HELD_FAST or (name in LASTING and not summary.complete)
    while (over := _excess(summary, room)) > 0:
        items: list[Item] = [*getattr(summary, field)]
        left: list[Item | None] = [*items]
        going = [n for n, item in enumerate(items) if older is None or item in older]
        if name == "resolved":
            going = [n for n in going if summary.errors[n].resolution]
        if not going:
            break
        for n in reversed(going) if is_newest else going:
            size = room.size(items[n])
            short = room.cut(items[n], size - over) if size >= 2 * over and not is_newest else None
            left[n] = short = short if short and room.size(short) < size else None
            over -= size - (room.size(short) if short else 0)
            if short and older is not None:
                older.add(short)
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
