"""The notices of a request, each listed once with its first place and the number of other places.

They come from the pieces, from standing instructions that were shortened, and from parts that the provider does not
accept: the request contains only the names of these, and the log keeps the originals.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from blocks import DocumentPart, ImagePart, ProviderPart, images_of
from render.policy._provider import Encoder, Piece, Provider, Where
from render.stages._budget import Account
from render.view._group import Entry, Group, Place
from render.view._view import Shown

_Told: TypeAlias = Mapping[str, tuple[str, int]]
"""The first place and the number of occurrences, by the text of a notice."""
_NOTHING: Final[_Told] = {}


def notices_of(
    shown: Shown, encoder: Encoder, pieces: Sequence[Piece], missed: Sequence[Sequence[str]]
) -> Iterator[str]:
    """The notices of the pieces and of the parts that the provider does not accept; only new groups are
    read."""
    memo, key = shown.group_memo, encoder.key
    yield from _spelled(memo.chained(("notices", key), pieces, _NOTHING, _with_piece))
    yield from _spelled(memo.chained(("missed", key), missed, _NOTHING, _with))


def shortened(sizes: Account) -> Iterator[str]:
    """The notice that standing instructions had to be shortened."""
    if sizes.standing_cut:
        yield (
            f"standing instructions have room for {sizes.standing} tokens; {sizes.standing_cut} more were cut: take a "
            f"larger window, or a policy with a larger standing_ratio"
        )


def _with_piece(told: _Told, piece: Piece) -> _Told:
    return _with(told, piece.notices)


def _with(told: _Told, notices: Sequence[str]) -> _Told:
    if not notices:
        return told
    known = dict(told)
    for notice in notices:
        what, _, where = notice.rpartition(": ")
        first, often = known.get(what, (where, 0))
        known[what] = first, often + 1
    return known


def _spelled(chain: Sequence[_Told]) -> Iterator[str]:
    for what, (first, often) in chain[-1].items() if chain else ():
        yield f"{what}: {first} and {often - 1} more" if often > 1 else f"{what}: {first}"


# Parts that a provider does not accept.


def unread(shown: Shown, provider: Provider) -> Sequence[tuple[str, ...]]:
    """The notices of each group, one for each such part; the log keeps the original parts."""
    find = partial(_unread_of, provider=provider)
    return shown.group_memo.each(("unread", provider.name), shown.groups, find)


def _unread_of(group: Group, provider: Provider) -> tuple[str, ...]:
    shown = (entry for entry in group.entries if entry.replacement is None)
    return tuple(notice for entry in shown for notice in _unread_in(entry, provider))


def _unread_in(entry: Entry, provider: Provider) -> Iterator[str]:
    where: Where = "result" if entry.place is Place.RESULT else "user"
    for part in images_of(entry.block):
        if reason := provider.refusal(part, where):
            yield f"{_called(part)} is only told by name, {reason}: {entry.path}"


def _called(part: ImagePart | DocumentPart | ProviderPart) -> str:
    match part:
        case ImagePart():
            return "an image"
        case DocumentPart():
            return f"the document {part.name!r}" if part.name else "a document"
        case ProviderPart(value=value):
            return f"a part of the type {value.get('type') or value.get('kind') or 'part'!r}"
