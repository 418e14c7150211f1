"""`foldline fork`: create a timeline as a copy of another."""

import argparse

from timeline.cli._console import answer
from timeline.cli._store import checked_name, opened, store_option

NAME = "fork"
HELP = "create a timeline as a copy of another"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", metavar="ID", help="the timeline to copy")
    parser.add_argument("new", metavar="NEW", help="name of the copy")
    parser.add_argument("--at", type=int, metavar="VERSION", help="copy up to this version")
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Create the copy and print its name."""
    from blocks import MisuseError, TimelineId
    from timeline import Timeline

    with opened(options) as store:
        last = store.head(checked_name(store, options.id))
        if store.head(TimelineId(options.new)):
            raise MisuseError(f"the store already has a timeline {options.new!r}")
        with Timeline.open(options.id, store=store) as timeline:
            fork = timeline.fork(options.new, at=options.at)
            version = fork.version
    at = last if options.at is None else options.at
    facts = {"timeline": options.new, "parent": options.id, "at": at, "version": version}
    return answer(options, facts, f"{options.new}: {options.id} up to version {at}")
