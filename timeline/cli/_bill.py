"""`foldline` alone: what the sessions of the agents on this machine cost, and where the money went.

The sessions are read, not replayed, so this takes some hundredths of a second for each. Then the dearest are replayed,
to say what they would have cost with foldline; what that gave is kept in the user's folder for caches.
"""

import os
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blocks import FoldlineError, UsageRecorded, UserPrompt, text_of
from persistence.sessions import Session, read_session
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
    File,
    Folder,
    SessionFile,
    age,
    agent_of,
    first_words,
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
NAME_CHARS: Final = 36
"""Of longer names of projects and files, only the end is shown."""
POLICY: Final = "default"


@attrs.frozen(kw_only=True)
class Billed:
    """A session and where its money went; without its content, since there may be many."""

    recording: SessionFile
    title: str
    project: str
    last: float
    """The time of the last chosen call, or of what came last; in seconds since the epoch."""
    spent: Spending

    @classmethod
    def of(cls, recording: SessionFile, session: Session, spent: Spending) -> "Billed":
        """Without a title in the log, it is the beginning of the first prompt; without a folder, that of the file."""
        blocks = (block for item in session.items for block in item.blocks)
        prompt = next((text_of(block) for block in blocks if isinstance(block, UserPrompt)), "")
        return cls(
            recording=recording,
            title=first_words(session.title or prompt),
            project=session.folder or str(recording.path.parent),
            last=max([call.at for call in spent.calls] or [session.items[-1].at]),
            spent=spent,
        )


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
        recordings = _named(files) if options.files else _newest(folders, options, wanted)
        billed, passed = _read(recordings, wanted)
        sums = Sums.of(billed)
        if options.json:
            print_json(_json(sums, folders, options, _compared(sums, options.compare)))
        else:
            _tell(sums, folders, options)
    tell_passed_over(passed)
    return FAILED if options.files and passed and not billed else DONE


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
    _seen: set[tuple[object, ...]] = attrs.field(factory=set[tuple[object, ...]], init=False)

    @classmethod
    def of(cls, options: Values) -> "Choice":
        """As the options say.

        Raises:
            UsageError: a day is none.
        """
        first, last = _day("--since", options.since), _day("--until", options.until)
        end = last.toordinal() + 1 if last else 0
        return cls(
            since=_midnight(first) if first else 0.0,
            until=_midnight(date.fromordinal(end)) if end else float("inf"),
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
        is_new = key not in self._seen
        self._seen.add(key)
        self.twice += not is_new
        return is_new


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


def _named(files: Sequence[File]) -> list[SessionFile]:
    """The files of a command line, as recordings of unknown agents."""
    paths = [Path(file.path) for file in files]
    recordings = [SessionFile("", "auto", path, 0, path.stat().st_mtime) for path in paths]
    return sorted(recordings, key=age)


def _read(recordings: Sequence[SessionFile], wanted: Choice) -> tuple[list[Billed], list[str]]:
    """The sessions with chosen calls, and what was wrong with the files that cannot be read.

    The files of sub-agents come first, since their calls belong to other sessions; those whose session is not there are
    sessions of their own.
    """
    ordered = sorted(recordings, key=lambda each: not each.is_helper)
    billed, passed = list[Billed](), list[str]()
    helpers = defaultdict[str, list[UsageRecorded]](list)
    owners = dict[Path, str]()
    with progress_bar("reading", len(recordings)) as progress:
        for number, recording in enumerate(ordered, 1):
            try:
                session = read_session(recording.path, format=recording.format)
            except FoldlineError as error:
                passed.append(str(error))
                continue
            if recording.is_helper and session.id:
                used = [(call.usage, call.at) for call in session.calls]
                helpers[session.id] += [replace(usage, at=at) for usage, at in used if usage]
                helpers[session.id] += session.aside
                owners[recording.path] = session.id
            else:
                billed += _billed(recording, session, helpers.pop(session.id, ()), wanted)
            progress(number, len(recordings))
    for recording in ordered:
        if owners.get(recording.path) in helpers:
            session = read_session(recording.path, format=recording.format)
            billed += _billed(recording, session, (), wanted)
    if wanted.twice:
        complain(f"{plural(wanted.twice, 'call')} found in several files counted once")
    return billed, passed


def _billed(
    recording: SessionFile, session: Session, helpers: Iterable[UsageRecorded], wanted: Choice
) -> Iterator[Billed]:
    """The session, if it has chosen calls."""
    source = attrs.evolve(recording, agent=recording.agent or agent_of(session))
    if wanted.session(source, session):
        spent = spending_of(session, helpers, wanted.call)
        if spent.bill.all_calls:
            yield Billed.of(source, session, spent)


# Adding up


@attrs.frozen(kw_only=True)
class Sums:
    """The sums of all sessions."""

    sessions: Sequence[Billed]
    """The dearest first."""
    ids: Mapping[int, str]
    """By the place of a session: the shortest beginning of its id that names it."""
    bill: RecordedBill
    total: Tally
    tallies: Mapping[str, Mapping[str, Tally]]
    """By name, for `days`, `projects`, `agents` and `models`."""
    parts: Mapping[str, float]
    files: Mapping[str, float]
    calls: Sequence[tuple[int, PaidCall]]
    """The dearest calls first, each with the place of its session."""

    @classmethod
    def of(cls, billed: Sequence[Billed]) -> "Sums":
        """The sums."""
        sessions = sorted(billed, key=lambda each: (-each.spent.bill.dollars, each.recording.path))
        calls = [(place, call) for place, each in enumerate(sessions) for call in each.spent.calls]
        total = Tally()
        for _, call in calls:
            total.add(call)

        def by(name: Callable[[Billed, PaidCall], str]) -> dict[str, Tally]:
            tallies = defaultdict[str, Tally](Tally)
            for place, call in calls:
                tallies[name(sessions[place], call)].add(call)
            return dict(sorted(tallies.items(), key=lambda each: (-each[1].dollars, each[0])))

        days = by(lambda _, call: when(call.at, "%Y-%m-%d"))
        return cls(
            sessions=sessions,
            ids=short_ids([each.recording.id for each in sessions]),
            bill=_sum([each.spent.bill for each in sessions], [call for _, call in calls]),
            total=total,
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


def short_ids(ids: Sequence[str]) -> dict[int, str]:
    """By place: the shortest beginning of at least eight characters that no other UUID has; other names are whole."""
    lengths = [ID_CHARS_MIN if UUID.fullmatch(each) else len(each) for each in ids]
    while True:
        names = [each[:length] for each, length in zip(ids, lengths, strict=True)]
        same = Counter(names)
        longer = [
            length + (same[name] > 1 and length < len(each))
            for each, length, name in zip(ids, lengths, names, strict=True)
        ]
        if longer == lengths:
            return dict(enumerate(names))
        lengths = longer


def _sum(bills: Sequence[RecordedBill], calls: Sequence[PaidCall]) -> RecordedBill:
    """The bill of all calls; what has no price is taken from the bills."""
    total = recorded_bill([call.cost.usage for call in calls], ())
    unpriced = Counter[str]()
    for each in bills:
        unpriced.update(each.unpriced)
    return attrs.evolve(
        total,
        aside=sum(each.aside for each in bills),
        without_usage=sum(each.without_usage for each in bills),
        unpriced=dict(unpriced),
    )


def _added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums by name, the largest first."""
    sums = defaultdict[str, float](float)
    for each in parts:
        for name, dollars in each.items():
            sums[name] += dollars
    return dict(sorted(sums.items(), key=lambda each: (-each[1], each[0])))


# The comparison


def _compared(sums: Sums, number: int) -> RecordedBill | None:
    """The recorded bill of the dearest sessions, and what they would have cost; None: there is nothing to compare."""
    sessions = [each for each in sums.sessions[:number] if each.spent.bill.dollars]
    cached, bills, edition = _cached_costs(), list[RecordedBill](), _edition()
    with progress_bar("replaying the dearest", len(sessions)) as progress:
        for done, each in enumerate(sessions, 1):
            status = each.recording.path.stat()
            key = f"{each.recording.path.resolve()} {status.st_size} {status.st_mtime_ns} {edition}"
            if key not in cached:
                cached[key] = _replayed(each.recording)
                with suppress(OSError, RuntimeError):  # then it only takes longer the next time
                    _cache().parent.mkdir(parents=True, exist_ok=True)
                    with atomic_write(_cache()) as file:
                        file.write(msgspec.json.encode(dict(list(cached.items())[-READ_MAX:])))
            dollars, foldline = cached[key]
            if foldline is not None:
                bills.append(RecordedBill(dollars=dollars, calls=1, foldline=foldline))
            progress(done, len(sessions))
    if not bills:
        return None
    dollars, saved = sum(each.dollars for each in bills), sum(each.saved for each in bills)
    return RecordedBill(dollars=dollars, calls=len(bills), foldline=dollars - saved)


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
        console.print()
        number = "dearest" if compared.calls == 1 else f"{compared.calls} dearest"
        console.print(
            f"the {number}, replayed with policy {POLICY} at their own models and windows:"
        )
        console.print(Text(line(compared.headline()), style="bold"))
    console.print()
    dearest = sums.sessions[0].recording
    name = sums.ids[0] if dearest.bytes else shlex.quote(str(dearest.path))
    name = STDIN if STDIN in options.files else name
    table = _grid(0)
    for words, what in (
        (f"replay {name}", "call by call, with and without foldline"),
        (f"replay {name} --html report.html", "the same in a browser"),
        ("bill --since DAY --project TEXT", "some days, projects, agents, models"),
        ("--help", "all commands"),
    ):
        table.add_row(f"foldline {words}", what)
    console.print(table)


def _tell_sums(console: Console, sums: Sums, limit: int) -> None:
    """Print the sums of calls, and what the money was for, all in the same columns."""
    table = _grid(NAME_CHARS)
    for _ in Tally().row():
        table.add_column(justify="right", no_wrap=True)
    headings = "calls", "prompts", "cached", "answers", "money"
    for name, tallies in sums.tallies.items() if sums.total.calls else ():
        table.add_row()
        table.add_row(f"by {name[:-1]}", *headings, style="bold")
        for each, tally in list(tallies.items())[:limit]:
            table.add_row(_homely(each), *tally.row())
        if rest := list(tallies.values())[limit:]:
            more = Tally(*(sum(each) for each in zip(*map(attrs.astuple, rest), strict=True)))
            table.add_row(f"{len(rest):,} more", *more.row(), style="dim")
    for title, parts in (("by what it was for", sums.parts), ("by file", sums.files)):
        if sums.bill.dollars and parts:
            table.add_row()
            table.add_row(title, "", "", "", "", "money", style="bold")
            for each, dollars in list(parts.items())[:limit]:
                share = f"{dollars / sums.bill.dollars:.0%}"
                table.add_row(_homely(each.removeprefix(TOOL)), "", "", "", share, money(dollars))
            if rest_of := list(parts.values())[limit:]:
                share = f"{sum(rest_of) / sums.bill.dollars:.0%}"
                about = f"{len(rest_of):,} more", "", "", "", share, money(sum(rest_of))
                table.add_row(*about, style="dim")
    console.print(table)


def _tell_dearest(console: Console, sums: Sums, limit: int) -> None:
    """Print the dearest sessions and calls."""
    table = _grid(len("dearest sessions"))
    table.expand = True
    for width in (len("01-31 23:59"), len("#1,000"), len("$1,000")):
        table.add_column(justify="right", no_wrap=True, min_width=width)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_row()
    table.add_row("dearest sessions", "last call", "calls", "money", "title", style="bold")
    for place, each in enumerate(sums.sessions[:limit]):
        paid, calls = each.spent.bill, each.spent.calls
        last = when(each.last, "%Y-%m-%d")
        dollars = money(paid.dollars) if paid.calls else "–"
        title = f"{each.recording.agent}: {each.title}"
        table.add_row(sums.ids[place], last, f"{len(calls):,}", dollars, title)
    if sums.calls:
        table.add_row()
        table.add_row("dearest calls", "at", "", "money", "why", style="bold")
    for place, call in sums.calls[:limit]:
        number = f"#{call.number:,}" if call.number else "–"
        at, dollars = when(call.at, "%m-%d %H:%M"), money(call.cost.dollars)
        table.add_row(sums.ids[place], at, number, dollars, call.why)
    console.print(table)


def _grid(width: int) -> Table:
    """A table without lines, whose first column has names."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, min_width=width)
    return table


def _tell_nothing(folders: Sequence[Folder], options: Values) -> None:
    filters = options.since, options.until, options.project, options.agent, options.model
    if options.files or (any(filters) and any(folder.recordings for folder in folders)):
        say("no calls: nothing in these sessions matches")
        return
    say("no session found in " + ", ".join(_homely(str(folder.path)) for folder in folders))
    say("for sessions from elsewhere: foldline bill FILE; all commands: foldline --help")


def _homely(name: str) -> str:
    """A path with `~` for the user's home, another name unchanged; of a long one the end."""
    with suppress(ValueError, RuntimeError):
        name = f"~/{Path(name).relative_to(Path.home())}" if name.startswith("/") else name
    name = line(name)
    return name if len(name) <= NAME_CHARS else f"…{name[1 - NAME_CHARS :]}"


def _json(
    sums: Sums, folders: Sequence[Folder], options: Values, compared: RecordedBill | None
) -> dict[str, Any]:
    parts = {"parts": sums.parts, "files": sums.files}
    saved = compared and {
        "sessions": compared.calls,
        "dollars": compared.dollars,
        "foldline": compared.foldline,
        "saved": compared.saved,
    }
    return {
        "bill": sums.bill.to_json(),
        **{
            name: [{"name": each, **attrs.asdict(tally)} for each, tally in named.items()]
            for name, named in sums.tallies.items()
        },
        "sessions": [
            _session_json(each, sums.ids[place]) for place, each in enumerate(sums.sessions)
        ],
        "calls": [
            _call_json(call, sums.sessions[place].recording.id)
            for place, call in sums.calls[: options.limit]
        ],
        **{
            name: [{"name": each, "dollars": dollars} for each, dollars in named.items()]
            for name, named in parts.items()
        },
        "compared": saved,
        "folders": [
            {"agent": each.agent, "folder": str(each.path), "sessions": len(each.recordings)}
            for each in folders
        ],
    }


def _session_json(billed: Billed, short_id: str) -> dict[str, Any]:
    return {
        "id": billed.recording.id,
        "short": short_id,
        "path": str(billed.recording.path),
        "agent": billed.recording.agent,
        "project": billed.project,
        "title": billed.title,
        "last": billed.last,
        "calls": len(billed.spent.calls),
        "dollars": billed.spent.bill.dollars,
    }


def _call_json(call: PaidCall, session: str) -> dict[str, Any]:
    return {
        "session": session,
        "number": call.number,
        "at": call.at,
        "model": call.cost.usage.model,
        "tokens": call.cost.usage.input,
        "dollars": call.cost.dollars,
        "why": call.why,
    }
