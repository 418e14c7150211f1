"""The chain of a timeline: a number that stands for all its events, in their order, under its name.

    chain of no events      start(name)
    chain after an event    the chain before it, XOR step(version, id of the event)
    link of an event        the chain after it, XOR content(its JSON)

A store keeps the link beside each event, and the chain after the newest one in the *head* of the timeline, which is
written in the same transaction.  So a link depends on the name of the timeline, on the version, on the content, and on
everything before it: an event that is altered, moved, swapped, renamed or from another history has another link, and
if the newest events are missing, the chain does not end as the head says.

XOR, so that a server can extend a chain in the statement that inserts the events, without telling anybody its end; so
that a fork keeps its links except for one constant; and so that an event can get other content (`EventStore.rewrite`)
without a change of any link after it.  The id of an event never changes.

The hash is BLAKE2b of the standard library with 64 bits: it costs a microsecond per kilobyte, two different histories
have the same chain once in 2^64 cases, and 64 bits are an integer of every database.  This detects accidents.  It is no
protection against somebody who computes the numbers anew.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, TypeAlias

import attrs

from blocks import CodecError, TimelineId, decode_event
from persistence._log import Kept, StoredEvent

ALTERED: Final = "it is not what was written here: its content is another, or the event itself is, says its checksum"
"""What `verify` says of an event whose link is wrong."""


def start(timeline: str) -> int:
    """The chain of a timeline without events; a signed number of 64 bits, as every result here."""
    return content(timeline.encode())


def step(version: int, event_id: str) -> int:
    """What an event adds to the chain."""
    return content(f"{version} {event_id}".encode())


def content(data: bytes | str) -> int:
    """The hash of the JSON of an event, even if somebody has stored it by hand as another type."""
    data = data.encode() if isinstance(data, str) else data
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def extended(chain: int, after: int, events: Iterable[StoredEvent]) -> tuple[list[int], int]:
    """The links of events that follow version `after`, and the chain after them."""
    links: list[int] = []
    for version, event in enumerate(events, after + 1):
        chain ^= step(version, event.id)
        links.append(chain ^ content(event.data))
    return links, chain


def xor(left: str, right: str) -> str:
    """SQL of two integers that every database computes the same way, whether it has an operator for it or not."""
    return f"(({left} | {right}) - ({left} & {right}))"


@attrs.define
class Walk:
    """Follows the chain of a timeline, event by event, and tells which links are not as they should be.

    After a link that is wrong, the event there may be wrong or only its link; both chains are then followed, so that what
    comes after is not reported as well.
    """

    _chains: Sequence[int] = ()
    """The chains that may be right; none: unknown, after something that is missing."""

    @classmethod
    def of(cls, timeline: str, kept: Kept) -> "Walk":
        """A walk that begins with the oldest event that was not forgotten."""
        return cls((kept.anchor if kept.forgotten else start(timeline),))

    @property
    def end(self) -> int | None:
        """The chain after the last event; None: it is not known for sure."""
        return self._chains[0] if len(self._chains) == 1 else None

    def lose(self) -> None:
        """Note that an event is missing, or cannot be read."""
        self._chains = ()

    def step(self, addition: int) -> None:
        """Pass an event that has no link, because it is in an archive; `addition` is its `step`."""
        self._chains = tuple(chain ^ addition for chain in self._chains)

    def passes(self, addition: int, chain: int | None) -> bool:
        """Pass an event, after which the chain is `chain`, its link says (None: it has no link); return whether this is
        right."""
        self.step(addition)
        if chain is None:
            return False
        if self._chains and chain not in self._chains:
            self._chains = (*self._chains, chain)
            return False
        self._chains = (chain,)
        return True

    def ends_in(self, chain: int) -> bool:
        """Whether this may be the chain after the last event."""
        return not self._chains or chain in self._chains


Row: TypeAlias = tuple[int, bytes, int]
"""A version, the JSON of the event, and its link."""


def chain_at(
    timeline: TimelineId, kept: Kept, version: int, row: Callable[[int], Sequence[Row]]
) -> int | None:
    """The chain after a version, told from a row and the archives between; None if there is no such row, or it cannot be
    read.  `row` reads the row of a version.

    Raises:
        DamagedStoreError: an archive cannot be read.
    """
    from persistence._archive import archived_events

    if version <= kept.forgotten:
        return Walk.of(timeline, kept).end
    for seq, data, link in row(max(version, kept.first)):
        chain = link ^ content(data)
        if seq > version:
            try:
                chain ^= step(seq, decode_event(data).id)
            except CodecError:
                return None
            for archive in kept.within(version + 1, kept.removed):
                for number, event in archived_events(archive, version + 1, archive.last):
                    chain ^= step(number, event.id)
        return chain
    return None
