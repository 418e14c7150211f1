"""`foldline replay --summarizer anthropic`: the real client, one step after the other."""

import json
from pathlib import Path

import pytest

from persistence.sessions import read_session
from tests._practice import Practice
from timeline.cli import main
from timeline.fake_provider import FakeServer, Fault
from timeline.replay import ReplayOptions, replay

from .talk import summary_requests
from .test_drift import FILES, RECORDED

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "invoice-service.jsonl"
WINDOW = ("--window", "30000", "--summarizer", "anthropic")


@pytest.fixture
def server(practice: Practice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeServer:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    return practice.serve()


@pytest.mark.parametrize("told", ["option", "environment"])
def test_summaries_are_the_models_and_the_dump_has_their_usage(
    told: str,
    server: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = ("--base-url", server.url) if told == "option" else ()
    if not where:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    assert main(["replay", str(EXAMPLE), *WINDOW, *where, "--json", "--dump", "d.jsonl"]) == 0
    result = json.loads(capsys.readouterr().out)
    calls = [
        call
        for line in Path("d.jsonl").read_text(encoding="utf-8").splitlines()
        for call in json.loads(line)["summaries"]
    ]
    usages = [(e.message or {})["usage"] for e in server.provider.exchanges]
    assert result["compactions"] >= 2
    assert len(calls) == len(summary_requests(server)) == len(usages)
    assert [call["output_tokens"] for call in calls] == [u["output_tokens"] for u in usages]
    assert result["cost"]["summaries"] > 0
    assert not server.refused


def test_what_failed_was_paid_for_as_well(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(Fault.refusal(), Fault.max_tokens())
    assert main(["replay", str(EXAMPLE), *WINDOW, "--base-url", server.url, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(server.requests) > result["compactions"]
    assert result["cost"]["summaries"] > 0


def test_without_a_key_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    assert main(["replay", str(EXAMPLE), *WINDOW]) == 2
    assert "needs a key: set ANTHROPIC_API_KEY" in capsys.readouterr().err


@pytest.mark.recorded
@pytest.mark.skipif(not FILES, reason=f"no recorded sessions in {RECORDED}")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_sessions_keep_every_promise(path: Path, server: FakeServer) -> None:
    options = ReplayOptions(
        window=60_000, summarizer="anthropic", base_url=server.url, keep_thinking=False
    )
    result = replay(read_session(path), options)
    assert result.problems == ()
    assert result.over_window_calls == 0
    assert len(server.requests) >= result.folds
    assert not server.refused
