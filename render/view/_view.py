"""The view: the state of the log from the latest summary onward, and the part of it that is shown.

An *entry* is a block with its place in the log. A *group* is one round (all blocks of one model response, and the results
of its calls) with whatever followed until the next response: user texts, notices. The blocks before the first response
are a group without a round. Groups are the unit of work: a group that no event changed is the same object as in the
last render, with all values computed for it (messages, tokens). So a render costs what is new, not what is
visible.

A response is placed after the request that it answers. A block that was appended after that request was
rendered was not part of it, so it is shown after the response, in the round that the response begins. A
result of a call that the request had shown as interrupted is late, and is marked as such.

    log      prompt  [request]  steer  answer  result
    shown    prompt             answer  result  steer

What is hidden is replaced where its group is shown, by `as_shown`: the block then has the replacement as its only
content, and a hidden tool result stays a tool result. (`_fold` has the events that hide.) What is shown with a label is
`quoted` between tags.

A view finds calls, ids and paths in a *registry*, so that nothing searches the window. Consecutive views share one
registry, and the fold of the next block extends it. If another view has already continued from the same start (for
example, a trial view that was dropped), the registry is rebuilt from the view's entries.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Sized
from enum import Enum
from functools import cached_property
from hashlib import sha256
from itertools import compress, count
from operator import attrgetter, is_not
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar, cast

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
    DroppedSpan,
    Event,
    FoldState,
    HideReason,
    Naming,
    Note,
    OpaqueBlock,
    Plan,
    RangeCompacted,
    RangeSummary,
    Recorded,
    SummaryPrepared,
    SummaryReplaced,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UserAttachment,
    label_of,
    path_at,
    path_of,
    standing_of,
    tag_of,
    text_of,
)

NO_TURN = TurnId("")

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


class RequestRef(Struct, frozen=True, kw_only=True):
    """The request that a response answers."""

    sent: str
    """Hash of the request; empty: not recorded."""
    start: int
    """Version of the first block of the response."""

    @property
    def is_unknown(self) -> bool:
        """Whether it was none of those that are recorded."""
        return self.sent == Answered.UNKNOWN


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
    request: RequestRef | None = None
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
    request: RequestRef | None = None
    """The request that the newest response of the group answers."""
    stale: bool = False
    """Whether the content before the response is not what that request showed."""
    values: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)
    """Values computed for it so far; see `memo`."""

    def memo(self, key: object, make: Callable[[], _T]) -> _T:
        """The value that `make` returned at the first call with this key."""
        try:
            value: _T = self.values[key]
        except KeyError:
            value = self.values[key] = make()
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
        return {key: e for e in reversed(self.entries) for key in (e.block.id, e.path)}

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
            same.values.update(self.values)  # it is shown as before
            return same
        pairs = {e.pair for e in self.placed[Place.RESPONSE] if e.pair and e.version <= shown}
        entries = (
            replace(entry, place=Place.LATE, pair="")
            if entry.place is Place.RESULT and entry.version > shown and entry.pair in pairs
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

    _chains: dict[Any, tuple[Any, Sequence[Any], tuple[Any, ...]]] = attrs.field(
        factory=dict[Any, tuple[Any, Sequence[Any], tuple[Any, ...]]], init=False, repr=False
    )
    """By key: what the last query began with, its groups or pieces, and the value for each."""

    def each(
        self, key: object, groups: Sequence[Group], find: Callable[[Group], _T]
    ) -> tuple[_T, ...]:
        """The value of `find` for each group."""
        none: Any = None
        return self.chained(key, groups, none, lambda _, group: find(group))

    def chained(
        self, key: object, items: Sequence[_I], start: _T, link: Callable[[_T, _I], _T]
    ) -> tuple[_T, ...]:
        """The value of `link` for each item, given its value for the previous item."""
        old: Sequence[_I]
        values: tuple[_T, ...]
        old_start, old, values = self._chains.get(key, (start, (), ()))
        if old_start != start:
            old, values = (), ()
        if old != items:
            new = list(values[: _same(old, items)])
            for item in items[len(new) :]:
                new.append(link(new[-1] if new else start, item))
            values = tuple(new)
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
        case OpaqueBlock() if not block.text and verbatim(block) is None:
            return Place.SILENT
        case _:
            return Place.RESPONSE if block.author == "assistant" else Place.USER


# What is shown of a hidden block.


_ADDRESS: Final[tuple[str, ...]] = ("id", "turn", "author", "response")
"""Fields of an unknown block that say where it belongs, without its content."""


def as_shown(group: Group) -> Group:
    """The group with its hidden blocks replaced; the group itself if nothing in it is hidden."""
    return group.memo("as shown", lambda: _replaced(group)) if group.is_hidden else group


def _replaced(group: Group) -> Group:
    absent = _absent_pairs(group)
    return attrs.evolve(group, entries=tuple(_shown_entry(e, absent) for e in group.entries))


def _absent_pairs(group: Group) -> set[str]:
    """Calls that are not shown, by their id on the wire: neither the call nor its result has a replacement. If only one
    of the two has none, both stay, because a pair is complete or absent."""
    calls = {e.pair for e in group.placed[Place.RESPONSE] if e.pair and _is_nothing(e)}
    results = {e.pair: _is_nothing(e) for e in group.placed[Place.RESULT]}
    return {pair for pair in calls if results.get(pair, True)}


def _is_nothing(entry: Entry) -> bool:
    return entry.replacement == "" or entry.dropped is not None


def _shown_entry(entry: Entry, absent_pairs: set[str]) -> Entry:
    text = _shown_text(entry)
    if text is None:
        return entry if entry.opened is None else replace(entry, block=entry.opened)
    if isinstance(entry.block, AssistantThinking):  # verbatim or absent
        return replace(entry, place=Place.SILENT)
    is_whole = entry.pair in absent_pairs or not isinstance(entry.block, ToolCall | ToolResult)
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
            # Its name may say what is hidden.
            return replace(block, part=TextPart(text=text), name="hidden")
        case AssistantThinking():
            return replace(block, provider={})
        case TurnHeader() | RangeSummary():
            return block  # never hidden
        case OpaqueBlock():
            address = {name: block.fields[name] for name in _ADDRESS if name in block.fields}
            return OpaqueBlock(block.tag, {**address, "text": text})
        case _:
            nothing: dict[str, object] = {"parts": (), "provider": {}}
            changes = {name: nothing[name] for name in nothing if name in block.__struct_fields__}
            return replace(block, text=text, **changes)


# Quoting text between tags that the text cannot close.
#
#     <summary-204 version="5">
#     ... </summary> ... </summary-118> ...
#     </summary-204>
#
# The *mark* behind the tag's name is taken from the hash of the text, and is one that does not occur in the text. So whatever a
# tool or a web page writes is not the closing tag, and nothing in it has to be found and rewritten: a text is quoted to the
# letter. The same text has the same mark, so that a request stays in the cache.


MARK_DIGITS: Final = 3
"""Of a mark, one token, unless the text has it: a long text, or one that guesses, has a longer mark."""
_BREAKING: Final = re.compile(
    '[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029"“”„‟″＂<>‹›〈〉《》«»﹤﹥＜＞]|&(?=#|quot|[lg]t)',
    re.IGNORECASE,
)
"""What could end an attribute's quotation marks, or its tag, or is read as a character that could."""


def quoted(tag: str, text: str, **attributes: str) -> str:
    """The text between an opening and a closing tag, each on its own line."""
    name = f"{tag}-{_mark(text)}"
    fields = "".join(f' {key}="{_BREAKING.sub("_", value)}"' for key, value in attributes.items())
    return f"<{name}{fields}>\n{text}\n</{name}>"


def _mark(text: str) -> str:
    """The shortest beginning of the text's hash, as a number, that does not occur in the text."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    digits = str(int(sha256(text.encode(errors="surrogatepass")).hexdigest(), 16))
    ends = range(MARK_DIGITS, len(digits) + 1)
    return next(digits[:end] for end in ends if digits[:end] not in plain)


# The registry.


@attrs.define(eq=False)
class Registry:
    """The lookup tables of all entries up to one version."""

    naming: Naming = attrs.field(factory=Naming)
    """Gives the next block its path."""
    pairs: set[str] = attrs.field(factory=set[str], init=False)
    """Every id that a call has on the wire."""
    turns: dict[CallId, TurnId] = attrs.field(factory=dict[CallId, TurnId], init=False)
    """By call id: the turn of the newest such call."""
    open_turns: dict[CallId, list[TurnId]] = attrs.field(
        factory=dict[CallId, list[TurnId]], init=False
    )
    """By call id: the turns of the calls without a result, the newest last."""
    unanswered: dict[CallId, int] = attrs.field(factory=dict[CallId, int], init=False)
    """By call id: calls less results."""
    answered: dict[CallId, int] = attrs.field(factory=dict[CallId, int], init=False)
    """By call id: the version of the newest result."""
    responses: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    """By response id: the version of its newest event."""
    sources: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    """By the foreign id of a block: the version of the newest such block."""
    paths: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    """By path: the version of the oldest entry with it."""
    blocks: dict[BlockId, list[int]] = attrs.field(factory=dict[BlockId, list[int]], init=False)
    """By block id: the versions; a broken log may have several."""

    # About the newest group.
    is_calling: bool = attrs.field(default=False, init=False)
    """Whether it contains a call."""
    is_answered: bool = attrs.field(default=False, init=False)
    """Whether it contains a block of another author after its first block by the model."""
    _has_begun: bool = attrs.field(default=False, init=False)
    """Whether it contains a block by the model."""
    _waiting: dict[CallId, deque[tuple[int, str]]] = attrs.field(
        factory=dict[CallId, deque[tuple[int, str]]], init=False
    )
    """By call id: versions and wire ids of the calls without a result, oldest first."""

    _newest: dict[int, bool] = attrs.field(factory=lambda: {0: True}, init=False)
    """The version of the newest entry; empty while it is being extended."""

    @classmethod
    def of(cls, groups: Iterable[Group], naming: Naming) -> Self:
        """The registry of these groups; `naming` is the state before them."""
        registry = cls(naming=naming)
        registry.claim(0)
        last = 0
        for group in groups:
            registry.begin_group()
            for entry in group.entries:
                naming.path(entry.source, entry.version)
                registry.add(entry)
                last = entry.version
        registry.release(last)
        return registry

    def is_of(self, newest: int) -> bool:
        """Whether it has all entries up to version `newest`, and no others."""
        return newest in self._newest

    def claim(self, newest: int) -> bool:
        """Take the registry to add entries after this version; False if another thread or view has taken
        it."""
        return self._newest.pop(newest, False)

    def release(self, newest: int) -> None:
        """Return the registry; `newest` is now its newest version."""
        self._newest[newest] = True

    # Adding.

    def begin_group(self) -> None:
        """Begin a new group: later entries belong to it."""
        self.is_calling = self.is_answered = self._has_begun = False
        self._waiting.clear()

    def pair(self, version: int, block: Block, place: Place, sealed: int) -> tuple[Place, str]:
        """The place of a block in the newest group, and the id that joins it to its call or result; calls up to the
        version `sealed` were shown as interrupted."""
        if isinstance(block, ToolCall):
            return place, _free_pair(block.call_id, version, self.pairs)
        if not isinstance(block, ToolResult):
            return place, ""
        call = self.waiting(block.call_id, sealed)
        if call is not None and not self._is_for_another(block):
            return Place.RESULT, call
        return (Place.LATE if block.call_id in self.turns else Place.ORPHAN), ""

    def _is_for_another(self, result: ToolResult) -> bool:
        """Whether a result belongs to an older turn, which has a call of this id without a result."""
        turns = self.open_turns.get(result.call_id, [])
        return result.turn in turns and turns[-1] != result.turn

    def add(self, entry: Entry) -> None:
        """Record the next entry of the newest group."""
        block, version = entry.block, entry.version
        self.paths.setdefault(entry.path, version)
        self.blocks.setdefault(block.id, []).append(version)
        if entry.place not in (Place.RESPONSE, Place.SILENT):
            self.is_answered = self._has_begun
        self._has_begun = self._has_begun or entry.place is Place.RESPONSE
        if response := response_of(block):
            self.responses[response] = version
        if block.source:
            self.sources[block.source] = version
        if isinstance(block, ToolResult) and entry.place is not Place.ORPHAN:
            self.unanswered[block.call_id] = self.unanswered.get(block.call_id, 0) - 1
            self.answered[block.call_id] = version
            turns = self.open_turns.get(block.call_id)
            if turns:
                turns.remove(block.turn if block.turn in turns else turns[-1])
        if isinstance(block, ToolCall):
            self.unanswered[block.call_id] = self.unanswered.get(block.call_id, 0) + 1
            self.is_calling = True
            self.pairs.add(entry.pair)
            self.turns[block.call_id] = block.turn
            self.open_turns.setdefault(block.call_id, []).append(block.turn)
            self._waiting.setdefault(block.call_id, deque()).append((version, entry.pair))
        elif entry.place is Place.RESULT and isinstance(block, ToolResult):
            calls = self._waiting.get(block.call_id, deque())
            while calls and calls.popleft()[1] != entry.pair:
                pass  # a call that was shown as interrupted

    # Finding.

    def joins(self, group: Group, block: Block) -> bool:
        """Whether a block of the model belongs to the newest group, `group`, instead of beginning a round.

        Blocks of one response do, even after a result of one of its earlier calls (logs interleave parallel
        calls). Without a response id, a block does unless a block of another author has followed the
        model's first one.
        """
        if group.round == 0 or group.sealed:
            return False
        response = response_of(block)
        if response or group.response:
            return response == group.response
        return not self.is_answered

    def waiting(self, call_id: CallId, after: int) -> str | None:
        """The wire id of the group's oldest call of this id without a result, or None. Calls up to version
        `after` were shown as interrupted and no longer count."""
        calls = self._waiting.get(call_id)
        while calls and calls[0][0] <= after:
            calls.popleft()
        return calls[0][1] if calls else None

    def version_of(self, key: str) -> int:
        """The version of the oldest entry with this path or block id; 0: there is none."""
        versions = [
            *self.blocks.get(BlockId(key), ())[:1],
            *([self.paths[key]] if key in self.paths else []),
        ]
        return min(versions, default=0)


def _free_pair(call_id: str, version: int, taken: Container[str]) -> str:
    """The call's own id, made unique by the version of its block."""
    own = pair = call_id or "call"
    for attempt in count(1):  # more than once only if a given id looks like a generated one
        if pair not in taken:
            break
        pair = f"{own}_{version}_{attempt}" if attempt > 1 else f"{own}_{version}"
    return pair


# The view.


def path_in(block: Block, ordinal: int, version: int) -> str:
    """The path of a block with this ordinal; without one, by its version."""
    return path_of(block, ordinal) if ordinal else path_at(block, version)


def summary_entry(event: RangeCompacted, version: int) -> Entry:
    """The summary as an entry, before all other versions."""
    return Entry(
        version=0,
        at=event.at,
        block=event.summary,
        path=path_in(event.summary, event.ordinal, version),
        place=Place.USER,
        state=FoldState(),
    )


@attrs.frozen(kw_only=True)
class Compaction:
    """The compaction in force, with its summary and carried blocks."""

    version: int
    event: RangeCompacted = attrs.field(repr=False)
    head: Group = attrs.field(repr=False)
    """The summary and the carried blocks."""

    @property
    def naming(self) -> Naming:
        """The state for naming the blocks since its cut."""
        return Naming(self.event.state, self.version)

    def rewritten(self, event: SummaryReplaced) -> "Compaction":
        """The compaction with another summary."""
        changed = replace(self.event, summary=event.summary, provenance=event.provenance)
        summary = summary_entry(changed, self.version)
        entries = (
            summary if isinstance(entry.block, RangeSummary) else entry
            for entry in self.head.entries
        )
        group = attrs.evolve(self.head, entries=tuple(entries))
        return attrs.evolve(self, event=changed, head=group)


@attrs.frozen(kw_only=True)
class View:
    """An immutable fold of the events that still matter; every stage returns a new one.

    A stage that *decides* something calls `decide`, which records the event, so that the next render starts
    from it. A stage that only changes what is *shown* leaves no trace here.
    """

    version: int = 0
    compaction: Compaction | None = None
    groups: tuple[Group, ...] = attrs.field(default=(), repr=number)
    state: FoldState = attrs.field(factory=FoldState, repr=False)
    turn: TurnId = NO_TURN
    """The current turn."""
    turn_start: int = 0
    """Version of its first block in the view."""
    registry: Registry = attrs.field(factory=Registry, eq=False, repr=False)
    """The registry of ids and paths; shared with earlier and later views."""
    bound: tuple[int, ...] = attrs.field(default=(), repr=number)
    """Versions of the thinking before which nothing was rewritten."""
    pictured: int = 0
    """Version of the newest block with an image; 0: there is none."""
    thought: int = 0
    """Version of the newest thinking; 0: there is none."""
    prepared: tuple[SummaryPrepared, ...] = attrs.field(default=(), repr=number)
    """Summaries that were paid for and may still be used, newest last."""
    compacted: int = 0
    """Version of the newest event of a compaction, of any rung."""
    rewritten: int = 0
    """Version of the latest event that changed what had been shown before."""
    summarised: int = 0
    """Version of the latest compaction by the provider itself; blocks before it are no longer shown, because the
    provider would refuse or ignore them."""
    events_since_cut: tuple[Recorded, ...] = attrs.field(default=(), repr=False)
    """Every event since the cut, from which the next compaction builds its view."""
    decisions: tuple[Event, ...] = attrs.field(default=(), repr=number)
    """Events decided since the last commit."""
    group_memo: GroupMemo = attrs.field(factory=GroupMemo, eq=False, repr=False)
    """Values computed for the groups; passed on from view to view."""
    shared: dict[Any, Any] = attrs.field(factory=dict[Any, Any], eq=False, repr=False)
    """Values passed from view to view by key, even across compactions, for example the vocabulary."""

    @property
    def entries(self) -> Sequence[Entry]:
        """Everything from the cut on, in log order."""
        return [entry for group in self.groups for entry in group.entries]

    @cached_property
    def shown(self) -> "Shown":
        """What is shown of the view: everything from the latest summary on."""
        head = (self.compaction.head,) if self.compaction else ()
        groups = self.groups
        if self.summarised:
            head, groups = (), _since(groups, self.summarised)
        unopened = sum(1 for group in groups[:1] if not group.round)  # only the first can
        return Shown(
            groups=(*head, *groups),
            turn_start=self.turn_start,
            tail=self.state.tail,
            tail_before=self.state.tail_before,
            rounds=len(groups) - unopened,
            group_memo=self.group_memo,
        )

    def find(self, key: str) -> Entry | None:
        """The entry with this path or block id: the summary, a carried block, or the oldest entry from the cut on."""
        head = self.compaction.head.find(key) if self.compaction else None
        if head is not None:
            return head
        version = self._current_registry.version_of(key)
        if not version:
            return None
        group = self.groups[bisect_left(self.groups, version, key=attrgetter("last"))]
        return group.entries[group.place_of(version)]

    @property
    def new_turn(self) -> TurnId:
        """An unused name for a turn."""
        return TurnId(f"t{max(self.state.turns, self._current_registry.naming.last_turn) + 1}")

    def turn_of(self, call_id: CallId) -> TurnId | None:
        """The turn of the newest call of this id without a result, or else of the newest call of this id."""
        waiting = self._current_registry.open_turns.get(call_id)
        return waiting[-1] if waiting else self._current_registry.turns.get(call_id)

    def unanswered(self, call_id: CallId) -> int | None:
        """How many calls of this id have no result; None: there is no such call."""
        return self._current_registry.unanswered.get(call_id)

    def answered_at(self, call_id: CallId) -> int:
        """Version of the newest result of a call with this id; 0: there is none."""
        return self._current_registry.answered.get(call_id, 0)

    def recorded_at(self, response: str) -> int:
        """Version of the newest event of the response with this id; 0: there is none."""
        return self._current_registry.responses.get(response, 0)

    def sourced_at(self, source: str) -> int:
        """Version of the newest block from the foreign message or item with this id; 0: there is none."""
        return self._current_registry.sources.get(source, 0)

    def own_registry(self) -> Registry:
        """The registry, to extend this view; it must be released afterwards."""
        if self.registry.claim(self._newest):
            return self.registry
        registry = self._registered()
        registry.claim(self._newest)
        return registry

    @property
    def _current_registry(self) -> Registry:
        return self.registry if self.registry.is_of(self._newest) else self._registered()

    def _registered(self) -> Registry:
        return Registry.of(self.groups, self.compaction.naming if self.compaction else Naming())

    @property
    def _newest(self) -> int:
        return self.groups[-1].last if self.groups else 0

    def settled(self) -> "View":
        """The view after its decisions are committed: the same, without decisions."""
        return attrs.evolve(self, decisions=()) if self.decisions else self


@attrs.frozen(kw_only=True)
class Shown:
    """The blocks that the model will see: the input of the stages after the decisions."""

    groups: tuple[Group, ...]
    turn_start: int
    """Version of the first block of the current turn."""
    tail: int
    """Version of the block that carried the last request's tail cache point; 0: none."""
    tail_before: int
    """The tail before that, of the latest request with a different tail; 0: none."""
    rounds: int
    """Rounds in `groups`."""
    group_memo: GroupMemo = attrs.field(repr=False)
    """The memo of the view; see `View.group_memo`."""


def _since(groups: tuple[Group, ...], version: int) -> tuple[Group, ...]:
    """The groups from the block of this version on."""
    index = bisect_left(groups, version, key=attrgetter("last"))
    first, later = groups[index], groups[index + 1 :]
    entries = (entry for entry in first.entries if entry.version >= version)
    since = first.memo(("since", version), lambda: attrs.evolve(first, entries=tuple(entries)))
    return since, *later
