"""Turns messages into blocks."""

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
from blocks.formats._client_texts import operator_text
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
    """The blocks and the usage of a model's response."""

    id: str
    """The provider's id of the response; empty if it has none."""
    blocks: tuple[Block, ...]
    usage: UsageRecorded | None
    """The tokens that it used, without time and estimate; None: not reported."""


def answer_of(response: Response, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """A response as blocks of one turn.

    If the response was cut off, a call at its end is discarded, because its input may be incomplete.
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
    """Makes blocks of one turn from messages."""

    new_id: Callable[[], BlockId]
    turn: TurnId

    def spoken(self, message: Message) -> Iterator[Block]:
        """The blocks of a model's message."""
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
        """The block of a user's message; none if it is empty.

        If the first part is text, it becomes the block's text. All other parts stay separate, because they are sent
        again as separate parts.
        """
        found = parts_in(message.content)
        text = text_of_parts(found[:1]) if isinstance(next(iter(found), None), TextPart) else ""
        parts = tuple(found[1:] if text else found)
        if text or parts:
            own, source = self.new_id(), message.id
            yield kind(id=own, turn=self.turn, source=source, text=text, parts=parts)

    def told(self, message: Message) -> Iterator[Block]:
        """The block of an operator's message within a history; none if it is empty."""
        text = text_of_parts(parts_in(message.content))
        if text.strip():
            yield SystemMessage(
                id=self.new_id(),
                turn=self.turn,
                source=message.id,
                text=text,
                role=message.title,
                standing=operator_text(text).standing if message.title else "",
            )

    def result(self, found: Result, source: str) -> Block:
        """The block of a tool's result."""
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
    """The items of a message's content that are parts."""
    return [
        part
        for part in content
        if isinstance(part, TextPart | ImagePart | DocumentPart | ProviderPart)
    ]
