"""Groups of blocks as Anthropic messages.

A group becomes an assistant message (what the model said) and a user message (the results of its
calls first, in the order of the calls; then whatever else came, in log order).  So groups alternate
by themselves, and what was encoded for one group never changes because of another: the next request
is the last one and more.

Repairs, each with a notice; the log keeps the original:

* a result without a call is not shown;
* a call without a result is answered "interrupted"; a result that comes after such a request was
  sent is shown as text, where it arrived (changing the sent answer would rewrite the prefix);
* thinking without a signature is not shown, nor thinking at the end of a message;
* an answer that nobody replied to is followed by a line of the user's, because most models refuse
  a request that ends with their own words;
* calls whose thinking is hidden on request are quoted in the user's message, with their results, where
  the provider wants thinking before calls;
* text that is empty or white space is not shown; an image that is not valid base64 is named.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final, TypeAlias

import attrs
import msgspec

from blocks import (
    AssistantThinking,
    Note,
    TextPart,
    ToolCall,
    ToolResult,
    clean_json,
    text_of,
)
from render.policy._provider import Piece, Spot, TokenCounter
from render.providers.anthropic._count import content_tokens
from render.providers.anthropic._heard import contents_of
from render.providers.anthropic._lead import as_texts, lacks_lead
from render.providers.anthropic._parts import Refuses, part_content
from render.providers.anthropic._server_tools import is_replayed, is_resumable, paired
from render.providers.anthropic._wire_ids import wire_id
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

INTERRUPTED: Final = "interrupted, no result was recorded"
CONTINUE: Final = "[continue]"
NO_OUTPUT: Final = "(no output)"

_PROOFS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""By type: the texts that it must have, the proof of its origin last."""
_OTHERS = frozenset({Place.USER, Place.LATE, Place.CARRIED})


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    refuses: Refuses
    keep_thinking: bool = True
    thinking_leads: bool = False
    """Whether calls are refused whose thinking is hidden; see `ThinkingRule`."""

    def encode(self, group: Group) -> Piece:
        """The group in the provider's words, as it is."""
        notices: list[str] = []
        assistant = list(self._assistant(group, notices))
        ended = bool(assistant) and not is_resumable(assistant)
        results = self._results(group, notices)
        if self.thinking_leads and lacks_lead(group, assistant):
            assistant = [said for said in assistant if said[1].get("type") != "tool_use"]
            results = as_texts(group, results)
        user = [*results, *self._others(group, notices, said=ended)]
        try:
            digest = _digest(assistant, user)
        except UnicodeEncodeError:  # a text that went through no store
            assistant, user = _sendable(assistant), _sendable(user)
            digest = _digest(assistant, user)
        spots = (*_spots("assistant", assistant, self.counter), *_spots("user", user, self.counter))
        notes = {entry.version for entry in group.entries if isinstance(entry.block, Note)}
        return Piece(
            group=group,
            contents=tuple(content for _, content in (*assistant, *user)),
            items=tuple(_messages(assistant, user)),
            spots=spots,
            tokens=sum(spot.tokens for spot in spots),
            pinned=sum(spot.tokens for spot in spots if spot.version in notes),
            digest=digest,
            notices=tuple(notices),
        )

    # The assistant's message.

    def _assistant(self, group: Group, notices: list[str]) -> Iterator[tuple[int, Json]]:
        contents: list[tuple[int, Json]] = []
        for entry in group.placed(Place.RESPONSE):
            block = entry.block
            if isinstance(block, ToolCall):
                contents.append((entry.version, _tool_use(entry, block)))
            elif isinstance(block, AssistantThinking):
                if self.keep_thinking and _is_signed(block, entry, notices):
                    contents.append((entry.version, _unmarked(block.provider)))
            elif (own := verbatim(block)) is not None:
                if is_replayed(sent := _unmarked(own), self.refuses):
                    contents.append((entry.version, sent))
                else:
                    notices.append(f"a block that the provider refuses is not shown: {entry.path}")
            elif (text := text_of(block)).strip():
                contents.append((entry.version, {"type": "text", "text": text}))
        others = any(entry.place in _OTHERS for entry in group.entries)
        contents = list(paired(contents, notices, is_last=not others))
        while contents and contents[-1][1].get("type") in {"thinking", "redacted_thinking"}:
            notices.append(
                f"thinking at the end of a message is not shown: version {contents[-1][0]}"
            )
            contents.pop()
        return iter(contents)

    # The user's message.

    def _others(
        self, group: Group, notices: list[str], *, said: bool
    ) -> Iterator[tuple[int, Json]]:
        answered = any(isinstance(e.block, ToolCall) for e in group.placed(Place.RESPONSE))
        others = [e for e in group.entries if e.place in _OTHERS]
        shown = [(e, list(contents_of(e, notices, self.refuses))) for e in others]
        early = any(c for e, c in shown if not group.sealed or e.version <= group.sealed)
        if said and not answered and not early:
            yield group.placed(Place.RESPONSE)[-1].version, {"type": "text", "text": CONTINUE}
        for entry, contents in shown:
            for content in contents:
                yield entry.version, content
        orphans = group.placed(Place.ORPHAN)
        notices += (f"a result without a call is not shown: {entry.path}" for entry in orphans)

    def _results(self, group: Group, notices: list[str]) -> Iterator[tuple[int, Json]]:
        """One result for every call, in the order of the calls."""
        results = {entry.pair: entry for entry in group.placed(Place.RESULT)}
        for call in group.placed(Place.RESPONSE):
            if not isinstance(call.block, ToolCall):
                continue
            answer: Json = {"type": "tool_result", "tool_use_id": wire_id(call.pair)}
            found = results.get(call.pair)
            if found is None or not isinstance(found.block, ToolResult):
                notices.append(f"a call without a result is answered as interrupted: {call.path}")
                yield call.version, {**answer, "content": INTERRUPTED, "is_error": True}
                continue
            answer["content"] = self._result_content(found.block)
            if found.block.is_error:
                answer["is_error"] = True
            yield found.version, answer

    def _result_content(self, block: ToolResult) -> str | list[Json]:
        parts = [p for p in block.parts if not (isinstance(p, TextPart) and not p.text.strip())]
        if not parts:
            return NO_OUTPUT
        if len(parts) == 1 and isinstance(parts[0], TextPart):
            return parts[0].text
        return [part_content(part, "result", self.refuses) for part in parts]


_Numbered: TypeAlias = list[tuple[int, Json]]


def _messages(assistant: _Numbered, user: _Numbered) -> list[Json]:
    """The one or two messages of these contents."""
    return [
        {"role": role, "content": [content for _, content in contents]}
        for role, contents in (("assistant", assistant), ("user", user))
        if contents
    ]


def _digest(assistant: _Numbered, user: _Numbered) -> bytes:
    return sha256(msgspec.json.encode(_messages(assistant, user))).digest()


def _sendable(contents: _Numbered) -> _Numbered:
    """The contents with what JSON cannot hold spelled out, as a store would have done."""
    return [(version, clean_json(content)) for version, content in contents]


def _tool_use(entry: Entry, block: ToolCall) -> Json:
    return {
        "type": "tool_use",
        "id": wire_id(entry.pair),
        "name": tool_name(block.name),
        "input": block.input,
    }


def tool_name(name: str) -> str:
    """A tool's name as the provider accepts it: `^[a-zA-Z0-9_-]{1,64}$`."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
    return kept[:64] or "tool"


def _is_signed(block: AssistantThinking, entry: Entry, notices: list[str]) -> bool:
    needed = _PROOFS.get(str(block.provider.get("type")), ("",))
    found = [block.provider.get(name) for name in needed]
    if all(isinstance(value, str) for value in found) and found[-1]:
        return True
    notices.append(f"thinking without a signature is not shown: {entry.path}")
    return False


def _unmarked(content: Json) -> Json:
    """As the model wrote it; a cache mark is what a caller once added."""
    if "cache_control" not in content:
        return content
    return {key: value for key, value in content.items() if key != "cache_control"}


def _spots(role: str, contents: list[tuple[int, Json]], counter: TokenCounter) -> Iterator[Spot]:
    for version, content in contents:
        yield Spot(
            version=version,
            role=role,
            tokens=content_tokens(content, counter),
            kind=str(content.get("type")),
        )
