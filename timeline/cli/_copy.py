"""`foldline copy`: copy timelines from one store into another, as a backup or to change the kind of store."""

import argparse
from contextlib import closing

from timeline.cli._console import answer, complain, plural
from timeline.cli._store import checked_name, existing, store_option, tell_copy

NAME = "copy"
HELP = "copy timelines with their artifacts into another store; continue an interrupted copy"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("target", metavar="TARGET", help="path or URL of the other store")
    parser.add_argument("ids", metavar="ID", nargs="*", help="timelines to copy (default: all)")
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Copy what the target does not have yet, and print how much that was."""
    import attrs

    from blocks import MisuseError
    from persistence import copy_store, locate_store, look

    source, target = existing(options), locate_store(options.target)
    if str(source) == str(target):
        raise MisuseError(f"{target} is the store itself; name another one")
    with look(source) as (ours, is_copy):
        if is_copy:
            tell_copy(source)
        for name in options.ids:
            checked_name(ours, name)  # before the target is created
        with closing(target.open()) as theirs:
            report = copy_store(ours, theirs, options.ids or None)
    said = f"{plural(report.timelines, 'timeline')}, {plural(report.events, 'event')}"
    said += f", {plural(report.artifacts, 'artifact')}"
    if report.forgotten:
        complain(f"{plural(report.forgotten, 'event')} of these timelines were forgotten before")
    facts = {**attrs.asdict(report), "store": str(source), "target": str(target)}
    return answer(options, facts, f"{said} copied from {source} to {target}")
