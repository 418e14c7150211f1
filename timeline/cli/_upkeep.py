"""Upkeep of a store: timelines in and out (`import`, `export`, `copy`, `fork`), removal, damage.

Copies: `export` writes what `import` reads. Removal: `retain` takes what was folded, `forget` what is named. Damage:
`verify` finds it, `repair` saves the rest.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import attrs
import click
import msgspec

from blocks import (
    BlockAppended,
    Event,
    EventId,
    MisuseError,
    SessionFormatError,
    TimelineId,
    UsageRecorded,
    canonical_block,
    encode_event,
)
from persistence import (
    StoreLocation,
    locate_store,
    look,
    looking,
)
from persistence import repair as repair_store
from persistence import verify as verify_store
from persistence.sessions import Responded, Session, export_lines, exported_events
from timeline import Timeline
from timeline.billing import plural
from timeline.cli._console import answer, progress_bar
from timeline.cli._options import (
    HIDDEN,
    ID,
    STORE,
    UsageError,
    Values,
    argument,
    checked_name,
    command,
    existing_store,
    log_of,
    option,
    store_location,
    store_to_read,
    store_to_write,
    tell_copy,
)
from timeline.cli._sessions import (
    FILES,
    SESSION,
    File,
    bytes_limit,
    grouped_notes,
    session_files,
    session_of,
    tell_passed_over,
)
from timeline.cli._terminal import DONE, FAILED, complain, say
from timeline.engine import counted, without_hidden
from timeline.replay import atomic_write, reserve_store

PROBLEMS_MAX: Final = 100
"""The number of problems after which `persistence.verify` stops."""
BUCKETS: Final = ("s3://", "gs://", "az://", "file://")
"""How the URLs of artifact stores begin."""


def _amount(report: Any, *names: str) -> str:
    """Counts of a report in words: `2 timelines, 10 events`."""
    return ", ".join(plural(getattr(report, name), name.removesuffix("s")) for name in names)


def _tell_each(options: Values, kind: str, what: Iterable[str]) -> None:
    """Print a line for each; with `--json` they are in the facts."""
    for each in () if options.json else what:
        say(f"{kind}: {each}")


# In and out


@command(
    "import",
    FILES,
    option(
        "--name", default="", metavar="NAME", help="name of the timeline (default: the session's)"
    ),
    *SESSION,
    STORE,
    epilog="""\
examples:
  foldline import session.jsonl
  foldline import ~/.claude/projects                 every session in a folder
  foldline import 'logs/**/*.jsonl' --store all.duckdb
  ssh host cat session.jsonl | foldline import - --name from-host
""",
)
def import_sessions(options: Values) -> int:
    """Import each file in one commit; an unreadable file does not stop the others."""
    with session_files(options.files) as files:
        if len(files) == 1:
            return _import(files[0], options)
        if options.name:
            raise UsageError("--name works with one session only")
        with progress_bar("importing", len(files)) as progress:
            passed: list[str] = []
            failed = 0
            for number, file in enumerate(files, 1):
                try:
                    _import(file, options)
                except (MisuseError, SessionFormatError) as error:
                    if file.is_found:
                        passed.append(str(error))
                    else:
                        failed += 1
                        complain(str(error))
                progress(number, len(files))
            tell_passed_over(passed)
            return FAILED if failed or len(passed) == len(files) else DONE


def _import(file: File, options: Values) -> int:
    """Read the whole file, then append its events in one commit."""
    session = session_of(file.path, options)
    name, place = TimelineId(options.name or session.name), store_location(options)
    if session.format == "foldline" and not session.notices:  # taken unchanged
        events = exported_events(file.path, **bytes_limit(options))
    else:
        events = [encode_event(event) for event in _events(session)]
    with reserve_store(place, name) as store:
        store.append_bytes(name, events, expected_version=0)
    for note in grouped_notes((notice.line, notice.text) for notice in session.notices):
        complain(f"{file.path}: {note}")
    facts = {
        "timeline": name,
        "store": str(place),
        "format": session.format,
        "events": len(events),
        "calls": len(session.calls),
        "notices": len(session.notices),
    }
    size = f"{plural(len(events), 'event')}, {plural(len(session.calls), 'call')}"
    return answer(options, facts, f"{name}: {size} ({session.format}) in {place}")


def _events(session: Session) -> Iterator[Event]:
    """The session's blocks and the recorded usage of its calls, as events; of a call without usage, the model.

    The ids are the same each time the same file is read.
    """
    unknown = UsageRecorded(id=EventId(""), at=0.0)
    ids, used = counted(), partial(msgspec.structs.replace, window=session.window)
    for item in session.items:
        for block in item.blocks:
            yield BlockAppended(id=EventId(ids()), at=item.at, block=canonical_block(block))
        if isinstance(item, Responded):
            usage = item.usage or unknown
            model = usage.model or item.model or session.model
            if item.usage or model:
                yield used(usage, id=EventId(ids()), at=item.at, model=model)
    for usage in session.aside:
        yield used(usage, id=EventId(ids()), at=session.items[-1].at, aside=True)


@command(
    "export",
    ID,
    option("--out", type=Path, metavar="FILE", help="the file to write (default: standard output)"),
    HIDDEN,
    STORE,
)
def export(options: Values) -> int:
    """Write a header, then every event as it is stored."""
    with store_to_read(options) as store:
        events = log_of(store, options.id)
        shown = events if options.hidden else without_hidden(events)
        stored = [*store.log_bytes(TimelineId(options.id))] if shown is events else ()
    lines = export_lines(TimelineId(options.id), stored or shown)
    if options.out is None:
        sys.stdout.writelines(lines)
        return DONE
    with atomic_write(options.out) as file:
        file.writelines(line.encode() for line in lines)
    facts = {"timeline": options.id, "file": str(options.out), "events": len(events)}
    return answer(options, facts, f"{options.id}: {plural(len(events), 'event')} in {options.out}")


@command(
    "copy",
    argument("target", metavar="TARGET", help="path or URL of the other store"),
    argument("ids", nargs=-1, metavar="ID", help="timelines to copy (default: all)"),
    STORE,
)
def copy(options: Values) -> int:
    """Copy what the target does not have yet, and print how much that was."""
    source, target = existing_store(options), locate_store(options.target)
    if Path(str(source)).resolve() == Path(str(target)).resolve():  # whatever they are called
        raise MisuseError(f"{target} is the store itself; give another target")
    with look(source) as (ours, is_copy):
        if is_copy:
            tell_copy(source)
        names = [checked_name(ours, name) for name in options.ids]  # before the target is created
        with closing(target.open()) as theirs:
            report = ours.copy_to(theirs, names or None)
    if report.forgotten:
        complain(f"{plural(report.forgotten, 'event')} of these timelines were forgotten before")
    if report.replaced:
        complain(f"what was forgotten since is gone from {plural(report.replaced, 'copied event')}")
    facts = {**attrs.asdict(report), "store": str(source), "target": str(target)}
    amount = _amount(report, "timelines", "events", "artifacts")
    return answer(options, facts, f"{amount} copied from {source} to {target}")


@command(
    "fork",
    argument("id", metavar="ID", help="the timeline to copy"),
    argument("new", metavar="NEW", help="name of the copy"),
    option("--at", type=int, metavar="VERSION", help="copy up to this version"),
    STORE,
)
def fork(options: Values) -> int:
    """Create the copy and print its name."""
    with store_to_write(options) as store:
        last = store.head(options.id)
        if store.head(TimelineId(options.new)):
            raise MisuseError(f"the store already has a timeline {options.new!r}")
        with Timeline.open(options.id, store=store) as timeline:
            version = timeline.fork(options.new, at=options.at).version
    at = last if options.at is None else options.at
    facts = {"timeline": options.new, "parent": options.id, "at": at, "version": version}
    return answer(options, facts, f"{options.new}: {options.id} up to version {at}")


# Removal


@command(
    "retain",
    ID,
    option(
        "--archive",
        metavar="PLACE",
        help="move the events into a file in this folder, or at this s3:// URL",
    ),
    option("--forget", is_flag=True, help="delete the events"),
    option(
        "--erase", is_flag=True, help="also erase them from the free blocks of the store's file"
    ),
    STORE,
)
def retain(options: Values) -> int:
    """Archive or delete the events; print how many."""
    if options.forget and options.archive is not None:
        raise click.UsageError("--archive and --forget cannot be used together: give one of them")
    if not options.forget and options.archive is None:
        raise click.UsageError("give --archive FOLDER or --forget")
    keeping: Literal["archive", "forget"] = "forget" if options.forget else "archive"
    destroying = "retain --forget" if options.forget else ""
    with (
        store_to_write(options, destroying) as store,
        Timeline.open(options.id, store=store) as timeline,
    ):
        before = {archive.sha256: archive for archive in store.kept(timeline.id).archives}
        removed = timeline.retain(keeping, archive=options.archive)
        left = [f"the archive {file}, which could not be removed" for file in removed.unused]
        left += store.erase() if options.erase else ()
        rest = store.kept(timeline.id)
    moved = [each for each in rest.archives if before.get(each.sha256, each) != each]
    facts = {
        "timeline": options.id,
        "retention": keeping,
        "events": removed.events,
        "bytes": removed.size,
        "first": rest.first,
        "erased": options.erase,
        "unused": list(removed.unused),
        "may_remain": left,
    }
    verb = "forgotten" if options.forget else f"archived in {options.archive}"
    amount = f"{plural(removed.events, 'event')} {verb}"
    amount += f", {plural(len(moved), 'archive')} found there" if moved else ""
    text = f"{options.id}: {amount}; the store still has the events from {rest.first} on"
    status = answer(options, facts, text)
    _tell_each(options, "may remain", left)
    return status


@command(
    "forget",
    ID,
    argument("path", required=False, metavar="PATH", help="remove only this block"),
    option("--artifact", metavar="REF", help="remove only this artifact"),
    option(
        "--artifacts",
        metavar="WHERE",
        help="folder or URL of the artifacts, if not in the store; none: they are gone",
    ),
    option("--yes", is_flag=True, help="remove a whole timeline without asking"),
    STORE,
)
def forget(options: Values) -> int:
    """Remove the data; print what is gone and where copies may remain."""
    if options.path is not None and options.artifact is not None:
        raise click.UsageError("--artifact and PATH cannot be used together: give one of them")
    place = None if options.artifacts in ("none", "None") else options.artifacts
    where: dict[str, Any] = {} if options.artifacts is None else {"artifacts": place}
    with store_to_write(options, destroying="forget") as store:
        if options.path is None and options.artifact is None and not options.yes:
            if not sys.stdin.isatty():
                raise UsageError(
                    f"this removes all of {options.id!r} permanently; confirm with --yes, or give a path"
                )
            complain(
                f"this removes all of {options.id!r} permanently, with its artifacts; type yes to go on"
            )
            if sys.stdin.readline().strip() != "yes":
                raise UsageError("the answer was not yes: nothing was removed")
        with Timeline.open(options.id, store=store, **where) as timeline:
            report = timeline.forget(options.path, artifact=options.artifact)
    what = options.path or options.artifact or "the whole timeline"
    amount = f"{_amount(report, 'blocks', 'artifacts', 'events')}, {report.size:,} bytes"
    status = answer(options, attrs.asdict(report), f"{options.id}: {what} is forgotten: {amount}")
    _tell_each(options, "may remain", report.may_remain)
    return status


# Damage


@command(
    "verify",
    option(
        "--expect",
        type=Path,
        metavar="FILE",
        help="compare with the receipt of an earlier time, too",
    ),
    option("--receipt", type=Path, metavar="FILE", help="write a receipt, if it holds together"),
    STORE,
    epilog="""\
examples:
  foldline verify --store sessions.duckdb
  foldline verify --store artifacts                                    a folder of artifacts, or its URL
  foldline verify --expect monday.receipt --receipt tuesday.receipt    that nothing of monday is lost
""",
)
def verify(options: Values) -> int:
    """Print a line for each problem; exit status 1 if there is any."""
    where = options.store or ""
    if where.startswith(BUCKETS) or (where and Path(where).is_dir()):
        return _tell_report(options, where, verify_store(where), "artifacts")
    place = existing_store(options)
    expect = options.expect.read_text("utf-8", "replace") if options.expect else None

    def read(location: StoreLocation) -> tuple[Any, str]:
        report = verify_store(location, expect=expect)
        if not report.ok or options.receipt is None:
            return report, ""
        with closing(location.open()) as store:
            return report, store.receipt()

    with looking(place, read) as ((report, paper), is_copy):
        if is_copy:
            tell_copy(place)
    if paper:
        with atomic_write(options.receipt) as file:
            file.write(paper.encode())
    return _tell_report(options, place, report, "timelines", "events")


def _tell_report(options: Values, place: object, report: Any, *counted: str) -> int:
    wrong = (
        f"{each.timeline} version {each.version}: {each.what}" if each.timeline else each.what
        for each in report.problems
    )
    _tell_each(options, "problem", wrong)
    if len(report.problems) >= PROBLEMS_MAX:
        complain(f"only the first {PROBLEMS_MAX} problems are listed; there may be more")
    verdict = "holds together" if report.ok else plural(len(report.problems), "problem")
    facts = {**attrs.asdict(report), "ok": report.ok, "store": str(place)}
    answer(options, facts, f"{place}: {_amount(report, *counted)}, {verdict}")
    return DONE if report.ok else FAILED


@command("repair", argument("target", metavar="TARGET", help="path or URL of the new store"), STORE)
def repair(options: Values) -> int:
    """Print a line for each loss; exit status 1 if there is any."""
    place = existing_store(options)
    report = repair_store(place, options.target)
    _tell_each(options, "lost", report.lost)
    amount = _amount(report, "timelines", "events", "artifacts")
    facts = {**attrs.asdict(report), "store": str(place), "target": options.target}
    answer(options, facts, f"{amount} of {place} saved in {options.target}")
    return FAILED if report.lost else DONE
