"""Overflow: the providers' ways to say that a prompt is too long, and what only looks like it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from render import Overflow, overflow_of
from tests._table import for_each


@for_each(
    ("status", "kind", "message", "overflow"),
    [
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210,513 tokens > 200000 maximum",
            Overflow(tokens=210_513, tokens_max=200_000),
        ),
        (
            400,
            "invalid_request_error",
            (
                "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease "
                "input length or `max_tokens` and try again"
            ),
            Overflow(tokens=190_000, tokens_max=200_000),
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 1_210_513 tokens > 200_000_ maximum",
            Overflow(tokens=1_210_513, tokens_max=200_000),
        ),
        (None, "invalid_request_error", "Prompt is too long", Overflow()),
        (None, "model_context_window_exceeded", "", Overflow()),
        (
            400,
            "context_length_exceeded",
            "Your input exceeds the context window of this model. Please adjust your input.",
            Overflow(),
        ),
        (
            400,
            "",
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted "
                "in 130512 tokens. Please reduce the length of the messages."
            ),
            Overflow(tokens=130_512, tokens_max=128_000),
        ),
        (
            400,
            "context_length_exceeded",
            (
                "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
                "(8500 in the messages, 500 in the completion)."
            ),
            Overflow(tokens=8_500, tokens_max=8_192),
        ),
        (
            None,
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens.",
            Overflow(tokens_max=8_192),
        ),
    ],
)
def test_an_overflow_is_recognised_with_its_numbers(
    status: int | None, kind: str, message: str, overflow: Overflow
) -> None:
    assert overflow_of(status, kind, message) == overflow


@for_each(
    ("status", "kind", "message"),
    [
        (400, "invalid_request_error", "messages: at least one message is required"),
        (429, "rate_limit_error", "prompt is too long: 2 tokens > 1 maximum"),
        (529, "overloaded_error", "prompt is too long: 2 tokens > 1 maximum"),
        (None, "overloaded_error", "prompt is too long: 2 tokens > 1 maximum"),
        (413, "request_too_large", "Request exceeds the maximum size"),
        (None, "max_tokens", ""),
    ],
)
def test_any_other_error_is_none(status: int | None, kind: str, message: str) -> None:
    assert overflow_of(status, kind, message) is None


@settings(deadline=None)
@given(st.text(alphabet="0123456789,>_ ", max_size=200))
def test_strange_numbers_do_no_harm(numbers: str) -> None:
    assert overflow_of(400, "context_length_exceeded", f"{numbers} tokens > {numbers}") is not None
