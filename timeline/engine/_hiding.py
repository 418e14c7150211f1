"""Hiding and restoring blocks on request, in a timeline and in its forks.

What is decided is a pure function of a view and its log. If a block is hidden while it is visible, nothing later can
quote it, because the view holds only its replacement.  If a compaction has already folded it, or a rung has quoted it
in a pointer, the quotations are removed: the summary in force, and the texts of pointers and dropped spans, are
replaced by what they say without the block.  A past view, and a fork that begins there, are decided upon in the same
way: what is hidden now is hidden in them, too.  `without_hidden` makes a log that may be shown to others.

Quotations are found by their characters, because a model's prose does not name its sources, and what is to be
hidden may be in any alphabet, and cut anywhere:

    mark        eight characters in a row, or a shorter word
    quotation   a stretch of a quoting text in which every mark is one of a hidden block
    cleared     a quotation that a visible block contains as a whole

The sentence, the line or the list entry with a quotation that is not cleared is removed, and all of the text if that is
not enough. So a text loses only what no visible block says. A summary is not written anew instead: the pages before it
would have to be, too, whose blocks may be stored no more, and what a model wrote of all other blocks would be lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar, cast

import attrs
import msgspec
from msgspec.structs import replace

from blocks import (
    ArtifactId,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    Carried,
    CompactionSkipped,
    DocumentPart,
    DroppedSpan,
    Envelope,
    Event,
    EventId,
    Finding,
    Hidden,
    HideReason,
    ImagePart,
    Naming,
    OpaqueBlock,
    OpenItem,
    ProviderPart,
    RangeCompacted,
    RangeSummary,
    Recorded,
    Region,
    SummaryPrepared,
    SummaryReplaced,
    ToolCall,
    ToolResult,
    UserAttachment,
    artifact_id,
    images_of,
    label_of,
    leaves,
    path_at,
    path_stem,
    text_of,
    withheld_after,
    withheld_in,
)
from render import Compaction, Entry, View, decide, stand_in
from timeline._flow_drivers import Flow

if TYPE_CHECKING:
    from timeline.engine._engine import Engine


_T = TypeVar("_T")
_Shown = TypeVar("_Shown", Entry, Hidden)

REPLACEMENT: Final = "[hidden on request]"
"""The default text in place of a hidden block."""


def hide(engine: Engine, keys: Sequence[str], text: str | None) -> Flow[int]:
    """Hide blocks, named by path or id, behind a text, and remove quotations of them; None: show them again, and restore
    the quotations of them in the current summary.

    Raises:
        UnknownPathError: a key names no block.
    """
    engine.check_open()
    return (yield from engine.repeated(_settled, engine, keys, text))


def _settled(engine: Engine, keys: Sequence[str], text: str | None) -> Flow[int]:
    """Hide or show the blocks. Those that are newer than the newest compaction are not quoted anywhere, so nothing is
    read for them."""
    targets = yield from targets_of(engine, keys)
    hidden = [
        Hidden(block=block.id, replacement=text, artifact=content_id(block))
        for _, block in targets
        if text is not None
    ]
    restored = [block.id for _, block in targets] if text is None else []
    before, after = engine.view, changed(engine.view, hidden, restored, engine.clock())
    is_quoted = any(version < after.compacted for version, _ in targets)
    if is_quoted and after.state.withheld != before.state.withheld:
        log = yield from engine.events()
        after = without_quotes(after, log, engine.clock())
    return (yield from engine.settle(after))


def inherit(engine: Engine, hides: Hides, *, exactly: bool) -> Flow[None]:
    """Hide the blocks of a fork that are hidden in the timeline that it continues, in one commit; with `exactly`, also
    show those that are shown there, and without, also hide those that say the same."""

    def settled() -> Flow[None]:
        current = engine.view.state.withheld
        if not hides.by_block and not (exactly and current):
            return
        log, now = (yield from engine.events()), hides.by_block
        if not exactly:
            blocks = [block for _, block in blocks_of(log)]
            again = hides.again(blocks, {block.id for block in blocks})
            before = {block: Hidden(block=block) for block in current}
            now = {**{item.block: item for item in again}, **before, **now}
            if now.keys() == current.keys():
                return
        yield from engine.settle(withheld_as(engine.view, log, now, engine.clock()))

    yield from engine.repeated(settled)


def hides_of(engine: Engine) -> Flow[Hides]:
    """What is hidden on request in a timeline."""
    return Hides.of((yield from engine.events())) if engine.view.state.withheld else Hides()


def targets_of(engine: Engine, keys: Sequence[str]) -> Flow[list[tuple[int, Block]]]:
    """The blocks with these paths or ids as they were appended, with their versions, whether visible or folded; if some
    are folded, the log is read once."""
    targets = list[tuple[int, Block]]()
    folded: Mapping[str, tuple[int, Block]] | None = None
    for key in dict.fromkeys(keys):
        entry = engine.view.find(key)
        if entry is not None and entry.version:
            targets.append((entry.version, entry.source))
            continue
        if folded is None:
            folded = _by_name((yield from engine.events()))
        target = folded.get(key) or folded.get((yield from engine.read(key)).id)
        if target is None:  # a summary; it cannot be hidden
            raise (yield from engine.unknown(key))
        targets.append(target)
    return targets


def _by_name(log: Sequence[Recorded]) -> Mapping[str, tuple[int, Block]]:
    """The blocks of a log by id, path and label; without paths if the beginning of the log is not stored any more."""
    targets: dict[str, tuple[int, Block]] = {}
    naming = Naming() if log and log[0][0] == 1 else None
    for version, event in log:
        if isinstance(event, BlockAppended):
            block = event.block
            path = naming.path(block, version) if naming else path_at(block, version)
            for name in (block.id, path, path_at(block, version), label_of(version)):
                targets.setdefault(name, (version, block))
    return targets


def content_id(block: Block) -> ArtifactId:
    """The id of the artifact that holds a result's content when it is externalized; empty for other blocks."""
    if not isinstance(block, ToolResult):
        return ArtifactId("")
    return block.artifact or artifact_id(text_of(block).encode(errors="surrogatepass"))


# What is decided.


FORGOTTEN: Final = "[forgotten on request]"
"""The text in place of a forgotten block, also in the log."""


@attrs.frozen(kw_only=True)
class Hides:
    """What is hidden on request in a timeline, for those that continue it."""

    by_block: Mapping[BlockId, Hidden] = attrs.field(factory=dict[BlockId, Hidden])
    by_content: Mapping[bytes, Hidden] = attrs.field(factory=dict[bytes, Hidden])
    """The same by what the blocks say and no visible block does, because a program that goes back and on again sends
    them once more."""

    @classmethod
    def of(cls, log: Sequence[Recorded]) -> Self:
        """The hides of this log."""
        hidden = withheld_after(log)
        blocks = [block for _, block in blocks_of(log)] if hidden else []
        by_content = {_content(block): hidden[block.id] for block in blocks if block.id in hidden}
        visible = (_content(block) for block in blocks if block.id not in hidden)
        for content in (_NOTHING, *visible):
            by_content.pop(content, None)
        return cls(by_block=hidden, by_content=by_content)

    def __or__(self, other: Self) -> Self:
        return attrs.evolve(
            self,
            by_block={**self.by_block, **other.by_block},
            by_content={**self.by_content, **other.by_content},
        )

    def again(self, blocks: Iterable[Block], there: Collection[BlockId]) -> Iterator[Hidden]:
        """The hides of blocks that say what a hidden block says that is not among those `there`."""
        for block in blocks if self.by_content else ():
            item = self.by_content.get(_content(block))
            if item is None and isinstance(block, ToolResult):  # as the log has a confidential one
                item = self.by_content.get(_content(replace(block, parts=(), envelope=Envelope())))
            if item and item.block not in there:
                yield replace(item, block=block.id)


_NOTHING: Final = msgspec.json.encode(("", "", ()))


def _content(block: Block) -> bytes:
    """What a block says; `_NOTHING`: nothing."""
    call = block.call_id if isinstance(block, ToolCall | ToolResult) else ""
    return msgspec.json.encode((call, said_by(block).strip(), images_of(block)))


def is_forgotten(block: Block) -> bool:
    """Whether only a placeholder of a block is left."""
    return stand_in(block, FORGOTTEN) == block


def withheld_as(
    view: View, log: Sequence[Recorded], now: Mapping[BlockId, Hidden], at: float
) -> View:
    """The view after decisions by which those blocks of its log are hidden on request that are in `now`, and no
    others; `log` has the events up to the view's version."""
    current = view.state.withheld
    if not current and not now:
        return view
    there = {block.id for _, block in blocks_of(log)}
    if not current and there.isdisjoint(now):
        return view
    hidden = [item for block, item in now.items() if block in there and block not in current]
    after = changed(view, hidden, [block for block in current if block not in now], at)
    # Even if nothing changes: the events that removed quotations came after those that hid the blocks.
    return without_quotes(after, log, at)


def changed(view: View, hidden: Sequence[Hidden], restored: Collection[BlockId], at: float) -> View:
    """The view after decisions that hide some blocks on request and show others again."""
    events: list[Event] = []
    if hidden:
        events.append(hiding(at, hidden, "requested"))
        # A dropped span is shown as one line at its first block; that line stays.
        entries = (view.find(item.block) for item in hidden)
        dropped = [as_shown(e, e) for e in entries if e and e.hidden_as == "dropped"]
        events += [hiding(at, dropped, "dropped", redacted=True)] if dropped else []
    if restored:
        events.append(BlocksRestored(id=EventId(""), at=at, blocks=tuple(restored)))
        lines = [*_next_lines(view, frozenset(restored))]
        events += [hiding(at, lines, "dropped", redacted=True)] if lines else []
    return reduce(decide, events, view)


def without_quotes(view: View, log: Sequence[Recorded], at: float) -> View:
    """The view after decisions that remove quotations of what is hidden on request from its summary and from
    replacements, and bring back to the summary those of other blocks; `log` lacks the decisions so far."""
    blocks = dict(blocks_of(log))
    texts = _texts(view, log)
    hidden = {v: b for v, b in blocks.items() if b.id in texts and not is_forgotten(b)}
    is_all = texts.keys() <= {block.id for block in blocks.values()}
    fold = view.compaction
    summary = _written(fold, log if is_all else ()) if fold else None
    quoting = [e for e in view.entries if e.replacement and e.hidden_as not in (None, "requested")]
    parts = [summary, *((entry.replacement, entry.dropped) for entry in quoting)]
    redaction = Redaction(hidden.values(), parts, shown(blocks.values(), texts))
    events: list[Event] = []
    if fold and summary:
        new = _without_quotations(summary, hidden, redaction)
        if new != fold.event.summary:
            events.append(
                SummaryReplaced(
                    id=EventId(""),
                    at=at,
                    compaction=fold.version,
                    summary=new,
                    provenance=fold.event.provenance,
                    redacted=True,
                )
            )
    for reason, entries in groupby(quoting, key=attrgetter("hidden_as")):
        masked = [(e, _masked(e, redaction)) for e in entries]
        differing = [as_shown(entry, left) for entry, left in masked if left is not entry]
        events += [hiding(at, differing, reason, redacted=True)] if reason and differing else []
    return reduce(decide, events, view)


def _texts(view: View, log: Sequence[Recorded]) -> dict[BlockId, str]:
    """What is shown in place of each block that is hidden on request."""
    decided = ((view.version, event) for event in view.decisions)
    now = withheld_in(decided, withheld_after(log))
    return {block: item.replacement for block, item in now.items()}


def _written(compaction: Compaction, log: Sequence[Recorded]) -> RangeSummary:
    """The summary in force as the log has it; without a log as it is now, because quotations of blocks that are not
    stored any more would not be found again."""
    summary = compaction.event.summary
    for version, event in log:
        match event:
            case RangeCompacted() if version == compaction.version:
                summary = event.summary
            case SummaryReplaced(redacted=False) if event.compaction == compaction.version:
                summary = event.summary
            case _:
                pass
    return summary


def hiding(
    at: float, hidden: Sequence[Hidden], reason: HideReason, *, redacted: bool = False
) -> BlocksHidden:
    """The decision to hide these blocks."""
    return BlocksHidden(
        id=EventId(""), at=at, hidden=tuple(hidden), reason=reason, redacted=redacted
    )


def as_shown(entry: Entry, shown: Entry) -> Hidden:
    """The `Hidden` record that makes `entry` appear as `shown` does."""
    return Hidden(
        block=entry.block.id,
        replacement=shown.replacement or "",
        artifact=shown.artifact,
        dropped=shown.dropped,
        head=shown.ends[0],
        tail=shown.ends[1],
    )


def _next_lines(view: View, restored: Collection[BlockId]) -> Iterator[Hidden]:
    """For each dropped span whose first block is restored: the record that moves its line to its next block."""
    line: Entry | None = None
    for entry in view.entries:
        if entry.dropped:
            line = entry if entry.block.id in restored else None
        elif line and line.dropped and entry.version > line.dropped.last:
            line = None
        elif line and entry.hidden_as == "dropped" and entry.block.id not in restored:
            yield as_shown(entry, line)
            line = None


def _masked(item: _Shown, redaction: Redaction) -> _Shown:
    """What is shown of a hidden block, without quotations of other hidden blocks."""
    text, span = redaction.masked(item.replacement or ""), redaction.redacted(item.dropped)
    if text == item.replacement and span == item.dropped:
        return item
    return replace(item, replacement=text, dropped=span)


# A log without what is hidden.


def without_hidden(log: Sequence[Recorded]) -> Sequence[Recorded]:
    """A log that may be shown to others: blocks that are hidden on request are replaced by their texts, and all
    quotations of them are removed."""
    withheld = {block: item.replacement for block, item in withheld_after(log).items()}
    visible = taken_back(log, withheld, withheld)
    return [(version, _nameless(event)) for version, event in visible] if withheld else log


def summary_in(log: Sequence[Recorded], name: BlockId) -> RangeSummary | None:
    """The summary with this id as it was last written; None: there is none."""
    events = (
        event for _, event in reversed(log) if isinstance(event, RangeCompacted | SummaryReplaced)
    )
    return next((event.summary for event in events if event.summary.id == name), None)


def taken_back(
    log: Sequence[Recorded], texts: Mapping[BlockId, str], withheld: Mapping[BlockId, str]
) -> Sequence[Recorded]:
    """A log in which the blocks of `texts` are replaced by these, and quotations of them are removed, even if blocks
    of `withheld`, which others do not see either, say the same."""
    if not texts:
        return log
    blocks = dict(blocks_of(log))
    hidden = {version: block for version, block in blocks.items() if block.id in texts}
    quoting = (part for _, event in log for part in _quoting(event))
    redaction = Redaction(hidden.values(), quoting, shown(blocks.values(), {**withheld, **texts}))
    return [(version, _without(event, hidden, texts, redaction)) for version, event in log]


def blocks_of(log: Sequence[Recorded]) -> Iterator[tuple[int, Block]]:
    """The blocks of a log and their versions; also carried ones that are not stored any more."""
    first = log[0][0] if log else 0
    for version, event in log:
        if isinstance(event, BlockAppended):
            yield version, event.block
        elif isinstance(event, RangeCompacted):
            yield from (
                (each.version, each.block) for each in event.carried if each.version < first
            )


def shown(blocks: Iterable[Block], texts: Mapping[BlockId, str]) -> Iterator[Block]:
    """The blocks, with the replacements of those that have a text."""
    for block in blocks:
        yield stand_in(block, texts[block.id]) if block.id in texts else block


def _without_quotations(
    summary: RangeSummary, hidden: Collection[int], redaction: Redaction
) -> RangeSummary:
    """The summary without what it has of the blocks with these versions, and without other quotations."""
    versions, digest = frozenset(hidden), summary.digest
    regions = tuple(r for r in digest.regions if versions.isdisjoint((r.seen, *r.sources)))
    findings = tuple(each for each in digest.findings if each.version not in versions)
    if held := digest.held:
        left = tuple(each for each in held.findings if each.version not in versions)
        digest = replace(digest, held=replace(held, findings=left))
    rest = replace(digest, regions=regions, findings=findings)
    return redaction.redacted(replace(summary, digest=rest))


def _nameless(event: Event) -> Event:
    """The event without the ids of hidden artifacts, because they are hashes of the content."""
    if not isinstance(event, BlocksHidden) or event.reason != "requested":
        return event
    hidden = (replace(item, artifact=ArtifactId("")) for item in event.hidden)
    return replace(event, hidden=tuple(hidden))


def _quoting(event: Event) -> Iterator[object]:
    """The parts of an event that may quote a block."""
    match event:
        case RangeCompacted():
            yield event.summary
            yield from event.state.ordinals
        case SummaryReplaced() | SummaryPrepared():
            yield event.summary
        case BlocksHidden() if event.reason != "requested":
            yield from ((item.replacement, item.dropped) for item in event.hidden)
        case CompactionSkipped():
            yield event.detail
        case _:
            pass


def _without(
    event: Event, hidden: Collection[int], texts: Mapping[BlockId, str], redaction: Redaction
) -> Event:
    match event:
        case BlockAppended():
            [block] = shown([event.block], texts)
            return replace(event, block=block)
        case RangeCompacted():
            names = event.state.ordinals.items()
            left = {name: number for name, number in names if not redaction.quotes(name)}
            return replace(
                event,
                summary=_without_quotations(event.summary, hidden, redaction),
                carried=tuple(_carried(each, texts) for each in event.carried),
                state=replace(event.state, ordinals=left),
            )
        case SummaryReplaced():
            return replace(event, summary=_without_quotations(event.summary, hidden, redaction))
        case SummaryPrepared():
            return replace(event, summary=redaction.redacted(event.summary))
        case BlocksHidden() if event.reason != "requested":
            return replace(event, hidden=tuple(_masked(item, redaction) for item in event.hidden))
        case CompactionSkipped():
            return replace(event, detail=redaction.masked(event.detail))
        case _:
            return event


def _carried(item: Carried, texts: Mapping[BlockId, str]) -> Carried:
    if item.block.id not in texts:
        return item
    text = texts[item.block.id]
    return replace(item, block=stand_in(item.block, text), clipped=text if item.clipped else "")


# Quotations of hidden blocks.


MASK: Final = "[hidden]"
"""Replaces a sentence or a line that quotes a hidden block."""
MARK_CHARACTERS: Final = 8
"""Characters in a row that make a quotation. A shorter word makes one only as a whole."""
_WORD: Final = re.compile(r"\b\w{4,7}\b")
_ENDS: Final = re.compile(r"(\n+|(?<=[.!?…;])[ \t]+|(?<=[。！？]))")
"""What separates the lines and sentences of a text."""
_MASKS: Final = re.compile(rf"{re.escape(MASK)}(?:\s*{re.escape(MASK)})+")
_CODE: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")
_MARKUP: Final = str.maketrans("", "", "\\*`")
AT_ONCE: Final = 1_000_000
"""Characters of quoting texts whose marks are in memory at the same time, 100 bytes or so for each."""
FEW: Final = 64
"""So many quotations are looked for one by one; more of them all at once, by their first characters."""
_EXEMPT: Final[dict[type, frozenset[str]]] = {
    RangeSummary: frozenset(
        {"id", "turn", "covered_turn_ids", "split_turn_id", "turn_range", "begun_turn_id"}
    ),
    Region: frozenset({"file", "text"}),
    Finding: frozenset({"turn", "kind"}),
    DroppedSpan: frozenset({"turns"}),
    OpenItem: frozenset({"priority"}),
}
"""By record type: fields that say where something is, and texts that are known by their version."""
_UNSAID: Final = frozenset({"id", "turn", "author", "response"})
"""Fields of an unknown block that say where it belongs."""


def said_by(block: Block) -> str:
    """Everything that a block says, without its address."""
    match block:
        case ToolCall():
            return leaves(block.input)
        case ToolResult() if block.artifact:
            return ""  # a placeholder sentence
        case ToolResult():
            texts = [text_of(block), leaves(block.envelope.key_fields)]
        case UserAttachment():
            texts = [block.name, text_of(block)]
        case OpaqueBlock():
            return leaves({k: v for k, v in block.fields.items() if k not in _UNSAID})
        case _:
            texts = [text_of(block)]
    return "\n".join([*texts, *map(_said_by_part, images_of(block))])


def _said_by_part(part: ImagePart | DocumentPart | ProviderPart) -> str:
    """What a part says that its block's text may not have; the data of pictures is never quoted."""
    match part:
        case ProviderPart():
            return leaves(part.value)
        case DocumentPart(media_type="text/plain"):
            return f"{part.name}\n{part.url}\n{part.data}"
        case DocumentPart():
            return f"{part.name}\n{part.url}"
        case ImagePart():
            return part.url


class Redaction:
    """The quotations in quoting records of what only hidden blocks say; `visible` are all blocks as they are shown, hidden
    ones as their replacements."""

    def __init__(
        self, hidden: Iterable[Block], quoting: Iterable[object], visible: Iterable[Block]
    ) -> None:
        hidden_texts = [text for block in hidden if (text := said_by(block))]
        texts = list(dict.fromkeys(_pieces(quoting))) if hidden_texts else []
        self._readings = [_Reading(read, hidden_texts, texts) for read in (_as_written, _as_meant)]
        for text in _visible(visible):
            if self.is_empty:
                break
            for reading in self._readings:
                reading.clear(text)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not any(reading.left for reading in self._readings)

    def quotes(self, text: str) -> bool:
        """Whether a text, or a piece of one, has a quotation that is not cleared."""
        return any(reading.quotes(text) for reading in self._readings)

    def masked(self, text: str) -> str:
        """The text with a mask in place of each sentence or line that quotes a hidden block."""
        if self.is_empty or not self.quotes(text):
            return text
        pieces = (MASK if self.quotes(piece) else piece for piece in _ENDS.split(text))
        left = _MASKS.sub(MASK, "".join(pieces))
        return MASK if self.quotes(left) else left

    def redacted(self, record: _T) -> _T:
        """A record (a summary, a dropped span) with all its texts masked; the same object if nothing
        changes.

        List entries of which only a mask would be left are removed.
        """
        value: object = record
        if isinstance(value, str):
            value = self.masked(value)
        elif isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            new = tuple(n for item in items if not _is_gone(item, n := self.redacted(item)))
            value = items if new == items else new
        elif isinstance(value, msgspec.Struct) and not self.is_empty:
            fields = {name: getattr(value, name) for name in _telling(value)}
            texts = {name: self.redacted(field) for name, field in fields.items()}
            changed: dict[str, Any] = {n: v for n, v in texts.items() if v != fields[n]}
            value = replace(value, **changed) if changed else value
        return cast("_T", value)


def _visible(blocks: Iterable[Block]) -> Iterator[str]:
    """What may be said: what stands for a quotation, and what the blocks say, and are called."""
    yield MASK
    for block in blocks:
        words, text = said_by(block), text_of(block)
        yield from (path_stem(block), words, "" if text in words else text)


class _Wording(NamedTuple):
    """What a text says, in one way of reading it."""

    text: str
    words: Sequence[str] = ()
    """The words that are shorter than a mark."""

    def marks(self) -> Iterator[str]:
        """All that could be a part of a quotation."""
        for start in self.starts:
            yield self.text[start : start + MARK_CHARACTERS]
        yield from self.words

    @property
    def starts(self) -> range:
        return range(len(self.text) - MARK_CHARACTERS + 1)


class _Reading:
    """The quotations in one way of reading texts."""

    def __init__(
        self, read: Callable[[str], _Wording], hidden: Collection[str], texts: Iterable[str]
    ) -> None:
        self._read = read
        self._shared = set[str]()
        for part in _parts(texts) if hidden else ():
            marks = {mark for text in part for mark in read(text).marks()}
            for content in hidden:
                self._shared |= marks.intersection(read(content).marks())
        self.left = {quotation for text in texts for quotation in self._quotations(text)}
        """The quotations that are not cleared."""
        self._cleared = set[str]()
        self._sizes = defaultdict[str, set[int]](set)
        """The lengths of quotations by their first mark."""
        for quotation in self.left:
            self._sizes[quotation[:MARK_CHARACTERS]].add(len(quotation))

    def clear(self, text: str) -> None:
        if not self.left:
            return
        wording = self._read(text)
        if len(self.left) <= FEW:
            quotations = {
                each for each in self.left if len(each) >= MARK_CHARACTERS and each in wording.text
            }
        else:
            quotations = {
                wording.text[start : start + size]
                for start, mark in zip(wording.starts, wording.marks(), strict=False)
                for size in self._sizes.get(mark, ())
            }
        quotations = self.left.intersection(quotations.union(wording.words))
        self.left -= quotations
        self._cleared |= quotations

    def quotes(self, text: str) -> bool:
        return any(quotation not in self._cleared for quotation in self._quotations(text))

    def _quotations(self, text: str) -> Iterator[str]:
        """The longest stretches of a text of which every mark is one of a hidden block."""
        if not self._shared:
            return
        wording = self._read(text)
        marks = zip(wording.starts, wording.marks(), strict=False)
        marked = (start for start, mark in marks if mark in self._shared)
        for _, run in groupby(enumerate(marked), lambda numbered: numbered[1] - numbered[0]):
            starts = [start for _, start in run]
            yield wording.text[starts[0] : starts[-1] + MARK_CHARACTERS]
        yield from self._shared.intersection(wording.words)


def _as_written(text: str) -> _Wording:
    """What a text says, whatever white space it has."""
    return _Wording(" ".join(text.split()))


def _as_meant(text: str) -> _Wording:
    """What a text says without the escapes of JSON, marks of emphasis, white space, case, and forms of one letter."""
    if "\\u" in text:
        decoded = _CODE.sub(lambda code: chr(int(code[1], 16)), text).encode(
            "utf-16", "surrogatepass"
        )
        text = decoded.decode("utf-16", "replace")
    text = text.translate(_MARKUP)
    plain = (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()
    return _Wording("".join(plain.split()), _WORD.findall(plain))


def _is_gone(old: object, new: object) -> bool:
    """Whether a list entry was masked as a whole; for a record, its first text decides."""
    left = getattr(new, _telling(new)[0]) if isinstance(new, msgspec.Struct) else new
    return left == MASK and new != old


def _telling(record: msgspec.Struct) -> list[str]:
    """The names of the fields whose texts may quote a block."""
    exempt = _EXEMPT.get(type(record), frozenset())
    return [name for name in record.__struct_fields__ if name not in exempt]


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in parts of `AT_ONCE` characters or a little more."""
    part, size = list[str](), 0
    for text in texts:
        part.append(text)
        size += len(text)
        if size >= AT_ONCE:
            yield part
            part, size = [], 0
    yield part


def _pieces(records: Iterable[object]) -> Iterator[str]:
    """Every text in these records, and each of its sentences and lines."""
    stack = list(records)
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
            yield from _ENDS.split(value)
        elif isinstance(value, tuple):
            stack += cast("tuple[object, ...]", value)
        elif isinstance(value, msgspec.Struct):
            stack += (getattr(value, name) for name in _telling(value))
