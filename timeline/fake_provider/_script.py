"""A script: what the model says, request by request."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import attrs
import msgspec

from blocks import MisuseError
from render import Json
from timeline.fake_provider._fault import Fault
from timeline.fake_provider._reply import Call, Reply
from timeline.fake_provider._responder import Responder
from timeline.fake_provider._summary import summary_reply, wants_summary


class CallLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call of a script file."""

    name: str
    input: dict[str, Any] = {}
    id: str = ""


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer of a script file: a reply, or the name of a fault."""

    thinking: str | None = None
    text: str = ""
    calls: tuple[CallLine, ...] = ()
    stop_reason: str = ""
    delay_seconds: float = 0.0
    fault: str = ""

    def turn(self) -> Reply | Fault:
        """What it says."""
        if self.fault:
            return Fault.named(self.fault)
        return Reply(
            thinking=self.thinking,
            text=self.text,
            calls=[Call(call.name, call.input, call.id) for call in self.calls],
            stop_reason=self.stop_reason,
            delay_seconds=self.delay_seconds,
        )


def _iterator(turns: Iterable[Reply | Fault]) -> Iterator[Reply | Fault]:
    return iter(turns)


@attrs.define
class Script:
    """Plays its answers in order; requests for a summary are answered aside and use none up."""

    turns: Iterator[Reply | Fault] = attrs.field(converter=_iterator)
    end: Reply = attrs.field(default=Reply(text="The script is over."))
    """Said when nothing is left."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """The script of a file: a JSON list of objects.

        Raises:
            MisuseError: it is none.
        """
        try:
            lines = msgspec.json.decode(path.read_bytes(), type=list[Line])
            return cls([line.turn() for line in lines])
        except (MisuseError, msgspec.DecodeError, ValueError) as error:
            raise MisuseError(f"{path} is no script: {error}") from error

    def __call__(self, request: Json) -> Reply | Fault:
        if wants_summary(request):
            return summary_reply(request)
        turn: Reply | Fault = next(self.turns, self.end)
        return turn


def as_responder(given: Responder | Iterable[Reply | Fault]) -> Responder:
    """A list of answers is a script."""
    return given if callable(given) else Script(given)
