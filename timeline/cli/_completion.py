"""`foldline completion`: what a shell needs to complete our commands, options and files."""

import argparse
import sys
from typing import Final, cast

from timeline.cli._console import DONE, UsageError

NAME = "completion"
HELP = "print what a shell needs to complete commands, options and files"
SHELLS: Final = ("bash", "zsh", "fish")
INSTALL: Final = """\
Put this into the shell's start-up file:
  bash   eval "$(foldline completion bash)"                  in ~/.bashrc
  zsh    eval "$(foldline completion zsh)"                   in ~/.zshrc, after compinit
  fish   foldline completion fish | source                   in ~/.config/fish/config.fish
"""
FILES: Final = frozenset({"FILE", "WHERE", "NAME|FILE.toml", "TARGET", "FOLDER"})
"""How the value of an option, or an argument, is called where it is a file."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.epilog = INSTALL
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(options: argparse.Namespace) -> int:
    """The script, on standard output."""
    import shtab

    if options.json:
        raise UsageError("a script for a shell is no JSON: leave --json out")
    parser = cast("argparse.ArgumentParser", options.whole())
    _mark_files(parser)
    sys.stdout.write(shtab.complete(parser, shell=options.shell) + "\n")
    return DONE


def _mark_files(parser: argparse.ArgumentParser) -> None:
    """Say which values are files, as shtab wants to hear it."""
    import shtab

    for action in parser._actions:  # noqa: SLF001 -- argparse has no other way to go through them
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
        if action.dest == "command":
            commands = cast("dict[str, argparse.ArgumentParser]", action.choices)
            for each in commands.values():
                _mark_files(each)
