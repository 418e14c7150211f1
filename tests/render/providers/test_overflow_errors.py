"""Overflow: every provider's and server's way to say that a prompt is too long, and what only looks like it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from render import OVERFLOW_TEXTS, Overflow, overflow_of
from tests._table import for_each


@for_each("number", range(len(OVERFLOW_TEXTS)))
def test_every_text_of_the_table_is_recognised_with_the_numbers_that_it_has(number: int) -> None:
    text = OVERFLOW_TEXTS[number]
    overflow = text.overflow(text.example)
    assert overflow is not None
    for tokens in (overflow.tokens, overflow.tokens_max):
        assert tokens is None or str(tokens) in text.example
    assert text.source.startswith(("https://", "unverified", "the type"))
    known = overflow_of(400, "invalid_request_error", text.example)
    assert known is not None
    assert known.tokens == overflow.tokens or overflow.tokens is None


@for_each(
    ("server", "kind", "message", "overflow"),
    [
        # Of the makers.
        ("OpenAI", "context_length_exceeded", "", Overflow()),
        ("OpenAI", "invalid_prompt", "Your input exceeds the context window of this model. Please adjust your input.", Overflow()),
        ("OpenAI", "", "This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens.", Overflow(tokens=130_512, tokens_max=128_000)),
        ("OpenAI", "400", "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion).", Overflow(tokens=568, tokens_max=6_048)),
        ("OpenAI", "context_length_exceeded", "This model's maximum context length is 8192 tokens.", Overflow(tokens_max=8_192)),
        ("Anthropic", "invalid_request_error", "prompt is too long: 210,513 tokens > 200000 maximum", Overflow(tokens=210_513, tokens_max=200_000)),
        ("Anthropic", "invalid_request_error", "prompt is too long: 1_210_513 tokens > 200_000_ maximum", Overflow(tokens=1_210_513, tokens_max=200_000)),
        ("Anthropic", "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease", Overflow(tokens=190_000, tokens_max=200_000)),
        ("Anthropic", "invalid_request_error", "Prompt is too long", Overflow()),
        ("Anthropic", "model_context_window_exceeded", "", Overflow()),
        ("Gemini", "INVALID_ARGUMENT", "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", Overflow(tokens=1_200_293, tokens_max=1_048_576)),
        ("Gemini", "400", "The input token count exceeds the maximum number of tokens allowed 1048576.", Overflow(tokens_max=1_048_576)),
        ("Gemini", "", "The input token count exceeds the maximum number of tokens allowed.", Overflow()),
        ("Gemini", "INVALID_ARGUMENT", "Unable to submit request because the input token count is 81881 but model only supports up to 65536.", Overflow(tokens=81_881, tokens_max=65_536)),
        ("Mistral", "3051", "Prompt contains 140687 tokens and 0 draft tokens, too large for model with 131072 maximum context length", Overflow(tokens=140_687, tokens_max=131_072)),
        ("xAI", "Client specified an invalid argument", "This model's maximum prompt length is 131072 but the request contains 136973 tokens.", Overflow(tokens=136_973, tokens_max=131_072)),
        ("DeepSeek", "invalid_request_error", "This model's maximum context length is 131072 tokens. However, you requested 131749 tokens (131749 in the messages, 0 in the completion).", Overflow(tokens=131_749, tokens_max=131_072)),
        ("DashScope", "invalid_parameter_error", "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]", Overflow(tokens_max=983_616)),
        ("Moonshot", "invalid_request_error", "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)", Overflow(tokens=269_030, tokens_max=262_144)),
        # Of hosts.
        ("Groq", "context_length_exceeded", "Please reduce the length of the messages or completion.", Overflow()),
        ("Cerebras", "context_length_exceeded", "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000", Overflow(tokens=42_328, tokens_max=40_000)),
        ("OpenRouter", "400", "This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output).", Overflow(tokens=7_884, tokens_max=131_072)),
        ("Together AI", "invalid_request_error", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125 `inputs` tokens and 4096 `max_new_tokens`", Overflow(tokens=80_125, tokens_max=4_097)),
        ("Bedrock", "ValidationException", "Input is too long for requested model.", Overflow()),
        ("Bedrock", "", "An error occurred (ValidationException) when calling the InvokeModel operation: Input is too long for requested model.", Overflow()),
        ("Bedrock", "validationException", "The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum", Overflow(tokens=200_049, tokens_max=200_000)),
        # Of one's own.
        ("vLLM", "BadRequestError", "This model's maximum context length is 2048 tokens. However, your request has 2300 input tokens. (parameter=input_tokens, value=2300)", Overflow(tokens=2_300, tokens_max=2_048)),
        ("vLLM", "BadRequestError", "This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and your prompt contains at least 134145 input tokens, for a total of at least 262145 tokens.", Overflow(tokens=134_145, tokens_max=262_144)),
        ("vLLM", "BadRequestError", "You passed 40961 input tokens and requested 0 output tokens. However, the model's context length is only 40960 tokens.", Overflow(tokens=40_961, tokens_max=40_960)),
        ("vLLM", "BadRequestError", "The decoder prompt (length 9000) is longer than the maximum model length of 8192.", Overflow(tokens=9_000, tokens_max=8_192)),
        ("llama.cpp", "exceed_context_size_error", "the request exceeds the available context size. try increasing the context size", Overflow()),
        ("llama.cpp", "exceed_context_size_error", "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it", Overflow(tokens=14_429, tokens_max=8_192)),
        ("LM Studio", "", "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough.", Overflow(tokens=10_136, tokens_max=7_866)),
        ("LM Studio", "", "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", Overflow(tokens=15_028, tokens_max=7_424)),
        ("Ollama", "", "prompt too long; exceeded max context length by 15935 tokens", Overflow()),
    ],
)  # fmt: skip
@for_each("status", [400, None])
def test_an_overflow_is_recognised_with_its_numbers(
    status: int | None, server: str, kind: str, message: str, overflow: Overflow
) -> None:
    assert overflow_of(status, kind, message) == overflow, server


@for_each(
    ("status", "kind", "message"),
    [
        (400, "invalid_request_error", "messages: at least one message is required"),
        (400, "invalid_request_error", "max_tokens must be at least 1, got -186."),
        (400, "invalid_request_error", "No tool output found for function call call_1."),
        (400, "INVALID_ARGUMENT", "Please use a valid role: user, model."),
        (400, "INTERNAL", "The input token count exceeds the maximum number of tokens allowed."),
        (400, "INVALID_ARGUMENT", "maximum number of tokens"),
        (413, "request_too_large", "Request exceeds the maximum size"),
        (413, "tokens", "Request too large for model on tokens per minute (TPM): Limit 10000, Requested 21247, please reduce your message size"),
        (400, "tokens", "Rate limit: prompt is too long for your tokens per minute"),
        (429, "RESOURCE_EXHAUSTED", "The input token count exceeds the maximum number of tokens allowed."),
        (429, "rate_limit_error", "prompt is too long: 2 tokens > 1 maximum"),
        (429, "rate_limit_exceeded", "exceeds the context window"),
        (500, "server_error", "maximum context length is 10 tokens"),
        (529, "overloaded_error", "prompt is too long: 2 tokens > 1 maximum"),
        (None, "overloaded_error", "prompt is too long: 2 tokens > 1 maximum"),
        (None, "max_tokens", ""),
    ],
)  # fmt: skip
def test_any_other_error_is_none(status: int, kind: str, message: str) -> None:
    assert overflow_of(status, kind, message) is None


@settings(deadline=None)
@given(st.text(alphabet="0123456789,>_ ", max_size=200))
def test_strange_numbers_do_no_harm(numbers: str) -> None:
    assert overflow_of(400, "context_length_exceeded", f"{numbers} tokens > {numbers}") is not None
