"""Keys by which a paid summary is found again, in its own timeline and in others.

Both keys depend on content, schema, policy, model and prompt version.
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
from render.compaction._cut import RangePlan
from render.compaction._prompt import PROMPT_VERSION
from render.policy._context import Context
from render.view._view import View


def summary_key(plan: RangePlan, context: Context, model: str) -> str:
    """Key of a prepared summary, so that the same range is never paid for twice.

    It covers content, schema, policy, model and prompt version, and nothing that differs between machines.
    """
    return _key(plan.source_hash, plan, context, model)


def shared_key(plan: RangePlan, view: View, context: Context, model: str, reader: str) -> str:
    """Key of a summary that another timeline with the same content may use: like `summary_key`, but without
    block ids and times.

    `reader` is the requester for whom the summary is stored and found. If it is empty, everything else that
    the model is shown must be the same, too.
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
    """The block without the fields that differ when the same content is logged again."""
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
