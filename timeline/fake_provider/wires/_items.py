"""The output of the Responses API: whole items, or events."""

from collections.abc import Callable, Iterator, Mapping

from render import Json
from timeline.fake_provider._reply import Draft
from timeline.fake_provider.wires import _openai
from timeline.fake_provider.wires._openai import Offer
from timeline.fake_provider.wires._wire import Spoken, pieces


def output(spoken: Spoken, *, is_cut: bool) -> list[Json]:
    """The output items of an answer; only the last one may be incomplete."""
    drafts, refuses = spoken.answer.drafts, spoken.answer.stop_reason == "refusal"
    offered = _openai.offered(spoken.request)
    items = [_item(draft, spoken.new_id, offered) for draft in drafts]
    if refuses:
        refusal = {"type": "refusal", "refusal": "I can't help with that."}
        items.append(_said(spoken.new_id("msg"), refusal))
    if is_cut and items and "status" in items[-1]:
        items[-1]["status"] = "incomplete"
    return items


def _said(id_: str, *parts: Json) -> Json:
    common = {"id": id_, "type": "message", "role": "assistant", "status": "completed"}
    return {**common, "content": list(parts)}


def _item(draft: Draft, new_id: Callable[[str], str], offered: Mapping[str, Offer]) -> Json:
    block = draft.block
    match block["type"]:
        case "text":
            text: Json = {"type": "output_text", "text": block["text"], "annotations": []}
            return _said(new_id("msg"), text)
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
    named = {"call_id": block["id"], "name": block["name"]}
    if offer.namespace:
        named["namespace"] = offer.namespace
    if offer.kind == "custom":
        text = block["input"].get("input", draft.said)
        return {"id": new_id("ctc"), "type": "custom_tool_call", **named, "input": text}
    said = {"arguments": draft.said, "status": "completed"}
    return {"id": new_id("fc"), "type": "function_call", **named, **said}


def events(response: Json) -> Iterator[Json]:
    begun: Json = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
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
                here = {**place, "content_index": number}
                yield from _part(part, here)
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
