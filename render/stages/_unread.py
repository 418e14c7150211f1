"""Parts that a provider does not accept: the request contains only their names, with a notice."""

from collections.abc import Iterator, Sequence
from functools import partial

from blocks import DocumentPart, ImagePart, ProviderPart, images_of
from render.policy._provider import Provider, Where
from render.view._group import Entry, Group, Place
from render.view._view import Shown


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
