"""Copilot CLI's events. What a subagent did is a conversation of its own: `events.jsonl#1`."""

from collections import defaultdict
from collections.abc import Mapping

from blocks.formats import Json, obj, objs, parts_of, string, tool_input
from persistence.sessions._builder import Builder, Importer, LoggedResult
from persistence.sessions._source import Record, Source, seconds

_TYPES = frozenset({"session.start", "user.message", "assistant.message", "tool.execution_start"})


def _looks(source: Source) -> bool:
    return any(
        string(event.get("type")) in _TYPES and isinstance(event.get("data"), dict)
        for _, event in _events(source)
    )


def _events(source: Source) -> list[Record]:
    """The events; transcripts of wasa-cli have each of them as `raw`, beside what they show of it."""
    return [(number, obj(line.get("raw")) or line) for number, line in source.records]


def _read(builder: Builder) -> None:
    """Add the main conversation, or the requested one."""
    records = _events(builder.source)
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
    if owner:
        _add_task(builder, main, owner)
    _add(builder, events)


COPILOT = Importer("copilot", _looks, _read)


def _owner(event: Json, agents: Mapping[str, str]) -> str:
    """The id of the call that started the subagent of an event; empty for the main agent.

    Old versions write the call, new ones the agent.
    """
    agent = string(event.get("agentId"))
    call = string(obj(event.get("data")).get("parentToolCallId"))
    return call or (agents.get(agent, agent) if agent else "")


def _add_task(builder: Builder, main: list[Record], owner: str) -> None:
    """Add a subagent's prompt, which is in the call that started it."""
    for _, event in main:
        for request in objs(obj(event.get("data")).get("toolRequests")):
            if request.get("toolCallId") == owner:
                prompt = tool_input(request.get("arguments")).get("prompt")
                builder.user(parts_of(prompt), seconds(event.get("timestamp")))
                return


def _add(builder: Builder, events: list[Record]) -> None:
    model, thoughts = "", list[str]()  # of the next message
    for number, event in events:
        at, data = seconds(event.get("timestamp")), obj(event.get("data"))
        match event.get("type"):
            case "session.start":
                model = string(data.get("selectedModel"))
            case "session.model_change":
                model = string(data.get("newModel")) or model
            case "system.message":
                builder.system = builder.system or string(data.get("content"))
            case "system.notification":
                builder.attach(parts_of(data.get("content")), at, "notification")
            case "user.message":
                builder.user(parts_of(data.get("content")), at)
            case "assistant.reasoning":
                thoughts.append(string(data.get("content")))
            case "assistant.message":
                _respond(builder, data, model, "".join(thoughts))
                thoughts.clear()
                builder.tick(at)
            case "tool.execution_complete":
                builder.result(data.get("toolCallId"), _result(data, number), at)
            case "abort":
                builder.at_work = False
            case _:
                pass  # hooks, beginnings, ends, and events only for display


def _respond(builder: Builder, data: Json, model: str, thought: str) -> None:
    response = builder.response(string(data.get("apiCallId")) or string(data.get("messageId")))
    response.model = string(data.get("model")) or model
    if thought := string(data.get("reasoningText")) or thought:
        response.reason(thought, string(data.get("reasoningOpaque")))
    response.say(string(data.get("content")))
    requests = objs(data.get("toolRequests"))
    for each in requests:
        builder.call(response, each.get("toolCallId"), each.get("name"), each.get("arguments"))
    builder.at_work = bool(requests)


def _result(data: Json, line: int) -> LoggedResult:
    content = obj(data.get("result")).get("content", obj(data.get("error")).get("message"))
    return LoggedResult(parts=parts_of(content), is_error=data.get("success") is False, line=line)
