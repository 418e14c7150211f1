"""What a log takes only once: a response, and the result of a call.

Looked up in the window, before each try to commit: another process may have been faster.  Logs that
were recorded elsewhere may repeat ids as they like; they come in through `append`.
"""

from blocks import (
    AlreadyRecordedError,
    AssistantBlock,
    Block,
    BlockAppended,
    OpaqueBlock,
    ToolCall,
    ToolResult,
    UnknownCallError,
    UsageRecorded,
)
from render import Place, View


def refuse_repeated_response(view: View, response: str) -> None:
    """Refuse a response whose id is in the log.

    Raises:
        AlreadyRecordedError: with the version of its last event.
    """
    if not response:
        return
    for version, event in reversed(view.tape):
        found: object = ""
        if isinstance(event, BlockAppended):
            found = _response_of(event.block)
        elif isinstance(event, UsageRecorded):
            found = event.response
        if found == response:
            raise AlreadyRecordedError(f"response {response!r}", version)


def refuse_repeated_result(view: View, call_id: str) -> None:
    """Refuse the result of a call that nobody made, or that has its result.

    Raises:
        UnknownCallError: with the open calls.
        AlreadyRecordedError: with the version of that result.
    """
    newest = view.groups[-1] if view.groups else None
    if newest and not newest.sealed and call_id in newest.open_calls:
        return
    calls, answered = 0, list[int]()
    for entry in view.entries:
        block = entry.source
        if isinstance(block, ToolCall):
            calls += block.call_id == call_id
        elif isinstance(block, ToolResult) and block.call_id == call_id:
            answered += [entry.version] if entry.place is not Place.ORPHAN else []
    if not calls:
        raise UnknownCallError(call_id, newest.open_calls if newest else ())
    if len(answered) >= calls:
        raise AlreadyRecordedError(f"the result of call {call_id!r}", answered[-1])


def _response_of(block: Block) -> object:
    if isinstance(block, OpaqueBlock):
        return block.fields.get("response")
    return block.response if isinstance(block, AssistantBlock) else ""
