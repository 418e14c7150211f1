"""The Messages API of Anthropic, as of October 2026: requests, what they count and cost, responses, errors.

The rules that a request must follow are in `_rules`, which knows nothing of this file, as this file knows nothing
of the rules.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from json import dumps
from operator import itemgetter
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec

from blocks import (
    PROVIDER_TAG,
    AssistantCompletion,
    AssistantThinking,
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
    in_words,
    leaves,
    text_of_parts,
)
from blocks.formats import SHAPES, anthropic_usage_in, items, obj, string
from render.policy._context import (
    Answer,
    Limits,
    Model,
    Piece,
    Provider,
    Rates,
    Segment,
    ThinkingRule,
    TokenCounter,
    Violations,
    Where,
)
from render.providers._encoding import (
    DOCUMENT_TEXT,
    MIDWAY,
    OTHERS,
    CallAnswer,
    Scale,
    assembled,
    behind,
    by_role,
    call_answers,
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
from render.providers._responses import (
    answer_in,
    check_name,
    check_text,
    response_json,
    stop_in_response,
    usage_in_response,
)
from render.providers._tool_definitions import FREE_SCHEMA, definition_of, open_definitions
from render.providers.anthropic._constants import (
    IMAGE_BYTES_MAX,
    IMAGE_MEDIA_TYPES,
    IMAGES_MAX,
    IMAGES_MAX_SMALL_WINDOW,
    RESUMABLE,
    SERVER_TOOL_TYPES,
    SMALL_WINDOW_TOKENS,
    THINKING_TYPES,
)
from render.view._view import Encoder, Entry, Group, Json, Place, verbatim

SHAPE: Final = SHAPES["anthropic"]
PICTURE_BYTES_MAX: Final = 24_000_000
"""Bytes of base64; the provider accepts 32 MB for the whole request."""
_SECTIONS: Final = ("system", "tools", "messages")
RUNS: Final = frozenset({"tool_use", "tool_result"})
OPERATOR: Final = "system"
"""The role of an operator's messages."""

Refuses: TypeAlias = Callable[[str, Json], str]
"""Why the API would refuse a content block in a message of this role; empty: it would accept it."""
Numbered: TypeAlias = tuple[int, Json]
"""A content block, with the version of the block that it shows."""


def provider(violations: Violations, refuses: Refuses) -> Provider:
    """The API with its rules."""
    return Provider(
        name=SHAPE.name,
        limits=limits,
        rates=rates,
        encoder=partial(encoder, refuses),
        refusal=lambda part, where: refusal(part, where, refuses),
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
        open_tools=partial(open_definitions, tool_name),
        read=read,
        stop=partial(stop_in_response, SHAPE),
        usage=partial(usage_in_response, SHAPE, anthropic_usage_in),
    )


def limits(model: Model) -> Limits:
    """The limits of a model; one of the four cache marks is reserved for the end of system and tools."""
    small = model.tokens_window <= SMALL_WINDOW_TOKENS
    return Limits(
        result_tokens=RESULT_TOKENS,
        pictures_max=IMAGES_MAX_SMALL_WINDOW if small else IMAGES_MAX,
        picture_bytes_max=PICTURE_BYTES_MAX,
        marks_max=max(model.cache_marks - 1, 0),
        cache_tokens_min=model.cache_tokens_min,
        lookback=model.cache_lookback,
        runs=RUNS,
        unmarkable=THINKING_TYPES,
        thinking=_thinking_rules(model),
    )


MINUTES_5: Final = 300
HOUR: Final = 3_600

_SHARES: Final = Rates(input=1.0, output=5.0, read=0.1, writes={MINUTES_5: 1.25, HOUR: 2.0})
"""Shares of the input price. (Provider documentation: prompt caching, pricing.)"""


def rates(model: Model, prompt_tokens: int) -> Rates:
    """A cache write costs 1.25 times the input (5 minutes) or 2 times (an hour), a read 0.1 times."""
    return model.rates(prompt_tokens, _SHARES)


def encoder(
    refuses: Refuses,
    counter: TokenCounter,
    model: Model,
    *,
    keep_thinking: bool,
    tools: Sequence[Json],
) -> Encoder[Piece]:
    """An encoder into messages of assistant and user."""
    deferred = any(tool.get("defer_loading") for tool in tools)
    names = frozenset(string(own_tool(tool).get("name")) for tool in tools if deferred) - {""}
    leads = keep_thinking and "leads" in _thinking_rules(model)
    roles = frozenset({OPERATOR}) if model.system_messages else frozenset[str]()
    encoding = Encoding(
        counter=counter,
        refuses=refuses,
        keep_thinking=keep_thinking,
        thinking_leads=leads,
        roles=roles,
        referable=names,
    )
    key = (SHAPE.name, counter.name, keep_thinking, leads, bool(roles), names)
    return Encoder(key, encoding.encode)


def _thinking_rules(model: Model) -> frozenset[ThinkingRule]:
    """The rules for thinking; type `enabled` requires thinking before calls. The caller chooses the type."""
    rules: dict[ThinkingRule, bool] = {
        "whole": True,
        "leads": "enabled" in model.thinking_modes,
        "bound": model.thinking_bound,
    }
    return frozenset(rule for rule, holds in rules.items() if holds)


# Encoding groups of blocks.
#
# A group becomes an assistant message (the model's output), a user message (the results first, in the order of the
# calls; then other content in log order) and, for models that accept them there, a system message of the operator. So
# groups alternate by themselves, and the encoding of a group never depends on another group: the next request extends
# the last one.
#
# Repairs in addition to those of every provider (see `_encoding`), each with a notice:
#
# * thinking without a signature is not shown, nor is thinking at the end of a message;
# * if the provider requires thinking before calls and that thinking is hidden on request, the calls are quoted in the
#   user's message, with their results.


_PROOFS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""By type, the required texts; the last one proves the origin."""


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    refuses: Refuses
    keep_thinking: bool = True
    thinking_leads: bool = False
    """Whether calls are refused if their thinking is hidden; see `ThinkingRule`."""
    roles: frozenset[str] = frozenset()
    """Roles of an operator's messages between the others."""
    referable: frozenset[str] = frozenset()
    """The names of the request's tools, if some of them are loaded only by a reference."""

    def encode(self, group: Group) -> Piece:
        """The group as messages of this API."""
        notices: list[str] = []
        assistant = list(self._assistant_contents(group, notices))
        user = [self._result(answer) for answer in call_answers(group, notices)]
        replied = bool(user) or not assistant or assistant[-1][1].get("type") in RESUMABLE
        if self.thinking_leads and _lacks_lead(group, assistant):
            assistant = [each for each in assistant if each[1].get("type") != "tool_use"]
            user = list(_as_texts(group, user))
        operator: list[Numbered] = []
        for other in others(group, notices, answered=replied, roles=self.roles):
            own = user if other.role == "user" else operator
            own += [(other.version, part_content(p, "user", self.refuses)) for p in other.parts]
        sent = by_role(
            {"assistant": assistant, "user": user, "system": operator}, "assistant", "content"
        )
        scale = Scale(tokens=partial(content_tokens, counter=self.counter))
        return piece_of(group, sent, scale, notices)

    def _assistant_contents(self, group: Group, notices: list[str]) -> Iterator[Numbered]:
        """The content of the assistant message, with versions."""
        contents: list[Numbered] = []
        replayed = False
        for entry in group.placed[Place.RESPONSE]:
            match entry.block:
                case ToolCall() as call:
                    contents.append((entry.version, _tool_use(entry, call)))
                case AssistantThinking() as thinking:
                    if self.keep_thinking and _is_signed(thinking, entry, notices):
                        contents.append((entry.version, _unmarked(thinking.provider)))
                case OpaqueBlock() as block if (own := verbatim(block)) is not None:
                    sent = _unmarked(own)
                    is_known = is_own(block, own) and sent.get("type") in REPLAYED
                    if is_known and not self.refuses("assistant", sent):
                        contents.append((entry.version, sent))
                        replayed = True
                    else:
                        notices.append(
                            f"a block that the provider refuses is not shown: {entry.path}"
                        )
                case AssistantCompletion(text=text) | OpaqueBlock(text=text) if text.strip():
                    contents.append((entry.version, {"type": "text", "text": text}))
                case _:
                    pass
        if replayed:
            more = any(entry.place in OTHERS for entry in group.entries)
            contents = list(paired(contents, notices, is_last=not more))
        while contents and contents[-1][1].get("type") in THINKING_TYPES:
            notices.append(
                f"thinking at the end of a message is not shown: version {contents[-1][0]}"
            )
            contents.pop()
        return iter(contents)

    def _result(self, answer: CallAnswer) -> Numbered:
        content = {
            "type": "tool_result",
            "tool_use_id": wire_id(answer.call.pair),
            "content": self._result_content(answer.parts),
        }
        return answer.version, {**content, "is_error": True} if answer.failed else content

    def _result_content(self, parts: Sequence[Part]) -> str | list[Json]:
        if len(parts) == 1 and isinstance(parts[0], TextPart):
            return parts[0].text
        return [self._referring(p) or part_content(p, "result", self.refuses) for p in parts]

    def _referring(self, part: Part) -> Json | None:
        """A reference that loads a tool of this request; None: it is none."""
        value = part.value if isinstance(part, ProviderPart) else {}
        is_one = value.get("type") == REFERENCE and string(value.get("tool_name")) in self.referable
        return plain(value) if is_one else None


def _tool_use(entry: Entry, block: ToolCall) -> Json:
    return {
        "type": "tool_use",
        "id": wire_id(entry.pair),
        "name": tool_name(block.name),
        "input": block.input,
    }


def _is_signed(block: AssistantThinking, entry: Entry, notices: list[str]) -> bool:
    needed = _PROOFS.get(str(block.provider.get("type")), ("",))
    proofs = [block.provider.get(name) for name in needed]
    if all(isinstance(value, str) for value in proofs) and proofs[-1]:
        return True
    notices.append(f"thinking without a signature is not shown: {entry.path}")
    return False


def _unmarked(content: Json) -> Json:
    """A content or a tool without its cache mark."""
    if SHAPE.mark not in content:
        return content
    return {key: value for key, value in content.items() if key != SHAPE.mark}


# Calls without the thinking that led to them. With thinking of type `enabled`, the provider accepts a message with
# answered calls only if it begins with thinking. If that thinking is hidden on request, the calls can no longer be sent
# as calls, so they are quoted with their results.


def _lacks_lead(group: Group, assistant: Sequence[Numbered]) -> bool:
    """Whether the round began with thinking that is now hidden."""
    if any(content.get("type") in THINKING_TYPES for _, content in assistant[:1]):
        return False
    return any(
        isinstance(entry.block, AssistantThinking) and entry.original is not None
        for entry in group.entries
    )


def _as_texts(group: Group, results: Iterable[Numbered]) -> Iterator[Numbered]:
    """Each result after a text that quotes its call, as ordinary content; any part of a result may also
    stand outside of one, but for a reference to a tool, which is named."""
    calls = {
        wire_id(entry.pair): entry.block
        for entry in group.placed[Place.RESPONSE]
        if isinstance(entry.block, ToolCall)
    }
    for version, result in results:
        call = calls[result["tool_use_id"]]
        arguments = dumps(call.input, ensure_ascii=False)
        content = result["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        label = f"[result of calling {call.name} with {arguments}]"
        for part in ({"type": "text", "text": label}, *parts):
            is_reference = part.get("type") == REFERENCE
            name = {"type": "text", "text": f"[tool {part['tool_name']}]"} if is_reference else part
            yield version, name


# Parts as content blocks: unchanged, or only named if the API would refuse them.
#
# User messages and tool results accept different parts (SDK: the unions of `MessageParam.content` and
# `ToolResultBlockParam.content`).


OWN: Final[Mapping[Where, frozenset[str]]] = {
    "user": frozenset({"search_result", "image", "document", "container_upload"}),
    "result": frozenset({"search_result", "image", "document"}),
}
"""The provider's own parts that are sent unchanged."""
REFERENCE: Final = "tool_reference"
NAME_ONLY: Final = frozenset({REFERENCE, "browser_state"})
"""Accepted in tool results, but only named, if the tool they refer to is not in the request."""
TITLE_CHARACTERS_MAX: Final = 500


def part_content(part: Part, where: Where, refuses: Refuses) -> Json:
    """The content block of a part; a part that the provider would refuse is only named."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if refusal(part, where, refuses) or (
        isinstance(part, ProviderPart) and part.value.get("type") in NAME_ONLY
    ):
        return {"type": "text", "text": _part_name(part)}
    return plain(part.value) if isinstance(part, ProviderPart) else _source(part)


def refusal(part: Part, where: Where, refuses: Refuses) -> str:
    """Why the provider would refuse a part; empty: it would accept it."""
    reason = part_refusal(part, IMAGE_MEDIA_TYPES, partial(_own_refusal, where, refuses))
    if not reason and isinstance(part, ImagePart) and len(part.data) > IMAGE_BYTES_MAX:
        return f"{len(part.data)} bytes of base64 are more than {IMAGE_BYTES_MAX}"
    return reason


def _own_refusal(where: Where, refuses: Refuses, value: Json) -> str:
    kind: object = value.get("type")
    allowed = OWN[where] | NAME_ONLY if where == "result" else OWN[where]
    if not isinstance(kind, str) or kind not in allowed:
        return misplaced("a content block", kind, allowed)
    if kind in NAME_ONLY:
        return ""
    content = plain(value)
    source = obj(content.get("source"))
    if source.get("type") == "base64" and not is_base64(source.get("data")):
        return "its data is not base64"
    return refuses("user", content)


def _part_name(part: Part) -> str:
    if not isinstance(part, ProviderPart):
        return part_name(part)
    own: object = part.value.get("type")
    if not isinstance(own, str) or own in OWN["user"] | NAME_ONLY:
        return f"[tool {part.value.get('tool_name') or own or 'part'}]"
    return text_of_parts((part,)).strip() or "[part]"


def _source(part: ImagePart | DocumentPart) -> Json:
    kind = "image" if isinstance(part, ImagePart) else "document"
    title = part.name.strip()[:TITLE_CHARACTERS_MAX] if isinstance(part, DocumentPart) else ""
    titled = {"title": title} if title else {}
    if part.url:
        return {"type": kind, "source": {"type": "url", "url": part.url}, **titled}
    form = "text" if part.media_type == DOCUMENT_TEXT else "base64"
    source = {"type": form, "media_type": part.media_type, "data": part.data}
    return {"type": kind, "source": source, **titled}


def plain(value: Json) -> Json:
    """A block of the provider without parts that may not be sent: cache marks, blank texts, and citations by others."""
    block = {key: inner for key, inner in value.items() if key != SHAPE.mark}
    if isinstance(block.get("content"), list):
        block["content"] = list(_plain_parts(block["content"]))
    source = obj(block.get("source"))
    if isinstance(source.get("content"), list):
        block["source"] = {**source, "content": list(_plain_parts(source["content"]))}
    return block


def _plain_parts(contents: Iterable[Any]) -> Iterable[Any]:
    for item in contents:
        if not isinstance(item, dict):
            yield item
            continue
        part = cast("Json", item)
        text: object = part.get("text")
        if part.get("type") != "text" or not isinstance(text, str):
            yield {key: inner for key, inner in part.items() if key != SHAPE.mark}
        elif text.strip():
            yield {"type": "text", "text": text}


# The provider's own blocks in an answer: those of its tools, and its compaction.
#
# They are sent back unchanged and in place, as long as the provider accepts them: a result needs its call before it,
# and a call without a result may only be last (the provider has paused and continues when asked again). A notice names
# each block that is left out.


REPLAYED: Final = RESUMABLE | {"container_upload"}
"""Types of content in a response that are sent back, besides text, thinking and tool calls."""
_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})


def is_own(block: OpaqueBlock, content: Json) -> bool:
    """Whether the block is this provider's, and not another provider's of the same type."""
    return block.tag == f"{PROVIDER_TAG}{content.get('type')}"


def paired(
    contents: Sequence[Numbered], notices: list[str], *, is_last: bool
) -> Iterator[Numbered]:
    """The contents without the provider's calls and results that lack their counterpart.

    `is_last` says that nothing follows this answer.
    """
    results = {c["tool_use_id"]: n for n, (_, c) in enumerate(contents) if "tool_use_id" in c}
    begun: set[object] = set()
    finished = len(contents)  # what follows is all the provider's own: it has paused
    while is_last and finished and contents[finished - 1][1].get("type") in SERVER_TOOL_TYPES:
        finished -= 1
    for index, (version, content) in enumerate(contents):
        kind = content.get("type")
        if kind in _CALLS:
            if results.get(content.get("id"), -1) < index < finished:
                notices.append(f"a call of the provider's without a result: version {version}")
                continue
            begun.add(content.get("id"))
        elif (
            kind in SERVER_TOOL_TYPES
            and "tool_use_id" in content
            and content["tool_use_id"] not in begun
        ):
            notices.append(f"a result of the provider's without a call: version {version}")
            continue
        yield version, content


# Assembling a request.


def prefix(
    system: Sequence[Json], tools: Sequence[Json], ttl: str | None
) -> tuple[list[Json], list[Json]]:
    """One cache mark, at the end of system or, without a system prompt, of the tools, which precede it
    in the cache."""
    system_blocks, tool_blocks = list(system), list(map(own_tool, tools))
    marked = system_blocks or tool_blocks
    if marked and ttl:
        marked[-1] = with_mark(marked[-1], ttl)
    return system_blocks, tool_blocks


def messages(
    pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
) -> list[Json]:
    """Alternating messages, beginning with the user's; adjacent messages of one role are joined.

    Messages without a mark are the pieces' own objects and must not be changed.
    """
    messages = joined(_in_place(assembled(pieces, marks, _marked)), _as_one)
    if not messages or not _may_open(messages[0]):
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": MIDWAY}]})
    return appended(messages, texts)


def request(
    system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json], cache_key: str = ""
) -> Json:
    """The keyword arguments `system`, `tools` and `messages`; this cache needs no key."""
    del cache_key
    request: Json = {"system": list(system)} if system else {}
    if tools:
        request["tools"] = list(tools)
    request["messages"] = list(messages)
    return request


def sections(request: Mapping[str, Any]) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
    """As they are; texts may be strings instead of text blocks."""
    system, tools, messages = (request.get(name) or () for name in _SECTIONS)
    return system, tools, messages


def extended(request: Json, texts: Sequence[str]) -> Json:
    """The texts are added to the last message if that is the user's."""
    return {**request, "messages": appended(request.get("messages", []), texts)}


def without_thinking(request: Json) -> Json:
    """The documented remedy when a signature is refused."""
    messages: list[Json] = []
    for message in request["messages"]:
        rest = [c for c in message["content"] if c.get("type") not in THINKING_TYPES]
        messages.append({**message, "content": rest or [{"type": "text", "text": "[thinking]"}]})
    return {**request, "messages": messages}


def appended(messages: list[Json], texts: Sequence[str]) -> list[Json]:
    """The messages with texts after all other content."""
    contents = [{"type": "text", "text": text} for text in texts]
    return behind(messages, {"role": "user", "content": contents}, _as_one) if texts else messages


def _in_place(messages: list[Json]) -> list[Json]:
    """The messages with each operator's message after the user's message beside it: the API accepts one only there,
    before the model's next message."""
    if OPERATOR not in map(itemgetter("role"), messages):
        return messages
    runs = groupby(messages, key=lambda message: message["role"] == "assistant")
    by_rank = (sorted(run, key=lambda message: message["role"] == OPERATOR) for _, run in runs)
    return list(chain.from_iterable(by_rank))


def _may_open(message: Json) -> bool:
    """Whether a message may be first: a user's, or one that begins with the provider's own summary."""
    opening: str = message["content"][0].get("type", "")
    return message["role"] == "user" or opening == "compaction"


def _as_one(run: Sequence[Json]) -> Json:
    contents = chain.from_iterable(map(itemgetter("content"), run))
    return {"role": run[0]["role"], "content": list(contents)}


def _marked(piece: Piece, spots: frozenset[int]) -> list[Json]:
    """The piece's messages with marks; messages without marks are the same objects."""
    messages: list[Json] = []
    spot = 0
    for message in piece.items:
        content: list[Json] = message["content"]
        places = range(spot, spot + len(content))
        spot += len(content)
        if spots.isdisjoint(places):
            messages.append(message)
        else:
            marked = [
                with_mark(part) if place in spots else part
                for place, part in zip(places, content, strict=True)
            ]
            messages.append({**message, "content": marked})
    return messages


def with_mark(content: Json, ttl: str = "5m") -> Json:
    """The content block with a cache mark; 5 minutes is the provider's default and is left out."""
    control = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    return {**content, SHAPE.mark: control}


# Tools.


def own_tool(tool: Json) -> Json:
    """A definition in the shape of the Messages API; one that has it is returned unchanged."""
    if tool.get("type") not in ("function", "custom") and "function" not in tool:
        return tool
    definition = definition_of(tool)
    if "input_schema" in tool or definition.other:
        return tool
    description = {"description": definition.description} if definition.description else {}
    schema = FREE_SCHEMA if definition.free else definition.schema or {"type": "object"}
    return {"name": tool_name(definition.name), **description, "input_schema": schema}


def tool_tokens(tool: Json, counter: TokenCounter) -> int:
    """Tokens of its JSON; the text that explains all tools is counted by `Model.tool_overhead_tokens`."""
    return counter.count(dumps(_unmarked(own_tool(tool)), ensure_ascii=False))


# Counting: each content block has an envelope that the API adds.


BLOCK_TOKENS: Final = 3
"""Tokens of a content block's envelope; undocumented, measured as 4 to 8 per message."""
TOOL_TOKENS: Final = 12
"""Additional tokens of the envelope of a call or a result."""
RESULT_TOKENS: Final = BLOCK_TOKENS + TOOL_TOKENS
"""Tokens of an empty result."""


def content_tokens(content: Json, counter: TokenCounter) -> int:
    """Tokens of one content block, its envelope included."""
    match content.get("type"):
        case "text":
            return BLOCK_TOKENS + counter.count(content.get("text") or "")
        case "tool_use":
            arguments = dumps(content.get("input"), ensure_ascii=False)
            name_tokens = counter.count(content.get("name") or "")
            return BLOCK_TOKENS + TOOL_TOKENS + name_tokens + counter.count(arguments)
        case "tool_result":
            return RESULT_TOKENS + _result_tokens(content.get("content") or "", counter)
        case "thinking" | "redacted_thinking":
            thought = content.get("thinking") or content.get("data") or ""
            return BLOCK_TOKENS + counter.count(str(thought))
        case _:
            return BLOCK_TOKENS + _media_tokens(content, counter)


def _result_tokens(content: str | list[Json], counter: TokenCounter) -> int:
    if isinstance(content, str):
        return counter.count(content)
    texts = [part["text"] if part.get("type") == "text" else "[image]" for part in content]
    media = sum(_media_tokens(part, counter) for part in content if part.get("type") != "text")
    return counter.count("\n".join(texts)) + media


def _media_tokens(content: Json, counter: TokenCounter) -> int:
    source = obj(content.get("source"))  # a text for search results
    data, media_type = str(source.get("data", "")), str(source.get("media_type", ""))
    if source.get("type") in ("text", "content"):
        return _document_tokens(content, source, counter)
    match content.get("type"):
        case "image":
            return counter.part(ImagePart(media_type=media_type, data=data))
        case "document":
            return counter.part(DocumentPart(media_type=media_type, data=data))
        case _:
            return counter.part(ProviderPart(value=content))


def _document_tokens(content: Json, source: Json, counter: TokenCounter) -> int:
    """Tokens of a document that is not a PDF: its text and images."""
    inner: object = source.get("content")
    parts: list[Json] = items(inner)
    texts: list[object] = [content.get("title"), content.get("context"), source.get("data"), inner]
    texts += [part.get("text") for part in parts]
    pictures = sum(_media_tokens(part, counter) for part in parts if part.get("type") == "image")
    return counter.count("\n".join(text for text in texts if isinstance(text, str))) + pictures


# A request as the prompt cache sees it: its content blocks in order, each with a key for equality.
#
# A key covers what the prefix hash covers, including the order of keys in a tool's input, and leaves out
# `cache_control`, which is not content. (Provider documentation: prompt caching.)


TOOLS: Final = "tools"
PROMPT: Final = "system prompt"
"""Not `system`, because messages may have that role."""
_PLAIN_TEXT: Final = frozenset({"type", "text", SHAPE.mark})


def contents(
    system: str | Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
) -> Iterator[tuple[str, Json]]:
    """The content blocks in cache order (tools, system, messages), each with its role. A deferred tool is in no prompt
    until a search loads it, and then it is part of the result. (Provider documentation: tool search.)"""
    for tool in tools:
        if not tool.get("defer_loading"):
            yield TOOLS, tool
    for text in _blocks(system):
        yield PROMPT, text
    for message in messages:
        role = message.get("role", "")
        for content in _blocks(message.get("content")):
            yield role, content


def segment(place: str, content: Json) -> Segment:
    """A content block as the cache sees it, in which its cache mark is not content."""
    kind = content.get("type") or ""
    key = (place, kind, _content(content))
    ttl = _ttl(content)
    plain = content if not ttl else _unmarked(content)
    match place:
        case "tools":
            return Segment(key, "tool", ttl, partial(tool_tokens, plain))
        case "system prompt":
            return Segment(key, "system", ttl, partial(_text_tokens, plain))
        case _:
            return Segment(key, kind, ttl, partial(_tokens, plain))


def text_of(content: Json) -> str:
    """The text of a content block that a model reads, without thinking."""
    match content.get("type"):
        case "text":
            return string(content.get("text"))
        case "tool_use":
            return f"{content.get('name')}\n{leaves(content.get('input'))}"
        case "tool_result":
            return "\n".join(text_of(part) for part in _blocks(content.get("content")))
        case "compaction":
            return string(content.get("content"))
        case "image":
            return "[image]"
        case _:
            return ""


def _tokens(content: Json, counter: TokenCounter) -> int:
    """Tokens as in a render, except that the parts of a result are counted one by one."""
    inner = content.get("content")
    match content.get("type"):
        case "tool_result" if inner and not isinstance(inner, str):
            return RESULT_TOKENS + sum(_tokens(part, counter) - BLOCK_TOKENS for part in inner)
        case "compaction":
            return BLOCK_TOKENS + counter.count(inner or "")
        case _:
            return content_tokens(content, counter)


def _text_tokens(text: Json, counter: TokenCounter) -> int:
    return counter.count(text.get("text") or "")


def _blocks(content: str | Sequence[Json] | None) -> Sequence[Json]:
    """Content as a list; a string counts as one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else ()
    return content or ()


def _content(block: Json) -> Hashable:
    """The key of a block; long strings are not copied or hashed again, because Python caches their hash."""
    match block.get("type"):
        case "text" if block.keys() <= _PLAIN_TEXT:
            return block.get("text")
        case "tool_result":
            return (
                block.get("tool_use_id"),
                _inner(block.get("content")),
                bool(block.get("is_error")),
            )
        case "image" if isinstance(block.get("source"), dict):
            return tuple(
                (name, value if isinstance(value, str) else dumps(value, ensure_ascii=False))
                for name, value in block["source"].items()
            )
        case _:
            value = _unmarked(block)
            try:
                return msgspec.json.encode(value)
            except UnicodeEncodeError:  # half a surrogate pair, from a truncation
                return dumps(value, ensure_ascii=False)


def _inner(content: str | Sequence[Json] | None) -> Hashable:
    """The key of a result's content; a string equals one text block."""
    if isinstance(content, str):
        return (("text", content),)
    return tuple((part.get("type"), _content(part)) for part in content or ())


def _ttl(block: Json) -> int:
    """Seconds that a block's mark asks for: 0 without a mark, 5 minutes unless it says an hour."""
    mark = block.get(SHAPE.mark)
    if not mark:
        return 0
    return HOUR if mark.get("ttl") == "1h" else MINUTES_5


# Reading a response.


_OWN: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"}) | REPLAYED
_SENT: Final = frozenset({"tool_result", "image", "document", "search_result", "tool_reference"})
"""Types of content that occur only in requests."""


def read(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of a message (the SDK's object, or its JSON), and its usage; blocks of server tools are kept whole.

    Raises:
        MisuseError: it is no such message.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    message = response_json(response, SHAPE, type=("message",), role=("assistant",))
    for number, item in enumerate(message[SHAPE.output]):
        _check(item, f"record(): {SHAPE.output}.{number}", message.get("type"))
    return answer_in(message, SHAPE, new_id, turn)


def _check(content: Json, where: str, message: object) -> None:
    """Refuse content that would be recorded but never shown.

    An unknown type is accepted in a response that calls itself a `message`, because it may be a new type of
    the provider; a notice says that it is not sent back.
    """
    kind: object = content.get("type")
    if not isinstance(kind, str) or kind in _SENT or (kind not in _OWN and message != "message"):
        raise MisuseError(f"{where}: {in_words(kind)} is not a type of content in a response")
    if kind in ("text", "thinking"):
        check_text(content, kind, f"{where}: {kind}")
    for name in ("id", "name") if kind == "tool_use" else ():
        check_name(content, name, f"{where}: {kind}")
