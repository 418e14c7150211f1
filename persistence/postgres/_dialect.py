"""PostgreSQL's expressions for payloads, which are stored as bytes.

As text it has the form `escape`: ASCII as it is, every other byte as three octal digits, so that no payload,
however damaged, is refused.
"""

from typing import Final

from persistence.search._index import FOLDED_TO_ASCII
from persistence.sql._index import Dialect

_TEXT: Final = "encode(payload, 'escape')"
_LOWER: Final = f'lower({_TEXT} COLLATE "C")'
"""Lowers only A to Z; ILIKE takes twice as long."""
_AS_IT_IS: Final = "convert_from(payload, 'UTF8')"
PAYLOAD: Final = rf"""CASE WHEN position('\\u0000'::bytea IN payload) > 0
            THEN replace(replace(replace({_AS_IT_IS}, '\\', chr(1)), '\u0000', '\ufffd'), chr(1), '\\')
            ELSE {_AS_IT_IS} END::json"""
"""The payload as JSON. PostgreSQL's JSON cannot have NUL, so it is shown as U+FFFD."""


def _escaped(text: str) -> str:
    """What `encode(…, 'escape')` returns for a text without backslashes."""
    return "".join(
        letter if letter.isascii() else "".join(f"\\{byte:03o}" for byte in letter.encode())
        for letter in text
    )


def _pattern(run: str) -> str:
    run = _escaped(run.lower()).replace("\\", "\\\\")
    for sign in "%_":
        run = run.replace(sign, f"\\{sign}")
    return f"%{run}%"


_FOLDED: Final = " OR ".join(
    f"position('\\x{begin.hex()}'::bytea IN payload) > 0"
    for begin in sorted({letter.encode()[:2] for letter in FOLDED_TO_ASCII})
)
"""Whether the payload has a letter that folds to ASCII: tests its first two bytes; a regular expression takes ten times
as long."""
_NOT_ASCII: Final = r"%\\3%"
"""A LIKE pattern for letters outside ASCII: each begins with a byte from C2 on, in octal digits `\\3..`."""
_JSON: Final = f"({PAYLOAD})"
_CALL: Final = "position('react.tool.call'::bytea IN payload) > 0"
_TURN: Final = f"'[' || coalesce(({_JSON} #> '{{block,turn}}')::text, 'null') || ']'"
_IS_RESULT: Final = f"({_JSON} #> '{{block,type}}')::text = '\"react.tool.result\"'"

DIALECT: Final = Dialect(
    holds="position(?::bytea IN payload) > 0",
    holds_any_case=(  # most payloads have only ASCII, so the first test decides
        f"({_LOWER} LIKE ANY (ARRAY[?, '{_NOT_ASCII}']) AND ({_LOWER} LIKE ? OR {_FOLDED}))"
    ),
    pattern=_pattern,
    odd=f"({_CALL} AND {_TEXT} ~ '[0-9]e-{{0,1}}[0-9]|0\\.0000')",
    turn=_TURN,
    is_result=_IS_RESULT,
    # OFFSET 0 keeps the planner from sorting whole payloads by turn.
    new_turns=f"""
WITH new AS (
    SELECT turn, min(seq) AS seq FROM (
        SELECT seq, {_TURN} AS turn FROM events
        WHERE timeline = ? AND seq <= ? AND kind = 'BlockAppended' OFFSET 0
    ) AS blocks GROUP BY turn
)
SELECT seq, turn, CASE WHEN {_IS_RESULT} THEN 1 ELSE 0 END
FROM new JOIN events USING (seq) WHERE timeline = ? ORDER BY seq
""",  # noqa: S608 -- constants
)
