"""A receipt says what a store had at a moment, so that somebody can remember it elsewhere.

An older copy of a whole store is consistent in itself: only who remembers what came after can tell.  A receipt has a line
for each timeline: its version; the newest forgotten version; its chain (see `persistence._log`); the part of the chain
after what was forgotten; its name as JSON.  Chains depend only on names and events, so a copy in a store of another kind
fulfils the receipt of its source: of a log that begins later, the copy has at least the same part.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from blocks import MisuseError, TimelineId
from persistence._store import EventStore, StoreProblem

TITLE: Final = "foldline receipt 1"
UNKNOWN: Final = "- -"
_MASK: Final = 2**64 - 1


def receipt(store: EventStore) -> str:
    """See `EventStore.receipt`."""
    lines = [f"{info.version} {_entry(store, info.id, info.version)}" for info in store.list()]
    return "\n".join([TITLE, *lines, ""])


def missing(store: EventStore, expect: str) -> Iterator[StoreProblem]:
    """What a receipt names and the store does not have, or has otherwise.

    Raises:
        MisuseError: it is not a receipt.
    """
    title, *lines = expect.splitlines() or [""]
    if title != TITLE:
        raise MisuseError(
            f"{title!r:.40} does not begin a receipt; give the text that `receipt` made"
        )
    for line in lines:
        version, due, name = _parsed(line)
        head = store.head(name)
        if head < version:
            what = f"the receipt has {version} events, and there are {head}: it was removed, or this is an older copy"
            yield StoreProblem(timeline=name, what=what)
        elif _differs(due, _entry(store, name, version)):
            what = f"events up to version {version} are not those of the receipt: it was made of another history"
            yield StoreProblem(timeline=name, version=version, what=what)


def _entry(store: EventStore, name: TimelineId, version: int) -> str:
    """What a receipt says of a timeline after its version."""
    rest, chain = store.kept(name), store.chain(name, version)
    anchor = rest.anchor if rest.forgotten else 0
    chains = UNKNOWN if chain is None else f"{chain & _MASK:016x} {(chain ^ anchor) & _MASK:016x}"
    return f"{rest.forgotten} {chains} {msgspec.json.encode(name).decode()}"


def _differs(due: str, there: str) -> bool:
    """Whether two entries are of other events; if other events were forgotten, only the whole chain can agree."""
    (forgotten, chain, since, _), (its_forgotten, its_chain, its_since, _) = (
        each.split(" ", 3) for each in (due, there)
    )
    is_comparable = "-" not in (since, its_since) and forgotten == its_forgotten
    return is_comparable and chain != its_chain and since != its_since


def _parsed(line: str) -> tuple[int, str, TimelineId]:
    """Version, entry and name of a line."""
    try:
        version, entry = line.split(" ", 1)
        *_, name = entry.split(" ", 3)
        return int(version), entry, TimelineId(msgspec.json.decode(name, type=str))
    except (ValueError, msgspec.DecodeError) as error:
        raise MisuseError(
            f"{line!r:.80} is not a line of a receipt ({error}); give all of its text"
        ) from error
