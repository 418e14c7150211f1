"""Google's Gemini API, which has the model and the method in the path."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from blocks.formats import SHAPES
from render import Json, Model, provider_of
from timeline.fake_provider._reply import ApiError, Draft, invalid
from timeline.fake_provider.wires._signature import is_signed, sealed
from timeline.fake_provider.wires._wire import (
    Outgoing,
    Wire,
    blocks_of,
    child,
    event,
    pieces,
    unknown_field,
)

SHAPE: Final = SHAPES["gemini"]
_FIELDS: Final = frozenset(
    {
        *("cachedContent", "contents", "generationConfig", "labels", "safetySettings"),
        *("serviceTier", "store", "systemInstruction", "toolConfig", "tools"),
    }
)
"""The fields of the SDK 3.4."""
_DATA: Final = frozenset({"args", "parameters", "parametersJsonSchema", "response"})
"""Fields with content of the caller; names inside it are not converted."""
_HUMP: Final = re.compile(r"_([a-z])")
_UNSIGNED: Final = frozenset(
    {"context_engineering_is_the_way_to_go", "skip_thought_signature_validator"}
)
_URLSAFE: Final = str.maketrans("-_", "+/")
_METHODS: Final = ("generateContent", "streamGenerateContent")
_STOPS: Final = {
    "max_tokens": "MAX_TOKENS",
    "model_context_window_exceeded": "MAX_TOKENS",
    "refusal": "SAFETY",
}
_WORDS: Final = {
    "api_error": "INTERNAL",
    "authentication_error": "UNAUTHENTICATED",
    "invalid_request_error": "INVALID_ARGUMENT",
    "not_found_error": "NOT_FOUND",
    "overloaded_error": "UNAVAILABLE",
    "rate_limit_error": "RESOURCE_EXHAUSTED",
    "request_too_large": "INVALID_ARGUMENT",
}
_STATUSES: Final = {529: 503, 413: 400}
_TOO_LONG: Final = "The input token count ({}) exceeds the maximum number of tokens allowed ({})."


def key_error(headers: Mapping[str, str]) -> ApiError | None:
    """An API key is required."""
    if headers.get("x-goog-api-key") or headers.get("authorization"):
        return None
    return ApiError(401, "authentication_error", "API key not valid.")


def request_of(body: Json, place: Mapping[str, str], _: Mapping[str, str]) -> Json | ApiError:
    """The request with the names of the REST interface, and with the model and method of the path."""
    if place["method"] not in _METHODS:
        return ApiError(404, "not_found_error", "Not found")
    fields: Json = _rest(body)
    if field := unknown_field(fields, _FIELDS):
        return invalid(f'Invalid JSON payload received. Unknown name "{field}": Cannot find field.')
    contents = fields.pop("contents", [])
    config = {**fields.pop("generationConfig", {}), **fields}
    stream = {"stream": True} if place["method"] == _METHODS[1] else {}
    return {"model": place["model"], "contents": contents, "config": config, **stream}


def rule_error(request: Json, model: Model) -> ApiError | None:
    """The rules, and signatures that were changed."""
    for violation in provider_of(model).violations(request, model):
        return invalid(violation.message)
    for content in request["contents"]:
        for part in content["parts"]:
            if SHAPE.seal in part and not _is_own(part):
                return invalid("Corrupted thought signature.")
    return None


def message(outgoing: Outgoing) -> Json:
    """A response with one candidate."""
    answer = outgoing.answer
    candidate = {
        "content": {"role": "model", "parts": list(_parts(answer.drafts, outgoing.model))},
        "finishReason": _STOPS.get(answer.stop_reason, "STOP"),
        "index": 0,
    }
    step, output = outgoing.step, answer.output_tokens
    cached = {"cachedContentTokenCount": step.read} if step.read else {}
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": step.total,
            **cached,
            "candidatesTokenCount": output,
            "totalTokenCount": step.total + output,
        },
        "modelVersion": outgoing.model.name,
        "responseId": outgoing.id,
    }


def stream(message: Json, _: Sequence[Draft], __: Json) -> Iterator[bytes]:
    """Chunks. The signature of a text follows it in a part of its own; the last chunk has the finish reason."""
    common = {name: message[name] for name in ("modelVersion", "responseId", "usageMetadata")}
    [candidate] = message["candidates"]
    for part in candidate["content"]["parts"]:
        for piece in _streamed(part):
            content = {"role": "model", "parts": [piece]}
            yield event({**common, "candidates": [{"content": content, "index": 0}]})
    end = {**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}
    yield event({**common, "candidates": [end]})


def refusal(error: ApiError, _: str = "") -> tuple[int, Json]:
    """The refusal in Google's envelope."""
    status = _STATUSES.get(error.status, error.status)
    message = _TOO_LONG.format(*error.tokens) if error.tokens else error.message
    word = _WORDS.get(error.kind, "UNKNOWN")
    return status, {"error": {"code": status, "message": message, "status": word}}


def _rest(value: Any) -> Any:
    if isinstance(value, list):
        return [_rest(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields: Json = {}
    for name, inner in cast("Json", value).items():
        field = _HUMP.sub(lambda hump: hump[1].upper(), name)
        fields[field] = inner if field in _DATA else _rest(inner)
    return fields


# A call's signature covers its name and input. A text's covers nothing: in a stream it comes in another part.


def _signed_text(part: Json) -> str:
    call = child(part, "functionCall")
    return json.dumps([call.get("name"), call.get("args")], sort_keys=True) if call else ""


def _is_own(part: Json) -> bool:
    seal = str(part[SHAPE.seal])
    return seal in _UNSIGNED or is_signed(seal.translate(_URLSAFE), _signed_text(part))


def _parts(drafts: Sequence[Draft], model: Model) -> Iterator[Json]:
    """The parts of an answer; the first call is signed or, without calls, the last text."""
    parts = [_part(draft) for draft in drafts]
    calls = [n for n, part in enumerate(parts) if "functionCall" in part]
    texts = [n for n, part in enumerate(parts) if "text" in part and "thought" not in part]
    signed = calls[:1] or texts[-1:]
    for number, part in enumerate(parts):
        seal = {SHAPE.seal: sealed(_signed_text(part), model)} if number in signed else {}
        yield {**part, **seal}


def _part(draft: Draft) -> Json:
    block = draft.block
    match block["type"]:
        case "text":
            return {"text": block["text"]}
        case "thinking":
            return {"text": block["thinking"], "thought": True}
        case "tool_use":
            call = {"id": block["id"], "name": block["name"], "args": block["input"]}
            return {"functionCall": call}
        case _:
            return {"executableCode": {"language": "PYTHON", "code": json.dumps(block)}}


def _streamed(part: Json) -> Iterator[Json]:
    if "text" not in part:
        yield part
        return
    flags = {name: part[name] for name in ("thought",) if name in part}
    yield from ({"text": piece, **flags} for piece in pieces(part["text"]))
    if SHAPE.seal in part:
        yield {"text": "", SHAPE.seal: part[SHAPE.seal]}


def tools_of(request: Json) -> Iterator[tuple[str, Json]]:
    """The offered functions, each with its schema."""
    for tool in blocks_of(child(request, "config").get("tools")):
        for function in blocks_of(tool.get("functionDeclarations")):
            schema = child(function, "parametersJsonSchema") or child(function, "parameters")
            yield function["name"], schema


GEMINI: Final = Wire(
    provider=SHAPE.name,
    path="/{version}/models/{model}:{method}",
    ids=("resp", "call"),
    key_error=key_error,
    request_of=request_of,
    shape_error=lambda _request, _purpose: None,
    rule_error=rule_error,
    output_asked=lambda request: request["config"].get("maxOutputTokens"),
    tools=tools_of,
    message=message,
    stream=stream,
    garbage=b'data: {"candidates": [{"content": {"par\n\n',
    error=refusal,
    error_event=lambda error: event(refusal(error)[1]),
)
