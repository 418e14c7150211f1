"""Anthropic's Messages API, and its rules: the first one that a request breaks gives the refusal, in the provider's words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from render import Json, Model, provider_of
from timeline.fake_provider._reply import ApiError, Draft, Reply, invalid, overlong
from timeline.fake_provider.wires._signature import check_thinking, sign
from timeline.fake_provider.wires._wire import (
    Outgoing,
    Purpose,
    Wire,
    blocks_of,
    child,
    event,
    pieces,
    unknown_field,
)

_SECONDS: Final = {"5m": 300, "1h": 3_600}
_BETAS: Final = {"context_management": "context-management-"}
"""Fields that require a beta, and the beginning of its name."""
_SUBSCRIPTION: Final = "Bearer sk-ant-oat"
_SUBSCRIPTION_BETA: Final = "oauth-"
"""The beginning of the beta that a subscription's token requires, because it is not an API key."""
_FIELDS: Final = frozenset(
    {
        *("cache_control", "container", "context_management", "diagnostics", "inference_geo"),
        *("max_tokens", "messages", "metadata", "model", "output_config", "prefill"),
        *("service_tier", "speed", "stop_sequences", "stream", "system", "thinking"),
        *("tool_choice", "tools"),
    }
)
"""The fields of the SDK 2.11; `temperature` and similar fields do not exist since version 2026-10-21."""
_BUDGET_MIN: Final = 1024
_VERSION: Final = re.compile(r"-(\d+)(?:-(\d{1,2}))?(?:-|$)")


def key_error(headers: Mapping[str, str]) -> ApiError | None:
    """A key and a version are required; for a subscription's token, also its beta."""
    if not (headers.get("x-api-key") or headers.get("authorization")):
        return ApiError(401, "authentication_error", "x-api-key header is required")
    token, betas = headers.get("authorization", ""), headers.get("anthropic-beta", "")
    if token.startswith(_SUBSCRIPTION) and _SUBSCRIPTION_BETA not in betas:
        text = "OAuth authentication is currently not supported."
        return ApiError(401, "authentication_error", text)
    if "anthropic-version" not in headers:
        return invalid("anthropic-version: header is required")
    return None


def request_of(body: Json, _: Mapping[str, str], headers: Mapping[str, str]) -> Json | ApiError:
    """The body unchanged, if the headers name the betas that its fields require."""
    betas = headers.get("anthropic-beta", "")
    for field, beta in _BETAS.items():
        if field in body and beta not in betas:
            return invalid(f"{field}: Extra inputs are not permitted")
    return body


def shape_error(request: Json, purpose: Purpose) -> ApiError | None:
    """The error for fields of a request that are missing or not known."""
    required = ("messages", "model") if purpose == "count" else ("max_tokens", "messages", "model")
    for name in required:
        if name not in request:
            return invalid(f"{name}: Field required")
    if field := unknown_field(request, _FIELDS):
        return invalid(f"{field}: Extra inputs are not permitted")
    if not isinstance(request["model"], str):
        return invalid("model: Input should be a valid string")
    tokens_max = request.get("max_tokens", 1)
    if not isinstance(tokens_max, int) or tokens_max < 0:
        return invalid("max_tokens: Input should be greater than or equal to 1")
    return None


def rule_error(request: Json, model: Model) -> ApiError | None:
    """The error for a request of the right shape that breaks a rule of the provider."""
    for violation in provider_of(model).violations(request, model):
        if violation.rule == "request_bytes":
            return ApiError(413, "request_too_large", violation.message)
        return invalid(violation.message)
    reason = _misconfigured(request, model) or check_thinking(request, model)
    return invalid(reason) if reason else None


def _misconfigured(request: Json, model: Model) -> str | None:
    """The error in the settings for thinking, which differ between generations of models."""
    config = child(request, "thinking")
    mode = config.get("type")
    if mode is None:
        return None
    if model.thinking_modes and mode not in model.thinking_modes:
        modes = "', '".join(model.thinking_modes)
        return f"thinking.type: '{mode}' is not supported for this model; use one of '{modes}'"
    budget = config.get("budget_tokens", 0)
    if mode == "enabled" and not (isinstance(budget, int) and budget >= _BUDGET_MIN):
        return f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_BUDGET_MIN}"
    if mode == "enabled" and budget >= request.get("max_tokens", budget + 1):
        return "`max_tokens` must be greater than `thinking.budget_tokens`"
    forced = child(request, "tool_choice").get("type") in {"any", "tool"}
    if mode == "enabled" and forced:
        return "Thinking may not be enabled when tool_choice forces tool use."
    return None


def length_error(tokens: int, request: Json, model: Model) -> ApiError | None:
    """The error if the prompt does not fit or, for older models, if prompt and `max_tokens` together do not fit."""
    window, max_tokens = model.tokens_window, request["max_tokens"]
    if tokens > window:
        return overlong(tokens, window)
    if tokens + max_tokens > window and _reserves_output(model):
        return invalid(
            f"input length and `max_tokens` exceed context limit: {tokens} + {max_tokens} > "
            f"{window}, decrease input length or `max_tokens` and try again"
        )
    return None


def _reserves_output(model: Model) -> bool:
    """Whether the model requires room for `max_tokens`, as models before 4.5 do."""
    match = _VERSION.search(model.name)
    return match is not None and (int(match[1]), int(match[2] or 0)) < (4, 5)


def tools_of(request: Json) -> Iterator[tuple[str, Json]]:
    """The client's own tools, each with its schema."""
    tools = blocks_of(request.get("tools"))
    return ((tool["name"], child(tool, "input_schema")) for tool in tools)


# Answers.


def own_reply(request: Json) -> Reply | None:
    """An empty reply if `max_tokens` is 0, which only fills the cache."""
    return Reply(stop_reason="max_tokens") if request["max_tokens"] == 0 else None


def message(outgoing: Outgoing) -> Json:
    """A message object."""
    answer, step = outgoing.answer, outgoing.step
    refused = {"type": "refusal", "category": None, "explanation": None}
    return {
        "id": outgoing.id,
        "type": "message",
        "role": "assistant",
        "model": outgoing.model.name,
        "content": [draft.block for draft in answer.drafts],
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "stop_details": refused if answer.stop_reason == "refusal" else None,
        "usage": {
            "input_tokens": step.uncached,
            "cache_creation_input_tokens": step.write,
            "cache_read_input_tokens": step.read,
            "cache_creation": {
                f"ephemeral_{ttl}_input_tokens": step.written.get(seconds, 0)
                for ttl, seconds in _SECONDS.items()
            },
            "service_tier": "standard",
            "output_tokens": answer.output_tokens,
        },
    }


_STREAMED: Final[Mapping[str, tuple[str, str, Json]]] = {
    "text": ("text_delta", "text", {"text": ""}),
    "thinking": ("thinking_delta", "thinking", {"thinking": "", "signature": ""}),
    "tool_use": ("input_json_delta", "partial_json", {"input": {}}),
}
"""By the type of a block: the type and the field of its pieces, and its fields before the first one."""


def events(message: Json, drafts: Sequence[Draft]) -> Iterator[Json]:
    """The events of a message, in the provider's order."""
    usage = message["usage"]
    opening: Json = {**message, "content": [], "stop_reason": None, "stop_details": None}
    yield {"type": "message_start", "message": {**opening, "usage": {**usage, "output_tokens": 1}}}
    for index, draft in enumerate(drafts):
        kind, field, empty = _STREAMED.get(draft.block["type"], ("", "", dict[str, Any]()))
        opened = {**draft.block, **empty}
        yield {"type": "content_block_start", "index": index, "content_block": opened}
        if index == 0:
            yield {"type": "ping"}
        texts = [*pieces(draft.text)]
        if kind == "input_json_delta":  # begins with an empty piece
            texts.insert(0, "")
        deltas = [{"type": kind, field: text} for text in texts]
        if kind == "thinking_delta" and draft.block["signature"]:
            deltas.append({"type": "signature_delta", "signature": draft.block["signature"]})
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}


MESSAGES: Final = Wire(
    provider="anthropic",
    path="/v1/messages",
    counts="/count_tokens",
    ids=("msg", "toolu"),
    key_error=key_error,
    request_of=request_of,
    shape_error=shape_error,
    rule_error=rule_error,
    length_error=length_error,
    output_asked=lambda request: request["max_tokens"],
    tools=tools_of,
    own_reply=own_reply,
    sign=sign,
    message=message,
    stream=lambda message, drafts, _: (event(e, e["type"]) for e in events(message, drafts)),
    garbage=b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n',
    error=lambda error, request_id: (error.status, error.body(request_id)),
    error_event=lambda error: event(error.body("req_in_stream"), "error"),
)
