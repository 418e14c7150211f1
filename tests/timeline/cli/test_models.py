"""`foldline models`: what is known of models; what it takes from a file is tested with the files."""

import json

import pytest

from timeline import known_models
from timeline.cli import main


def test_the_table_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(model.name in out for model in known_models())
    assert main(["models", "gpt-9", "claude-haiku-4-5"]) == 0
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first == (
        "model 'gpt-9' is not in the table: its window, its counts and its prices are guesses; did you mean"
        " 'gpt-5'?"
    )
    assert second == (
        "gpt-9: assuming 128,000 tokens, and about $2 and $10 per million tokens in and out"
    )
    [row] = [line.split() for line in rest if line.startswith(" gpt-9")]
    assert row == ["gpt-9", "unknown", "unknown", *["–"] * 5]
    assert main(["models", "gpt-9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["known"] is False
