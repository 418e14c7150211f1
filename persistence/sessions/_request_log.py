"""Logs of requests and responses of any proxy, gateway or SDK, joined into their conversations, the one with the most
calls first; `log.jsonl#1` is the next.

Each logger uses its own names for the fields, but the bodies are in the provider's format, so a body is searched for in
all known places and recognized by its form: JSON, JSON in a text, or the text of a stream.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from json import loads
from typing import Any, Final, TypeAlias

import attrs
import msgspec
from msgspec.structs import replace

from blocks import CodecError, clean_json, text_of_parts
from blocks.formats import (
    RESPONSES,
    Call,
    Content,
    Format,
    Json,
    ModelText,
    Response,
    Result,
    gemini_field,
    messages_in,
    obj,
    objs,
    parts_in,
    parts_of,
    stream_of,
    string,
)
from persistence.sessions._builder import Builder, Importer
from persistence.sessions._messages import add_content, add_history, definitions
from persistence.sessions._source import Record, Source, seconds

# Requests with their responses, on one line or on two.


_BEGINS: Final = (
    "request.timestamp",
    "startTime",
    "start_time",
    "startedDateTime",
    "request_created_at",
    "created_at",
    "timestamp",
)
_ENDS: Final = ("response.timestamp", "endTime", "end_time", "timestamp")
_IDS: Final = ("request_id", "requestId", "litellm_call_id", "call_id", "id")


@attrs.define(kw_only=True)
class Exchange:
    """A request and its response."""

    line: int
    body: Json
    format: Format
    """The format of `talk`."""
    talk: Sequence[Json]
    """The messages of the request; in formats with items, its items."""
    began: float | None
    ended: float | None
    answer: Response | None = None

    @property
    def model(self) -> str:
        return (self.answer.model if self.answer else "") or string(self.body.get("model"))


def logged(source: Source) -> Sequence[Record]:
    """The records of a log: its lines, or the entries of an HTTP archive."""
    entries = objs(obj(source.document.get("log")).get("entries"))
    return [(0, entry) for entry in entries] or source.records


def exchanges_in(records: Iterable[Record], skip: Callable[[int, str], None]) -> list[Exchange]:
    """The requests with their responses, in the order of the requests; `skip` is called for unusable records.

    A response in a record of its own belongs to the request with the same id, or else to the latest request without a
    response.
    """
    exchanges: list[Exchange] = []
    waiting: list[tuple[Json, Exchange]] = []
    for number, record in records:
        body, answer = request_in(record), answer_in(record)
        if body is not None:
            exchange = _exchange(number, record, body, answer)
            exchanges.append(exchange)
            if answer is None:
                waiting.append((record, exchange))
        elif answer is not None and waiting:
            same = (n for n, (request, _) in enumerate(waiting) if _has_id(request, record))
            _, exchange = waiting.pop(next(same, -1))
            exchange.answer, exchange.ended = answer, _time(record, _ENDS)
        elif answer is not None:
            skip(number, "response without a request, skipped")
    return exchanges


def _exchange(line: int, record: Json, body: Json, answer: Response | None) -> Exchange:
    name, talk = talk_in(body)
    began, ended, took = _time(record, _BEGINS), _time(record, _ENDS), record.get("time")
    if began and "startedDateTime" in record and isinstance(took, int | float):
        ended = began + took / 1000  # in an HTTP archive, in milliseconds
    return Exchange(
        line=line, body=body, format=name, talk=talk, began=began, ended=ended, answer=answer
    )


def _has_id(request: Json, response: Json) -> bool:
    return any(
        string(request.get(name)) and request.get(name) == response.get(name) for name in _IDS
    )


def _time(record: Json, paths: Iterable[str]) -> float | None:
    return next((at for path in paths if (at := seconds(at_path(record, path)))), None)


# Conversations.


_COMPARED: Final = 64
"""Of steps with equal answers, only this many of the latest are compared."""


@attrs.define(eq=False)
class RequestStep:
    """A request and its place in a conversation."""

    exchange: Exchange
    root: str
    """A hash of the user's first text."""
    before: "RequestStep | None" = None
    """The step whose answer this request continues; None: it begins a conversation."""
    new: Sequence[Json] = ()
    """The messages of this request that were neither in an earlier request nor an answer."""
    calls: int = attrs.field(init=False)
    """The number of answers in the conversation up to this step."""
    after: "list[RequestStep]" = attrs.field(factory=list["RequestStep"], init=False)

    def __attrs_post_init__(self) -> None:
        self.calls = (self.before.calls if self.before else 0) + bool(self.exchange.answer)

    @property
    def path(self) -> "list[RequestStep]":
        """The steps of the conversation up to this one."""
        steps: list[RequestStep] = []
        step: RequestStep | None = self
        while step is not None:
            steps.append(step)
            step = step.before
        return steps[::-1]


def conversations(exchanges: Iterable[Exchange]) -> tuple[list[RequestStep], list[RequestStep]]:
    """The last steps of all conversations, those with the most answers first; and asides: requests whose answer no
    later request continues, in a conversation that goes on."""
    lineage = _Lineage()
    for exchange in exchanges:
        lineage.add(exchange)
    last_steps: list[RequestStep] = []
    asides: list[RequestStep] = []
    for siblings in lineage.siblings.values():
        has_grown = any(step.after for step in siblings)
        for step in siblings:
            if not step.after:
                is_last = step is siblings[-1] and not has_grown
                (last_steps if is_last else asides).append(step)
    return sorted(last_steps, key=lambda step: -step.calls), asides


_Table: TypeAlias = dict[Any, list[RequestStep]]


@attrs.define
class _Lineage:
    siblings: _Table = attrs.field(factory=dict[Any, list[RequestStep]], init=False)
    """Steps by the step that they continue; for those that begin a conversation, by root and number of messages."""
    _answers: _Table = attrs.field(factory=dict[Any, list[RequestStep]], init=False)
    """Steps by their root and a part of their answer."""
    _lengths: _Table = attrs.field(factory=dict[Any, list[RequestStep]], init=False)
    """Steps by their root and the number of their messages."""
    _ids: dict[str, RequestStep] = attrs.field(factory=dict[str, RequestStep], init=False)

    def add(self, exchange: Exchange) -> None:
        root = _root(exchange)
        before, length = self._before(exchange, root)
        step = RequestStep(exchange, root, before, exchange.talk[length:])
        size = root, len(exchange.talk)
        self.siblings.setdefault(before or size, []).append(step)
        self._lengths.setdefault(size, []).append(step)
        if before:
            before.after.append(step)
        if answer := exchange.answer:
            self._ids[answer.id] = step
            for key in _keys(answer.message.content):
                for whose in (root, ""):
                    self._answers.setdefault((whose, *key), []).append(step)

    def _before(self, exchange: Exchange, root: str) -> tuple[RequestStep | None, int]:
        """The step whose answer a request continues, and how many of its messages were known then; (None, 0) if
        none."""
        talk, name = exchange.talk, exchange.format
        earlier = string(exchange.body.get("previous_response_id"))
        if earlier and earlier in self._ids:
            return self._ids[earlier], 0
        for place in reversed(range(len(talk))):
            answer = _answer_content(talk[place], name)
            if answer is None:
                continue
            first = place
            while first and _answer_content(talk[first - 1], name) is not None:
                first -= 1
            if step := self._answered(answer, root, first):
                return step, place + 1
            if step := self._edited(exchange, root, first):
                return step, place + 1 if step.exchange.answer else first
        return None, 0

    def _answered(self, content: Sequence[Content], root: str, length: int) -> RequestStep | None:
        """The latest step with this answer, if possible one whose request had `length` messages."""
        keys = list(_keys(content))
        calls = [key for key in keys if key[0] == "call"]
        for key in calls or keys:
            steps = self._answers.get((root, *key), [])
            if calls and not steps:  # a shortened history has the same calls
                steps = self._answers.get(("", *key), [])
            latest = steps[-_COMPARED:]
            exact = [step for step in latest if len(step.exchange.talk) == length]
            if latest:
                return (exact or latest)[-1]
        return None

    def _edited(self, exchange: Exchange, root: str, length: int) -> RequestStep | None:
        """The latest step with the same messages before its answer: the client edited the answer, or the log lacks
        it."""
        if not length:
            return None
        tail = _request_texts(exchange.talk[length - 1], exchange.format)
        steps = self._lengths.get((root, length), [])[-_COMPARED:]
        same = (
            s
            for s in reversed(steps)
            if _request_texts(s.exchange.talk[-1], s.exchange.format) == tail
        )
        return next(same, None)


def _root(exchange: Exchange) -> str:
    """A hash of the user's first text, because texts may be long and requests many."""
    for item in exchange.talk:
        for message in messages_in(item, exchange.format):
            if message.role == "user":
                return sha256(text_of_parts(parts_in(message.content)).encode()).hexdigest()
    return ""


def _answer_content(item: Json, name: Format) -> Sequence[Content] | None:
    """The content of a model's message; None if the model did not write it."""
    messages = [m for m in messages_in(item, name) if m.role == "assistant"]
    return [c for message in messages for c in message.content] if messages else None


def _request_texts(item: Json, name: Format) -> list[str]:
    """The text of a message of the user or of tools, and the call ids of its results."""
    contents = [c for message in messages_in(item, name) for c in message.content]
    ids = [content.call_id for content in contents if isinstance(content, Result)]
    return [text_of_parts(parts_in(contents)), *ids]


def _keys(content: Iterable[Content]) -> Iterator[tuple[str, ...]]:
    for piece in content:
        match piece:
            case Call():
                arguments = msgspec.json.encode(piece.input, order="deterministic").decode()
                yield "call", piece.call_id, piece.name, arguments
            case ModelText(text=text):
                yield "text", text.strip()
            case _:
                pass


# The session.


def _looks(source: Source) -> bool:
    """Whether this is a log of requests and responses.

    A document with messages but without a model, as the OpenHands SDK writes it, is read as chat messages instead.
    """
    if objs(source.document.get("messages")) and "model" not in source.document:
        return False
    records = [record for _, record in logged(source)]
    is_log = any(map(request_in, records)) and any(map(answer_in, records))
    return is_log or any(body and _has_answer(body) for body in map(_enclosed, records))


def _has_answer(body: Json) -> bool:
    """Whether a request has an earlier answer in it."""
    return any(message.get("role") in ("assistant", "model") for message in talk_in(body)[1])


def _read_log(builder: Builder) -> None:
    """Add the requested conversation, or the largest."""
    memo = builder.source.memo
    if "talks" not in memo:
        memo["talks"] = conversations(exchanges_in(logged(builder.source), builder.skip))
    talks, asides = memo["talks"]
    if asides:
        count = "a request" if len(asides) == 1 else f"{len(asides):,} requests, from here on,"
        text = f"{count} whose answer nothing followed, skipped"
        builder.skip(asides[0].exchange.line, text)
    for number, step in enumerate([] if builder.source.index else asides):  # paid all the same
        answer, at = step.exchange.answer, step.exchange.began or 0.0
        if answer and answer.usage:
            usage = replace(answer.usage, model=step.exchange.model, at=at)
            builder.aside[f"{number}"] = usage
    steps = builder.pick(talks).path
    body = steps[0].exchange.body
    prompt = next((body[name] for name in ("system", "instructions") if body.get(name)), None)
    prompt = prompt or obj(gemini_field(body, "systemInstruction")).get("parts")
    builder.system = text_of_parts(parts_of(prompt))
    tools = objs(body.get("tools"))
    declared = [d for tool in tools for d in objs(gemini_field(tool, "functionDeclarations"))]
    builder.tools = definitions(declared or tools)
    for step in steps:
        _add(builder, step)


REQUEST_LOG = Importer("request-log", _looks, _read_log)


def _add(builder: Builder, step: RequestStep) -> None:
    exchange = step.exchange
    builder.tick(exchange.began)
    messages = (message for item in step.new for message in messages_in(item, exchange.format))
    add_history(builder, messages, exchange.line, exchange.began)
    answer = exchange.answer
    if answer is None:
        builder.skip(exchange.line, "request without a response that could be read")
        return
    response = builder.respond(answer.id, exchange.model)
    if usage := answer.usage:
        response.usage = replace(usage, model=response.model, response=response.id)
    add_content(builder, response, answer.complete)
    builder.tick(exchange.ended)


# Bodies.


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
    if body := _enclosed(record):
        return body
    settings = {**obj(record.get("optional_params")), **obj(record.get("model_parameters"))}
    return {**settings, **record} if _is_request(record) else None


def _enclosed(record: Json) -> Json | None:
    """The body of the request that a record has under one of the usual names."""
    bodies = (obj(_json(at_path(record, path))) for path in _REQUESTS)
    return next(filter(_is_request, bodies), None)


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
    prompt = body.get("input")
    return "openai.responses", objs(prompt) or [{"role": "user", "content": prompt}]


def _has_block(message: Json) -> bool:
    return any(string(block.get("type")) in _BLOCKS for block in objs(message.get("content")))


def answer_in(record: Json) -> Response | None:
    """The response in a record, or the record itself; None if there is none that can be read."""
    for path in _RESPONSES:
        if answer := _answer(at_path(record, path)):
            return answer
    return _answer(record)


def _answer(value: Any) -> Response | None:
    text = _unpacked(obj(value)) or value
    value = _json(text)
    if value is None and isinstance(text, str):
        lines = (line for line in text.splitlines() if line.startswith(_DATA))
        value = [_json(line.removeprefix(_DATA)) for line in lines]
    if isinstance(value, list):
        events = objs(value)
        name: Format | None = next((n for n in map(_format, events[:_SEARCHED]) if n), None)
        if name is None:
            return None
        stream = stream_of(name, "read_session()")
        for event in events:
            stream.add(event)
        return _read(stream.response() or {}, name)
    whole = obj(value)
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


def _read(fields: Json, name: Format | None) -> Response | None:
    response = RESPONSES[name](fields) if name else None
    is_one = response is not None and (response.message.content or response.usage)
    return response if is_one else None


def _format(fields: Json) -> Format | None:
    """The format of a response, or of an event of a stream."""
    kind = string(fields.get("type"))
    if objs(fields.get("choices")):
        return "openai.chat"
    if objs(fields.get("candidates")):
        return "gemini"
    if kind.startswith("response.") or isinstance(fields.get("output"), list):
        return "openai.responses"
    is_claudes = kind == "message" and isinstance(fields.get("content"), list)
    return "anthropic" if is_claudes or kind == "message_start" else None


def _json(value: Any) -> Any:
    """The value of a JSON text, or None if it is invalid; any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return clean_json(loads(value))
    except (ValueError, RecursionError, CodecError):
        return None
