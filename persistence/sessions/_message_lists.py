"""Logs that are a list of messages in a provider's format: which field has them, and what an agent adds to them."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import attrs
from msgspec.structs import replace

from blocks import text_of_parts
from blocks.formats import (
    Call,
    Content,
    Json,
    Result,
    items,
    messages_in,
    obj,
    objs,
    parts_of,
    string,
)
from persistence.sessions._builder import Builder, Importer, LoggedResult
from persistence.sessions._messages import (
    add_chat_message,
    add_chat_response,
    add_message,
    chat_usage,
    definitions,
)
from persistence.sessions._source import Record, Source, seconds

# Anthropic's messages, plain or as a whole request with `system` and `tools`.

_CLAUDE_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document"})
_NAMES = {"id": "tool_id", "tool_use_id": "tool_id", "name": "tool_name", "content": "output"}
"""Anthropic's names of a block's fields, and those that the stream of Gemini CLI has for them."""


def _looks_anthropic(source: Source) -> bool:
    """Whether these messages have something that only Anthropic's have."""
    if "messages" in source.document and "system" in source.document:
        return True
    return any(
        string(message.get("role")) in {"user", "assistant"}
        and any(string(block.get("type")) in _CLAUDE_BLOCKS for block in objs(_content(message)))
        for _, message in source.messages
    )


def _content(message: Json) -> Any:
    """The content; a list if it is one block, which may have names of `_NAMES`."""
    block = obj(message.get("content"))
    own = {name: block[other] for name, other in _NAMES.items() if other in block}
    return [{**own, **block}] if block else message.get("content")


def _messages(records: Iterable[Record]) -> Iterator[Record]:
    """The messages; of the model's messages that are one block each, those in a row are one."""
    for is_block, group in groupby(records, _is_block_of_model):
        messages = [(number, {**fields, "content": _content(fields)}) for number, fields in group]
        if is_block:
            number, first = messages[0]
            blocks = [block for _, message in messages for block in message["content"]]
            messages = [(number, {**first, "content": blocks})]
        yield from messages


def _is_block_of_model(record: Record) -> bool:
    return record[1].get("role") == "assistant" and bool(obj(record[1].get("content")))


def _read_anthropic(builder: Builder) -> None:
    document = builder.source.document
    builder.model = string(document.get("model"))
    builder.system = text_of_parts(parts_of(document.get("system")))
    builder.tools = definitions(document.get("tools"))
    for number, message in _messages(builder.source.messages):
        if message.get("role") == "system":
            _add_system(builder, message)
        else:
            _add_claude(builder, message, number, seconds(message.get("timestamp")))


def _add_claude(builder: Builder, fields: Json, number: int, at: float | None) -> None:
    """Add one of Anthropic's messages, with the model that it names."""
    for message in messages_in(fields, "anthropic"):
        add_message(builder, message, number, at)
        if message.role == "assistant":
            builder.latest.model = string(fields.get("model"))


def _add_system(builder: Builder, message: Json) -> None:
    text = text_of_parts(parts_of(message.get("content")))
    builder.system = "\n\n".join(filter(None, (builder.system, text)))


ANTHROPIC = Importer("anthropic", _looks_anthropic, _read_anthropic)


# Factory's Droid: Anthropic's messages, one per line. Most versions name the model in a separate file.

_MESSAGE = frozenset({"role", "content"})


def _looks_droid(source: Source) -> bool:
    return any(
        line.get("type") == "session_start"
        or (line.get("type") == "message" and obj(line.get("message")).keys() >= _MESSAGE)
        for _, line in source.records
    )


def _read_droid(builder: Builder) -> None:
    for number, line in builder.source.records:
        if line.get("type") != "message":
            continue  # its title, its to-do list, a compaction
        at = seconds(line.get("timestamp"))
        fields = {**obj(line.get("message")), "id": line.get("id")}
        _add_claude(builder, fields, number, at)


DROID = Importer("droid", _looks_droid, _read_droid)


# Cursor's transcripts: Anthropic's messages, without times and without ids of calls. A result belongs to the first call
# that has no result yet.


def _looks_cursor(source: Source) -> bool:
    return any(
        string(line.get("role")) in {"user", "assistant"} and "content" in obj(line.get("message"))
        for _, line in source.records
    )


def _read_cursor(builder: Builder) -> None:
    ids = _CallIds()
    for number, line in builder.source.records:
        fields = {**obj(line.get("message")), "role": line.get("role")}
        at = seconds(line.get("timestamp"))
        for message in messages_in(fields, "anthropic"):
            content = tuple(map(ids.given_to, message.content))
            add_message(builder, replace(message, content=content), number, at)


@attrs.define
class _CallIds:
    """Ids for calls that have none in the log."""

    _logged: set[str] = attrs.field(factory=set[str], init=False)
    """The ids that are in the log."""
    _open: deque[str] = attrs.field(factory=deque[str], init=False)
    """The ids given here, as long as their calls have no result; oldest first."""
    _calls: int = attrs.field(default=0, init=False)

    def given_to(self, content: Content) -> Content:
        match content:
            case Call(call_id=""):
                self._calls += 1
                self._open.append(f"call_{self._calls}")
                return replace(content, call_id=self._open[-1])
            case Call():
                self._logged.add(content.call_id)
                return content
            case Result() if content.call_id not in self._logged and self._open:
                return replace(content, call_id=self._open.popleft())
            case _:
                return content


CURSOR = Importer("cursor", _looks_cursor, _read_cursor)


# OpenAI's chat messages, plain or as a whole request with `messages` and `tools`.

_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def _looks_openai(source: Source) -> bool:
    return any(
        string(message.get("role")) in _CHAT_ROLES
        and ("content" in message or "tool_calls" in message)
        for _, message in source.messages
    )


def _read_openai(builder: Builder) -> None:
    document = builder.source.document
    builder.model = string(document.get("model"))
    builder.tools = definitions(document.get("tools"))
    others = Counter[str]()
    for number, message in builder.source.messages:
        if string(message.get("role")) in _CHAT_ROLES:
            add_chat_message(builder, number, message)
        else:
            kind = string(message.get("type")) or string(message.get("role"))
            others[kind or "without a role"] += 1
    if others:
        kinds = ", ".join(f"{number} {kind}" for kind, number in others.items())
        builder.skip(0, f"what is no chat message, skipped: {kinds}")


OPENAI = Importer("openai", _looks_openai, _read_openai)


# Results of tau-bench: a list of conversations in chat messages, without times; `file#3` chooses one.


def _looks_tau(source: Source) -> bool:
    return all("traj" in run and "task_id" in run for _, run in source.records)


def _read_tau(builder: Builder) -> None:
    run = builder.pick([run for _, run in builder.source.records])
    for message in objs(run.get("traj")):
        add_chat_message(builder, 0, message)


TAU = Importer("tau-bench", _looks_tau, _read_tau)


# Inspect's evaluation logs: samples with chat messages in which `function` is a name; `file#3` chooses a sample.


def _looks_inspect(source: Source) -> bool:
    return "samples" in source.document and "eval" in source.document


def _read_inspect(builder: Builder) -> None:
    document = builder.source.document
    builder.model = string(obj(document.get("eval")).get("model"))
    sample = builder.pick(objs(document.get("samples")))
    for message in objs(sample.get("messages")):
        calls = [
            {"id": call.get("id"), "function": {**call, "name": call.get("function")}}
            for call in objs(message.get("tool_calls"))
        ]
        add_chat_message(builder, 0, {**message, "tool_calls": calls})


INSPECT = Importer("inspect", _looks_inspect, _read_inspect)


# SWE-agent trajectories: chat messages in `history`, without times. The first user message is the task; later ones are
# observations. Whole demonstrations are separate messages.


def _looks_swe_agent(source: Source) -> bool:
    return "history" in source.document and "trajectory" in source.document


def _read_swe_agent(builder: Builder) -> None:
    for message in objs(builder.source.document.get("history")):
        parts = parts_of(message.get("content"))
        match message.get("role"):
            case "system":
                _add_system(builder, message)
            case _ if message.get("is_demo"):
                builder.attach(parts, None, "demonstration")
            case "user" if not builder.latest.id:
                builder.user(parts, None)
            case "user":
                builder.attach(parts, None, "observation")
            case "assistant":
                add_chat_response(builder, builder.respond(), message)
            case "tool":
                ids = items(message.get("tool_call_ids")) or [message.get("tool_call_id")]
                builder.result(ids[0], LoggedResult(parts=parts), None)
            case _:
                pass


SWE_AGENT = Importer("swe-agent", _looks_swe_agent, _read_swe_agent)


# mini-swe-agent: chat messages with times in `extra`; before 1.1 a bare list without tool calls. The first user message
# is the task; all later ones are from the environment: observations (in the bare list), or complaints about a malformed
# answer.

_MINI = "mini-swe-agent"
_FIRST_CALL_SECONDS = 5.0
"""Only answers have times; the first request is assumed to be this much earlier than its answer."""


def _looks_mini(source: Source) -> bool:
    first = source.document
    if "messages" in first:
        of_mini = string(first.get("trajectory_format")).startswith(_MINI)
        return of_mini or "mini_version" in obj(first.get("info"))
    return any(
        message.get("role") == "user"
        and string(message.get("content")).lstrip().startswith("<returncode>")
        for _, message in source.records
    )


def _read_mini(builder: Builder) -> None:
    for _, message in builder.source.messages:
        extra = obj(message.get("extra"))
        at = seconds(extra.get("timestamp"))
        parts = parts_of(message.get("content"))
        match message.get("role"):
            case "system":
                builder.system = builder.system or text_of_parts(parts)
            case "user" if not builder.latest.id:
                builder.user(parts, at)
            case "user":
                builder.attach(parts, at, "observation")
            case "assistant":
                completion = obj(extra.get("response"))
                if at and not builder.clock:
                    builder.tick(at - _FIRST_CALL_SECONDS)
                own, model = string(completion.get("id")), string(completion.get("model"))
                response = builder.respond(own, model)
                response.usage = chat_usage(response, completion)
                add_chat_response(builder, response, message)
                builder.tick(at)
            case "tool":
                result = LoggedResult(parts=parts, exit_code=extra.get("returncode"))
                builder.result(message.get("tool_call_id"), result, at)
            case _:
                pass  # `exit`: the end of the run, which no model saw


MINI = Importer(_MINI, _looks_mini, _read_mini)
