"""Logs of requests and responses of any proxy, gateway or SDK, joined into their conversations, the one with the most
calls first; `log.jsonl#1` is the next.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from blocks import text_of_parts
from blocks.formats import (
    Call,
    Content,
    Json,
    Response,
    gemini_field,
    messages_in,
    obj,
    objs,
    parts_of,
    string,
)
from persistence.sessions._bodies import answer_in, request_in
from persistence.sessions._builder import Builder
from persistence.sessions._exchange import exchanges_in, logged
from persistence.sessions._lineage import Step, conversations
from persistence.sessions._messages import add_history, add_said
from persistence.sessions._session import Session
from persistence.sessions._source import Source
from persistence.sessions._tools import definitions

NAME = "request-log"
_HEAD = 20
"""Among so many records at the beginning, there must be a request and a response."""


def looks(source: Source) -> bool:
    """Whether this is a log of requests and responses.

    A document with messages but without a model, as the OpenHands SDK writes it, is read as chat messages instead.
    """
    if objs(source.document.get("messages")) and "model" not in source.document:
        return False
    head = [record for _, record in logged(source)[:_HEAD]]
    return any(map(request_in, head)) and any(map(answer_in, head))


def read(source: Source) -> Session:
    """The requested conversation of `source`, or the largest."""
    builder = Builder(source, NAME)
    talks, asides = conversations(exchanges_in(logged(source), builder.skip))
    if asides:
        count = "a request" if len(asides) == 1 else f"{len(asides):,} requests, from here on,"
        text = f"{count} whose answer nothing followed, skipped"
        builder.skip(asides[0].exchange.line, text)
    steps = builder.pick(talks).path
    _open(builder, steps[0].exchange.body)
    for step in steps:
        _add(builder, step)
    return builder.build()


def _open(builder: Builder, body: Json) -> None:
    told = next((body[name] for name in ("system", "instructions") if body.get(name)), None)
    told = told or obj(gemini_field(body, "systemInstruction")).get("parts")
    builder.system = text_of_parts(parts_of(told))
    tools = objs(body.get("tools"))
    declared = [d for tool in tools for d in objs(gemini_field(tool, "functionDeclarations"))]
    builder.tools = definitions(declared or tools)


def _finished(answer: Response) -> Sequence[Content]:
    """The content of an answer; if it was cut off, without a call at its end, which may be incomplete."""
    content = answer.message.content
    is_broken = answer.is_cut_off and content and isinstance(content[-1], Call)
    return content[:-1] if is_broken else content


def _add(builder: Builder, step: Step) -> None:
    exchange = step.exchange
    builder.tick(exchange.began)
    said = (message for item in step.new for message in messages_in(item, exchange.format))
    add_history(builder, said, exchange.line, exchange.began)
    answer = exchange.answer
    if answer is None:
        builder.skip(exchange.line, "request without a response that could be read")
        return
    response = builder.respond(answer.id)
    response.model = answer.model or string(exchange.body.get("model"))
    if used := answer.usage:
        response.usage = replace(used, model=response.model, response=response.id)
    add_said(builder, response, _finished(answer))
    builder.tick(exchange.ended)
