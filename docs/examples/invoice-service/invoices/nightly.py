"""The nightly job: book every feed of a folder."""

import logging
from pathlib import Path

from invoices.feed import FeedError, load_feed
from invoices.store import Ledger
from invoices.totals import total_of

log = logging.getLogger("invoices.nightly")


def run_nightly(feeds, ledger):
    """Book every feed in the folder `feeds`; return the number of feeds that failed."""
    book = Ledger(ledger)
    failed = 0
    for path in sorted(Path(feeds).glob("*.csv")):
        try:
            invoices = load_feed(path)
        except FeedError as error:
            log.error("feed failed: %s", error)
            failed += 1
            continue
        for invoice in invoices:
            book.book(invoice, total_of(invoice))
        log.info("feed booked: %s, %d invoices", path.name, len(invoices))
    book.save()
    return failed
