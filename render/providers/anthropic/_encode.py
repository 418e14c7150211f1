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

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from json import dumps

import attrs
import msgspec

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Note,
    OpaqueBlock,
    TextPart,
    ToolCall,
    ToolResult,
    clean_json,
)
from render.policy._provider import Piece, TokenCounter
from render.providers._heard import heard
from render.providers._names import CONTINUE, INTERRUPTED, NO_OUTPUT, tool_name, wire_id
from render.providers.anthropic._count import spots_of
from render.providers.anthropic._kinds import THINKING_TYPES
from render.providers.anthropic._parts import Refuses, part_content
from render.providers.anthropic._server_tools import (
    Numbered,
    is_own,
    is_replayed,
    is_resumable,
    paired,
)
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

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
        response = group.placed(Place.RESPONSE)
        assistant = list(self._assistant(group, response, notices))
        results = self._results(group, response, notices)
        if self.thinking_leads and _lacks_lead(group, assistant):
            assistant = [said for said in assistant if said[1].get("type") != "tool_use"]
            results = _as_texts(group, results)
        user = [*results, *self._others(group, notices, assistant)]
        try:
            digest = _digest(assistant, user)
        except UnicodeEncodeError:  # a text that went through no store
            assistant, user = _sendable(assistant), _sendable(user)
            digest = _digest(assistant, user)
        spots = spots_of(assistant, user, self.counter)
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

    def _assistant(
        self, group: Group, response: Sequence[Entry], notices: list[str]
    ) -> Iterator[Numbered]:
        contents: list[Numbered] = []
        replayed = False
        for entry in response:
            match entry.block:
                case ToolCall() as call:
                    contents.append((entry.version, _tool_use(entry, call)))
                case AssistantThinking() as thinking:
                    if self.keep_thinking and _is_signed(thinking, entry, notices):
                        contents.append((entry.version, _unmarked(thinking.provider)))
                case OpaqueBlock() as block if (own := verbatim(block)) is not None:
                    sent = _unmarked(own)
                    if is_own(block, own) and is_replayed(sent, self.refuses):
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
            others = any(entry.place in _OTHERS for entry in group.entries)
            contents = list(paired(contents, notices, is_last=not others))
        while contents and contents[-1][1].get("type") in THINKING_TYPES:
            notices.append(
                f"thinking at the end of a message is not shown: version {contents[-1][0]}"
            )
            contents.pop()
        return iter(contents)

    # The user's message.

    def _others(
        self, group: Group, notices: list[str], said: Sequence[Numbered]
    ) -> Iterator[Numbered]:
        response = group.placed(Place.RESPONSE)
        answered = any(isinstance(entry.block, ToolCall) for entry in response)
        others = [e for e in group.entries if e.place in _OTHERS]
        shown = [(e, list(self._heard(e, notices))) for e in others]
        early = any(c for e, c in shown if not group.sealed or e.version <= group.sealed)
        if said and not (answered or early or is_resumable(said)):
            yield response[-1].version, {"type": "text", "text": CONTINUE}
        for entry, contents in shown:
            for content in contents:
                yield entry.version, content
        orphans = group.placed(Place.ORPHAN)
        notices += (f"a result without a call is not shown: {entry.path}" for entry in orphans)

    def _heard(self, entry: Entry, notices: list[str]) -> Iterator[Json]:
        return (part_content(part, "user", self.refuses) for part in heard(entry, notices))

    def _results(
        self, group: Group, response: Sequence[Entry], notices: list[str]
    ) -> Iterator[Numbered]:
        """One result for every call, in the order of the calls."""
        results = {entry.pair: entry for entry in group.placed(Place.RESULT)}
        for call in response:
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


def _messages(assistant: list[Numbered], user: list[Numbered]) -> list[Json]:
    """The one or two messages of these contents."""
    return [
        {"role": role, "content": [content for _, content in contents]}
        for role, contents in (("assistant", assistant), ("user", user))
        if contents
    ]


def _digest(assistant: list[Numbered], user: list[Numbered]) -> bytes:
    return sha256(msgspec.json.encode(_messages(assistant, user))).digest()


def _sendable(contents: list[Numbered]) -> list[Numbered]:
    """The contents with what JSON cannot hold spelled out, as a store would have done."""
    return [(version, clean_json(content)) for version, content in contents]


def _tool_use(entry: Entry, block: ToolCall) -> Json:
    return {
        "type": "tool_use",
        "id": wire_id(entry.pair),
        "name": tool_name(block.name),
        "input": block.input,
    }


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


# Calls without the thinking that led to them.
#
# Where thinking is of type `enabled`, the provider takes a message with calls, whose results are sent,
# only if it begins with thinking.  When somebody hides that thinking, the calls cannot be sent as calls
# any more: they are quoted to the model together with their results.


def _lacks_lead(group: Group, said: Sequence[Numbered]) -> bool:
    """Whether a round would begin with thinking, had nobody hidden that."""
    if any(content.get("type") in THINKING_TYPES for _, content in said[:1]):
        return False
    return any(
        isinstance(entry.block, AssistantThinking) and entry.original is not None
        for entry in group.entries
    )


def _as_texts(group: Group, results: Iterable[Numbered]) -> Iterator[Numbered]:
    """Results, each behind the call that it answers, as content that is no tool traffic: a part that
    may stand in a result may stand outside of one, too."""
    calls = {
        wire_id(entry.pair): entry.block
        for entry in group.placed(Place.RESPONSE)
        if isinstance(entry.block, ToolCall)
    }
    for version, result in results:
        call = calls[result["tool_use_id"]]
        arguments = dumps(call.input, ensure_ascii=False)
        content = result["content"]
        said = [{"type": "text", "text": content}] if isinstance(content, str) else content
        asked = f"[{call.name} was called with {arguments}; it gave]"
        for part in ({"type": "text", "text": asked}, *said):
            yield version, part
