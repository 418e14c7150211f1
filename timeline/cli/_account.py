"""`foldline account`: the tokens of each part of a timeline's next request, and how many are left."""

import argparse

from timeline.cli._console import DONE, print_json, screen
from timeline.cli._plan import chosen, size_options
from timeline.cli._store import checked_name, fixed_from, fixed_options, looked_at, store_option

NAME = "account"
HELP = "show how many tokens each part of the next request takes, and how many are left"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", metavar="ID", help="the timeline")
    size_options(parser)
    fixed_options(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the account as a table; nothing is committed to the log."""
    from rich.text import Text

    from render import format_account
    from timeline import Timeline

    system, tools = fixed_from(options)
    with looked_at(options) as store:
        last = store.head(checked_name(store, options.id))
        with Timeline.open(options.id, **chosen(options, store)) as timeline:
            account = timeline.render_at(last, system=system, tools=tools).account
    if options.json:
        print_json({"timeline": options.id, "version": last, **account.to_json()})
    else:
        screen().print(Text(format_account(account)))
    return DONE
