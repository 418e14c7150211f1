"""Groups of blocks as Anthropic messages.

A group becomes an assistant message (the model's output), a user message (the results first, in the order of the
calls; then other content in log order) and, for models that accept them there, a system message of the operator. So groups alternate by themselves, and the encoding of
a group never depends on another group: the next request extends the last one.

Repairs in addition to those of every provider (see `_rounds`), each with a notice:

* thinking without a signature is not shown, nor is thinking at the end of a message;
* if the provider requires thinking before calls and that thinking is hidden on request, the calls are
  quoted
  in the user's message, with their results.
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
from render.providers._rounds import OTHERS, Returned, Scale, by_role, others, piece_of, returned
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
"""By type, the required texts; the last one proves the origin."""


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    refuses: Refuses
    keep_thinking: bool = True
    thinking_leads: bool = False
    """Whether calls are refused if their thinking is hidden; see `ThinkingRule`."""
    roles: frozenset[str] = frozenset()
    """Roles of an operator's messages between the others."""

    def encode(self, group: Group) -> Piece:
        """The group as messages of this API."""
        notices: list[str] = []
        said = list(self._said(group, notices))
        heard = [self._result(found) for found in returned(group, notices)]
        replied = bool(heard) or not said or is_resumable(said)
        if self.thinking_leads and _lacks_lead(group, said):
            said = [each for each in said if each[1].get("type") != "tool_use"]
            heard = list(_as_texts(group, heard))
        operator: list[Numbered] = []
        for other in others(group, notices, answered=replied, roles=self.roles):
            own = heard if other.role == "user" else operator
            own += [(other.version, part_content(p, "user", self.refuses)) for p in other.parts]
        sent = by_role(
            {"assistant": said, "user": heard, "system": operator}, "assistant", "content"
        )
        scale = Scale(tokens=content_tokens, counter=self.counter)
        return piece_of(group, sent, scale, notices)

    def _said(self, group: Group, notices: list[str]) -> Iterator[Numbered]:
        """The content of the assistant message, with versions."""
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
    """The content as the model wrote it, without a cache mark that a caller added."""
    if "cache_control" not in content:
        return content
    return {key: value for key, value in content.items() if key != "cache_control"}


# Calls without the thinking that led to them. With thinking of type `enabled`, the provider accepts
# a message with answered calls only if it begins with thinking. If that thinking is hidden on
# request, the calls can no longer be sent as calls, so they are quoted with their results.


def _lacks_lead(group: Group, said: Sequence[Numbered]) -> bool:
    """Whether the round began with thinking that is now hidden."""
    if any(content.get("type") in THINKING_TYPES for _, content in said[:1]):
        return False
    return any(
        isinstance(entry.block, AssistantThinking) and entry.original is not None
        for entry in group.entries
    )


def _as_texts(group: Group, results: Iterable[Numbered]) -> Iterator[Numbered]:
    """Each result after a text that quotes its call, as ordinary content; any part of a result may also
    stand outside of one."""
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
