"""The driver of the peers: what it sends them, and what it makes of their answers."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from benchmarks.peers.driver import HERE, PEERS, PeerFailedError
from benchmarks.peers.masking import Masking, tokens_of
from benchmarks.peers.measure import Recording, Writer, full_history, neutral
from benchmarks.peers.run import Candidate, Engine, Piece, Ran, Run, candidate
from render import PROVIDERS
from timeline.billing import Flattener
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


EXAMPLE = HERE.parents[1] / "docs" / "examples" / "invoice-service.jsonl"
WINDOW = 20_000


def everything(recording: Recording) -> Ran:
    return full_history(recording), "everything 1.0"


def failing(recording: Recording) -> Ran:
    raise PeerFailedError(f"{recording.session.name}: no memory")


def measured_by(engine: Engine, file: Path, session: Candidate | None = None) -> Piece:
    """One engine over the example, and what is known of it; every process is a new one."""
    session = session or Candidate(path=EXAMPLE, window=WINDOW, calls=1)
    (found,) = Run(jobs=1, file=file).measure([session], [engine])
    return found


def test_what_a_file_has_already_is_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    first = measured_by(Engine(name="a", run=everything), file)
    assert first.row
    assert first.ran == "everything 1.0"
    assert "1/1  a on invoice-service.jsonl" in capsys.readouterr().err
    assert measured_by(Engine(name="a", run=failing), file) == first
    assert not capsys.readouterr().err
    other = Candidate(path=EXAMPLE, window=WINDOW + 1, calls=1)
    assert measured_by(Engine(name="a", run=failing), file, other).failed, "another window"


def test_what_failed_is_told_and_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    assert measured_by(Engine(name="a", run=failing), file).failed.endswith("no memory")
    assert "no memory" in capsys.readouterr().err
    assert measured_by(Engine(name="a", run=everything), file).row


def test_a_session_that_always_fits_or_cannot_be_read_is_no_candidate(tmp_path: Path) -> None:
    assert candidate(EXAMPLE, WINDOW).calls > 0
    assert candidate(EXAMPLE, 10_000_000).calls == 0
    broken = tmp_path / "no-session.json"
    broken.write_text("[]", encoding="utf-8")
    assert attrs.asdict(candidate(broken, WINDOW))["unreadable"]


def masked(window: int) -> list[dict[str, Any]]:
    """What masking sends of ten long results."""
    user, assistant, result = sent()
    long = {**result, "text": "a.py\n" * 400, "tokens": 900}
    engine = Masking(window=window, fixed_tokens=100)
    answers = [engine.step([user]), *(engine.step([assistant, long]) for _ in range(10))]
    return answers[-1].messages


def test_masking_replaces_old_outputs_by_one_line_and_keeps_everything_else() -> None:
    plain, tight = masked(100_000), masked(6_000)
    texts = [message["text"] for message in tight if message["role"] == "tool"]
    assert texts[0] == "[old tool output left out: 400 lines]"
    assert texts[-1] == "a.py\n" * 400
    assert [m for m in tight if m["role"] != "tool"] == [m for m in plain if m["role"] != "tool"]
    assert len(tight) == len(plain)
    assert sum(map(tokens_of, tight)) < 6_000
    assert all("left out" not in message["text"] for message in plain)
