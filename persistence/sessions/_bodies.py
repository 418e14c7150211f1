"""Bodies of requests and responses, recognized by their form: JSON, JSON in a text, or the text of a stream.

Each logger uses its own names for the fields, but the bodies are in the provider's format, so a body is
searched for in all known places.
"""

from base64 import b64decode
from json import loads
from typing import Any, Final

from blocks import CodecError, clean_json
from blocks.formats import Format, Json, Response, obj, objs, response_in, stream_of, string

_REQUESTS: Final = (
    "request_params",
    "request.body",
    "request.postData.text",
    "request",
    "proxy_server_request.body",
    "proxy_server_request",
    "request_body",
    "requestBody",
    "input.inputBodyJson",
    "additional_args.complete_input_dict",
)
"""Paths to a request in HTTP archives, and in logs of LiteLLM, Bedrock, tracers and gateways."""
_RESPONSES: Final = (
    "response.body",
    "response.body_raw",
    "response.content",
    "response",
    "response_body",
    "responseBody",
    "response_obj",
    "output.outputBodyJson",
    "original_response",
)
_TALKS: Final = ("messages", "contents", "input")
_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking"})
_DATA: Final = "data:"
_SEARCHED: Final = 8
"""How many events of a stream are searched for its format; some of the first may be pings."""


def at_path(record: Json, path: str) -> Any:
    """The value at a path such as `request.body`; None if there is none."""
    value: Any = record
    for name in path.split("."):
        value = obj(value).get(name)
    return value


def request_in(record: Json) -> Json | None:
    """The body of the request in a record; or the record itself, if it is a request with additions of a gateway."""
    for path in _REQUESTS:
        body = obj(_json(at_path(record, path)))
        if _is_request(body):
            return body
    settings = {**obj(record.get("optional_params")), **obj(record.get("model_parameters"))}
    return {**settings, **record} if _is_request(record) else None


def _is_request(body: Json) -> bool:
    if isinstance(body.get("input"), str):
        return "model" in body
    return any(objs(body.get(name)) for name in _TALKS)


def talk_in(body: Json) -> tuple[Format, list[Json]]:
    """The messages of a request, and their format."""
    if "contents" in body:
        return "gemini", objs(body["contents"])
    if messages := objs(body.get("messages")):
        is_claudes = "system" in body or any(map(_has_block, messages))
        return "anthropic" if is_claudes else "openai.chat", messages
    given = body.get("input")
    return "openai.responses", objs(given) or [{"role": "user", "content": given}]


def _has_block(message: Json) -> bool:
    return any(string(block.get("type")) in _BLOCKS for block in objs(message.get("content")))


def answer_in(record: Json) -> Response | None:
    """The response in a record, or the record itself; None if there is none that can be read."""
    for path in _RESPONSES:
        if found := _answer(at_path(record, path)):
            return found
    return _answer(record)


def _answer(value: Any) -> Response | None:
    text = _unpacked(obj(value)) or value
    found = _json(text)
    if found is None and isinstance(text, str):
        lines = (line for line in text.splitlines() if line.startswith(_DATA))
        found = [_json(line.removeprefix(_DATA)) for line in lines]
    if isinstance(found, list):
        return _streamed(objs(found))
    whole = obj(found)
    return _read(whole, _format(whole))


def _unpacked(content: Json) -> str:
    """The text of a response in an HTTP archive; empty if `content` is not one."""
    text = string(content.get("text"))
    if content.get("encoding") != "base64":
        return text if "mimeType" in content else ""
    try:
        return b64decode(text).decode("utf-8", "replace")
    except ValueError:
        return ""


def _streamed(events: list[Json]) -> Response | None:
    names: list[Format] = [
        name for event in events[:_SEARCHED] if (name := _streams(event)) is not None
    ]
    if not names:
        return None
    name = names[0]
    stream = stream_of(name, "read_session()")
    for event in events:
        stream.add(event)
    return _read(stream.response() or {}, name)


def _streams(event: Json) -> Format | None:
    kind = string(event.get("type"))
    if kind == "message_start":
        return "anthropic"
    if kind.startswith("response."):
        return "openai.responses"
    if objs(event.get("choices")):
        return "openai.chat"
    return "gemini" if objs(event.get("candidates")) else None


def _read(found: Json, name: Format | None) -> Response | None:
    response = response_in(found, name) if name else None
    is_one = response is not None and (response.message.content or response.usage)
    return response if is_one else None


def _format(found: Json) -> Format | None:
    if objs(found.get("choices")):
        return "openai.chat"
    if objs(found.get("candidates")):
        return "gemini"
    if isinstance(found.get("output"), list):
        return "openai.responses"
    is_claudes = isinstance(found.get("content"), list) and found.get("type") == "message"
    return "anthropic" if is_claudes else None


def _json(value: Any) -> Any:
    """The value of a JSON text, or None if it is invalid; any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return clean_json(loads(value))
    except (ValueError, RecursionError, CodecError):
        return None
