"""A response of the Responses API, read: is it one, what did the model say, and what did it cost?"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    MisuseError,
    OpaqueBlock,
    TurnId,
    UsageRecorded,
    in_words,
)
from render.policy._provider import Answer
from render.providers._facts import fields
from render.providers.openai._kinds import TAG_PREFIX
from render.providers.openai._read import (
    as_json,
    call_of,
    checked_contents,
    checked_text,
    usage_in,
)
from render.providers.openai.responses._kinds import CALLS
from render.view._provider_blocks import Json

WANTED: Final = (
    "record() takes a response of OpenAI's Responses API (the SDK's object, or its JSON)"
)
_FOREIGN: Final = {
    "choices": "a response of OpenAI's Chat Completions API",
    "content": "a response of Anthropic's",
    "candidates": "a response of the Gemini API",
}
_OBJECTS: Final = (None, "response", "response.compaction")
_UNFINISHED: Final = frozenset({"in_progress", "queued"})
_KEPT: Final = ("namespace",)
"""Of a call: what the provider wants back."""


def response_of(response: object) -> Json:
    """A response as JSON, its output a list of items.

    Raises:
        MisuseError: it is none, is of another API, is not finished, or holds what no log can show.
    """
    found = as_json(response, WANTED)
    for name, whose in _FOREIGN.items():
        if name in found and "output" not in found:
            raise MisuseError(f"{WANTED}, not {whose}")
    if found.get("object") not in _OBJECTS:
        raise MisuseError(f"{WANTED}, not {in_words(found.get('object'))}")
    status: object = found.get("status")
    if status == "failed":
        said = _said(found.get("error"))
        raise MisuseError(f"record(): an error of the provider's, and no response: {said}")
    if status in _UNFINISHED:
        raise MisuseError(f"record(): the response is not finished: its status is {status!r}")
    for name in ("id", "model"):
        value: object = found.get(name)
        if value is not None and not isinstance(value, str):
            raise MisuseError(f"record(): the response's {name} is a text, not {in_words(value)}")
    output: object = found.get("output")
    if not isinstance(output, list | tuple):
        raise MisuseError(f"{WANTED}; its output is a list, not {in_words(output)}")
    items = [_item(item, n) for n, item in enumerate(cast("Sequence[object]", output))]
    if not items and not found.get("usage"):
        raise MisuseError("record(): the response is empty: it has neither output nor usage")
    return {**found, "output": items}


def _said(error: object) -> object:
    found = as_json(error, WANTED) if error else {}
    return found.get("message") or "without a message"


def _item(item: object, number: int) -> Json:
    where = f"record(): output.{number}"
    try:
        found = as_json(item, WANTED)
    except MisuseError:
        raise MisuseError(f"{where} is an item, not {in_words(item)}") from None
    kind: object = found.get("type")
    if not isinstance(kind, str) or not kind:
        raise MisuseError(f"{where}: no item of a response has the type {in_words(kind)}")
    for name in ("call_id", "name") if kind in CALLS else ():
        if not checked_text(found, name, where).strip():
            raise MisuseError(f"{where}: {name} is empty")
    if kind in CALLS.values():
        raise MisuseError(f"{where}: {kind} is what a caller answers, and no model says")
    return found


def answer_of(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of a response, and its usage.

    A tool call that was cut off is discarded: its arguments may be cut anywhere.

    Raises:
        MisuseError: it is no such response.
        CodecError: it holds what cannot be stored; it says where.
    """
    found = response_of(response)
    items: list[Json] = found["output"]
    checked_contents(items, "output")
    own: str = found.get("id") or ""
    made = (block_of(item, new_id, turn, own) for item in _complete(items, found.get("status")))
    blocks = tuple(block for block in made if block is not None)
    return Answer(id=own, blocks=blocks, usage=usage_of(found))


def _complete(items: Sequence[Json], status: object) -> Iterator[Json]:
    """Without the calls that were cut off."""
    for index, item in enumerate(items):
        is_last = index == len(items) - 1
        cut = item.get("status") == "incomplete" or (status == "incomplete" and is_last)
        if not (cut and item["type"] in CALLS):
            yield item


def block_of(
    item: Json, new_id: Callable[[], BlockId], turn: TurnId, response: str
) -> Block | None:
    """The block of one item; None: it says nothing, or nothing that is new."""
    match item["type"]:
        case "message":
            return _message(item, new_id, turn, response)
        case "reasoning":
            return AssistantThinking(id=new_id(), turn=turn, response=response, provider=item)
        case "function_call" | "custom_tool_call":
            known = {name: item[name] for name in _KEPT if isinstance(item.get(name), str)}
            return call_of(item, known, new_id(), turn, response)
        case kind:  # the provider's own: a tool that it ran itself, its compaction
            fields = {"id": new_id(), "turn": turn, "author": "assistant"}
            return OpaqueBlock(
                f"{TAG_PREFIX}{kind}", {**fields, "response": response, "value": item}
            )


def _message(
    item: Json, new_id: Callable[[], BlockId], turn: TurnId, response: str
) -> Block | None:
    """What the model said; a compaction repeats what the user did, which the log has."""
    if item.get("role") not in (None, "assistant"):
        return None
    texts: list[str] = []
    refused = False
    content: object = item.get("content")
    for part in cast("Sequence[object]", content) if isinstance(content, list | tuple) else ():
        known = fields(part)
        text: object = known.get("text", known.get("refusal"))
        refused = refused or known.get("type") == "refusal"
        texts += [text] if isinstance(text, str) else []
    said = content if isinstance(content, str) else "".join(texts)
    if not said:
        return None
    provider: Json = {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
    provider |= {"refusal": True} if refused else {}
    return AssistantCompletion(
        id=new_id(), turn=turn, response=response, text=said, provider=provider
    )


def usage_of(response: object) -> UsageRecorded | None:
    """What a response says about its cost, if it says anything."""
    found = as_json(response, WANTED)
    return usage_in(found, WANTED)
