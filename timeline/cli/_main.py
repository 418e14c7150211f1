"""The entry point: parse the command line, run one command, turn errors into a line and an exit status.

`COMMANDS` has every command; its module is imported when it is run or when its options are needed.
"""

import errno
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from traceback import print_exc
from typing import Any, Final

import click
from click import shell_completion
from click.shell_completion import CompletionItem

from blocks import FoldlineError, MisuseError, did_you_mean
from timeline.cli._options import DEBUG, OPTIONS, OneOf, UsageError, Values, argument, command
from timeline.cli._terminal import DONE, FAILED, INTERRUPTED, USAGE, complain, guarded

_TABLE: Final = """\
bill        _bill     add up what the sessions of agents on this machine cost: by day, project, model, call, tool and file
wrap        _gateway  run Claude Code, Codex, opencode or pi through a gateway
replay      _replay   run recorded sessions through the engine, call by call: cost, recall, compactions
import      _upkeep   import session files or exported timelines into a store
list        _inspect  list the timelines of a store: first prompt, model and size of each
show        _inspect  list the blocks of a timeline with their states, or print one block in full
search      _inspect  find blocks by their text
stats       _inspect  count the events, blocks, tools and tokens of a timeline
account     _request  show how many tokens each part of the next request takes, and how many are left
propose     _request  show what a compaction would do now, without doing it
render      _request  print the request that a timeline renders to, without recording anything
report      _report   write a timeline as one HTML file that opens offline
serve       _report   show timelines in a browser, as they grow; changes nothing
models      _models   list the models with known window and prices, or load models from a file
mcp         _gateway  let an agent read a store, through MCP tools on standard input and output
proxy       _gateway  forward an agent's requests to its provider, rendered by a timeline
savings     _gateway  add up what the calls of `wrap` and `proxy` cost, and would have cost without them
export      _upkeep   write the log of a timeline as lines of JSON
copy        _upkeep   copy timelines with their artifacts into another store; continue an interrupted copy
fork        _upkeep   create a timeline as a copy of another
retain      _upkeep   archive or delete the events that the compactions of a timeline have folded
forget      _upkeep   permanently remove a timeline, a block or an artifact; list where copies may remain
verify      _upkeep   read a whole store and report inconsistencies
repair      _upkeep   copy what is readable in a damaged store into a new one; the damaged one is not changed
help        _main     show this help, or that of a command
completion  _main     print the shell script that completes commands, options, files and timelines
"""
COMMANDS: Final = {
    name: (module, sentence)
    for name, module, sentence in (row.split(maxsplit=2) for row in _TABLE.splitlines())
}
"""By name: the command's module, and what it does."""
ALONE: Final = "bill"
"""The command that `foldline` alone runs."""
SHELLS: Final = ("bash", "zsh", "fish")
COMPLETING: Final = "_FOLDLINE_COMPLETE"
"""The variable with which a shell's script asks for completions."""


class Commands(click.Group):
    """The commands of `COMMANDS`, each imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- as click has it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- the same
        if cmd_name not in COMMANDS:
            return None
        module, sentence = COMMANDS[cmd_name]
        members = vars(import_module(f"timeline.cli.{module}")).values()
        member = next(m for m in members if isinstance(m, click.Command) and m.name == cmd_name)
        member.help = f"{sentence[0].upper()}{sentence[1:]}."
        return member

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- the same
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """The commands, without importing them, and the options."""
        names = [
            CompletionItem[Any](name, help=sentence)
            for name, (_, sentence) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


_with_version: Final = click.version_option(
    package_name="foldline", message="foldline %(version)s", help="print the version"
)
foldline: Final = _with_version(
    Commands(
        "foldline",
        help="An append-only timeline of what an agent did, rendered into model requests."
        " Without arguments: what the sessions of agents on this machine cost.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done, 1 the work failed, 2 wrong usage."""
    with guarded():
        if instruction := os.environ.get(COMPLETING):
            return _complete(instruction)
        return obey(list(sys.argv[1:] if arguments is None else arguments))


def obey(words: list[str]) -> int:
    """Like `main`, for callers that have already guarded standard output."""
    meta: dict[str, Any] = {}
    try:
        with foldline.make_context("foldline", words or [ALONE]) as context:
            meta = context.meta
            status: int = foldline.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:  # after --help or --version
        return stop.exit_code
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except (FoldlineError, MemoryError, OSError, click.UsageError) as error:
        if meta.get(DEBUG):
            print_exc()
        complain(_in_words(error, meta.get(OPTIONS, ())))
        return USAGE if isinstance(error, click.UsageError | MisuseError) else FAILED
    return status


NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def _in_words(error: Exception, options: Sequence[str]) -> str:
    if isinstance(error, click.UsageError):
        return _misuse(error)
    if isinstance(error, OSError) and error.filename:
        advice = "; free disk space and repeat the command" if error.errno in NO_ROOM else ""
        return f"{error.filename}: {error.strerror}{advice}"
    if isinstance(error, MemoryError):
        return "not enough memory"
    return _for_shell(str(error), options) or type(error).__name__


def _for_shell(message: str, options: Sequence[str]) -> str:
    """A message of the library as a command says it: `window=5` is `--window 5` if the command has this option, and
    the name of the method in front, which nobody has called, is left out."""

    def spelled(match: re.Match[str]) -> str:
        option = f"--{match[1].replace('_', '-')}"
        return f"{option}{' ' * bool(match[2])}{match[2]}" if option in options else match[0]

    return re.sub(r"\b([a-z_]+)=([^\s,;:)]*)", spelled, re.sub(r"^[a-z_]+\(\): ", "", message))


def _misuse(error: click.UsageError) -> str:
    """What is wrong with the command line; what click has found gets a hint where to read more."""
    if isinstance(error, UsageError) or error.ctx is None:
        return error.message
    match error:
        case click.exceptions.NoSuchCommand(command_name=name):
            text = f"there is no command {name!r}{did_you_mean(name, COMMANDS)}"
        case click.NoSuchOption():
            names = [name for param in error.ctx.command.params for name in param.opts]
            near = did_you_mean(error.option_name, [n for n in names if n.startswith("-")])
            text = f"unrecognized arguments: {error.option_name}{near}"
        case click.MissingParameter(param=click.Argument() as param):
            text = f"the following arguments are required: {param.metavar}"
        case click.BadParameter(param=click.Parameter() as param):
            name = param.opts[0] if isinstance(param, click.Option) else str(param.metavar)
            text = f"argument {name}: {error.message}"
        case _:
            text = error.format_message()
    text = f"{text[0].lower()}{text[1:]}".removesuffix(".")
    return f"{text}{'' if text.endswith('?') else ';'} see {error.ctx.command_path} --help"


@command(
    "help",
    argument(
        "about", required=False, type=OneOf(tuple(COMMANDS)), metavar="COMMAND", help="whose help"
    ),
)
def show_help(options: Values) -> int:
    """Print what `--help` prints."""
    return obey([*filter(None, [options.about]), "--help"])


@command(
    "completion",
    argument("shell", type=OneOf(SHELLS), metavar="SHELL", help=", ".join(SHELLS)),
    epilog="""\
Put this into the shell's start-up file:
  bash   eval "$(foldline completion bash)"                  in ~/.bashrc
  zsh    eval "$(foldline completion zsh)"                   in ~/.zshrc, after compinit
  fish   foldline completion fish | source                   in ~/.config/fish/config.fish
""",
)
def completion(options: Values) -> int:
    """Print the script, which calls foldline at each press of Tab."""
    if options.json:
        raise UsageError("the script is not JSON: leave --json out")
    return _complete(f"{options.shell}_source")


def _complete(instruction: str) -> int:
    """Print what a shell asks for: its script (`bash_source`), or completions (`bash_complete`)."""
    return shell_completion.shell_complete(foldline, {}, "foldline", COMPLETING, instruction)
