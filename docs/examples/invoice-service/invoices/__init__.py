"""Invoices of our suppliers, read every night and booked into a ledger.

The names below are the public API (docs/api.md). They change only with a new major version.
"""

from invoices.feed import load_feed
from invoices.model import Invoice, Line
from invoices.nightly import run_nightly
from invoices.totals import total_of

__all__ = ["Invoice", "Line", "load_feed", "run_nightly", "total_of"]
