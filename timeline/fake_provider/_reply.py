"""What the fake provider's model replies, cut where it exceeds the room for output, and faults that can be injected."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, Self, TypeAlias

import attrs
import msgspec
from attrs.validators import ge, le, optional

from blocks import MisuseError
from render import Json

DELAY_SECONDS_MAX: Final = 30.0
"""Largest delay of an answer in seconds, whatever a script says."""


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call; also in a script file."""

    name: str
    input: Json = {}
    id: str = ""
    """The id of the call; empty: the provider makes one."""


@attrs.frozen(kw_only=True)
class Reply:
    """One response, in the order in which the model writes it: thinking, text, blocks, calls."""

    thinking: str | None = None
    """The thinking, which the provider signs; None: no thinking block."""
    text: str = ""
    blocks: tuple[Json, ...] = attrs.field(default=(), converter=tuple[Json, ...])
    """Content blocks that are sent unchanged, for example of a server tool."""
    calls: tuple[Call, ...] = attrs.field(default=(), converter=tuple[Call, ...])
    stop_reason: str = ""
    """The stop reason; empty: `tool_use` if there are calls, otherwise `end_turn`."""
    delay_seconds: float = attrs.field(default=0.0, validator=[ge(0.0), le(DELAY_SECONDS_MAX)])
    """Seconds until the response begins."""

    @property
    def stopped(self) -> str:
        """The stop reason, with its default."""
        return self.stop_reason or ("tool_use" if self.calls else "end_turn")


Count: TypeAlias = Callable[[str], int]


@attrs.frozen(kw_only=True)
class Draft:
    """One content block, and the part of it that a stream sends piece by piece."""

    block: Json
    text: str = ""

    def cut(self, chars: int) -> "Draft":
        """The block with only the first characters of its streamed part; thinking then has no signature."""
        text = self.text[:chars]
        block = dict(self.block)
        match block["type"]:
            case "text":
                block["text"] = text
            case "thinking":
                block |= {"thinking": text, "signature": ""}
            case _:  # of a cut input, the complete fields
                block["input"] = dict(list(block["input"].items())[:-1])
        return Draft(block=block, text=text)


@attrs.frozen(kw_only=True)
class Drafts:
    """The content of an answer, and the stop reason."""

    drafts: tuple[Draft, ...]
    stop_reason: str
    output_tokens: int


def drafts_of(reply: Reply, sign: Callable[[str], str]) -> Iterator[Draft]:
    """The content blocks of a reply."""
    if reply.thinking is not None:
        signature = sign(reply.thinking)
        block: Json = {"type": "thinking", "thinking": reply.thinking, "signature": signature}
        yield Draft(block=block, text=reply.thinking)
    if reply.text:
        yield Draft(block={"type": "text", "text": reply.text}, text=reply.text)
    yield from (Draft(block=block) for block in reply.blocks)
    for call in reply.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name}
        text = json.dumps(call.input, ensure_ascii=False, separators=(",", ":"))
        yield Draft(block={**block, "input": call.input}, text=text)


def answer(reply: Reply, drafts: Sequence[Draft], rooms: dict[str, int], count: Count) -> Drafts:
    """As much of a reply as fits; `rooms` has the tokens that are left, by the stop reason if they are used up."""
    reason = min(rooms, key=lambda name: rooms[name])
    fitting, used = _fitting(drafts, rooms[reason], count)
    if used > rooms[reason]:
        return Drafts(drafts=fitting, stop_reason=reason, output_tokens=rooms[reason])
    if reply.stopped == "max_tokens" and fitting and fitting[-1].text:
        fitting = (*fitting[:-1], fitting[-1].cut(len(fitting[-1].text) // 2))
    return Drafts(drafts=fitting, stop_reason=reply.stopped, output_tokens=max(used, 1))


def _fitting(drafts: Sequence[Draft], room: int, count: Count) -> tuple[tuple[Draft, ...], int]:
    """The drafts that fit, the last one possibly cut, and the tokens of all drafts up to and including that one."""
    fitting: list[Draft] = []
    used = 0
    for draft in drafts:
        tokens = count(draft.text or json.dumps(draft.block))
        if used + tokens > room:
            chars = len(draft.text) * (room - used) // tokens
            fitting += [draft.cut(chars)] if chars else []
            return tuple(fitting), used + tokens
        fitting.append(draft)
        used += tokens
    return tuple(fitting), used


Damage: TypeAlias = Literal["none", "cut", "garbled", "error"]


@attrs.frozen
class ApiError:
    """A refusal by the provider."""

    status: int
    kind: str
    message: str
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    code: str = ""
    """The error code that OpenAI's clients also read."""
    tokens: tuple[int, int] | None = None
    """Tokens of a prompt that is too long, and of the window; None for other errors."""

    def body(self, request_id: str) -> Json:
        """The JSON of the refusal's body."""
        error = {"type": self.kind, "message": self.message}
        return {"type": "error", "error": error, "request_id": request_id}


def invalid(message: str, code: str = "") -> ApiError:
    """400: the request is not valid."""
    return ApiError(400, "invalid_request_error", message, code=code)


def overlong(tokens: int, tokens_max: int) -> ApiError:
    """400: the prompt is too long."""
    text = f"prompt is too long: {tokens} tokens > {tokens_max} maximum"
    return ApiError(400, "invalid_request_error", text, tokens=(tokens, tokens_max))


OVERLOADED: Final = ApiError(529, "overloaded_error", "Overloaded")


@attrs.frozen(kw_only=True)
class Fault:
    """A fault in the answer to one valid request."""

    error: ApiError | None = None
    """The refusal; with `damage="error"` it is sent only after `after` events of the stream."""
    damage: Damage = "none"
    """The damage to the answer on its way: the connection is cut, or the JSON is broken."""
    after: int = attrs.field(default=4, validator=ge(0))
    """Number of events of a stream that arrive before the damage; a body without a stream breaks in its middle."""
    delay_seconds: float | None = attrs.field(
        default=None, validator=optional([ge(0.0), le(DELAY_SECONDS_MAX)])
    )
    """Seconds to wait before the answer begins; None: as the reply says."""
    reply: Reply | None = None
    """The reply that is sent in place of the model's."""

    @property
    def is_final(self) -> bool:
        """Whether the model's reply does not arrive in full, so that the responder is not called."""
        return bool(self.error or self.reply or self.damage != "none")

    @classmethod
    def overflow(cls, tokens: int = 200_001, tokens_max: int = 200_000) -> Self:
        """400: the prompt is too long."""
        return cls(error=overlong(tokens, tokens_max))

    @classmethod
    def rate_limit(cls, retry_after: float = 1) -> Self:
        """429, with the number of seconds to wait."""
        text = "This request would exceed your rate limit of 50 requests per minute."
        headers = {"retry-after": f"{retry_after:g}"}
        return cls(error=ApiError(429, "rate_limit_error", text, headers))

    @classmethod
    def server_error(cls) -> Self:
        """500."""
        return cls(error=ApiError(500, "api_error", "Internal server error"))

    @classmethod
    def overloaded(cls) -> Self:
        """529."""
        return cls(error=OVERLOADED)

    @classmethod
    def overloaded_in_stream(cls, after: int = 4) -> Self:
        """Status 200, and then an error event; without a stream, a plain 529."""
        return cls(error=OVERLOADED, damage="error", after=after)

    @classmethod
    def slow(cls, seconds: float = 5) -> Self:
        """The answer is late but complete."""
        return cls(delay_seconds=seconds)

    @classmethod
    def cut(cls, after: int = 4) -> Self:
        """The connection is closed in the middle of the answer."""
        return cls(damage="cut", after=after)

    @classmethod
    def garbled(cls, after: int = 4) -> Self:
        """Status 200 with invalid JSON."""
        return cls(damage="garbled", after=after)

    @classmethod
    def refusal(cls) -> Self:
        """The model refuses: empty content, stop reason `refusal`."""
        return cls(reply=Reply(stop_reason="refusal"))

    @classmethod
    def max_tokens(cls, call: Call | None = None) -> Self:
        """The output ends inside a tool call."""
        cut = call or Call("write_file", {"path": "notes.md", "content": "All that was found: "})
        return cls(reply=Reply(text="I write it down.", calls=[cut], stop_reason="max_tokens"))

    @classmethod
    def pause(cls) -> Self:
        """A long turn of a server tool is paused; the client continues it by sending it back unchanged."""
        search: Json = {
            "type": "server_tool_use",
            "id": "srvtoolu_fake",
            "name": "web_search",
            "input": {"query": "foldline"},
        }
        return cls(reply=Reply(text="Still searching.", blocks=[search], stop_reason="pause_turn"))

    @classmethod
    def empty(cls) -> Self:
        """The model ends its turn with an empty answer."""
        return cls(reply=Reply())

    @classmethod
    def named(cls, name: str) -> Self:
        """The fault of this name, with its defaults.

        Raises:
            MisuseError: there is no fault of this name.
        """
        of_request = (cls.overflow, cls.rate_limit, cls.server_error, cls.overloaded)
        of_wire = (cls.overloaded_in_stream, cls.slow, cls.cut, cls.garbled)
        of_model = (cls.refusal, cls.max_tokens, cls.pause, cls.empty)
        makers = {maker.__name__: maker for maker in (*of_request, *of_wire, *of_model)}
        if name not in makers:
            raise MisuseError(f"no fault {name!r}; there are {', '.join(makers)}")
        return makers[name]()
