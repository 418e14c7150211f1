"""The table of models: what it says, and what a name leads to."""

import pytest

from blocks import MisuseError
from render import Model, provider_of
from tests._table import for_each
from timeline import Options, Timeline
from timeline._models import (
    guess_about,
    known_models,
    model_named,
    priced_model,
    traced_provider,
    vendor_of,
)


def test_names_and_aliases_are_unique() -> None:
    names = [name for model in known_models() for name in (model.name, *model.aliases)]
    assert len(names) == len(set(names))


CLAUDE = [model for model in known_models() if model.provider == "anthropic"]
OPENAI = [model for model in known_models() if model.provider == "openai.responses"]
GEMINI = [model for model in known_models() if model.provider == "gemini"]


def test_a_row_is_plausible(subtests: pytest.Subtests) -> None:
    for model in known_models():
        with subtests.test(model=model):
            assert model.known
            assert model.output_tokens_max < model.tokens_window
            assert model.input_tokens_max < model.tokens_window
            assert 0 < model.price_input <= model.price_output
            assert model_named(model.name) == model
            for alias in model.aliases:
                assert model_named(alias) == model


def test_a_row_of_anthropics_is_plausible(subtests: pytest.Subtests) -> None:
    for model in CLAUDE:
        with subtests.test(model=model):
            rates = provider_of(model).rates(model, 1_000)
            assert rates.read < rates.input == model.price_input
            # provider docs, prompt caching: a 5 minute write costs 1.25 of the input price, an hour 2
            assert rates.writes == {
                300: pytest.approx(1.25 * model.price_input),
                3_600: pytest.approx(2 * model.price_input),
            }
            assert model.price_output == pytest.approx(5 * model.price_input)


def test_a_row_of_openais_is_plausible(subtests: pytest.Subtests) -> None:
    """Provider docs, prompt caching: a write for 30 minutes costs 1.25 of the input, for 12 hours 2.5, on the
    models that take marks; others write for nothing. Model pages: long prompts cost twice the input."""
    for model in OPENAI:
        with subtests.test(model=model):
            assert model.cache_tokens_min == 1_024
            shares = [price / model.price_input for price in model.price_writes]
            takes_marks = model.name.startswith(("gpt-6", "gpt-5.6"))
            assert (model.cache_kind == "marks") is takes_marks
            assert shares == pytest.approx([1.25, 2.5] if takes_marks else [])
            assert model.price_read is not None
            assert model.price_read <= model.price_input
            if model.long_prompt_tokens:
                assert model.long_prompt_tokens == 272_000
                assert model.long_price_input == 2 * model.price_input
                assert model.long_price_output == pytest.approx(1.5 * model.price_output)
            assert (model.token_factor, model.tool_overhead_tokens) == (1.0, 12)
            if model.input_tokens_max:
                assert model.input_tokens_max == model.tokens_window - model.output_tokens_max


def test_a_row_of_geminis_is_plausible(subtests: pytest.Subtests) -> None:
    for model in GEMINI:
        with subtests.test(model=model):
            assert (model.tokens_window, model.output_tokens_max) == (1_048_576, 65_536)
            assert model.cache_kind == "prefix"


def test_generations_hang_together(subtests: pytest.Subtests) -> None:
    """Provider docs, vision and pricing: the new tokenizer and the large images came with 4.7."""
    for model in CLAUDE:
        with subtests.test(model=model):
            if model.tokenizer == "new":
                assert (model.token_factor, model.image_tokens_max, model.image_edge_max) == (
                    1.5,
                    4_784,
                    2_576,
                )
            else:
                assert (model.token_factor, model.image_tokens_max, model.image_edge_max) == (
                    1.2,
                    1_568,
                    1_568,
                )
                assert not model.thinking_bound


def test_the_cheap_model_has_two_tiers() -> None:
    haiku = model_named("claude-haiku-5-5")
    assert haiku.long_prompt_tokens == 100_000
    assert haiku.long_price_input == 5 * haiku.price_input
    short, long = (provider_of(haiku).rates(haiku, tokens) for tokens in (100_000, 100_001))
    assert long.read == pytest.approx(5 * short.read) == pytest.approx(0.05)
    assert long.writes == {ttl: pytest.approx(5 * price) for ttl, price in short.writes.items()}


def test_a_price_in_the_table_goes_before_the_providers_rule() -> None:
    """Provider docs, pricing: reads of most models cost a tenth of their input, of some less."""
    for name, read in (
        ("claude-opus-5", 0.5),
        ("claude-opus-5-5", 0.2),
        ("claude-fable-5-1", 0.25),
    ):
        model = model_named(name)
        assert provider_of(model).rates(model, 0).read == pytest.approx(read)


@for_each(
    ("name", "expected"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-5[1m]", "claude-opus-4-5"),
        ("claude-haiku-4.5", "claude-haiku-4-5"),
        ("anthropic/claude-sonnet-5.5", "claude-sonnet-5-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("claude-sonnet-5-20260301", "claude-sonnet-5"),
        ("Claude-Opus-5-latest", "claude-opus-5"),
        ("claude-3-5-haiku-20241022", "claude-haiku-3-5"),
        ("claude-opus-5-thinking", "claude-opus-5"),
        ("gpt-5.6", "gpt-5.6-sol"),
        ("openai/gpt-5.6-sol", "gpt-5.6-sol"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-mini", "gpt-5-mini"),
        ("azure/gpt-4o-2024-08-06", "gpt-4o"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_decorated_names_are_recognised(name: str, expected: str) -> None:
    assert model_named(name).name == expected


@for_each(
    ("name", "like"),
    [
        ("gpt-9", "gpt-6.2-sol"),
        ("azure/eu/gpt-9-mini", "gpt-5.4-mini"),
        ("gpt-5.6-nova", "gpt-5.6-sol"),
        ("gpt-4-1106-preview", "gpt-4"),
        ("o3-large", "o3"),
        ("o1-mini", "o4-mini"),
        ("codex-mini-latest", "gpt-5.1-codex-mini"),
        ("openai/gpt-oss-120b", "groq/openai/gpt-oss-120b"),
        ("claude-opus-5-6", "claude-opus-5-5"),
        ("claude-opus-55", "claude-opus-5-5"),
        ("claude-opus-5-fast", "claude-opus-5"),
        ("bedrock/us.anthropic.claude-haiku-6-v1:0", "claude-haiku-5-5"),
        ("claude", "claude-fable-5-2"),
        ("vertex_ai/gemini-5-flash-lite", "gemini-3.5-flash-lite"),
        ("gemini-3.5-flash-preview-09-2026", "gemini-3.5-flash"),
        ("google.gemma-3-27b-it", "together_ai/google/gemma-4-31B-it"),
        ("deepseek/deepseek-v5", "deepseek-v4-pro"),
        ("x-ai/grok-9", "grok-4.7"),
        ("qwen3-coder:30b", "qwen3-coder-plus"),
        ("mistral-large-2411", "mistral-large-4"),
        ("mistralai/devstral-2", "devstral-medium-latest"),
        ("codestral", "codestral-2508"),
        ("openrouter/moonshotai/kimi-k9", "kimi-k3"),
        ("moonshot-v1-8k", "kimi-k3"),
        ("glm-4.6v", "glm-4.6"),
        ("minimax-m9", "MiniMax-M3"),
        ("llama3.3:70b", "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    ],
)
def test_an_unknown_name_is_guessed_by_its_vendors_nearest_model(name: str, like: str) -> None:
    model, near, priced = model_named(name), model_named(like), priced_model(name)
    assert (model.name, model.known, near.known) == (name, False, True)
    for field in (
        *("provider", "tokenizer", "token_factor", "tokens_window", "input_tokens_max"),
        *("price_input", "price_read", "price_writes", "price_output", "long_price_input"),
    ):
        assert getattr(model, field) == getattr(near, field), field
    assert (model.prefill, model.system_messages, model.thinking_modes) == (False, False, ())
    assert model.thinking_bound is (near.provider == "anthropic")
    assert priced
    assert (priced.name, priced.known) == (near.name, False)
    assert f"prices are guesses, those of {near.name}" in guess_about(model)


@for_each(
    ("name", "provider", "traced"),
    [
        ("azure/prod-chat", "openai.responses", "openai"),
        ("ollama/mine", "openai.chat", "openai"),
        ("openrouter/stranger/stranger-1", "openai.chat", "openai"),
        ("openrouter/x-ai/grok-9", "openai.chat", "x_ai"),
        ("azure/o9-mini", "openai.responses", "openai"),
        ("bedrock/us.anthropic.claude-opus-9-v1:0", "anthropic", "anthropic"),
        ("vertex_ai/gemini-9-flash", "gemini", "gcp.gemini"),
        ("mistral/devstral-9", "openai.chat", "mistral_ai"),
    ],
)
def test_a_host_tells_the_api_where_the_name_tells_no_vendor(
    name: str, provider: str, traced: str
) -> None:
    model = model_named(name)
    assert (model.provider, traced_provider(model)) == (provider, traced)
    assert not model.known


@for_each("name", ["my-own-model", "nova-pro", "gptx-1", "command-r", "<synthetic>", ""])
def test_a_name_of_no_known_vendor_has_no_price(name: str) -> None:
    model = model_named(name)
    assert (model.name, model.known) == (name or "unknown", False)
    assert (model.tokens_window, model.price_input, model.price_output) == (128_000, 0, 0)
    assert model.tokenizer == "new"
    assert model.thinking_bound
    assert not model.prefill
    assert not model.system_messages
    assert priced_model(name) is None
    assert "are guesses, and no price is known" in guess_about(model)


def test_every_model_of_the_table_has_a_vendor_with_its_api() -> None:
    for model in known_models():
        vendor = vendor_of(model.name.rpartition("/")[2])
        assert vendor
        assert (vendor.provider, vendor.tokenizer) in {
            (model.provider, model.tokenizer),
            ("anthropic", "new"),
        }


@for_each(
    ("name", "window"),
    [
        ("gpt-4o", 128_000),
        ("gpt-4-turbo", 128_000),
        ("gpt-4", 8_192),
        ("claude-3-5-sonnet-20240620", 200_000),
        ("claude-3-haiku-20240307", 200_000),
    ],
)
def test_models_of_old_logs_have_their_windows(name: str, window: int) -> None:
    assert (model_named(name).known, model_named(name).tokens_window) == (True, window)


@for_each(
    ("name", "known", "window"),
    [
        ("claude-opus-4-5[1m]", "claude-opus-4-5", 1_000_000),
        ("us.anthropic.claude-sonnet-4-5-20250929[1M]", "claude-sonnet-4-5", 1_000_000),
        ("claude-sonnet-5-5[200k]", "claude-sonnet-5-5", 200_000),
        ("gpt-9[64k]", "gpt-9", 64_000),
        ("gpt-5.5[64k]", "gpt-5.5", 64_000),
        ("claude-opus-4-5[0m]", "claude-opus-4-5", 200_000),
    ],
)
def test_a_name_may_say_the_window(name: str, known: str, window: int) -> None:
    assert (model_named(name).name, model_named(name).tokens_window) == (known, window)


@for_each(
    ("model", "limit"),
    [
        (Model(name="mine", tokens_window=400_000, input_tokens_max=272_000), 272_000),
        (Model(name="mine", tokens_window=400_000, input_tokens_max=399_000), 392_000),
        ("claude-haiku-4-5", 192_000),
        ("claude-haiku-4-5[1m]", 992_000),
        ("gpt-9", 922_000),
        ("my-own", 120_000),
        ("gpt-9[1m]", 992_000),
    ],
)
def test_the_limit_is_the_models(model: str | Model, limit: int) -> None:
    """The window less what is kept for the answer, and no more than a prompt may have."""
    with Timeline.open("t", model=model, counter="estimate") as timeline:
        timeline.user("hi")
        account = timeline.render().account
    assert (account.limit, account.output) == (limit, 8_000)


def test_a_guessed_window_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with Timeline.open("t", model="my-own", counter="estimate") as timeline:
        timeline.user("hi")
        rendered = timeline.render()
    [notice] = rendered.notices
    assert "'my-own' is not in the table: a window of 128000 tokens is assumed" in notice
    assert notice in caplog.text
    assert rendered.account.limit + rendered.account.output == 128_000


@for_each(
    "options",
    [
        {"model": "gpt-9", "window": 50_000},
        {"model": Model(name="gpt-9", tokens_window=400_000)},
        {"model": "claude-sonnet-5-5"},
    ],
)
def test_nothing_is_told_of_a_window_that_is_known(options: Options) -> None:
    options["counter"] = "estimate"
    with Timeline.open("t", **options) as timeline:
        timeline.user("hi")
        assert timeline.render().notices == ()


def test_thinking_is_bound_on_the_models_that_bind_it() -> None:
    """Provider docs, preserved thinking."""
    bound = {model.name for model in known_models() if model.thinking_bound}
    assert bound == {
        "claude-fable-5-1",
        "claude-fable-5-2",
        "claude-mythos-5-1",
        "claude-mythos-5-2",
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
    }


def test_a_prefill_is_taken_by_one_generation_only() -> None:
    """Provider docs, errors."""
    prefill = {model.name for model in known_models() if model.prefill}
    assert prefill == {"claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"}


def test_a_model_with_impossible_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens_window"):
        Model(name="x", tokens_window=0)
    with pytest.raises(ValueError, match="price_read"):
        Model(name="x", price_read=-1.0)


def test_a_model_of_no_known_provider_is_refused_when_a_timeline_is_opened() -> None:
    with pytest.raises(MisuseError, match="no provider 'antropic'"):
        Timeline.open("t", model=Model(name="mine", provider="antropic"))
