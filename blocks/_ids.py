"""Types of ids; at run time they are plain strings."""

from typing import NewType

BlockId = NewType("BlockId", str)
"""The id of a block."""
EventId = NewType("EventId", str)
"""The id of an event."""
TimelineId = NewType("TimelineId", str)
"""The name of a timeline in its store."""
TurnId = NewType("TurnId", str)
"""The id of a turn, such as `t3`."""
CallId = NewType("CallId", str)
"""The id of a tool call, as the provider gave it."""
ArtifactId = NewType("ArtifactId", str)
"""The id of an artifact: `art-` and 32 hexadecimal digits."""
