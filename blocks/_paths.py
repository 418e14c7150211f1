"""Logical paths: how a block is named to a model and to a person.

    ar:<turn>.user.prompt              what was said, by kind; .2, .3 for further ones of the turn
    ar:<turn>.assistant.completion.2
    tc:<turn>.<call id>.call           tool traffic, by call
    tc:<turn>.<call id>.result
    su:<turn>.conv.range.summary       summaries
    fi:<turn>.<name>                   files that came with the user's words

A path is derived and never stored, so it costs nothing and cannot disagree with the log.
"""

from blocks._block import Block, RangeSummary, ToolCall, ToolResult, UserAttachment, tag_of


def path_stem(block: Block) -> str:
    """The path of the first such block of its turn."""
    match block:
        case ToolCall():
            return f"tc:{block.turn}.{block.call_id}.call"
        case ToolResult():
            return f"tc:{block.turn}.{block.call_id}.result"
        case UserAttachment():
            return f"fi:{block.turn}.{block.name}"
        case RangeSummary():
            return f"su:{block.turn}.conv.range.summary"
        case _:
            return f"ar:{block.turn}.{tag_of(block)}"


def path_of(block: Block, ordinal: int = 1) -> str:
    """The path of the `ordinal`-th block (from 1) with this stem."""
    stem = path_stem(block)
    return stem if ordinal == 1 else f"{stem}.{ordinal}"
