"""`foldline` alone: what the sessions of the agents on this machine cost, and where the money went.

The sessions are read, not replayed, so this takes some hundredths of a second for each. Then the dearest are replayed,
to say what they would have cost with foldline; what that gave is kept in the user's folder for caches.
"""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import msgspec
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from blocks import FoldlineError, UsageRecorded, UserPrompt, text_of
from persistence.sessions import Session, read_conversations, read_session
from timeline._models import own_files
from timeline.billing import (
    TOOL,
    PaidCall,
    RecordedBill,
    Spending,
    money,
    plural,
    recorded_bill,
    spending_of,
)
from timeline.cli._console import print_json, progress_bar, screen
from timeline.cli._options import UsageError, Values, argument, command, option
from timeline.cli._sessions import (
    STDIN,
    UUID,
    Folder,
    SessionFile,
    age,
    agent_of,
    first_words,
    name_of,
    recording_of,
    searched_folders,
    session_files,
    tell_passed_over,
)
from timeline.cli._terminal import DONE, FAILED, complain, line, say, short, when
from timeline.replay import atomic_write, replay

SHOWN: Final = 5
READ_MAX: Final = 200
"""The most files that are read unless `--all` or `--since` is given, the newest first."""
COMPARED: Final = 3
"""The number of sessions that are replayed."""
ID_CHARS_MIN: Final = 8
NAME_MIN, NAME_MAX, TEXT_MIN, GAP = 16, 36, 12, 2
"""Widths: the least and the most of names, the least of texts, and the gap. Of longer names, the end is shown."""
POLICY: Final = "default"


@attrs.frozen(kw_only=True)
class Billed:
    """A session and where its money went; without its content, since there may be many."""

    recording: SessionFile
    title: str
    """That in the log, or else the beginning of the first prompt."""
    project: str
    """The folder in the log, or else that of the file."""
    last: float
    """The time of the last chosen call, or of what came last; in seconds since the epoch."""
    spent: Spending
    kin: frozenset[Path]
    """Its own path, and those of the sessions that had some of its calls before."""


@attrs.define
class Tally:
    """Sums of calls."""

    calls: int = 0
    tokens: int = 0
    """Of prompts."""
    cached: int = 0
    """Those of them that were read from the cache."""
    output: int = 0
    dollars: float = 0.0

    def add(self, call: PaidCall) -> None:
        usage = call.cost.usage
        self.calls += 1
        self.tokens += usage.input
        self.cached += usage.cache_read
        self.output += usage.output
        self.dollars += call.cost.dollars

    def row(self) -> tuple[str, ...]:
        cached = f"{self.cached / self.tokens:.0%}" if self.tokens else "–"
        counts = f"{self.calls:,}", short(self.tokens), cached, short(self.output)
        return *counts, money(self.dollars)


@command(
    "bill",
    argument(
        "files",
        nargs=-1,
        required=False,
        metavar="FILE",
        help="these session files or folders, instead of those of the agents on this machine",
    ),
    option("--since", metavar="DAY", help="only calls from this day on: 2026-07-01"),
    option("--until", metavar="DAY", help="only calls up to the end of this day"),
    option("--project", metavar="TEXT", help="only sessions whose folder has this text"),
    option("--agent", metavar="TEXT", help="only this agent: claude, codex, pi, gemini"),
    option("--model", metavar="TEXT", help="only calls of models whose names have this text"),
    option(
        "--limit",
        type=int,
        default=SHOWN,
        metavar="N",
        help=f"rows of each table (default: {SHOWN})",
    ),
    option("--all", is_flag=True, help=f"read all sessions (default: the newest {READ_MAX})"),
    option(
        "--compare",
        type=int,
        default=COMPARED,
        metavar="N",
        help=f"replay the N dearest sessions, to say what foldline would have saved (default: {COMPARED})",
    ),
    epilog="""\
examples:
  foldline
  foldline bill --since 2026-07-01 --project shop --limit 20
  foldline bill logs/ --compare 0 --json
Searches the folders in CLAUDE_CONFIG_DIR, CODEX_HOME, PI_CODING_AGENT_DIR and GEMINI_CLI_HOME,
or each agent's default folder. Changes nothing there.
""",
)
def bill(options: Values) -> int:
    """Print the bill by day, project, agent and model; the dearest sessions, calls, tools and files; and what
    foldline would have saved."""
    for name, least in (("limit", 1), ("compare", 0)):
        if getattr(options, name) < least:
            raise UsageError(
                f"--{name} {getattr(options, name)}: give a number of at least {least}"
            )
    wanted = Choice.of(options)
    folders = [] if options.files else searched_folders()
    with session_files(options.files) as files:
        named = sorted(map(recording_of, files), key=age)
        recordings = named if options.files else _newest(folders, options, wanted)
        billed, failed, passed = _read(recordings, wanted)
        for error in failed:
            complain(error)
        tell_passed_over(passed)
        sums = Sums.of(billed, folders)
        if options.json:
            print_json(_json(sums, folders, options, _compared(sums, options.compare)))
        else:
            _tell(sums, folders, options)
    return FAILED if failed or (options.files and passed and not billed) else DONE


@attrs.define
class Choice:
    """Which calls count: those that the options choose, each once though a resumed session repeats it."""

    since: float
    until: float
    project: str
    agent: str
    model: str
    twice: int = 0
    """Calls that were found again."""
    path: Path = Path()
    """Of the session whose calls are chosen."""
    kin: set[Path] = attrs.field(factory=set[Path])
    """As in `Billed`, of this session."""
    _seen: dict[Any, Path] = attrs.field(factory=dict[Any, Path], init=False)

    @classmethod
    def of(cls, options: Values) -> "Choice":
        """As the options say.

        Raises:
            UsageError: a day is none.
        """
        first, last = _day("--since", options.since), _day("--until", options.until)
        return cls(
            since=_midnight(first) if first else 0.0,
            until=_midnight(last + timedelta(days=1)) if last and last < date.max else float("inf"),
            project=(options.project or "").lower(),
            agent=(options.agent or "").lower(),
            model=(options.model or "").lower(),
        )

    def session(self, recording: SessionFile, session: Session) -> bool:
        """Whether the session may have such calls."""
        folder = (session.folder or str(recording.path.parent)).lower()
        return self.project in folder and self.agent in recording.agent.lower()

    def call(self, at: float, usage: UsageRecorded | None) -> bool:
        """Whether this call counts."""
        if not self.since <= at < self.until or (usage and self.model not in usage.model.lower()):
            return False
        if usage is None:
            return not self.model
        if not at or not usage.input:  # a copy could not be told from another call
            return True
        counts = usage.uncached, usage.cache_read, usage.cache_write, usage.output
        key = at, usage.model, *counts
        if key in self._seen:
            self.twice += 1
            self.kin.add(self._seen[key])
            return False
        self._seen[key] = self.path
        return True


def _day(name: str, text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise UsageError(f"{name} {text}: write a day as 2026-07-01") from None


def _midnight(day: date) -> float:
    return datetime.combine(day, time()).astimezone().timestamp()


# Reading


def _newest(folders: Sequence[Folder], options: Values, wanted: Choice) -> list[SessionFile]:
    """The files to read, oldest first: a file that was last changed before a day has no calls of that day."""
    recordings = [each for folder in folders for each in folder.recordings]
    recordings = sorted((each for each in recordings if each.modified >= wanted.since), key=age)
    if not (options.all or options.since) and len(recordings) > READ_MAX:
        complain(
            f"the newest {READ_MAX:,} of {len(recordings):,} files; --all or --since DAY reads more"
        )
        recordings = recordings[-READ_MAX:]
    return recordings


def _read(
    recordings: Sequence[SessionFile], wanted: Choice
) -> tuple[list[Billed], list[str], list[str]]:
    """The sessions with chosen calls; and what was wrong with files that cannot be read: those that are named, and
    others.

    The files of sub-agents come first, since their calls belong to other sessions; those whose session is not there are
    sessions of their own.
    """
    ordered = sorted(recordings, key=lambda each: not each.is_helper)
    billed, failed, passed = list[Billed](), list[str](), list[str]()
    helpers = defaultdict[str, list[UsageRecorded]](list)
    owners = dict[Path, str]()
    with progress_bar("reading", len(recordings)) as progress:
        for number, recording in enumerate(ordered, 1):
            try:
                for one, session in _conversations(recording):
                    if recording.is_helper and session.id:
                        used = [(call.usage, call.at) for call in session.calls]
                        helpers[session.id] += [replace(each, at=at) for each, at in used if each]
                        helpers[session.id] += session.aside
                        owners[recording.path] = session.id
                    else:
                        billed += _billed(one, session, helpers.pop(session.id, ()), wanted)
            except FoldlineError as error:
                (failed if recording.is_named else passed).append(str(error))
            progress(number, len(recordings))
    for recording in ordered:
        if owners.get(recording.path) in helpers:
            session = read_session(recording.path, format=recording.format)
            billed += _billed(recording, session, (), wanted)
    if wanted.twice:
        complain(f"{plural(wanted.twice, 'call')} found in several sessions counted once")
    return billed, failed, passed


def _conversations(recording: SessionFile) -> Iterator[tuple[SessionFile, Session]]:
    """Each conversation of a file, with the recording whose path leads to it alone (`log.jsonl#1`)."""
    for number, session in enumerate(read_conversations(recording.path, format=recording.format)):
        path = Path(f"{recording.path}#{number}") if number else recording.path
        yield attrs.evolve(recording, path=path), session


def _billed(
    recording: SessionFile, session: Session, helpers: Iterable[UsageRecorded], wanted: Choice
) -> Iterator[Billed]:
    """The session, if it has chosen calls."""
    source = attrs.evolve(recording, agent=recording.agent or agent_of(session))
    if not wanted.session(source, session):
        return
    wanted.path, wanted.kin = source.path, {source.path}
    spent = spending_of(session, helpers, wanted.call)
    blocks = (block for item in session.items for block in item.blocks)
    prompt = next((text_of(block) for block in blocks if isinstance(block, UserPrompt)), "")
    if spent.bill.all_calls:
        yield Billed(
            recording=source,
            title=first_words(session.title or prompt),
            project=session.folder or str(recording.path.parent),
            last=max([call.at for call in spent.calls] or [session.items[-1].at]),
            spent=spent,
            kin=frozenset(wanted.kin),
        )


# Adding up


@attrs.frozen(kw_only=True)
class Sums:
    """The sums of all sessions."""

    sessions: Sequence[Billed]
    """The dearest first."""
    ids: Mapping[int, str]
    """By the place of a session: the shortest beginning of its id that names it among all."""
    bill: RecordedBill
    tallies: Mapping[str, Mapping[str, Tally]]
    """By name, for `days`, `projects`, `agents` and `models`."""
    parts: Mapping[str, float]
    files: Mapping[str, float]
    calls: Sequence[tuple[int, PaidCall]]
    """The dearest calls first, each with the place of its session."""

    @classmethod
    def of(cls, billed: Sequence[Billed], folders: Sequence[Folder]) -> "Sums":
        others = [each.id for folder in folders for each in folder.recordings if not each.is_helper]
        sessions = sorted(billed, key=lambda each: (-each.spent.bill.dollars, each.recording.path))
        calls = [(place, call) for place, each in enumerate(sessions) for call in each.spent.calls]

        def by(name: Callable[[Billed, PaidCall], str]) -> dict[str, Tally]:
            tallies = defaultdict[str, Tally](Tally)
            for place, call in calls:
                tallies[name(sessions[place], call)].add(call)
            return dict(sorted(tallies.items(), key=lambda each: (-each[1].dollars, each[0])))

        days = by(lambda _, call: when(call.at, "%Y-%m-%d"))
        return cls(
            sessions=sessions,
            ids=short_ids([each.recording.id for each in sessions], others),
            bill=_sum([each.spent.bill for each in sessions], [call for _, call in calls]),
            tallies={
                "days": dict(sorted(days.items(), reverse=True)),
                "projects": by(lambda each, _: each.project),
                "agents": by(lambda each, _: each.recording.agent),
                "models": by(lambda _, call: call.cost.usage.model),
            },
            parts=_added([each.spent.parts for each in sessions]),
            files=_added([each.spent.files for each in sessions]),
            calls=sorted(calls, key=lambda each: -each[1].cost.dollars),
        )


def short_ids(own: Sequence[str], others: Iterable[str] = ()) -> dict[int, str]:
    """By place: the shortest beginning of at least eight characters that no other UUID has; other names are whole.
    `others`: ids from which these must differ, too."""
    every = [*own, *set(others).difference(own)]
    begin = Counter(each[:n] for each in every for n in range(ID_CHARS_MIN, len(each)))

    def short(each: str) -> str:
        lengths = range(ID_CHARS_MIN, len(each) if UUID.fullmatch(each) else 0)
        return next((each[:n] for n in lengths if begin[each[:n]] == 1), each)

    return {place: short(each) for place, each in enumerate(own)}


def _sum(bills: Sequence[RecordedBill], calls: Sequence[PaidCall]) -> RecordedBill:
    """The bill of all calls; what has no price is taken from the bills."""
    total = recorded_bill([call.cost.usage for call in calls], ())
    return attrs.evolve(
        total,
        aside=sum(each.aside for each in bills),
        without_usage=sum(each.without_usage for each in bills),
        unpriced=dict(sum((Counter(each.unpriced) for each in bills), Counter[str]())),
    )


def _added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums by name, the largest first."""
    sums = defaultdict[str, float](float)
    for each in parts:
        for name, dollars in each.items():
            sums[name] += dollars
    return dict(sorted(sums.items(), key=lambda each: (-each[1], each[0])))


# The comparison


@attrs.frozen
class Compared:
    """What replayed sessions cost, whole, but without the files of their sub-agents; in dollars."""

    sessions: int
    dollars: float
    foldline: float
    saved: float
    billed: float
    """What the sums have of them: chosen calls, each once, and sub-agents."""


def _compared(sums: Sums, number: int) -> Compared | None:
    """The comparison of the dearest sessions, none of which shares calls with a dearer one; None: there is nothing to
    compare."""
    sessions, kin = list[Billed](), set[Path]()
    for each in sums.sessions:
        if len(sessions) < number and each.spent.bill.dollars and not kin & each.kin:
            sessions.append(each)
            kin |= each.kin
    cached, edition = _cached_costs(), _edition()
    costs = list[tuple[float, float, float]]()
    with progress_bar("replaying the dearest", len(sessions)) as progress:
        for done, each in enumerate(sessions, 1):
            source = each.recording
            key = f"{source.path.resolve()} {source.bytes} {source.modified} {edition}"
            if key not in cached:
                cached[key] = _replayed(source)
                with suppress(OSError, RuntimeError):  # then it only takes longer the next time
                    _cache().parent.mkdir(parents=True, exist_ok=True)
                    with atomic_write(_cache()) as file:
                        file.write(msgspec.json.encode(dict(list(cached.items())[-READ_MAX:])))
            dollars, foldline = cached[key]
            if foldline is not None:
                costs.append((dollars, foldline, each.spent.bill.dollars))
            progress(done, len(sessions))
    if not costs:
        return None
    dollars, foldline, billed = map(sum, zip(*costs, strict=True))
    return Compared(len(costs), dollars, foldline, dollars - foldline, billed)


def _replayed(recording: SessionFile) -> tuple[float, float | None]:
    """The recorded dollars of a session and those with foldline; without these if it cannot be replayed, for example
    because its window is too small."""
    try:
        bill = replay(read_session(recording.path, format=recording.format)).recorded_bill
    except FoldlineError as error:
        complain(f"{recording.path}: {error}")
        return 0.0, None
    return bill.dollars, bill.foldline


def _edition() -> int:
    """When a file of foldline, or the user's prices, were last changed, in nanoseconds: a replay may differ since."""
    packages = [Path(__file__).parents[2] / name for name in ("blocks", "render", "timeline")]
    files = (file for each in packages for form in ("*.py", "*.toml") for file in each.rglob(form))
    return max(file.stat().st_mtime_ns for file in (*files, *own_files()))


def _cache() -> Path:
    """The file that keeps the results of replays."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(folder) if Path(folder).is_absolute() else Path.home() / ".cache"
    return home / "foldline" / "compared.json"


def _cached_costs() -> dict[str, tuple[float, float | None]]:
    """The results of earlier replays: recorded dollars, and those with foldline; empty if they cannot be read."""
    with suppress(OSError, RuntimeError, msgspec.DecodeError):
        return msgspec.json.decode(
            _cache().read_bytes(), type=dict[str, tuple[float, float | None]]
        )
    return {}


# Telling


def _tell(sums: Sums, folders: Sequence[Folder], options: Values) -> None:
    console = screen()
    if not sums.sessions:
        _tell_nothing(folders, options)
        return
    about = plural(len(sums.sessions), "session")
    if days := sums.tallies["days"]:
        about += f", {min(days)} to {max(days)}"
    headline = Text(line(sums.bill.headline()), style="bold")
    console.print(headline.append(f"  {about}", style="not bold dim"))
    about_kinds = attrs.evolve(sums.bill, models={}).lines()  # the models are in the table
    console.print(Text("\n".join(map(line, about_kinds)), style="dim"))
    _tell_sums(console, sums, options.limit)
    _tell_dearest(console, sums, options.limit)
    sys.stdout.flush()
    if compared := _compared(sums, options.compare):
        _tell_compared(console, sums, compared)
    console.print()
    name = STDIN if STDIN in options.files else name_of(sums.sessions[0].recording, sums.ids[0])
    commands = {
        f"foldline replay {name}": "its calls with and without foldline",
        f"foldline replay {name} --html report.html": "the same in a browser",
        "foldline bill --since DAY --project TEXT": "some days, projects, agents, models",
        "foldline --help": "all commands",
    }
    width = max(map(len, commands)) + GAP
    is_wide = width + max(map(len, commands.values())) <= console.width
    for words, what in commands.items():  # never wrapped, so that it can be copied
        text = f"{words:<{width}}{what}" if is_wide else f"{words}\n    {what}"
        console.print(Text(text), soft_wrap=True)


def _tell_compared(console: Console, sums: Sums, compared: Compared) -> None:
    """Print what foldline would have saved; and if that is not of the calls above, of which it is."""
    number = "dearest" if compared.sessions == 1 else f"{compared.sessions} dearest"
    copies = ", copies left out" * any(len(each.kin) > 1 for each in sums.sessions)
    is_other = money(compared.dollars) != money(compared.billed)
    how = "replayed whole, without sub-agents," if is_other else "replayed"
    where = f"with policy {POLICY} at their own models and windows:"
    console.print()
    console.print(f"the {number}{copies}, {how} {where}")
    bill = RecordedBill(dollars=compared.dollars, calls=1, foldline=compared.foldline)
    console.print(Text(line(bill.headline()), style="bold"))
    if is_other:
        calls = "chosen calls, each once, and sub-agents"
        console.print(f"the bill above has {money(compared.billed)} of them: {calls}", style="dim")


Row: TypeAlias = tuple[tuple[str, ...], str]
"""A name, numbers, and a text; and its style."""
HEADING: Final = "bold"
BLANK: Row = (), ""


def _tell_sums(console: Console, sums: Sums, limit: int) -> None:
    """Print the sums of calls, and what the money was for, all in the same columns."""
    rows = list[Row]()
    headings = "calls", "prompts", "cached", "answers", "money"
    for name, tallies in sums.tallies.items() if sums.calls else ():
        rows += [BLANK, ((f"by {name[:-1]}", *headings), HEADING)]
        rows += [((_homely(n), *tally.row()), "") for n, tally in list(tallies.items())[:limit]]
        if rest := list(tallies.values())[limit:]:
            more = Tally(*(sum(each) for each in zip(*map(attrs.astuple, rest), strict=True)))
            rows.append(((f"{len(rest):,} more", *more.row()), "dim"))
    for title, parts in (("by what it was for", sums.parts), ("by file", sums.files)):
        if sums.bill.dollars and parts:
            rows += [BLANK, ((title, "", "", "", "", "money"), HEADING)]
            shown = [(_homely(name.removeprefix(TOOL)), paid, "") for name, paid in parts.items()]
            if rest_of := shown[limit:]:
                paid = sum(paid for _, paid, _ in rest_of)
                shown[limit:] = [(f"{len(rest_of):,} more", paid, "dim")]
            for name, paid, style in shown:
                share = f"{paid / sums.bill.dollars:.0%}"
                rows.append(((name, "", "", "", share, money(paid)), style))
    _print_rows(console, rows, 5, (2, 3, 1, 4))


def _tell_dearest(console: Console, sums: Sums, limit: int) -> None:
    """Print the dearest sessions and calls."""
    rows: list[Row] = [
        BLANK,
        (("dearest sessions", "last call", "calls", "money", "title"), HEADING),
    ]
    for place, each in enumerate(sums.sessions[:limit]):
        paid, calls = each.spent.bill, each.spent.calls
        last = when(each.last, "%Y-%m-%d")
        dollars = money(paid.dollars) if paid.calls else "–"
        title = f"{each.recording.agent}: {each.title}"
        rows.append(((sums.ids[place], last, f"{len(calls):,}", dollars, title), ""))
    if sums.calls:
        rows += [BLANK, (("dearest calls", "at", "", "money", "why"), HEADING)]
    for place, call in sums.calls[:limit]:
        number = f"#{call.number:,}" if call.number else "–"
        at, dollars = when(call.at, "%m-%d %H:%M"), money(call.cost.dollars)
        rows.append(((sums.ids[place], at, number, dollars, call.why), ""))
    _print_rows(console, rows, 3, (1, 2, 4))


def _print_rows(console: Console, rows: Sequence[Row], numbers: int, spare: Iterable[int]) -> None:
    """Print rows in columns. On a narrow screen names and texts get shorter, then the `spare` columns are left out, the
    first one first: the other numbers are never cut."""
    flexible = {0: (NAME_MIN, NAME_MAX), numbers + 1: (TEXT_MIN, console.width)}
    columns = zip(*(cells for cells, _ in rows if cells), strict=True)
    wide = [max(cell_len(line(cell)) for cell in column) for column in columns]
    widths = {at: min(width, flexible.get(at, (width,))[0]) for at, width in enumerate(wide)}

    def room() -> int:
        return console.width - sum(widths.values()) - GAP * (len(widths) - 1)

    for at in spare:
        if room() < 0:
            del widths[at]
    for at, (_, most) in flexible.items():
        if at in widths:
            more = min(wide[at], most) - widths[at]
            widths[at] = max(widths[at] + min(more, room()), 1)
    table = Table.grid(padding=(0, GAP))
    for at, width in widths.items():
        justify: JustifyMethod = "right" if 0 < at <= numbers else "left"
        table.add_column(width=width, no_wrap=True, overflow="ellipsis", justify=justify)
    for cells, style in rows:
        shown = [cells[at] for at in widths] if cells else []
        if cells and style != HEADING and len(cells[0]) > widths[0]:
            shown[0] = f"…{cells[0][len(cells[0]) + 1 - widths[0] :]}"
        table.add_row(*shown, style=style)
    console.print(table)


def _tell_nothing(folders: Sequence[Folder], options: Values) -> None:
    filters = options.since, options.until, options.project, options.agent, options.model
    if options.files or (any(filters) and any(folder.recordings for folder in folders)):
        matched = "nothing in these sessions matches" if any(filters) else "none in these files"
        say(f"no calls: {matched}")
        return
    say("no session found in " + ", ".join(_homely(str(folder.path)) for folder in folders))
    say("for sessions from elsewhere: foldline bill FILE; all commands: foldline --help")


def _homely(name: str) -> str:
    """A path with `~` for the user's home, another name unchanged."""
    with suppress(ValueError, RuntimeError):
        name = f"~/{Path(name).relative_to(Path.home())}" if name.startswith("/") else name
    return line(name)


def _json(
    sums: Sums, folders: Sequence[Folder], options: Values, compared: Compared | None
) -> dict[str, Any]:
    parts = {"parts": sums.parts, "files": sums.files}
    return {
        "bill": sums.bill.to_json(),
        **{
            name: [{"name": each, **attrs.asdict(tally)} for each, tally in named.items()]
            for name, named in sums.tallies.items()
        },
        "sessions": [
            {
                "id": each.recording.id,
                "short": sums.ids[place],
                "path": str(each.recording.path),
                "agent": each.recording.agent,
                "project": each.project,
                "title": each.title,
                "last": each.last,
                "calls": len(each.spent.calls),
                "dollars": each.spent.bill.dollars,
            }
            for place, each in enumerate(sums.sessions)
        ],
        "calls": [
            {
                "session": sums.sessions[place].recording.id,
                "number": call.number,
                "at": call.at,
                "model": call.cost.usage.model,
                "tokens": call.cost.usage.input,
                "dollars": call.cost.dollars,
                "why": call.why,
            }
            for place, call in sums.calls[: options.limit]
        ],
        **{
            name: [{"name": each, "dollars": dollars} for each, dollars in named.items()]
            for name, named in parts.items()
        },
        "compared": compared and attrs.asdict(compared),
        "folders": [
            {"agent": each.agent, "folder": str(each.path), "sessions": len(each.recordings)}
            for each in folders
        ],
    }
