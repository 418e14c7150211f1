"""`foldline completion`: what a shell needs to complete our commands, options, files and timelines."""

import argparse
import os
import re
import sys
from contextlib import closing
from threading import Timer
from typing import Final, cast

from timeline.cli._console import DONE, UsageError, say
from timeline.cli._store import existing, store_option

NAME = "completion"
HELP = "print what a shell needs to complete commands, options, files and timelines"
SHELLS: Final = ("bash", "zsh", "fish")
TIMELINES: Final = "timelines"
"""What the scripts ask us for when somebody completes the name of a timeline."""
NAMES_MAX: Final = 1_000
"""Timelines that are offered, the newest first."""
PATIENCE_SECONDS: Final = 2.0
"""After which nothing is offered: somebody waits at a prompt, perhaps for a server that is not there."""
PLAIN: Final = re.compile(r"[\w.@%+=,/-]+", re.ASCII)
"""A name that no shell takes apart, or for something else; only such are offered."""
INSTALL: Final = """\
Put this into the shell's start-up file:
  bash   eval "$(foldline completion bash)"                  in ~/.bashrc
  zsh    eval "$(foldline completion zsh)"                   in ~/.zshrc, after compinit
  fish   foldline completion fish | source                   in ~/.config/fish/config.fish
"""
NAMES: Final = {
    "bash": "_foldline_timelines",
    "zsh": "_foldline_timelines",
    "fish": "(_foldline_timelines)",
}
"""How each shell is told to ask."""
ASKING: Final = {
    "bash": """
_foldline_timelines() {
  local where=()
  [[ "$COMP_LINE" =~ --store[=[:space:]]+([^[:space:]]+) ]] && where=(--store "${BASH_REMATCH[1]/#\\~/$HOME}")
  compgen -W "$("${COMP_WORDS[0]}" completion timelines "${where[@]}" 2>/dev/null)" -- "$1"
}
""",
    "zsh": """
_foldline_timelines() {
  local -a where names
  local place=${words[(I)--store]}
  (( place )) && where=(--store "${(Q)words[place+1]}")
  names=("${(@f)$(${words[1]} completion timelines $where 2>/dev/null)}")
  compadd -a names
}
""",
    "fish": """
function _foldline_timelines
  set -l words (commandline -opc)
  set -l where
  if set -l place (contains -i -- --store $words)
    set where --store $words[(math $place + 1)]
  end
  $words[1] completion timelines $where 2>/dev/null
end
""",
}
FILES: Final = frozenset({"FILE", "WHERE", "NAME|FILE.toml", "TARGET", "FOLDER"})
"""How the value of an option, or an argument, is called where it is a file."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.epilog = INSTALL
    choices = (*SHELLS, TIMELINES)
    parser.add_argument("shell", choices=choices, metavar="SHELL", help=", ".join(SHELLS))
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """The script, on standard output; or the names of timelines, a line each."""
    if options.json:
        raise UsageError("what is for a shell is no JSON: leave --json out")
    if options.shell == TIMELINES:
        _offer(options)
        return DONE
    import shtab

    parser = cast("argparse.ArgumentParser", options.whole())
    _mark(parser)
    asking = ASKING[options.shell]
    sys.stdout.write(shtab.complete(parser, shell=options.shell, preamble=asking) + "\n")
    return DONE


def _offer(options: argparse.Namespace) -> None:
    """The newest timelines of the store; nothing, where that is not free at once."""
    from blocks import FoldlineError

    limit = Timer(PATIENCE_SECONDS, os._exit, (DONE,))
    limit.daemon = True
    limit.start()
    try:
        place = existing(options)
        if not place.is_writable():  # it would be copied first
            return
        with closing(place.open()) as store:
            found = sorted(store.list(), key=lambda info: -info.updated_at)[:NAMES_MAX]
    except (FoldlineError, OSError):
        return
    finally:
        limit.cancel()
    for info in found:
        if PLAIN.fullmatch(info.id):
            say(info.id)


def _mark(parser: argparse.ArgumentParser) -> None:
    """Say which values are files, and which are timelines, as shtab wants to hear it."""
    import shtab

    for action in parser._actions:  # noqa: SLF001 -- argparse has no other way to go through them
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
        elif action.metavar == "ID":
            action.complete = NAMES  # type: ignore[attr-defined]  # the same
        if action.dest == "command":
            commands = cast("dict[str, argparse.ArgumentParser]", action.choices)
            for each in commands.values():
                _mark(each)
