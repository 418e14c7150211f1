"""Images: limiting their number and size to what one request may contain.

A provider refuses a request with too many images or documents, or with too many bytes of them. If the log
has more, the oldest are replaced by words, several at a time, so that this does not happen on every call.
"""

from itertools import chain
from typing import Final

from blocks import (
    BlocksHidden,
    DocumentPart,
    EventId,
    Hidden,
    ImagePart,
    ProviderPart,
    images_of,
    text_of,
)
from render.policy._context import Context
from render.view._fold import decide
from render.view._group import Entry, Group
from render.view._view import View

BATCH: Final = 0.8
"""The share of the allowed images that is left when some have to be removed."""


def limit_images(view: View, context: Context) -> View:
    """Show the oldest images as words once there are more than a request may contain."""
    pictures = list(chain.from_iterable(view.group_memo.each("pictures", view.groups, _pictures)))
    if not pictures:
        return view
    number_max, bytes_max = context.limits.pictures_max, context.limits.picture_bytes_max
    number = sum(len(_of(entry)) for entry, _ in pictures)
    size = sum(size for _, size in pictures)
    if number <= number_max and size <= bytes_max:
        return view
    hidden: list[Hidden] = []
    for entry, bytes_ in pictures:
        if number <= BATCH * number_max and size <= BATCH * bytes_max:
            break
        hidden.append(_without(entry))
        number -= len(_of(entry))
        size -= bytes_
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=tuple(hidden), reason="clipped")
    return decide(view, event)


def _without(entry: Entry) -> Hidden:
    """Words in place of an entry's images."""
    marker = f"\n[its pictures are no longer shown; read at {entry.path}]"
    if entry.opened is not None:
        return Hidden(block=entry.block.id, replacement=marker, head=len(text_of(entry.opened)))
    return Hidden(block=entry.block.id, replacement=f"{text_of(entry.block)}{marker}")


def _pictures(group: Group) -> list[tuple[Entry, int]]:
    """The entries of a group that show images, with their bytes."""
    return [(entry, _bytes(entry)) for entry in group.entries if _counts(entry)]


def _counts(entry: Entry) -> bool:
    return entry.replacement is None and bool(_of(entry))


def _of(entry: Entry) -> list[ImagePart | DocumentPart | ProviderPart]:
    """Its images and documents; any search result counts as text."""
    return [
        part
        for part in images_of(entry.opened or entry.block)
        if not isinstance(part, ProviderPart) or part.value.get("type") in ("image", "document")
    ]


def _bytes(entry: Entry) -> int:
    parts = images_of(entry.opened or entry.block)
    return sum(len(p.data) for p in parts if isinstance(p, ImagePart | DocumentPart))
