"""The NOTIFY channels on which appends are announced, and the locks that show who listens.

A timeline belongs to one of a few channels, by a hash of its name, its tenant and the store's table; a
notification contains only the hash.  A listener on a channel holds a shared advisory lock with the channel's number,
and another one that shows that anybody listens at all.  So an appender can find out whether there is a listener, and
the locks are released with the connection.
"""

from hashlib import blake2b
from typing import Final, NamedTuple

import attrs

from blocks import TimelineId
from persistence.postgres._tenants import TENANT

CHANNELS: Final = 32
"""A listener's locks are at most half of the 64 that a server sets aside for a connection."""
LOCKS: Final = 731003324
"""The first number of all these locks; it means nothing."""
ANYBODY: Final = CHANNELS
LOOK_SECONDS: Final = 1.0
"""Seconds for which an appender relies on its last check for listeners."""
SCOPE: Final = f"to_regclass('stored_events')::oid::bigint, {TENANT}"


class Mark(NamedTuple):
    """What is told of a timeline."""

    channel: int
    hash: str


@attrs.frozen
class Scope:
    """Which timelines are meant: those of a tenant in a store, by the number of its table."""

    store: int
    tenant: str

    def mark(self, timeline: TimelineId) -> Mark:
        name = f"{self.store}\0{self.tenant}\0{timeline}".encode()
        found = blake2b(name, digest_size=8)
        return Mark(found.digest()[0] % CHANNELS, found.hexdigest())
