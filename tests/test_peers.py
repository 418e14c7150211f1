"""The driver of the peers: what it sends them, and what it makes of their answers."""

from typing import Any

from benchmarks.peers.driver import HERE, PEERS
from benchmarks.peers.measure import Writer, neutral
from render import PROVIDERS
from timeline.replay._flatten import Flattener
from timeline.tokens import O200kCounter

CALL = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}


def sent() -> list[dict[str, Any]]:
    """A round as the driver sends it."""
    blocks: list[tuple[str, dict[str, Any]]] = [
        ("user", {"type": "text", "text": "List the files."}),
        ("assistant", {"type": "text", "text": "I look."}),
        ("assistant", CALL),
        ("user", RESULT),
    ]
    return list(neutral(blocks, Flattener(O200kCounter(), PROVIDERS["anthropic"])))


def test_a_response_is_one_message_and_each_result_its_own() -> None:
    assert [message["role"] for message in sent()] == ["user", "assistant", "tool"]
    assert sent()[1]["calls"][0]["name"] == "bash"
    assert all(message["tokens"] > 0 for message in sent())


def test_an_answer_becomes_a_request_again() -> None:
    user, assistant, result = Writer().messages(sent())
    assert (user["role"], assistant["role"], result["role"]) == ("user", "assistant", "user")
    assert assistant["content"][1] == CALL
    assert result["content"][0] == {**RESULT, "cache_control": {"type": "ephemeral"}}


def test_marks_are_on_the_last_block_and_where_the_previous_request_ended() -> None:
    writer, messages = Writer(), sent()
    writer.messages(messages[:1])
    written = writer.messages(messages)
    blocks = [block for message in written for block in message["content"]]
    assert ["cache_control" in block for block in blocks] == [True, False, False, True]


def test_every_peer_has_an_adapter_and_pinned_requirements() -> None:
    for peer in PEERS:
        assert (HERE / "adapters" / peer.adapter).exists()
        assert any((HERE / f"{peer.place}{ending}").exists() for ending in (".txt", ".json"))
