"""Copilot CLI's events. What a subagent did is a conversation of its own: `events.jsonl#1`."""

from collections import defaultdict
from collections.abc import Mapping

import attrs

from blocks.formats import Json, obj, objs, parts_of, string, tool_input
from persistence.sessions._builder import Builder, Importer, LoggedResult
from persistence.sessions._source import Record, Source, seconds

_TYPES = frozenset({"session.start", "user.message", "assistant.message", "tool.execution_start"})


def _looks(source: Source) -> bool:
    """Whether these are events of Copilot CLI."""
    return any(
        string(event.get("type")) in _TYPES and isinstance(event.get("data"), dict)
        for _, event in source.records
    )


def _read(builder: Builder) -> None:
    """Add the main conversation, or the requested one."""
    records = builder.source.records
    agents = {
        string(event.get("agentId")): string(obj(event.get("data")).get("toolCallId"))
        for _, event in records
        if event.get("type") == "subagent.started"
    }
    owners: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        owners[_owner(record[1], agents)].append(record)
    main = owners.pop("", [])
    owner, events = builder.pick([("", main), *owners.items()])
    reader = _Reader(builder)
    if owner:
        reader.task(main, owner)
    for number, event in events:
        reader.event(number, event)


COPILOT = Importer("copilot", _looks, _read)


def _owner(event: Json, agents: Mapping[str, str]) -> str:
    """The id of the call that started the subagent of an event; empty for the main agent.

    Old versions write the call, new ones the agent.
    """
    agent = string(event.get("agentId"))
    call = string(obj(event.get("data")).get("parentToolCallId"))
    return call or (agents.get(agent, agent) if agent else "")


@attrs.define
class _Reader:
    builder: Builder
    _model: str = attrs.field(default="", init=False)
    _thoughts: list[str] = attrs.field(factory=list[str], init=False)
    """Reasoning that precedes its message."""

    def task(self, main: list[Record], owner: str) -> None:
        """Add a subagent's prompt, which is in the call that started it."""
        for _, event in main:
            for request in objs(obj(event.get("data")).get("toolRequests")):
                if request.get("toolCallId") == owner:
                    arguments = tool_input(request.get("arguments"))
                    self.builder.user(
                        parts_of(arguments.get("prompt")), seconds(event.get("timestamp"))
                    )
                    return

    def event(self, number: int, event: Json) -> None:
        at, data = seconds(event.get("timestamp")), obj(event.get("data"))
        match event.get("type"):
            case "session.start":
                self._model = string(data.get("selectedModel"))
            case "session.model_change":
                self._model = string(data.get("newModel")) or self._model
            case "system.message":
                self.builder.system = self.builder.system or string(data.get("content"))
            case "system.notification":
                self.builder.attach(parts_of(data.get("content")), at, "notification")
            case "user.message":
                self.builder.user(parts_of(data.get("content")), at)
            case "assistant.reasoning":
                self._thoughts.append(string(data.get("content")))
            case "assistant.message":
                response_id = string(data.get("apiCallId")) or string(data.get("messageId"))
                response = self.builder.response(response_id)
                response.model = string(data.get("model")) or self._model
                thought = string(data.get("reasoningText")) or "".join(self._thoughts)
                self._thoughts = []
                if thought:
                    response.reason(thought, string(data.get("reasoningOpaque")))
                response.say(string(data.get("content")))
                requests = objs(data.get("toolRequests"))
                for request in requests:
                    call_id, name = request.get("toolCallId"), request.get("name")
                    self.builder.call(response, call_id, name, request.get("arguments"))
                self.builder.at_work = bool(requests)
                self.builder.tick(at)
            case "tool.execution_complete":
                result = _result(data, number)
                self.builder.result(data.get("toolCallId"), result, at)
            case "abort":
                self.builder.at_work = False
            case _:
                pass  # hooks, beginnings, ends, and events only for display


def _result(data: Json, line: int) -> LoggedResult:
    content = obj(data.get("result")).get("content", obj(data.get("error")).get("message"))
    return LoggedResult(parts=parts_of(content), is_error=data.get("success") is False, line=line)
