"""What is kept across a cut: pinned notes, the latest plan, and the user's texts.

User texts are limited one by one and all together. When the share is too small, the first (the original
task) and the newest keep the most; the texts between them are cut to their beginning and end. Only if they
exceed the share several times are they cut to their beginning alone, and then some are left out: first a
text that begins like a newer one (a repeated harness error, "continue"), then the oldest. The log still has
them, and the path of each can be read.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from blocks import (
    Carried,
    Note,
    Plan,
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

SAID: Final = UserPrompt, UserFollowup, UserSteer
"""What the user says; a tuple, because `isinstance` is slow with a union."""

SHORT_TOKENS: Final = 110
"""Tokens of a shortened text: its first and last sentences (at least 300 characters)."""
HEAD_TOKENS: Final = 80
"""Tokens of a text that is cut a second time: its beginning only."""
HEAD_CHARACTERS: Final = 300
"""Characters at the beginning that a shortened text always keeps; texts that share them count as repeated."""
LEFT_OUT_RATIO: Final = 2.5
"""Shortened texts lose their end, and are then left out, only when all texts together exceed this many
times the share: in a very small window, other content gives way first."""
LABEL_TOKENS: Final = 20
"""Tokens of the label around each carried text."""


def is_said(entry: Entry) -> bool:
    """Whether the entry is a text of the user."""
    return entry.block.author == "user" and isinstance(entry.block, SAID)


def carry(
    old: Sequence[Entry], folded: Sequence[Entry], kept: Sequence[Entry], context: Context
) -> tuple[Carried, ...]:
    """What to carry past a cut, in log order.

    `old` was carried by the last compaction, `folded` is folded by this one, `kept` stays visible.
    """
    candidates = (*old, *folded)
    notes = [e for e in candidates if isinstance(e.block, Note)]
    plans = [e for e in candidates if isinstance(e.block, Plan)][-1:]
    if plans and any(isinstance(e.block, Plan) for e in kept):
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
    """The ordinal at the end of the entry's path; 0 if the path has none, or is based on the version."""
    return 0 if version_in(entry.path) else numbered(entry.path)[1]


def _bounded(entries: Sequence[Entry], context: Context) -> list[Carried]:
    """The user's texts, cut to their shares."""
    sizes = [_tokens(entry, context) for entry in entries]
    limits = _limits(sizes, _giving_way([_text(entry) for entry in entries]), context)
    return [
        _clipped(entry, size, limit, context)
        for entry, size, limit in zip(entries, sizes, limits, strict=True)
        if limit > 0
    ]


def _giving_way(texts: Sequence[str]) -> list[int]:
    """Indices of all texts but the first and the newest, in the order in which they are left out."""
    between = range(1, len(texts) - 1)
    again = [*_begun_again(texts, HEAD_CHARACTERS), *_begun_again(texts, 0)]
    return list(dict.fromkeys([*(i for i in again if i in between), *between]))


def _begun_again(texts: Sequence[str], characters: int) -> Iterator[int]:
    """Indices of texts that begin like a newer one: the same first characters, or with 0 the same first
    line."""
    newest: dict[str, int] = {}
    for index, text in enumerate(texts):
        known = text.strip()
        begin = known[:characters] or known.partition("\n")[0]
        if begin in newest:
            yield newest[begin]
        newest[begin] = index


def _limits(sizes: Sequence[int], giving_way: Sequence[int], context: Context) -> list[int]:
    """The most tokens each text may have; 0: the text is left out, and only its path remains."""
    each = context.policy.user_tokens_each
    share = context.policy.user_ratio * context.limit
    limits = [min(size, each) for size in sizes]
    # Texts between the first and the newest are cut first, oldest first, then cut again, then left
    # out. Only then does the newest give way, and last the first, which is the original task.
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
    """Tokens of a text of this size with its label; 0 when it is left out."""
    return limit + LABEL_TOKENS if limit else 0


def _tokens(entry: Entry, context: Context) -> int:
    return context.counter.count(entry.replacement or _text(entry))


def _text(entry: Entry) -> str:
    return text_of(entry.block)


def _clipped(entry: Entry, size: int, limit: int, context: Context) -> Carried:
    """The text of this size within its limit; always cut from the original, never from an earlier cut."""
    carried = _whole(entry)
    if entry.replacement and size <= limit:
        return carried
    text = _text(entry)
    tokens = context.counter.count(text) if entry.replacement else size
    fits = tokens <= limit or len(text) <= HEAD_CHARACTERS
    short = "" if fits else _ends(text, tokens, limit, entry.path, context)
    if images_of(entry.block):  # images are not carried: each is replaced by a word
        short = short or text
    if carried.withheld:
        short = short or text
    return msgspec.structs.replace(carried, clipped=short)


def _ends(text: str, tokens: int, limit: int, path: str, context: Context) -> str:
    """The beginning and the end of a text, because long texts often make their point at the end."""
    if limit > 2 * SHORT_TOKENS:
        return cut_text(text, tokens, limit, path, context)
    if limit <= HEAD_TOKENS:
        return f"{text[:HEAD_CHARACTERS]}\n[… {tokens} tokens in all …]"
    keep = min(max(int(len(text) * limit / max(tokens, 1)), 320), len(text))
    begin = max(int(keep * HEAD_SHARE), HEAD_CHARACTERS)
    head, tail = text[:begin], text[-int(keep * (1 - HEAD_SHARE)) :]
    return f"{head}\n[… cut here: {tokens} tokens in all; the whole text is at {path} …]\n{tail}"
