"""What a model answered: read, whole or as it comes, and recorded once."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs
from msgspec.structs import replace

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    OpaqueBlock,
    ToolCall,
    TurnId,
)
from blocks.formats import (
    Answer,
    Format,
    answer_of,
    checked_format,
    dumped,
    response_from,
)
from render import PROVIDERS, Provider


@attrs.frozen(kw_only=True)
class Reading:
    """Reads responses into blocks of one turn."""

    provider: Provider
    new_id: Callable[[], BlockId]
    turn: TurnId

    def answer(self, response: object, name: Format | None) -> Answer:
        """A response of a format or, without one, of the provider, with the ids that it came with.

        Raises:
            MisuseError: it is none, or there is no such format.
            CodecError: it holds what cannot be stored.
        """
        provider = self.provider
        if name is not None and checked_format(name, "record()") not in PROVIDERS:
            return answer_of(response_from(response, name), self.new_id, self.turn)
        if name is not None:
            provider = PROVIDERS[name]
            response = dumped(response, f"a response of the format {name!r}")
        answer = provider.read(response, self.new_id, self.turn)
        return attrs.evolve(answer, blocks=tuple(_sourced(b, answer.id) for b in answer.blocks))


def _sourced(block: Block, response: str) -> Block:
    """The block with the id of the item that it was or, where items have none, of the response."""
    if block.source:
        return block
    match block:
        case OpaqueBlock():
            source = _id_in(block.fields.get("value")) or response
            return OpaqueBlock(block.tag, {**block.fields, "source": source}) if source else block
        case AssistantThinking() | AssistantCompletion() | ToolCall():
            return replace(block, source=_id_in(block.provider) or response)
        case _:
            return replace(block, source=response)


def _id_in(value: object) -> str:
    found: object = cast("Mapping[str, Any]", value).get("id") if isinstance(value, Mapping) else ""
    return found if isinstance(found, str) else ""
