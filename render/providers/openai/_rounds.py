"""Encoding that OpenAI's two APIs share: failed calls, arguments of calls, cache marks."""

from collections.abc import Iterator, Sequence
from json import loads
from typing import Any, Final, cast

from blocks import Part, TextPart, ToolCall
from blocks.formats import spelled
from render.policy._context import Piece, TokenCounter
from render.providers._rounds import Returned, Scale, returned
from render.providers.openai._kinds import CUSTOM, CUSTOM_INPUT, MARK, OPERATORS
from render.providers.openai._shared import MESSAGE_TOKENS, content_tokens
from render.view._view import Entry, Group, Json

FAILED: Final = "[the call failed]"
"""Precedes the result of a failed call, because neither API has a field for it."""
EXPLICIT: Final = {"mode": "explicit"}
HEARD: Final = OPERATORS | {"user"}
"""Roles of messages that list their contents."""
TAIL_ITEMS: Final = 40
"""Items at the end of a request in which its last mark is searched; only returned artifacts follow that
mark."""


def scale_of(counter: TokenCounter) -> Scale:
    """How the tokens of contents are counted, for either API."""
    return Scale(
        tokens=lambda contents: [content_tokens(content, counter) for content in contents],
        envelope=MESSAGE_TOKENS,
        said="said ",  # cannot carry a mark; see `UNMARKABLE`
    )


def answers(group: Group, notices: list[str]) -> Iterator[tuple[Entry, int, Sequence[Part]]]:
    """For each call, in order: its entry, the version of the answer, and the parts of the answer."""
    for answer in returned(group, notices):
        yield answer.call, answer.version, marked_failed(answer)


def marked_failed(found: Returned) -> Sequence[Part]:
    """The parts of an answer, which say so if the call failed."""
    if not found.failed:
        return found.parts
    first, *more = found.parts
    if isinstance(first, TextPart):
        return (TextPart(text=f"{FAILED}\n{first.text}"), *more)
    return (TextPart(text=FAILED), *found.parts)


def arguments_of(call: ToolCall) -> str:
    """The arguments as text: as the model wrote them if that is a JSON object, otherwise as new JSON.

    Servers that match exact prefixes then find what they generated, and no server accepts a text that is
    not a JSON object.
    """
    written: object = call.provider.get("arguments")
    if isinstance(written, str) and is_object(written):
        return written
    return spelled(call.input)


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(loads(text), dict)
    except (ValueError, RecursionError):
        return False


def free_input(call: ToolCall) -> str | None:
    """The input of a call of a free-text tool; None for a call with arguments."""
    text: object = call.input.get(CUSTOM_INPUT)
    is_free = call.provider.get("type") == CUSTOM and isinstance(text, str)
    return cast("str", text) if is_free else None


# Adding cache marks.


def marked(piece: Piece, spots: frozenset[int]) -> Sequence[Json]:
    """The piece's items with cache marks."""
    return [*_marked(piece, spots)][::-1]


def _marked(piece: Piece, spots: frozenset[int]) -> Iterator[Json]:
    """The items from last to first, because content that can carry marks comes after the model's own."""
    place = len(piece.spots)
    for item in reversed(piece.items):
        parts = _parts_in(item)
        place -= parts
        hits = {spot - place for spot in spots if place <= spot < place + parts}
        yield _with_marks(item, hits) if hits else item


def _parts_in(item: Json) -> int:
    content: object = item.get("content")
    is_message = item.get("role") in HEARD and isinstance(content, list)
    return len(cast("list[Any]", content)) if is_message else 1


def _with_marks(item: Json, hits: set[int]) -> Json:
    field = "output" if "output" in item else "content"
    parts: list[Json] = list(item[field])
    for hit in hits if item.get("role") in HEARD else (len(parts) - 1,):
        parts[hit] = with_mark(parts[hit])
    return {**item, field: parts}


def with_mark(part: Json) -> Json:
    """The content part with a cache mark."""
    return {**part, MARK: EXPLICIT}


def cache_options(items: Sequence[Json], key: str) -> Json:
    """The cache options of a request: its cache key, and, if it has marks, that only marks are written."""
    options: Json = {"prompt_cache_key": key} if key else {}
    if any(map(_is_marked, (*items[:1], *items[-TAIL_ITEMS:]))):
        options["prompt_cache_options"] = EXPLICIT
    return options


def _is_marked(item: Json) -> bool:
    parts: object = item.get("output") or item.get("content")
    return isinstance(parts, list) and any(MARK in part for part in cast("list[Json]", parts))
