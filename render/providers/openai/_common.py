"""What the two APIs of OpenAI have in common: limits, prices, parts, tools, counting, calls, marks, the cache's view."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec

from blocks import DocumentPart, ImagePart, Part, ProviderPart, TextPart, ToolCall, leaves
from blocks.formats import items, obj, objs, spelled, string
from render.policy._context import Limits, Model, Piece, Rates, Segment, TokenCounter, Where
from render.providers._encoding import (
    DOCUMENT_TEXT,
    CallAnswer,
    Scale,
    is_object,
    misplaced,
    part_name,
    part_refusal,
    tool_name,
)
from render.providers._tool_definitions import Definition, definition_of
from render.providers.openai._constants import (
    CUSTOM,
    CUSTOM_INPUT,
    EXTRA,
    IMAGE_MEDIA_TYPES,
    MARK,
    MARKS_WRITTEN_MAX,
    OPERATORS,
    PICTURE_BYTES_MAX,
    PICTURES_MAX,
    REPLAYED,
    RUN,
)
from render.view._view import Json

MINUTES_30: Final = 1_800
HOURS_12: Final = 43_200
WRITES: Final = {MINUTES_30: 1.25, HOURS_12: 2.5}
"""Cache writes as shares of the input price, for models that cache at marks. (Provider documentation:
prompt caching, pricing.)"""
_MODEL_TYPES: Final = (
    "custom",
    "custom_tool_call",
    "function",
    "function_call",
    "message",
    "reasoning",
    "text",
)
UNMARKABLE: Final = RUN | {f"said {kind}" for kind in (*_MODEL_TYPES, *REPLAYED, *EXTRA, *RUN)}
"""The model's own content cannot carry a mark, nor can the results of tools that the provider defines."""


def limits_of(model: Model) -> Limits:
    """With marks, a cache entry is found if the next request has a mark at the same position, however far
    back. Without marks, every prefix is cached for a while."""
    marks = model.cache_kind == "marks"
    return Limits(
        result_tokens=RESULT_TOKENS,
        pictures_max=PICTURES_MAX,
        picture_bytes_max=PICTURE_BYTES_MAX,
        marks_max=min(model.cache_marks, MARKS_WRITTEN_MAX) - 1 if marks else 0,
        cache_tokens_min=model.cache_tokens_min,
        lookback=1,
        unmarkable=UNMARKABLE,
        ttl_seconds=min(model.cache_ttls),
        automatic=not marks,
    )


def rates(model: Model, prompt_tokens: int) -> Rates:
    """A cache write costs 1.25 times the input (30 minutes), a read 0.1 times; for models that cache every prefix, writes
    cost nothing extra."""
    free = {} if model.cache_kind == "marks" else dict.fromkeys(model.cache_ttls, 1.0)
    shares = Rates(input=1.0, output=5.0, read=0.1, writes={**WRITES, **free})
    return model.rates(prompt_tokens, shares)


# Parts of a user message or a tool result.


Refuses: TypeAlias = Callable[[Json], str]
"""Why an API would refuse one of its own parts in a user's message; empty: it would accept it."""
FILE_NAME: Final = "document.pdf"
"""Name for a file without one, because the provider requires a name."""


@attrs.frozen(kw_only=True)
class PartForms:
    """The forms of parts in one of the APIs."""

    own: frozenset[str]
    """Types of the API's own parts that a `ProviderPart` may contain."""
    refuses: Refuses = lambda _: ""
    text: str
    """Type of a text."""
    image: Callable[[str], Json]
    """An image with a URL or a `data:` URL."""
    file: Callable[[str, str], Json]
    """A file with a name and a `data:` URL."""
    linked: Callable[[str], Json | None]
    """A file with a URL; None if the API fetches no files."""

    def of_text(self, text: str) -> Json:
        """A text."""
        return {"type": self.text, "text": text}

    def refusal(self, part: Part, where: Where) -> str:
        """Why the API would refuse a part, wherever it stands; empty: it would accept it, or the part is sent as text."""
        del where
        return part_refusal(part, IMAGE_MEDIA_TYPES, self._own_refusal)

    def _own_refusal(self, value: Json) -> str:
        kind: object = value.get("type")
        if isinstance(kind, str) and kind in self.own:
            return self.refuses(_unmarked(value))
        return misplaced("a content part", kind, self.own)


def content_of(part: Part, forms: PartForms) -> Json:
    """The content of a part; a part that the provider would refuse is only named."""
    if isinstance(part, TextPart):
        return forms.of_text(part.text)
    if forms.refusal(part, "user"):
        return forms.of_text(part_name(part))
    match part:
        case ImagePart():
            return forms.image(part.url or _data_url(part))
        case DocumentPart() if part.media_type == DOCUMENT_TEXT and not part.url:
            return forms.of_text(f"[document {part.name}]\n{part.data}" if part.name else part.data)
        case DocumentPart() if part.url:
            return forms.linked(part.url) or forms.of_text(f"[document: {part.url}]")
        case DocumentPart():
            return forms.file(part.name or FILE_NAME, _data_url(part))
        case ProviderPart(value=value):
            return _unmarked(value)


def _unmarked(part: Json) -> Json:
    return {key: inner for key, inner in part.items() if key != MARK}


def texts_of(contents: Sequence[Json]) -> list[str] | None:
    """The texts of contents that are all text; None if one is not."""
    kinds = {content["type"] for content in contents}
    if kinds <= {"input_text", "text"}:
        return [content["text"] for content in contents]
    return None


def _data_url(part: ImagePart | DocumentPart) -> str:
    return f"data:{part.media_type};base64,{part.data}"


# Tool definitions.


def response_tool(tool: Json) -> Json:
    """A definition in the shape of Responses: the name is next to the type."""
    definition = definition_of(tool)
    if definition.other:
        return definition.other
    if definition.free:
        return {
            "type": "custom",
            **_name_fields(definition),
            **({"format": definition.format} if definition.format else {}),
        }
    return {
        "type": "function",
        **_name_fields(definition),
        "parameters": _schema(definition),
        "strict": definition.strict or False,
    }


def chat_tool(tool: Json) -> Json:
    """A definition in the shape of Chat Completions: nested in a field that is named after the type."""
    definition = definition_of(tool)
    if definition.other:
        return definition.other
    if definition.free:
        form = {"format": _chat_format(definition.format)} if definition.format else {}
        return {"type": "custom", "custom": {**_name_fields(definition), **form}}
    strict = {"strict": True} if definition.strict else {}
    return {
        "type": "function",
        "function": {**_name_fields(definition), "parameters": _schema(definition), **strict},
    }


def _name_fields(tool: Definition) -> Json:
    description = {"description": tool.description} if tool.description else {}
    return {"name": tool_name(tool.name), **description}


def _schema(tool: Definition) -> Json:
    return tool.schema or {"type": "object", "properties": {}}


def _chat_format(form: Json) -> Json:
    """The format of a tool; in Chat Completions a grammar is nested one level deeper."""
    if form.get("type") != "grammar" or "grammar" in form:
        return form
    return {"type": "grammar", "grammar": {k: v for k, v in form.items() if k != "type"}}


# Counting: o200k tokens, and the additional tokens of messages, calls and tools.
#
# Documented (cookbook, "How to count tokens with tiktoken") are 3 tokens per message, and the tokens of a tool's
# definition, which is not sent to the model as JSON. The additional tokens of calls and results are not documented; the
# constants are the tokens of their channel names.


MESSAGE_TOKENS: Final = 3
CALL_TOKENS: Final = 8
RESULT_TOKENS: Final = 8
"""Tokens of an empty result."""

FUNCTION_TOKENS: Final = 7
PROPERTY_TOKENS: Final = 3
CHOICE_TOKENS: Final = 3
"""Additional tokens of a function, of each of its properties, and of each value of an enumeration.
(Cookbook.)"""

_SEALED: Final = 650
_CHARACTERS_A_TOKEN: Final = 4
"""Reasoning is encrypted base64: `_SEALED` bytes are its envelope, the others are text. (Codex, the
provider's own agent, estimates it in this way.)"""


def content_tokens(content: Json, counter: TokenCounter) -> int:
    """Tokens of one content part, item or message, including its envelope."""
    match content.get("type") or content.get("role"):
        case "input_text" | "output_text" | "text" | "reasoning_content":
            return counter.count(string(content.get("text")))
        case "message" | "assistant" | "user" | "system" | "developer":
            return counter.count(string(content.get("content")))
        case "refusal":
            return counter.count(string(content.get("refusal")))
        case "function_call" | "custom_tool_call" | "function" | "custom":
            return CALL_TOKENS + sum(map(counter.count, call_texts(content)))
        case "function_call_output" | "custom_tool_call_output" | "tool":
            output: object = content.get("output", content.get("content"))
            return RESULT_TOKENS + _output_tokens(output, counter)
        case "reasoning" if "text" in content:
            return counter.count(string(content["text"]))
        case "reasoning" | "compaction":
            sealed = len(string(content.get("encrypted_content"))) * 3 // 4
            return max(sealed - _SEALED, 0) // _CHARACTERS_A_TOKEN
        case "input_image" | "image_url" | "input_file" | "file":
            return counter.part(picture_of(content))
        case "computer_call_output":
            picture = {**obj(content.get("output")), "type": "input_image"}
            return RESULT_TOKENS + counter.part(picture_of(picture))
        case _:
            return counter.part(ProviderPart(value=content))


def call_texts(call: Json) -> tuple[str, str]:
    """The name of a call and its arguments as text, for either API."""
    fields = obj(call.get("function") or call.get("custom") or call)
    arguments = fields.get("arguments", fields.get("input"))
    return string(fields.get("name")), string(arguments)


def picture_of(content: Json) -> ImagePart | DocumentPart | ProviderPart:
    """The image or file of a content part, as a part of `blocks`."""
    if content.get("type") in ("input_image", "image_url"):
        image_url: object = content.get("image_url")
        url = string(obj(image_url).get("url")) or string(image_url)
        media_type, data = opened(url)
        return ImagePart(media_type=media_type or "image/png", data=data, url="" if data else url)
    fields = obj(content.get("file") or content)
    media_type, data = opened(string(fields.get("file_data")))
    if not data:
        return ProviderPart(value=content)
    return DocumentPart(media_type=media_type, data=data)


def opened(url: str) -> tuple[str, str]:
    """The media type and the base64 of a `data:` URL; empty texts if it is not one."""
    head, comma, data = url.partition(";base64,")
    return (head.removeprefix("data:"), data) if comma and head.startswith("data:") else ("", "")


def tool_tokens(tool: Json, counter: TokenCounter) -> int:
    """Tokens of a definition in the form in which the model is documented to see it."""
    definition = definition_of(tool)
    if definition.other:
        return counter.part(ProviderPart(value=definition.other))
    name_tokens = counter.count(f"{definition.name}:{definition.description.removesuffix('.')}")
    tokens, waiting = 0, [definition.schema]
    while waiting:
        node = waiting.pop()
        for name, value in obj(node.get("properties")).items():
            inner = obj(value)
            description = string(inner.get("description")).removesuffix(".")
            tokens += PROPERTY_TOKENS + counter.count(f"{name}:{inner.get('type')}:{description}")
            waiting.append(inner)
        tokens += sum(CHOICE_TOKENS + counter.count(str(each)) for each in items(node.get("enum")))
        lists = (items(node.get(name)) for name in ("anyOf", "oneOf", "allOf"))
        nested = [
            node.get("items"),
            *chain.from_iterable(lists),
            *obj(node.get("$defs")).values(),
        ]
        waiting += objs(nested)
    return FUNCTION_TOKENS + name_tokens + tokens


def _output_tokens(output: object, counter: TokenCounter) -> int:
    if isinstance(output, str):
        return counter.count(output)
    return sum(content_tokens(part, counter) for part in items(output))


# Encoding: failed calls, arguments of calls, cache marks.


FAILED: Final = "[the call failed]"
"""Precedes the result of a failed call, because neither API has a field for it."""
EXPLICIT: Final = {"mode": "explicit"}
LISTING_ROLES: Final = OPERATORS | {"user"}
"""Roles of messages that list their contents."""
TAIL_ITEMS: Final = 40
"""Items at the end of a request in which its last mark is searched; only returned artifacts follow that
mark."""


def scale_of(counter: TokenCounter) -> Scale:
    """How the tokens of contents are counted, for either API."""
    return Scale(
        tokens=partial(content_tokens, counter=counter),
        envelope=MESSAGE_TOKENS,
        model_prefix="said ",  # cannot carry a mark; see `UNMARKABLE`
    )


def marked_failed(answer: CallAnswer) -> tuple[Part, ...]:
    """The parts of an answer, which say so if the call failed."""
    if not answer.failed:
        return answer.parts
    first, *more = answer.parts
    if isinstance(first, TextPart):
        return (TextPart(text=f"{FAILED}\n{first.text}"), *more)
    return (TextPart(text=FAILED), *answer.parts)


def arguments_of(call: ToolCall) -> str:
    """The arguments as text: as the model wrote them if that is a JSON object, otherwise as new JSON.

    Servers that match exact prefixes then find what they generated, and no server accepts a text that is
    not a JSON object.
    """
    text: object = call.provider.get("arguments")
    if isinstance(text, str) and is_object(text):
        return text
    return spelled(call.input)


def free_input(call: ToolCall) -> str | None:
    """The input of a call of a free-text tool; None for a call with arguments."""
    text: object = call.input.get(CUSTOM_INPUT)
    is_free = call.provider.get("type") == CUSTOM and isinstance(text, str)
    return cast("str", text) if is_free else None


# Adding cache marks.


def marked(piece: Piece, spots: frozenset[int]) -> Sequence[Json]:
    """The piece's items with cache marks."""
    items, place = list[Json](), len(piece.spots)
    for item in reversed(piece.items):  # content that can carry marks comes after the model's own
        content: object = item.get("content")
        is_message = item.get("role") in LISTING_ROLES and isinstance(content, list)
        parts = len(cast("list[Any]", content)) if is_message else 1
        place -= parts
        hits = {spot - place for spot in spots if place <= spot < place + parts}
        items.append(_with_marks(item, hits) if hits else item)
    return items[::-1]


def _with_marks(item: Json, hits: set[int]) -> Json:
    field = "output" if "output" in item else "content"
    parts: list[Json] = list(item[field])
    for hit in hits if item.get("role") in LISTING_ROLES else (len(parts) - 1,):
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


# A content or tool as the prompt cache sees it: its key for equality, its tokens, and its text.


def segment(place: str, content: Json) -> Segment:
    """A content or a tool as the cache sees it, in which its cache mark is not content."""
    if place == "tools":
        return Segment(
            (place, msgspec.json.encode(content)), "tool", 0, partial(tool_tokens, content)
        )
    plain, is_marked = unmarked(content)
    kind = str(content.get("type") or content.get("role") or "")
    ttl = MINUTES_30 if is_marked else 0
    key = (place, kind, msgspec.json.encode(plain))

    def tokens(counter: TokenCounter) -> int:
        return MESSAGE_TOKENS + content_tokens(plain, counter)

    return Segment(key, kind, ttl, tokens)


def unmarked(content: Json) -> tuple[Json, bool]:
    """A content without its cache mark, and whether it had one, itself or in one of its parts."""
    if MARK in content:
        return {key: value for key, value in content.items() if key != MARK}, True
    for field in ("output", "content"):
        parts = items(content.get(field))
        if any(MARK in part for part in parts):
            return {**content, field: [unmarked(part)[0] for part in parts]}, True
    return content, False


def text_of(content: Json) -> str:
    """The text of a content that a model reads, without thinking; arguments as names and values, not as JSON."""
    kind = content.get("type") or content.get("role")
    match kind:
        case "input_text" | "output_text" | "text":
            return string(content.get("text"))
        case "refusal":
            return string(content.get("refusal"))
        case "function_call" | "custom_tool_call" | "function" | "custom":
            name, arguments = call_texts(content)
            return f"{name}\n{_leaves(arguments)}"
        case "input_image" | "image_url" | "computer_call_output":
            return "[image]"
        case str() if kind in RUN:
            return leaves(content)
        case _:
            inner: object = content.get("output", content.get("content"))
            if isinstance(inner, list):
                return "\n".join(text_of(part) for part in cast("list[Json]", inner))
            return string(inner)


def _leaves(arguments: str) -> str:
    try:
        return leaves(msgspec.json.decode(arguments))
    except (ValueError, RecursionError):
        return arguments
