"""OpenHands. Before its version 1: events, where an observation names the action that caused it. Tool call ids are not
unique there, event ids are; actions of one model response share its id. Since then: typed events, paired by tool call id.
"""

from typing import Any

import attrs

from blocks import text_of_parts
from blocks.formats import Json, items, obj, objs, parts_of, string, tool_input
from persistence.sessions._builder import Builder, Importer, LoggedResult
from persistence.sessions._messages import chat_usage, definitions
from persistence.sessions._source import Source, seconds

_SILENT = frozenset({"change_agent_state", "recall", "condensation", "condensation_request"})
"""Actions that no model requested."""


def _looks(source: Source) -> bool:
    first = source.records[0][1]
    events = _events(first.get("history")) or [event for _, event in source.records]
    return any(
        ("action" in event and "args" in event) or ("observation" in event and "extras" in event)
        for event in events
    )


def _read(builder: Builder) -> None:
    """Add the session, or the requested one of several runs."""
    reader = _Reader(builder)
    events = [event for _, event in builder.source.records]
    if "history" in events[0]:
        run = builder.pick(events)
        events = _events(run.get("history"))
        reader.begin(run, events)
    for event in events:
        reader.event(event)


OPENHANDS = Importer("openhands", _looks, _read)


def _events(history: Any) -> list[Json]:
    """The events of a history. Old histories have pairs of action and observation, as a list or as fields."""
    events: list[Json] = []
    for entry in items(history):
        pair = [obj(obj(entry).get(name)) for name in ("action", "observation")]
        events += objs(entry) or [event for event in pair if event] or objs([entry])
    return events


@attrs.define
class _Reader:
    builder: Builder
    _calls: set[str] = attrs.field(factory=set[str], init=False)
    _last: str = attrs.field(default="", init=False)

    def begin(self, run: Json, events: list[Json]) -> None:
        """Read what is beside the history: the model; and the task, if no message of the user has it."""
        costs = objs(obj(run.get("metrics")).get("costs"))
        self.builder.model = next((string(cost.get("model")) for cost in costs), "")
        messages = [event for event in events if event.get("action") == "message"]
        if events[:1] != messages[:1] and not any(
            event.get("source") == "user" for event in messages
        ):
            self.builder.user(parts_of(run.get("instruction")), None)

    def event(self, event: Json) -> None:
        at = seconds(event.get("timestamp"))
        args, by_default = obj(event.get("args")), "agent" if self.builder.started else "user"
        match event.get("action"):
            case "system":
                self.builder.system = self.builder.system or string(args.get("content"))
                self.builder.tools = self.builder.tools or definitions(args.get("tools"))
            # a message that states no source is the user's if it is the first, else the agent's
            case "message" if event.get("source", by_default) == "user":
                self.builder.user(parts_of(args.get("content")), at)
            case "message":
                self.builder.respond().say(string(args.get("content")))
                self.builder.tick(at)
            case str() as action if action not in _SILENT and event.get("source") != "user":
                self._act(event, action)
                self.builder.tick(at)
            case _:
                pass
        self._observe(event, at)  # a few old events are both action and observation

    def _act(self, event: Json, action: str) -> None:
        metadata = obj(event.get("tool_call_metadata"))
        completion = obj(metadata.get("model_response"))
        args = obj(event.get("args"))
        choices = objs(completion.get("choices"))
        message = obj(choices[0].get("message")) if choices else {}
        response = self.builder.response(string(completion.get("id")))
        if not response.blocks:
            response.model = string(completion.get("model"))
            response.usage = chat_usage(response, completion)
            response.say(text_of_parts(parts_of(message.get("content", args.get("thought")))))
        self._last = _key(event.get("id", len(self._calls)))
        self._calls.add(self._last)
        name = string(metadata.get("function_name")) or action
        self.builder.call(response, self._last, name, _arguments(message, metadata) or args)

    def _observe(self, event: Json, at: float | None) -> None:
        key = _key(event["cause"]) if event.get("cause") is not None else self._last
        if "observation" not in event or key not in self._calls:
            return  # a message of the program, not of a tool
        kind = event.get("observation")
        if kind == "agent_state_changed":
            return
        extras = obj(event.get("extras"))
        result = LoggedResult(
            parts=parts_of(event.get("content")),
            is_error=kind == "error",
            exit_code=obj(extras.get("metadata")).get("exit_code", extras.get("exit_code")),
        )
        self.builder.result(key, result, at)


def _key(event_id: Any) -> str:
    return f"event_{event_id}"


def _arguments(message: Json, metadata: Json) -> Json:
    """The input as the model wrote it; the event's own arguments also have defaults."""
    for call in objs(message.get("tool_calls")):
        if call.get("id") == metadata.get("tool_call_id"):
            return tool_input(obj(call.get("function")).get("arguments"))
    return {}


# Since version 1.


_KINDS = frozenset({"ActionEvent", "ObservationEvent", "MessageEvent", "SystemPromptEvent"})


def _looks_since_1(source: Source) -> bool:
    return any(string(event.get("kind")) in _KINDS for _, event in source.records)


def _read_since_1(builder: Builder) -> None:
    """Add the events. OpenHands-Tab logs a result also as the message that the model got; it alone has the text."""
    messages = [obj(event.get("llm_message")) for _, event in builder.source.records]
    results = [message for message in messages if message.get("role") == "tool"]
    contents = {string(message.get("tool_call_id")): message.get("content") for message in results}
    for number, event in builder.source.records:
        _add_event(builder, number, event, contents)
    for call_id, content in contents.items():
        builder.result(call_id, LoggedResult(parts=parts_of(content)), None)


OPENHANDS_V1 = Importer("openhands-v1", _looks_since_1, _read_since_1)


def _add_event(builder: Builder, number: int, event: Json, contents: dict[str, Any]) -> None:
    """Add an event; `contents` are what messages have of results, by the calls, until the event of a result takes it."""
    at = seconds(event.get("timestamp"))
    match event.get("kind"):
        case "SystemPromptEvent":
            text = text_of_parts(parts_of(event.get("system_prompt")))
            builder.system = builder.system or text
        case "MessageEvent":
            message = obj(event.get("llm_message"))
            parts = parts_of(message.get("content"))
            if event.get("source") == "agent":
                builder.response(string(event.get("llm_response_id"))).say(text_of_parts(parts))
                builder.tick(at)
            elif message.get("role") == "tool":
                pass  # in `contents`
            elif event.get("source") == "environment":
                builder.attach(parts, at, "environment")  # what a hook says, for example
            else:
                builder.user(parts, at)
        case "ActionEvent":
            response = builder.response(string(event.get("llm_response_id")))
            for block in objs(event.get("thinking_blocks")):
                response.think(block)
            response.say(text_of_parts(parts_of(event.get("thought"))))
            call = obj(event.get("tool_call"))
            arguments = call.get("arguments", obj(call.get("function")).get("arguments"))
            if arguments is None:
                arguments = event.get("action")
            builder.call(response, event.get("tool_call_id"), event.get("tool_name"), arguments)
            builder.tick(at)
        case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
            observation = obj(event.get("observation"))
            call_id = string(event.get("tool_call_id"))
            content = event.get("error", event.get("rejection_reason"))
            result = LoggedResult(
                parts=parts_of(observation.get("content", contents.pop(call_id, content))),
                is_error=observation.get("is_error") is True
                or event.get("kind") != "ObservationEvent",
                exit_code=observation.get("exit_code"),
                line=number,
            )
            builder.result(call_id, result, at)
        case _:
            pass  # states and statistics
