"""The ledger: one JSON file, a list of entries, oldest first."""

import json
import os
from pathlib import Path


class Ledger:
    """Entries of booked invoices."""

    def __init__(self, path):
        self.path = Path(path)
        self.entries = self._load()

    def _load(self):
        if not self.path.exists():
            return []
        return json.loads(self.path.read_text(encoding="utf-8"))

    def book(self, invoice, totals):
        """Add an invoice to the ledger."""
        self.entries.append(
            {
                "key": invoice.key,
                "date": invoice.date,
                "currency": invoice.currency,
                "net": totals.net,
                "tax": totals.tax,
                "gross": totals.gross,
            }
        )

    def on(self, date):
        """Entries of one day."""
        return [entry for entry in self.entries if entry["date"] == date]

    def save(self):
        """Write the file, whole or not at all."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.entries, indent=1) + "\n", encoding="utf-8")
        os.replace(new, self.path)
