"""`foldline models`: what is known of models; what it takes from a file is tested with the files."""

import json

import pytest

from timeline import known_models
from timeline.cli import main


def test_the_table_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(model.name[:24] in out for model in known_models()), "longer ones are wrapped"


def test_a_guess_is_said_to_be_one_with_its_prices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "gpt-9", "my-own", "claude-haiku-4-5"]) == 0
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first == (
        "model 'gpt-9' is not in the table: its window, its counts and its prices are guesses, those of gpt-6.2-sol"
    )
    assert second == (
        "model 'my-own' is not in the table: its window and its counts are guesses, and no price is known"
    )
    rows = {words[0]: words[1:] for line in rest if (words := line.split())}
    prices = ["~2", "~0.1", "~2.5", "5", "~10"]
    assert rows["gpt-9"] == ["openai.responses", "~1,050,000", "~128,000", *prices]
    assert rows["my-own"] == ["anthropic", "~128,000", "~32,000", *["–"] * 4]
    assert not [word for word in rows["claude-haiku-4-5"] if "~" in word]
    assert main(["models", "gpt-9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["known"] is False
