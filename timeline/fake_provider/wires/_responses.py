"""OpenAI's Responses API, without storage on the server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from render import Json, Model
from timeline.fake_provider._reply import ApiError, Draft, Reply, invalid
from timeline.fake_provider.wires import _openai
from timeline.fake_provider.wires._openai import Offer, key_error, refusal
from timeline.fake_provider.wires._signature import sealed
from timeline.fake_provider.wires._wire import (
    Outgoing,
    Purpose,
    Wire,
    blocks_of,
    event,
    pieces,
    unknown_field,
)

_FIELDS: Final = frozenset(
    {
        *(
            "background",
            "client_metadata",
            "context_management",
            "conversation",
            "include",
            "input",
            "instructions",
        ),
        *("max_output_tokens", "max_tool_calls", "metadata", "model", "moderation"),
        *("parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key"),
        *("prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier"),
        *("service_tier", "store", "stream", "stream_options", "temperature", "text"),
        *("tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"),
    }
)
"""The fields of the SDK 3.54, and those that Codex adds."""
_SEALED: Final = frozenset({"compaction", "reasoning"})
_STORED: Final = ("background", "conversation", "previous_response_id", "prompt")
"""Fields that need stored content, which this server does not have."""
_INCOMPLETE: Final = {
    "max_tokens": "max_output_tokens",
    "model_context_window_exceeded": "max_output_tokens",
}


def shape_error(request: Json, _: Purpose) -> ApiError | None:
    """Unknown and missing fields, and fields that need stored content."""
    if field := unknown_field(request, _FIELDS):
        return invalid(f"Unknown parameter: '{field}'.", "unknown_parameter")
    if absent := _openai.missing(request, "model", "input"):
        return absent
    for name in _STORED:
        if request.get(name):
            return invalid(f"{name}: nothing is stored on this server")
    return None


def rule_error(request: Json, model: Model) -> ApiError | None:
    """The rules, and encrypted content that was changed."""
    for item in blocks_of(request["input"]):
        if item.get("type") in _SEALED and not _openai.is_own(item):
            text = "The encrypted content could not be verified."
            return invalid(text, "invalid_encrypted_content")
    return _openai.rule_error(request, model)


def own_reply(request: Json) -> Reply | None:
    """A compaction item, if the input ends with a request for one."""
    items = blocks_of(request["input"])
    if not items or items[-1].get("type") != "compaction_trigger":
        return None
    encrypted = sealed("", Model(name=request["model"]))
    return Reply(blocks=[{"id": "cmp_fake", "type": "compaction", "encrypted_content": encrypted}])


def message(outgoing: Outgoing) -> Json:
    """A response object."""
    answer, step = outgoing.answer, outgoing.step
    reason = _INCOMPLETE.get(answer.stop_reason)
    return {
        "id": outgoing.id,
        "object": "response",
        "created_at": outgoing.created,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": outgoing.model.name,
        "output": output(outgoing, is_cut=reason is not None),
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": {
            "input_tokens": step.total,
            "input_tokens_details": {"cached_tokens": step.read, "cache_write_tokens": step.write},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": step.total + answer.output_tokens,
        },
    }


def stream(message: Json, _: Sequence[Draft], __: Json) -> Iterator[bytes]:
    """The events in the API's order, with sequence numbers."""
    numbers = count()
    for data in events(message):
        yield event({**data, "sequence_number": next(numbers)}, data["type"])


def error_event(error: ApiError) -> bytes:
    """The refusal as an event, without the envelope."""
    return event({**refusal(error)[1]["error"], "type": "error", "sequence_number": 0}, "error")


# The output: whole items, or events.


def output(outgoing: Outgoing, *, is_cut: bool) -> list[Json]:
    """The output items of an answer; only the last one may be incomplete."""
    offered = _openai.offered(outgoing.request)
    items = [_item(draft, outgoing.new_id, offered) for draft in outgoing.answer.drafts]
    if outgoing.answer.stop_reason == "refusal":
        refusal = {"type": "refusal", "refusal": "I can't help with that."}
        items.append(_message_item(outgoing.new_id("msg"), refusal))
    if is_cut and items and "status" in items[-1]:
        items[-1]["status"] = "incomplete"
    return items


def _message_item(id_: str, part: Json) -> Json:
    common = {"id": id_, "type": "message", "role": "assistant", "status": "completed"}
    return {**common, "content": [part]}


def _item(draft: Draft, new_id: Callable[[str], str], offered: Mapping[str, Offer]) -> Json:
    block = draft.block
    match block["type"]:
        case "text":
            text: Json = {"type": "output_text", "text": block["text"], "annotations": []}
            return _message_item(new_id("msg"), text)
        case "thinking":
            return {
                "id": new_id("rs"),
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": block["thinking"]}],
                "encrypted_content": block["signature"],
            }
        case "tool_use":
            return _call(draft, new_id, offered.get(block["name"], Offer()))
        case _:
            return dict(block)


def _call(draft: Draft, new_id: Callable[[str], str], offer: Offer) -> Json:
    """A call of a function, or of a custom tool, which takes the text in the field `input`."""
    block = draft.block
    names = {"call_id": block["id"], "name": block["name"]}
    if offer.namespace:
        names["namespace"] = offer.namespace
    if offer.kind == "custom":
        text = block["input"].get("input", draft.text)
        return {"id": new_id("ctc"), "type": "custom_tool_call", **names, "input": text}
    rest = {"arguments": draft.text, "status": "completed"}
    return {"id": new_id("fc"), "type": "function_call", **names, **rest}


def events(response: Json) -> Iterator[Json]:
    opening: Json = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(response["output"]):
        place = {"output_index": index}
        opened: Json = {
            name: [] if isinstance(value, list) else value for name, value in item.items()
        }
        opened |= {name: "" for name in ("arguments", "input") if name in opened}
        if "status" in opened:
            opened["status"] = "in_progress"
        yield {"type": "response.output_item.added", **place, "item": opened}
        yield from _inside(item, {**place, "item_id": item.get("id")})
        yield {"type": "response.output_item.done", **place, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _inside(item: Json, place: Json) -> Iterator[Json]:
    """The events with the content of one item, piece by piece."""
    match item["type"]:
        case "message":
            for number, part in enumerate(item["content"]):
                yield from _part(part, {**place, "content_index": number})
        case "reasoning":
            for number, part in enumerate(item["summary"]):
                here = {**place, "summary_index": number}
                empty = {**part, "text": ""}
                kind = "response.reasoning_summary_part"
                yield {"type": f"{kind}.added", **here, "part": empty}
                yield from _text("response.reasoning_summary_text", "text", part["text"], here)
                yield {"type": f"{kind}.done", **here, "part": part}
        case "function_call":
            kind = "response.function_call_arguments"
            yield from _text(kind, "arguments", item["arguments"], place)
        case "custom_tool_call":
            yield from _text("response.custom_tool_call_input", "input", item["input"], place)
        case _:
            return


def _part(part: Json, here: Json) -> Iterator[Json]:
    field = "text" if part["type"] == "output_text" else "refusal"
    kind = f"response.{part['type']}"
    yield {"type": "response.content_part.added", **here, "part": {**part, field: ""}}
    yield from _text(kind, field, part[field], here)
    yield {"type": "response.content_part.done", **here, "part": part}


def _text(kind: str, field: str, text: str, here: Json) -> Iterator[Json]:
    more: Json = {"logprobs": []} if kind == "response.output_text" else {}
    for piece in pieces(text):
        yield {"type": f"{kind}.delta", **here, **more, "delta": piece}
    yield {"type": f"{kind}.done", **here, **more, field: text}


RESPONSES: Final = Wire(
    provider="openai.responses",
    path="/v1/responses",
    counts="/input_tokens",
    ids=("resp", "call"),
    key_error=key_error,
    shape_error=shape_error,
    rule_error=rule_error,
    output_asked=lambda request: request.get("max_output_tokens"),
    tools=_openai.tools_of,
    own_reply=own_reply,
    sign=lambda text, _, model: sealed(text, model),
    message=message,
    stream=stream,
    garbage=(
        b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "out\n\n'
    ),
    error=refusal,
    error_event=error_event,
)
