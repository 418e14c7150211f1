"""The Responses API of OpenAI, as of November 2026, with nothing stored on the server.

What it has in common with Chat Completions is in `_common`. The rules that a request must follow are in `_responses_rules`, which
knows nothing of this file, as this file knows nothing of the rules.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    MisuseError,
    OpaqueBlock,
    ToolCall,
    TurnId,
    in_words,
)
from blocks.formats import CLIENT_TOOLS, SHAPES, client_call, client_result, usage_in
from render.policy._context import Answer, Model, Piece, Provider, TokenCounter, Violations
from render.providers._encoding import (
    MIDWAY,
    CallAnswer,
    Other,
    WireItem,
    absence,
    assembled,
    call_answers,
    foreign_text,
    others,
    piece_of,
    tool_name,
    wire_id,
)
from render.providers._responses import (
    answer_in,
    check_name,
    response_json,
    stop_in_response,
    usage_in_response,
)
from render.providers._tool_definitions import open_definitions
from render.providers.openai._common import (
    PartForms,
    Refuses,
    arguments_of,
    cache_options,
    content_of,
    free_input,
    limits_of,
    marked,
    marked_failed,
    rates,
    response_tool,
    scale_of,
    segment,
    text_of,
    texts_of,
    tool_tokens,
    with_mark,
)
from render.providers.openai._constants import CALLS, EXTRA, OPERATORS, REPLAYED, RUN, TAG_PREFIX
from render.view._view import Encoder, Entry, Group, Json, Place, response_of, verbatim

SHAPE: Final = SHAPES["openai.responses"]
PROMPT: Final = "developer"
"""The role of the system prompt; `instructions` is not used, because it can carry no cache mark, and newer
models place it after the conversation."""


def provider(violations: Violations, refuses: Refuses) -> Provider:
    """The API with its rules."""
    forms = attrs.evolve(PARTS, refuses=refuses)
    return Provider(
        name=SHAPE.name,
        limits=limits_of,
        rates=rates,
        encoder=partial(encoder, forms),
        refusal=forms.refusal,
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
        usage=partial(usage_in_response, SHAPE, usage_in),
    )


def encoder(
    forms: PartForms, counter: TokenCounter, model: Model, *, keep_thinking: bool, **_: object
) -> Encoder[Piece]:
    """An encoder into input items."""
    listed = limits_of(model).marks_max > 0
    encoding = Encoding(forms=forms, counter=counter, keep_thinking=keep_thinking, listed=listed)
    return Encoder((SHAPE.name, counter.name, keep_thinking, listed), encoding.encode)


# Encoding groups of blocks.
#
# The items of the model come first, then an output for every call, in the order of the calls, then a message for other
# content, in log order. So a request's input only grows at its end.
#
# Reasoning is sent back unchanged before the item that it led to. If that item is no longer shown, the reasoning is left
# out, because the server requires both or neither. Reasoning without `encrypted_content` is left out, because the server
# stores nothing; for the same reason ids are left out, because the server would look them up.


PARTS: Final = PartForms(
    own=frozenset({"input_image", "input_file"}),
    text="input_text",
    image=lambda url: {"type": "input_image", "image_url": url, "detail": "auto"},
    file=lambda name, data: {"type": "input_file", "filename": name, "file_data": data},
    linked=lambda url: {"type": "input_file", "file_url": url},
)
_MODEL_PLACES: Final = frozenset({Place.RESPONSE, Place.SILENT})
_ATTACHED: Final = ("caller", "namespace")
"""Fields of a call that go back with it."""
_COMPACTION: Final = ("type", "encrypted_content")
"""The fields of a compaction item that the API accepts back."""


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    forms: PartForms
    counter: TokenCounter
    keep_thinking: bool = True
    listed: bool = False
    """Whether outputs are lists of parts, which can carry cache marks, instead of strings."""

    def encode(self, group: Group) -> Piece:
        """The group as input items of this API."""
        notices, late = list[str](), list[str]()
        answers = call_answers(group, late)
        own = {each.call.pair: item for each in answers if (item := _client_result(each))}
        output = self._output(group, {*own, *_ran(group)}, notices)
        notices += late
        results = [
            _user_item(each.version, own.get(each.call.pair) or self._result(each))
            for each in answers
        ]
        answered = bool(results) or not output
        shown = others(group, notices, answered=answered, roles=OPERATORS)
        rest = [_message(other, self.forms) for other in shown]
        return piece_of(group, [*output, *results, *rest], scale_of(self.counter), notices)

    def _output(self, group: Group, answered: Container[str], notices: list[str]) -> list[WireItem]:
        """What the model said; `answered` are the calls of tools that the provider defines whose results are of their own
        kind."""
        items: list[WireItem] = []
        followed, response = False, ""
        for entry in reversed(group.entries):
            if entry.place not in _MODEL_PLACES or entry.block.author != "assistant":
                continue
            item = self._item(entry, answered) if entry.place is Place.RESPONSE else None
            if response_of(entry.block) != response:
                followed, response = False, response_of(entry.block)
            if not isinstance(entry.block, AssistantThinking):
                followed = item is not None
            elif not followed:
                item = None
            if item is not None:
                items.append(WireItem(item=item, by_model=True, contents=((entry.version, item),)))
            elif entry.place is Place.RESPONSE:
                notices += absence(entry, keep_thinking=self.keep_thinking)
        notices.reverse()
        return items[::-1]

    def _item(self, entry: Entry, answered: Container[str]) -> Json | None:
        match entry.block:
            case AssistantThinking() as thinking:
                return _reasoning(thinking.provider) if self.keep_thinking else None
            case ToolCall() as call if entry.pair in answered:
                return client_call(call, wire_id(entry.pair))
            case ToolCall() as call:
                return _call(entry, call)
            case OpaqueBlock() as block if (own := _own(block, answered)) is not None:
                return own
            case OpaqueBlock() as block:
                return _text(block, foreign_text(block))
            case AssistantCompletion(text=text) as block:
                return _text(block, text)
            case _:
                return None

    def _result(self, answer: CallAnswer) -> Json:
        kind, call = "function_call_output", answer.call
        if isinstance(call.block, ToolCall) and free_input(call.block) is not None:
            kind = "custom_tool_call_output"
        contents = [content_of(part, self.forms) for part in marked_failed(answer)]
        texts = texts_of(contents)
        plain = not self.listed and texts is not None and len(texts) == 1
        output: str | list[Json] = cast("list[str]", texts)[0] if plain else contents
        return {"type": kind, "call_id": wire_id(call.pair), "output": output}


def _client_result(answer: CallAnswer) -> Json | None:
    """The result of a tool that the provider defines and the client runs; None: it is none, or is shown as text."""
    call = answer.call.block
    if not isinstance(call, ToolCall):
        return None
    return client_result(call, wire_id(answer.call.pair), answer.parts, is_error=answer.failed)


def _user_item(version: int, item: Json) -> WireItem:
    return WireItem(item=item, by_model=False, contents=((version, item),))


def _message(other: Other, forms: PartForms) -> WireItem:
    contents = [content_of(part, forms) for part in other.parts]
    item = {"type": "message", "role": other.role, "content": contents}
    numbered = tuple((other.version, content) for content in contents)
    return WireItem(item=item, by_model=False, contents=numbered)


def _reasoning(own: Json) -> Json | None:
    """The item unchanged except for its id; None if the server would not accept it."""
    sealed: object = own.get(SHAPE.seal)
    if own.get("type") != "reasoning" or not isinstance(sealed, str) or not sealed:
        return None
    return {key: value for key, value in own.items() if key != "id" and value is not None}


def _text(block: Block, text: str) -> Json | None:
    if not text.strip():
        return None
    original: Json = block.provider if isinstance(block, AssistantCompletion) else {}
    phase: Json = {"phase": original["phase"]} if isinstance(original.get("phase"), str) else {}
    return {"type": "message", "role": "assistant", "content": text, **phase}


def _call(entry: Entry, call: ToolCall) -> Json:
    identity: Json = {"call_id": wire_id(entry.pair), "name": tool_name(call.name)}
    if (text := free_input(call)) is not None:
        return {"type": "custom_tool_call", **identity, "input": text}
    attached: Json = {key: call.provider[key] for key in _ATTACHED if key in call.provider}
    return {"type": "function_call", **identity, **attached, "arguments": arguments_of(call)}


def _ran(group: Group) -> Iterator[str]:
    """The calls of tools that the server has run itself: the response has each of them with its result."""
    items = (verbatim(entry.block) or {} for entry in group.placed[Place.RESPONSE])
    ids = Counter(str(own.get("call_id")) for own in items if own.get("type") in RUN)
    return (call_id for call_id, count in ids.items() if count == 2)  # noqa: PLR2004


def _own(block: OpaqueBlock, answered: Container[str]) -> Json | None:
    """The provider's own item, or None if the provider does not accept it back."""
    own = verbatim(block) or {}
    kind: object = own.get("type")
    is_known = kind in REPLAYED | EXTRA or (kind in RUN and str(own.get("call_id")) in answered)
    if block.tag != f"{TAG_PREFIX}{kind}" or not is_known:
        return None
    if kind == "compaction":
        return {key: own[key] for key in _COMPACTION if own.get(key) is not None}
    return {key: value for key, value in own.items() if value is not None}


# Assembling a request.


def prefix(
    system: Sequence[Json], tools: Sequence[Json], ttl: str | None
) -> tuple[list[Json], list[Json]]:
    """One developer message, whose last part carries the mark; tools cannot carry one."""
    parts: list[Json] = [{"type": "input_text", "text": text["text"]} for text in system]
    if parts and ttl:
        parts[-1] = with_mark(parts[-1])
    message = {"type": "message", "role": PROMPT, "content": parts}
    return [message] if parts else [], list(map(response_tool, tools))


def messages(
    pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
) -> list[Json]:
    """Input items, at least one; those without a mark are the pieces' own objects and must not be
    changed."""
    items = assembled(pieces, marks, marked) or [_text_message(MIDWAY)]
    return [*items, *map(_text_message, texts)]


def request(
    system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json], cache_key: str = ""
) -> Json:
    """The keyword arguments `input` and `tools`, with `store=False`; if there are marks, the cache is
    written only at them."""
    request: Json = {"input": [*system, *messages], "store": False}
    if tools:
        request["tools"] = list(tools)
    return request | cache_options(request["input"], cache_key)


def sections(request: Mapping[str, Any]) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
    """Instructions come first; an input that is a string is a user message."""
    text, content = request.get("instructions"), request.get("input")
    items = [_text_message(content)] if isinstance(content, str) else content or []
    return [_text_message(text, role=PROMPT)] if text else [], request.get("tools") or (), items


def contents(
    system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
) -> Iterator[tuple[str, Json]]:
    """Tools, then the items; messages are divided into their parts. A deferred tool is in no prompt until a search
    loads it, and then it is added at the end. (Provider documentation: tool search.)"""
    yield from (("tools", tool) for tool in tools if not tool.get("defer_loading"))
    for item in (*system, *messages):
        content: object = item.get("content")
        role = str(item.get("role") or "")
        if isinstance(content, list) and item.get("type", "message") == "message":
            yield from ((role, part) for part in cast("list[Json]", content))
        else:
            yield role, item


def extended(request: Json, texts: Sequence[str]) -> Json:
    """The texts are added as one message."""
    return {**request, "input": [*request.get("input", ()), _text_message(*texts)]}


def without_thinking(request: Json) -> Json:
    """The request without reasoning items, to which no other item refers."""
    items = [item for item in request["input"] if item.get("type") != "reasoning"]
    return {**request, "input": items}


def _text_message(*texts: str, role: str = "user") -> Json:
    """A message, by default the user's."""
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": parts}


# Reading a response.


_OBJECTS: Final = ("response", "response.compaction")
_UNFINISHED: Final = frozenset({"in_progress", "queued"})


def read(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of a response, and its usage.

    Raises:
        MisuseError: it is not a response, is not finished, or holds content that no log can show.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    fields = response_json(response, SHAPE, object=_OBJECTS)
    status: object = fields.get("status")
    if status == "failed" or status in _UNFINISHED:
        raise MisuseError(f"record(): the response is not finished: its status is {status!r}")
    for number, item in enumerate(fields[SHAPE.output]):
        _check(item, f"record(): {SHAPE.output}.{number}")
    return answer_in(fields, SHAPE, new_id, turn)


def _check(item: Json, where: str) -> None:
    kind: object = item.get("type")
    if not isinstance(kind, str) or not kind:
        raise MisuseError(f"{where}: {in_words(kind)} is not a type of output item")
    for name in ("call_id", "name") if kind in CALLS and kind not in CLIENT_TOOLS else ():
        check_name(item, name, where)
    if kind in RUN:
        check_name(item, "call_id", where)
    elif kind in CALLS.values():
        raise MisuseError(f"{where}: {kind} is an input item, which a response never contains")
