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
"""The number of channels. A listener holds a lock for each, at most half of the 64 per connection that a server allows
for by default."""
LOCKS: Final = 731003324
"""The first key of all these advisory locks; an arbitrary number."""
ANYBODY: Final = CHANNELS
"""The second key of the lock that every listener holds."""
LOOK_SECONDS: Final = 1.0
"""How long an appender relies on what it last learned about listeners."""
SCOPE: Final = f"to_regclass('stored_events')::oid::bigint, {TENANT}"


class Mark(NamedTuple):
    """The notification about a timeline: its channel, and a hash of the timeline as payload."""

    channel: int
    hash: str


@attrs.frozen
class Scope:
    """The store and tenant of a timeline; a store is identified by the object id of its table."""

    store: int
    tenant: str

    def mark(self, timeline: TimelineId) -> Mark:
        name = f"{self.store}\0{self.tenant}\0{timeline}".encode()
        found = blake2b(name, digest_size=8)
        return Mark(found.digest()[0] % CHANNELS, found.hexdigest())
