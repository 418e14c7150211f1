"""Groups of blocks as contents of the Gemini API.

A group becomes one content of the model (its parts in their order) and one of the user (a response for
every call first, in the order of the calls; then other content in log order).

A signature is sent back on the part that it came with. Gemini 3 and later refuse a first call without a
signature, so for calls that the model did not make, the documented replacement value is sent. Summaries of
thoughts are not sent; a part with only a signature is.

A response contains only text, because not every model reads other parts in it: images and files of results
follow the responses in the same content.
"""

from collections.abc import Iterator
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
from render.policy._provider import Piece, TokenCounter
from render.providers._names import wire_id
from render.providers._rounds import Returned, Scale, by_role, others, piece_of, returned, told
from render.providers.gemini._count import MESSAGE_TOKENS, part_tokens
from render.providers.gemini._kinds import REPLAYED, SIGNATURE, TAG_PREFIX, UNSIGNED, kind_of
from render.providers.gemini._names import function_name
from render.providers.gemini._parts import part_of
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

ELSEWHERE: Final = "[shown below]"
"""In a response, marks a part that is not text."""


@attrs.frozen(kw_only=True)
class Encoding:
    """How groups are encoded."""

    counter: TokenCounter
    keep_thinking: bool = True

    def encode(self, group: Group) -> Piece:
        """The group as contents of this API."""
        notices: list[str] = []
        said = list(_signed(self._said(group, notices)))
        results = list(returned(group, notices))
        heard = [(found.version, _response(found)) for found in results]
        for found in results:
            heard += _moved(found)
        for other in others(group, notices, answered=bool(results) or not said):
            heard += [(other.version, part_of(part)) for part in other.parts]
        sent = by_role({"model": said, "user": heard}, "model", "parts")
        return piece_of(group, sent, self._scale, notices)

    @property
    def _scale(self) -> Scale:
        return Scale(
            tokens=part_tokens, counter=self.counter, envelope=MESSAGE_TOKENS, kind=kind_of
        )

    def _said(self, group: Group, notices: list[str]) -> Iterator[tuple[int, Json]]:
        for entry in group.placed(Place.RESPONSE):
            part = self._part(entry)
            if part is not None:
                yield entry.version, part
            else:
                notices += self._missed(entry)

    def _missed(self, entry: Entry) -> Iterator[str]:
        """Notices for an entry that is not shown."""
        if isinstance(entry.block, AssistantThinking) and self.keep_thinking:
            if entry.block.provider.get("thought") is not True:
                yield f"thinking that cannot be sent back is not shown: {entry.path}"
        elif verbatim(entry.block) is not None:
            yield f"a block that the provider refuses is not shown: {entry.path}"

    def _part(self, entry: Entry) -> Json | None:
        match entry.block:
            case AssistantThinking() as thinking:
                return _sealed(thinking.provider) if self.keep_thinking else None
            case ToolCall() as call:
                return {**_call(entry, call), **self._signature(call.provider)}
            case AssistantCompletion(text=text) as block if text.strip():
                return {"text": text, **self._signature(block.provider)}
            case OpaqueBlock() as block if (own := _own(block)) is not None:
                return own
            case OpaqueBlock() as block if told(block).strip():
                return {"text": told(block)}
            case _:
                return None

    def _signature(self, known: Json) -> Json:
        found: object = known.get(SIGNATURE)
        return {SIGNATURE: found} if self.keep_thinking and _is_signature(found) else {}


def _is_signature(found: object) -> bool:
    return isinstance(found, str) and bool(found)


def _sealed(own: Json) -> Json | None:
    """A thought as the model sent it; None if it is not signed."""
    if not _is_signature(own.get(SIGNATURE)) or not isinstance(own.get("text"), str):
        return None
    return {name: own[name] for name in ("text", "thought", SIGNATURE) if name in own}


def _signed(said: Iterator[tuple[int, Json]]) -> Iterator[tuple[int, Json]]:
    """The parts, with the replacement value if the first call lacks its signature."""
    is_first = True
    for version, part in said:
        if is_first and "functionCall" in part:
            is_first = False
            yield version, {SIGNATURE: UNSIGNED, **part}
        else:
            yield version, part


def _call(entry: Entry, call: ToolCall) -> Json:
    named = {"id": wire_id(entry.pair), "name": function_name(call.name)}
    return {"functionCall": {**named, "args": call.input}}


def _response(found: Returned) -> Json:
    text = "\n".join(_as_text(part) for part in found.parts)
    call = found.call.block
    name = function_name(call.name) if isinstance(call, ToolCall) else ""
    return {
        "functionResponse": {
            "id": wire_id(found.call.pair),
            "name": name,
            "response": {"error" if found.failed else "output": text},
        }
    }


def _as_text(part: Part) -> str:
    """The text for a part within a response."""
    if isinstance(part, TextPart):
        return part.text
    sent = part_of(part)
    return sent["text"] if "text" in sent else f"{text_of_parts((part,))} {ELSEWHERE}"


def _moved(found: Returned) -> Iterator[tuple[int, Json]]:
    """The parts of a result that are not text, which follow all responses."""
    parts = [part_of(part) for part in found.parts if not isinstance(part, TextPart)]
    moved = [part for part in parts if "text" not in part]
    if moved:
        yield found.version, {"text": f"[from the result of call {wire_id(found.call.pair)}]"}
    yield from ((found.version, part) for part in moved)


def _own(block: OpaqueBlock) -> Json | None:
    """The provider's own part, or None if the provider does not accept it back."""
    own = verbatim(block) or {}
    kind = kind_of(own)
    if not block.tag.startswith(TAG_PREFIX) or kind not in REPLAYED or not own.get(kind):
        return None
    return {name: own[name] for name in (kind, SIGNATURE) if own.get(name)}
