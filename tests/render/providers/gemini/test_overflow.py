"""Errors that say that a prompt was too long, and errors that do not."""

from render import PROVIDERS, Overflow, overflow_of
from tests._table import for_each

READ = PROVIDERS["gemini"].overflow


@for_each(
    ("message", "found"),
    [
        ("The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", Overflow(tokens=1_200_293, tokens_max=1_048_576)),
        ("The input token count exceeds the maximum number of tokens allowed 1048576.", Overflow(tokens_max=1_048_576)),
        ("The input token count exceeds the maximum number of tokens allowed.", Overflow()),
        ("Unable to submit request because the input token count is 81881 but model only supports up to 65536. Reduce the input token count and try again.", Overflow(tokens=81_881, tokens_max=65_536)),
    ],
)  # fmt: skip
def test_a_prompt_that_is_too_long(message: str, found: Overflow) -> None:
    for kind in ("INVALID_ARGUMENT", "400", ""):
        assert READ(400, kind, message) == found
    assert READ(None, "INVALID_ARGUMENT", message) == found
    assert overflow_of(400, "INVALID_ARGUMENT", message) == found
    assert READ(429, "RESOURCE_EXHAUSTED", message) is None
    assert READ(400, "INTERNAL", message) is None


@for_each("message", ["Please use a valid role: user, model.", "", "maximum number of tokens"])
def test_an_error_about_something_else(message: str) -> None:
    assert READ(400, "INVALID_ARGUMENT", message) is None
