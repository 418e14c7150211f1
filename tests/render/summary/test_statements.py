"""What a statement is worth: by its names and numbers in any language, by a few words in English."""

from render.summary._statements import claim_of, is_guess, offers, worth

from tests._table import for_each


@for_each(
    "told",
    [
        "The cause is that `parse_amount` drops the sign.",
        "All 214 tests pass after the change to ledger.py.",
        "Rounding is kept per line instead of per invoice.",
        "Die Ursache liegt in buchung_lesen: Zeile 48231 hat kein Vorzeichen.",
        "原因は parse_amount が 48231 行で符号を落とすことです。",
    ],
)
def test_a_result_a_cause_a_decision_tells_something(told: str) -> None:
    assert worth(told) >= 2
    assert not offers(told)


@for_each(
    "said",
    [
        "Let me check why the test in ledger_test.py fails.",
        "Now I'll run all the tests again.",
        "Now update the reader.",
        "I’m checking the reader next.",
        "Still waiting for the run.",
        "Would you like me to push it?",
        "If you want, I can push it.",
        "Great!",
    ],
)
def test_an_announcement_or_offer_tells_nothing(said: str) -> None:
    assert offers(said)


@for_each(
    "said",
    [
        "Let me keep the old reader instead of a new one, because it is safer.",
        "I'll use the queue rather than the lock.",
    ],
)
def test_an_announcement_with_its_reason_is_a_decision(said: str) -> None:
    assert not offers(said)
    assert is_guess(said), "not yet done"


def test_a_guess_is_one_unless_it_is_confirmed() -> None:
    assert is_guess("Maybe the clock is the trouble.")
    assert not is_guess("The clock is probably the trouble, as the failed run confirms.")


def test_a_later_statement_repeats_denies_or_takes_back_an_earlier_one() -> None:
    early = claim_of("The queue of the ledger has a race between its readers.")
    assert claim_of("So the queue of the ledger has a race between its two readers.").repeats(early)
    assert claim_of("The queue of the ledger does not have a race.").denies(early)
    assert claim_of("I was wrong about the race of the queue: readers share a lock.").denies(early)
    other = claim_of("The port of the server is 48231.")
    assert not other.repeats(early)
    assert not other.denies(early)
