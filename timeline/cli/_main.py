"""The entry point: parse, run one command, turn what went wrong into a line and an exit code."""

import os
import sys
from collections.abc import Sequence
from traceback import print_exc

from blocks import FoldlineError, MisuseError
from timeline.cli._errors import DONE, FAILED, INTERRUPTED, USAGE, UsageError, complain
from timeline.cli._parser import parser
from timeline.cli._visible import guarded


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 done, 1 the work failed, 2 wrong usage."""
    with guarded():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has said what it had to say
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read us has seen enough, as `head` does
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
