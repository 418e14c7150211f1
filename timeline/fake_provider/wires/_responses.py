"""OpenAI's Responses API, without storage on the server."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

import attrs

from render import Json, Model
from timeline.fake_provider._fault import ApiError, overlong
from timeline.fake_provider._json import blocks_of, child
from timeline.fake_provider._reply import Draft, Reply
from timeline.fake_provider.wires import _openai
from timeline.fake_provider.wires._items import events, output
from timeline.fake_provider.wires._openai import OpenAI, invalid
from timeline.fake_provider.wires._wire import Spoken, event, unknown_field

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
_GARBAGE: Final = (
    b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "out\n\n'
)


@attrs.frozen
class Responses(OpenAI):
    """See `Wire`."""

    provider: str = attrs.field(default="openai.responses", init=False)
    path: str = attrs.field(default="/v1/responses", init=False)
    counts: str = attrs.field(default="/input_tokens", init=False)
    ids: tuple[str, str] = attrs.field(default=("resp", "call"), init=False)

    def misshapen(self, request: Json, *, counted: bool = False) -> ApiError | None:  # noqa: ARG002 -- the same checks
        """Unknown and missing fields, and fields that need stored content."""
        if field := unknown_field(request, _FIELDS):
            return invalid(f"Unknown parameter: '{field}'.", "unknown_parameter")
        if absent := _openai.missing(request, "model", "input"):
            return absent
        for name in _STORED:
            if request.get(name):
                return invalid(f"{name}: nothing is stored on this server")
        return None

    def unlawful(self, request: Json, model: Model) -> ApiError | None:
        """The rules, and encrypted content that was changed."""
        for item in blocks_of(request["input"]):
            if item.get("type") in _SEALED and not _openai.is_own(item):
                text = "The encrypted content could not be verified."
                return invalid(text, "invalid_encrypted_content")
        return super().unlawful(request, model)

    def too_long(self, tokens: int, request: Json, model: Model) -> ApiError | None:  # noqa: ARG002 -- only the prompt counts
        """The prompt alone must fit."""
        return overlong(tokens, model.tokens_window) if tokens > model.tokens_window else None

    def output_max(self, request: Json, model: Model) -> int:
        """The model's limit, unless the request has a lower one."""
        asked: int = request.get("max_output_tokens") or model.output_tokens_max
        return asked

    def asked(self, request: Json) -> Json:
        """The request with items as messages: items of the model by the assistant, all others by the user."""
        given = request["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return {
            "model": request["model"],
            "messages": [_as_message(item) for item in items],
            "tools": _openai.tools_of(request),
            "thinking": {"type": "adaptive" if request.get("reasoning") else "disabled"},
            **_openai.output_config(child(child(request, "text"), "format")),
        }

    def unasked(self, request: Json) -> Reply | None:
        """A compaction item, if the input ends with a request for one."""
        items = blocks_of(request["input"])
        if not items or items[-1].get("type") != "compaction_trigger":
            return None
        sealed = _openai.sign("", Model(name=request["model"]))
        block = {"id": "cmp_fake", "type": "compaction", "encrypted_content": sealed}
        return Reply(blocks=[block])

    def sign(self, text: str, request: Json, model: Model) -> str:  # noqa: ARG002 -- not bound
        """The encrypted content of reasoning; here it is only signed."""
        return _openai.sign(text, model)

    def message(self, spoken: Spoken) -> Json:
        """A response object."""
        answer = spoken.answer
        reason = _INCOMPLETE.get(answer.stop_reason)
        return {
            "id": spoken.id,
            "object": "response",
            "created_at": spoken.created,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": None,
            "metadata": {},
            "model": spoken.model.name,
            "output": output(spoken, is_cut=reason is not None),
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": _usage(spoken),
        }

    def events(self, message: Json, drafts: Sequence[Draft], request: Json) -> Iterator[bytes]:  # noqa: ARG002 -- not needed
        """The events in the API's order, with sequence numbers."""
        numbers = count()
        for data in events(message):
            yield event({**data, "sequence_number": next(numbers)}, data["type"])

    def garbage(self) -> bytes:
        """An incomplete event."""
        return _GARBAGE

    def error_event(self, error: ApiError) -> bytes:
        """The refusal as an event, without the envelope."""
        said = self.error(error)[1]["error"]
        return event({**said, "type": "error", "sequence_number": 0}, "error")


def _as_message(item: Json) -> Json:
    """One item as a message of the Messages API."""
    match item.get("type", "message"):
        case "function_call" | "custom_tool_call" as kind:
            own = kind == "custom_tool_call"
            given = {"input": item["input"]} if own else _openai.arguments(item["arguments"])
            called = {"id": item["call_id"], "name": item["name"], "input": given}
            return {"role": "assistant", "content": [{"type": "tool_use", **called}]}
        case "function_call_output" | "custom_tool_call_output":
            content = _openai.parts_of(item["output"])
            result = {"type": "tool_result", "tool_use_id": item["call_id"], "content": content}
            return {"role": "user", "content": [result]}
        case "agent_message":
            said = [{"type": "text", "text": _sent(part)} for part in blocks_of(item["content"])]
            return {"role": "user", "content": said}
        case "message":
            role = "assistant" if item.get("role") == "assistant" else "user"
            return {"role": role, "content": _openai.parts_of(item["content"])}
        case _:
            return {"role": "assistant", "content": []}


def _sent(part: Json) -> str:
    """The text of a message between agents; here it is not really encrypted."""
    return str(part.get("text", part.get("encrypted_content", "")))


def _usage(spoken: Spoken) -> Json:
    step, output = spoken.step, spoken.answer.output_tokens
    return {
        "input_tokens": step.total,
        "input_tokens_details": {"cached_tokens": step.read, "cache_write_tokens": step.write},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": step.total + output,
    }
