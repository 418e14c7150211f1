"""How PostgreSQL is asked about a payload, which lies there as bytes.

As text it has the form `escape`: ASCII as it is, every other byte as three octal digits, so that no payload,
however damaged, is refused.
"""

from typing import Final

from persistence.search._likely import FOLDED_TO_ASCII
from persistence.sql._index import Dialect

_TEXT: Final = "encode(payload, 'escape')"
_AS_IT_IS: Final = "convert_from(payload, 'UTF8')"
PAYLOAD: Final = rf"""CASE WHEN position('\\u0000'::bytea IN payload) > 0
            THEN replace(replace(replace({_AS_IT_IS}, '\\', chr(1)), '\u0000', '\ufffd'), chr(1), '\\')
            ELSE {_AS_IT_IS} END::json"""
"""The payload as JSON; NUL, which PostgreSQL's JSON has not, is shown as U+FFFD."""


def _escaped(text: str) -> str:
    """What `encode(…, 'escape')` makes of a text without backslashes."""
    return "".join(
        letter if letter.isascii() else "".join(f"\\{byte:03o}" for byte in letter.encode())
        for letter in text
    )


def _pattern(run: str) -> str:
    for sign in "|%_":
        run = run.replace(sign, f"|{sign}")
    return f"%{_escaped(run)}%"


_FOLDED: Final = "|".join(_escaped(letter).replace("\\", "\\\\") for letter in FOLDED_TO_ASCII)
_JSON: Final = f"({PAYLOAD})"
_CALL: Final = "position('react.tool.call'::bytea IN payload) > 0"

DIALECT: Final = Dialect(
    holds="position(?::bytea IN payload) > 0",
    holds_any_case=f"{_TEXT} ILIKE ? ESCAPE '|'",
    pattern=_pattern,
    folds=f"{_TEXT} ~ '{_FOLDED}'",
    odd=f"({_CALL} AND {_TEXT} ~ '[0-9]e-{{0,1}}[0-9]|0\\.0000')",
    turn=f"'[' || coalesce(({_JSON} #> '{{block,turn}}')::text, 'null') || ']'",
    is_result=f"({_JSON} #> '{{block,type}}')::text = '\"react.tool.result\"'",
)
