"""Restores the provider's form of an assistant's content in LangChain.

Its blocks are those of the provider, with index numbers of a stream; or LangChain's own, if the model's
`output_version` is "v1".  With OpenAI's Responses API, each text has the id of its item, so one item may be several
blocks.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from blocks.formats._json import Json, items, obj, objs, string, tool_input

_STREAMED: Final = frozenset({"index", "partial_json"})
"""Fields that remain in a block after streaming."""
_TEXTS: Final = frozenset({"text", "output_text", "refusal"})
_ITEM: Final = "msg"
"""The beginning of the ids of messages in the Responses API."""


def as_sent(message: Json) -> Iterator[Any]:
    """Texts and blocks in the form of the provider; blocks of one item are joined."""
    content = message.get("content")
    before = obj(obj(message.get("additional_kwargs")).get("reasoning"))  # "v0"
    given = items(content) if isinstance(content, list) else [content]
    blocks = [_plain(item) for item in ([before, *given] if before else given)]
    for (kind, own), run in groupby(blocks, _item_of):
        found = list(run)
        if kind == "message":
            yield {**found[0], "type": kind, "id": own, "content": found}
        elif kind == "reasoning":
            yield _reasoning(found)
        else:
            yield from found


def _plain(item: Any) -> Any:
    """A block without fields that its provider does not know."""
    block = obj(item)
    if not block:
        return item
    if block.get("type") == "non_standard":
        return _plain(obj(block.get("value")))
    if "partial_json" in block and not block.get("input"):
        block = {**block, "input": tool_input(block["partial_json"])}
    own = {
        name: value for name, value in block.items() if name not in _STREAMED and value is not None
    }
    if summary := objs(block.get("summary")):
        own["summary"] = [{n: v for n, v in part.items() if n not in _STREAMED} for part in summary]
    if signature := obj(block.get("extras")).get("signature"):
        said = string(block.get("reasoning"))
        return {"type": "thinking", "thinking": said, "signature": signature}
    return own


def _item_of(item: Any) -> tuple[str, str]:
    """Kind and id of the item to which a block belongs; empty if the block is an item itself."""
    block = obj(item)
    own, kind = string(block.get("id")), string(block.get("type"))
    if kind in _TEXTS and own.startswith(_ITEM):
        return "message", own
    return ("reasoning", own) if kind == "reasoning" and "summary" not in block else ("", "")


def _reasoning(blocks: Sequence[Json]) -> Json:
    """The reasoning item of these blocks, each of which has a part of its summary."""
    texts = [block["reasoning"] for block in blocks if "reasoning" in block]
    known = {**blocks[0], **obj(blocks[0].get("extras"))}
    own = {name: value for name, value in known.items() if name not in ("reasoning", "extras")}
    return {**own, "summary": [{"type": "summary_text", "text": text} for text in texts]}
