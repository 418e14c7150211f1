"""The SQL view `quality`: signs of whether the prompts had what the agent needed.

    SELECT signal, count(*) FROM quality GROUP BY signal;

`timeline.quality_of` gives the same rows and explains the signals; `_asked` says which calls and questions ask for
the same.
"""

from typing import Final

from persistence.duckdb._asked import CALLS, QUESTIONS

QUALITY: Final = f"""
CREATE VIEW quality AS
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
