"""Reading ahead: a call without a compaction reads some of the new texts for the next compaction.

It reads a bounded amount, so that no call takes noticeably longer, and only when a compaction is near.
Texts that are still unread are read by the compaction itself.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from blocks import is_sealed
from render.policy._context import Context
from render.summary._output import texts_of
from render.summary._reading import reader_of
from render.summary._text import layers_of
from render.view._group import Entry
from render.view._view import View

AHEAD_SHARE: Final = 0.4
"""Reading begins when the request has this share of the tokens that trigger a compaction."""
CALL_CHARACTERS: Final = 6_000
"""Characters of text that one call reads; the last text is always read to its end."""
TEXT_CHARACTERS: Final = 30_000
"""Longer texts are left to the compaction."""


def read_ahead(view: View, context: Context) -> None:
    """Count the index that is shown, or, if it is counted, read the oldest unread texts."""
    reader, left = reader_of(view, context), CALL_CHARACTERS
    if view.compaction and not reader.texts.is_counted:
        index = view.compaction.event.summary.digest.index
        reader.layers_cost(layers_of(index))
        return
    for entry in _since(view, reader.texts.ahead):
        if left <= 0:
            return
        is_quoted = entry.original is None and not is_sealed(entry.block)
        for text in texts_of(entry.block) if is_quoted else ():
            if len(text) <= TEXT_CHARACTERS:
                reader.read(text)
                left -= len(text)
        reader.texts.ahead = entry.version


def _since(view: View, version: int) -> Iterator[Entry]:
    """The entries after a version."""
    for group in view.groups[bisect_right(view.groups, version, key=attrgetter("last")) :]:
        yield from (entry for entry in group.entries if entry.version > version)
