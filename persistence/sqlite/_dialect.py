"""SQLite's expressions for payloads, which are stored as bytes."""

from typing import Final

from persistence.search._index import FOLDED_TO_ASCII
from persistence.sql._index import Dialect
from persistence.sqlite._new_turns import NEW_TURNS

_TEXT: Final = "CAST(payload AS TEXT)"
_ODD: Final = ("'*[0-9]e[0-9]*'", "'*[0-9]e-[0-9]*'", "'*0.0000*'")
_FOLDED: Final = " OR ".join(
    f"instr(payload, x'{begin.hex()}') > 0"
    for begin in sorted({letter.encode()[:2] for letter in FOLDED_TO_ASCII})
)
"""Whether the payload has a letter that folds to ASCII: tests the first two bytes; a GLOB class is 50 times slower."""


def _pattern(run: str) -> str:
    for sign in "|%_":
        run = run.replace(sign, f"|{sign}")
    return f"%{run}%"


DIALECT: Final = Dialect(
    holds="instr(payload, ?) > 0",
    holds_any_case=(  # most payloads have only ASCII
        f"({_TEXT} LIKE ? ESCAPE '|' OR length(payload) <> length({_TEXT}) AND ({_FOLDED}))"
    ),
    pattern=_pattern,
    odd=(
        f"({_TEXT} GLOB '*react.tool.call*' AND"
        f" ({' OR '.join(f'{_TEXT} GLOB {number}' for number in _ODD)}))"
    ),
    # With several paths, `json_extract` gives a JSON list; with one path, it would give the value without its type.
    turn=f"json_extract({_TEXT}, '$.block.turn', '$.block.turn')",
    is_result=f"json_extract({_TEXT}, '$.block.type') = 'react.tool.result'",
    new_turns=f"""
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]', '$[1]'), json_extract(value, '$[2]')
FROM json_each((
    SELECT {NEW_TURNS}(seq, payload) FROM events
    WHERE timeline = ? AND seq <= ? AND timeline = ? AND kind = 'BlockAppended'
))
""",  # noqa: S608 -- constants
)
