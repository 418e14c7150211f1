"""Anthropic's Messages API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from render import Json, Model
from timeline.billing import CacheStep
from timeline.fake_provider._fault import ApiError
from timeline.fake_provider._reply import Draft, Reply
from timeline.fake_provider._rules import invalid, misshapen, too_long, unlawful
from timeline.fake_provider._signature import sign
from timeline.fake_provider.wires._wire import Spoken, event, pieces

_SECONDS: Final = {"5m": 300, "1h": 3_600}
_BETAS: Final = {"context_management": "context-management-"}
"""Fields that require a beta, and the beginning of its name."""
_SUBSCRIPTION: Final = "Bearer sk-ant-oat"
_SUBSCRIPTION_BETA: Final = "oauth-"
"""The beginning of the beta that a subscription's token requires, because it is not an API key."""
_GARBAGE: Final = b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'


@attrs.frozen
class Messages:
    """See `Wire`."""

    provider: str = attrs.field(default="anthropic", init=False)
    path: str = attrs.field(default="/v1/messages", init=False)
    counts: str = attrs.field(default="/count_tokens", init=False)
    ids: tuple[str, str] = attrs.field(default=("msg", "toolu"), init=False)

    def unauthorised(self, headers: Mapping[str, str]) -> ApiError | None:
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

    def received(
        self,
        body: Json,
        place: Mapping[str, str],  # noqa: ARG002 -- the path has no fields
        headers: Mapping[str, str],
    ) -> Json | ApiError:
        """The body unchanged, if the headers name the betas that its fields require."""
        named = headers.get("anthropic-beta", "")
        for field, beta in _BETAS.items():
            if field in body and beta not in named:
                return invalid(f"{field}: Extra inputs are not permitted")
        return body

    def misshapen(self, request: Json, *, counted: bool = False) -> ApiError | None:
        """Unknown and missing fields."""
        needed = ("messages", "model")
        return misshapen(request, needed if counted else ("max_tokens", *needed))

    def unlawful(self, request: Json, model: Model) -> ApiError | None:
        """See `_rules.unlawful`."""
        return unlawful(request, model)

    def too_long(self, tokens: int, request: Json, model: Model) -> ApiError | None:
        """See `_rules.too_long`."""
        return too_long(tokens, request["max_tokens"], model)

    def output_max(self, request: Json, model: Model) -> int:  # noqa: ARG002 -- in the request
        """`max_tokens`, which is a required field."""
        tokens: int = request["max_tokens"]
        return tokens

    def asked(self, request: Json) -> Json:
        """The request unchanged."""
        return request

    def unasked(self, request: Json) -> Reply | None:
        """An empty reply if `max_tokens` is 0, which only fills the cache."""
        return Reply(stop_reason="max_tokens") if request["max_tokens"] == 0 else None

    def sign(self, text: str, request: Json, model: Model) -> str:
        """See `_signature`."""
        return sign(text, request, model)

    def message(self, spoken: Spoken) -> Json:
        """A message object."""
        answer = spoken.answer
        refused = {"type": "refusal", "category": None, "explanation": None}
        return {
            "id": spoken.id,
            "type": "message",
            "role": "assistant",
            "model": spoken.model.name,
            "content": [draft.block for draft in answer.drafts],
            "stop_reason": answer.stop_reason,
            "stop_sequence": None,
            "stop_details": refused if answer.stop_reason == "refusal" else None,
            "usage": {**_usage(spoken.step), "output_tokens": answer.output_tokens},
        }

    def events(self, message: Json, drafts: Sequence[Draft], request: Json) -> Iterator[bytes]:  # noqa: ARG002 -- not needed
        """The events in the provider's order."""
        return (event(data, data["type"]) for data in events(message, drafts))

    def garbage(self) -> bytes:
        """An incomplete event."""
        return _GARBAGE

    def error(self, error: ApiError, request_id: str) -> tuple[int, Json]:
        """The refusal with its status."""
        return error.status, error.body(request_id)

    def error_event(self, error: ApiError) -> bytes:
        """The refusal as an `error` event."""
        body = error.body("req_in_stream")
        return event(body, body["type"])


def _usage(step: CacheStep) -> Json:
    """The usage without the output tokens."""
    written = {
        f"ephemeral_{ttl}_input_tokens": step.written.get(seconds, 0)
        for ttl, seconds in _SECONDS.items()
    }
    return {
        "input_tokens": step.uncached,
        "cache_creation_input_tokens": step.write,
        "cache_read_input_tokens": step.read,
        "cache_creation": written,
        "service_tier": "standard",
    }


def events(message: Json, drafts: Sequence[Draft]) -> Iterator[Json]:
    """The events of a message, in the provider's order."""
    usage = message["usage"]
    begun: Json = {**message, "content": [], "stop_reason": None, "stop_details": None}
    yield {"type": "message_start", "message": {**begun, "usage": {**usage, "output_tokens": 1}}}
    for index, draft in enumerate(drafts):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(draft)}
        if index == 0:
            yield {"type": "ping"}
        for delta in _deltas(draft):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}


def _opened(draft: Draft) -> Json:
    """The block before its first piece."""
    match draft.block["type"]:
        case "text":
            return {**draft.block, "text": ""}
        case "thinking":
            return {**draft.block, "thinking": "", "signature": ""}
        case "tool_use":
            return {**draft.block, "input": {}}
        case _:
            return draft.block


def _deltas(draft: Draft) -> Iterator[Json]:
    match draft.block["type"]:
        case "text":
            for piece in pieces(draft.said):
                yield {"type": "text_delta", "text": piece}
        case "thinking":
            for piece in pieces(draft.said):
                yield {"type": "thinking_delta", "thinking": piece}
            if draft.block["signature"]:
                yield {"type": "signature_delta", "signature": draft.block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in pieces(draft.said):
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            return
