"""Results of tools, and the envelopes derived for them, because logs of other agents have none."""

import re
from typing import Any, Final

import attrs

from blocks import (
    Determinism,
    Envelope,
    Part,
    TextPart,
    ToolCall,
    default_durability,
    text_of_parts,
    tool_kind,
    written_paths,
)
from blocks.formats import Json

_EXIT: Final = re.compile(
    r"^\W?(?:(?:The )?(?:Process|Command) (?:exited|completed|finished) with (?:exit )?code|Exit code:?)"
    r" (-?\d{1,9})\.?\W?$",
    re.MULTILINE | re.IGNORECASE,
)
_HEAD, _TAIL = 40, 300
"""Characters from the beginning and from the end in which a harness reports the exit code."""


@attrs.frozen(kw_only=True)
class Returned:
    """The result of a tool call, as an importer reads it."""

    parts: tuple[Part, ...] = ()
    is_error: bool = False
    key_fields: Json = attrs.field(factory=dict[str, Any])
    """What the log says beside the content; `envelope` adds what it finds in the call and the text."""
    line: int = 0

    def envelope(self, call: ToolCall, started_at: float, ended_at: float) -> Envelope:
        """The envelope of this result of `call`; a time of 0 is unknown."""
        key_fields = {**_key_fields(call, self.parts), **self.key_fields}
        failed = self.is_error or key_fields.get("exit_code", 0) != 0
        durability = default_durability(call.name, call.input)
        can_verify = durability == "replayable" and not failed
        return Envelope(
            outcome="failure" if failed else "success",
            key_fields=key_fields,
            durability=durability,
            determinism=_mark(self.parts) if can_verify else Determinism(),
            started_at=started_at,
            ended_at=ended_at,
        )


def _key_fields(call: ToolCall, parts: tuple[Part, ...]) -> Json:
    if tool_kind(call.name, call.input) == "command":
        text = text_of_parts(parts)
        found = _EXIT.match(text[:_HEAD].partition("\n")[0]) or _EXIT.search(text[-_TAIL:])
        return {"exit_code": int(found[1])} if found else {}
    match written_paths(call.name, call.input):
        case ():
            return {}
        case (path,):
            return {"path": path}
        case paths:
            return {"paths": list(paths)}


def _mark(parts: tuple[Part, ...]) -> Determinism:
    """The state of a source that returned only text; for other results it stays empty."""
    text = text_of_parts(parts) if all(isinstance(part, TextPart) for part in parts) else ""
    return Determinism.of(text) if text else Determinism()
