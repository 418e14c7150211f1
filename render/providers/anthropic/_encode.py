"""Groups of blocks as Anthropic messages.

A group becomes an assistant message (what the model said) and a user message (the results of its
calls first, in the order of the calls; then whatever else came, in log order).  So groups alternate
by themselves, and what was encoded for one group never changes because of another: the next request
is the last one and more.

Repairs besides those of every provider (see `_rounds`), each with a notice:

* thinking without a signature is not shown, nor thinking at the end of a message;
* calls whose thinking is hidden on request are quoted in the user's message, with their results, where
  the provider wants thinking before calls.
"""

from collections.abc import Iterable, Iterator, Sequence
from json import dumps

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    OpaqueBlock,
    Part,
    TextPart,
    ToolCall,
)
from render.policy._provider import Piece, TokenCounter
from render.providers._names import tool_name, wire_id
from render.providers._rounds import OTHERS, Returned, Scale, in_two, others, piece_of, returned
from render.providers.anthropic._count import content_tokens
from render.providers.anthropic._kinds import THINKING_TYPES
from render.providers.anthropic._parts import Refuses, part_content
from render.providers.anthropic._server_tools import (
    Numbered,
    is_own,
    is_replayed,
    is_resumable,
    paired,
)
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

_PROOFS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""By type: the texts that it must have, the proof of its origin last."""


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    refuses: Refuses
    keep_thinking: bool = True
    thinking_leads: bool = False
    """Whether calls are refused whose thinking is hidden; see `ThinkingRule`."""

    def encode(self, group: Group) -> Piece:
        """The group in the provider's words, as it is."""
        notices: list[str] = []
        said = list(self._said(group, notices))
        heard = [self._result(found) for found in returned(group, notices)]
        replied = bool(heard) or not said or is_resumable(said)
        if self.thinking_leads and _lacks_lead(group, said):
            said = [each for each in said if each[1].get("type") != "tool_use"]
            heard = list(_as_texts(group, heard))
        for version, parts in others(group, notices, answered=replied):
            heard += [(version, part_content(part, "user", self.refuses)) for part in parts]
        sent = in_two(said, heard, "assistant", "content")
        scale = Scale(tokens=content_tokens, counter=self.counter)
        return piece_of(group, sent, scale, notices)

    def _said(self, group: Group, notices: list[str]) -> Iterator[Numbered]:
        """The assistant's message."""
        contents: list[Numbered] = []
        replayed = False
        for entry in group.placed(Place.RESPONSE):
            match entry.block:
                case ToolCall() as call:
                    contents.append((entry.version, _tool_use(entry, call)))
                case AssistantThinking() as thinking:
                    if self.keep_thinking and _is_signed(thinking, entry, notices):
                        contents.append((entry.version, _unmarked(thinking.provider)))
                case OpaqueBlock() as block if (own := verbatim(block)) is not None:
                    sent = _unmarked(own)
                    if is_own(block, own) and is_replayed(sent, self.refuses):
                        contents.append((entry.version, sent))
                        replayed = True
                    else:
                        notices.append(
                            f"a block that the provider refuses is not shown: {entry.path}"
                        )
                case AssistantCompletion(text=text) | OpaqueBlock(text=text) if text.strip():
                    contents.append((entry.version, {"type": "text", "text": text}))
                case _:
                    pass
        if replayed:
            more = any(entry.place in OTHERS for entry in group.entries)
            contents = list(paired(contents, notices, is_last=not more))
        while contents and contents[-1][1].get("type") in THINKING_TYPES:
            notices.append(
                f"thinking at the end of a message is not shown: version {contents[-1][0]}"
            )
            contents.pop()
        return iter(contents)

    def _result(self, found: Returned) -> Numbered:
        content = {
            "type": "tool_result",
            "tool_use_id": wire_id(found.call.pair),
            "content": self._result_content(found.parts),
        }
        return found.version, {**content, "is_error": True} if found.failed else content

    def _result_content(self, parts: Sequence[Part]) -> str | list[Json]:
        if len(parts) == 1 and isinstance(parts[0], TextPart):
            return parts[0].text
        return [part_content(part, "result", self.refuses) for part in parts]


def _tool_use(entry: Entry, block: ToolCall) -> Json:
    return {
        "type": "tool_use",
        "id": wire_id(entry.pair),
        "name": tool_name(block.name),
        "input": block.input,
    }


def _is_signed(block: AssistantThinking, entry: Entry, notices: list[str]) -> bool:
    needed = _PROOFS.get(str(block.provider.get("type")), ("",))
    found = [block.provider.get(name) for name in needed]
    if all(isinstance(value, str) for value in found) and found[-1]:
        return True
    notices.append(f"thinking without a signature is not shown: {entry.path}")
    return False


def _unmarked(content: Json) -> Json:
    """As the model wrote it; a cache mark is what a caller once added."""
    if "cache_control" not in content:
        return content
    return {key: value for key, value in content.items() if key != "cache_control"}


# Calls without the thinking that led to them.
#
# Where thinking is of type `enabled`, the provider takes a message with calls, whose results are sent,
# only if it begins with thinking.  When somebody hides that thinking, the calls cannot be sent as calls
# any more: they are quoted to the model together with their results.


def _lacks_lead(group: Group, said: Sequence[Numbered]) -> bool:
    """Whether a round would begin with thinking if that were not hidden."""
    if any(content.get("type") in THINKING_TYPES for _, content in said[:1]):
        return False
    return any(
        isinstance(entry.block, AssistantThinking) and entry.original is not None
        for entry in group.entries
    )


def _as_texts(group: Group, results: Iterable[Numbered]) -> Iterator[Numbered]:
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
