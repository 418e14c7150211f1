"""How the command ends, and what it says when it fails: one line."""

import argparse
import sys
from typing import NoReturn

from timeline.cli._visible import line

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class UsageError(Exception):
    """The command line itself was wrong."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of repeating the whole usage."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message}; see {self.prog} --help")
        raise SystemExit(USAGE)


def complain(message: str) -> None:
    """One line on stderr."""
    print(f"foldline: {line(' '.join(message.split()))}", file=sys.stderr)
