"""Reading a model's response, whole or streamed, to record it once."""

from collections.abc import Callable

import attrs

from blocks import BlockId, TurnId
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
        """Read a response with its own ids, in the format `name` or, if this is None, in the provider's format.

        Raises:
            MisuseError: it is not a response of this format, or there is no such format.
            CodecError: the response holds a value that cannot be stored.
        """
        provider = self.provider
        if name is not None and checked_format(name, "record()") not in PROVIDERS:
            return answer_of(response_from(response, name), self.new_id, self.turn)
        if name is not None:
            provider = PROVIDERS[name]
            response = dumped(response, f"a response of the format {name!r}")
        return provider.read(response, self.new_id, self.turn)
