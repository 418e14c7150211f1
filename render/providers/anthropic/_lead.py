"""Calls without the thinking that led to them.

Where thinking is of type `enabled`, the provider takes a message with calls, whose results are sent, only
if it begins with thinking.  When somebody hides that thinking, the calls cannot be sent as calls any more:
they are quoted to the model together with their results.
"""

from collections.abc import Iterable, Iterator, Sequence
from json import dumps

from blocks import AssistantThinking, ToolCall
from render.providers.anthropic._kinds import THINKING_TYPES
from render.providers.anthropic._server_tools import Numbered
from render.providers.anthropic._wire_ids import wire_id
from render.view._group import Group, Place


def lacks_lead(group: Group, said: Sequence[Numbered]) -> bool:
    """Whether a round would begin with thinking, had nobody hidden that."""
    if any(content.get("type") in THINKING_TYPES for _, content in said[:1]):
        return False
    return any(
        isinstance(entry.block, AssistantThinking) and entry.original is not None
        for entry in group.entries
    )


def as_texts(group: Group, results: Iterable[Numbered]) -> Iterator[Numbered]:
    """Results, each behind the call that it answers, as content that is no tool traffic: a part that
    may stand in a result may stand outside of one, too."""
    calls = {
        wire_id(entry.pair): entry.block
        for entry in group.placed(Place.RESPONSE)
        if isinstance(entry.block, ToolCall)
    }
    for version, result in results:
        call = calls[result["tool_use_id"]]
        arguments = dumps(call.input, ensure_ascii=False)
        content = result["content"]
        said = [{"type": "text", "text": content}] if isinstance(content, str) else content
        asked = f"[{call.name} was called with {arguments}; it gave]"
        for part in ({"type": "text", "text": asked}, *said):
            yield version, part
