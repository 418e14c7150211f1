"""The Gemini API of Google (`generateContent`), as of October 2026: requests, what they count and cost, responses, errors.

It uses implicit caching of common prefixes; caches that are created explicitly are not used. The rules that a request
must follow are in `_rules`, which knows nothing of this file, as this file knows nothing of the rules.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from json import dumps
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec
from msgspec.structs import replace

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    DocumentPart,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    Part,
    ProviderPart,
    TextPart,
    ToolCall,
    TurnId,
    UsageRecorded,
    in_words,
    leaves,
)
from blocks.formats import RESPONSES, SHAPES, dumped, gemini_field, gemini_usage_in, obj, objs
from blocks.formats import answer_of as answered
from render.policy._context import (
    Answer,
    Limits,
    Model,
    Piece,
    Provider,
    Rates,
    Segment,
    TokenCounter,
    Violations,
)
from render.providers._encoding import (
    DOCUMENT_TEXT,
    MIDWAY,
    NAME_LENGTH_MAX,
    CallAnswer,
    Scale,
    absence,
    behind,
    beside,
    by_role,
    call_answers,
    foreign_text,
    is_base64,
    joined,
    misplaced,
    others,
    part_name,
    part_refusal,
    piece_of,
    tool_name,
    wire_id,
)
from render.providers._responses import check_origin, stop_in_response, with_call_ids
from render.providers._tool_definitions import (
    FREE_SCHEMA,
    definition_of,
    open_definitions,
)
from render.providers.gemini._constants import (
    IMAGE_MEDIA_TYPES,
    PICTURE_BYTES_MAX,
    PICTURES_MAX,
    REPLAYED,
    SIGNATURE,
    TAG_PREFIX,
    UNSIGNED,
    kind_of,
)
from render.view._view import Encoder, Entry, Group, Json, Place, verbatim

SHAPE: Final = SHAPES["gemini"]
WANTED: Final = "record(): expected a response of the Gemini API (the SDK's object, or its JSON)"


Refuses: TypeAlias = Callable[[Json], str]
"""Why the API would refuse one of its own parts in a user's content; empty: it would accept it."""


def provider(violations: Violations, refuses: Refuses) -> Provider:
    """The API with its rules."""
    return Provider(
        name=SHAPE.name,
        limits=limits,
        rates=rates,
        encoder=partial(encoder, refuses),
        refusal=lambda part, _: refusal(part, refuses),
        violations=violations,
        prefix=prefix,
        messages=messages,
        request=request,
        extended=extended,
        without_thinking=without_thinking,
        sections=sections,
        contents=contents,
        segment=segment,
        text=text_of,
        tool_tokens=tool_tokens,
        open_tools=partial(open_definitions, function_name),
        read=read,
        stop=partial(stop_in_response, SHAPE),
        usage=usage,
    )


def limits(model: Model) -> Limits:
    """The limits of a model; every prefix is cached for a while, without marks."""
    return Limits(
        result_tokens=RESULT_TOKENS,
        pictures_max=PICTURES_MAX,
        picture_bytes_max=PICTURE_BYTES_MAX,
        marks_max=0,
        cache_tokens_min=model.cache_tokens_min,
        lookback=1,
        ttl_seconds=min(model.cache_ttls),
        automatic=True,
    )


def rates(model: Model, prompt_tokens: int) -> Rates:
    """A cache read costs 0.1 times the input; a write costs nothing extra."""
    writes = dict.fromkeys(model.cache_ttls, 1.0)
    return model.rates(prompt_tokens, Rates(input=1.0, output=5.0, read=0.1, writes=writes))


def encoder(
    refuses: Refuses, counter: TokenCounter, model: Model, *, keep_thinking: bool, **_: object
) -> Encoder[Piece]:
    """An encoder into contents."""
    del model
    encoding = Encoding(refuses=refuses, counter=counter, keep_thinking=keep_thinking)
    return Encoder((SHAPE.name, counter.name, keep_thinking), encoding.encode)


# Encoding groups of blocks.
#
# A group becomes one content of the model (its parts in their order) and one of the user (a response for every call
# first, in the order of the calls; then other content in log order).
#
# A signature is sent back on the part that it came with. Gemini 3 and later refuse a first call without a signature, so
# for calls that the model did not make, the documented replacement value is sent. Summaries of thoughts are not sent; a
# part with only a signature is.
#
# A response contains only text, because not every model reads other parts in it: images and files of results follow the
# responses in the same content.


ELSEWHERE: Final = "[shown below]"
"""In a response, marks a part that is not text."""


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    refuses: Refuses
    counter: TokenCounter
    keep_thinking: bool = True

    def encode(self, group: Group) -> Piece:
        """The group as contents of this API."""
        notices: list[str] = []
        model_parts = list(_signed(self._model_parts(group, notices)))
        results = call_answers(group, notices)
        as_part = partial(part_of, refuses=self.refuses)
        split = [beside(r, wire_id(r.call.pair), as_part, ELSEWHERE) for r in results]
        pairs = zip(results, split, strict=True)
        user_parts = [(result.version, _response(result, texts)) for result, (texts, _) in pairs]
        user_parts += chain.from_iterable(parts for _, parts in split)
        for other in others(group, notices, answered=bool(results) or not model_parts):
            user_parts += [(other.version, as_part(part)) for part in other.parts]
        sent = by_role({"model": model_parts, "user": user_parts}, "model", "parts")
        scale = Scale(
            tokens=partial(part_tokens, counter=self.counter),
            envelope=MESSAGE_TOKENS,
            kind=kind_of,
        )
        return piece_of(group, sent, scale, notices)

    def _model_parts(self, group: Group, notices: list[str]) -> Iterator[tuple[int, Json]]:
        for entry in group.placed[Place.RESPONSE]:
            part = self._part(entry)
            if part is not None:
                yield entry.version, part
            elif not _is_summary(entry.block):
                notices += absence(entry, keep_thinking=self.keep_thinking)

    def _part(self, entry: Entry) -> Json | None:
        match entry.block:
            case AssistantThinking() as thinking:
                return _sealed(thinking.provider) if self.keep_thinking else None
            case ToolCall() as call:
                identity = {"id": wire_id(entry.pair), "name": function_name(call.name)}
                return {
                    "functionCall": {**identity, "args": call.input},
                    **self._signature(call.provider),
                }
            case AssistantCompletion(text=text) as block if text.strip():
                return {"text": text, **self._signature(block.provider)}
            case OpaqueBlock() as block if (own := _own(block)) is not None:
                return own
            case OpaqueBlock() as block if foreign_text(block).strip():
                return {"text": foreign_text(block)}
            case _:
                return None

    def _signature(self, fields: Json) -> Json:
        seal: object = fields.get(SIGNATURE)
        return {SIGNATURE: seal} if self.keep_thinking and _is_signature(seal) else {}


def _is_signature(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_summary(block: Block) -> bool:
    """Whether it is a summary of thoughts, which is never sent."""
    return isinstance(block, AssistantThinking) and block.provider.get("thought") is True


def _sealed(own: Json) -> Json | None:
    """A thought as the model sent it; None if it is not signed."""
    if not _is_signature(own.get(SIGNATURE)) or not isinstance(own.get("text"), str):
        return None
    return {name: own[name] for name in ("text", "thought", SIGNATURE) if name in own}


def _signed(parts: Iterator[tuple[int, Json]]) -> Iterator[tuple[int, Json]]:
    """The parts, with the replacement value if the first call lacks its signature."""
    is_first = True
    for version, part in parts:
        if is_first and "functionCall" in part:
            is_first = False
            yield version, {SIGNATURE: UNSIGNED, **part}
        else:
            yield version, part


def _response(answer: CallAnswer, texts: Sequence[str]) -> Json:
    call = answer.call.block
    name = function_name(call.name) if isinstance(call, ToolCall) else ""
    return {
        "functionResponse": {
            "id": wire_id(answer.call.pair),
            "name": name,
            "response": {"error" if answer.failed else "output": "\n".join(texts)},
        }
    }


def _own(block: OpaqueBlock) -> Json | None:
    """The provider's own part, or None if the provider does not accept it back."""
    own = verbatim(block) or {}
    kind = kind_of(own)
    if not block.tag.startswith(TAG_PREFIX) or kind not in REPLAYED or not own.get(kind):
        return None
    return {name: own[name] for name in (kind, SIGNATURE) if own.get(name)}


# Parts of a user message or a tool result.


OWN: Final = frozenset({"inlineData", "fileData"})
"""The provider's own parts that a `ProviderPart` may contain: audio, video, or a file of its store."""
_SNAKE: Final = {"inline_data": "inlineData", "file_data": "fileData"}
_INNER: Final = {"mime_type": "mimeType", "file_uri": "fileUri", "display_name": "displayName"}
_SUFFIXES: Final = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}


def part_of(part: Part, refuses: Refuses) -> Json:
    """The part as it is sent; a part that the provider would refuse is only named."""
    if isinstance(part, TextPart):
        return {"text": part.text}
    if refusal(part, refuses):
        return {"text": _part_name(part)}
    match part:
        case ImagePart():
            return _file(part.url, part.data, _image_type(part))
        case DocumentPart() if part.media_type == DOCUMENT_TEXT and not part.url:
            return {"text": f"[document {part.name}]\n{part.data}" if part.name else part.data}
        case DocumentPart():
            return _file(part.url, part.data, part.media_type)
        case ProviderPart(value=value):
            return _rest_names(value)


def _file(url: str, data: str, media_type: str) -> Json:
    if url:
        return {"fileData": {"fileUri": url, "mimeType": media_type}}
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _image_type(part: ImagePart) -> str:
    """The media type; the ending of a URL is more reliable than the part's default type."""
    path = part.url.partition("?")[0].lower()
    kinds = (kind for suffix, kind in _SUFFIXES.items() if path.endswith(suffix))
    return next(kinds, part.media_type) if part.url else part.media_type


def _rest_names(value: Json) -> Json:
    """A part with the field names of the REST API."""
    renamed: Json = {}
    for name, inner in value.items():
        rest_name = _SNAKE.get(name, name)
        fields = {_INNER.get(k, k): v for k, v in inner.items()} if rest_name in OWN else inner
        renamed[rest_name] = fields
    return renamed


def refusal(part: Part, refuses: Refuses) -> str:
    """Why Gemini would refuse a part, wherever it stands; empty: it would accept it, or the part is sent as text."""

    def own_refusal(value: Json) -> str:
        own = next((name for name in value if _SNAKE.get(name, name) in OWN), "")
        if not own:
            return misplaced("a part", value.get("type"), OWN)
        return refuses(_rest_names(value)) if isinstance(value[own], dict) else "no object"

    return part_refusal(part, IMAGE_MEDIA_TYPES, own_refusal)


def _part_name(part: Part) -> str:
    if isinstance(part, ImagePart) and not part.url and is_base64(part.data):
        return f"[image: {part.media_type} is a type that the model cannot read]"
    return part_name(part)


# Assembling a request.


def prefix(
    system: Sequence[Json], tools: Sequence[Json], ttl: str | None
) -> tuple[list[Json], list[Json]]:
    """Parts and function declarations; there are no cache marks."""
    del ttl
    return [{"text": text["text"]} for text in system], list(map(declaration, tools))


def messages(
    pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
) -> list[Json]:
    """Contents, beginning with the user's; adjacent ones of the same role are joined.

    Contents that are not joined are the pieces' own objects and must not be changed.
    """
    del marks
    contents = joined(list(chain.from_iterable(map(attrgetter("items"), pieces))), _as_one)
    if not contents or contents[0]["role"] != "user":
        contents.insert(0, _user_content([MIDWAY]))
    return appended(contents, texts)


def request(
    system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json], cache_key: str = ""
) -> Json:
    """The keyword arguments `contents` and `config`; this cache needs no key."""
    del cache_key
    config: Json = {"systemInstruction": {"parts": list(system)}} if system else {}
    if tools:
        functions = [tool for tool in tools if "name" in tool]
        hosted = [tool for tool in tools if "name" not in tool]  # that the provider runs itself
        config["tools"] = [*([{DECLARATIONS[0]: functions}] if functions else []), *hosted]
    return {"contents": list(messages), "config": config}


def sections(request: Mapping[str, Any]) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
    """From the client's arguments, or from the body of the HTTP request."""
    config = _object(request.get("config") or request)
    prompt: Any = config.get("systemInstruction") or config.get("system_instruction") or {}
    system = [{"text": prompt}] if isinstance(prompt, str) else _object(prompt).get("parts") or []
    contents: object = request.get("contents") or []
    contents = [_user_content([contents])] if isinstance(contents, str) else contents
    return system, list(each_of(config.get("tools"))), cast("Sequence[Json]", contents)


def contents(
    system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
) -> Iterator[tuple[str, Json]]:
    """System, then tools, then the parts of the contents."""
    yield from (("system", part) for part in system)
    yield from (("tools", tool) for tool in tools)
    for content in messages:
        role = str(content.get("role") or "user")
        yield from ((role, part) for part in content.get("parts") or ())


def extended(request: Json, texts: Sequence[str]) -> Json:
    """The texts are added to the last content if that is the user's."""
    return {
        "contents": appended(request.get("contents", []), texts),
        "config": request.get("config", {}),
    }


def without_thinking(request: Json) -> Json:
    """The request without thoughts and signatures; a required signature is replaced with the documented
    value."""
    return {**request, "contents": [_unsigned(content) for content in request["contents"]]}


def _object(value: object) -> Json:
    """The value if it is an object; otherwise an empty one."""
    return dict(cast("Json", value)) if isinstance(value, Mapping) else {}


def _user_content(texts: Sequence[str]) -> Json:
    """A user content."""
    return {"role": "user", "parts": [{"text": text} for text in texts]}


def appended(contents: list[Json], texts: Sequence[str]) -> list[Json]:
    """The contents with texts after all other content."""
    return behind(contents, _user_content(texts), _as_one) if texts else contents


def _as_one(run: Sequence[Json]) -> Json:
    parts = chain.from_iterable(map(itemgetter("parts"), run))
    return {"role": run[0]["role"], "parts": list(parts)}


def _unsigned(content: Json) -> Json:
    if content["role"] != "model":
        return content
    parts: list[Json] = []
    calls = 0
    for part in content["parts"]:
        plain = {name: value for name, value in part.items() if name != SIGNATURE}
        if "functionCall" in part:
            calls += 1
            parts.append({**plain, SIGNATURE: UNSIGNED} if calls == 1 else plain)
        elif plain.get("text") != "" and not plain.get("thought"):
            parts.append(plain)
    return {**content, "parts": parts or [{"text": "[thinking]"}]}


# Tool definitions.


DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
_SCHEMAS: Final = ("parametersJsonSchema", "parameters_json_schema", "parameters")


def declaration(tool: Json) -> Json:
    """A definition as a function declaration; one in the provider's own shape is returned unchanged.

    The schema is sent as JSON schema, because the other field accepts only a dialect of OpenAPI.
    """
    definition = definition_of(tool)
    is_own = "type" not in tool and any(name in tool for name in _SCHEMAS)
    if definition.other or is_own:
        return tool
    description = {"description": definition.description} if definition.description else {}
    schema = FREE_SCHEMA if definition.free else definition.schema
    parameters = {"parametersJsonSchema": schema} if schema else {}
    return {"name": function_name(definition.name), **description, **parameters}


def each_of(tools: object) -> Iterator[Json]:
    """The function declarations in the tools of a request, and the other tools."""
    for tool in cast("list[Any]", tools) if isinstance(tools, list | tuple) else ():
        fields = cast("Json", tool) if isinstance(tool, Mapping) else {}
        functions = next((fields[name] for name in DECLARATIONS if name in fields), None)
        if isinstance(functions, list):
            yield from cast("list[Json]", functions)
        else:
            yield fields


def function_name(name: str) -> str:
    """A name that every provider accepts, and that begins with a letter or an underscore."""
    plain_name = tool_name(name)
    is_right = plain_name[0].isalpha() or plain_name[0] == "_"
    return plain_name if is_right else f"_{plain_name}"[:NAME_LENGTH_MAX]


def tool_tokens(tool: Json, counter: TokenCounter) -> int:
    """Tokens of its JSON."""
    definition = definition_of(tool)
    if definition.other:
        return counter.part(ProviderPart(value=definition.other))
    text = f"{definition.name}\n{definition.description}\n{compact(definition.schema)}"
    return FUNCTION_TOKENS + counter.count(text)


# Counting: text by the model's factor over o200k, images by the model's rule.
#
# The additional cost of a content, a call or a response is not documented; the constants are the tokens of their field
# names.


MESSAGE_TOKENS: Final = 3
CALL_TOKENS: Final = 8
RESULT_TOKENS: Final = 8
"""Tokens of an empty result."""
FUNCTION_TOKENS: Final = 8
_SIGNATURE_CHARACTERS: Final = 4
"""Characters per token of a signature, which is base64 of encrypted thoughts; how it is billed is not
documented."""


def part_tokens(part: Json, counter: TokenCounter) -> int:
    """Tokens of one part, without the envelope of its content."""
    sealed: object = part.get(SIGNATURE)
    extra = len(sealed) // _SIGNATURE_CHARACTERS if isinstance(sealed, str) else 0
    return extra + _tokens(part, counter)


def _tokens(part: Json, counter: TokenCounter) -> int:
    kind = kind_of(part)
    inner = _object(part.get(kind))
    match kind:
        case "text":
            text: object = part["text"]
            return counter.count(text) if isinstance(text, str) else 0
        case "functionCall":
            name = str(inner.get("name") or "")
            return CALL_TOKENS + counter.count(name) + counter.count(compact(inner.get("args")))
        case "functionResponse":
            return RESULT_TOKENS + counter.count(leaves(inner.get("response")))
        case "inlineData" | "fileData":
            return counter.part(picture_of(inner))
        case _:
            return counter.part(ProviderPart(value=part))


def picture_of(inner: Json) -> ImagePart | DocumentPart | ProviderPart:
    """The image or file of a part, as a part of `blocks`."""
    media_type, data, url = (str(inner.get(name) or "") for name in ("mimeType", "data", "fileUri"))
    if media_type.startswith("image/"):
        return ImagePart(media_type=media_type, data=data, url=url)
    if media_type == DOCUMENT_TEXT or media_type.startswith(("audio/", "video/")):
        return ProviderPart(value=inner)
    return DocumentPart(data=data, url=url)


def compact(value: object) -> str:
    """Compact JSON."""
    return dumps(value or {}, ensure_ascii=False, separators=(",", ":"), default=str)


# A part or tool as the prompt cache sees it.


def segment(place: str, content: Json) -> Segment:
    """A part or a tool as the cache sees it."""
    exact = msgspec.json.encode(content)
    if place == "tools":
        return Segment((place, exact), "tool", 0, partial(tool_tokens, content))

    def tokens(counter: TokenCounter) -> int:
        return MESSAGE_TOKENS + part_tokens(content, counter)

    return Segment((place, exact), kind_of(content), 0, tokens)


def text_of(content: Json) -> str:
    """The text of a part that a model reads, without thinking."""
    kind = kind_of(content)
    inner: Any = content.get(kind)
    about = _object(inner)
    match kind:
        case "text":
            is_read = isinstance(inner, str) and not content.get("thought")
            return cast("str", inner) if is_read else ""
        case "functionCall":
            return f"{about.get('name')}\n{leaves(about.get('args'))}"
        case "functionResponse":
            return "\n".join(leaves(value) for value in obj(about.get("response")).values())
        case "inlineData" | "fileData":
            is_image = str(about.get("mimeType")).startswith("image/")
            return "[image]" if is_image else "[document]"
        case _:
            return leaves(inner)


# Reading a response.


def response_of(response: object) -> tuple[Json, Json]:
    """A response as JSON, and its candidate; an empty object if it has none.

    Raises:
        MisuseError: it is not a response, or is one of another API.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    fields = dumped(response, WANTED)
    check_origin(fields, SHAPE)
    candidates: object = fields.get("candidates") or []
    if not isinstance(candidates, list):
        raise MisuseError(f"record(): candidates must be a list, not {in_words(candidates)}")
    listed = cast("Sequence[object]", candidates)
    if len(listed) > 1:
        raise MisuseError(
            f"record(): the response has {len(listed)} candidates; record only the one that you use"
        )
    has_more = gemini_field(fields, "promptFeedback") or gemini_field(fields, "usageMetadata")
    if not listed and not has_more:
        raise MisuseError("record(): the response is empty: it has neither candidates nor usage")
    return fields, obj(listed[0]) if listed else {}


def read(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of a response, and its usage; calls without an id get one.

    Raises:
        MisuseError: it is no such response.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    fields, candidate = response_of(response)
    for number, part in enumerate(objs(obj(candidate.get("content")).get("parts"))):
        call = obj(gemini_field(part, "functionCall"))
        if call and not str(call.get("name") or "").strip():
            raise MisuseError(f"record(): parts.{number}: the function call has no name")
    response_ = RESPONSES[SHAPE.name]({SHAPE.output: [], **fields})
    if response_ is None:
        raise MisuseError(WANTED)
    return with_call_ids(answered(response_, new_id, turn))


def usage(response: object) -> UsageRecorded | None:
    """The usage that a response reports; None if it reports none."""
    fields = dumped(response, WANTED)
    tokens = gemini_usage_in(obj(gemini_field(fields, "usageMetadata")))
    model, own = (str(gemini_field(fields, n) or "") for n in ("modelVersion", "responseId"))
    return tokens and replace(tokens, model=model, response=own)
