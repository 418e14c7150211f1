"""`foldline import`: a recorded session becomes a timeline in a store."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from timeline.cli._console import answer, complain, plural
from timeline.cli._store import bytes_limit, location, session_from, session_options, store_option

if TYPE_CHECKING:
    from blocks import Event
    from persistence.sessions import Session

NAME = "import"
HELP = "read a session file, or an export, into a store"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("file", metavar="FILE", help="a session file, of any known format")
    parser.add_argument("--name", default="", metavar="NAME", help="default: the session's")
    session_options(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Read all of it first, then append it in one commit."""
    from blocks import TimelineId
    from persistence import append_bytes
    from timeline.replay import reserve_store

    session = session_from(options.file, options)
    name, place = TimelineId(options.name or session.name), location(options)
    events = _stored(session, options)
    with reserve_store(place, name) as store:
        append_bytes(store, name, events, expected_version=0)
    for notice in session.notices:
        where = f"line {notice.line}: " if notice.line else ""
        complain(f"{options.file}: {where}{notice.text}")
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


def _stored(session: "Session", options: argparse.Namespace) -> list[bytes]:
    """The events as they are to be stored: of an export that is whole, those that it holds."""
    from blocks import encode_event
    from persistence.sessions import EXPORT, exported_events

    if session.format == EXPORT and not session.notices:
        return exported_events(options.file, **bytes_limit(options))
    return [encode_event(event) for event in _events(session)]


def _events(session: "Session") -> "Iterator[Event]":
    """The session as facts: its blocks, and what the log says that its calls took.

    The ids are the same whenever the same file is read.
    """
    import msgspec

    from blocks import BlockAppended, EventId, canonical_block
    from persistence.sessions import Responded
    from timeline.engine._settings import counted

    ids = counted()
    for item in session.items:
        for block in item.blocks:
            yield BlockAppended(id=EventId(ids()), at=item.at, block=canonical_block(block))
        if isinstance(item, Responded) and item.usage is not None:
            yield msgspec.structs.replace(item.usage, id=EventId(ids()), at=item.at)
