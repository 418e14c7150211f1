"""What outlives a cut: pinned notes, the latest plan, and what the user said.

User texts are bounded, each and all together.  When the share is short, the first (the original
task) and the newest keep most; those in between are cut to their beginning and end.  Only where these
have several times the share are they cut to their beginning alone and, where even that does not do, some
left to their path: first what begins as a newer text does (an error that a harness reports in the user's
name, "continue"), then the oldest.  Nothing of it is lost: the log has it, the path names it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from blocks import (
    Carried,
    Note,
    Plan,
    RangeSummary,
    UserFollowup,
    UserPrompt,
    UserSteer,
    images_of,
    numbered,
    text_of,
    version_in,
)
from render.policy._context import Context
from render.stages._clip import HEAD_SHARE, cut_text
from render.view._group import Entry

Said: TypeAlias = UserPrompt | UserFollowup | UserSteer

SHORT_TOKENS: Final = 110
"""What a shortened text keeps: its first and last sentences (300 characters and more)."""
HEAD_TOKENS: Final = 80
"""What is left of it before any text is left out: its beginning."""
HEAD_CHARACTERS: Final = 300
"""The beginning that a shortened text keeps in any case; texts that share it say the same."""
LEFT_OUT_RATIO: Final = 2.5
"""Shortened texts lose their end, and then are left out, from so many times the share on: a window that is
too small for what the user said can do without other things first."""
LABEL_TOKENS: Final = 20
"""The label around each carried text."""


def is_said(entry: Entry) -> bool:
    """Whether this is something that the user said."""
    return isinstance(entry.block, Said)


def carry(
    old: Sequence[Entry], folded: Sequence[Entry], kept: Sequence[Entry], context: Context
) -> tuple[Carried, ...]:
    """What to carry past a cut, in log order.

    `old` is what the last compaction carried, `folded` what this one folds, `kept` what stays
    visible.
    """
    candidates = [e for e in (*old, *folded) if not isinstance(e.block, RangeSummary)]
    notes = [e for e in candidates if isinstance(e.block, Note)]
    plans = [e for e in candidates if isinstance(e.block, Plan)][-1:]
    if any(isinstance(e.block, Plan) for e in kept):
        plans = []
    pinned = [_whole(entry) for entry in (*notes, *plans)]
    said = _bounded([e for e in candidates if is_said(e)], context)
    return tuple(sorted((*pinned, *said), key=lambda carried: carried.version))


def _whole(entry: Entry) -> Carried:
    return Carried(
        version=entry.version,
        block=entry.source,
        ordinal=_ordinal(entry),
        clipped=entry.replacement or "",
        withheld=entry.original is not None,
    )


def _ordinal(entry: Entry) -> int:
    """The ordinal that the entry's path ends in, if it has one; 0: it is named by version."""
    return 0 if version_in(entry.path) else numbered(entry.path)[1]


def _bounded(entries: Sequence[Entry], context: Context) -> list[Carried]:
    """The user's texts within their shares."""
    sizes = [_tokens(entry, context) for entry in entries]
    limits = _limits(sizes, _giving_way([_text(entry) for entry in entries]), context)
    return [
        _clipped(entry, limit, context)
        for entry, limit in zip(entries, limits, strict=True)
        if limit > 0
    ]


def _giving_way(texts: Sequence[str]) -> list[int]:
    """Indices of all but the first and the newest, in the order in which they are left out."""
    between = range(1, len(texts) - 1)
    again = [*_begun_again(texts, HEAD_CHARACTERS), *_begun_again(texts, 0)]
    return list(dict.fromkeys([*(i for i in again if i in between), *between]))


def _begun_again(texts: Sequence[str], characters: int) -> Iterator[int]:
    """Indices of texts that begin as a newer one: with the same characters, or, with 0, the same line."""
    newest: dict[str, int] = {}
    for index, text in enumerate(texts):
        known = text.strip()
        begin = known[:characters] or known.partition("\n")[0]
        if begin in newest:
            yield newest[begin]
        newest[begin] = index


def _limits(sizes: Sequence[int], giving_way: Sequence[int], context: Context) -> list[int]:
    """Tokens that each text may have; 0: only its path is left."""
    each = context.policy.user_tokens_each
    share = context.policy.user_ratio * context.limit
    limits = [min(size, each) for size in sizes]
    # First and newest keep longest: those in between are cut, oldest first, then cut again, then left
    # out; only then the newest gives way, and last the first, which is the original task.
    ends = range(len(sizes) - 1, -1, -max(len(sizes) - 1, 1))
    steps = [(i, SHORT_TOKENS, share) for i in range(1, len(sizes) - 1)]
    most = LEFT_OUT_RATIO * share
    steps += [(i, HEAD_TOKENS, most) for i in giving_way if limits[i] > SHORT_TOKENS]
    steps += [(i, 0, most) for i in giving_way]
    steps += [(i, SHORT_TOKENS, most) for i in ends] + [(i, 0, most) for i in ends[:-1]]
    left = sum(map(_labelled, limits))
    for index, tokens, enough in steps:
        if left <= int(enough):
            continue
        left -= _labelled(limits[index])
        limits[index] = min(limits[index], tokens)
        left += _labelled(limits[index])
    return limits


def _labelled(limit: int) -> int:
    """What a text of so many tokens costs with its label; nothing when it is left out."""
    return limit + LABEL_TOKENS if limit else 0


def _tokens(entry: Entry, context: Context) -> int:
    return context.counter.count(entry.replacement or _text(entry))


def _text(entry: Entry) -> str:
    return text_of(entry.block)


def _clipped(entry: Entry, limit: int, context: Context) -> Carried:
    """The text within its limit; cut from the original, never from an earlier cut."""
    text = _text(entry)
    tokens = context.counter.count(text)
    carried = _whole(entry)
    if entry.replacement and context.counter.count(entry.replacement) <= limit:
        return carried
    fits = tokens <= limit or len(text) <= HEAD_CHARACTERS
    short = "" if fits else _ends(text, tokens, limit, entry.path, context)
    if images_of(entry.block):  # pictures are not carried: a word stands for each
        short = short or text
    if carried.withheld:
        short = short or text
    return msgspec.structs.replace(carried, clipped=short)


def _ends(text: str, tokens: int, limit: int, path: str, context: Context) -> str:
    """How a text begins and how it ends: a long one often comes to its point last."""
    if limit > 2 * SHORT_TOKENS:
        return cut_text(text, tokens, limit, path, context)
    if limit <= HEAD_TOKENS:
        return f"{text[:HEAD_CHARACTERS]}\n[… {tokens} tokens in all …]"
    keep = min(max(int(len(text) * limit / max(tokens, 1)), 320), len(text))
    begin = max(int(keep * HEAD_SHARE), HEAD_CHARACTERS)
    head, tail = text[:begin], text[-int(keep * (1 - HEAD_SHARE)) :]
    return f"{head}\n[… cut here: {tokens} tokens in all; the whole text is at {path} …]\n{tail}"
