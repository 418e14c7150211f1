"""A file of models of the user's own: laid over the table, or refused in one sentence with a line."""

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
from tests._table import for_each
from timeline import describe_model, known_models, model_named
from timeline._models import ModelTable, read_models, refresh_models
from timeline.cli import main

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
CLAUDE = {**ENTRY, "litellm_provider": "anthropic", "max_input_tokens": 500_000}


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
        "claude-sonnet-5-5": {**CLAUDE, "cache_creation_input_token_cost": 1.1e-6},
        "gemini/gemini-9": {**ENTRY, "litellm_provider": "gemini"},
        "gpt-7-old": {**ENTRY, "cache_read_input_token_cost": None},
        "bedrock/claude-sonnet-5-5": {**CLAUDE, "litellm_provider": "bedrock"},
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
