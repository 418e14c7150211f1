"""A message as server-sent events."""

import json
from collections.abc import Iterator
from typing import Final

from render import Json
from timeline.fake_provider._draft import Draft

_PIECE_CHARS: Final = 24
_PIECES_MAX: Final = 100
"""A long text comes in longer pieces, not in more."""


def event(data: Json) -> bytes:
    """One event on the wire."""
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n".encode()


def events(message: Json, drafts: tuple[Draft, ...]) -> Iterator[Json]:
    """The events of a message, in the provider's order."""
    usage = message["usage"]
    begun: Json = {**message, "content": [], "stop_reason": None, "stop_details": None}
    yield {"type": "message_start", "message": {**begun, "usage": {**usage, "output_tokens": 1}}}
    for index, draft in enumerate(drafts):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(draft)}
        if index == 0:
            yield {"type": "ping"}
        for delta in _deltas(draft):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}


def _opened(draft: Draft) -> Json:
    """The block before anything of it was said."""
    match draft.block["type"]:
        case "text":
            return {**draft.block, "text": ""}
        case "thinking":
            return {**draft.block, "thinking": "", "signature": ""}
        case "tool_use":
            return {**draft.block, "input": {}}
        case _:
            return draft.block


def _deltas(draft: Draft) -> Iterator[Json]:
    match draft.block["type"]:
        case "text":
            for piece in _pieces(draft.said):
                yield {"type": "text_delta", "text": piece}
        case "thinking":
            for piece in _pieces(draft.said):
                yield {"type": "thinking_delta", "thinking": piece}
            if draft.block["signature"]:
                yield {"type": "signature_delta", "signature": draft.block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in _pieces(draft.said):
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            return


def _pieces(text: str) -> Iterator[str]:
    size = max(_PIECE_CHARS, -(-len(text) // _PIECES_MAX))
    return (text[at : at + size] for at in range(0, len(text), size))
