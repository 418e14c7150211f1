"""The table of models: what it says, and what a name leads to."""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import ArgumentError, MisuseError
from render import Model, provider_of
from tests._table import for_each
from timeline import Options, Timeline, describe_model, known_models, model_named
from timeline._models import (
    ModelTable,
    guess_about,
    priced_model,
    read_models,
    refresh_models,
    traced_provider,
    vendor_of,
)
from timeline.cli import main


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


# A file of models of the user's own: laid over the table, or refused in one sentence with a line.


LOCAL = """\
[caches.none]
cache_kind = "prefix"
cache_tokens_min = 16
cache_ttls = [60]

[[models]]
name = "qwen3-32b"
provider = "openai.chat"
cache = "none"
tokens_window = 32_768
price_input = 0
price_output = 0

[[models]]
name = "claude-sonnet-5-5"
price_input = 1.0
"""
ENTRY = {
    "litellm_provider": "openai",
    "mode": "chat",
    "max_input_tokens": 272_000,
    "max_output_tokens": 128_000,
    "input_cost_per_token": 1e-6,
    "output_cost_per_token": 8e-6,
    "cache_read_input_token_cost": 1e-7,
    "input_cost_per_token_above_272k_tokens": 2e-6,
    "output_cost_per_token_above_272k_tokens": 1.2e-5,
}
LISTED = {**ENTRY, "litellm_provider": "anthropic", "max_input_tokens": 500_000}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the user's own file would be; what it says is forgotten at the end."""
    path = tmp_path / "settings" / "models.toml"
    monkeypatch.setenv("FOLDLINE_MODELS", str(path))
    refresh_models()
    yield path
    monkeypatch.undo()
    refresh_models()


def written(place: Path, text: str) -> Path:
    place.parent.mkdir(exist_ok=True)
    place.write_text(text, encoding="utf-8")
    refresh_models()
    return place


def taken(tmp_path: Path, data: str, name: str = "given.toml") -> int:
    given = tmp_path / name
    given.write_text(data, encoding="utf-8")
    return main(["models", "--from", str(given)])


def test_a_model_of_the_users_own_is_known(place: Path) -> None:
    written(place, LOCAL)
    found = model_named("qwen3-32b")
    assert (found.known, found.provider, found.tokens_window) == (True, "openai.chat", 32_768)
    assert (found.cache_kind, found.cache_tokens_min, found.cache_ttls) == ("prefix", 16, (60,))
    assert found.token_factor == 1.0, "what its provider's models have in common"


def test_a_row_for_a_known_model_changes_only_what_it_says(place: Path) -> None:
    shipped = model_named("claude-sonnet-5-5")
    written(place, LOCAL)
    found = model_named("anthropic/claude-sonnet-5.5")
    assert found.price_input == 1.0
    assert (found.price_output, found.thinking_bound) == (shipped.price_output, True)
    assert len(known_models()) > 2, "the others stay"


@for_each(
    ("text", "said"),
    [
        ("[[models]\n", "at line 1"),
        ("x = 1\n", "there is no table 'x'"),
        ("model = []\n", "there is no table 'model'; did you mean 'models'"),
        ("models = 7\n", r"\[\[models\]\]"),
        ("[[models]]\nprovider = 'anthropic'\n", "number 1 has no name"),
        (f"{LOCAL}\n[[models]]\nname = 'qwen3-32b'\n", "'qwen3-32b' occurs twice"),
        (LOCAL.replace("tokens_window", "token_window"), "line 7: .*missing: tokens_window"),
        (LOCAL.replace("32_768", '"32k"'), "line 10: .*Expected `int`, got `str`.*tokens_window"),
        (LOCAL.replace("32_768", "0"), "line 10: .*tokens_window"),
        (
            LOCAL.replace('cache = "none"', 'cache = "gemin"'),
            "line 9: .*no cache 'gemin'; did you mean 'gemini'",
        ),
        (LOCAL.replace("openai.chat", "openai.chad"), "line 8: .*did you mean 'openai.chat'"),
        (
            LOCAL.replace("price_input = 1.0", "price_inputs = 1.0"),
            "line 16: .*has no 'price_inputs'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(place: Path, text: str, said: str) -> None:
    written(place, text)
    with pytest.raises(MisuseError, match=said) as wrong:
        model_named("claude-sonnet-5-5")
    assert str(place) in str(wrong.value)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_file_is_anything_but_models_or_refused(tmp_path_factory: Any, data: bytes) -> None:
    path = tmp_path_factory.mktemp("models") / "models.toml"
    path.write_bytes(data)
    with contextlib.suppress(MisuseError):
        assert isinstance(read_models(path), ModelTable)


def test_a_file_is_taken_by_one_command(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert taken(tmp_path, LOCAL) == 0
    assert "2 models, 1 new, 1 changed" in capsys.readouterr().out
    assert place.read_text(encoding="utf-8") == LOCAL
    assert model_named("qwen3-32b").known
    assert taken(tmp_path, LOCAL.replace("32b", "8b")) == 0
    assert not model_named("qwen3-32b").known
    assert place.with_name("models.toml.before").read_text(encoding="utf-8") == LOCAL


def test_a_file_that_is_refused_changes_nothing(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken(tmp_path, LOCAL)
    assert taken(tmp_path, LOCAL.replace("32_768", "-1")) == 2
    assert "given.toml, line 10" in capsys.readouterr().err
    assert place.read_text(encoding="utf-8") == LOCAL


def test_a_file_that_can_be_read_only_once_is_taken(place: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(LOCAL,))
    writer.start()
    assert main(["models", "--from", str(pipe)]) == 0
    writer.join()
    assert place.read_text(encoding="utf-8") == LOCAL


def test_no_file_is_no_file(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "--from", str(tmp_path / "none.toml")]) == 1
    assert "none.toml: No such file" in capsys.readouterr().err
    assert not place.exists()


def test_a_broken_file_can_be_replaced(place: Path, tmp_path: Path) -> None:
    written(place, "no models")
    assert taken(tmp_path, LOCAL) == 0
    assert model_named("qwen3-32b").known


@pytest.mark.usefixtures("place")
def test_the_list_of_litellm_is_taken_as_it_is(tmp_path: Path) -> None:
    entries = {
        "sample_spec": {"mode": "one of: chat"},
        "gpt-7-sol": {**ENTRY, "cache_creation_input_token_cost": 1.25e-6},
        "gpt-7-sol-2027-01-01": {**ENTRY, "input_cost_per_token": 9.0},
        "gpt-5.6": ENTRY,
        "gpt-5.6-sol": ENTRY,
        "claude-sonnet-5-5": {**LISTED, "cache_creation_input_token_cost": 1.1e-6},
        "gemini/gemini-9": {**ENTRY, "litellm_provider": "gemini"},
        "gpt-7-old": {**ENTRY, "cache_read_input_token_cost": None},
        "bedrock/claude-sonnet-5-5": {**LISTED, "litellm_provider": "bedrock"},
        "dall-e-9": {**ENTRY, "mode": "image_generation"},
        "gpt-7-free": {**ENTRY, "input_cost_per_token": None},
    }
    assert taken(tmp_path, json.dumps(entries, indent=1), "prices.json") == 0
    new = model_named("gpt-7-sol")
    assert (new.tokens_window, new.provider, new.cache_kind) == (
        272_000,
        "openai.responses",
        "marks",
    )
    assert (new.price_input, new.price_read, new.price_output) == (1.0, 0.1, 8.0)
    assert (new.long_prompt_tokens, new.long_price_input, new.long_price_output) == (
        272_000,
        2.0,
        12.0,
    )
    assert model_named("gpt-7-sol-2027-01-01") is new, "a dated name is another name of the same"
    known = model_named("gpt-5.6")
    assert (known.name, known.tokens_window, known.price_input) == ("gpt-5.6-sol", 1_050_000, 1.0)
    claude = model_named("claude-sonnet-5-5")
    assert (claude.tokens_window, claude.price_input, claude.price_writes) == (1_000_000, 1.0, ())
    assert model_named("gemini-9").provider == "gemini"
    assert model_named("gpt-7-old").price_read == 1.0, "the list leaves out what has no discount"
    assert not model_named("gpt-7-free").known
    assert not model_named("dall-e-9").known


def entry(vendor: str, dollars: float, **more: Any) -> dict[str, Any]:
    """An entry of litellm's list, in its documented form, with these dollars per million tokens of input."""
    prices = {
        "input_cost_per_token": dollars / 1e6,
        "output_cost_per_token": 4 * dollars / 1e6,
        "cache_read_input_token_cost": dollars / 1e7,
    }
    limits = {"max_input_tokens": 200_000, "max_output_tokens": 8_000, "max_tokens": 8_000}
    return {"litellm_provider": vendor, "mode": "chat", **limits, **prices, **more}


TIERS = [
    {"range": [0, 32_000.0], "input_cost_per_token": 1e-6, "output_cost_per_token": 5e-6},
    {"range": [32_000.0, 128_000.0], "input_cost_per_token": 2e-6, "output_cost_per_token": 9e-6},
    {"range": [128_000.0, 252_000.0], "input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6},
]
VENDORS = {
    "together_ai/deepseek-ai/deepseek-v9": entry("together_ai", 7),
    "deepseek-v9": entry("deepseek", 0.3),
    "deepseek/deepseek-v9": entry("deepseek", 0.4),
    "xai/grok-9": entry("xai", 2, input_cost_per_token_above_200k_tokens=4e-6),
    "mistral/codestral-9": entry("mistral", 0.5),
    "codestral/codestral-9": entry("codestral", 0),
    "dashscope/qwen9-max": {
        **{k: v for k, v in entry("dashscope", 1).items() if "cost" not in k},
        "tiered_pricing": TIERS,
    },
    "dashscope/kimi-k9": entry("dashscope", 9),
    "moonshot/kimi-k9": entry("moonshot", 0.6, max_output_tokens=None),
    "zai/glm-9": entry("zai", 0.7, cache_creation_input_token_cost=0),
    "zai/glm-9-flash": entry("zai", 0),
    "minimax/MiniMax-M9": entry("minimax", 0.8),
    "groq/openai/gpt-oss-999b": entry("groq", 0.1),
    "openrouter/qwen/qwen9-max": entry("openrouter", 8),
    "openrouter/somebody/model-9": entry("openrouter", 8),
    "deepinfra/zai-org/glm-9": entry("deepinfra", 8),
}


@pytest.mark.usefixtures("place")
def test_every_vendor_of_the_list_has_its_own_prices_and_hosts_have_theirs(tmp_path: Path) -> None:
    assert taken(tmp_path, json.dumps(VENDORS), "prices.json") == 0
    for name, price in {
        "deepseek-v9": 0.3,
        "grok-9": 2,
        "codestral-9": 0.5,
        "qwen9-max": 1,
        "kimi-k9": 0.6,
        "glm-9": 0.7,
        "minimax-m9": 0.8,
        "together_ai/deepseek-ai/deepseek-v9": 7,
        "dashscope/kimi-k9": 9,
        "groq/openai/gpt-oss-999b": 0.1,
        "openrouter/qwen/qwen9-max": 8,
        "deepinfra/zai-org/glm-9": 0.7,  # of a host that is not taken: the vendor's
    }.items():
        model = model_named(name)
        assert (model.known, model.price_input) == (True, price), name
        assert model.provider == "openai.chat"
        cheap = 0.1 if name != "qwen9-max" else 1
        assert model.price_read == pytest.approx(cheap * price), name
        assert model.price_writes == (), "these write for nothing"
    assert model_named("openai/gpt-oss-999b").price_input == 0.1, "nobody else sells it"
    assert not model_named("openai/gpt-oss-999b").known, "but that is a guess"
    assert not model_named("glm-9-flash").known, "no price is not the price of nothing"
    qwen = model_named("qwen9-max")
    assert (qwen.long_prompt_tokens, qwen.long_price_input, qwen.long_price_output) == (
        32_000,
        2,
        9,
    )
    assert not model_named("openrouter/somebody/model-9").known


def test_ones_own_models_stay_when_the_list_is_loaded_and_go_before_it(
    place: Path, tmp_path: Path
) -> None:
    own = '[[models]]\nname = "grok-9"\nprice_input = 0.25\n'
    assert taken(tmp_path, json.dumps(VENDORS), "prices.json") == 0
    assert taken(tmp_path, LOCAL + own) == 0
    assert taken(tmp_path, json.dumps(VENDORS), "prices.json") == 0
    assert place.read_text(encoding="utf-8") == LOCAL + own
    assert model_named("qwen3-32b").known
    assert (model_named("grok-9").price_input, model_named("grok-9").price_output) == (0.25, 8)


class Served(BaseHTTPRequestHandler):
    """A server with one list of prices."""

    def do_GET(self) -> None:
        data = json.dumps(VENDORS).encode()
        self.send_response(200 if self.path == "/prices.json" else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- its name in the library
        del format, args


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


@pytest.mark.network
def test_the_list_can_be_downloaded_when_somebody_asks_for_it(
    place: Path, server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("timeline.cli._models.LIST_URL", f"{server}/prices.json")
    assert main(["models", "--refresh"]) == 0
    assert "11 models, 11 new" in capsys.readouterr().out
    assert model_named("grok-9").known
    assert not place.exists(), "one's own file is another"
    monkeypatch.setattr("timeline.cli._models.LIST_URL", f"{server}/none.json")
    assert main(["models", "--refresh"]) == 1
    said = capsys.readouterr().err
    assert f"{server}/none.json cannot be downloaded (Not Found); repeat the command" in said
    assert "foldline models --from FILE" in said
    assert model_named("grok-9").known, "what was there stays"


@pytest.mark.network
def test_without_a_network_a_refresh_is_one_sentence_and_changes_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/prices.json"
    monkeypatch.setattr("timeline.cli._models.LIST_URL", nobody)
    assert main(["models", "--refresh"]) == 1
    assert "Connection refused); repeat the command with a network" in capsys.readouterr().err
    assert not list(place.parent.glob("*"))
    assert main(["models", "--refresh", "gpt-5"]) == 2
    assert main(["models", "--refresh", "--from", "mine.toml"]) == 2


def test_a_json_file_of_something_else_is_refused(place: Path, tmp_path: Path) -> None:
    assert taken(tmp_path, '{"a": {"b": 1}}', "prices.json") == 2
    assert not place.exists()


def test_a_server_of_ones_own_is_described_in_code() -> None:
    found = describe_model(
        "qwen3-32b", provider="openai.chat", tokens_window=32_768, price_input=0, price_output=0
    )
    assert (found.known, found.tokens_window, found.token_factor) == (True, 32_768, 1.0)
    assert not found.thinking_bound
    with pytest.raises(ArgumentError, match="no provider 'openai'"):
        describe_model("x", provider="openai", tokens_window=1, price_input=0, price_output=0)
    with pytest.raises(ArgumentError, match="missing: price_output"):
        describe_model("x", provider="openai.chat", tokens_window=1, price_input=0)
