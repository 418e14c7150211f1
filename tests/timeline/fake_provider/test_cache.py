"""Usage: what the simulated prompt cache wrote and read, in the provider's fields."""

from typing import Any

from tests._builders import Clock
from tests._practice import Practice
from timeline.fake_provider import FakeProvider, Reply

from .requests import TOOL, UNBOUND, assistant, request, user

LONG = "A rule that the agent has to follow at all times. " * 100


def marked(text: str, **control: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral", **control}}


def usage(provider: FakeProvider, asked: dict[str, Any]) -> dict[str, Any]:
    message = provider.create(asked).message
    assert message is not None
    found: dict[str, Any] = message["usage"]
    return found


def test_the_client_sees_a_write_and_then_a_read(practice: Practice) -> None:
    client = practice.client(practice.serve(responder=lambda _: Reply(text="Yes.")))
    asked = request(system=[marked(LONG, ttl="1h")], tools=[TOOL])
    first, second = (client.messages.create(**asked).usage for _ in range(2))
    assert first.cache_creation is not None
    written = first.cache_creation.ephemeral_1h_input_tokens
    assert written == first.cache_creation_input_tokens
    assert written > 1_000
    assert (first.cache_read_input_tokens, second.cache_creation_input_tokens) == (0, 0)
    assert second.cache_read_input_tokens == written
    assert first.input_tokens == second.input_tokens < 20


def test_the_three_numbers_add_up_to_the_prompt() -> None:
    provider = FakeProvider()
    history = [
        {"role": "user", "content": [marked(LONG)]},
        assistant({"type": "text", "text": "I"}),
    ]
    for number in range(3):
        asked = request(*history, user(f"Step {number}."), tools=[TOOL])
        found = usage(provider, asked)
        total = sum(
            found[name]
            for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        )
        assert total == provider.count(asked)


def test_an_entry_dies_after_its_time() -> None:
    clock = Clock()
    provider = FakeProvider(clock=clock)
    asked = request({"role": "user", "content": [marked(LONG)]})
    reads = []
    for seconds in (0, 299, 299, 301):
        clock.wait(seconds)
        reads.append(usage(provider, asked)["cache_read_input_tokens"] > 0)
    assert reads == [False, True, True, False]


def test_each_model_has_a_cache_of_its_own() -> None:
    provider = FakeProvider()
    asked = request(system=[marked(LONG)])
    usage(provider, asked)
    assert usage(provider, {**asked, "model": UNBOUND})["cache_read_input_tokens"] == 0
    assert usage(provider, asked)["cache_read_input_tokens"] > 0


def test_a_refused_request_writes_nothing() -> None:
    provider = FakeProvider(window=100)
    asked = request(system=[marked(LONG)])
    assert provider.create(asked).error
    provider.window = None
    assert usage(provider, asked)["cache_read_input_tokens"] == 0


def test_automatic_caching_marks_the_last_block() -> None:
    provider = FakeProvider()
    asked = request(user(LONG), cache_control={"type": "ephemeral"})
    assert usage(provider, asked)["cache_creation_input_tokens"] > 1_000
    assert usage(provider, asked)["input_tokens"] == 0
