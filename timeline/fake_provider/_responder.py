"""The responders of the fake provider: a script, or a small deterministic model.

The model reads file after file: it passes each name that the user or a tool has mentioned to the first tool that takes
a text, once.  When no name is left, it reports what it saw.  With any responder, a request for a summary gets a valid
one in JSON, made of quotations.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import attrs
import msgspec

from blocks import MisuseError, OpenItem, StructuredSummary, TextPart, ToolOutcome
from blocks.formats import Call as RequestedCall
from blocks.formats import Content, Message, ModelText, Result, messages_in
from render import Json
from timeline.fake_provider._reply import Call, Fault, Reply
from timeline.fake_provider.wires import wire_of
from timeline.fake_provider.wires._wire import blocks_of, child

MARKER: Final = "[foldline: summarise]"
"""The beginning of the instruction of our summariser."""
_TEXT_CHARS: Final = 160
_LIST_MAX: Final = 5
_EMPTY: Final[Json] = {"string": "", "array": [], "object": {}, "integer": 0, "number": 0}


@attrs.frozen(kw_only=True)
class ParsedRequest:
    """What a request of any API asks of the model."""

    messages: Sequence[Message]
    tools: Mapping[str, Json]
    """The schemas of the tools that it offers, by name."""
    schema: Json | None
    """The JSON schema that the answer must fit; None: any text will do."""
    thinks: bool

    @classmethod
    def of(cls, request: Json) -> Self:
        """Read a request."""
        wire = wire_of(request)
        talk = next(request[name] for name in ("input", "contents", "messages") if name in request)
        items: list[Json] = [{"role": "user", "content": talk}] if isinstance(talk, str) else talk
        config = child(request, "config")
        thinking = child(request, "thinking").get("type", "disabled") != "disabled"
        efforts = (request.get("reasoning_effort"), request.get("reasoning"))
        return cls(
            messages=[m for item in items for m in messages_in(_as_user(item), wire.provider)],
            tools=dict(wire.tools(request)),
            schema=_schema(request, config),
            thinks=thinking or any(efforts) or bool(config.get("thinkingConfig")),
        )

    def contents(self, *, own: bool) -> Iterator[Content]:
        """What the model has said itself, or what it was told."""
        for message in self.messages:
            if own == (message.role == "assistant"):
                yield from message.content

    @property
    def last_words(self) -> str:
        """The last text of the last message, if it is not the model's; otherwise empty."""
        texts = [part.text for part in self.messages[-1].content if isinstance(part, TextPart)]
        return texts[-1] if texts else ""


def _as_user(item: Json) -> Json:
    """A message between Codex's agents as one of the user; here its text is not really encrypted."""
    if item.get("type") != "agent_message":
        return item
    parts = blocks_of(item["content"])
    texts = [str(part.get("text", part.get("encrypted_content", ""))) for part in parts]
    return {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}


def _schema(request: Json, config: Json) -> Json | None:
    """The JSON schema of the output format, with a reference at its top resolved."""
    output = child(request, "output_config") or child(request, "text")
    form = child(output, "format") or child(request, "response_format")
    schema = child(form, "schema") or child(child(form, "json_schema"), "schema")
    if form.get("type") != "json_schema":
        schema = child(config, "responseJsonSchema") or child(config, "responseSchema")
        if not schema:
            return None
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    return child(child(schema, "$defs"), reference) or schema


def wants_summary(request: Json) -> bool:
    """Whether a request asks for a summary: for JSON output, or with the instruction of our summariser at the end."""
    return _is_for_summary(ParsedRequest.of(request))


def _is_for_summary(prompt: ParsedRequest) -> bool:
    return prompt.schema is not None or prompt.last_words.startswith(MARKER)


def summary_reply(request: Json) -> Reply:
    """A valid summary of the conversation, with the fields that the request asks for."""
    prompt = ParsedRequest.of(request)
    summary: Json = msgspec.to_builtins(_summary(prompt))
    fields = child(prompt.schema or {}, "properties")
    if fields:
        summary = {name: _value(name, child(fields, name), summary) for name in fields}
    return Reply(text=msgspec.json.encode(summary).decode())


def _value(name: str, about: Json, summary: Json) -> Any:
    if name in summary:
        return summary[name]
    if "default" in about:
        return about["default"]
    choices: list[Any] = about.get("enum") or [_EMPTY.get(str(about.get("type")))]
    return choices[0]


def _summary(prompt: ParsedRequest) -> StructuredSummary:
    mine = [c.text[:_TEXT_CHARS] for c in prompt.contents(own=True) if isinstance(c, ModelText)]
    theirs = (c.text[:_TEXT_CHARS] for c in prompt.contents(own=False) if isinstance(c, TextPart))
    calls = [c for c in prompt.contents(own=True) if isinstance(c, RequestedCall)]
    outcomes = tuple(
        ToolOutcome(tool=call.name, outcome="called", detail=str(call.input)[:_TEXT_CHARS])
        for call in calls[-_LIST_MAX:]
    )
    return StructuredSummary(
        task=next(theirs, "(no task)"),
        facts=tuple(mine[-_LIST_MAX:]) or ("Nothing was said yet.",),
        tool_outcomes=outcomes,
        state=mine[-1] if mine else "Just begun.",
        open_items=(OpenItem(item="Go on with the task."),),
    )


Responder: TypeAlias = Callable[[Json], Reply | Fault]
"""A function from a request to the model's reply or a fault."""

_CALLS_MAX: Final = 2
"""Largest number of calls in one round."""
_ROUNDS_MAX: Final = 12
"""Largest number of rounds in one turn."""
_NAME: Final = re.compile(r"(?<![\w/.:-])(?:[\w-]+/)*[\w-]+\.[a-z]{1,5}\b")


def tutorial_responder(request: Json) -> Reply:
    """Write a summary if asked to; otherwise look up what was mentioned, and report what was found."""
    prompt = ParsedRequest.of(request)
    if _is_for_summary(prompt):
        return summary_reply(request)
    results = _results(prompt)
    tool = _tool(prompt)
    names = _unseen(prompt) if tool and _rounds(prompt) < _ROUNDS_MAX else []
    if tool and names:
        name, field = tool
        calls = [Call(name, {field: mentioned}) for mentioned in names[:_CALLS_MAX]]
        listed = " and ".join(names[:_CALLS_MAX])
        return Reply(
            thinking=f"{listed} may tell." if prompt.thinks else None,
            text=f"I look at {listed}.",
            calls=calls,
        )
    if results:
        line = results[-1].strip()[:_TEXT_CHARS] or "nothing"
        return Reply(text=f"That is all I can see. The last thing I found: {line}")
    return Reply(text=f"You said: {prompt.last_words[:_TEXT_CHARS]}")


def _tool(prompt: ParsedRequest) -> tuple[str, str] | None:
    """The first tool with a text field, and the name of that field; required fields are preferred."""
    for tool, schema in prompt.tools.items():
        fields = child(schema, "properties")
        for name in (*schema.get("required", ()), *fields):
            if child(fields, name).get("type") == "string":
                return tool, name
    return None


def _unseen(prompt: ParsedRequest) -> list[str]:
    """Names that the user or results mention and that no call has asked for, oldest first."""
    calls = (c for c in prompt.contents(own=True) if isinstance(c, RequestedCall))
    values = {value for call in calls for value in call.input.values() if isinstance(value, str)}
    texts = (c.text for c in prompt.contents(own=False) if isinstance(c, TextPart))
    mentioned = (name for text in (*texts, *_results(prompt)) for name in _NAME.findall(text))
    return [name for name in dict.fromkeys(mentioned) if name not in values]


def _rounds(prompt: ParsedRequest) -> int:
    """The number of rounds since the user's last text."""
    rounds = 0
    for message in reversed(prompt.messages):
        if message.role == "assistant":
            rounds += 1
        elif any(isinstance(part, TextPart) for part in message.content):
            break
    return rounds


def _results(prompt: ParsedRequest) -> list[str]:
    results = (c for c in prompt.contents(own=False) if isinstance(c, Result))
    return [part.text for each in results for part in each.parts if isinstance(part, TextPart)]


class ScriptLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer in a script file: a reply, or the name of a fault."""

    thinking: str | None = None
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop_reason: str = ""
    delay_seconds: float = 0.0
    fault: str = ""

    def turn(self) -> Reply | Fault:
        """The reply or the fault."""
        reply = msgspec.structs.asdict(self)
        fault = reply.pop("fault")
        return Fault.named(fault) if fault else Reply(**reply)


def _iterator(turns: Iterable[Reply | Fault]) -> Iterator[Reply | Fault]:
    return iter(turns)


@attrs.define
class Player:
    """Plays its answers in order. Requests for a summary are answered separately and use none of them."""

    turns: Iterator[Reply | Fault] = attrs.field(converter=_iterator)
    end: Reply = attrs.field(default=Reply(text="The script is over."))
    """The reply after all answers were played."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a script from a file: a JSON list of objects.

        Raises:
            MisuseError: the file is not a valid script.
        """
        try:
            lines = msgspec.json.decode(path.read_bytes(), type=list[ScriptLine])
            return cls([line.turn() for line in lines])
        except (MisuseError, msgspec.DecodeError, ValueError) as error:
            raise MisuseError(f"{path} is not a valid script: {error}") from error

    def __call__(self, request: Json) -> Reply | Fault:
        if wants_summary(request):
            return summary_reply(request)
        turn: Reply | Fault = next(self.turns, self.end)
        return turn


def as_responder(source: Responder | Iterable[Reply | Fault]) -> Responder:
    """The responder itself, or a script of the given answers."""
    return source if callable(source) else Player(source)
