"""Makes DuckDB files of any size; the database itself copies a thousand events of the material."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import duckdb

from benchmarks.logs import NAME, history
from blocks import encode_event
from persistence import DuckDBStore
from persistence._log import chain_start, chain_step, content_hash

LARGE: Final = 4_000
"""Events larger than this many bytes are left out, since here only the number matters."""
PAGE: Final = 50_000
MATERIAL: Final = "CREATE TEMP TABLE material(number BIGINT, text VARCHAR)"
ADD_MATERIAL: Final = "INSERT INTO material SELECT unnest(?), unnest(?)"
NAMES: Final = """
INSERT INTO timelines SELECT n, ? || CASE WHEN n > 1 THEN n::VARCHAR ELSE '' END
FROM range(1, ? + 1) r(n)
"""
PAGES: Final = """
SELECT timeline, seq, 1.7e9 + place,
       replace(replace(replace(text, '@SEQ@', seq::VARCHAR), '@CYCLE@', cycle::VARCHAR),
               '@AT@', (1700000000 + place)::VARCHAR || '.0')
FROM (SELECT place, place % $timelines + 1 AS timeline, place // $timelines + 1 AS seq,
             seq // $texts AS cycle
      FROM range($start, $stop) r(place))
JOIN temp.material ON number = (timeline * 7 + seq) % $texts
ORDER BY place
"""
EVENTS: Final = "INSERT INTO events SELECT unnest(?), unnest(?), unnest(?), unnest(?), unnest(?)"
HEADS: Final = """
INSERT INTO heads SELECT timeline, max(seq), list_extract(?, timeline) FROM events GROUP BY timeline
"""
FOLD: Final = "UPDATE fold SET events = (SELECT count(*) FROM events), timelines = ?"
NAMED: Final = "SELECT name FROM timelines ORDER BY timeline"


@attrs.frozen
class Size:
    """The size of a file: its timelines, and the events of all together."""

    timelines: int
    events: int


def make(path: Path, size: Size) -> Path:
    """Make a file whose timelines were appended to alternately, so that rows of one are far apart.

    The first timeline is `NAME`, the others have a number after it. An existing file is not changed.
    """
    if path.exists():
        return path
    DuckDBStore(path).close()
    texts = list(material())
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(f"ATTACH '{path}' AS store (ROW_GROUP_SIZE 2048)")
        database.execute(MATERIAL)
        database.execute(ADD_MATERIAL, [list(range(len(texts))), texts])
        database.execute("USE store")
        database.execute(NAMES, [NAME, size.timelines])
        chains = [chain_start(name) for (name,) in database.execute(NAMED).fetchall()]
        for begin in range(0, size.events, PAGE):
            bounds = {"start": begin, "stop": min(begin + PAGE, size.events)}
            given = {**bounds, "timelines": size.timelines, "texts": len(texts)}
            rows = database.execute(PAGES, given).fetchall()
            links = [_link(chains, *row) for row in rows]
            database.execute(EVENTS, [*map(list, zip(*rows, strict=True)), links])
        database.execute(HEADS, [chains])
        database.execute(FOLD, [size.timelines])
        database.execute("CHECKPOINT")
    return path


def _link(chains: list[int], timeline: int, seq: int, _at: float, payload: str) -> int:
    """The link of an event, which moves the chain of its timeline on."""
    chains[timeline - 1] ^= chain_step(seq, f"event.{seq}")
    return chains[timeline - 1] ^ content_hash(payload.encode())


def material() -> Iterator[str]:
    """Events as JSON, with placeholders for number, place and time."""
    for version, event in enumerate(history(1_000), 1):
        text = encode_event(event).decode()
        if len(text) <= LARGE:
            yield (
                text.replace(f'"event.{version}"', '"event.@SEQ@"')
                .replace(f'"{event.block.id}"', '"block.@SEQ@"', 1)
                .replace('"turn":"t', '"turn":"t@CYCLE@_')
                .replace('"call_id":"call_', '"call_id":"call_@CYCLE@_')
                .replace(f'"at":{event.at}', '"at":@AT@')
            )
