"""Calls the client of each API for a response, whole or streamed, for an agent or for a summary.

The clients are the vendors' own, `anthropic.Anthropic()`, `openai.OpenAI()`, `google.genai.Client()`, or objects with
the same methods.
OpenAI's streamed responses are joined here, because the client's own helper raises if an answer was cut off.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import MisuseError, in_words
from blocks.formats import Format, Stream, event_of, obj, objs, stream_of, string
from render import Json, Overflow, overflow_of

Options: TypeAlias = Mapping[str, Any]


class ResponseLostError(Exception):
    """A stream ended before the end of the message."""


@attrs.frozen(kw_only=True)
class Api:
    """One provider's API, as its client offers it."""

    client: str
    """The description of its client for error messages."""
    method: str
    """The client's attribute for requests."""
    call: str = "create"
    """The method's name."""
    limit: str
    """The argument for the tokens that an answer may have."""
    config: str = ""
    """The argument that contains everything but the conversation; empty: every option is an argument."""
    telling: "Callable[[], _MessageStream | _Events]"
    """Makes a reader of one response that arrives piece by piece."""

    def arguments(self, request: Json, model: str, limit: int, options: Options) -> Json:
        """The keyword arguments of a call; `options` are added to the request."""
        if not self.config:
            return {**options, **request, "model": model, self.limit: limit}
        config = {**options.get(self.config, {}), **request.get(self.config, {}), self.limit: limit}
        return {**options, **request, "model": model, self.config: config}

    def create(self, client: Any, arguments: Json) -> Any:
        """A whole response; with an async client, await it."""
        return self._create(client)(**arguments)

    def is_async(self, client: Any) -> bool:
        """Whether the client's results have to be awaited."""
        return inspect.iscoroutinefunction(inspect.unwrap(self._create(client)))

    def _create(self, client: Any) -> Any:
        return getattr(attrgetter(self.method)(client), self.call)

    def accepts(self, client: object) -> bool:
        """Whether an object is a client of this API."""
        try:
            attrgetter(self.method)(client)
        except AttributeError:
            return False
        return True

    def check(self, client: object) -> None:
        """Refuse an object that is not a client of this API.

        Raises:
            MisuseError: it is not a client of this API.
        """
        if not self.accepts(client):
            raise MisuseError(f"client must be {self.client}, not {in_words(client)}")


@attrs.define
class _MessageStream:
    """A stream of Anthropic, whose client assembles the response.

    As the other streams: `texts` is the text, piece by piece (`atexts`: of an async client); then `response` is the whole.
    It raises a `ResponseLostError` if the stream broke off.
    """

    _message: Any = attrs.field(default=None, init=False)

    def texts(self, client: Any, arguments: Json) -> Iterator[str]:
        with client.messages.stream(**arguments) as stream:
            yield from stream.text_stream
            self._message = stream.get_final_message()

    async def atexts(self, client: Any, arguments: Json) -> AsyncIterator[str]:
        async with client.messages.stream(**arguments) as stream:
            async for text in stream.text_stream:
                yield text
            self._message = await stream.get_final_message()

    @property
    def response(self) -> Any:
        if self._message is None or self._message.stop_reason is None:
            raise ResponseLostError("the stream ended before the message did")
        return self._message


@attrs.define
class _Events:
    """A stream of events or chunks that is assembled here; its response is JSON."""

    method: str
    format: Format
    text_of: Callable[[Json], str]
    more: Mapping[str, Any]
    _stream: Stream = attrs.field(
        default=attrs.Factory(lambda self: stream_of(self.format, "stream"), takes_self=True),
        init=False,
    )

    def texts(self, client: Any, arguments: Json) -> Iterator[str]:
        with self._begun(client, arguments) as events:
            for event in events:
                yield from self._new_text(event)

    async def atexts(self, client: Any, arguments: Json) -> AsyncIterator[str]:
        async with await self._begun(client, arguments) as events:
            async for event in events:
                for text in self._new_text(event):
                    yield text

    def _begun(self, client: Any, arguments: Json) -> Any:
        return attrgetter(self.method)(client).create(**{**self.more, **arguments}, stream=True)

    def _new_text(self, event: object) -> Iterator[str]:
        data = event_of(event)
        self._stream.add(data)
        text = self.text_of(data)
        if text:
            yield text

    @property
    def response(self) -> Any:
        if not self._stream.is_over:
            raise ResponseLostError("the stream ended before the response did")
        return self._stream.response()


@attrs.define
class _Chunks(_Events):
    """A stream of Google's client: a plain iterator, which need not be closed."""

    def texts(self, client: Any, arguments: Json) -> Iterator[str]:
        for event in client.models.generate_content_stream(**arguments):
            yield from self._new_text(event)

    async def atexts(self, client: Any, arguments: Json) -> AsyncIterator[str]:
        async for event in await client.models.generate_content_stream(**arguments):
            for text in self._new_text(event):
                yield text


def _delta(event: Json) -> str:
    """The text in an event of the Responses API."""
    return str(event["delta"]) if event.get("type") == "response.output_text.delta" else ""


def _chunk(chunk: Json) -> str:
    """The text in a chunk of Chat Completions."""
    choices: list[Json] = chunk.get("choices") or []
    deltas: list[Json] = [choice.get("delta") or {} for choice in choices]
    return "".join(str(delta.get("content") or "") for delta in deltas)


def _candidates(chunk: Json) -> str:
    """The text in a chunk of Gemini, without thoughts."""
    contents = (obj(candidate.get("content")) for candidate in objs(chunk.get("candidates")))
    parts = (part for content in contents for part in objs(content.get("parts")))
    return "".join(string(part.get("text")) for part in parts if not part.get("thought"))


_RESPONSES: Final = "responses"
_MODELS: Final = "models"
_CHAT: Final = "chat.completions"
APIS: Final[Mapping[str, Api]] = {
    "anthropic": Api(
        client="an anthropic.Anthropic() (or AsyncAnthropic(), or its .beta)",
        method="messages",
        limit="max_tokens",
        telling=_MessageStream,
    ),
    "openai.responses": Api(
        client="an openai.OpenAI() (or AsyncOpenAI())",
        method=_RESPONSES,
        limit="max_output_tokens",
        telling=lambda: _Events(_RESPONSES, "openai.responses", _delta, {}),
    ),
    "openai.chat": Api(
        client="an openai.OpenAI() (or AsyncOpenAI()), of any server that speaks its Chat Completions",
        method=_CHAT,
        limit="max_completion_tokens",
        telling=lambda: _Events(
            _CHAT, "openai.chat", _chunk, {"stream_options": {"include_usage": True}}
        ),
    ),
    "gemini": Api(
        client="a google.genai.Client() (or its .aio)",
        method=_MODELS,
        call="generate_content",
        limit="maxOutputTokens",
        config="config",
        telling=lambda: _Chunks(_MODELS, "gemini", _candidates, {}),
    ),
}
"""The APIs by `Model.provider`."""


def api_of(provider: str) -> Api:
    """The API of this provider.

    Raises:
        MisuseError: foldline cannot call this provider's models.
    """
    if provider not in APIS:
        raise MisuseError(
            f"there is no client for {provider!r}; known providers: {', '.join(APIS)}"
        )
    return APIS[provider]


# What its errors say.


def overflow_in(error: BaseException) -> Overflow | None:
    """The overflow that an error of a provider's client reports; None: it is another error.

    Raises:
        MisuseError: `error` is not an exception.

    Reads the attributes that the providers' clients have in common: a status, a body, a message; in Google's client
    the first two are called `code` and `details`.
    """
    if not isinstance(error, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
        raise MisuseError(f"overflow_in(): error must be a BaseException, not {in_words(error)}")
    status: object = getattr(error, "status_code", getattr(error, "code", None))
    details = _details(getattr(error, "body", getattr(error, "details", None)))
    kind = details.get("code") or details.get("type") or getattr(error, "type", None) or ""
    message = details.get("message") or str(error)
    return overflow_of(status if isinstance(status, int) else None, str(kind), str(message))


def _details(body: object) -> dict[str, Any]:
    """The innermost description of the error; both providers wrap it once."""
    if not isinstance(body, dict):
        return {}
    outer = cast("dict[str, Any]", body)
    inner = outer.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else outer
