"""The responders of the fake provider: a script, or a small deterministic model.

The model reads file after file: it passes each name that the user or a tool has mentioned to the first tool that takes
a text, once.  When no name is left, it reports what it saw.  With any responder, a request for a summary gets a valid
one in JSON, made of quotations.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import attrs
import msgspec

from blocks import MisuseError, OpenItem, StructuredSummary, ToolOutcome
from render import Json
from timeline.fake_provider._reply import Call, Fault, Reply
from timeline.fake_provider.wires import messages_form
from timeline.fake_provider.wires._wire import blocks_of, child

MARKER: Final = "[foldline: summarise]"
"""The beginning of the instruction of our summariser."""
_TEXT_CHARS: Final = 160
_LIST_MAX: Final = 5
_EMPTY: Final[Json] = {"string": "", "array": [], "object": {}, "integer": 0, "number": 0}


def wants_summary(request: Json) -> bool:
    """Whether a request asks for a summary: for JSON output, or with the instruction of our summariser at the end."""
    request_form = messages_form(request)
    return _schema(request_form) is not None or last_words(request_form).startswith(MARKER)


def last_words(request: Json) -> str:
    """The last text of the last message, if it is the user's; otherwise empty."""
    message = request["messages"][-1]
    texts = [b["text"] for b in blocks_of(message["content"]) if b["type"] == "text"]
    return texts[-1] if texts and message["role"] == "user" else ""


def summary_reply(request: Json) -> Reply:
    """A valid summary of the conversation, with the fields that the request asks for."""
    request_form = messages_form(request)
    summary: Json = msgspec.to_builtins(_summary(request_form))
    fields = child(_schema(request_form) or {}, "properties")
    if fields:
        summary = {name: _value(name, child(fields, name), summary) for name in fields}
    return Reply(text=msgspec.json.encode(summary).decode())


def _schema(request: Json) -> Json | None:
    """The JSON schema of the output format, with a reference at its top resolved."""
    wanted = child(child(request, "output_config"), "format")
    if wanted.get("type") != "json_schema":
        return None
    schema = child(wanted, "schema")
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    return child(child(schema, "$defs"), reference) or schema


def _value(name: str, about: Json, summary: Json) -> Any:
    if name in summary:
        return summary[name]
    if "default" in about:
        return about["default"]
    choices: list[Any] = about.get("enum") or [_EMPTY.get(str(about.get("type")))]
    return choices[0]


def _summary(request: Json) -> StructuredSummary:
    blocks = [
        (message["role"], block)
        for message in request["messages"]
        for block in blocks_of(message["content"])
    ]
    texts = [(role, b["text"][:_TEXT_CHARS]) for role, b in blocks if b["type"] == "text"]
    mine = [text for role, text in texts if role == "assistant"]
    calls = (b for _, b in reversed(blocks) if b["type"] == "tool_use")
    outcomes = tuple(
        ToolOutcome(tool=call["name"], outcome="called", detail=str(call["input"])[:_TEXT_CHARS])
        for call in islice(calls, _LIST_MAX)
    )
    return StructuredSummary(
        task=next((text for role, text in texts if role == "user"), "(no task)"),
        facts=tuple(mine[-_LIST_MAX:]) or ("Nothing was said yet.",),
        tool_outcomes=outcomes[::-1],
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
_QUOTE_CHARS: Final = 160


def tutorial_responder(request: Json) -> Reply:
    """Write a summary if asked to; otherwise look up what was mentioned, and report what was found."""
    if wants_summary(request):
        return summary_reply(request)
    request = messages_form(request)
    results = _results(request)
    tool = _tool(request)
    names = _unseen(request) if tool and _rounds(request) < _ROUNDS_MAX else []
    if tool and names:
        name, field = tool
        calls = [Call(name, {field: mentioned}) for mentioned in names[:_CALLS_MAX]]
        listed = " and ".join(names[:_CALLS_MAX])
        return Reply(
            thinking=f"{listed} may tell." if _thinks(request) else None,
            text=f"I look at {listed}.",
            calls=calls,
        )
    if results:
        line = results[-1].strip()[:_QUOTE_CHARS] or "nothing"
        return Reply(text=f"That is all I can see. The last thing I found: {line}")
    return Reply(text=f"You said: {last_words(request)[:_QUOTE_CHARS]}")


def _thinks(request: Json) -> bool:
    return bool(child(request, "thinking").get("type", "disabled") != "disabled")


def _tool(request: Json) -> tuple[str, str] | None:
    """The first tool with a text field, and the name of that field; required fields are preferred."""
    for tool in request.get("tools") or ():
        schema = child(tool, "input_schema")
        fields = child(schema, "properties")
        for name in (*schema.get("required", ()), *fields):
            if child(fields, name).get("type") == "string":
                return tool["name"], name
    return None


def _unseen(request: Json) -> list[str]:
    """Names that the user or results mention and that no call has asked for, oldest first."""
    values = {
        value
        for block in _blocks(request, "tool_use")
        for value in block["input"].values()
        if isinstance(value, str)
    }
    texts = (block["text"] for message in _of_user(request) for block in _texts(message))
    mentioned = (name for text in (*texts, *_results(request)) for name in _NAME.findall(text))
    return [name for name in dict.fromkeys(mentioned) if name not in values]


def _rounds(request: Json) -> int:
    """The number of rounds since the user's last text."""
    rounds = 0
    for message in reversed(request["messages"]):
        if message["role"] == "assistant":
            rounds += 1
        elif any(True for _ in _texts(message)):
            break
    return rounds


def _results(request: Json) -> list[str]:
    return [
        part["text"]
        for block in _blocks(request, "tool_result")
        for part in blocks_of(block.get("content"))
        if part["type"] == "text"
    ]


def _of_user(request: Json) -> list[Json]:
    return [message for message in request["messages"] if message["role"] == "user"]


def _texts(message: Json) -> Iterator[Json]:
    return (block for block in blocks_of(message["content"]) if block["type"] == "text")


def _blocks(request: Json, kind: str) -> Iterator[Json]:
    for message in request["messages"]:
        yield from (b for b in blocks_of(message["content"]) if b["type"] == kind)


class CallLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call in a script file."""

    name: str
    input: dict[str, Any] = {}
    id: str = ""


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer in a script file: a reply, or the name of a fault."""

    thinking: str | None = None
    text: str = ""
    calls: tuple[CallLine, ...] = ()
    stop_reason: str = ""
    delay_seconds: float = 0.0
    fault: str = ""

    def turn(self) -> Reply | Fault:
        """The reply or the fault."""
        if self.fault:
            return Fault.named(self.fault)
        return Reply(
            thinking=self.thinking,
            text=self.text,
            calls=[Call(call.name, call.input, call.id) for call in self.calls],
            stop_reason=self.stop_reason,
            delay_seconds=self.delay_seconds,
        )


def _iterator(turns: Iterable[Reply | Fault]) -> Iterator[Reply | Fault]:
    return iter(turns)


@attrs.define
class Script:
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
            lines = msgspec.json.decode(path.read_bytes(), type=list[Line])
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
    return source if callable(source) else Script(source)
