"""The response of a provider, which is checked before it is recorded.

The content of a response is read by `blocks.formats`. Each provider adds the checks that only its API needs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from blocks import (
    BlockId,
    CallId,
    CodecError,
    MisuseError,
    ToolCall,
    TurnId,
    UsageRecorded,
    in_short,
    in_words,
)
from blocks.formats import RESPONSES, SHAPES, Answer, Json, Shape, as_json, obj, plain, string
from blocks.formats import answer_of as answered

_TEXTS: Final = ("id", "model", "stop_reason")


def wanted_of(shape: Shape) -> str:
    """The start of an error message: what `record` takes."""
    return f"record() takes {shape.title} (the SDK's object, or its JSON)"


def response_json(response: object, shape: Shape, **values: tuple[str, ...]) -> Json:
    """A response as JSON, with the model's output as a list of plain objects.

    `values` gives the accepted values of further fields; the first one is the usual one.

    Raises:
        MisuseError: it is not a response, is one of another API, or is an error.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    wanted, field = wanted_of(shape), shape.output
    fields = as_json(response, wanted)
    check_origin(fields, shape)
    for name, accepted in values.items():
        if fields.get(name) not in (None, *accepted):
            other = in_words(fields[name])
            raise MisuseError(f"{wanted}: {name} must be {accepted[0]!r}, not {other}")
    for name in _TEXTS:
        value: object = fields.get(name)
        if value is not None and not isinstance(value, str):
            raise MisuseError(
                f"record(): the response's {name} must be a text, not {in_words(value)}"
            )
    listed: object = fields.get(field)
    if not isinstance(listed, list | tuple):
        raise MisuseError(f"{wanted}; {field} must be a list, not {in_words(listed)}")
    items = cast("Sequence[object]", listed)
    if (usage := fields.get("usage")) is not None:
        usage = plain(as_json(usage, wanted))
    read = [_item(item, f"{field}.{number}") for number, item in enumerate(items)]
    return {**fields, field: read, "usage": usage}


def check_origin(response: Json, shape: Shape) -> None:
    """Check that a response is no error, and of no other API.

    Raises:
        MisuseError: it is.
    """
    if response.get("error") or response.get("type") == "error":
        why = fields(response.get("error")).get("message") or "without a message"
        raise MisuseError(
            f"record(): this is an error of the provider, not a response: {in_short(str(why))}"
        )
    for other in SHAPES.values():
        if other.output in response and shape.output not in response:
            raise MisuseError(f"{wanted_of(shape)}, not {other.title}")


def _item(item: object, where: str) -> Json:
    try:
        return obj(plain(as_json(item)))
    except MisuseError:
        raise MisuseError(f"record(): {where} must be an object, not {in_words(item)}") from None
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
        raise MisuseError(f"{where}.{name} must be a text, not {in_words(value)}")


def check_name(content: Json, name: str, where: str) -> None:
    """Check that a required id or name is present.

    Raises:
        MisuseError: it is missing or empty.
    """
    check_text(content, name, where)
    if not content[name].strip():
        raise MisuseError(f"{where}.{name} is empty")


def answer_in(checked: Json, shape: Shape, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks and the usage of a checked response.

    Raises:
        MisuseError: it has neither output nor usage.
    """
    reply = RESPONSES[shape.name](checked)
    if reply is None or (reply.usage is None and not checked[shape.output]):
        raise MisuseError(
            f"record(): the response is empty: it has neither {shape.output} nor usage"
        )
    return answered(reply, new_id, turn)


def with_call_ids(answer: Answer) -> Answer:
    """The answer with an id for each call that has none; the same if it is read again."""
    blocks = (
        replace(block, call_id=CallId(f"call_{answer.id or block.id}_{number}"))
        if isinstance(block, ToolCall) and not block.call_id
        else block
        for number, block in enumerate(answer.blocks)
    )
    return replace(answer, blocks=tuple(blocks))


def stop_in_response(shape: Shape, response: object) -> str:
    """Why the model stopped; see `Provider.stop`.

    Raises:
        MisuseError: it is neither a JSON object nor an object that gives one.
    """
    reply = RESPONSES[shape.name](plain(as_json(response, wanted_of(shape))))
    return reply.stop if reply else ""


def usage_in_response(
    shape: Shape, read: Callable[[Json], UsageRecorded | None], response: object
) -> UsageRecorded | None:
    """The usage that a response reports; None if it reports none.

    Raises:
        MisuseError: it is neither a JSON object nor an object that gives one.
    """
    fields = as_json(response, wanted_of(shape))
    usage = read(obj(plain(fields.get("usage"))))
    ids = {"model": string(fields.get("model")), "response": string(fields.get("id"))}
    return usage and replace(usage, **ids)
