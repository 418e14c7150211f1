"""Fills a store with logs by large appends.

Rows of a timeline are adjacent, unlike in `benchmarks.scale_files`.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from benchmarks.scale_files import material
from blocks import TimelineId
from persistence import open_store

PAGE: Final = 5_000
STARTED: Final = 1_700_000_000


def fill(url: str, name: str, first: int, timelines: int, each: int) -> None:
    """Add `timelines` logs of `each` events, named by `name` and numbers from `first` on."""
    texts = [text.encode() for text in material()]
    with closing(open_store(url)) as store:
        for number in range(first, first + timelines):
            events = [*_events(texts, number, each)]
            for start in range(0, each, PAGE):
                store.append_bytes(
                    TimelineId(f"{name}{number}"),
                    events[start : start + PAGE],
                    expected_version=start,
                )


def _events(texts: list[bytes], number: int, count: int) -> Iterator[bytes]:
    for seq in range(1, count + 1):
        payload = texts[(number * 7 + seq) % len(texts)].replace(b"@SEQ@", b"%d" % seq)
        payload = payload.replace(b"@CYCLE@", b"%d" % (seq // len(texts)))
        yield payload.replace(b"@AT@", b"%d.0" % (STARTED + number + seq))
