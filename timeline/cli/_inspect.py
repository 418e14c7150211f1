"""Looking at a store: its timelines (`list`), their blocks (`show`, `search`), and counts of them (`stats`)."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import attrs
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blocks import (
    Block,
    BlockAppended,
    MisuseError,
    Naming,
    Recorded,
    TimelineId,
    ToolCall,
    UsageRecorded,
    did_you_mean,
    encode_block,
    kind_of,
    path_at,
    tag_of,
    text_of,
    withheld_after,
)
from persistence import EventStore, Hit, TimelineInfo
from render import stand_in
from timeline import Timeline, model_named, quality_of
from timeline.billing import plural, timeline_bill
from timeline.cli._console import close_table, paged, print_json, progress_bar, screen
from timeline.cli._options import (
    HIDDEN,
    ID,
    STORE,
    OneOf,
    UsageError,
    Values,
    argument,
    checked_name,
    command,
    log_of,
    option,
    store_to_read,
    store_to_write,
    tell_away,
    tell_forgotten,
)
from timeline.cli._sessions import WORDS, first_words
from timeline.cli._terminal import DONE, complain, line, say, short, when
from timeline.engine import without_hidden
from timeline.replay import places
from timeline.report import Description, Savings, description_of, descriptions
from timeline.tokens import TokenCounter, counter_for

# list

LISTED: Final = 25
"""The default of `list --limit`, except with `--json`."""
TABLE_MAX: Final = 500
"""The most rows of a table: laying out more takes longer than reading them from the store."""
ONE_LINE_COLUMNS: Final = 130
"""On a narrower screen the model and the prompt of a timeline take a second line."""
HEADINGS: Final = ("timeline", "last event", "events", "tokens", "bill", "model", "first prompt")
NUMBERS: Final = HEADINGS[2:5]
PLAIN_ROW: Final = "{:<{width}}  {:<16}  {:>9}  {:>6}  {:>9}  {:<20}  {}"
NAME_COLUMNS: Final = 40
MODEL_COLUMNS: Final = 24
UNKNOWN: Final = "–"


@attrs.frozen
class Listed:
    """A timeline and the values of its row."""

    info: TimelineInfo
    first: int
    """The version of the oldest event that the store still has."""
    about: Description

    def json(self) -> dict[str, Any]:
        about, bill = self.about, timeline_bill(self.about.usage)
        return {
            **attrs.asdict(self.info),
            "first": self.first,
            "prompt": about.prompt and about.prompt[:WORDS],
            "model": about.model,
            "tokens": about.tokens,
            "dollars": round(bill.dollars, 6) if bill.calls else None,
            "guess": bill.is_guess,
        }

    def row(self) -> tuple[str, ...]:
        info, about, bill = self.info, self.about, timeline_bill(self.about.usage)
        events = f"{info.version:,}" if self.first == 1 else f"{self.first:,} to {info.version:,}"
        return (
            line(info.id),
            when(info.updated_at, "%Y-%m-%d %H:%M"),
            events,
            UNKNOWN if about.tokens is None else short(about.tokens),
            bill.amount() if bill.calls else UNKNOWN,
            line(about.model or UNKNOWN),
            line((about.prompt or UNKNOWN)[:WORDS]),
        )


@command(
    "list",
    STORE,
    option(
        "--limit", type=int, metavar="N", help=f"only the newest N (default: {LISTED}; --json: all)"
    ),
    option("--all", is_flag=True, help="list all timelines"),
    option(
        "--brief", is_flag=True, help="leave out prompt, model, tokens and bill, which is faster"
    ),
)
def list_timelines(options: Values) -> int:
    """Print a row for each timeline, oldest first."""
    limit: int | None = options.limit
    if limit is None and not (options.all or options.json):
        limit = LISTED
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit}: give a number of at least 1")
    with store_to_read(options) as store:
        infos = store.list()
        left_out = max(0, len(infos) - (limit or len(infos)))
        listed = _listed(store, infos[left_out:], brief=options.brief)
        status = DONE if options.brief else tell_away(store)
    if options.json:
        print_json([each.json() for each in listed])
        return status
    _tell_list([each.row() for each in listed])
    if left_out:
        say(f"{plural(left_out, 'older timeline')} not shown; --all shows all")
    return status


def _listed(store: EventStore, infos: Sequence[TimelineInfo], *, brief: bool) -> list[Listed]:
    first = {name: trim.forgotten + 1 for name, trim in store.trimmed().items()}
    names = [] if brief else [info.id for info in infos]
    read: dict[TimelineId, Description] = {}
    with progress_bar("reading", len(names)) as progress:
        for name, about in descriptions(store, names):
            read[name] = about
            progress(len(read), len(names))
    return [
        Listed(info, first.get(info.id, 1), read.get(info.id) or Description()) for info in infos
    ]


def _tell_list(rows: Sequence[Sequence[str]]) -> None:
    if len(rows) > TABLE_MAX:
        width = min(NAME_COLUMNS, max(len(name) for name, *_ in rows))
        for row in (HEADINGS, *rows):
            say(PLAIN_ROW.format(*row, width=width).rstrip())
        return
    console = screen()
    if not rows:
        console.print("no timelines yet")
    elif console.width >= ONE_LINE_COLUMNS:
        console.print(_wide(rows, console.width))
    else:
        _tell_narrow(rows, console)


def _wide(rows: Sequence[Sequence[str]], columns: int) -> Table:
    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    widths[0] = min(widths[0], NAME_COLUMNS)
    widths[5] = min(widths[5], MODEL_COLUMNS)
    widths[6] = min(widths[6], max(columns - sum(widths[:6]) - 2 * len(HEADINGS), 8))
    sizes = dict[str, int](zip(HEADINGS, widths, strict=True))
    table = close_table(sizes, numbers=NUMBERS, folded=HEADINGS[0])
    for row in rows:
        table.add_row(*row)
    return table


def _tell_narrow(rows: Sequence[Sequence[str]], console: Console) -> None:
    """Print two lines for each timeline; the second has its model and prompt."""
    widths = [
        max(map(len, column))
        for column in zip(HEADINGS[:5], *(row[:5] for row in rows), strict=True)
    ]
    room = max(console.width - sum(widths[1:]) - 8, 8)
    name_columns = min(widths[0], room)
    for index, (name, time, *numbers, model, prompt) in enumerate((HEADINGS, *rows)):
        counts = "  ".join([f"{time:<{widths[1]}}", *map("{:>{}}".format, numbers, widths[2:])])
        first = Text(f"{name:<{name_columns}}", style="bold", overflow="fold")
        if len(name) > name_columns:  # never shortened, so that it can be copied
            first.append(f"\n{'':<{name_columns}}")
        console.print(first.append(f"  {counts}", style="" if index else "bold"))
        second = ": ".join(part for part in (model, prompt) if part != UNKNOWN)
        if index and second:
            console.print(Text(f"  {second}", style="dim"), no_wrap=True, overflow="ellipsis")


# show

STATES: Final = {"visible": "green", "hidden": "yellow", "folded": "dim", "carried": "cyan"}
"""The states of a block, and their styles."""
NARROW_COLUMNS, WIDE_COLUMNS = 110, 160
"""The screen widths from which on time and path of a block are shown, and from which on long paths."""
PATH_COLUMNS, PATH_COLUMNS_WIDE = 28, 46


@attrs.frozen(kw_only=True)
class BlockRow:
    """One block in a table."""

    version: int
    at: float
    turn: str
    path: str
    kind: str
    state: str
    tokens: int
    """Estimated number of tokens."""
    text: str
    """The beginning of the block's text, on one line."""
    cut: bool
    """Whether the block's text is longer than `text`."""


@command(
    "show",
    ID,
    argument(
        "path",
        required=False,
        metavar="PATH",
        help="print this block in full; v57 is the block of version 57",
    ),
    option("--at", type=int, metavar="VERSION", help="show the timeline as it was at this version"),
    option("--follow", is_flag=True, help="keep printing new blocks until interrupted"),
    option(
        "--kind",
        multiple=True,
        metavar="KIND",
        help="only blocks of this kind: result, call, prompt, user, react.tool, ...; may be repeated",
    ),
    option("--turn", multiple=True, metavar="TURN", help="only this turn: t3; may be repeated"),
    option(
        "--state",
        multiple=True,
        type=OneOf(tuple(STATES)),
        help="only blocks in this state; may be repeated",
    ),
    option("--tail", type=int, metavar="N", help="only the newest N of these"),
    HIDDEN,
    STORE,
    epilog="""\
examples:
  foldline show my-session --tail 20
  foldline show my-session --kind result --state folded
  foldline show my-session v57                     block v57 in full
On a terminal a long table goes through a pager; PAGER=cat turns it off.
""",
)
def show(options: Values) -> int:
    """Print a row for each block, oldest first; or the block at a path."""
    if options.follow and (options.path or options.at is not None):
        raise UsageError("--follow shows new blocks: give it neither a PATH nor --at")
    filters = [name for name in ("kind", "turn", "state", "tail") if getattr(options, name)]
    if filters and (options.follow or options.path):
        what = "--follow" if options.follow else "a PATH"
        raise UsageError(f"--{filters[0]} cannot be used with {what}")
    with store_to_write(options) if options.follow else store_to_read(options) as store:
        log = log_of(store, options.id, whole=not (options.path or options.tail))
        if options.follow:
            return _follow(options, store, log)
        if options.path:
            block = Timeline.open(options.id, store=store).read(options.path)
            return _tell_block(options, block, log)
        last = store.head(options.id)
        at = last if options.at is None else options.at
        if not 0 <= at <= last:
            raise MisuseError(f"--at {at}: the versions of this timeline are 0 to {last}")
        paths = _paths_left(store, options.id, log)
        size = size_of(description_of(store, options.id)) if at == last else ""
    shown = [each for each in _shared(log, options) if each[0] <= at]
    rows = list(Rows(paths).of(shown, places(shown)))
    selection = _selection(rows, options)
    if options.json:
        print_json([attrs.asdict(row) for row in selection])
    else:
        _tell_blocks(options.id, size, len(rows), selection)
    return DONE


def size_of(about: Description) -> str:
    """The size of a timeline in words, as all commands give it; empty if no request tells it."""
    return "" if about.tokens is None else f"{short(about.tokens)} tokens in its newest request"


def _shared(log: Sequence[Recorded], options: Values) -> Sequence[Recorded]:
    """The log, without what is hidden on request unless `--hidden` is given."""
    return log if options.hidden else without_hidden(log)


def _tell_blocks(name: str, tokens: str, count: int, selection: Sequence[BlockRow]) -> None:
    """Print the timeline's name and size, the table, and how to print one block."""
    size = ", ".join(filter(None, (plural(count, "block"), tokens)))
    left = "" if len(selection) == count else f"; {plural(len(selection), 'block')} shown"
    with paged() as console:
        title = Text(line(name), style="bold")
        console.print(title.append(f"  {size}{left}", style="not bold dim"))
        console.print()
        console.print(_blocks_table(selection, console.width))
        console.print()
        console.print(f"one block in full: foldline show {name} vN (N: its version)", style="dim")


def _tell_block(options: Values, block: Block, log: Sequence[Recorded]) -> int:
    """Print the block's text unchanged, or with `--json` all its fields.

    If it was hidden on request, it is the placeholder that replaces it.
    """
    withheld = {} if options.hidden else withheld_after(log)
    if block.id in withheld:
        block = stand_in(block, withheld[block.id].replacement)
    fields = encode_block(block).decode()
    sys.stdout.write((fields if options.json else text_of(block) or fields).rstrip("\n") + "\n")
    return DONE


def _follow(options: Values, store: EventStore, log: Sequence[Recorded]) -> int:
    """Print the blocks so far, then each new one as it arrives; in JSON, one per line."""
    rows = Rows()

    def tell(events: Sequence[Recorded], states: Mapping[int, str], *, is_first: bool) -> None:
        new = list(rows.of(events, states))
        if options.json:
            for row in new:
                print_json(attrs.asdict(row))
        elif new or is_first:
            console = screen()
            table = _blocks_table(new, console.width)
            table.show_header = is_first
            console.print(table)
        sys.stdout.flush()

    tell(_shared(log, options), places(log), is_first=True)
    with Timeline.open(options.id, store=store).follow(after=len(log)) as news:
        for recorded in news:
            tell([recorded], {}, is_first=False)
    return DONE


def _paths_left(store: EventStore, name: str, log: Sequence[Recorded]) -> Mapping[int, str] | None:
    """The paths in the window by version, if the beginning of the log was forgotten; otherwise None.

    Paths of earlier blocks cannot be computed from the events that are left.
    """
    if not log or log[0][0] == 1:
        return None
    with Timeline.open(name, store=store) as timeline:
        return {entry.version: entry.path for entry in timeline.view.entries}


@attrs.frozen
class Rows:
    """Makes rows from a log, one part of it at a time."""

    paths: Mapping[int, str] | None = None
    """Known paths by version, for a log whose beginning was forgotten; None for a complete log."""
    naming: Naming = attrs.field(factory=Naming)
    counter: TokenCounter = attrs.field(factory=lambda: counter_for("estimate", model_named("")))

    def of(self, events: Sequence[Recorded], states: Mapping[int, str]) -> Iterator[BlockRow]:
        """A row for each block; a block that is not in `states` is visible."""
        for version, event in events:
            if not isinstance(event, BlockAppended):
                continue
            block, text = event.block, text_of(event.block)
            beginning = first_words(text)
            yield BlockRow(
                version=version,
                at=event.at,
                turn=block.turn,
                path=self._path(block, version),
                kind=tag_of(block),
                state=states.get(version, "visible"),
                tokens=self.counter.count(text),
                text=beginning,
                cut=len(text) > 4 * WORDS or len(" ".join(text.split())) > len(beginning),
            )

    def _path(self, block: Block, version: int) -> str:
        path = self.naming.path(block, version)
        return path if self.paths is None else self.paths.get(version) or path_at(block, version)


def _selection(rows: Sequence[BlockRow], options: Values) -> Sequence[BlockRow]:
    """The rows that the options choose.

    Raises:
        UsageError: the timeline has no such kind or turn, or `--tail` is less than 1.
    """
    if options.tail is not None and options.tail < 1:
        raise UsageError(f"--tail {options.tail}: give a number of at least 1")
    kinds = {part: None for row in rows for part in _parts(row.kind)}
    turns = dict.fromkeys(row.turn for row in rows)
    for name, wanted, there in (("kind", options.kind, kinds), ("turn", options.turn, turns)):
        for each in wanted if rows else ():
            if each not in there:
                near = did_you_mean(each, there) or f"; there are {', '.join(there)}"
                raise UsageError(f"--{name} {each}: no block of this timeline has it{near}")
    matches = [
        row
        for row in rows
        if (not options.kind or not _parts(row.kind).isdisjoint(options.kind))
        and (not options.turn or row.turn in options.turn)
        and (not options.state or row.state in options.state)
    ]
    return matches[-options.tail :] if options.tail else matches


def _parts(kind: str) -> set[str]:
    """The names of a kind: `react.tool.result`, `react`, `tool`, `result`, `react.tool`, `tool.result`."""
    parts = kind.split(".")
    ends = range(1, len(parts) + 1)
    return {".".join(parts[start:end]) for end in ends for start in range(end)}


def _blocks_table(rows: Sequence[BlockRow], width: int) -> Table:
    """The table; texts are cut, and times and paths left out, to fit the width."""
    has_paths = width >= NARROW_COLUMNS
    path_columns = PATH_COLUMNS_WIDE if width >= WIDE_COLUMNS else PATH_COLUMNS
    where = {"time": 8, "path": path_columns} if has_paths else {"turn": 5}
    columns = {"version": 7, **where, "kind": 10, "state": 7, "~tokens": 7}
    rest = max(width - sum(columns.values()) - 2 * len(columns), 8)
    table = close_table({**columns, "text": rest}, numbers=("version", "~tokens"))
    for row in rows:
        place = (when(row.at, "%H:%M:%S"), _shortened(line(row.path), path_columns))
        table.add_row(
            f"v{row.version}",
            *(place if has_paths else (row.turn,)),
            row.kind.rpartition(".")[2],
            Text(row.state, style=STATES[row.state]),
            f"{row.tokens:,}",
            Text(line(row.text), style="dim" if row.state == "folded" else ""),
        )
    return table


def _shortened(path: str, columns: int) -> str:
    """The path with its middle replaced by `…`, to fit the columns."""
    if len(path) <= columns:
        return path
    tail = columns // 3
    return f"{path[: columns - tail - 1]}…{path[-tail:]}"


# search

HITS: Final = 20
HITS_MAX: Final = 1_000
"""The most that a search gives."""
HITS_TABLE_COLUMNS: Final = 110


@command(
    "search",
    argument(
        "query",
        nargs=-1,
        required=True,
        metavar="QUERY",
        help="words that must all occur; or, in quotes, '\"a phrase\" -without type:KIND turn:ID'",
    ),
    option("--timeline", metavar="ID", help="search only this timeline"),
    option(
        "--limit", type=int, default=HITS, metavar="N", help=f"most hits to show (default: {HITS})"
    ),
    HIDDEN,
    STORE,
)
def search(options: Values) -> int:
    """Print the hits, best first."""
    query = " ".join(options.query)
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit}: give a number of at least 1")
    with store_to_read(options) as store:
        name = checked_name(store, options.timeline) if options.timeline else None
        for each in [name] if name else store.trimmed():
            tell_forgotten(store, each)
        count = min(options.limit + 1, max(options.limit, HITS_MAX))
        hits = store.search(query, name, count, hidden=options.hidden)
        status = DONE if name else tell_away(store)
    has_more = len(hits) > options.limit
    hits = hits[: options.limit]
    if options.json:
        print_json([attrs.asdict(hit) for hit in hits])
    else:
        _tell_hits(query, hits)
    if has_more:
        complain(f"more blocks match; --limit {2 * options.limit} shows more")
    return status


def _tell_hits(query: str, hits: Sequence[Hit]) -> None:
    """Print the hits with full paths, which can be copied; a narrow screen gets no table."""
    console = screen()
    if not hits:
        console.print(f"nothing matches {query!r}")
        return
    if console.width >= HITS_TABLE_COLUMNS:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("timeline", overflow="fold")
        table.add_column("when", no_wrap=True)
        table.add_column("path and text", overflow="fold", ratio=1)
        for hit in hits:
            text = Text(line(hit.path), style="cyan") + Text("\n") + _marked(hit)
            table.add_row(hit.timeline, when(hit.at), text)
        console.print(table)
    else:
        for hit in hits:
            where = Text(line(f"{hit.timeline}  {when(hit.at)}"), style="bold")
            console.print(where, overflow="fold")
            console.print(Text(f"  {line(hit.path)}", style="cyan"), overflow="fold")
            console.print(Text("  ") + _marked(hit), overflow="fold")
            console.print()
    console.print(plural(len(hits), "hit"), style="dim")


def _marked(hit: Hit) -> Text:
    """The snippet on one line, with its matches highlighted."""
    text = Text("".join(letter if letter.isprintable() else " " for letter in hit.snippet))
    for start, end in hit.matches:
        text.stylize("bold yellow", start, end)
    return text


# stats

SIGNALS: Final[dict[Literal["asked_again", "explicit_read", "rehydrated"], str]] = {
    "asked_again": "asked again",
    "explicit_read": "read back",
    "rehydrated": "brought back by itself",
}
"""The signals that too much was folded, and their labels; see the page on recovery."""


@command("stats", ID, STORE)
def stats(options: Values) -> int:
    """Print counts of events, blocks and tools, and the recorded usage."""
    with store_to_read(options) as store:
        log = log_of(store, options.id)
    usage = [event for _, event in log if isinstance(event, UsageRecorded)]
    bill = timeline_bill(usage)
    headline = bill.headline()
    if (saved := sum(map(Savings.of, usage), Savings())).calls:
        headline += f"; {saved.verdict()}"
    counts: dict[str, Any] = {"timeline": options.id, **_counts(log, usage)}
    if options.json:
        print_json({**counts, "recorded_bill": {**bill.to_json(), "headline": headline}})
    else:
        console = screen()
        console.print(Text(line(options.id), style="bold"))
        console.print(Text(line(headline), style="bold"))
        console.print(Text("\n".join(map(line, (*bill.lines(), ""))), style="dim"))
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column(overflow="fold")
        table.add_column(justify="right", style="bold")
        table.add_row("turns", "", f"{counts['turns']:,}")
        for section in ("events", "blocks", "states", "tools"):
            for index, (name, count) in enumerate(counts[section].items()):
                table.add_row("" if index else section, name, f"{count:,}")
        for index, (name, value) in enumerate(_signals(counts["quality"])):
            table.add_row("" if index else "quality", name, value)
        console.print(table)
    return DONE


def _counts(log: Sequence[Recorded], usage: Sequence[UsageRecorded]) -> dict[str, Any]:
    blocks = [event.block for _, event in log if isinstance(event, BlockAppended)]
    quality = quality_of(log)
    totals, rates = quality.totals, quality.per_compaction
    return {
        "turns": len({block.turn for block in blocks}),
        "events": _by_frequency(kind_of(event) for _, event in log),
        "blocks": _by_frequency(tag_of(block) for block in blocks),
        "states": _by_frequency(places(log).values()),
        "tools": _by_frequency(block.name for block in blocks if isinstance(block, ToolCall)),
        "usage": {
            "calls": len(usage),
            "uncached": sum(event.uncached for event in usage),
            "cache_read": sum(event.cache_read for event in usage),
            "cache_write": sum(event.cache_write for event in usage),
            "output": sum(event.output for event in usage),
        },
        "quality": {
            "compactions": quality.compactions,
            **{
                signal: {"count": totals[signal], "per_compaction": rates.get(signal)}
                for signal in SIGNALS
            },
            "task_end": {"count": totals["task_end"], "completed": quality.completed},
        },
    }


def _by_frequency(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, most frequent first."""
    return dict(Counter(names).most_common())


def _signals(quality: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A label and a value for each signal."""
    yield "compactions", f"{quality['compactions']:,}"
    for signal, meaning in SIGNALS.items():
        rate = quality[signal]["per_compaction"]
        each = "" if rate is None else f" ({rate:.2f} per compaction)"
        yield meaning + each, f"{quality[signal]['count']:,}"
    ends = quality["task_end"]
    yield "turns that ended in an answer", f"{ends['completed']:,} of {ends['count']:,}"
