"""Groups of blocks as messages of Chat Completions.

A group becomes one assistant message (its texts, then its calls), one `tool` message for every call, in the
order of the calls, and one user message for other content. This is the order of roles that the templates of
open models require.

A tool message contains only text, so images and files of results go into the following user message.
Contents that are only text are plain strings, because not every server reads lists of parts; for models
with cache marks, contents that can carry a mark are lists.

Thinking is not sent, because the API has no place for it, except for models that get their reasoning back
with their calls.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
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
from render.providers.openai._kinds import CHAT_ID_LENGTH_MAX, OPERATORS
from render.providers.openai._parts import ChatParts, content_of, texts_of
from render.providers.openai._rounds import answers, arguments_of, free_input, scale_of
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

SEPARATOR: Final = "\n\n"
"""Between the texts of a message whose content is a string."""
ELSEWHERE: Final = "[shown in the next message]"
"""In a tool message, marks a part that is not text."""
_PARTS: Final = ChatParts()


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    keep_thinking: bool = True
    listed: bool = False
    """Whether contents that can carry a cache mark are lists of parts instead of strings."""
    returns_thinking: bool = False
    """Whether reasoning is sent back with the calls that it led to."""

    def encode(self, group: Group) -> Piece:
        """The group as messages of this API."""
        notices: list[str] = []
        said = list(self._said(group, notices))
        results: list[Sent] = []
        heard: list[tuple[str, tuple[int, Json]]] = []
        for call, version, parts in answers(group, notices):
            results.append(self._tool_message(call, version, parts))
            heard += [("user", moved) for moved in _moved(version, call, parts)]
        alone = bool(results) or not said
        for other in others(group, notices, answered=alone, roles=OPERATORS):
            contents = [(other.version, content_of(part, _PARTS)) for part in other.parts]
            heard += [(other.role, content) for content in contents]
        runs = groupby(heard, itemgetter(0))
        messages = [self._message(role, [content for _, content in run]) for role, run in runs]
        sent = [*said, *results, *messages]
        return piece_of(group, sent, scale_of(self.counter), notices)

    def _said(self, group: Group, notices: list[str]) -> Iterator[Sent]:
        """The assistant message; none if the model said nothing."""
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
            thoughts = thoughts if calls else []  # reasoning without a call is not sent
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

    def _message(self, role: str, heard: Sequence[tuple[int, Json]]) -> Sent:
        contents = [content for _, content in heard]
        texts = None if self.listed else texts_of(contents)
        content = contents if texts is None else SEPARATOR.join(texts)
        message = {"role": role, "content": content}
        return Sent(item=message, by_model=False, contents=tuple(heard))


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


def _as_text(part: Part) -> TextPart:
    """The text for a part within a tool message."""
    if isinstance(part, TextPart):
        return part
    if content_of(part, _PARTS)["type"] == "text":
        return TextPart(text=content_of(part, _PARTS)["text"])
    return TextPart(text=f"{text_of_parts((part,))} {ELSEWHERE}")


def _moved(version: int, call: Entry, parts: Sequence[Part]) -> Iterator[tuple[int, Json]]:
    """The parts of a result that are not text, for the user message."""
    contents = [content_of(part, _PARTS) for part in parts if not isinstance(part, TextPart)]
    moved = [content for content in contents if content["type"] != "text"]
    if moved:
        named = f"[from the result of call {wire_id(call.pair, CHAT_ID_LENGTH_MAX)}]"
        yield version, {"type": "text", "text": named}
    yield from ((version, content) for content in moved)
