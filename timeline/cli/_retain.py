"""`foldline retain`: archive or delete the events that no window needs any more."""

import argparse
from typing import TYPE_CHECKING

from timeline.cli._console import answer, plural, say
from timeline.cli._store import checked_name, opened, store_option

if TYPE_CHECKING:
    from timeline.engine._removal import Keeping

NAME = "retain"
HELP = "archive or delete the events that the compactions of a timeline have folded"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", metavar="ID", help="the timeline")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument(
        "--archive", metavar="FOLDER", help="move the events into a file in this folder"
    )
    kind.add_argument("--forget", action="store_true", help="delete the events")
    parser.add_argument(
        "--erase",
        action="store_true",
        help="also erase them from the free blocks of the store's file",
    )
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Archive or delete the events; print how many."""
    from timeline import Timeline

    keeping: Keeping = "forget" if options.forget else "archive"
    with opened(options) as store:
        checked_name(store, options.id)
        with Timeline.open(options.id, store=store) as timeline:
            done = timeline.retain(keeping, archive=options.archive)
            left = store.erase() if options.erase else ()
            first = store.kept(timeline.id).first
    facts = {
        "timeline": options.id,
        "retention": keeping,
        "events": done.events,
        "bytes": done.size,
        "first": first,
        "erased": options.erase,
        "unused": list(done.unused),
        "may_remain": list(left),
    }
    verb = "forgotten" if options.forget else f"archived in {options.archive}"
    said = f"{options.id}: {plural(done.events, 'event')} {verb}; the store still has the events from {first} on"
    code = answer(options, facts, said)
    for place in () if options.json else left:
        say(f"may remain: {place}")
    return code
