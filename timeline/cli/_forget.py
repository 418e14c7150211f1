"""`foldline forget`: permanently remove a timeline, a block or an artifact."""

import argparse
import sys

from timeline.cli._console import UsageError, answer, complain, plural, say
from timeline.cli._store import checked_name, opened, store_option

NAME = "forget"
HELP = "permanently remove a timeline, a block or an artifact; list where copies may remain"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", metavar="ID", help="the timeline")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("path", nargs="?", metavar="PATH", help="remove only this block")
    what.add_argument("--artifact", metavar="REF", help="remove only this artifact")
    parser.add_argument(
        "--artifacts", metavar="WHERE", help="folder or URL of the artifacts, if not in the store"
    )
    parser.add_argument("--yes", action="store_true", help="remove a whole timeline without asking")
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Remove the data; print what is gone and where copies may remain."""
    import attrs

    from timeline import Timeline

    where = {} if options.artifacts is None else {"artifacts": options.artifacts}
    with opened(options) as store:
        checked_name(store, options.id)
        if options.path is None and options.artifact is None and not options.yes:
            _confirm(options.id)
        with Timeline.open(options.id, store=store, **where) as timeline:
            done = timeline.forget(options.path, artifact=options.artifact)
    what = options.path or options.artifact or "the whole timeline"
    gone = (
        f"{plural(done.blocks, 'block')}, {plural(done.artifacts, 'artifact')},"
        f" {plural(done.events, 'event')}, {done.size:,} bytes"
    )
    code = answer(options, attrs.asdict(done), f"{options.id}: {what} is forgotten: {gone}")
    for place in () if options.json else done.may_remain:
        say(f"may remain: {place}")
    return code


def _confirm(name: str) -> None:
    """Ask for confirmation on the terminal.

    Raises:
        UsageError: the answer is not yes, or standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError(
            f"this removes all of {name!r} for good; say so with --yes, or name a path"
        )
    complain(f"this removes all of {name!r} for good, with its artifacts; type yes to go on")
    if sys.stdin.readline().strip() != "yes":
        raise UsageError("nothing was removed")
