"""The command line as a whole; each command adds itself."""

import argparse
from importlib.metadata import version
from typing import Any

from timeline.cli import (
    _export,
    _fork,
    _import,
    _list,
    _plan,
    _render,
    _replay,
    _search,
    _show,
    _stats,
    _verify,
)
from timeline.cli._errors import Parser

COMMANDS = (
    _replay,
    _import,
    _list,
    _show,
    _search,
    _stats,
    _plan,
    _render,
    _export,
    _fork,
    _verify,
)


class _Version(argparse.Action):
    """Looks the version up only when asked for it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        print(f"foldline {version('foldline')}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser of `foldline`."""
    top = Parser(
        prog="foldline",
        description="An append-only timeline of what an agent did, rendered into model requests.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="JSON, for machines")
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        added = commands.add_parser(
            command.NAME,
            help=command.HELP,
            description=f"{command.HELP[0].upper()}{command.HELP[1:]}.",
            parents=[common],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(added)
        added.set_defaults(run=command.run)
    return top
