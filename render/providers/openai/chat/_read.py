"""Reading a response of Chat Completions: its blocks, its usage, and why the model stopped."""

from collections.abc import Callable
from typing import Any, Final

from blocks import BlockId, MisuseError, TurnId, in_words
from blocks.formats import Answer, Json, as_json, items, obj, objs, plain
from render.providers._read import answer_in, check_name, response_json, wanted_of

FIELD: Final = "choices"
_STOPS: Final = {
    "stop": "end_turn",
    "tool_calls": "end_turn",
    "function_call": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
}


def answer_of(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of a response, and its usage.

    Raises:
        MisuseError: it is not a response, or holds content that no log can show.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    found = response_json(response, FIELD)
    choices: list[Json] = found[FIELD]
    if len(choices) > 1:
        raise MisuseError(
            f"record(): {len(choices)} choices; a log takes one: record the one taken"
        )
    for choice in choices:
        _check(choice.get("message"), "record(): choices.0")
    return answer_in(found, FIELD, "openai.chat", new_id, turn)


def _check(message: Any, where: str) -> None:
    if not isinstance(message, dict):
        raise MisuseError(f"{where} holds no message; a stream's chunks are none")
    found = obj(message)
    if found.get("role") not in (None, "assistant"):
        raise MisuseError(f"{where}: its role is 'assistant', not {in_words(found.get('role'))}")
    calls: Any = found.get("tool_calls") or []
    if not isinstance(calls, list):
        raise MisuseError(f"{where}: tool_calls is a list, not {in_words(calls)}")
    if found.get("function_call"):
        raise MisuseError(f"{where}: function_call has no id; give the model tools, not functions")
    for number, call in enumerate(items(calls)):
        _check_call(obj(call), f"{where}.tool_calls.{number}")


def _check_call(call: Json, where: str) -> None:
    inner = obj(call.get("function")) or obj(call.get("custom"))
    check_name(call, "id", where)
    check_name(inner, "name", where)


def stop_of(response: object) -> str:
    """Why the model stopped, in the terms of the Messages API; some servers say `stop` even with calls."""
    [choice] = objs(plain(as_json(response, wanted_of(FIELD)).get(FIELD)))[:1] or [{}]
    message, reason = obj(choice.get("message")), str(choice.get("finish_reason") or "")
    stop = _STOPS.get(reason, reason)
    if stop == "end_turn" and message.get("tool_calls"):
        return "tool_use"
    return "refusal" if message.get("refusal") else stop
