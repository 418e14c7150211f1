"""Groups of blocks as input items of Responses.

The items of the model come first, then an output for every call, in the order of the calls, then a message
for other content, in log order. So a request's input only grows at its end.

Reasoning is sent back unchanged before the item that it led to. If that item is no longer shown, the
reasoning is left out, because the server requires both or neither. Reasoning without `encrypted_content` is
left out, because the server stores nothing; for the same reason ids are left out, because the server would
look them up.
"""

from collections.abc import Iterator, Sequence
from typing import Final, cast

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    OpaqueBlock,
    Part,
    ToolCall,
)
from render.policy._provider import Piece, TokenCounter
from render.providers._names import tool_name, wire_id
from render.providers._rounds import Other, Sent, others, piece_of, told
from render.providers.openai._kinds import OPERATORS, TAG_PREFIX
from render.providers.openai._parts import ResponsesParts, content_of, texts_of
from render.providers.openai._rounds import answers, arguments_of, free_input, scale_of
from render.providers.openai.responses._kinds import REPLAYED
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, response_of, verbatim

_PARTS: Final = ResponsesParts()
_SAID: Final = frozenset({Place.RESPONSE, Place.SILENT})
_COMPACTION: Final = ("type", "encrypted_content")
"""The fields of a compaction item that the API accepts back."""


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    keep_thinking: bool = True
    listed: bool = False
    """Whether outputs are lists of parts, which can carry cache marks, instead of strings."""

    def encode(self, group: Group) -> Piece:
        """The group as input items of this API."""
        notices: list[str] = []
        said = self._said(group, notices)
        results = [
            _user_item(version, self._result(call, parts))
            for call, version, parts in answers(group, notices)
        ]
        answered = bool(results) or not said
        heard = map(_message, others(group, notices, answered=answered, roles=OPERATORS))
        return piece_of(group, [*said, *results, *heard], scale_of(self.counter), notices)

    def _said(self, group: Group, notices: list[str]) -> Sequence[Sent]:
        said: list[Sent] = []
        followed, response = False, ""
        for entry in reversed(group.entries):
            if entry.place not in _SAID or entry.block.author != "assistant":
                continue
            item = self._item(entry) if entry.place is Place.RESPONSE else None
            if response_of(entry.block) != response:
                followed, response = False, response_of(entry.block)
            if not isinstance(entry.block, AssistantThinking):
                followed = item is not None
            elif not followed:
                item = None
            if item is not None:
                said.append(Sent(item=item, by_model=True, contents=((entry.version, item),)))
            elif entry.place is Place.RESPONSE:
                notices += self._missed(entry)
        notices.reverse()
        return said[::-1]

    def _missed(self, entry: Entry) -> Iterator[str]:
        """Notices for an entry that is not shown."""
        if isinstance(entry.block, AssistantThinking) and self.keep_thinking:
            yield f"thinking that cannot be sent back is not shown: {entry.path}"
        elif verbatim(entry.block) is not None:
            yield f"a block that the provider refuses is not shown: {entry.path}"

    def _item(self, entry: Entry) -> Json | None:
        match entry.block:
            case AssistantThinking() as thinking:
                return _reasoning(thinking.provider) if self.keep_thinking else None
            case ToolCall() as call:
                return _call(entry, call)
            case OpaqueBlock() as block if (own := _own(block)) is not None:
                return own
            case OpaqueBlock() as block:
                return _text(block, told(block))
            case AssistantCompletion(text=text) as block:
                return _text(block, text)
            case _:
                return None

    def _result(self, call: Entry, parts: Sequence[Part]) -> Json:
        kind = "function_call_output"
        if isinstance(call.block, ToolCall) and free_input(call.block) is not None:
            kind = "custom_tool_call_output"
        contents = [content_of(part, _PARTS) for part in parts]
        texts = texts_of(contents)
        plain = not self.listed and texts is not None and len(texts) == 1
        output: str | list[Json] = cast("list[str]", texts)[0] if plain else contents
        return {"type": kind, "call_id": wire_id(call.pair), "output": output}


def _user_item(version: int, item: Json) -> Sent:
    return Sent(item=item, by_model=False, contents=((version, item),))


def _message(other: Other) -> Sent:
    contents = [content_of(part, _PARTS) for part in other.parts]
    item = {"type": "message", "role": other.role, "content": contents}
    numbered = tuple((other.version, content) for content in contents)
    return Sent(item=item, by_model=False, contents=numbered)


def _reasoning(own: Json) -> Json | None:
    """The item unchanged except for its id; None if the server would not accept it."""
    sealed: object = own.get("encrypted_content")
    if own.get("type") != "reasoning" or not isinstance(sealed, str) or not sealed:
        return None
    return {key: value for key, value in own.items() if key != "id" and value is not None}


def _text(block: Block, text: str) -> Json | None:
    if not text.strip():
        return None
    known: Json = block.provider if isinstance(block, AssistantCompletion) else {}
    phase: Json = {"phase": known["phase"]} if isinstance(known.get("phase"), str) else {}
    return {"type": "message", "role": "assistant", "content": text, **phase}


def _call(entry: Entry, call: ToolCall) -> Json:
    named = {"call_id": wire_id(entry.pair), "name": tool_name(call.name)}
    if (text := free_input(call)) is not None:
        return {"type": "custom_tool_call", **named, "input": text}
    namespace: object = call.provider.get("namespace")
    if isinstance(namespace, str):
        named["namespace"] = namespace
    return {"type": "function_call", **named, "arguments": arguments_of(call)}


def _own(block: OpaqueBlock) -> Json | None:
    """The provider's own item, or None if the provider does not accept it back."""
    own = verbatim(block) or {}
    kind: object = own.get("type")
    if block.tag != f"{TAG_PREFIX}{kind}" or kind not in REPLAYED:
        return None
    if kind == "compaction":
        return {key: own[key] for key in _COMPACTION if own.get(key) is not None}
    return {key: value for key, value in own.items() if value is not None}
