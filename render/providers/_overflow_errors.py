"""Errors about the window: what providers and servers say to a prompt that is too long, as a table.

APIs have no common code for this, so texts are read. Each row has a text as it was seen and where; in its pattern `<n>`
stands for the tokens of the input, `<m>` for the most that are accepted. A text may be wrapped in others by a proxy.

Only a refused request counts: status 400 or 422, or an error inside a stream, which has no status. With another
status, or with the name of another error, the same words mean something else (a rate limit, an overload). A body with
too many bytes (413) is not an overflow of the window, and neither is an answer that was cut off at its own limit.

Ollama on one's own machine is not in the table: it cuts a prompt that is too long at its beginning, and says nothing
(https://github.com/ollama/ollama/issues/7661).
"""

import re
from functools import cached_property
from typing import Final

import attrs

from render.policy._context import Overflow

REFUSED: Final = (None, 400, 422)
_CODES: Final = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"}
)
"""Codes of errors, and reasons to stop, that need no text."""
_ANOTHER: Final = re.compile(
    r"auth|billing|credit|^internal$|server_error|not_found|overload|permission|quota|rate.?limit|timeout|unavailable",
    re.IGNORECASE,
)
"""Words in the names of other errors."""
_RATE: Final = re.compile(r"rate limit|per[ -]min|\bTPM\b|quota", re.IGNORECASE)
"""Words in the texts of rate limits, which are counted in tokens, too."""
_NUMBER: Final = r"\d[\d,_]{0,18}"
_GITHUB: Final = "https://github.com/"


@attrs.frozen
class OverflowText:
    """One way to say that a prompt is too long."""

    servers: str
    """Whose it is."""
    pattern: str
    example: str
    """The text as it was seen."""
    source: str
    """Where it was seen, or is documented."""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern; it ignores case."""
        numbered = self.pattern.replace("<n>", f"(?P<n>{_NUMBER})")
        return re.compile(numbered.replace("<m>", f"(?P<m>{_NUMBER})"), re.IGNORECASE)

    def overflow(self, message: str) -> Overflow | None:
        """What a message says; None: it is another text."""
        match = self.compiled.search(message)
        if match is None:
            return None
        numbers = match.groupdict()
        return Overflow(tokens=_number(numbers.get("n")), tokens_max=_number(numbers.get("m")))


def _number(digits: str | None) -> int | None:
    return int(digits.replace(",", "").replace("_", "")) if digits else None


OVERFLOW_TEXTS: Final = (
    OverflowText(
        "Anthropic, Bedrock, z.ai",
        r"prompt is too long(?::? <n> tokens > <m>)?",
        "prompt is too long: 200049 tokens > 200000 maximum",
        _GITHUB + "daisuke-awaji/moca/issues/254",
    ),
    OverflowText(
        "Anthropic",
        r"exceed context limit(?:: <n> \+ [\d,_]{1,19} > <m>)?",
        "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length",
        _GITHUB + "continuedev/continue/issues/6080",
    ),
    OverflowText(
        "Bedrock",
        r"input is too long for requested model",
        "ValidationException: Input is too long for requested model.",
        _GITHUB + "aws-samples/bedrock-chat/issues/95",
    ),
    OverflowText(
        "OpenAI",
        r"exceeds the context window",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "the type of OpenAI's errors in its client; code `context_length_exceeded`",
    ),
    OverflowText(
        "OpenAI",
        r"exceed the configured limit of <m> tokens(?:.{0,200}?resulted in <n> )?",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens.",
        _GITHUB + "cline/cline/issues/5474",
    ),
    OverflowText(
        "OpenAI, Azure, DeepSeek, OpenRouter, vLLM, and servers like them",
        r"maximum context length is\s+<m>\s+tokens"
        r"(?:.{0,200}?(?:resulted in|request has|passed|contains(?: at least)?|\() ?<n> )?",
        "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the "
        "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
        _GITHUB + "evalstate/fast-agent/issues/621",
    ),
    OverflowText(
        "OpenRouter",
        r"endpoint's maximum context length is <m> tokens(?:.{0,200}?\(<n> of text input)?",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of "
        'text input, 131072 in the output). Please reduce the length of either one, or use the "middle-out" transform.',
        _GITHUB + "OpenHands/OpenHands/issues/9937",
    ),
    OverflowText(
        "vLLM",
        r"passed <n> input tokens.{0,200}?context length is only <m> tokens",
        "You passed 11193 input tokens and requested 0 output tokens. However, the model's context length is only 8192 "
        "tokens, resulting in a maximum input length of 8192 tokens.",
        _GITHUB + "vllm-project/vllm/pull/36197",
    ),
    OverflowText(
        "vLLM",
        r"prompt \((?:total )?length <n>\) is (?:longer than the maximum model length of"
        r"|too long to fit into the model \(context length) <m>",
        "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
        _GITHUB + "vllm-project/vllm/issues/12165",
    ),
    OverflowText(
        "SGLang, Together AI",
        r"input \(<n> tokens\) is longer than the model's context length \(<m>",
        "The input (233781 tokens) is longer than the model's context length (202752 tokens).",
        _GITHUB + "fuergaosi233/claude-code-proxy/issues/60",
    ),
    OverflowText(
        "Together AI, text-generation-inference",
        r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= <m>(?:\. Given: <n> )?",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125 `inputs` tokens and "
        "4096 `max_new_tokens`",
        _GITHUB + "BerriAI/litellm/issues/4934",
    ),
    OverflowText(
        "llama.cpp",
        r"(?:request \(<n> tokens\) )?exceeds the available context size(?: \(<m> tokens\))?",
        "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it",
        _GITHUB + "ggml-org/llama.cpp/pull/15780",
    ),
    OverflowText(
        "llama-cpp-python",
        r"requested tokens \(<n>\) exceed context window of <m>",
        "Requested tokens (2285) exceed context window of 2048",
        _GITHUB + "fedora-copr/logdetective-website/pull/193",
    ),
    OverflowText(
        "LM Studio",
        r"keep the first <n> tokens when.{0,120}?context length of only <m> tokens",
        "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context "
        "length of only 32768 tokens, which is not enough.",
        _GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/546",
    ),
    OverflowText(
        "LM Studio",
        r"truncate prompt with n_keep \(<n>\) >= n_ctx \(<m>\)",
        "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)",
        _GITHUB + "anomalyco/opencode/issues/11141",
    ),
    OverflowText(
        "LM Studio",
        r"tokens to keep from the initial prompt is greater\s+than the context length"
        r"(?: \(n_keep: <n>\s?>=\s?n_ctx: <m>)?",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10978 >= "
        "n_ctx: 8192). Try to load the model with a larger context length.",
        _GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/2256",
    ),
    OverflowText(
        "Ollama's cloud",
        r"prompt too long; exceeded (?:max )?context length",
        "prompt too long; exceeded max context length by 15935 tokens",
        "unverified: known from programs that handle it",
    ),
    OverflowText(
        "oMLX",
        r"prompt too long: <n> tokens exceeds max context window of <m>",
        "Prompt too long: 41911 tokens exceeds max context window of 32768 tokens",
        _GITHUB + "jundot/omlx/issues/169",
    ),
    OverflowText(
        "Mistral",
        r"prompt contains <n> tokens.{0,40}?too large for model with <m> maximum context length",
        "Prompt contains 321774 tokens and 0 draft tokens, too large for model with 262144 maximum context length",
        "https://docs.mistral.ai/resources/known-limitations",
    ),
    OverflowText(
        "xAI",
        r"maximum prompt length is <m> but the request contains <n> tokens",
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        _GITHUB + "cline/cline/issues/3120",
    ),
    OverflowText(
        "Groq, Cerebras",
        r"reduce the length of the messages or completion(?:\. Current length is <n> while limit is <m>)?",
        "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
        _GITHUB + "cline/cline/issues/5140",
    ),
    OverflowText(
        "DashScope (Qwen)",
        r"range of input length should be \[\d+, ?<m>\]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
        _GITHUB + "QwenLM/qwen-code/issues/98",
    ),
    OverflowText(
        "Moonshot (Kimi)",
        r"exceeded model token limit: <m>(?: \(requested: <n>\))?",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
        _GITHUB + "MoonshotAI/kimi-cli/issues/2011",
    ),
    OverflowText(
        "Gemini",
        r"input token count (?:\(<n>\) )?exceeds the maximum number of tokens allowed(?: \(?<m>)?",
        "The input token count (317740) exceeds the maximum number of tokens allowed (131072).",
        _GITHUB + "google-gemini/gemini-cli/issues/12098",
    ),
    OverflowText(
        "Gemini on Google's agent platform",
        r"input token count is <n> but (?:the )?model only supports up to <m>",
        "Unable to submit request because the input token count is 81881 but model only supports up to 65536.",
        "unverified: known from programs that handle it",
    ),
    OverflowText(
        "servers that say no more",
        r"context length is only <m> tokens|exceeds? the model's (?:maximum )?context length",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "unverified: known from programs that handle it",
    ),
)
"""Where several match, the first that names the tokens of the input goes before the others."""


def overflow_of(status: int | None, kind: str, message: str) -> Overflow | None:
    """What an error or a stop reason says about an exceeded window; None: it is about something else.

    It is given the HTTP status, None inside a stream; the most specific name that the provider gave (its error code,
    its error type, or the stop reason); and the message.
    """
    if status not in REFUSED or _ANOTHER.search(kind):
        return None
    overflows = [text.overflow(message) for text in OVERFLOW_TEXTS]
    best_first = sorted(
        filter(None, overflows), key=lambda each: (not each.tokens, not each.tokens_max)
    )
    if not best_first or (kind not in _CODES and _RATE.search(message)):
        return Overflow() if kind in _CODES else None
    return best_first[0]
