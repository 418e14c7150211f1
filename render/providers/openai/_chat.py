"""The Chat Completions API of OpenAI, as of November 2026, and of servers such as vLLM and llama.cpp.

What it has in common with Responses is in `_common`. The rules that a request must follow are in `_chat_rules`, which
knows nothing of this file, as this file knows nothing of the rules.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final, cast

import attrs
from msgspec.structs import replace

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    BlockId,
    MisuseError,
    OpaqueBlock,
    ToolCall,
    TurnId,
    in_words,
)
from blocks.formats import REASONING, SHAPES, items, obj, usage_in
from render.policy._context import (
    Answer,
    Limits,
    Model,
    Piece,
    Provider,
    ThinkingRule,
    TokenCounter,
    Violations,
)
from render.providers._encoding import (
    MIDWAY,
    WireItem,
    assembled,
    behind,
    beside,
    call_answers,
    foreign_text,
    joined,
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
    with_call_ids,
)
from render.providers._tool_definitions import open_definitions
from render.providers.openai._common import (
    LISTING_ROLES,
    PartForms,
    Refuses,
    arguments_of,
    cache_options,
    chat_tool,
    content_of,
    free_input,
    limits_of,
    marked,
    marked_failed,
    rates,
    scale_of,
    segment,
    text_of,
    texts_of,
    tool_tokens,
    with_mark,
)
from render.providers.openai._constants import CHAT_ID_LENGTH_MAX, OPERATORS
from render.view._view import Encoder, Entry, Group, Json, Place, verbatim

SHAPE: Final = SHAPES["openai.chat"]
PROMPT: Final = "system"
"""The role of the system prompt: OpenAI's newer models call it `developer` and accept both; many other
servers know only this one."""


def provider(violations: Violations, refuses: Refuses) -> Provider:
    """The API with its rules."""
    forms = attrs.evolve(PARTS, refuses=refuses)
    return Provider(
        name=SHAPE.name,
        limits=limits,
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


def limits(model: Model) -> Limits:
    """The same limits as in Responses; a model that gets its reasoning back refuses calls without it."""
    rules: frozenset[ThinkingRule] = frozenset({"paired"} if _returns_thinking(model) else ())
    return replace(limits_of(model), thinking=rules)


def encoder(
    forms: PartForms, counter: TokenCounter, model: Model, *, keep_thinking: bool, **_: object
) -> Encoder[Piece]:
    """An encoder into messages."""
    listed = limits_of(model).marks_max > 0
    returns = _returns_thinking(model)
    encoding = Encoding(
        forms=forms,
        counter=counter,
        keep_thinking=keep_thinking,
        listed=listed,
        returns_thinking=returns,
    )
    return Encoder((SHAPE.name, counter.name, keep_thinking, listed, returns), encoding.encode)


# Encoding groups of blocks.
#
# A group becomes one assistant message (its texts, then its calls), one `tool` message for every call, in the order of
# the calls, and one user message for other content. This is the order of roles that the templates of open models
# require.
#
# A tool message contains only text, so images and files of results go into the following user message. Contents that
# are only text are plain strings, because not every server reads lists of parts; for models with cache marks, contents
# that can carry a mark are lists.
#
# Thinking is not sent, because the API has no place for it, except for models that get their reasoning back with their
# calls.


SEPARATOR: Final = "\n\n"
"""Between the texts of a message whose content is a string."""
ELSEWHERE: Final = "[shown in the next message]"
"""In a tool message, marks a part that is not text."""
PARTS: Final = PartForms(
    own=frozenset({"image_url", "file", "input_audio"}),
    text="text",
    image=lambda url: {"type": "image_url", "image_url": {"url": url}},
    file=lambda name, data: {"type": "file", "file": {"filename": name, "file_data": data}},
    linked=lambda _: None,
)


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    forms: PartForms
    counter: TokenCounter
    keep_thinking: bool = True
    listed: bool = False
    """Whether contents that can carry a cache mark are lists of parts instead of strings."""
    returns_thinking: bool = False
    """Whether reasoning is sent back with the calls that it led to."""

    def encode(self, group: Group) -> Piece:
        """The group as messages of this API."""
        notices: list[str] = []
        assistant = list(self._assistant_message(group, notices))
        results: list[WireItem] = []
        rest: list[tuple[str, tuple[int, Json]]] = []
        for answer in call_answers(group, notices):
            result = attrs.evolve(answer, parts=marked_failed(answer))
            identity = wire_id(answer.call.pair, CHAT_ID_LENGTH_MAX)
            texts, parts = beside(
                result, identity, partial(content_of, forms=self.forms), ELSEWHERE
            )
            results.append(self._tool_message(identity, answer.version, texts))
            rest += [("user", part) for part in parts]
        alone = bool(results) or not assistant
        for other in others(group, notices, answered=alone, roles=OPERATORS):
            rest += [(other.role, (other.version, content_of(p, self.forms))) for p in other.parts]
        runs = groupby(rest, itemgetter(0))
        messages = [self._message(role, [content for _, content in run]) for role, run in runs]
        sent = [*assistant, *results, *messages]
        return piece_of(group, sent, scale_of(self.counter), notices)

    def _assistant_message(self, group: Group, notices: list[str]) -> Iterator[WireItem]:
        """The assistant message; none if the model said nothing."""
        thoughts: list[tuple[int, Json]] = []
        texts: list[tuple[int, Json]] = []
        calls: list[tuple[int, Json]] = []
        for entry in group.placed[Place.RESPONSE]:
            match entry.block:
                case ToolCall() as call:
                    calls.append((entry.version, _call(entry, call)))
                case AssistantThinking(provider=own):
                    if self.keep_thinking and self.returns_thinking and (thought := _thought(own)):
                        thoughts.append((entry.version, thought))
                    elif self.keep_thinking:
                        notices.append(f"thinking is not sent in a chat: {entry.path}")
                case AssistantCompletion(text=text) if text.strip():
                    texts.append((entry.version, {"type": "text", "text": text}))
                case OpaqueBlock() as block if foreign_text(block).strip():
                    texts.append((entry.version, {"type": "text", "text": foreign_text(block)}))
                case OpaqueBlock() as block if verbatim(block) is not None:
                    notices.append(f"a block that the provider refuses is not shown: {entry.path}")
                case _:
                    pass
        if texts or calls:
            words = SEPARATOR.join(content["text"] for _, content in texts)
            message: Json = {"role": "assistant", "content": words or None}
            thoughts = thoughts if calls else []  # reasoning without a call is not sent
            if thoughts:
                message[thoughts[0][1]["type"]] = SEPARATOR.join(t["text"] for _, t in thoughts)
            if calls:
                message["tool_calls"] = [call for _, call in calls]
            yield WireItem(item=message, by_model=True, contents=(*thoughts, *texts, *calls))

    def _tool_message(self, identity: str, version: int, texts: Sequence[str]) -> WireItem:
        content = [*map(PARTS.of_text, texts)] if self.listed else "\n".join(texts)
        message = {"role": "tool", "tool_call_id": identity, "content": content}
        return WireItem(item=message, by_model=False, contents=((version, message),))

    def _message(self, role: str, numbered: Sequence[tuple[int, Json]]) -> WireItem:
        contents = [content for _, content in numbered]
        texts = None if self.listed else texts_of(contents)
        content = contents if texts is None else SEPARATOR.join(texts)
        message = {"role": role, "content": content}
        return WireItem(item=message, by_model=False, contents=tuple(numbered))


def _thought(own: Json) -> Json | None:
    """A server's record of its model's reasoning, under its own field name; None if there is none."""
    name: object = own.get("type")
    text: object = own.get(name) if isinstance(name, str) and name in REASONING else None
    return {"type": name, "text": text} if isinstance(text, str) and text else None


def _call(entry: Entry, call: ToolCall) -> Json:
    identity = {"id": wire_id(entry.pair, CHAT_ID_LENGTH_MAX)}
    name = tool_name(call.name)
    if (text := free_input(call)) is not None:
        return {**identity, "type": "custom", "custom": {"name": name, "input": text}}
    function = {"name": name, "arguments": arguments_of(call)}
    return {**identity, "type": "function", "function": function}


# Assembling a request.


def prefix(
    system: Sequence[Json], tools: Sequence[Json], ttl: str | None
) -> tuple[list[Json], list[Json]]:
    """One message; its content is a string, unless it carries a mark."""
    texts = [text["text"] for text in system]
    content: str | list[Json] = SEPARATOR.join(texts)
    if texts and ttl:
        parts: list[Json] = [{"type": "text", "text": text} for text in texts]
        content = [*parts[:-1], with_mark(parts[-1])]
    message = {"role": PROMPT, "content": content}
    return [message] if texts else [], list(map(chat_tool, tools))


def messages(
    pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
) -> list[Json]:
    """Messages, beginning with the user's; adjacent user messages are joined, for templates that require alternating roles.

    Messages without a mark are the pieces' own objects and must not be changed.
    """
    messages = assembled(pieces, marks, marked)
    if not messages or messages[0]["role"] not in LISTING_ROLES:
        messages.insert(0, {"role": "user", "content": MIDWAY})
    return appended(joined(messages, _as_one, only="user"), texts)


def request(
    system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json], cache_key: str = ""
) -> Json:
    """The keyword arguments `messages` and `tools`; cache options only with marks, because not every
    server accepts them."""
    request: Json = {"messages": [*system, *messages]}
    if tools:
        request["tools"] = list(tools)
    options = cache_options(request["messages"], cache_key)
    return request | options if "prompt_cache_options" in options else request


def sections(request: Mapping[str, Any]) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
    """The leading messages with the roles of a system prompt are the system part."""
    messages: list[Json] = request.get("messages") or []
    roles = (message.get("role") for message in messages)
    begin = next((n for n, role in enumerate(roles) if role not in OPERATORS), len(messages))
    return messages[:begin], request.get("tools") or (), messages[begin:]


def contents(
    system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
) -> Iterator[tuple[str, Json]]:
    """Tools, then the contents of the messages: the user's parts, the assistant's texts and calls. The
    first user message, which may be a summary, is divided into paragraphs."""
    yield from (("tools", tool) for tool in tools)
    head = next((message for message in messages if message.get("role") == "user"), None)
    for message in (*system, *messages):
        role = str(message.get("role") or "")
        content: object = message.get("content")
        thoughts = ((name, message.get(name)) for name in REASONING)
        yield from ((role, {"type": name, "text": text}) for name, text in thoughts if text)
        if role == "tool":
            yield role, message
        elif isinstance(content, list):
            yield from ((role, part) for part in cast("list[Json]", content))
        elif isinstance(content, str) and content and message is head:
            texts = filter(None, content.split(SEPARATOR))  # the cache matches any prefix of them
            yield from ((role, PARTS.of_text(text)) for text in texts)
        elif isinstance(content, str) and content:
            yield role, message
        yield from ((role, call) for call in message.get("tool_calls") or ())


def extended(request: Json, texts: Sequence[str]) -> Json:
    """The texts are added to the last message if that is the user's."""
    return {**request, "messages": appended(request.get("messages", []), texts)}


def without_thinking(request: Json) -> Json:
    """The request itself: reasoning in this API has no signature that could be refused."""
    return request


def _returns_thinking(model: Model) -> bool:
    return "between_tools" in model.thinking_modes


def appended(messages: list[Json], texts: Sequence[str]) -> list[Json]:
    """The messages with texts after all other content."""
    message: Json = {"role": "user", "content": SEPARATOR.join(texts)}
    return behind(messages, message, _as_one) if texts else messages


def _as_one(run: Sequence[Json]) -> Json:
    contents: list[Any] = [message["content"] for message in run]
    if all(isinstance(content, str) for content in contents):
        return {"role": "user", "content": SEPARATOR.join(contents)}
    parts = ([PARTS.of_text(c)] if isinstance(c, str) else c for c in contents)
    return {"role": "user", "content": [*chain.from_iterable(parts)]}


# Reading a response.


def read(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of a response, and its usage; calls without an id get one, as some servers give none.

    Raises:
        MisuseError: it is not a response, or holds content that no log can show.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    fields = response_json(response, SHAPE)
    choices: list[Json] = fields[SHAPE.output]
    if len(choices) > 1:
        raise MisuseError(
            f"record(): the response has {len(choices)} choices; record only the one that you use"
        )
    for choice in choices:
        _check(choice.get("message"), "record(): choices.0")
    return with_call_ids(answer_in(fields, SHAPE, new_id, turn))


def _check(message: Any, where: str) -> None:
    if not isinstance(message, dict):
        raise MisuseError(
            f"{where} has no message; chunks of a stream cannot be recorded one by one"
        )
    fields = obj(message)
    if fields.get("role") not in (None, "assistant"):
        raise MisuseError(
            f"{where}: the role must be 'assistant', not {in_words(fields.get('role'))}"
        )
    calls: Any = fields.get("tool_calls") or []
    if not isinstance(calls, list):
        raise MisuseError(f"{where}: tool_calls must be a list, not {in_words(calls)}")
    if fields.get("function_call"):
        raise MisuseError(f"{where}: function_call has no id; give the model tools, not functions")
    for number, call in enumerate(map(obj, items(calls))):
        place = f"{where}.tool_calls.{number}"
        if call.get("id"):
            check_name(call, "id", place)
        check_name(obj(call.get("function")) or obj(call.get("custom")), "name", place)
