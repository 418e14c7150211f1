"""Reading a response of the Responses API: its blocks, its usage, and why the model stopped."""

from collections.abc import Callable
from typing import Final

from blocks import BlockId, MisuseError, TurnId, in_words
from blocks.formats import Answer, Json, as_json, objs, plain
from render.providers._read import answer_in, check_name, fields, response_json, wanted_of
from render.providers.openai.responses._kinds import CALLS

FIELD: Final = "output"
_OBJECTS: Final = ("response", "response.compaction")
_UNFINISHED: Final = frozenset({"in_progress", "queued"})
_STOPS: Final = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


def answer_of(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of a response, and its usage.

    Raises:
        MisuseError: it is not a response, is not finished, or holds content that no log can show.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    found = response_json(response, FIELD, object=_OBJECTS)
    status: object = found.get("status")
    if status == "failed" or status in _UNFINISHED:
        raise MisuseError(f"record(): the response is not finished: its status is {status!r}")
    for number, item in enumerate(found[FIELD]):
        _check(item, f"record(): {FIELD}.{number}")
    return answer_in(found, FIELD, "openai.responses", new_id, turn)


def _check(item: Json, where: str) -> None:
    kind: object = item.get("type")
    if not isinstance(kind, str) or not kind:
        raise MisuseError(f"{where}: no item of a response has the type {in_words(kind)}")
    for name in ("call_id", "name") if kind in CALLS else ():
        check_name(item, name, where)
    if kind in CALLS.values():
        raise MisuseError(f"{where}: {kind} is what a caller answers, and no model says")


def stop_of(response: object) -> str:
    """Why the model stopped, in the terms of the Messages API."""
    found = as_json(response, wanted_of(FIELD))
    if found.get("status") == "incomplete":
        reason = fields(found.get("incomplete_details")).get("reason")
        return _STOPS.get(str(reason), "end_turn")
    items = objs(plain(found.get(FIELD)))
    if any(item.get("type") in CALLS for item in items):
        return "tool_use"
    parts = (part for item in items for part in objs(item.get("content")))
    return "refusal" if any(part.get("type") == "refusal" for part in parts) else "end_turn"
