"""The entry point: parse the command line, run one command, turn errors into a line and an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from traceback import print_exc
from typing import Any

from blocks import FoldlineError, MisuseError
from timeline.cli import (
    _account,
    _completion,
    _copy,
    _export,
    _forget,
    _fork,
    _import,
    _list,
    _mcp,
    _models,
    _plan,
    _proxy,
    _render,
    _repair,
    _replay,
    _report,
    _retain,
    _savings,
    _search,
    _serve,
    _sessions,
    _show,
    _stats,
    _verify,
    _wrap,
)
from timeline.cli._console import DONE, FAILED, INTERRUPTED, USAGE, UsageError, complain
from timeline.cli._parser import Parser
from timeline.cli._visible import guarded

COMMANDS = (
    _sessions,
    _wrap,
    _replay,
    _import,
    _list,
    _show,
    _search,
    _stats,
    _account,
    _plan,
    _render,
    _report,
    _serve,
    _models,
    _mcp,
    _proxy,
    _savings,
    _export,
    _copy,
    _fork,
    _retain,
    _forget,
    _verify,
    _repair,
    _completion,
)


class _Version(argparse.Action):
    """Looks up the version only when `--version` is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        print(f"foldline {version('foldline')}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser of `foldline`."""
    top = Parser(
        prog="foldline",
        description="An append-only timeline of what an agent did, rendered into model requests."
        " Without arguments: list the agent sessions on this machine and suggest a command.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
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
        added.set_defaults(run=command.run, parser=added, whole=parser)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 done, 1 the work failed, 2 wrong usage."""
    with guarded():
        return obey(arguments)


def obey(arguments: Sequence[str] | None) -> int:
    """Like `main`, for callers that have already guarded standard output."""
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        options, rest = parser().parse_known_args(words or [_sessions.NAME])
        if rest:
            options.parser.refuse(rest)
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except (FoldlineError, MemoryError, OSError, UsageError) as error:
        if options.debug:
            print_exc()
        complain(_told(error))
        return USAGE if isinstance(error, UsageError | MisuseError) else FAILED
    return code


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "not enough memory"
    return str(error) or type(error).__name__
