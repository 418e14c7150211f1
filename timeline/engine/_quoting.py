"""Removing quotations of confidential results from a model's summary before it is stored, because the model has read
these results in the prompt."""

import msgspec

from blocks import (
    ArtifactId,
    Block,
    BlockId,
    StructuredSummary,
    SystemMessage,
    ToolResult,
    TurnId,
    leaves,
)
from render import View, redaction_of


def unquoted(summary: StructuredSummary, view: View) -> StructuredSummary:
    """The summary without statements that come only from confidential results in the view."""
    opened = (entry.opened for entry in view.entries)
    hidden = [
        msgspec.structs.replace(block, artifact=ArtifactId(""))
        for block in opened
        if isinstance(block, ToolResult)
    ]
    if not hidden:
        return summary
    said: list[Block] = [entry.block for entry in view.entries]
    if view.compaction is not None:
        known = leaves(msgspec.to_builtins(view.compaction.event.summary))
        said.append(SystemMessage(id=BlockId(""), turn=TurnId(""), text=known))
        said += [entry.block for entry in view.compaction.head.entries]
    return redaction_of(hidden, [summary], said).redacted(summary)
