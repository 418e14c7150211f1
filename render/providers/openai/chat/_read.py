"""An answer of Chat Completions, read: is it one, what did the model say, and what did it cost?"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    MisuseError,
    TurnId,
    UsageRecorded,
    in_words,
)
from render.policy._provider import Answer
from render.providers._facts import fields
from render.providers.openai._read import (
    as_json,
    call_of,
    checked_contents,
    checked_text,
    usage_in,
)
from render.view._provider_blocks import Json

WANTED: Final = (
    "record() takes an answer of OpenAI's Chat Completions API (the SDK's object, or its JSON)"
)
_FOREIGN: Final = {
    "output": "a response of OpenAI's Responses API",
    "content": "a response of Anthropic's",
    "candidates": "a response of the Gemini API",
}
_REASONING: Final = ("reasoning_content", "reasoning")
"""Under which names open models' servers tell what a model thought."""


def message_of(response: object) -> tuple[Json, Json]:
    """An answer as JSON, and the message in it; without a choice, an empty one.

    Raises:
        MisuseError: it is none, is of another API, or holds what no log can show.
    """
    found = as_json(response, WANTED)
    for name, whose in _FOREIGN.items():
        if name in found and "choices" not in found:
            raise MisuseError(f"{WANTED}, not {whose}")
    if found.get("error"):
        error = as_json(found["error"], WANTED)
        said = error.get("message") or "without a message"
        raise MisuseError(f"record(): an error of the provider's, and no response: {said}")
    for name in ("id", "model"):
        value: object = found.get(name)
        if value is not None and not isinstance(value, str):
            raise MisuseError(f"record(): the answer's {name} is a text, not {in_words(value)}")
    choices: object = found.get("choices")
    if not isinstance(choices, list | tuple):
        raise MisuseError(f"{WANTED}; its choices are a list, not {in_words(choices)}")
    listed = cast("Sequence[object]", choices)
    if len(listed) > 1:
        raise MisuseError(f"record(): {len(listed)} choices; a log takes one: record the one taken")
    if not listed and not found.get("usage"):
        raise MisuseError("record(): the answer is empty: it has neither choices nor usage")
    return found, _choice(listed[0]) if listed else {}


def _choice(choice: object) -> Json:
    where = "record(): choices.0"
    try:
        found = as_json(choice, WANTED)
        message = as_json(found.get("message"), WANTED)
    except MisuseError:
        raise MisuseError(f"{where} holds no message; a stream's chunks are none") from None
    if message.get("role") not in (None, "assistant"):
        raise MisuseError(f"{where}: its role is 'assistant', not {in_words(message.get('role'))}")
    calls: object = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise MisuseError(f"{where}: tool_calls is a list, not {in_words(calls)}")
    listed = cast("Sequence[object]", calls or ())
    read = [_call(call, f"{where}.tool_calls.{number}") for number, call in enumerate(listed)]
    if found.get("finish_reason") == "length":
        read = read[:-1]  # its arguments may be cut anywhere
    return {**message, "tool_calls": read}


def _call(call: object, where: str) -> Json:
    """A call's id, name, and arguments or input.

    Raises:
        MisuseError: it is none.
    """
    try:
        found = as_json(call, WANTED)
        inner = as_json(found.get("function") or found.get("custom"), WANTED)
    except MisuseError:
        raise MisuseError(f"{where} is a call, not {in_words(call)}") from None
    identity, name = checked_text(found, "id", where), checked_text(inner, "name", where)
    if not identity.strip() or not name.strip():
        raise MisuseError(f"{where}: a call has an id and a name")
    given: Json = {key: inner[key] for key in ("arguments", "input") if key in inner}
    return {"call_id": identity, "name": name, **given}


def answer_of(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of an answer, and its usage.

    The last tool call of an answer that was cut off is discarded: its arguments may be cut anywhere.

    Raises:
        MisuseError: it is no such answer.
        CodecError: it holds what cannot be stored; it says where.
    """
    found, message = message_of(response)
    checked_contents([message], "choices")
    own: str = found.get("id") or ""
    blocks = tuple(blocks_of(message, new_id, turn, own))
    return Answer(id=own, blocks=blocks, usage=usage_of(found))


def blocks_of(
    message: Json, new_id: Callable[[], BlockId], turn: TurnId, response: str
) -> Iterator[Block]:
    """What an assistant's message holds, in the order in which it was said."""
    name = next((name for name in _REASONING if isinstance(message.get(name), str)), "")
    if name and message[name]:
        thought = {"type": name, name: message[name]}
        yield AssistantThinking(id=new_id(), turn=turn, response=response, provider=thought)
    for field in ("content", "refusal"):
        if text := _text(message.get(field)):
            known: Json = {"refusal": True} if field == "refusal" else {}
            yield AssistantCompletion(
                id=new_id(), turn=turn, response=response, text=text, provider=known
            )
    for call in message.get("tool_calls") or ():
        yield call_of(call, {}, new_id(), turn, response)


def _text(content: object) -> str:
    """A text, or the texts of a list of parts, as some servers give them."""
    if not isinstance(content, list | tuple):
        return content if isinstance(content, str) else ""
    texts = (fields(part).get("text") for part in cast("Sequence[object]", content))
    return "".join(text for text in texts if isinstance(text, str))


def usage_of(response: object) -> UsageRecorded | None:
    """What an answer says about its cost, if it says anything."""
    found = as_json(response, WANTED)
    return usage_in(found, WANTED)
