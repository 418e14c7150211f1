"""What an assistant's content in LangChain was before LangChain had it.

Its blocks are those of the provider, with the numbers of a stream among them; or LangChain's own, where a
model's `output_version` is "v1"; of OpenAI's Responses, where each text has the id of the item that it was in,
there may be several blocks of one item.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from blocks.formats._json import Json, items, obj, objs, string, tool_input

_STREAMED: Final = frozenset({"index", "partial_json"})
"""What a stream leaves in a block."""
_TEXTS: Final = frozenset({"text", "output_text", "refusal"})
_ITEM: Final = "msg"
"""How the id of a message of the Responses API begins."""


def as_sent(message: Json) -> Iterator[Any]:
    """Texts and blocks in the shape of the provider; of its items, one each."""
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
    """A block without what its provider does not know."""
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
    """The kind and the id of the item that a block is a part of; empty: it is one itself."""
    block = obj(item)
    own, kind = string(block.get("id")), string(block.get("type"))
    if kind in _TEXTS and own.startswith(_ITEM):
        return "message", own
    return ("reasoning", own) if kind == "reasoning" and "summary" not in block else ("", "")


def _reasoning(blocks: Sequence[Json]) -> Json:
    """The item of whose summary each block has a part."""
    texts = [block["reasoning"] for block in blocks if "reasoning" in block]
    known = {**blocks[0], **obj(blocks[0].get("extras"))}
    own = {name: value for name, value in known.items() if name not in ("reasoning", "extras")}
    return {**own, "summary": [{"type": "summary_text", "text": text} for text in texts]}
