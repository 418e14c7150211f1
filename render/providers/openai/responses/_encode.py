"""Groups of blocks as items of input.

What the model said, item by item, then an output for every call, in the order of the calls, then a message
for everything else that came, in log order.  So a request's input only ever grows at its end.

Reasoning goes back as it came, with the item that followed it, which then keeps its id; the server refuses
each of the two without the other.  Where that item is not shown any more, or changed, the reasoning is left
out; reasoning without `encrypted_content` is known to nobody, because nothing is stored.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    OpaqueBlock,
    Part,
    ToolCall,
    TurnHeader,
    text_of,
)
from render.policy._provider import Piece, TokenCounter
from render.providers._names import tool_name, wire_id
from render.providers.openai._kinds import TAG_PREFIX
from render.providers.openai._parts import ResponsesParts, content_of, texts_of
from render.providers.openai._rounds import (
    Sent,
    answers,
    arguments_of,
    free_input,
    others,
    piece_of,
)
from render.providers.openai.responses._kinds import REPLAYED
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, response_of, verbatim

_PARTS: Final = ResponsesParts()
_COMPACTION: Final = ("type", "id", "encrypted_content")
"""What of a compaction item the API takes back; all else of it is for reading."""


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    keep_thinking: bool = True
    listed: bool = False
    """Whether outputs are lists of parts, which can carry cache marks, and no plain texts."""

    def encode(self, group: Group) -> Piece:
        """The group in the provider's words, as it is."""
        notices: list[str] = []
        said = list(self._said(group, notices))
        results = [
            _user_item(version, self._result(call, parts))
            for call, version, parts in answers(group, notices)
        ]
        heard = [
            _message(*each) for each in others(group, notices, answered=bool(results) or not said)
        ]
        return piece_of(group, [*said, *results, *heard], self.counter, notices)

    def _said(self, group: Group, notices: list[str]) -> Iterator[Sent]:
        tied = False
        for entry in group.placed(Place.RESPONSE):
            item: Json | None = None
            match entry.block:
                case AssistantThinking() as thinking:
                    item = self._reasoning(thinking, _following(group, entry))
                    if item is None and self.keep_thinking:
                        notices.append(
                            f"thinking that cannot be sent back is not shown: {entry.path}"
                        )
                    tied = item is not None and "id" in item
                case ToolCall() as call:
                    item = _call(entry, call, tied=tied)
                case OpaqueBlock() as block if (own := verbatim(block)) is not None:
                    item = _own(block, own)
                    if item is None:
                        item = _text(block, text_of(block), tied=False)
                    if item is None:
                        notices.append(f"a block of a provider's is not shown: {entry.path}")
                case AssistantCompletion(text=text) | OpaqueBlock(text=text) as block:
                    item = _text(block, text, tied=tied)
                case _:
                    pass
            if item is not None:
                yield Sent(item=item, by_model=True, contents=((entry.version, item),))

    def _reasoning(self, thinking: AssistantThinking, follows: Entry | None) -> Json | None:
        """The item as it came, if the server will take it."""
        own = thinking.provider
        sealed: object = own.get("encrypted_content")
        if not self.keep_thinking or own.get("type") != "reasoning" or follows is None:
            return None
        if not isinstance(sealed, str) or not sealed:
            return None
        item = {key: value for key, value in own.items() if value is not None}
        known = _id_of(follows.block)
        return item if known or (known is not None and "id" not in item) else None

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


def _message(version: int, parts: Sequence[Part]) -> Sent:
    contents = [content_of(part, _PARTS) for part in parts]
    item = {"type": "message", "role": "user", "content": contents}
    numbered = tuple((version, content) for content in contents)
    return Sent(item=item, by_model=False, contents=numbered)


def _following(group: Group, thinking: Entry) -> Entry | None:
    """What the model said next; None: nothing, or nothing that is shown any more."""
    response = thinking.block.response if isinstance(thinking.block, AssistantThinking) else ""
    rest = group.entries[group.place_of(thinking.version) + 1 :]
    said = (
        entry
        for entry in rest
        if response_of(entry.block) == response and entry.place in (Place.RESPONSE, Place.SILENT)
    )
    return next((e for e in said if not isinstance(e.block, AssistantThinking | TurnHeader)), None)


def _id_of(block: Block) -> str | None:
    """The id under which the provider knows what it said; empty: it gave none. None: it said nothing that
    is shown."""
    match block:
        case ToolCall() | AssistantCompletion():
            found: object = block.provider.get("id")
        case OpaqueBlock() if (own := verbatim(block)) is not None and _own(block, own):
            found = own.get("id")
        case _:
            return None
    if isinstance(block, AssistantCompletion) and not block.text.strip():
        return None
    return found if isinstance(found, str) else ""


def _text(block: Block, text: str, *, tied: bool) -> Json | None:
    if not text.strip():
        return None
    known: dict[str, Any] = block.provider if isinstance(block, AssistantCompletion) else {}
    phase: Json = {"phase": known["phase"]} if isinstance(known.get("phase"), str) else {}
    message = {"type": "message", "role": "assistant"}
    if not (tied and isinstance(known.get("id"), str)):
        return {**message, "content": text, **phase}
    content: Json = {"type": "output_text", "text": text, "annotations": []}
    if known.get("refusal"):
        content = {"type": "refusal", "refusal": text}
    status = {"id": known["id"], "status": "completed"}
    return {**message, **status, "content": [content], **phase}


def _call(entry: Entry, call: ToolCall, *, tied: bool) -> Json:
    known: object = call.provider.get("id")
    own: Json = {"id": known} if tied and isinstance(known, str) else {}
    named = {"call_id": wire_id(entry.pair), "name": tool_name(call.name)}
    if (text := free_input(call)) is not None:
        return {"type": "custom_tool_call", **own, **named, "input": text}
    namespace: object = call.provider.get("namespace")
    if isinstance(namespace, str):
        named["namespace"] = namespace
    return {"type": "function_call", **own, **named, "arguments": arguments_of(call)}


def _own(block: OpaqueBlock, own: Json) -> Json | None:
    """The provider's own item, if it takes it back."""
    kind: object = own.get("type")
    if block.tag != f"{TAG_PREFIX}{kind}" or kind not in REPLAYED:
        return None
    if kind == "compaction":
        return {key: own[key] for key in _COMPACTION if own.get(key) is not None}
    return {key: value for key, value in own.items() if value is not None}
