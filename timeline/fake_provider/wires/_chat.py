"""OpenAI's Chat Completions API, which many other servers also have."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from render import Json, Model
from timeline.fake_provider._reply import ApiError, Draft, invalid, overlong
from timeline.fake_provider.wires import _openai
from timeline.fake_provider.wires._openai import key_error, refusal, rule_error
from timeline.fake_provider.wires._wire import (
    Outgoing,
    Purpose,
    Wire,
    event,
    pieces,
    unknown_field,
)

_FIELDS: Final = frozenset(
    {
        *("audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"),
        *("max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model"),
        *("moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
        *("reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier"),
        *("stop", "store", "stream", "stream_options", "temperature", "tool_choice", "tools"),
        *("top_logprobs", "top_p", "user", "verbosity", "web_search_options"),
    }
)
"""The fields of the SDK 3.54."""
_STOPS: Final = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_DONE: Final = b"data: [DONE]\n\n"


def shape_error(request: Json, _: Purpose) -> ApiError | None:
    """Unknown and missing fields."""
    if field := unknown_field(request, _FIELDS):
        return invalid(f"Unrecognized request argument supplied: {field}")
    return _openai.missing(request, "model", "messages")


def _output_asked(request: Json) -> int | None:
    return request.get("max_completion_tokens") or request.get("max_tokens")


def length_error(tokens: int, request: Json, model: Model) -> ApiError | None:
    """The prompt and the requested output together must fit."""
    whole = tokens + (_output_asked(request) or 0)
    return overlong(whole, model.tokens_window) if whole > model.tokens_window else None


def message(outgoing: Outgoing) -> Json:
    """A completion with one choice."""
    answer = outgoing.answer
    text = "".join(draft.block["text"] for draft in answer.drafts if draft.block["type"] == "text")
    calls = [
        {
            "id": draft.block["id"],
            "type": "function",
            "function": {"name": draft.block["name"], "arguments": draft.text},
        }
        for draft in answer.drafts
        if draft.block["type"] == "tool_use"
    ]
    choice = {
        "index": 0,
        "message": {
            "role": "assistant",
            "content": text or None,
            "refusal": "I can't help with that." if answer.stop_reason == "refusal" else None,
            **({"tool_calls": calls} if calls else {}),
        },
        "finish_reason": _STOPS.get(answer.stop_reason, "stop"),
        "logprobs": None,
    }
    step, output = outgoing.step, answer.output_tokens
    return {
        "id": outgoing.id,
        "object": "chat.completion",
        "created": outgoing.created,
        "model": outgoing.model.name,
        "choices": [choice],
        "usage": {
            "prompt_tokens": step.total,
            "prompt_tokens_details": {"cached_tokens": step.read, "cache_write_tokens": step.write},
            "completion_tokens": output,
            "completion_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": step.total + output,
        },
    }


def stream(message: Json, _: Sequence[Draft], request: Json) -> Iterator[bytes]:
    """Chunks. The last ones are sent together: the finish reason, the usage if it was requested, and the closing
    line, which is not JSON."""
    options = cast("Json", request.get("stream_options") or {})
    common = {name: message[name] for name in ("id", "created", "model")}
    common["object"] = "chat.completion.chunk"
    [choice] = message["choices"]
    for delta in _deltas(choice["message"]):
        yield event({**common, "choices": [_choice(delta, None)]})
    end = event({**common, "choices": [_choice({}, choice["finish_reason"])]})
    used = event({**common, "choices": [], "usage": message["usage"]})
    yield end + (used if options.get("include_usage") else b"") + _DONE


def _choice(delta: Json, reason: str | None) -> Json:
    return {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}


def _deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": "", "refusal": None}
    for name in ("content", "refusal"):
        for piece in pieces(message[name] or ""):
            yield {name: piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        opened = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
        yield {"tool_calls": [opened]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


CHAT: Final = Wire(
    provider="openai.chat",
    path="/v1/chat/completions",
    ids=("chatcmpl", "call"),
    key_error=key_error,
    shape_error=shape_error,
    rule_error=rule_error,
    length_error=length_error,
    output_asked=_output_asked,
    tools=_openai.tools_of,
    message=message,
    stream=stream,
    garbage=b'data: {"id": "chatcmpl-1", "object": "chat.comp\n\n',
    error=refusal,
    error_event=lambda error: event(refusal(error)[1]),
)
