"""`foldline forget`: remove a timeline, a block or an artifact for good."""

import argparse

from timeline.cli._console import answer, plural, say
from timeline.cli._store import checked_name, opened, store_option

NAME = "forget"
HELP = "remove a timeline, a block or an artifact for good, and say where a copy may be"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("id", metavar="ID", help="the timeline")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("path", nargs="?", metavar="PATH", help="only this block")
    what.add_argument("--artifact", metavar="REF", help="only this artifact")
    parser.add_argument(
        "--artifacts", metavar="WHERE", help="folder or URL of the artifacts, if not in the store"
    )
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Forget, and state what is gone and what may remain."""
    import attrs

    from timeline import Timeline

    where = {} if options.artifacts is None else {"artifacts": options.artifacts}
    with opened(options) as store:
        checked_name(store, options.id)
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
