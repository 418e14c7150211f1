"""OpenHands since its version 1: typed events, paired by tool call id."""

from blocks import text_of_parts
from blocks.formats import Json, obj, objs, parts_of, string, tool_input
from persistence.sessions._builder import Builder, Returned
from persistence.sessions._session import Session
from persistence.sessions._source import Importer, Source, seconds

NAME = "openhands-v1"
_KINDS = frozenset({"ActionEvent", "ObservationEvent", "MessageEvent", "SystemPromptEvent"})


def _looks(source: Source) -> bool:
    """Whether these are events of the OpenHands SDK."""
    return any(string(event.get("kind")) in _KINDS for _, event in source.records)


def _read(source: Source) -> Session:
    """The session in `source`."""
    builder = Builder(source, NAME)
    for number, event in source.records:
        _add(builder, number, event)
    return builder.build()


OPENHANDS_V1 = Importer(NAME, _looks, _read)


def _add(builder: Builder, number: int, event: Json) -> None:
    at = seconds(event.get("timestamp"))
    match event.get("kind"):
        case "SystemPromptEvent":
            text = text_of_parts(parts_of(event.get("system_prompt")))
            builder.system = builder.system or text
        case "MessageEvent":
            parts = parts_of(obj(event.get("llm_message")).get("content"))
            if event.get("source") == "agent":
                builder.response(string(event.get("llm_response_id"))).say(text_of_parts(parts))
                builder.tick(at)
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
            call_id, name = string(event.get("tool_call_id")), string(event.get("tool_name"))
            builder.call(response, call_id, name, tool_input(arguments))
            builder.tick(at)
        case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
            observation = obj(event.get("observation"))
            content = observation.get("content", event.get("error", event.get("rejection_reason")))
            returned = Returned(
                parts=parts_of(content),
                is_error=observation.get("is_error") is True
                or event.get("kind") != "ObservationEvent",
                exit_code=observation.get("exit_code"),
                line=number,
            )
            builder.result(string(event.get("tool_call_id")), returned, at)
        case _:
            pass  # states and statistics
