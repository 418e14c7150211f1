"""The common parts of OpenAI's two APIs: headers, errors, signed reasoning, the texts of their rules."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from render import Json, Model, provider_of
from timeline.fake_provider._reply import ApiError, invalid
from timeline.fake_provider.wires._signature import is_signed
from timeline.fake_provider.wires._wire import blocks_of

_TYPES: Final = {
    "api_error": "server_error",
    "authentication_error": "invalid_request_error",
    "not_found_error": "invalid_request_error",
    "overloaded_error": "server_error",
    "rate_limit_error": "requests",
    "request_too_large": "invalid_request_error",
}
_CODES: Final = {
    "authentication_error": "invalid_api_key",
    "not_found_error": "model_not_found",
    "overloaded_error": "server_is_overloaded",
    "rate_limit_error": "rate_limit_exceeded",
}
_STATUSES: Final = {529: 503}
TOO_LONG: Final = (
    "Input tokens exceed the configured limit of {1} tokens. Your messages resulted in {0} tokens. "
    "Please reduce the length of the messages."
)


def missing(request: Json, *names: str) -> ApiError | None:
    """400 if one of these fields is missing; otherwise None."""
    absent = next((name for name in names if name not in request), "")
    text = f"Missing required parameter: '{absent}'."
    return invalid(text, "missing_required_parameter") if absent else None


def key_error(headers: Mapping[str, str]) -> ApiError | None:
    """A bearer token is required; its value does not matter."""
    if headers.get("authorization", "").startswith("Bearer "):
        return None
    return ApiError(401, "authentication_error", "You didn't provide an API key.")


def rule_error(request: Json, model: Model) -> ApiError | None:
    """The error for the first rule that a request breaks."""
    for violation in provider_of(model).violations(request, model):
        return invalid(f"{violation.place}: {violation.message}")
    return None


def refusal(error: ApiError, _: str = "") -> tuple[int, Json]:
    """The refusal in OpenAI's envelope."""
    message, code = error.message, error.code or _CODES.get(error.kind)
    if error.tokens:
        message, code = TOO_LONG.format(*error.tokens), "context_length_exceeded"
    kind = _TYPES.get(error.kind, error.kind)
    fields = {"message": message, "type": kind, "param": None, "code": code}
    return _STATUSES.get(error.status, error.status), {"error": fields}


_TEXT_INPUT: Final[Json] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


@attrs.frozen(kw_only=True)
class Offer:
    """A tool that a request offers: among its tools, in a namespace, or in an item of the input."""

    kind: str = "function"
    """`function`, or `custom` for a tool that takes a text."""
    namespace: str = ""
    schema: Json = attrs.field(factory=dict[str, Any])


def offered(request: Json) -> dict[str, Offer]:
    """The tools that the model may call, by name."""
    offers: dict[str, Offer] = {}
    waiting = [("", tool) for tool in blocks_of(request.get("tools"))]
    for item in blocks_of(request.get("input")):
        if item.get("type") == "additional_tools":
            waiting += (("", tool) for tool in blocks_of(item.get("tools")))
    for space, tool in waiting:
        about: Json = tool.get("function") or tool
        match tool.get("type"):
            case "function":
                schema: Json = about.get("parameters") or {}
                offers[str(about.get("name"))] = Offer(namespace=space, schema=schema)
            case "custom":
                offer = Offer(kind="custom", namespace=space, schema=_TEXT_INPUT)
                offers[str(tool.get("name"))] = offer
            case "namespace":
                waiting += ((str(tool.get("name")), t) for t in blocks_of(tool.get("tools")))
            case _:
                pass
    return offers


def tools_of(request: Json) -> Iterator[tuple[str, Json]]:
    """The offered tools, each with its schema."""
    return ((name, offer.schema) for name, offer in offered(request).items())


def is_own(item: Json) -> bool:
    """Whether a reasoning or compaction item is unchanged since the server gave it."""
    summary = "".join(str(part.get("text", "")) for part in blocks_of(item.get("summary")))
    return is_signed(str(item.get("encrypted_content") or ""), summary)
