"""What `_asking` says, in SQL: the tables that the view `quality` is made of."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from blocks import EDITOR_TOOLS, TOOL_KINDS, WEB_TOOLS
from persistence import _asking as asking

_UNTOLD: Final = (
    (asking.BLANKS, " "),
    (f"^[{asking.AROUND}]+|[{asking.AROUND}]+$", ""),
    (asking.DOTTED, ""),
    ("(.)/+$", r"\1"),
)
"""What does not matter about a target, and what stands for it."""
_QUESTION: Final = rf"[^{asking.ENDS}]*\?"


def _texts(values: Iterable[str]) -> str:
    """A list of SQL texts."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _lowered(text: str) -> str:
    return f"translate({text}, '{asking.UPPER}', '{asking.LOWER}')"


def _kind() -> str:
    """What a call of `tool` with `input` does, where nobody declared it."""
    known = sorted(TOOL_KINDS.items(), key=lambda item: item[1])
    cases = (
        f"WHEN lower(tool) IN ({_texts(name for name, _ in names)}) THEN '{kind}'"
        for kind, names in groupby(known, key=lambda item: item[1])
    )
    web = " OR ".join(f"starts_with(lower(tool), '{name}')" for name in WEB_TOOLS)
    view = "json_extract_string(input, '$.command') = 'view'"
    return (
        f"CASE WHEN lower(tool) IN ({_texts(sorted(EDITOR_TOOLS))}) AND {view} THEN 'read' "
        f"{' '.join(cases)} WHEN {web} THEN 'web' ELSE 'other' END"
    )


def _integer(path: str) -> str:
    """An argument that is a whole number, as text; else nothing."""
    number = f"TRY_CAST(json_extract_string(input, {path}) AS BIGINT)"
    return (
        f"CASE WHEN json_type(input, {path}) IN ('BIGINT', 'UBIGINT')"
        f" AND abs({number}::HUGEINT) <= {asking.INTEGER_MAX} THEN {number}::VARCHAR END"
    )


def _target(path: str) -> str:
    """An argument that names a target, without what does not matter; else nothing."""
    text = _lowered(f"json_extract_string(input, {path})")
    for pattern, instead in _UNTOLD:
        text = f"regexp_replace({text}, {_texts([pattern])}, {_texts([instead])}, 'g')"
    return (
        f"nullif(CASE WHEN json_type(input, {path}) = 'VARCHAR' THEN {text}"
        f" ELSE {_integer(path)} END, '')"
    )


def _each(names: Iterable[str]) -> str:
    """The targets that several arguments name."""
    paths = (f"'$.{name}'" for name in names)
    return f"concat_ws(',', {', '.join(map(_target, paths))})"


def _words(text: str, but: Iterable[str] = ()) -> str:
    """The words of a text, each once, in the singular."""
    ranges = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in asking.WORD_RANGES)
    found = f"regexp_extract_all({text}, '[a-z0-9{ranges}]{{3,}}')"
    singular = rf"regexp_replace(word, '{asking.PLURAL}', '\1')"
    left_out = _texts(sorted(but)) or "''"
    return f"list_distinct([{singular} FOR word IN {found} IF word NOT IN ({left_out})])"


BEGINNINGS: Final = ", ".join(_integer(f"'$.{name}'") for name in asking.BEGINNINGS)
DECLARED: Final = _target("""('$."' || target || '"')""")
SAID: Final = _lowered(f"left(text, {asking.CHARACTERS_MAX})")
STATED: Final = _words(f"regexp_replace(said, '{_QUESTION}', '', 'g')")

CALLS: Final = f"""
spoken AS (
    SELECT timeline, version, type, turn, id, json_extract_string(block, '$.call_id') AS call_id,
           json_extract_string(block, '$.name') AS tool, json_extract(block, '$.input') AS input,
           json_extract_string(block, '$.envelope.kind') AS kind,
           json_extract_string(block, '$.envelope.target') AS target
    FROM blocks
), declared AS (  -- what a tool said of itself last
    SELECT c.timeline, c.tool, arg_max(r.kind, r.version) AS kind,
           arg_max(coalesce(r.target, ''), r.version) AS target
    FROM (FROM spoken WHERE type = 'react.tool.result') r
    ASOF JOIN (FROM spoken WHERE type = 'react.tool.call') c
      ON r.timeline = c.timeline AND r.call_id = c.call_id AND r.version > c.version
    WHERE r.kind IS NOT NULL
    GROUP BY ALL
), known AS (
    SELECT s.* EXCLUDE (kind, target), coalesce(d.kind, {_kind()}) AS kind,
           CASE WHEN regexp_full_match(d.target, '{asking.ARGUMENT}') THEN d.target END AS target
    FROM spoken s LEFT JOIN declared d USING (timeline, tool)
    WHERE type = 'react.tool.call'
), aimed AS (
    SELECT *, concat_ws(',', {BEGINNINGS}) AS beginnings,
           CASE WHEN kind NOT IN ({_texts(asking.KINDS_ASKING)}) THEN ''
                WHEN target IS NOT NULL THEN coalesce({DECLARED}, '')
                WHEN kind = 'command' THEN {_each(asking.COMMANDS)}
                ELSE {_each(asking.TARGETS)} END AS targets
    FROM known
), calls AS (
    SELECT timeline, version, turn, call_id, tool,
           lag(version) OVER (PARTITION BY timeline, asked ORDER BY version) AS before
    FROM (SELECT *, CASE WHEN targets = '' THEN concat('=', tool, chr(31), input::VARCHAR)
                         ELSE concat(kind, ',', targets, ',', beginnings) END AS asked FROM aimed)
)"""  # noqa: S608 -- constants
"""Each call, with the latest one before it that asked for the same."""

QUESTIONS: Final = f"""
sentences AS (
    SELECT timeline, version, turn, unnest(regexp_extract_all(said, '{_QUESTION}')) AS sentence
    FROM (SELECT *, {SAID} AS said FROM blocks WHERE type = 'assistant.completion')
), questions AS (
    SELECT timeline, version, turn, row_number() OVER () AS number,
           {_words("sentence", asking.COMMON)} AS words
    FROM sentences
    WHERE list_has_any({_words("sentence")}, {_words(f"'{' '.join(sorted(asking.ASKING))}'")})
), answers AS (
    SELECT timeline, version, id, {STATED} AS words
    FROM (SELECT *, {SAID} AS said FROM blocks WHERE type IN ({_texts(asking.SPOKEN)}))
    WHERE timeline IN (SELECT timeline FROM questions)
), answered AS (
    SELECT q.timeline, q.version, q.turn, 'question' AS tool, max(a.version) AS before,
           max(a.version) AS result, arg_max(a.id, a.version) AS block
    FROM questions q JOIN answers a
      ON a.timeline = q.timeline AND a.version < q.version AND list_has_all(a.words, q.words)
    WHERE len(q.words) > 0
    GROUP BY q.timeline, q.version, q.turn, q.number
)"""  # noqa: S608 -- constants
"""Each question of the agent's, with the latest block before it that answers it."""
