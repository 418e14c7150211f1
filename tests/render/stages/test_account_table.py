"""The account as plain text: every number of it, and what is a guess on the first line."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from render import Account, format_account

ACCOUNT = Account(
    model="claude-haiku-4-5",
    system=100,
    tools=900,
    summary=2_000,
    messages=7_000,
    limit=50_000,
    output=8_000,
    total=12_000,
    estimated=10_000,
    ratio=1.1,
    prefix=1_000.0,
    samples=3,
    error_last=-0.02,
)


def test_every_number_is_there_and_none_is_cut() -> None:
    assert format_account(ACCOUNT).splitlines() == [
        "model claude-haiku-4-5",
        "limit      50,000  besides 8,000 for the answer",
        "system        100",
        "tools         900",
        "summary     2,000  with what was carried",
        "messages    7,000",
        "estimated  10,000",
        "total      12,000  calibrated: 1.100 each, +1,000; the last estimate was off by -2.0%",
        "available  38,000  21% of the room is used",
    ]


def test_what_does_not_fit_is_said_not_to() -> None:
    last = format_account(attrs.evolve(ACCOUNT, total=50_001)).splitlines()[-1]
    assert last.split() == ["available", "-1", "it", "does", "not", "fit"]


def test_what_nobody_described_is_a_guess_on_the_first_line() -> None:
    unknown = attrs.evolve(ACCOUNT, known=False)
    first, second, *_ = format_account(unknown).splitlines()
    assert first == "model claude-haiku-4-5: unknown, so the counts are guesses"
    assert second.endswith("; the window is a guess")
    given_window = attrs.evolve(unknown, output=0)
    assert format_account(given_window).splitlines()[1].endswith("given directly")


@given(st.integers(1, 10**7), st.integers(0, 10**7))
def test_what_is_available_and_what_is_used_go_together(limit: int, total: int) -> None:
    account = attrs.evolve(ACCOUNT, limit=limit, total=total, system=0, tools=0, prefix=0.0)
    found = account.to_json()
    assert found["available"] == limit - total
    assert (found["utilisation"] > 1) <= (total > limit)
    assert found["total"] == total
    assert found["output"] == 8_000
