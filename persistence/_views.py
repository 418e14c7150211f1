"""SQL views over the log, for people: open the file with any DuckDB and ask.

    SELECT type, count(*), sum(length(text)) FROM blocks GROUP BY type;
    SELECT * FROM compactions WHERE ratio > 0.5;

They are part of the file and hold nothing themselves.  `happened_at` is UTC.
"""

from persistence._large import STANDS_IN
from persistence._quality import QUALITY

WHOLE = f"""
       CASE WHEN {STANDS_IN.replace("payload", "e.payload")}
            THEN CAST((SELECT string_agg(piece, '' ORDER BY number) FROM pieces p
                       WHERE p.timeline = e.timeline AND p.seq = e.seq) AS JSON)
            ELSE e.payload
       END"""  # noqa: S608 -- constants
"""The payload of a row, from its pieces if it is large; costs nothing where it is not asked for."""

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
       CASE WHEN type LIKE 'user.%' THEN 'user'
            WHEN type LIKE 'assistant.%' THEN 'assistant'
            WHEN type IN ('react.tool.call', 'react.note', 'react.plan') THEN 'assistant'
            WHEN type = 'react.tool.result' THEN 'tool'
            WHEN type IN ('turn.header', 'system.message', 'conv.range.summary') THEN 'system'
            ELSE coalesce(json_extract_string(block, '$.author'), '')
       END AS author,
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

COMPACTIONS = """
CREATE VIEW compactions AS
WITH compacted AS (
    SELECT timeline, version, happened_at, payload,
           TRY_CAST(json_extract_string(payload, '$.start') AS BIGINT) AS start,
           TRY_CAST(json_extract_string(payload, '$.cut') AS BIGINT) AS cut,
           coalesce(TRY_CAST(json_extract(payload, '$.tokens_before') AS BIGINT), 0) AS tokens_before,
           coalesce(TRY_CAST(json_extract(payload, '$.tokens_after') AS BIGINT), 0) AS tokens_after
    FROM log WHERE kind = 'RangeCompacted'
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
)
SELECT timeline, version, happened_at, start, cut, f.blocks,
       coalesce(json_extract_string(payload, '$.trigger'), 'proactive') AS trigger,
       tokens_before, tokens_after,
       tokens_after / nullif(tokens_before, 0)::DOUBLE AS ratio,
       coalesce(TRY_CAST(json_extract(payload, '$.provenance.cost_usd') AS DOUBLE), 0) AS cost_usd,
       coalesce(json_extract_string(payload, '$.provenance.model'), '') AS model,
       coalesce(json_extract_string(payload, '$.summary.degraded') = 'true', false) AS degraded,
       json_extract_string(payload, '$.summary.summary.facts[*]') AS key_facts,
       u.version IS NOT NULL AS undone
FROM compacted JOIN folded f USING (timeline, version) LEFT JOIN undone u USING (timeline, version)
"""

# A request and the usage that the provider reported for it are neighbours among the events of
# these two kinds; either may be missing (a request that failed, an imported log).
REQUESTS = """
CREATE VIEW requests AS
WITH sent AS (
    SELECT timeline, version, happened_at, kind, payload,
           lag(kind) OVER neighbours AS previous,
           CASE WHEN kind = 'UsageRecorded' THEN payload
                WHEN lead(kind) OVER neighbours = 'UsageRecorded' THEN lead(payload) OVER neighbours
           END AS usage
    FROM log WHERE kind IN ('RequestRendered', 'UsageRecorded')
    WINDOW neighbours AS (PARTITION BY timeline ORDER BY version)
), counted AS (
    SELECT timeline, version, happened_at, usage,
           CASE WHEN kind = 'RequestRendered' THEN payload END AS request,
           coalesce(TRY_CAST(json_extract(usage, '$.uncached') AS BIGINT), 0) AS uncached,
           coalesce(TRY_CAST(json_extract(usage, '$.cache_read') AS BIGINT), 0) AS cache_read,
           coalesce(TRY_CAST(json_extract(usage, '$.cache_write') AS BIGINT), 0) AS cache_write,
           coalesce(TRY_CAST(json_extract(usage, '$.output') AS BIGINT), 0) AS output
    FROM sent WHERE kind = 'RequestRendered' OR previous IS DISTINCT FROM 'RequestRendered'
)
SELECT timeline, version, happened_at,
       json_extract_string(request, '$.content_hash') AS content_hash,
       TRY_CAST(json_extract(request, '$.tokens') AS BIGINT) AS tokens_estimated,
       coalesce(json_array_length(request, '$.cache_points'), 0) AS cache_points,
       usage IS NOT NULL AS answered,
       coalesce(json_extract_string(usage, '$.model'), '') AS model,
       uncached + cache_read + cache_write AS tokens, uncached, cache_read, cache_write, output,
       -- in uncached input tokens, at the usual ratios: read 0.1, 5-minute write 1.25, output 5
       uncached + 0.1 * cache_read + 1.25 * cache_write + 5.0 * output AS cost
FROM counted
"""

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
