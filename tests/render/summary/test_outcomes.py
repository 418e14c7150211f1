"""How tests went is read from what test runners say last."""

from hypothesis import given
from hypothesis import strategies as st

from render.summary._calls import SEARCHED, outcome
from tests._table import for_each

SAID = {
    "== 3 failed, 40 passed, 1 warning in 2.10s ==": "3 failed, 40 passed",
    "2 passed, 1 skipped, 1 error in 0.5s": "1 errors, 2 passed, 1 skipped",
    "Ran 12 tests in 0.1s\n\nFAILED (failures=1, errors=2)": "1 failed, 2 errors, 9 passed",
    "Ran 1 test in 0.1s\n\nOK": "1 passed",
    "Tests:       1 failed, 12 passed, 13 total\nTime: 2 s": "1 failed, 12 passed",
    "      Tests  1 failed | 12 passed (13)": "1 failed, 12 passed",
    "  12 passing (30ms)\n  1 failing": "1 failed, 12 passed",
    "# tests 13\n# pass 12\n# fail 1": "1 failed, 12 passed",
    "test result: ok. 5 passed; 0 failed; 2 ignored; 0 measured": "5 passed, 2 skipped",
    "95% tests passed, 1 tests failed out of 20": "1 failed, 19 passed",
    "[INFO] Tests run: 12, Failures: 1, Errors: 0, Skipped: 2": "1 failed, 9 passed, 2 skipped",
    "12 tests completed, 1 failed": "1 failed, 11 passed",
    "12 examples, 0 failures": "12 passed",
    "✖ 7 problems (7 errors, 0 warnings)": "7 errors",
    "ok  \tshop/cart\t0.1s\nFAIL\tshop/tax\t0.2s\nFAIL": "1 package failed",
    "ok  \tshop/cart\t(cached)\nok  \tshop/tax\t0.2s": "packages ok",
}


@for_each("said", SAID)
def test_what_a_runner_sums_up_is_told_in_the_same_words(said: str) -> None:
    assert outcome(f"collecting ...\n{said}\n") == SAID[said]


def test_the_parts_of_one_run_are_added_up() -> None:
    part = "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured\n"
    assert outcome(f"{part}\n   Doc-tests\n{part}") == "10 passed"


@for_each("said", ["", "all passed", "I saw 12 passed in", "12 files in 3.1s", "tests failed"])
def test_other_output_says_nothing_of_tests(said: str) -> None:
    assert outcome(said) == ""


def test_a_number_that_the_end_of_an_output_begins_within_is_not_read() -> None:
    line = "1234 passed in 1.0s\n"
    assert outcome(line + "x" * (SEARCHED - len(line) + 2)) == ""


@given(st.text("0123456789 passedfil,:;=|()\n", max_size=300))
def test_whatever_an_output_says_its_outcome_is_a_short_line(text: str) -> None:
    assert "\n" not in outcome(text)
    assert len(outcome(text)) < 100
