"""What OpenAI's two APIs have in common: headers, errors, signed reasoning, the words of their rules."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

import attrs

from render import Json, Model, provider_of
from timeline.fake_provider._fault import ApiError
from timeline.fake_provider._json import blocks_of
from timeline.fake_provider._signature import is_signed, sealed

OVERFLOW: Final = "context_length_exceeded"
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


def invalid(message: str, code: str = "") -> ApiError:
    """400: the request is at fault."""
    return ApiError(400, "invalid_request_error", message, code=code)


def missing(request: Json, *names: str) -> ApiError | None:
    """400, if one of these fields is not there."""
    absent = next((name for name in names if name not in request), "")
    text = f"Missing required parameter: '{absent}'."
    return invalid(text, "missing_required_parameter") if absent else None


@attrs.frozen
class OpenAI:
    """What both say alike; see `Wire`."""

    def unauthorised(self, headers: Mapping[str, str]) -> ApiError | None:
        """A bearer's token; which one does not matter."""
        if headers.get("authorization", "").startswith("Bearer "):
            return None
        return ApiError(401, "authentication_error", "You didn't provide an API key.")

    def received(
        self,
        body: Json,
        place: Mapping[str, str],  # noqa: ARG002 -- one place for all
        headers: Mapping[str, str],  # noqa: ARG002 -- they ask for nothing
    ) -> Json:
        """As it is."""
        return body

    def unlawful(self, request: Json, model: Model) -> ApiError | None:
        """The first thing that the rules say against a request."""
        for violation in provider_of(model).validator().check(request, model):
            return invalid(f"{violation.place}: {violation.message}")
        return None

    def error(self, error: ApiError, request_id: str = "") -> tuple[int, Json]:  # noqa: ARG002 -- in the headers
        """A refusal in an envelope."""
        message, code = error.message, error.code or _CODES.get(error.kind)
        if error.tokens:
            message, code = TOO_LONG.format(*error.tokens), OVERFLOW
        kind = _TYPES.get(error.kind, error.kind)
        said = {"message": message, "type": kind, "param": None, "code": code}
        return _STATUSES.get(error.status, error.status), {"error": said}


def parts_of(content: Any) -> list[Json]:
    """Content in the words of the Messages API: texts, pictures as a name."""
    return [_part(part) for part in blocks_of(content)]


def _part(part: Json) -> Json:
    text = part.get("text", part.get("refusal"))
    return {"type": "text", "text": text if isinstance(text, str) else f"[{part.get('type')}]"}


def arguments(text: str) -> Any:
    """The arguments of a call; what is no JSON is none."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


_TEXT_INPUT: Final[Json] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


@attrs.frozen(kw_only=True)
class Offer:
    """A tool as a request offers it: among the tools, in a namespace, between the items of the input."""

    kind: str = "function"
    """`function`, or `custom`: it takes a text."""
    namespace: str = ""
    schema: Json = attrs.field(factory=dict[str, Any])


def offered(request: Json) -> dict[str, Offer]:
    """The tools that the model may call, by name."""
    found: dict[str, Offer] = {}
    waiting = [("", tool) for tool in blocks_of(request.get("tools"))]
    for item in blocks_of(request.get("input")):
        if item.get("type") == "additional_tools":
            waiting += (("", tool) for tool in blocks_of(item.get("tools")))
    for space, tool in waiting:
        about: Json = tool.get("function") or tool
        match tool.get("type"):
            case "function":
                schema: Json = about.get("parameters") or {}
                found[str(about.get("name"))] = Offer(namespace=space, schema=schema)
            case "custom":
                offer = Offer(kind="custom", namespace=space, schema=_TEXT_INPUT)
                found[str(tool.get("name"))] = offer
            case "namespace":
                waiting += ((str(tool.get("name")), t) for t in blocks_of(tool.get("tools")))
            case _:
                pass
    return found


def tools_of(request: Json) -> list[Json]:
    """The same in the words of the Messages API."""
    tools = offered(request).items()
    return [{"name": name, "input_schema": offer.schema} for name, offer in tools]


def output_config(format_: Json) -> Json:
    """A JSON schema that the answer has to fit, in the words of the Messages API."""
    if format_.get("type") != "json_schema":
        return {}
    schema = format_.get("schema") or cast("Json", format_.get("json_schema") or {}).get("schema")
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def sign(text: str, model: Model) -> str:
    """What a reasoning item carries."""
    return sealed(text, model)


def is_own(item: Json) -> bool:
    """Whether reasoning, or a compaction, is as the server once gave it."""
    summary = "".join(str(part.get("text", "")) for part in blocks_of(item.get("summary")))
    return is_signed(str(item.get("encrypted_content") or ""), summary)
