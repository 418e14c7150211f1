"""`foldline completion`: the shell script that completes commands, options, files and timelines."""

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
HELP = "print the shell script that completes commands, options, files and timelines"
SHELLS: Final = ("bash", "zsh", "fish")
TIMELINES: Final = "timelines"
"""The argument with which the scripts ask for the names of timelines."""
NAMES_MAX: Final = 1_000
"""The most timelines offered, newest first."""
PATIENCE_SECONDS: Final = 2.0
"""After this time nothing is offered, so that an unreachable server does not block the prompt."""
PLAIN: Final = re.compile(r"[\w.@%+=,/-]+", re.ASCII)
"""A name that every shell reads as one plain word; other names are not offered."""
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
"""By shell: what its script calls to complete the name of a timeline."""
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
"""The metavars of options and arguments that take a file or folder."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = INSTALL
    choices = (*SHELLS, TIMELINES)
    parser.add_argument("shell", choices=choices, metavar="SHELL", help=", ".join(SHELLS))
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the script; or, when the script asks, the names of timelines, one per line."""
    if options.json:
        raise UsageError("the script is not JSON: leave --json out")
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
    """Print the newest timelines of the store; nothing if it is missing, locked or slow to answer."""
    from blocks import FoldlineError

    limit = Timer(PATIENCE_SECONDS, os._exit, (DONE,))
    limit.daemon = True
    limit.start()
    try:
        place = existing(options)
        if not place.is_writable():  # to read it, it would have to be copied first
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
    """Set on each action how shtab completes it: with files, or with timelines."""
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
