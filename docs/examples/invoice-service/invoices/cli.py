"""The command line."""

import argparse
import logging

from invoices.money import format_amount
from invoices.nightly import run_nightly
from invoices.store import Ledger


def parser():
    """The arguments of all commands."""
    root = argparse.ArgumentParser(prog="invoices")
    commands = root.add_subparsers(dest="command", required=True)
    nightly = commands.add_parser("nightly", help="book every feed of a folder")
    nightly.add_argument("--feeds", default="feeds")
    nightly.add_argument("--ledger", default="ledger.json")
    show = commands.add_parser("show", help="list what was booked on a day")
    show.add_argument("date")
    show.add_argument("--ledger", default="ledger.json")
    return root


def main(argv=None):
    """Run a command; the exit status is the number of failed feeds."""
    arguments = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    if arguments.command == "nightly":
        return run_nightly(arguments.feeds, arguments.ledger)
    for entry in Ledger(arguments.ledger).on(arguments.date):
        print(f"{entry['key']:<24} {format_amount(entry['gross'], entry['currency']):>18}")
    return 0
