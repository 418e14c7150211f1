"""The account of a request as a table of plain text."""

from collections.abc import Iterator

from render.stages._budget import Account


def format_account(account: Account) -> str:
    """The account as lines of text: each part with its tokens, and how much is left."""
    rows = [(name, f"{tokens:,}", said) for name, tokens, said in _rows(account)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{name:<{widths[0]}}  {tokens:>{widths[1]}}  {said}" for name, tokens, said in rows]
    head = f"model {account.model}"
    if not account.known:
        head += ": unknown, so the counts are guesses"
    return "\n".join([head, *map(str.rstrip, lines)])


def _rows(account: Account) -> Iterator[tuple[str, int, str]]:
    reserve = f"besides {account.output:,} for the answer" if account.output else "as it was given"
    guess = ", of a guessed window" if account.output and not account.known else ""
    yield "limit", account.limit, reserve + guess
    yield "system", account.system, ""
    yield "tools", account.tools, ""
    yield "summary", account.summary, "with what was carried"
    yield "messages", account.messages, ""
    if account.standing:
        lost = f"; {account.standing_cut:,} more had no room" if account.standing_cut else ""
        yield "of these standing", account.standing, f"instructions{lost}"
    if account.rehydrated:
        yield "rehydrated", account.rehydrated, ""
    yield "estimated", account.estimated, ""
    yield "total", account.total, _calibrated(account)
    left = "" if account.available >= 0 else "it does not fit"
    yield "available", account.available, left or f"{account.utilisation:.0%} of the room is used"


def _calibrated(account: Account) -> str:
    if not account.samples:
        return "not calibrated: nothing was reported yet"
    return (
        f"calibrated: {account.ratio:.3f} each, {account.prefix:+,.0f}; "
        f"the last estimate was off by {account.error_last:+.1%}"
    )
