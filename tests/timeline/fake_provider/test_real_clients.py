"""What Claude Code sends besides plain requests: betas, who pays, its login; and what other agents ask for."""

from typing import Any

import httpx2
import pytest

from tests import _http
from tests._practice import Practice
from timeline.fake_provider import Call, FakeProvider, FakeServer, Reply

from .requests import TOOL, assistant, request, result, user

HEADERS = {"x-api-key": "test", "anthropic-version": "2023-06-01"}
EDITS = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
BETA = {"anthropic-beta": "claude-code-20250219,context-management-2025-06-27"}
LOGIN = {"authorization": "Bearer sk-ant-oat01-x", "anthropic-version": "2023-06-01"}


def posted(
    server: FakeServer, asked: dict[str, Any], headers: dict[str, str], path: str = "/v1/messages"
) -> httpx2.Response:
    return _http.post(f"{server.url}{path}?beta=true", json=asked, headers=headers)


def test_a_connection_may_be_opened_with_a_question_for_nothing(practice: Practice) -> None:
    answer = _http.head(practice.serve().url)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_a_field_of_a_beta_is_taken_only_where_the_beta_is_named(
    practice: Practice, path: str
) -> None:
    server = practice.serve()
    asked = request(context_management=EDITS)
    assert posted(server, asked, HEADERS | BETA, path).status_code == 200
    refused = posted(server, asked, HEADERS, path)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("context_management: Extra inputs")


def test_a_login_is_taken_only_with_its_beta(practice: Practice) -> None:
    server = practice.serve()
    beta = {"anthropic-beta": "claude-code-20250219,oauth-2025-04-20"}
    assert posted(server, request(), LOGIN | beta).status_code == 200
    assert posted(server, request(), LOGIN).status_code == 401
    plain = {**LOGIN, "authorization": "Bearer of-some-gateway"}
    assert posted(server, request(), plain).status_code == 200


@pytest.mark.parametrize("version", [{}, {"anthropic-version": "2023-06-01"}])
def test_models_are_listed_for_who_has_a_key(practice: Practice, version: dict[str, str]) -> None:
    url = f"{practice.serve().url}/v1/models?limit=1000"
    assert _http.get(url, headers=version).status_code == 401
    assert _http.get(url, headers={"authorization": "Bearer x", **version}).status_code == 200


def test_codex_logged_in_with_chatgpt_asks_for_its_account_and_for_answers_there(
    practice: Practice,
) -> None:
    url = f"{practice.serve().url}/backend-api"
    headers = {"authorization": "Bearer x", "chatgpt-account-id": "mine"}
    found = _http.get(f"{url}/wham/accounts/check", headers=headers).json()
    assert [account["id"] for account in found["accounts"]] == found["account_ordering"] == ["mine"]
    assert _http.get(f"{url}/wham/settings/user", headers=headers).json() == {}
    assert _http.get(f"{url}/codex/models", headers=headers).json() == {"models": []}
    asked = {"model": "gpt-5.6-sol", "input": "Hello.", "store": False}
    answer = _http.post(f"{url}/codex/responses", headers=headers, json=asked).json()
    assert (answer["object"], answer["status"]) == ("response", "completed")


def billed(line: str) -> list[dict[str, Any]]:
    rules = {"type": "text", "text": "A rule to follow. " * 500}
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    return [{"type": "text", "text": f"x-anthropic-billing-header: {line};"}, {**rules, **mark}]


def test_who_pays_is_no_part_of_the_prompt() -> None:
    """It changes with every request, and neither the cache nor the thinking minds."""
    thought = Reply(thinking="Hm.", calls=[Call("read_file", {"path": "a"})])
    provider = FakeProvider(responder=[thought, Reply(text="Done.")])
    asked = request(system=billed("cch=1"), tools=[TOOL])
    first = provider.create(asked)
    assert first.message is not None
    said = first.message["content"]
    messages = [user("Hello."), assistant(*said), result(said[-1]["id"])]
    second = provider.create({**asked, "system": billed("cch=2"), "messages": messages})
    assert second.error is None
    assert first.step is not None
    assert second.step is not None
    assert second.step.read == first.step.write > 1_000
    unbilled = FakeProvider().create({**asked, "system": billed("cch=1")[1:]})
    assert unbilled.tokens == first.tokens


def test_thinking_that_is_not_to_be_shown_is_signed_and_comes_back() -> None:
    thought = Reply(thinking="A secret.", calls=[Call("read_file", {"path": "a"})])
    provider = FakeProvider(responder=[thought, Reply(text="Done.")])
    asked = request(thinking={"type": "adaptive", "display": "omitted"}, tools=[TOOL])
    first = provider.create(asked)
    assert first.message is not None
    said = first.message["content"]
    assert said[0]["thinking"] == ""
    assert said[0]["signature"]
    messages = [user("Hello."), assistant(*said), result(said[-1]["id"])]
    assert provider.create({**asked, "messages": messages}).error is None


def test_an_instruction_stands_between_messages_where_the_model_takes_it() -> None:
    asked = request(user("Hello."), {"role": "system", "content": "You are in /tmp."})
    assert FakeProvider().create(asked).error is None
    old = FakeProvider().create({**asked, "model": "claude-sonnet-4-5"})
    assert old.error is not None


def test_a_websocket_is_refused_so_that_the_agent_falls_back(practice: Practice) -> None:
    server = practice.serve()
    headers = {"connection": "upgrade", "upgrade": "websocket", "authorization": "Bearer x"}
    for path in ("/v1/responses", "/backend-api/codex/responses"):
        assert _http.get(f"{server.url}{path}", headers=headers).status_code == 426
        assert _http.get(f"{server.url}{path}").status_code == 405


def test_who_is_logged_in_with_chatgpt_asks_at_another_path(practice: Practice) -> None:
    server = practice.serve()
    headers = {"authorization": "Bearer x", "chatgpt-account-id": "mine"}
    found = _http.get(f"{server.url}/backend-api/wham/accounts/check", headers=headers).json()
    assert [account["id"] for account in found["accounts"]] == ["mine"]
    asked = {"model": "gpt-5.4", "input": "Hello.", "store": False, "instructions": "Answer."}
    said = posted(server, asked, headers, "/backend-api/codex/responses")
    assert said.status_code == 200, said.text
    assert posted(server, asked, {}, "/backend-api/codex/responses").status_code == 401
