"""Checks of a client's response: whether it belongs to the API, and whether it can be stored.

Its content is read by `blocks.formats`. Each provider adds the checks that only its API needs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from blocks import BlockId, CodecError, MisuseError, TurnId, UsageRecorded, in_short, in_words
from blocks.formats import Answer, Format, Json, as_json, obj, plain, response_in, usage_of
from blocks.formats import answer_of as answered

_APIS: Final = {
    "content": "a response of Anthropic's",
    "choices": "a response of OpenAI's Chat Completions API",
    "output": "a response of OpenAI's Responses API",
    "candidates": "a response of the Gemini API",
}
"""The APIs, by the field with the model's output."""
_TEXTS: Final = ("id", "model", "stop_reason")


def wanted_of(field: str) -> str:
    """The start of an error message: what `record` takes."""
    return f"record() takes {_APIS[field]} (the SDK's object, or its JSON)"


def response_json(response: object, field: str, **said: tuple[str, ...]) -> Json:
    """A response as JSON, with the model's output under `field` as a list of plain objects.

    `said` gives the accepted values of further fields.

    Raises:
        MisuseError: it is not a response, is one of another API, or is an error.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    wanted = wanted_of(field)
    found = as_json(response, wanted)
    _check_head(found, field, said)
    listed: object = found.get(field)
    if not isinstance(listed, list | tuple):
        raise MisuseError(f"{wanted}; its {field} is a list, not {in_words(listed)}")
    items = cast("Sequence[object]", listed)
    if (usage := found.get("usage")) is not None:
        usage = plain(as_json(usage, wanted))
    read = [_item(item, f"{field}.{number}") for number, item in enumerate(items)]
    return {**found, field: read, "usage": usage}


def _check_head(found: Json, field: str, said: Mapping[str, tuple[str, ...]]) -> None:
    if found.get("error") or found.get("type") == "error":
        why = fields(found.get("error")).get("message") or "without a message"
        raise MisuseError(
            f"record(): an error of the provider's, and no response: {in_short(str(why))}"
        )
    for name, whose in _APIS.items():
        if name in found and field not in found:
            raise MisuseError(f"{wanted_of(field)}, not {whose}")
    for name, right in said.items():
        if found.get(name) not in (None, *right):
            told = in_words(found[name])
            raise MisuseError(f"{wanted_of(field)}: its {name} is {right[0]!r}, not {told}")
    for name in _TEXTS:
        value: object = found.get(name)
        if value is not None and not isinstance(value, str):
            raise MisuseError(f"record(): the response's {name} is a text, not {in_words(value)}")


def _item(item: object, where: str) -> Json:
    try:
        return obj(plain(as_json(item)))
    except MisuseError:
        raise MisuseError(f"record(): {where} is an object, not {in_words(item)}") from None
    except CodecError as error:
        raise CodecError(f"cannot record the response: in {where}, {error}") from None


def fields(value: object) -> Mapping[str, Any]:
    """The fields of an object; empty if it is not an object."""
    try:
        return as_json(value)
    except MisuseError:
        return {}


def check_text(content: Json, name: str, where: str) -> None:
    """Check that a required text is present.

    Raises:
        MisuseError: it is missing, or is not a text.
    """
    value: object = content.get(name)
    if not isinstance(value, str):
        raise MisuseError(f"{where}.{name} is a text, not {in_words(value)}")


def check_name(content: Json, name: str, where: str) -> None:
    """Check that a required id or name is present.

    Raises:
        MisuseError: it is missing or empty.
    """
    check_text(content, name, where)
    if not content[name].strip():
        raise MisuseError(f"{where}.{name} is empty")


def answer_in(
    checked: Json, field: str, name: Format, new_id: Callable[[], BlockId], turn: TurnId
) -> Answer:
    """The blocks and the usage of a checked response.

    Raises:
        MisuseError: it has neither output nor usage.
    """
    read = response_in(checked, name)
    if read is None or (read.usage is None and not checked[field]):
        raise MisuseError(f"record(): the response is empty: it has neither {field} nor usage")
    return answered(read, new_id, turn)


def usage_in_response(
    response: object, field: str, read: Callable[[Json], UsageRecorded | None]
) -> UsageRecorded | None:
    """The usage that a response reports; None if it reports none.

    Raises:
        MisuseError: it is neither a JSON object nor an object that gives one.
    """
    found = as_json(response, wanted_of(field))
    return usage_of({**found, "usage": plain(found.get("usage"))}, read)
