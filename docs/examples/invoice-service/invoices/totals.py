"""Net, tax and gross of an invoice, in cents."""

from typing import NamedTuple

from invoices.money import multiply


class Totals(NamedTuple):
    """What an invoice comes to."""

    net: int
    tax: int
    gross: int


def total_of(invoice):
    """The totals of an invoice."""
    net = tax = 0
    for line in invoice.lines:
        amount = line.quantity * line.unit_price
        net += amount
        tax += multiply(amount, line.tax_rate)
    return Totals(net=net, tax=tax, gross=net + tax)


def by_rate(invoice):
    """Net amounts by tax rate, in the order in which the rates occur."""
    rates = {}
    for line in invoice.lines:
        rates[line.tax_rate] = rates.get(line.tax_rate, 0) + line.quantity * line.unit_price
    return rates
