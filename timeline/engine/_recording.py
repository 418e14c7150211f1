"""What a model answered: read, whole or as it comes, and recorded once."""

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
        return provider.read(response, self.new_id, self.turn)
