"""The block at a logical path, found in a log that need not fit into memory.

A path is derived (see `blocks.Naming`), either from a version, which is simply read, or from the stem of a block and,
for the second and later blocks with this stem, a number.  A path of the second kind may mean two stems, so blocks of
both are counted from the beginning until one has the path.
The store's block index gives the events that may be relevant.
"""

from collections import Counter
from collections.abc import Iterable

from blocks import (
    AssistantBlock,
    Block,
    BlockAppended,
    OpaqueBlock,
    RangeCompacted,
    RangeSummary,
    Recorded,
    SummaryReplaced,
    TimelineId,
    is_label,
    numbered,
    path_at,
    path_of,
    path_stem,
    turn_in,
    version_in,
)
from persistence._store import EventStore
from persistence.search._index import candidates_in, index_of, names_left


def block_at(store: EventStore, timeline: TimelineId, path: str) -> Block | None:
    """The original block at a path; None if there is none. A summary that was rewritten comes back as rewritten.

    Raises:
        ForgottenError: the block may be among forgotten events.
        ClosedError: the store is closed.
    """
    version = version_in(path)
    if version:
        return _block_of(store, timeline, path, version)
    rest = store.kept(timeline)
    if rest.forgotten:
        for version, block, name in names_left(store, timeline, rest.forgotten):
            if name == path and isinstance(block, RangeSummary):
                return _block_of(store, timeline, path_at(block, version), version)
            if name == path:
                return block
        rest.refuse_forgotten(timeline, 1, f"no block is left at {path!r:.300}")
    return _first(path, index_of(store, timeline).related(timeline, stems_of(path)))


def _block_of(store: EventStore, timeline: TimelineId, path: str, version: int) -> Block | None:
    """The block that this version appended, or the summary that it wrote; None if that has another path."""
    page = store.read(timeline, after=version - 1, limit=1)
    event = page[0][1] if page and page[0][0] == version else None
    if isinstance(event, BlockAppended):
        return event.block if _is_named(event.block, version, path) else None
    if not isinstance(event, RangeCompacted) or not _is_named(event.summary, version, path):
        return None
    stem = path_stem(event.summary)
    later = index_of(store, timeline).related(timeline, (stem,), after=version)
    summary = event.summary
    for _, other in later:
        if isinstance(other, SummaryReplaced) and other.compaction == version:
            summary = other.summary if path_stem(other.summary) == stem else summary
    return summary


def _is_named(block: Block, version: int, path: str) -> bool:
    return is_label(path) or path_at(block, version) == path


def _first(path: str, events: Iterable[Recorded]) -> Block | None:
    """The block at a path; `events` are those of the log that `BlockIndex.related` gives for it.

    Blocks are counted by turn.  If names of turns contain dots, blocks of two turns can have the same path; the path
    then means the block of the turn whose name has no dot, as in `Naming`. Summaries that compactions wrote are counted by
    themselves.
    """
    owner, stems = turn_in(path), stems_of(path)
    own, alike, folds = Counter[str](), Counter[str](), Counter[str]()
    other: Block | None = None
    summary: Block | None = None
    folded = 0
    for version, event in events:
        match event:
            case BlockAppended(block=block) if (stem := path_stem(block)) in stems:
                alike[stem] += 1
                if other is None and path_of(block, alike[stem]) == path:
                    other = block
                if block.turn == owner and not isinstance(block, RangeSummary):
                    own[stem] += 1
                    if path_of(block, own[stem]) == path:
                        return block
            case RangeCompacted(summary=block) if (stem := path_stem(block)) in stems:
                folds[stem] += 1
                if path_of(block, folds[stem]) == path:
                    summary, folded = block, version
            case SummaryReplaced(summary=block) if path_stem(block) in stems:
                summary = block if event.compaction == folded else summary
            case _:
                pass
    return summary or other


def stems_of(path: str) -> tuple[str, ...]:
    """The path stems that a block with this path can have."""
    stem, _ = numbered(path)
    return tuple(dict.fromkeys((path, stem)))


# The block that came from a foreign message.


def source_at(store: EventStore, timeline: TimelineId, source: str) -> int:
    """Version of the newest block that came from the foreign message, item or response with this id; 0: none of the
    blocks that are left.

    Raises:
        ClosedError: the store is closed.
    """
    candidates = candidates_in(store, (source.casefold(),), (), timeline)
    return max(
        (
            version
            for _, (version, event) in candidates
            if isinstance(event, BlockAppended) and source in _ids(event.block)
        ),
        default=0,
    )


def _ids(block: Block) -> tuple[str, ...]:
    if isinstance(block, AssistantBlock):
        return block.source, block.response
    if isinstance(block, OpaqueBlock):
        return block.source, str(block.fields.get("response", ""))
    return (block.source,)
