"""Trajectories of benchmarks: SWE-agent, tau-bench, Inspect."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import SessionFormatError, ToolCall, UserAttachment, text_of
from persistence.sessions import Session, read_session

Document = Callable[[Any], Path]
Kinds = Callable[[Session], list[str]]

SYSTEM = {"role": "system", "content": "Be precise."}
TASK = {"role": "user", "content": "Fix it."}


def call(call_id: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    return {
        "role": "assistant",
        "content": "look",
        "tool_calls": [{"id": call_id, "function": function}],
    }


def swe(*history: dict[str, Any]) -> dict[str, Any]:
    return {"environment": "e", "trajectory": [], "history": [SYSTEM, *history], "info": {}}


def test_swe_agents_repeated_call_ids_pair_by_position(document: Document, kinds: Kinds) -> None:
    def result(text: str) -> dict[str, Any]:
        return {"role": "tool", "content": text, "tool_call_ids": ["c"]}

    session = read_session(document(swe(TASK, call("c"), result("1\r\n"), call("c"), result("2"))))
    assert (session.format, session.system) == ("swe-agent", "Be precise.")
    assert kinds(session) == ["turn prompt", "[text call]", "result", "[text call]", "result"]
    calls = [b.call_id for c in session.calls for b in c.blocks if isinstance(b, ToolCall)]
    assert calls == ["c", "c_2"]
    assert text_of(session.items[2].blocks[0]) == "1\r\n"


def test_swe_agents_demonstrations_and_observations_are_context(
    document: Document, kinds: Kinds
) -> None:
    demo = {"role": "user", "content": "Here is how", "is_demo": True}
    session = read_session(
        document(
            swe(
                demo, TASK, {"role": "assistant", "content": "ls"}, {"role": "user", "content": "a"}
            )
        )
    )
    assert kinds(session) == ["turn attachment", "prompt", "[text]", "attachment"]
    names = [b.name for i in session.items for b in i.blocks if isinstance(b, UserAttachment)]
    assert names == ["demonstration", "observation"]


def tau(*talks: str) -> list[dict[str, Any]]:
    return [
        {"task_id": n, "reward": 1.0, "traj": [SYSTEM, {"role": "user", "content": talk}]}
        for n, talk in enumerate(talks)
    ]


def test_a_conversation_is_chosen_by_its_number(document: Document) -> None:
    path = document(tau("first", "second"))
    session = read_session(f"{path}#1")
    assert (session.format, session.name) == ("tau-bench", "sample#1")
    assert text_of(session.items[0].blocks[1]) == "second"
    assert not session.notices


def test_without_a_number_it_is_the_first_and_the_others_are_mentioned(document: Document) -> None:
    session = read_session(document(tau("first", "second")))
    assert text_of(session.items[0].blocks[1]) == "first"
    assert "the first of 2 conversations" in session.notices[0].text


def test_a_number_too_high_says_how_many_there_are(document: Document) -> None:
    with pytest.raises(SessionFormatError, match="no conversation #2; the file has 2"):
        read_session(f"{document(tau('a', 'b'))}#2")


def test_a_file_with_a_hash_in_its_name_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "talk#1"
    path.write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    assert len(read_session(path).items) == 1


def test_inspects_samples_have_tool_calls_of_their_own_shape(
    document: Document, kinds: Kinds
) -> None:
    asked = {"id": "c1", "function": "web_go", "arguments": {"url": "x"}}
    messages = [
        TASK,
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "content": [{"type": "text", "text": "ok"}], "tool_call_id": "c1"},
    ]
    log = {"version": 2, "eval": {"model": "m"}, "samples": [{"id": 1, "messages": messages}]}
    session = read_session(document(log))
    assert (session.format, session.model) == ("inspect", "m")
    assert kinds(session) == ["turn prompt", "[call]", "result"]
    block = session.calls[0].blocks[0]
    assert isinstance(block, ToolCall)
    assert (block.name, block.input) == ("web_go", {"url": "x"})
