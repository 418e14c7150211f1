"""Entries and groups: a block with its place in the log, the blocks that are shown together, and what is shown instead
of hidden ones.

A *group* is one round (all blocks of one model response, and the results of its calls) with whatever
followed until the next response: user texts, notices. The blocks before the first response are a group
without a round. Groups are the unit of work: a group that no event changed is the same object as in the
last render, with all values computed for it (messages, tokens). So a render costs what is new, not what is
visible.

A response is placed after the request that it answers. A block that was appended after that request was
rendered was not part of it, so it is shown after the response, in the round that the response begins. A
result of a call that the request had shown as interrupted is late, and is marked as such.

    log      prompt  [request]  steer  answer  result
    shown    prompt             answer  result  steer

An event that hides a block puts a mask on its entry; it takes effect where the group is shown, by `as_shown`: the
block then has the replacement as its only content, and a hidden tool result stays a tool result. A block that is
hidden on request is replaced at once, so that no stage can quote it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from enum import Enum
from functools import cached_property
from itertools import compress, count
from operator import attrgetter, is_not
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast

import attrs
from msgspec import Struct
from msgspec.structs import replace

from blocks import (
    PROVIDER_TAG,
    Answered,
    ArtifactId,
    AssistantBlock,
    AssistantThinking,
    Block,
    BlockId,
    CallId,
    Carried,
    DroppedSpan,
    FoldState,
    Hidden,
    HideReason,
    Note,
    OpaqueBlock,
    Plan,
    RangeCompacted,
    RangeSummary,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    TurnHeader,
    UserAttachment,
    label_of,
    path_at,
    path_of,
    standing_of,
    tag_of,
    text_of,
)

if TYPE_CHECKING:
    from render.view._view import Shown

# Content blocks that only the provider understands, and that are sent back unchanged.
#
# They come from tools that the provider runs itself, and from its own compaction. They are recorded whole;
# these functions give what the stages need to know of them.


Json: TypeAlias = dict[str, Any]
"""A JSON object."""


def verbatim(block: Block) -> Json | None:
    """The provider's own content block, if the block is one."""
    if not isinstance(block, OpaqueBlock) or not block.tag.startswith(PROVIDER_TAG):
        return None
    value: object = block.fields.get("value")
    is_own = block.author == "assistant" and isinstance(value, dict)
    return cast("Json", value) if is_own else None


def response_of(block: Block) -> str:
    """Id of the model response that contained a block, if it is known."""
    if isinstance(block, AssistantBlock):
        return block.response
    response: object = block.fields.get("response", "") if isinstance(block, OpaqueBlock) else ""
    return response if isinstance(response, str) else ""


def is_server_compaction(block: Block) -> bool:
    """Whether the block is a summary by the provider of everything before it.

    An empty one (a failed compaction) does not count: nothing is left out because of it.
    """
    content = verbatim(block) or {}
    text: object = content.get("content")
    return content.get("type") == "compaction" and isinstance(text, str) and bool(text.strip())


# Groups.


_I = TypeVar("_I")
_T = TypeVar("_T")

NO_ARTIFACT = ArtifactId("")


def number(items: Sized) -> str:
    """The number of items, for a repr, because contents may be long or secret."""
    return f"<{len(items)}>"


class Place(Enum):
    """The place of an entry in its group."""

    SILENT = "silent"
    """Not shown: a turn header."""
    RESPONSE = "response"
    """A block by the model."""
    RESULT = "result"
    """A result of a call of the same group."""
    USER = "user"
    """Shown in the user's message, after the results."""
    LATE = "late"
    """A result whose call had been reported as interrupted before it came; shown as text."""
    CARRIED = "carried"
    """A carried block, shown after the summary."""
    ORPHAN = "orphan"
    """A result without a call; not shown."""


@attrs.frozen(kw_only=True)
class Asked:
    """The request that a response answers."""

    sent: str
    """Hash of the request; empty: not recorded."""
    begun: int
    """Version of the first block of the response."""


class Entry(Struct, frozen=True, kw_only=True, eq=False):
    """A block with its position in the log, and how it is shown; a struct, because folds make many and copy them."""

    version: int
    at: float
    block: Block
    """The part of the block that may be shown, quoted or searched: the block itself or, if it is hidden on request, its
    replacement."""
    path: str
    place: Place
    round: int = 0
    """Number of the round, from 1; 0 before the first response."""
    pair: str = ""
    """For a call and its result: the id that joins them, unique in the view."""
    replacement: str | None = None
    """The text that is shown instead, if it is hidden; empty: nothing."""
    hidden_as: HideReason | None = None
    """Why it is hidden, if an event says so."""
    artifact: ArtifactId = NO_ARTIFACT
    """The artifact to which its content was moved, if it is hidden for that reason."""
    dropped: DroppedSpan | None = None
    """In the first block of a dropped span: the content of `replacement`, as data."""
    unbound: bool = False
    """For thinking: whether the content before it was rewritten since it was generated."""
    asked: Asked | None = None
    """For a block by the model: the request that it answers."""
    original: Block | None = None
    """The block as it was appended, if it is hidden on request; for `restore` and `read` only."""
    opened: Block | None = None
    """For a confidential result: the block with its content, for the model only; `block` is its replacement."""
    ends: tuple[int, int] = (0, 0)
    """Characters of that content that are shown before and after `replacement`."""
    state: FoldState
    """The state of the fold just before this entry."""

    def __repr__(self) -> str:
        return f"<Entry v{self.version}: {tag_of(self.block)}>"

    @property
    def name(self) -> str:
        """The path; of a file that is hidden on request the label, because its path has the file's name."""
        is_file = isinstance(self.original, UserAttachment)
        return label_of(self.version) if is_file else self.path

    @property
    def source(self) -> Block:
        """The block as it was appended, hidden or not. No content of a request may be taken from here."""
        return self.block if self.original is None else self.original

    @property
    def standing(self) -> str:
        """What a standing instruction, hidden or not, replaces and is replaced by; empty: the block is none."""
        return standing_of(self.source)


@attrs.frozen(kw_only=True, eq=False)
class Group:
    """Entries that are shown together, in log order."""

    entries: tuple[Entry, ...] = attrs.field(repr=number)
    round: int = 0
    response: str = ""
    sealed: int = 0
    """Version of the view in the first request that showed this group; 0: none yet.

    A call that this request showed as interrupted remains so, and later entries are shown after what it
    showed, so that the next request extends it.
    """
    asked: Asked | None = None
    """The request that the newest response of the group answers."""
    stale: bool = False
    """Whether the content before the response is not what that request showed."""
    known: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)
    """Values computed for it so far; see `memo`."""

    def memo(self, key: object, make: Callable[[], _T]) -> _T:
        """The value that `make` returned at the first call with this key."""
        try:
            value: _T = self.known[key]
        except KeyError:
            value = self.known[key] = make()
        return value

    @cached_property
    def first(self) -> int:
        """Version of the oldest entry."""
        return self.entries[0].version

    @cached_property
    def last(self) -> int:
        """Version of the newest entry."""
        return self.entries[-1].version

    @cached_property
    def is_hidden(self) -> bool:
        """Whether anything in it is shown as something else."""
        return any(e.replacement is not None or e.opened is not None for e in self.entries)

    @cached_property
    def standing(self) -> frozenset[int]:
        """Versions of the standing instructions in it, hidden or not."""
        return frozenset(entry.version for entry in self.entries if entry.standing)

    @cached_property
    def placed(self) -> Mapping[Place, Sequence[Entry]]:
        """The entries by place, each in log order."""
        places: dict[Place, list[Entry]] = {place: [] for place in Place}
        for entry in self.entries:
            places[entry.place].append(entry)
        return places

    def place_of(self, version: int) -> int:
        """The index in `entries` of the entry with this version."""
        return bisect_left(self.entries, version, key=attrgetter("version"))

    def meanwhile(self, request: Answered) -> int:
        """Index of the first entry that was appended while a request was in flight.

        If the log does not say what was sent, no entry is moved: the number of entries.
        """
        entries = self.entries
        index = len(entries)
        while request.sent and index and entries[index - 1].version > request.shown:
            index -= 1
            if entries[index].place in (Place.RESPONSE, Place.RESULT):
                return len(entries)
        return index

    def find(self, key: str) -> Entry | None:
        """The oldest entry with this path or block id."""
        return self._by_name.get(key)

    @cached_property
    def _by_name(self) -> Mapping[str, Entry]:
        entries = list(reversed(self.entries))
        return {key: entry for entry in entries for key in (entry.block.id, entry.path)}

    @property
    def open_calls(self) -> tuple[CallId, ...]:
        """Calls without a result, in order."""
        return tuple(call.call_id for _, call in self.unanswered)

    @property
    def unanswered(self) -> tuple[tuple[Entry, ToolCall], ...]:
        """The calls without a result, with their entries."""
        answered = {entry.pair for entry in self.placed[Place.RESULT]}
        return tuple(
            (entry, entry.block)
            for entry in self.placed[Place.RESPONSE]
            if isinstance(entry.block, ToolCall) and entry.pair not in answered
        )

    def sealed_at(self, shown: int) -> "Group":
        """The group after a request has shown it as it was at version `shown`.

        A later result, of a call that the request showed as interrupted, becomes late.
        """
        if self.last <= shown:
            same = attrs.evolve(self, sealed=shown)
            same.known.update(self.known)  # it is shown as before
            return same
        asked = {e.pair for e in self.placed[Place.RESPONSE] if e.pair and e.version <= shown}
        entries = (
            replace(entry, place=Place.LATE, pair="")
            if entry.place is Place.RESULT and entry.version > shown and entry.pair in asked
            else entry
            for entry in self.entries
        )
        return attrs.evolve(self, entries=tuple(entries), sealed=shown)


@attrs.frozen(eq=False)
class GroupMemo:
    """Values computed for each group of a view, kept for the next view of the same timeline.

    A conversation grows at its end, so nearly all groups of a view were in the one before. Finding the first
    different group costs at most one pointer comparison per group; values are computed only from there on.
    """

    _kept: dict[Any, tuple[Sequence[Group], tuple[Any, ...]]] = attrs.field(
        factory=dict[Any, tuple[Sequence[Group], tuple[Any, ...]]], init=False, repr=False
    )
    """By key: the groups of the last query, and the value for each."""
    _chains: dict[Any, tuple[Any, Sequence[Any], tuple[Any, ...]]] = attrs.field(
        factory=dict[Any, tuple[Any, Sequence[Any], tuple[Any, ...]]], init=False, repr=False
    )
    """As `_kept`, for values that depend on the preceding groups."""

    def each(
        self, key: object, groups: Sequence[Group], find: Callable[[Group], _T]
    ) -> tuple[_T, ...]:
        """The value of `find` for each group."""
        old: Sequence[Group]
        values: tuple[_T, ...]
        old, values = self._kept.get(key, ((), ()))
        if old != groups:
            same = _same(old, groups)
            values = (*values[:same], *map(find, groups[same:]))
            self._kept[key] = groups, values
        return values

    def chained(
        self, key: object, items: Sequence[_I], start: _T, link: Callable[[_T, _I], _T]
    ) -> tuple[_T, ...]:
        """The value of `link` for each item, given its value for the previous item."""
        old: Sequence[_I]
        values: tuple[_T, ...]
        begun, old, values = self._chains.get(key, (start, (), ()))
        if begun != start:
            old, values = (), ()
        if old != items:
            same = _same(old, items)
            made = list(values[:same])
            for item in items[same:]:
                made.append(link(made[-1] if made else start, item))
            values = tuple(made)
            self._chains[key] = start, items, values
        return values


def _same(old: Sequence[object], new: Sequence[object]) -> int:
    """How many items at the beginning are the same: mostly all but the last of the old ones, as one comparison shows."""
    shared = min(len(old), len(new))
    if shared and old[: shared - 1] == new[: shared - 1]:
        return shared - (old[shared - 1] is not new[shared - 1])
    return next(compress(count(), map(is_not, old, new)), shared)


@attrs.frozen
class Encoder(Generic[_T]):
    """Encodes groups, each once, because what it gives is kept with the group."""

    key: tuple[object, ...]
    """Encoders with equal keys give equal pieces."""
    encode: Callable[[Group], _T]

    def pieces(self, shown: "Shown") -> tuple[_T, ...]:
        """Every group, encoded, with its hidden blocks replaced."""
        return shown.group_memo.each(self.key, shown.groups, self.shown)

    def shown(self, group: Group) -> _T:
        """The group, encoded, with its hidden blocks replaced."""
        return group.memo(self.key, lambda: self.encode(as_shown(group)))


def was_paused(entries: Sequence[Entry]) -> bool:
    """Whether the provider paused in the middle of its own work, and nothing was appended since."""
    return bool(entries) and verbatim(entries[-1].block) is not None


# The place of a block.


def place_of(block: Block) -> Place:
    """The place of a block in its group.

    Notes and plans are by the assistant, but are shown in the user's message. As assistant text they would
    separate a result from its answer, and the model would imitate them.
    """
    match block:
        case TurnHeader():
            return Place.SILENT
        case ToolResult():
            return Place.RESULT
        case Note() | Plan():
            return Place.USER
        case OpaqueBlock():
            if not block.text and verbatim(block) is None:
                return Place.SILENT
            return Place.RESPONSE if block.author == "assistant" else Place.USER
        case _:
            return Place.RESPONSE if block.author == "assistant" else Place.USER


# The head of a compaction.


def head_of(event: RangeCompacted, version: int) -> Group:
    """The head group of a compaction: standing instructions, what else it carried (the user's words), its summary. What
    changes least comes first, so that it stays in the provider's cache."""
    carried = [_carried_entry(item, event.at) for item in event.carried]
    standing = [entry for entry in carried if entry.standing]
    others = [entry for entry in carried if not entry.standing]
    return Group(entries=(*standing, *others, summary_entry(event, version)))


def _carried_entry(item: Carried, at: float) -> Entry:
    entry = Entry(
        version=item.version,
        at=at,
        block=item.block,
        path=_named(item.block, item.ordinal, item.version),
        place=Place.CARRIED,
        replacement=item.clipped or None,
        state=FoldState(),
    )
    hidden = Hidden(block=item.block.id, replacement=item.clipped)
    return _masked(entry, Mask(hidden, "requested")) if item.withheld else entry


def _named(block: Block, ordinal: int, version: int) -> str:
    return path_of(block, ordinal) if ordinal else path_at(block, version)


def summary_entry(event: RangeCompacted, version: int) -> Entry:
    """The summary as an entry, before all other versions."""
    return Entry(
        version=0,
        at=event.at,
        block=event.summary,
        path=_named(event.summary, event.ordinal, version),
        place=Place.USER,
        state=FoldState(),
    )


# Hidden blocks.


LADDER: Final[frozenset[HideReason]] = frozenset({"externalized", "cleared", "dropped"})
"""The reasons with which rungs of a compaction hide blocks."""


@attrs.frozen
class Mask:
    """The text that is shown instead of a block, and the reason."""

    hidden: Hidden
    reason: HideReason


Replacements: TypeAlias = Mapping[BlockId, Mask | None]
"""The mask by block id; None: the block itself is shown."""


def rehide(group: Group, replacements: Replacements) -> Group:
    """The group with these blocks hidden, or shown if the mask is None; the same object if nothing changes."""
    ids = group.memo("ids", lambda: frozenset(entry.block.id for entry in group.entries))
    if ids.isdisjoint(replacements):
        return group
    return rehide_at(group, range(len(group.entries)), replacements)


def rehide_at(group: Group, places: Iterable[int], replacements: Replacements) -> Group:
    """As `rehide`, for known indices of its entries."""
    entries = list(group.entries)
    for place in places:
        entries[place] = _rehide_entry(entries[place], replacements)
    if all(new is old for new, old in zip(entries, group.entries, strict=True)):
        return group
    return attrs.evolve(group, entries=tuple(entries))


def _rehide_entry(entry: Entry, replacements: Replacements) -> Entry:
    if entry.block.id not in replacements:
        return entry
    mask = replacements[entry.block.id]
    new = _masked(entry, mask) if mask is not None else _unmasked(entry)
    return entry if _mask_of(new) == _mask_of(entry) else new


def _mask_of(entry: Entry) -> tuple[object, ...]:
    shown = (entry.block, entry.original, entry.replacement, entry.ends)
    return *shown, entry.hidden_as, entry.artifact, entry.dropped


def _unmasked(entry: Entry) -> Entry:
    return replace(
        entry,
        block=entry.source,
        original=None,
        replacement=None,
        hidden_as=None,
        artifact=NO_ARTIFACT,
        dropped=None,
        ends=(0, 0),
    )


def _masked(entry: Entry, mask: Mask) -> Entry:
    """The entry with its replacement.

    A block hidden on request leaves the view completely, even if a later event also hides it, so stages can
    quote only its replacement.
    """
    text, is_requested = mask.hidden.replacement, mask.reason == "requested"
    return replace(
        entry,
        block=stand_in(entry.source, text) if is_requested else entry.block,
        original=entry.source if is_requested else entry.original,
        replacement=text,
        hidden_as=mask.reason,
        artifact=NO_ARTIFACT if is_requested else mask.hidden.artifact,
        dropped=mask.hidden.dropped,
        ends=(0, 0) if is_requested else (mask.hidden.head, mask.hidden.tail),
    )


def unbind(group: Group, first: int) -> Group:
    """The group after a change of how the block of version `first` is shown, which later thinking does not match."""
    if not any(_is_behind(entry, first) for entry in group.entries):
        return group
    entries = (
        replace(entry, unbound=True) if _is_behind(entry, first) else entry
        for entry in group.entries
    )
    return attrs.evolve(group, entries=tuple(entries))


def _is_behind(entry: Entry, first: int) -> bool:
    is_thinking = isinstance(entry.block, AssistantThinking)
    return is_thinking and entry.version > first and not entry.unbound


# What is shown of a hidden block.


_ADDRESS: Final[tuple[str, ...]] = ("id", "turn", "author", "response")
"""Fields of an unknown block that say where it belongs, without its content."""


def as_shown(group: Group) -> Group:
    """The group with its hidden blocks replaced; the group itself if nothing in it is hidden."""
    return group.memo("as shown", lambda: _replaced(group)) if group.is_hidden else group


def _replaced(group: Group) -> Group:
    gone = _gone(group)
    return attrs.evolve(group, entries=tuple(_shown_entry(entry, gone) for entry in group.entries))


def _gone(group: Group) -> set[str]:
    """Calls that are not shown, by their id on the wire: neither the call nor its result has a replacement. If only one
    of the two has none, both stay, because a pair is complete or absent."""
    calls = {e.pair for e in group.placed[Place.RESPONSE] if e.pair and _is_nothing(e)}
    results = {e.pair: _is_nothing(e) for e in group.placed[Place.RESULT]}
    return {pair for pair in calls if results.get(pair, True)}


def _is_nothing(entry: Entry) -> bool:
    return entry.replacement == "" or entry.dropped is not None


def _shown_entry(entry: Entry, gone: set[str]) -> Entry:
    text = _shown_text(entry)
    if text is None:
        return entry if entry.opened is None else replace(entry, block=entry.opened)
    if isinstance(entry.block, AssistantThinking):  # verbatim or absent
        return replace(entry, place=Place.SILENT)
    is_whole = entry.pair in gone or not isinstance(entry.block, ToolCall | ToolResult)
    if text and entry.dropped and is_whole:
        notice = SystemMessage(id=entry.block.id, turn=entry.block.turn, text=text)
        return replace(entry, block=notice, place=Place.USER, replacement=None)
    if not text and is_whole:
        return replace(entry, place=Place.SILENT)
    return replace(entry, block=stand_in(entry.block, text), replacement=None)


def _shown_text(entry: Entry) -> str | None:
    """The replacement, between the ends of the content that are shown with it."""
    head, tail = entry.ends
    if entry.opened is None or not (head or tail):
        return entry.replacement
    text = text_of(entry.opened)
    return f"{text[:head]}{entry.replacement or ''}{text[len(text) - tail :]}"


def stand_in(block: Block, text: str) -> Block:
    """A block of the same kind with only `text` as content: a call keeps its name, a result its outcome, and a pair
    stays complete. Thinking is verbatim or absent."""
    match block:
        case ToolCall():
            return replace(block, input={"hidden": text}, provider={})
        case ToolResult():
            envelope = replace(block.envelope, key_fields={})
            parts = (TextPart(text=text),)
            return replace(block, parts=parts, envelope=envelope, artifact=ArtifactId(""))
        case UserAttachment():
            return replace(
                block, part=TextPart(text=text), name="hidden"
            )  # it may say what is hidden
        case AssistantThinking():
            return replace(block, provider={})
        case TurnHeader() | RangeSummary():
            return block  # never hidden
        case OpaqueBlock():
            kept = {name: block.fields[name] for name in _ADDRESS if name in block.fields}
            return OpaqueBlock(block.tag, {**kept, "text": text})
        case _:
            return _with_text(block, text)


def _with_text(block: Block, text: str) -> Block:
    if isinstance(block, OpaqueBlock):
        return block
    nothing: dict[str, object] = {"parts": (), "provider": {}}
    changes = {name: nothing[name] for name in nothing if name in block.__struct_fields__}
    return replace(block, text=text, **changes)
