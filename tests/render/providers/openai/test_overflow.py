"""Overflow: how OpenAI and the servers that speak its API say that a prompt is too long."""

from render import PROVIDERS, Overflow, overflow_of
from tests._table import for_each


@for_each(
    ("kind", "message", "overflow"),
    [
        ("context_length_exceeded", "", Overflow()),
        (
            "invalid_prompt",
            "Your input exceeds the context window of this model. Please adjust your input.",
            Overflow(),
        ),
        (
            "",
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in "
                "130512 tokens."
            ),
            Overflow(tokens=130_512, tokens_max=128_000),
        ),
        (
            "BadRequestError",
            (
                "This model's maximum context length is 2048 tokens. However, your request has 2300 input "
                "tokens. Please reduce the length of the input messages. (parameter=input_tokens, value=2300)"
            ),
            Overflow(tokens=2_300, tokens_max=2_048),
        ),
        (
            "400",
            (
                "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens "
                "(568 in the messages, 6048 in the completion)."
            ),
            Overflow(tokens=568, tokens_max=6_048),
        ),
        (
            "BadRequestError",
            (
                "You passed 40961 input tokens and requested 0 output tokens. However, the model's context "
                "length is only 40960 tokens, resulting in a maximum input length of 40960 tokens."
            ),
            Overflow(tokens=40_961, tokens_max=40_960),
        ),
        (
            "BadRequestError",
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
            Overflow(tokens=9_000, tokens_max=8_192),
        ),
        (
            "exceed_context_size_error",
            "the request exceeds the available context size. try increasing the context size",
            Overflow(),
        ),
        (
            "exceed_context_size_error",
            "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it",
            Overflow(tokens=14_429, tokens_max=8_192),
        ),
    ],
)
@for_each("status", [400, None])
def test_an_overflow_is_recognised_with_its_numbers(
    status: int | None, kind: str, message: str, overflow: Overflow
) -> None:
    assert overflow_of(status, kind, message) == overflow
    for name in ("openai.responses", "openai.chat"):
        assert PROVIDERS[name].overflow(status, kind, message) == overflow


@for_each(
    ("status", "kind", "message"),
    [
        (429, "rate_limit_exceeded", "exceeds the context window"),
        (500, "server_error", "maximum context length is 10 tokens"),
        (400, "invalid_request_error", "max_tokens must be at least 1, got -186."),
        (400, "invalid_request_error", "No tool output found for function call call_1."),
    ],
)
def test_another_error_is_none(status: int, kind: str, message: str) -> None:
    assert overflow_of(status, kind, message) is None
