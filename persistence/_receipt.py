"""A receipt says what a store had at a moment, so that somebody can remember it elsewhere.

An older copy of a whole store is consistent in itself: only who remembers what came after can tell.  A receipt has a line
for each timeline: its version, its chain (see `persistence._chain`), its name as JSON.  Chains depend only on names and
events, so a copy in a store of another kind fulfils the receipt of its source.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from blocks import MisuseError, TimelineId
from persistence._store import EventStore, StoreProblem

TITLE: Final = "foldline receipt 1"
UNKNOWN: Final = "-"
_MASK: Final = 2**64 - 1


def receipt(store: EventStore) -> str:
    """The receipt of a store, to be kept elsewhere, for example with a backup, and given to `verify` as `expect`."""
    lines = [TITLE]
    for info in store.list():
        chain = _text(store.chain(info.id, info.version))
        lines.append(f"{info.version} {chain} {msgspec.json.encode(info.id).decode()}")
    return "\n".join([*lines, ""])


def missing(store: EventStore, expect: str) -> Iterator[StoreProblem]:
    """What a receipt names and the store does not have, or has otherwise.

    Raises:
        MisuseError: it is not a receipt.
    """
    title, *lines = expect.splitlines() or [""]
    if title != TITLE:
        raise MisuseError(f"{title!r:.40} does not begin a receipt; give the text that `receipt` made")
    for line in lines:
        version, chain, name = _parsed(line)
        head = store.head(name)
        if head < version:
            what = f"the receipt has {version} events, and there are {head}: it was removed, or this is an older copy"
            yield StoreProblem(timeline=name, what=what)
        elif UNKNOWN not in (chain, there := _text(store.chain(name, version))) and chain != there:
            what = f"events up to version {version} are not those of the receipt: it was made of another history"
            yield StoreProblem(timeline=name, version=version, what=what)


def _text(chain: int | None) -> str:
    return UNKNOWN if chain is None else f"{chain & _MASK:016x}"


def _parsed(line: str) -> tuple[int, str, TimelineId]:
    try:
        version, chain, name = line.split(" ", 2)
        return int(version), chain, TimelineId(msgspec.json.decode(name, type=str))
    except (ValueError, msgspec.DecodeError) as error:
        raise MisuseError(f"{line!r:.80} is no line of a receipt ({error}); give all of its text") from error
