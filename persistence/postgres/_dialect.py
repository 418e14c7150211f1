"""What PostgreSQL writes differently: conditions on payloads, which are stored as bytes, and the views.

As text, a payload has the form `escape`: ASCII as it is, every other byte as three octal digits, so that no payload,
however damaged, is refused.
"""

from typing import ClassVar, Final

from persistence.search._index import FOLDED_STARTS
from persistence.sql._database import Dialect
from persistence.sql._views import Words, views

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
    f"position('\\x{start}'::bytea IN payload) > 0" for start in FOLDED_STARTS
)
"""Whether the payload has a letter that folds to ASCII; a regular expression takes ten times as long."""
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


class _Words(Words):
    line: ClassVar[str] = "chr(10)"
    payload: ClassVar[str] = PAYLOAD
    happened: ClassVar[str] = (
        "CASE WHEN abs(ts) < 1e11 THEN to_timestamp(ts) AT TIME ZONE 'UTC' END"
    )

    def text(self, json: str, path: str) -> str:
        return f"(({json}) #>> '{_at(path)}')"

    def inner(self, json: str, path: str) -> str:
        return f"(({json}) #> '{_at(path)}')"

    def number(self, json: str, path: str) -> str:
        is_one = f"json_typeof({self.inner(json, path)}) = 'number'"
        value = f"{self.text(json, path)}::numeric"
        return f"CASE WHEN {is_one} THEN CASE WHEN abs({value}) < 1e15 THEN {value} END END"

    def true(self, json: str, path: str) -> str:
        return f"coalesce({self.text(json, path)} = 'true', false)"

    def whole(self, number: str) -> str:
        return f"({number})::bigint"

    def length(self, json: str, path: str) -> str:
        return f"CASE WHEN {self._is_list(json, path)} THEN json_array_length({self.inner(json, path)}) END"

    def lines(self, json: str, path: str, each: str) -> str:
        return (
            f"(SELECT string_agg({each}, chr(10) ORDER BY place)"  # noqa: S608 -- constants
            f" FROM json_array_elements({self._list(json, path)}) WITH ORDINALITY AS e(item, place))"
        )

    def has(self, json: str, path: str, wanted: str) -> str:
        there = f"json_array_elements_text({self._list(json, path)})"
        return f"EXISTS (SELECT 1 FROM {there} AS e(item) WHERE item = {wanted})"  # noqa: S608 -- constants

    def _is_list(self, json: str, path: str) -> str:
        return f"json_typeof({self.inner(json, path)}) = 'array'"

    def _list(self, json: str, path: str) -> str:
        return f"CASE WHEN {self._is_list(json, path)} THEN {self.inner(json, path)} END"


def _at(path: str) -> str:
    return "{" + path.replace(".", ",") + "}"


VIEWS: Final = tuple(
    f"CREATE OR REPLACE VIEW {name} WITH (security_invoker = true) AS {query}"
    for name, query in views(_Words())
)
"""SQL that creates the views, and replaces those of another version."""
