"""The provider's rules for requests; the first one that a request breaks gives the refusal, in the provider's words."""

import re
from typing import Final

from render import Json, Model, validate_request
from timeline.fake_provider._fault import ApiError, overlong
from timeline.fake_provider._json import child
from timeline.fake_provider._signature import check_thinking

_FIELDS: Final = frozenset(
    {
        "cache_control",
        "container",
        "context_management",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "prefill",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""The fields of the SDK 2.11; `temperature` and similar fields do not exist since version 2026-10-21."""
_BUDGET_MIN: Final = 1024
_VERSION: Final = re.compile(r"-(\d+)(?:-(\d{1,2}))?(?:-|$)")


def invalid(message: str) -> ApiError:
    """400: the request is not valid."""
    return ApiError(400, "invalid_request_error", message)


def misshapen(request: Json, required: tuple[str, ...]) -> ApiError | None:
    """The error for fields of a request that are missing or not known."""
    for name in required:
        if name not in request:
            return invalid(f"{name}: Field required")
    for name in request:
        if name not in _FIELDS:
            return invalid(f"{name}: Extra inputs are not permitted")
    if not isinstance(request["model"], str):
        return invalid("model: Input should be a valid string")
    asked = request.get("max_tokens", 1)
    if not isinstance(asked, int) or asked < 0:
        return invalid("max_tokens: Input should be greater than or equal to 1")
    return None


def unlawful(request: Json, model: Model) -> ApiError | None:
    """The error for a request of the right shape that breaks a rule of the provider."""
    for violation in validate_request(request, model):
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
        known = "', '".join(model.thinking_modes)
        return f"thinking.type: '{mode}' is not supported for this model; use one of '{known}'"
    budget = config.get("budget_tokens", 0)
    if mode == "enabled" and not (isinstance(budget, int) and budget >= _BUDGET_MIN):
        return f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_BUDGET_MIN}"
    if mode == "enabled" and budget >= request.get("max_tokens", budget + 1):
        return "`max_tokens` must be greater than `thinking.budget_tokens`"
    forced = child(request, "tool_choice").get("type") in {"any", "tool"}
    if mode == "enabled" and forced:
        return "Thinking may not be enabled when tool_choice forces tool use."
    return None


def too_long(tokens: int, max_tokens: int, model: Model) -> ApiError | None:
    """The error if the prompt does not fit or, for older models, if prompt and `max_tokens` together do not fit."""
    window = model.tokens_window
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
    found = _VERSION.search(model.name)
    return found is not None and (int(found[1]), int(found[2] or 0)) < (4, 5)
