"""Ids: plain strings at run time, told apart by the type checker."""

from typing import NewType

BlockId = NewType("BlockId", str)
"""Of a block."""
EventId = NewType("EventId", str)
"""Of an event."""
TimelineId = NewType("TimelineId", str)
"""The name of a timeline in its store."""
TurnId = NewType("TurnId", str)
"""Of a turn, such as `t3`."""
CallId = NewType("CallId", str)
"""Of a tool call, as the provider gave it."""
ArtifactId = NewType("ArtifactId", str)
"""Of an artifact: `art-` and 32 hexadecimal digits."""
