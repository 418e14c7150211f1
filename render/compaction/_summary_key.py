"""What a summary that was paid for is found by, in its timeline and in others.

Both keys tell content, schema, policy, model and the version of the prompt.
"""

from hashlib import sha256
from typing import Any

import msgspec

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    Note,
    OpaqueBlock,
    Plan,
    StructuredSummary,
    ToolCall,
    ToolResult,
    TurnHeader,
    encode_block,
)
from render.compaction._prompt import PROMPT_VERSION
from render.compaction._range import RangePlan
from render.policy._context import Context
from render.view._view import View


def summary_key(plan: RangePlan, context: Context, model: str) -> str:
    """What a prepared summary is found by: the same range is never paid for twice.

    Content, schema, policy, model and prompt version; nothing that differs between two machines.
    """
    return _key(plan.source_hash, plan, context, model)


def shared_key(plan: RangePlan, view: View, context: Context, model: str, reader: str) -> str:
    """What a summary of equal content in another timeline is found by: as `summary_key`, but without what
    names blocks and says when they were made.

    `reader`: in whose name it is written and found; empty: in nobody's, and then all that a model is
    shown besides the range has to be the same.
    """
    digest = sha256(reader.encode(errors="surrogatepass") + b"\n")
    if view.compaction:
        digest.update(encode_block(view.compaction.event.summary))
    for entry in plan.folded if reader else (*plan.folded, *plan.kept):
        digest.update(b"%d " % entry.version + encode_block(_unnamed(entry.block)))
    if not reader:
        for item in view.compaction.event.carried if view.compaction else ():
            digest.update(encode_block(_unnamed(item.block)))
        digest.update(msgspec.json.encode([context.system, context.tools, context.model.name]))
    return _key(digest.hexdigest(), plan, context, model)


def _unnamed(block: Block) -> Block:
    """A block without what differs when the same is said once more."""
    match block:
        case OpaqueBlock():
            return OpaqueBlock(block.tag, {**block.fields, "id": ""})
        case TurnHeader():
            return msgspec.structs.replace(block, id=BlockId(""), source="", started_at=0.0)
        case ToolResult():
            known = msgspec.structs.replace(block.envelope, started_at=0.0, ended_at=0.0)
            return msgspec.structs.replace(block, id=BlockId(""), source="", envelope=known)
        case AssistantThinking() | AssistantCompletion() | ToolCall() | Note() | Plan():
            return msgspec.structs.replace(block, id=BlockId(""), source="", response="")
        case _:
            return msgspec.structs.replace(block, id=BlockId(""), source="")


def _key(content: str, plan: RangePlan, context: Context, model: str) -> str:
    policy = context.policy
    parts: list[Any] = [
        content,
        StructuredSummary().schema,
        [policy.summary_tokens, policy.prefix_tokens],
        plan.is_split,
        model,
        PROMPT_VERSION,
    ]
    return sha256(msgspec.json.encode(parts)).hexdigest()
