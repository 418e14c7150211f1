"""SQL views over the log, for people: open the database with any program and ask.

    SELECT type, count(*), sum(length(text)) FROM blocks GROUP BY type;
    SELECT * FROM compactions WHERE ratio > 0.5;

They are part of the database and store no data.  A `Words` has a database's own expressions for reading JSON.
`happened_at` is UTC; `key_facts` is a list in DuckDB, and elsewhere a text with a line for each item.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

SUMMARY: Final = (
    ("Original task", "task", None),
    ("Facts", "facts", ()),
    ("Constraints", "constraints", ()),
    ("Decisions", "decisions", ("decision", "reason")),
    ("Completed work", "completed", ("component", "action", "description")),
    ("Tool outcomes", "tool_outcomes", ("tool", "outcome", "detail")),
    ("Artifacts", "artifacts", ("path", "description", "read_when")),
    ("Current state", "state", None),
    ("Plan", "plan", None),
    ("Open items", "open_items", ("priority", "item")),
    ("Errors and their resolution", "errors", ("error", "resolution")),
    ("Turn Context (split turn)", "turn_context", None),
)
"""Sections of a structured summary: title; field; and the fields of its rows: () for texts, None for one text."""


class Words(ABC):
    """SQL expressions of a database; `json` is one, and `path` is a list of names separated by dots."""

    line: ClassVar[str]
    """A line break."""
    events: ClassVar[str] = "events"
    """A relation with the columns `timeline`, `seq`, `id`, `ts` and `kind` of each event."""
    payload: ClassVar[str]
    """The payload of a row of `events`, as JSON."""
    narrow: ClassVar[str] = ""
    """JSON with the type, id and turn of the block in such a row that costs less than its payload; "" if there is
    none."""
    happened: ClassVar[str]
    """The time of such a row, as a timestamp; NULL for a time outside the calendar."""

    @abstractmethod
    def text(self, json: str, path: str) -> str:
        """A value as text; NULL if there is none."""

    @abstractmethod
    def inner(self, json: str, path: str) -> str:
        """A value as JSON; NULL if there is none."""

    @abstractmethod
    def number(self, json: str, path: str) -> str:
        """A whole number; NULL if there is none."""

    def cost(self, json: str, path: str) -> str:
        """A number with a fraction; NULL if there is none."""
        return self.number(json, path)

    @abstractmethod
    def true(self, json: str, path: str) -> str:
        """Whether a value is `true`; never NULL."""

    def whole(self, number: str) -> str:
        """A sum, cast to a whole number."""
        return number

    @abstractmethod
    def length(self, json: str, path: str) -> str:
        """The number of items of a list; NULL if there is none."""

    @abstractmethod
    def lines(self, json: str, path: str, each: str) -> str:
        """A line for each item of a list, in order; NULL if there are none. In `each`, `item` is the item."""

    def facts(self, lists: Sequence[tuple[str, str, str]]) -> str:
        """`each` item at a `path` of `written` if a `condition` is true (or ""), for all these triples: as lines, or as
        a list if the database has lists."""
        texts = (self.lines("written", path, each) for path, each, _ in lists)
        parts = [
            f"CASE WHEN {condition} THEN {text} END" if condition else text
            for text, (*_, condition) in zip(texts, lists, strict=True)
        ]
        return joined(parts, self.line)

    @abstractmethod
    def has(self, json: str, path: str, wanted: str) -> str:
        """Whether a list of texts contains `wanted`."""


def views(words: Words) -> Iterator[tuple[str, str]]:
    """The names and queries of the views."""
    yield "log", _log(words)
    yield "blocks", _blocks(words)
    yield "compactions", _compactions(words)
    yield "requests", _requests(words)
    yield "tool_usage", _tool_usage(words)


def json_path(path: str) -> str:
    """A path as SQLite and DuckDB write it."""
    names = path.split(".") if path else ()
    return "$" + "".join(f"[{name}]" if name.isdecimal() else f".{name}" for name in names)


def joined(parts: Sequence[str], between: str) -> str:
    """Texts joined by `between`; those that are NULL are left out."""
    text = " || ".join(f"coalesce({between} || {part}, '')" for part in parts)
    return f"substr({text}, length({between}) + 1)"


def _log(words: Words) -> str:
    return f"""
SELECT timeline, seq AS version, {words.happened} AS happened_at, kind, id, {words.payload} AS payload
FROM {words.events} events
"""  # noqa: S608 -- constants


def _author(own: str) -> str:
    """SQL for the author of a block, by its `type`; `own` is the block's own author, for unknown types."""
    return f"""CASE WHEN type LIKE 'user.%' THEN 'user'
            WHEN type LIKE 'assistant.%' THEN 'assistant'
            WHEN type IN ('react.tool.call', 'react.note', 'react.plan') THEN 'assistant'
            WHEN type = 'react.tool.result' THEN 'tool'
            WHEN type IN ('turn.header', 'system.message', 'conv.range.summary') THEN 'system'
            ELSE coalesce({own}, '')
       END"""


def _blocks(words: Words) -> str:
    texts = [words.text("block", path) for path in ("text", "provider.thinking", "part.text")]
    parts = words.lines("block", "parts", words.text("item", "text"))
    called = (
        f"CASE WHEN type = 'react.tool.call' THEN {words.text('block', name)} END"
        for name in ("name", "input")
    )
    narrow = f", {words.narrow} AS narrow" if words.narrow else ""
    short = "narrow" if words.narrow else "block"
    return f"""
WITH appended AS (
    SELECT timeline, seq AS version, {words.happened} AS happened_at,
           {words.inner(words.payload, "block")} AS block{narrow}
    FROM {words.events} events WHERE kind = 'BlockAppended'
), told AS (
    SELECT timeline, version, happened_at, {words.text(short, "type")} AS type,
           {words.text(short, "id")} AS id, {words.text(short, "turn")} AS turn, block
    FROM appended
)
SELECT timeline, version, happened_at, type, id, turn,
       {_author(words.text("block", "author"))} AS author,
       {joined([*texts, f"nullif({parts}, '')", *called], words.line)} AS text,
       block
FROM told
"""  # noqa: S608 -- constants


def _section(words: Words, title: str, name: str, fields: tuple[str, ...] | None) -> str:
    """SQL for a section as text, with its title; NULL if it is empty."""
    where = f"summary.{name}"
    if fields is None:
        text = words.text("written", where)
    else:
        columns = [f"nullif({words.text('item', field)}, '')" for field in fields]
        row = joined(columns, "': '") if columns else words.text("item", "")
        text = words.lines("written", where, f"'- ' || {row}")
    return f"'## {title}' || {words.line} || nullif({text}, '')"


def _key_facts(words: Words) -> str:
    each = words.text("item", "")
    did, target = words.text("item", "verb"), f"coalesce(' ' || {words.text('item', 'target')}, '')"
    command = words.text("item", "command")
    result = f"coalesce(': ' || {words.text('item', 'result')}, '')"
    none = "model = ''"  # without a model there are no facts, so the digest is used
    return words.facts(
        [
            ("summary.facts", each, ""),
            ("summary.constraints", each, ""),
            ("summary.decisions", words.text("item", "decision"), ""),
            ("summary.completed", f"'found ' || {words.text('item', 'description')}", none),
            ("digest.findings", f"'found ' || {words.text('item', 'text')}", none),
            ("digest.progress.changes", f"'wrote ' || {words.text('item', 'path')}", none),
            ("digest.actions", f"'did ' || {did} || {target}", none),
            ("digest.progress.checks", f"'checked ' || {command} || {result}", none),
        ]
    )


def _compacted(words: Words) -> str:
    """Compactions, including those that folded nothing, each with the last version of its summary."""

    def number(name: str) -> str:
        return words.number("payload", name)

    cost = f"coalesce({words.cost('payload', 'provenance.cost_usd')}, 0)"
    model = words.text("payload", "provenance.model")
    return f"""
WITH told AS (  -- a compaction is a fold, or the last event of one that folded nothing
    SELECT timeline, version, happened_at, kind, payload, {number("start")} AS start,
           {number("cut")} AS cut, coalesce({number("tokens_before")}, 0) AS tokens_before,
           coalesce({number("tokens_after")}, 0) AS tokens_after
    FROM log WHERE kind IN ('RangeCompacted', 'BlocksHidden')
), replaced AS (
    SELECT timeline, version, {number("compaction")} AS compaction,
           {words.inner("payload", "summary")} AS written, coalesce({model}, '') AS model,
           CASE WHEN {words.true("payload", "redacted")} THEN 0 ELSE {cost} END AS cost_usd
    FROM log WHERE kind = 'SummaryReplaced'
), upgrades AS (
    SELECT timeline, compaction, written, model,
           sum(cost_usd) OVER (PARTITION BY timeline, compaction) AS cost_usd,
           row_number() OVER (PARTITION BY timeline, compaction ORDER BY version DESC) AS newest
    FROM replaced
), compacted AS (
    SELECT t.timeline, t.version, t.happened_at, t.kind, t.payload, t.start, t.cut,
           t.tokens_before, t.tokens_after,
           row_number() OVER (PARTITION BY t.timeline ORDER BY t.version) AS checkpoint,
           coalesce(u.written, {words.inner("t.payload", "summary")}) AS written,
           coalesce(u.model, {words.text("t.payload", "provenance.model")}, '') AS model,
           coalesce({words.cost("t.payload", "provenance.cost_usd")}, 0)
               + coalesce(u.cost_usd, 0) AS cost_usd
    FROM told t
    LEFT JOIN upgrades u ON u.timeline = t.timeline AND u.compaction = t.version AND u.newest = 1
    WHERE t.kind = 'RangeCompacted' OR t.tokens_before > 0
)
"""  # noqa: S608 -- constants


def _compactions(words: Words) -> str:
    sections = [_section(words, *section) for section in SUMMARY]
    restored = words.has("r.payload", "blocks", words.text("c.payload", "hidden.0.block"))
    return f"""
{_compacted(words).strip()}
SELECT timeline, version, happened_at, start, cut,
       CASE WHEN kind = 'BlocksHidden' THEN {words.length("payload", "hidden")}
            ELSE (SELECT count(*) FROM {words.events} b
                  WHERE b.timeline = c.timeline AND b.kind = 'BlockAppended'
                    AND b.seq >= c.start AND b.seq < c.cut)
       END AS blocks,
       CASE WHEN kind = 'RangeCompacted'
            THEN coalesce({words.text("payload", "trigger")}, 'proactive') END AS "trigger",
       tokens_before, tokens_after, 1.0 * tokens_after / nullif(tokens_before, 0) AS ratio,
       cost_usd, model, {words.true("written", "degraded")} AS degraded,
       {_key_facts(words)} AS key_facts,
       EXISTS (SELECT 1 FROM log r
               WHERE r.timeline = c.timeline AND r.version > c.version
                 AND (r.kind = 'RangeExpanded'
                      AND {words.number("r.payload", "compaction")} = c.version
                   OR r.kind = 'BlocksRestored' AND c.kind = 'BlocksHidden' AND {restored}))
           AS undone,
       checkpoint, {joined(sections, f"{words.line} || {words.line}")} AS summary
FROM compacted c
"""  # noqa: S608 -- constants


# Among events of these two kinds, a request and the usage that the provider reported for it are neighbours. Either may
# be missing: a failed request has no usage, and an imported log may have no requests.
def _requests(words: Words) -> str:
    def tokens(name: str) -> str:
        return f"coalesce({words.number('usage', name)}, 0) AS {name}"

    return f"""
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
           CASE WHEN kind = 'RequestRendered' THEN payload END AS request, {tokens("uncached")},
           {tokens("cache_read")}, {tokens("cache_write")}, {tokens("output")}
    FROM sent WHERE kind = 'RequestRendered' OR coalesce(previous, '') <> 'RequestRendered'
)
SELECT timeline, version, happened_at, {words.text("request", "content_hash")} AS content_hash,
       {words.number("request", "tokens")} AS tokens_estimated,
       coalesce({words.length("request", "cache_points")}, 0) AS cache_points,
       usage IS NOT NULL AS answered, coalesce({words.text("usage", "model")}, '') AS model,
       uncached + cache_read + cache_write AS tokens, uncached, cache_read, cache_write, output,
       -- in uncached input tokens, at the usual ratios: read 0.1, 5-minute write 1.25, output 5
       uncached + 0.1 * cache_read + 1.25 * cache_write + 5.0 * output AS cost
FROM counted
"""  # noqa: S608 -- constants


def _tool_usage(words: Words) -> str:
    failed = f"{words.true('block', 'is_error')} OR coalesce({words.text('block', 'envelope.outcome')}, '') = 'failure'"
    return f"""
WITH spoken AS (
    SELECT timeline, version, happened_at, type, {words.text("block", "name")} AS tool,
           {words.text("block", "call_id")} AS call_id, length(text) AS chars,
           CASE WHEN {failed} THEN 1 ELSE 0 END AS failed
    FROM blocks WHERE type IN ('react.tool.call', 'react.tool.result')
), paired AS (  -- call ids repeat in real logs: a result belongs to the latest call before it
    SELECT timeline, version, type, chars, failed,
           max(CASE WHEN type = 'react.tool.call' THEN version END)
               OVER (PARTITION BY timeline, call_id ORDER BY version) AS call
    FROM spoken
), answers AS (
    SELECT timeline, call, count(*) AS results, sum(failed) AS failures, sum(chars) AS chars
    FROM paired WHERE type = 'react.tool.result' AND call IS NOT NULL GROUP BY timeline, call
)
SELECT s.timeline, tool, count(*) AS calls, {words.whole("coalesce(sum(results), 0)")} AS results,
       {words.whole("coalesce(sum(failures), 0)")} AS failures,
       {words.whole("coalesce(sum(a.chars), 0)")} AS result_chars,
       min(happened_at) AS first_at, max(happened_at) AS last_at
FROM spoken s LEFT JOIN answers a ON a.timeline = s.timeline AND a.call = s.version
WHERE s.type = 'react.tool.call' GROUP BY s.timeline, tool
"""  # noqa: S608 -- constants
