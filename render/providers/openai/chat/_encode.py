"""Groups of blocks as messages of Chat Completions.

A group becomes one message of the assistant (its texts, then its calls), a `tool` message for every call, in
the order of the calls and before anything else, and one message of the user for whatever else came.  So
roles come in the order in which the templates of open models want them.

A tool message holds nothing but text, so images and files of results go into the user's message that
follows.  Contents are plain texts wherever nothing else is in them: not every server reads lists of parts;
only where a model takes cache marks, what can carry one is a list.

Thinking is not sent: the API has no place for it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    OpaqueBlock,
    Part,
    TextPart,
    ToolCall,
    text_of_parts,
)
from blocks.formats import REASONING
from render.policy._provider import Piece, TokenCounter
from render.providers._names import tool_name, wire_id
from render.providers._rounds import Sent, others, piece_of, told
from render.providers.openai._kinds import CHAT_ID_LENGTH_MAX
from render.providers.openai._parts import ChatParts, content_of, texts_of
from render.providers.openai._rounds import answers, arguments_of, free_input, scale_of
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

SEPARATOR: Final = "\n\n"
"""Between texts of one message, where a message is a plain text."""
ELSEWHERE: Final = "[shown in the next message]"
"""In a tool message, of what is no text."""
_PARTS: Final = ChatParts()


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    keep_thinking: bool = True
    listed: bool = False
    """Whether what can carry a cache mark is a list of parts, and no plain text."""
    returns_thinking: bool = False
    """Whether reasoning goes back with the calls that it led to."""

    def encode(self, group: Group) -> Piece:
        """The group in the provider's words, as it is."""
        notices: list[str] = []
        said = list(self._said(group, notices))
        results: list[Sent] = []
        heard: list[tuple[int, Json]] = []
        for call, version, parts in answers(group, notices):
            results.append(self._tool_message(call, version, parts))
            heard += _moved(version, call, parts)
        alone = bool(results) or not said
        for version, parts in others(group, notices, answered=alone):
            heard += [(version, content_of(part, _PARTS)) for part in parts]
        sent = [*said, *results, *([self._user_message(heard)] if heard else [])]
        return piece_of(group, sent, scale_of(self.counter), notices)

    def _said(self, group: Group, notices: list[str]) -> Iterator[Sent]:
        """The assistant's message."""
        thoughts: list[tuple[int, Json]] = []
        texts: list[tuple[int, Json]] = []
        calls: list[tuple[int, Json]] = []
        for entry in group.placed(Place.RESPONSE):
            match entry.block:
                case ToolCall() as call:
                    calls.append((entry.version, _call(entry, call)))
                case AssistantThinking(provider=own):
                    if self.keep_thinking and self.returns_thinking and (known := _thought(own)):
                        thoughts.append((entry.version, known))
                    elif self.keep_thinking:
                        notices.append(f"thinking is not sent in a chat: {entry.path}")
                case AssistantCompletion(text=text) if text.strip():
                    texts.append((entry.version, {"type": "text", "text": text}))
                case OpaqueBlock() as block if told(block).strip():
                    texts.append((entry.version, {"type": "text", "text": told(block)}))
                case OpaqueBlock() as block if verbatim(block) is not None:
                    notices.append(f"a block that the provider refuses is not shown: {entry.path}")
                case _:
                    pass
        if texts or calls:
            said = SEPARATOR.join(content["text"] for _, content in texts)
            message: Json = {"role": "assistant", "content": said or None}
            thoughts = thoughts if calls else []  # what led to no call is read by nobody again
            if thoughts:
                message[thoughts[0][1]["type"]] = SEPARATOR.join(t["text"] for _, t in thoughts)
            if calls:
                message["tool_calls"] = [call for _, call in calls]
            yield Sent(item=message, by_model=True, contents=(*thoughts, *texts, *calls))

    def _tool_message(self, call: Entry, version: int, parts: Sequence[Part]) -> Sent:
        contents = [content_of(_as_text(part), _PARTS) for part in parts]
        texts = [content["text"] for content in contents]
        content = contents if self.listed else "\n".join(texts)
        identity = wire_id(call.pair, CHAT_ID_LENGTH_MAX)
        message = {"role": "tool", "tool_call_id": identity, "content": content}
        return Sent(item=message, by_model=False, contents=((version, message),))

    def _user_message(self, heard: Sequence[tuple[int, Json]]) -> Sent:
        contents = [content for _, content in heard]
        texts = None if self.listed else texts_of(contents)
        content = contents if texts is None else SEPARATOR.join(texts)
        message = {"role": "user", "content": content}
        return Sent(item=message, by_model=False, contents=tuple(heard))


def _thought(own: Json) -> Json | None:
    """What a server told of its model's reasoning, under the name that it has there."""
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


def _as_text(part: Part) -> TextPart:
    """What a tool message says of a part."""
    if isinstance(part, TextPart):
        return part
    if content_of(part, _PARTS)["type"] == "text":
        return TextPart(text=content_of(part, _PARTS)["text"])
    return TextPart(text=f"{text_of_parts((part,))} {ELSEWHERE}")


def _moved(version: int, call: Entry, parts: Sequence[Part]) -> Iterator[tuple[int, Json]]:
    """What a result holds besides text, for the user's message."""
    contents = [content_of(part, _PARTS) for part in parts if not isinstance(part, TextPart)]
    moved = [content for content in contents if content["type"] != "text"]
    if moved:
        named = f"[from the result of call {wire_id(call.pair, CHAT_ID_LENGTH_MAX)}]"
        yield version, {"type": "text", "text": named}
    yield from ((version, content) for content in moved)
