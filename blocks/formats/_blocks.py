"""Messages as blocks."""

from collections.abc import Callable, Iterator, Sequence

import attrs
from msgspec.structs import replace

from blocks._block import (
    PROVIDER_TAG,
    AssistantCompletion,
    AssistantThinking,
    Block,
    OpaqueBlock,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserPrompt,
    UserSteer,
)
from blocks._content import (
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
    text_of_parts,
)
from blocks._envelope import Envelope
from blocks._events import UsageRecorded
from blocks._ids import BlockId, CallId, TurnId
from blocks.formats._message import (
    Call,
    Content,
    Message,
    Response,
    Result,
    Said,
    Thought,
    Verbatim,
)


@attrs.frozen(kw_only=True)
class Answer:
    """A response of a model, read."""

    id: str
    """The provider's id of it; empty: it has none."""
    blocks: tuple[Block, ...]
    usage: UsageRecorded | None
    """What it cost; who records it says when, and of which estimate."""


def answer_of(response: Response, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """A response as blocks of one turn.

    A call at the end of an answer that was cut off is discarded: its input may be cut anywhere.
    (Provider documentation: handling stop reasons.)
    """
    content = response.message.content
    if response.is_cut_off and content and isinstance(content[-1], Call):
        content = content[:-1]
    maker = BlockMaker(new_id=new_id, turn=turn)
    blocks = tuple(maker.spoken(attrs.evolve(response.message, content=content)))
    usage = response.usage
    if usage is not None:
        usage = replace(usage, model=response.model, response=response.id)
    return Answer(id=response.id, blocks=blocks, usage=usage)


@attrs.frozen(kw_only=True)
class BlockMaker:
    """Makes blocks of one turn."""

    new_id: Callable[[], BlockId]
    turn: TurnId

    def spoken(self, message: Message) -> Iterator[Block]:
        """What a model said."""
        for content in message.content:
            if isinstance(content, Said | Thought | Call | Verbatim):
                yield self._spoken(content, message.id)

    def _spoken(self, content: Said | Thought | Call | Verbatim, response: str) -> Block:
        own, turn, source = self.new_id(), self.turn, content.source or response
        match content:
            case Said(text=text):
                return AssistantCompletion(
                    id=own,
                    turn=turn,
                    source=source,
                    response=response,
                    text=text,
                    provider=content.provider,
                )
            case Thought(value=value):
                return AssistantThinking(
                    id=own, turn=turn, source=source, response=response, provider=value
                )
            case Call():
                return ToolCall(
                    id=own,
                    turn=turn,
                    source=source,
                    response=response,
                    call_id=CallId(content.call_id),
                    name=content.name or "tool",
                    input=content.input,
                    provider=content.provider,
                )
            case Verbatim(value=value):
                fields = {"id": own, "turn": turn, "author": "assistant", "source": source}
                kind = ".".join(filter(None, (content.vendor, str(value.get("type") or "part"))))
                known = {"response": response, "value": value}
                return OpaqueBlock(f"{PROVIDER_TAG}{kind}", {**fields, **known})

    def words(self, message: Message, kind: type[UserPrompt | UserSteer]) -> Iterator[Block]:
        """What a user said, if it is anything.

        What it begins with is the text, unless that is a picture; all others are parts, as they came: they
        are sent again as so many.
        """
        found = parts_in(message.content)
        text = text_of_parts(found[:1]) if isinstance(next(iter(found), None), TextPart) else ""
        parts = tuple(found[1:] if text else found)
        if text or parts:
            own, source = self.new_id(), message.id
            yield kind(id=own, turn=self.turn, source=source, text=text, parts=parts)

    def told(self, message: Message) -> Iterator[Block]:
        """What a system message in the middle of a history says, if it is anything."""
        text = text_of_parts(parts_in(message.content))
        if text.strip():
            yield SystemMessage(id=self.new_id(), turn=self.turn, source=message.id, text=text)

    def result(self, found: Result, source: str) -> Block:
        """What a tool returned."""
        return ToolResult(
            id=self.new_id(),
            turn=self.turn,
            source=found.source or source,
            call_id=CallId(found.call_id),
            parts=found.parts,
            is_error=found.is_error,
            envelope=Envelope(outcome="failure" if found.is_error else "success"),
        )


def parts_in(content: Sequence[Content]) -> list[Part]:
    """What of a message's content is a part."""
    return [
        part
        for part in content
        if isinstance(part, TextPart | ImagePart | DocumentPart | ProviderPart)
    ]
