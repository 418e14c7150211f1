"""Ids: plain strings at run time, told apart by the type checker."""

from typing import NewType

BlockId = NewType("BlockId", str)
EventId = NewType("EventId", str)
TimelineId = NewType("TimelineId", str)
TurnId = NewType("TurnId", str)
CallId = NewType("CallId", str)
ArtifactId = NewType("ArtifactId", str)
