"""Reading ahead: a call without a compaction reads some of the new texts for the next compaction.

It reads a bounded amount, so that no call takes noticeably longer, and only when a compaction is near.
Texts that are still unread are read by the compaction itself.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from blocks import AssistantCompletion, is_sealed
from render.policy._context import Context
from render.summary._mentions import names_in_context
from render.summary._output import texts_of
from render.summary._pieces import WHOLE_CHARACTERS
from render.summary._reading import Reader, reader_of
from render.summary._statements import judged
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
    """Count the index that is shown; or, if it is counted, read its excerpts, and then the oldest unread texts."""
    reader, left = reader_of(view, context), CALL_CHARACTERS
    texts = reader.texts
    if view.compaction and not texts.is_counted:
        layers = layers_of(view.compaction.event.summary.digest.index)
        reader.layers_cost(layers)
        texts.excerpts = [excerpt.text for layer in layers for excerpt in layer.excerpts]
        return
    while texts.excerpts and left > 0:
        left -= _read(texts.excerpts.pop(), reader)
    for entry in _since(view, texts.ahead):
        if left <= 0:
            return
        is_quoted = entry.original is None and not is_sealed(entry.block)
        for text in texts_of(entry.block) if is_quoted else ():
            left -= _read(text, reader)
        if isinstance(entry.block, AssistantCompletion):
            judged(entry.block.text)
        texts.ahead = entry.version


def _read(text: str, reader: Reader) -> int:
    """Read a text, unless it is too long; returns the characters that were read."""
    if len(text) > TEXT_CHARACTERS:
        return 0
    reading, is_whole = reader.read(text), len(text) <= WHOLE_CHARACTERS
    reading.pieces(is_whole=is_whole)
    if is_whole:
        names_in_context(reading)
    return len(text)


def _since(view: View, version: int) -> Iterator[Entry]:
    """The entries after a version."""
    for group in view.groups[bisect_right(view.groups, version, key=attrgetter("last")) :]:
        yield from (entry for entry in group.entries if entry.version > version)
