"""`foldline import`: read recorded sessions into a store, one timeline each."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timeline.cli._console import DONE, FAILED, UsageError, answer, complain, plural, progress_bar
from timeline.cli._files import FILES_HELP, File, session_files, tell_passed_over
from timeline.cli._notes import grouped
from timeline.cli._store import bytes_limit, location, session_from, session_options, store_option

if TYPE_CHECKING:
    from blocks import Event
    from persistence.sessions import Session

NAME = "import"
HELP = "import session files or exported timelines into a store"
EXAMPLES = """\
examples:
  foldline import session.jsonl
  foldline import ~/.claude/projects                 every session in a folder
  foldline import 'logs/**/*.jsonl' --store all.duckdb
  ssh host cat session.jsonl | foldline import - --name from-host
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = EXAMPLES
    parser.add_argument("files", nargs="+", metavar="FILE", help=FILES_HELP)
    parser.add_argument(
        "--name", default="", metavar="NAME", help="name of the timeline (default: the session's)"
    )
    session_options(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Import each file in one commit; an unreadable file does not stop the others."""
    with session_files(options.files) as files:
        if len(files) == 1:
            return _imported(files[0], options)
        if options.name:
            raise UsageError("--name works with one session only")
        with progress_bar("importing", len(files)) as progress:
            return _all_imported(files, options, progress)


def _all_imported(files: list[File], options: argparse.Namespace, progress: Any) -> int:
    from blocks import MisuseError, SessionFormatError

    passed: list[str] = []
    failed = 0
    for number, file in enumerate(files, 1):
        try:
            _imported(file, options)
        except (MisuseError, SessionFormatError) as error:
            if file.is_found:
                passed.append(str(error))
            else:
                failed += 1
                complain(str(error))
        if progress:
            progress(number, len(files))
    tell_passed_over(passed)
    return FAILED if failed or len(passed) == len(files) else DONE


def _imported(file: File, options: argparse.Namespace) -> int:
    """Read the whole file, then append its events in one commit."""
    from blocks import TimelineId
    from timeline.replay import reserve_store

    session = session_from(file.path, options)
    name, place = TimelineId(options.name or session.name), location(options)
    events = _stored(session, file.path, options)
    with reserve_store(place, name) as store:
        store.append_bytes(name, events, expected_version=0)
    for note in grouped((notice.line, notice.text) for notice in session.notices):
        complain(f"{file.path}: {note}")
    facts = {
        "timeline": name,
        "store": str(place),
        "format": session.format,
        "events": len(events),
        "calls": len(session.calls),
        "notices": len(session.notices),
    }
    held = f"{plural(len(events), 'event')}, {plural(len(session.calls), 'call')}"
    return answer(options, facts, f"{name}: {held} ({session.format}) in {place}")


def _stored(session: "Session", file: str, options: argparse.Namespace) -> list[bytes]:
    """The events to store, as bytes; a complete export's own events are taken unchanged."""
    from blocks import encode_event
    from persistence.sessions import EXPORT, exported_events

    if session.format == EXPORT and not session.notices:
        return exported_events(file, **bytes_limit(options))
    return [encode_event(event) for event in _events(session)]


def _events(session: "Session") -> "Iterator[Event]":
    """The session's blocks and the recorded usage of its calls, as events.

    The ids are the same each time the same file is read.
    """
    import msgspec

    from blocks import BlockAppended, EventId, canonical_block
    from persistence.sessions import Responded
    from timeline.engine._engine import counted

    ids = counted()
    for item in session.items:
        for block in item.blocks:
            yield BlockAppended(id=EventId(ids()), at=item.at, block=canonical_block(block))
        if isinstance(item, Responded) and item.usage is not None:
            yield msgspec.structs.replace(item.usage, id=EventId(ids()), at=item.at)
