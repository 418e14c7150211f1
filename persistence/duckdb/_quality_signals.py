"""The SQL view `quality`: signs of whether the prompts had what the agent needed; only DuckDB has it.

    SELECT signal, count(*) FROM quality GROUP BY signal;

`timeline.quality_of` gives the same rows and explains the signals.  Some of them are about calls and questions that
ask for the same, which is decided by normal forms, in SQL:

    calls   two calls ask for the same if they read, search, fetch or run the same: the same kind
            of tool, and the same targets; differences in case, blanks, quotes, a leading `./`, a trailing `/`
            and detours in a path (`a//b`, `a/./b`, `c/../a`) are ignored. A part of a file, given by its
            beginning, is a target of its own. All other calls need the same arguments, in any order, with
            differences in blanks and paths ignored; arguments of a write must be identical.
    texts   a sentence that ends in a question mark and has a word like `what` or `remind` is a
            question; a text answers it if it has all its significant words, not counting questions in it.
            Words of three letters and more are significant, except the most common ones.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final, TypeAlias

from blocks import EDITOR_TOOLS, TOOL_KINDS, WEB_TOOLS, Recorded
from persistence._log import store_event

QualityRow: TypeAlias = tuple[str, int, str, str]
"""Signal, version, turn, detail."""
ROWS: Final = "SELECT signal, version, turn, detail FROM quality ORDER BY version, signal, detail"


def quality_rows(events: Iterable[Recorded]) -> list[QualityRow]:
    """The rows of the view `quality` for one log, by version; `events` are the whole log or its beginning.

    Raises:
        CodecError: an event has a value that cannot be encoded.
    """
    import duckdb

    from persistence.duckdb._dialect import VIEWS
    from persistence.duckdb._file import OPTIONS, interrupts
    from persistence.duckdb._tables import TABLES

    stored = ((version, store_event(event)) for version, event in events)
    rows = [(1, version, event.at, event.data.decode(), 0) for version, event in stored]  # no link
    with interrupts(), duckdb.connect(config=OPTIONS) as connection:
        for statement in (*TABLES, *VIEWS):
            connection.execute(statement)
        connection.execute("INSERT INTO timelines VALUES (1, '')")
        appender = connection.appender("events")
        appender.append_rows(rows)
        appender.flush()
        return connection.execute(ROWS).fetchall()


_KINDS_ASKING: Final = ("read", "search", "web", "command")
_COMMANDS: Final = ("cmd", "command")
_TARGETS: Final = ("pattern", "query", "url", "file_path", "path", "filename", "notebook_path")
"""Arguments that name the target of a call: of commands, and of the other kinds in `_KINDS_ASKING`."""
_BEGINNINGS: Final = ("offset", "start_line", "start", "line", "page")
"""Arguments that say which part of the target is requested."""
_ARGUMENT: Final = "[A-Za-z_][A-Za-z0-9_-]*"
"""A regular expression: the names that a declared target may have."""
_AROUND: Final = " \"'`"
_BLANKS: Final = (r"[ \t\n\r\f\x0b]+", " ")
_WAYS: Final = (
    ("/(\\./|/)+", "/"),
    (r"(^|/)[^/. ][^/ ]*/\.\./", r"\1"),
    (r"^(\./)+|^\.$", ""),
    ("(.)/+$", r"\1"),
)
_UNTOLD: Final = (_BLANKS, (f"^[{_AROUND}]+|[{_AROUND}]+$", ""), *_WAYS)
"""Differences that two equal targets may have: a regular expression and its replacement for each."""
_UNTOLD_ELSEWHERE: Final = (_BLANKS, ("^ | $", ""), *_WAYS)
"""The same for the arguments of calls of all other kinds."""
_INTEGER_MAX: Final = 2**63 - 1

_CHARACTERS_MAX: Final = 20_000
"""How many characters of a text are examined."""
_QUESTION: Final = r"[^.!?\n]*\?"
_WORD: Final = r"[a-z0-9\x{C0}-\x{1FFF}\x{2C00}-\x{2DFF}\x{3040}-\x{D7FF}\x{F900}-\x{FDFF}]{3,}"
_ASKING: Final = "what which who whose whom where when why how remind again repeat resend recall"
_COMMON: Final = """about after all also and any are been before being both but can could did does doing done
    each excuse else ever every for from had has have having her hers him his into its just know let like
    look may maybe might mine more most much must need needs next not now off one only other our out
    over own please same shall she should some sorry such sure tell than thank thanks that the their them
    then there these they thing this those through too under until use used user using very want was
    way well were while will with within without would yes yet you your yours"""
"""Words, besides those of `_ASKING`, that do not tell what a question is about."""
_SPOKEN: Final = (
    "user.prompt", "user.followup", "user.steer", "user.attachment", "react.tool.result",
    "assistant.completion",
)  # fmt: skip
"""Types of blocks that can answer a question."""


def _texts(values: Iterable[str]) -> str:
    """SQL string literals, separated by commas."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _kind() -> str:
    """SQL for the kind of a call of `tool` with `input`, if the tool has not declared one."""
    tools = sorted(TOOL_KINDS.items(), key=lambda item: item[1])
    cases = (
        f"WHEN lower(tool) IN ({_texts(name for name, _ in names)}) THEN '{kind}'"
        for kind, names in groupby(tools, key=lambda item: item[1])
    )
    web = " OR ".join(f"starts_with(lower(tool), '{name}')" for name in WEB_TOOLS)
    view = "json_extract_string(input, '$.command') = 'view'"
    return (
        f"CASE WHEN lower(tool) IN ({_texts(sorted(EDITOR_TOOLS))}) AND {view} THEN 'read' "
        f"{' '.join(cases)} WHEN {web} THEN 'web' ELSE 'other' END"
    )


def _integer(path: str) -> str:
    """SQL for an argument as text if it is a whole number, else NULL."""
    number = f"TRY_CAST(json_extract_string(input, {path}) AS BIGINT)"
    return (
        f"CASE WHEN json_type(input, {path}) IN ('BIGINT', 'UBIGINT')"
        f" AND abs({number}::HUGEINT) <= {_INTEGER_MAX} THEN {number}::VARCHAR END"
    )


def _target(path: str) -> str:
    """SQL for an argument that names a target, normalized; NULL if it is neither text nor a whole number."""
    text = _without(_UNTOLD, f"lower(json_extract_string(input, {path}))")
    return (
        f"nullif(CASE WHEN json_type(input, {path}) = 'VARCHAR' THEN {text}"
        f" ELSE {_integer(path)} END, '')"
    )


def _without(untold: Iterable[tuple[str, str]], text: str) -> str:
    """SQL for a text in which each pattern is replaced."""
    for pattern, instead in untold:
        text = f"regexp_replace({text}, {_texts([pattern])}, {_texts([instead])}, 'g')"
    return text


def _each(names: Iterable[str]) -> str:
    """SQL for the targets in several arguments, separated by commas."""
    paths = (f"'$.{name}'" for name in names)
    return f"concat_ws(',', {', '.join(map(_target, paths))})"


def _words(text: str, but: Iterable[str] = ()) -> str:
    """SQL for the list of the distinct words of a text, in the singular, except the words `but`."""
    words = f"regexp_extract_all({text}, '{_WORD}')"
    singular = r"regexp_replace(word, '(..)s$', '\1')"
    left_out = _texts(sorted(but)) or "''"
    return f"list_distinct([{singular} FOR word IN {words} IF word NOT IN ({left_out})])"


BEGINNINGS: Final = ", ".join(_integer(f"'$.{name}'") for name in _BEGINNINGS)
DECLARED: Final = _target("""('$."' || target || '"')""")
TEXT_START: Final = f"lower(left(text, {_CHARACTERS_MAX}))"
_SAID_ELSEWHERE: Final = _without(_UNTOLD_ELSEWHERE, "atom ->> '$'")
ARGUMENTS: Final = f"""(
    SELECT string_agg(concat(fullkey, ' ', type, ' ', CASE WHEN kind = 'write' THEN atom ->> '$'
                             ELSE {_SAID_ELSEWHERE} END), chr(31) ORDER BY fullkey)
    FROM json_tree(input) WHERE atom IS NOT NULL)"""  # noqa: S608 -- constants
"""SQL for all arguments of a call, each after its path, ordered by path."""
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
           CASE WHEN regexp_full_match(d.target, '{_ARGUMENT}') THEN d.target END AS target
    FROM spoken s LEFT JOIN declared d USING (timeline, tool)
    WHERE type = 'react.tool.call'
), aimed AS (
    SELECT *, concat_ws(',', {BEGINNINGS}) AS beginnings,
           CASE WHEN kind NOT IN ({_texts(_KINDS_ASKING)}) THEN ''
                WHEN target IS NOT NULL THEN coalesce({DECLARED}, '')
                WHEN kind = 'command' THEN {_each(_COMMANDS)}
                ELSE {_each(_TARGETS)} END AS targets
    FROM known
), calls AS (
    SELECT timeline, version, turn, call_id, tool,
           lag(version) OVER (PARTITION BY timeline, asked ORDER BY version) AS before
    FROM (SELECT *, CASE WHEN targets = '' THEN concat('=', tool, chr(31), {ARGUMENTS})
                         ELSE concat(kind, ',', targets, ',', beginnings) END AS asked FROM aimed)
)"""  # noqa: S608 -- constants
"""Each call, with the version of the latest earlier call that asked for the same."""

QUESTIONS: Final = f"""
sentences AS (
    SELECT timeline, version, turn, unnest(regexp_extract_all(said, '{_QUESTION}')) AS sentence
    FROM (SELECT *, {TEXT_START} AS said FROM blocks WHERE type = 'assistant.completion')
), questions AS (
    SELECT timeline, version, turn, row_number() OVER () AS number,
           {_words("sentence", f"{_ASKING} {_COMMON}".split())} AS words
    FROM sentences
    WHERE list_has_any({_words("sentence")}, {_words(f"'{_ASKING}'")})
), answers AS (
    SELECT timeline, version, id, {STATED} AS words
    FROM (SELECT *, {TEXT_START} AS said FROM blocks WHERE type IN ({_texts(_SPOKEN)}))
    WHERE timeline IN (SELECT timeline FROM questions)
), answered AS (
    SELECT q.timeline, q.version, q.turn, 'question' AS tool, max(a.version) AS before,
           max(a.version) AS result, arg_max(a.id, a.version) AS block
    FROM questions q JOIN answers a
      ON a.timeline = q.timeline AND a.version < q.version AND list_has_all(a.words, q.words)
    WHERE len(q.words) > 0
    GROUP BY q.timeline, q.version, q.turn, q.number
)"""  # noqa: S608 -- constants
"""Each question in a completion, with the version of the latest earlier block that answers it."""

QUALITY: Final = f"""
WITH {CALLS.strip()}, {QUESTIONS.strip()}, results AS (  -- call ids repeat in real logs: a result belongs to the latest call before it
    SELECT r.timeline, r.version, r.id, c.version AS call
    FROM (FROM spoken WHERE type = 'react.tool.result') r ASOF JOIN calls c
      ON r.timeline = c.timeline AND r.call_id = c.call_id AND r.version > c.version
), repeated AS (  -- with the newest result that the earlier call had when it was repeated
    SELECT c.timeline, c.version, c.turn, c.tool, c.before, max(r.version) AS result,
           arg_max(r.id, r.version) AS block
    FROM calls c JOIN results r
      ON r.timeline = c.timeline AND r.call = c.before AND r.version < c.version
    GROUP BY ALL
    UNION
    FROM answered
), folds AS (
    SELECT c.timeline, c.version, c.ref AS cut, min(x.version) AS undone
    FROM (SELECT timeline, version, kind,
                 TRY_CAST(json_extract(payload, '$.cut') AS BIGINT) AS ref
          FROM log WHERE kind = 'RangeCompacted') c
    LEFT JOIN (SELECT timeline, version,
                      TRY_CAST(json_extract(payload, '$.compaction') AS BIGINT) AS ref
               FROM log WHERE kind = 'RangeExpanded') x
      ON x.timeline = c.timeline AND x.ref = c.version AND x.version > c.version
    GROUP BY ALL
), hides AS (
    SELECT timeline, version, unnest(json_extract_string(payload, '$.hidden[*].block')) AS block,
           json_extract_string(payload, '$.reason') AS reason
    FROM log WHERE kind = 'BlocksHidden'
    UNION ALL
    SELECT timeline, version, unnest(json_extract_string(payload, '$.blocks[*]')), 'requested'
    FROM log WHERE kind = 'BlocksRestored'
), folded AS (  -- the cut in force when it was repeated
    SELECT r.timeline, r.version, r.before, arg_max(f.cut, f.version) AS cut
    FROM repeated r JOIN folds f
      ON f.timeline = r.timeline AND f.version < r.version
     AND (f.undone IS NULL OR f.undone > r.version)
    GROUP BY ALL
), hidden AS (  -- and the latest that was said about the result
    SELECT r.timeline, r.version, r.before, arg_max(h.reason, h.version) AS reason
    FROM repeated r JOIN hides h
      ON h.timeline = r.timeline AND h.block = r.block AND h.version < r.version
    GROUP BY ALL
), rewritten AS (
    SELECT timeline, min(version) AS version FROM log
    WHERE kind = 'RangeCompacted'
       OR kind = 'BlocksHidden'
      AND json_extract_string(payload, '$.reason') NOT IN ('requested', 'unsigned')
    GROUP BY timeline
), ends AS (
    SELECT timeline, turn, max(version) AS version, arg_max(type, version) AS type
    FROM spoken
    WHERE type IN ('assistant.completion', 'assistant.thinking', 'react.tool.call')
    GROUP BY timeline, turn
), unanswered AS (
    SELECT DISTINCT timeline, turn
    FROM calls c ANTI JOIN results r ON r.timeline = c.timeline AND r.call = c.version
)
SELECT timeline, 'asked_again' AS signal, version, turn,
       concat(tool, ', as at ', before) AS detail
FROM repeated LEFT JOIN folded USING (timeline, version, before)
LEFT JOIN hidden USING (timeline, version, before)
WHERE coalesce(result < cut, false)
   OR coalesce(reason, 'requested') NOT IN ('requested', 'unsigned')
UNION ALL
SELECT c.timeline, 'explicit_read', c.version, c.turn, c.tool
FROM calls c JOIN rewritten w ON w.timeline = c.timeline AND w.version < c.version
WHERE regexp_matches(c.tool, '(^|[^A-Za-z0-9])read_(timeline|artifact)$')
UNION ALL
SELECT q.timeline, 'rehydrated', q.version, coalesce(b.turn, ''),
       array_to_string(json_extract_string(q.payload, '$.rehydrated[*]'), ' ')
FROM (FROM log WHERE kind = 'RequestRendered'
         AND coalesce(json_array_length(payload, '$.rehydrated'), 0) > 0) q
ASOF LEFT JOIN spoken b ON b.timeline = q.timeline AND b.version < q.version
UNION ALL
SELECT timeline, 'task_end', version, turn,
       CASE WHEN type = 'assistant.completion' AND u.turn IS NULL THEN 'completed'
            ELSE 'unfinished' END
FROM ends LEFT JOIN unanswered u USING (timeline, turn)
"""  # noqa: S608 -- constants
