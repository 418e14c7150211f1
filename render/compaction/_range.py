"""What a compaction would fold: a pure decision, before any model is called."""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any

import attrs
from msgspec.structs import replace

from blocks import (
    Carried,
    Hidden,
    RangeSummary,
    ToolResult,
    Trigger,
    UserAttachment,
    encode_block,
    standing_of,
)
from render.compaction._carry import carry, replaced
from render.compaction._cut import (
    find_cut,
    is_legal,
    is_turn_start,
    latest_cut,
    turns_cut,
)
from render.policy._context import Context
from render.policy._provider import Encoder
from render.stages._budget import fixed_tokens, target_of, total_tokens
from render.stages._clip import clipped, share_of
from render.view._group import Entry, Group
from render.view._view import View

KEEP_TOKENS_MIN = 400


@attrs.frozen(kw_only=True)
class RangePlan:
    """What a compaction would fold: pure data that refers to versions of the log."""

    version: int
    """Version of the view that the plan was made for."""
    trigger: Trigger
    start: int
    """Version of the first folded block."""
    cut: int
    """Version of the first kept block."""
    folded: tuple[Entry, ...] = attrs.field(repr=False)
    prefix: tuple[Entry, ...] = attrs.field(repr=False)
    """The folded blocks of the split turn; empty when the cut is on a turn start."""
    kept: tuple[Entry, ...] = attrs.field(repr=False)
    carried: tuple[Carried, ...] = attrs.field(repr=False)
    cuts: tuple[Hidden, ...] = attrs.field(default=(), repr=False)
    """The cuts of the kept results that requests have shown and that exceed their share."""
    given_up: tuple[Entry, ...] = attrs.field(default=(), repr=False)
    """Entries that the last compaction carried in full and this one does not."""
    kept_tokens: int
    """Tokens of `kept` as it is shown."""
    tokens_before: int
    source_hash: str
    """Hash of the folded content (except what is hidden on request) and of the previous summary."""
    tried: list[Any] = attrs.field(factory=list[Any], init=False, eq=False, repr=False)
    """The result with the summary that was tried last; see `apply_range`."""

    extracted: list[Any] = attrs.field(factory=list[Any], init=False, eq=False, repr=False)
    """The extractive summary once it is computed."""

    @property
    def is_split(self) -> bool:
        """Whether the cut splits a turn."""
        return bool(self.prefix)


def plan_range(
    view: View, context: Context, trigger: Trigger, keep_ratio: float | None = None
) -> RangePlan | None:
    """The plan, or None when no legal cut would fold anything."""
    cut = range_cut(view, context, trigger, keep_ratio)
    return _plan(view, context, trigger, cut) if cut else None


def range_cut(
    view: View,
    context: Context,
    trigger: Trigger,
    keep_ratio: float | None = None,
    freed: Collection[int] = (),
) -> int | None:
    """Index of the first block to keep, if the blocks with `freed` versions cost nothing; None: no cut."""
    entries = view.entries
    policy = context.policy
    ratio = policy.keep_ratio if keep_ratio is None else keep_ratio
    if policy.keep_messages is not None and policy.keep_ratio:  # each block counts as one
        sizes = [1] * len(entries)
        keep = int(policy.keep_messages * ratio / policy.keep_ratio)
    else:
        sizes = _kept_sizes(view, context)
        if freed:
            sizes = [0 if e.version in freed else s for e, s in zip(entries, sizes, strict=True)]
        keep = _keep_tokens(context, ratio)
    cut = find_cut(entries, sizes, keep) if keep else latest_cut(entries)
    if cut is None and sum(sizes) < keep:
        cut = latest_cut(entries) if trigger == "forced" else None
    return cut


def plan_turns(view: View, context: Context, trigger: Trigger, turns: int) -> RangePlan | None:
    """The plan that keeps the newest `turns` whole, or None when there are no older ones."""
    cut = turns_cut(view.entries, turns)
    return _plan(view, context, trigger, cut) if cut else None


def plan_at(view: View, context: Context, trigger: Trigger, version: int) -> RangePlan | None:
    """The plan whose first kept block has this version, or None if that cut is not legal."""
    entries = view.entries
    index = next((i for i, entry in enumerate(entries) if entry.version == version), 0)
    legal = index and is_legal(entries, index)
    return _plan(view, context, trigger, index) if legal else None


def _plan(view: View, context: Context, trigger: Trigger, cut: int) -> RangePlan:
    entries = view.entries
    folded, kept = entries[:cut], entries[cut:]
    head = view.compaction.head.entries if view.compaction else ()
    carried = carry(head, folded, kept, context)
    whole = {item.version for item in carried if not item.clipped}
    gone = {*whole, *replaced((*head, *folded), kept)}
    given_up = (
        e
        for e in head
        if e.replacement is None and e.version not in gone and not isinstance(e.block, RangeSummary)
    )
    cuts = _cuts(view, context, kept[0].version)
    return RangePlan(
        version=view.version,
        trigger=trigger,
        start=folded[0].version,
        cut=kept[0].version,
        folded=tuple(folded),
        prefix=_prefix(folded, kept),
        kept=_as_cut(kept, cuts),
        cuts=tuple(cuts.values()),
        carried=carried,
        given_up=tuple(given_up),
        kept_tokens=sum(_kept_sizes(view, context)[cut:]),
        tokens_before=total_tokens(view, context),
        source_hash=_source_hash(view, folded),
    )


def _keep_tokens(context: Context, keep_ratio: float) -> int:
    """Tokens of the verbatim tail: its share, or less if the fixed part leaves less room."""
    room = target_of(context) - fixed_tokens(context)
    share = int(keep_ratio * context.capacity)
    return min(share, max(room // 2, KEEP_TOKENS_MIN)) if keep_ratio else 0


def _kept_sizes(view: View, context: Context) -> list[int]:
    """Tokens of each entry as a compaction keeps it: results that a request has shown are cut to their share."""
    sizes, share = _entry_tokens(view, context), share_of(context)
    seen = chain.from_iterable(map(_seen, view.groups))
    last = _last_seen(view)
    return [
        min(tokens, share) if may_cut and entry.version <= last else tokens
        for entry, may_cut, tokens in zip(view.entries, seen, sizes, strict=True)
    ]


def _seen(group: Group) -> tuple[bool, ...]:
    """For each entry, whether it is a result that may be cut, once a request has shown it."""
    return group.memo("results", lambda: tuple(map(_may_cut, group.entries)))


def _may_cut(entry: Entry) -> bool:
    is_content = isinstance(entry.block, ToolResult | UserAttachment)
    return is_content and entry.replacement is None and not standing_of(entry.source)


def _last_seen(view: View) -> int:
    """Version up to which requests have shown everything: all but what is new in the newest round."""
    if not view.groups:
        return 0
    newest = view.groups[-1]
    return max(newest.sealed, newest.first - 1)


def _cuts(view: View, context: Context, first: int) -> dict[int, Hidden]:
    """The cuts, by version, of the results from `first` on that a request has shown and that exceed their share."""
    encoder, share, last = context.encoder, share_of(context), _last_seen(view)
    found: dict[int, Hidden] = {}
    for group in view.groups:
        if group.last < first or group.first > last:
            continue
        piece = encoder.shown(group)
        for entry in group.entries:
            tokens = piece.tokens_of(entry.version)
            if first <= entry.version <= last and tokens > share and _may_cut(entry):
                found[entry.version] = clipped(entry, tokens, share, context)
    return found


def _as_cut(entries: Sequence[Entry], cuts: Mapping[int, Hidden]) -> tuple[Entry, ...]:
    return tuple(
        replace(e, replacement=cuts[e.version].replacement, hidden_as="clipped")
        if e.version in cuts
        else e
        for e in entries
    )


def _entry_tokens(view: View, context: Context) -> list[int]:
    encoder = context.encoder
    key = "entry tokens", encoder.key
    sizes = view.group_memo.each(key, view.groups, lambda group: _sizes(group, encoder))
    return list(chain.from_iterable(sizes))


def _sizes(group: Group, encoder: Encoder) -> list[int]:
    shown = encoder.shown(group)
    return [shown.tokens_of(entry.version) for entry in group.entries]


def _prefix(folded: Sequence[Entry], kept: Sequence[Entry]) -> tuple[Entry, ...]:
    """The folded part of the turn that the cut splits; empty if it splits none."""
    if is_turn_start(kept[0].block):
        return ()
    return tuple(entry for entry in folded if entry.block.turn == kept[0].block.turn)


def _source_hash(view: View, folded: Sequence[Entry]) -> str:
    digest = sha256()
    if view.compaction:
        digest.update(encode_block(view.compaction.event.summary))
    for entry in folded:
        digest.update(encode_block(entry.block))
    return digest.hexdigest()
