"""SQL views over the log, for people: open the file with any DuckDB and ask.

    SELECT type, count(*), sum(length(text)) FROM blocks GROUP BY type;
    SELECT * FROM compactions WHERE ratio > 0.5;

They are part of the file and store no data.  `happened_at` is UTC.
"""

from collections.abc import Iterator
from hashlib import sha256

from persistence.duckdb._large_events import STANDS_IN
from persistence.duckdb._quality_view import QUALITY
from persistence.sql._views import author, requests

WHOLE = f"""
       CASE WHEN {STANDS_IN.replace("payload", "e.payload")}
            THEN CAST((SELECT string_agg(piece, '' ORDER BY number) FROM pieces p
                       WHERE p.timeline = e.timeline AND p.seq = e.seq) AS JSON)
            ELSE e.payload
       END"""  # noqa: S608 -- constants
"""The payload of a row, put together from pieces if it is large; computed only if a query selects it."""

LOG = f"""
CREATE VIEW log AS
SELECT t.name AS timeline, e.seq AS version,
       make_timestamp(TRY_CAST(e.ts * 1000000 AS BIGINT)) AS happened_at,
       json_extract_string(e.payload, '$.event') AS kind,
       json_extract_string(e.payload, '$.id') AS id,
       {WHOLE} AS payload
FROM events e JOIN timelines t USING (timeline)
"""  # noqa: S608 -- constants

BLOCKS = f"""
CREATE VIEW blocks AS
WITH appended AS (
    SELECT t.name AS timeline, e.seq AS version,
           make_timestamp(TRY_CAST(e.ts * 1000000 AS BIGINT)) AS happened_at,
           json_extract_string(e.payload, '$.block.type') AS type,
           json_extract_string(e.payload, '$.block.id') AS id,
           json_extract_string(e.payload, '$.block.turn') AS turn,
           json_extract({WHOLE}, '$.block') AS block
    FROM events e JOIN timelines t USING (timeline)
    WHERE json_extract_string(e.payload, '$.event') = 'BlockAppended'
)
SELECT timeline, version, happened_at, type, id, turn,
       {author("json_extract_string(block, '$.author')")} AS author,
       concat_ws(chr(10),
           json_extract_string(block, '$.text'),
           json_extract_string(block, '$.provider.thinking'),
           json_extract_string(block, '$.part.text'),
           nullif(array_to_string(json_extract_string(block, '$.parts[*].text'), chr(10)), ''),
           CASE WHEN type = 'react.tool.call' THEN json_extract_string(block, '$.name') END,
           CASE WHEN type = 'react.tool.call' THEN json_extract_string(block, '$.input') END
       ) AS text,
       block
FROM appended
"""  # noqa: S608 -- constants

SUMMARY = (
    ("Original task", "task", ""),
    ("Facts", "facts[*]", ""),
    ("Constraints", "constraints[*]", ""),
    ("Decisions", "decisions[*]", "decision reason"),
    ("Completed work", "completed[*]", "component action description"),
    ("Tool outcomes", "tool_outcomes[*]", "tool outcome detail"),
    ("Artifacts", "artifacts[*]", "path description read_when"),
    ("Current state", "state", ""),
    ("Plan", "plan", ""),
    ("Open items", "open_items[*]", "priority item"),
    ("Errors and their resolution", "errors[*]", "error resolution"),
    ("Turn Context (split turn)", "turn_context", ""),
)
"""Sections of a structured summary: title, path in the JSON, and the fields of a row (empty: the row is text)."""


def _section(title: str, path: str, fields: str) -> str:
    """SQL for a section as text, with its title; NULL if it is empty."""
    where = f"'$.summary.{path}'"
    if not path.endswith("[*]"):
        text = f"json_extract_string(written, {where})"
    else:
        rows = f"json_extract{'' if fields else '_string'}(written, {where})"
        values = (f"nullif(json_extract_string(row, '$.{field}'), '')" for field in fields.split())
        row = f"concat_ws(': ', {', '.join(values)})" if fields else "row"
        text = f"array_to_string(['- ' || {row} FOR row IN {rows}], chr(10))"
    return f"'## {title}' || chr(10) || nullif({text}, '')"


SUMMARY_TEXT = f"concat_ws(chr(10) || chr(10), {', '.join(_section(*row) for row in SUMMARY)})"
KEY_FACTS = """
       list_concat(json_extract_string(written, '$.summary.facts[*]'),
           json_extract_string(written, '$.summary.constraints[*]'),
           json_extract_string(written, '$.summary.decisions[*].decision'),
           CASE WHEN model <> '' THEN [] ELSE list_concat(  -- nobody wrote any: what is known
               ['found ' || json_extract_string(work, '$.description')
                FOR work IN json_extract(written, '$.summary.completed[*]')],
               ['wrote ' || path
                FOR path IN json_extract_string(written, '$.digest.files_written[*]')],
               ['ran ' || json_extract_string(ran, '$.command') || ' -> '
                || coalesce(json_extract_string(ran, '$.status'), '')
                FOR ran IN json_extract(written, '$.digest.commands[*]')],
               ['failed ' || error
                FOR error IN json_extract_string(written, '$.digest.errors[*]')]) END)"""

COMPACTIONS = f"""
CREATE VIEW compactions AS
WITH told AS (  -- a compaction is a fold, or the last event of one that folded nothing
    SELECT timeline, version, happened_at, kind, payload,
           TRY_CAST(json_extract_string(payload, '$.start') AS BIGINT) AS start,
           TRY_CAST(json_extract_string(payload, '$.cut') AS BIGINT) AS cut,
           coalesce(TRY_CAST(json_extract(payload, '$.tokens_before') AS BIGINT), 0) AS tokens_before,
           coalesce(TRY_CAST(json_extract(payload, '$.tokens_after') AS BIGINT), 0) AS tokens_after
    FROM log WHERE kind IN ('RangeCompacted', 'BlocksHidden')
), upgrades AS (
    SELECT timeline, TRY_CAST(json_extract_string(payload, '$.compaction') AS BIGINT) AS version,
           arg_max(json_extract(payload, '$.summary'), version) AS written,
           sum(CASE WHEN json_extract_string(payload, '$.redacted') = 'true' THEN 0
                    ELSE coalesce(TRY_CAST(json_extract(payload, '$.provenance.cost_usd') AS DOUBLE), 0)
               END) AS cost_usd,
           arg_max(coalesce(json_extract_string(payload, '$.provenance.model'), ''), version)
               AS model
    FROM log WHERE kind = 'SummaryReplaced' GROUP BY ALL
), compacted AS (
    SELECT t.*, row_number() OVER (PARTITION BY t.timeline ORDER BY t.version) AS checkpoint,
           coalesce(u.written, json_extract(payload, '$.summary')) AS written,
           coalesce(u.model, json_extract_string(payload, '$.provenance.model'), '') AS model,
           coalesce(TRY_CAST(json_extract(payload, '$.provenance.cost_usd') AS DOUBLE), 0)
               + coalesce(u.cost_usd, 0) AS cost_usd
    FROM told t LEFT JOIN upgrades u USING (timeline, version)
    WHERE kind = 'RangeCompacted' OR tokens_before > 0
), folded AS (
    SELECT c.timeline, c.version, count(b.version) AS blocks
    FROM compacted c LEFT JOIN log b
      ON b.timeline = c.timeline AND b.kind = 'BlockAppended'
     AND b.version >= c.start AND b.version < c.cut
    GROUP BY ALL
), undone AS (
    SELECT DISTINCT timeline,
           TRY_CAST(json_extract_string(payload, '$.compaction') AS BIGINT) AS version
    FROM log WHERE kind = 'RangeExpanded'
    UNION
    SELECT c.timeline, c.version
    FROM compacted c JOIN log r
      ON r.timeline = c.timeline AND r.version > c.version AND r.kind = 'BlocksRestored'
     AND list_contains(json_extract_string(r.payload, '$.blocks[*]'),
                       json_extract_string(c.payload, '$.hidden[0].block'))
    WHERE c.kind = 'BlocksHidden'
)
SELECT timeline, version, happened_at, start, cut,
       CASE WHEN kind = 'BlocksHidden' THEN json_array_length(payload, '$.hidden')
            ELSE f.blocks END AS blocks,
       CASE WHEN kind = 'RangeCompacted'
            THEN coalesce(json_extract_string(payload, '$.trigger'), 'proactive') END AS trigger,
       tokens_before, tokens_after,
       tokens_after / nullif(tokens_before, 0)::DOUBLE AS ratio, cost_usd, model,
       coalesce(json_extract_string(written, '$.degraded') = 'true', false) AS degraded,
       {KEY_FACTS} AS key_facts,
       u.version IS NOT NULL AS undone,
       checkpoint, {SUMMARY_TEXT} AS summary
FROM compacted JOIN folded f USING (timeline, version) LEFT JOIN undone u USING (timeline, version)
"""  # noqa: S608 -- constants


class _Words:
    """SQL expressions for fields of a JSON column."""

    def text(self, json: str, path: str) -> str:
        return f"json_extract_string({json}, '$.{path}')"

    def number(self, json: str, path: str) -> str:
        return f"TRY_CAST(json_extract({json}, '$.{path}') AS BIGINT)"

    def length(self, json: str, path: str) -> str:
        return f"json_array_length({json}, '$.{path}')"


REQUESTS = f"CREATE VIEW requests AS{requests(_Words())}"

TOOL_USAGE = """
CREATE VIEW tool_usage AS
WITH calls AS (
    SELECT timeline, version, happened_at, json_extract_string(block, '$.name') AS tool,
           json_extract_string(block, '$.call_id') AS call_id
    FROM blocks WHERE type = 'react.tool.call'
), results AS (
    SELECT timeline, version, length(text) AS chars, json_extract_string(block, '$.call_id') AS call_id,
           coalesce(json_extract_string(block, '$.is_error') = 'true', false)
               OR coalesce(json_extract_string(block, '$.envelope.outcome') = 'failure', false)
               AS failed
    FROM blocks WHERE type = 'react.tool.result'
), answers AS (  -- call ids repeat in real logs: a result belongs to the latest call before it
    SELECT c.timeline, c.version, count(*) AS results, count_if(failed) AS failures,
           sum(chars) AS chars
    FROM results r ASOF JOIN calls c
      ON r.timeline = c.timeline AND r.call_id = c.call_id AND r.version > c.version
    GROUP BY ALL
)
SELECT timeline, tool, count(*) AS calls, coalesce(sum(results), 0)::BIGINT AS results,
       coalesce(sum(failures), 0)::BIGINT AS failures, coalesce(sum(chars), 0)::BIGINT AS result_chars,
       min(happened_at) AS first_at, max(happened_at) AS last_at
FROM calls LEFT JOIN answers USING (timeline, version)
GROUP BY timeline, tool
"""

ALL = (LOG, BLOCKS, COMPACTIONS, REQUESTS, TOOL_USAGE, QUALITY)

MARK = sha256("".join(ALL).encode()).hexdigest()[:16]
"""A hash that differs if another version created the views of a file."""
CURRENT = "SELECT comment FROM duckdb_views() WHERE view_name = 'quality' AND NOT internal"


def statements() -> Iterator[str]:
    """SQL that creates the views, and replaces those of another version."""
    for view in ALL:
        yield view.replace("CREATE VIEW", "CREATE OR REPLACE VIEW")
    yield f"COMMENT ON VIEW quality IS '{MARK}'"
