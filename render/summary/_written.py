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
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        case Work(action="found"):  # a statement of the agent, which older releases quoted
            return _joined(": ", item.component, item.description)
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
    known: dict[str, int] = attrs.field(init=False)
    """By field: how many entries have an id; those that are added have none yet."""
    notices: list[str] = attrs.field(factory=list[str])
    uses: int = 0
    """How many parts of the update were used."""

    def __attrs_post_init__(self) -> None:
        self.known = {field: len(entries) for field, entries in self.lists.items()}


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
    if field and 0 <= index < pages.known[field]:
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
