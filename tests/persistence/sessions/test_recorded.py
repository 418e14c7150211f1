"""What holds for every recorded session, whatever agent wrote it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from blocks import (
    AssistantThinking,
    SessionFormatError,
    TextPart,
    ToolCall,
    ToolResult,
    TurnHeader,
    default_durability,
    text_of,
)
from persistence.sessions import Responded, Session, read_session
from tests._table import for_each
from tests.persistence.sessions.conftest import recorded_files

pytestmark = pytest.mark.recorded

COUNTED_OTHERWISE = ("swe-02", "tau-")
"""Calls written as prose, and a hundred conversations in one file."""
SAMPLES = {
    "fx-cc-01.jsonl": ("claude-code", 2, 1),
    "fx-cc-parent-01.jsonl": ("claude-code", 1, 0),
    "fx-cc-sidechain-01.jsonl": ("claude-code", 1, 1),
    "fx-codex-01.jsonl": ("codex", 4, 4),
    "fx-copilot-01.jsonl": ("copilot", 3, 2),
    "fx-cursor-01.jsonl": ("cursor", 2, 2),
    "fx-droid-01.jsonl": ("droid", 1, 1),
    "fx-gemini-jsonl-01.jsonl": ("gemini-cli", 1, 1),
    "fx-grok-01.jsonl": ("grok", 2, 2),
    "fx-kimi-01.jsonl": ("kimi", 19, 19),
    "fx-openclaw-01.jsonl": ("pi", 2, 2),
    "fx-opencode-01.json": ("opencode", 1, 1),
    "fx-opencode-01.json#1": ("opencode", 1, 1),
    "fx-pi-v3-01.jsonl": ("pi", 0, 0),
    "fx-qwen-01.jsonl": ("qwen", 1, 0),
}
"""Small samples, by hand: the format, calls of tools, results."""
ENVELOPE_BYTES = 300


for_every_session = for_each("file", recorded_files())


@cache
def read(path: Path) -> Session:
    return read_session(path)


@for_every_session
def test_it_has_calls_and_none_is_empty(recorded: Path, file: str) -> None:
    session = read(recorded / file)
    assert session.calls
    for call in session.calls:
        assert not all(isinstance(block, AssistantThinking) for block in call.blocks)


@for_every_session
def test_its_clock_never_runs_backwards(recorded: Path, file: str) -> None:
    session = read(recorded / file)
    times = [item.at for item in session.items]
    assert times == sorted(times)


@for_every_session
def test_ids_are_unique_and_blocks_belong_to_an_open_turn(recorded: Path, file: str) -> None:
    session = read(recorded / file)
    blocks = [block for item in session.items for block in item.blocks]
    assert len({block.id for block in blocks}) == len(blocks)
    assert len({call.id for call in session.calls}) == len(session.calls)
    opened = set[str]()
    for block in blocks:
        if isinstance(block, TurnHeader):
            opened.add(block.turn)
        assert block.turn in opened


@for_every_session
def test_every_result_stands_directly_behind_its_call_and_only_once(
    recorded: Path, file: str
) -> None:
    session = read(recorded / file)
    asked: set[str] = set()
    answered: set[str] = set()
    for item in session.items:
        calls = {block.call_id for block in item.blocks if isinstance(block, ToolCall)}
        assert not calls & asked
        if isinstance(item, Responded):
            open_calls = calls
        asked |= calls
        for block in item.blocks:
            if isinstance(block, ToolResult):
                assert block.call_id in open_calls
                assert block.call_id not in answered
                answered.add(block.call_id)


@for_each("file", [file for file in recorded_files() if not file.startswith(COUNTED_OTHERWISE)])
def test_as_many_calls_and_results_as_were_counted_by_hand(recorded: Path, file: str) -> None:
    if file.startswith("fixtures"):
        assert Path(file).name in SAMPLES
        return
    session = read(recorded / file)
    counts = manifest(recorded)[file]
    calls, results = counted(session)
    orphans = sum("result without a call" in notice.text for notice in session.notices)
    expected = counts["tool_calls"], counts["tool_results"]
    assert (calls, results + orphans) == expected


@for_each("sample", SAMPLES)
def test_a_sample_of_a_format_is_read_to_its_last_call(sample: str, recorded: Path) -> None:
    session = read_session(f"{recorded}/fixtures/{sample}")
    assert (session.format, *counted(session)) == SAMPLES[sample]


def counted(session: Session) -> tuple[int, int]:
    """Calls of tools, and results."""
    blocks = [block for item in session.items for block in item.blocks]
    calls = sum(isinstance(block, ToolCall) for block in blocks)
    return calls, sum(isinstance(block, ToolResult) for block in blocks)


@for_every_session
def test_every_result_has_an_envelope_that_follows_its_tool(recorded: Path, file: str) -> None:
    session = read(recorded / file)
    blocks = [block for item in session.items for block in item.blocks]
    calls = {block.call_id: block for block in blocks if isinstance(block, ToolCall)}
    for result in blocks:
        if isinstance(result, ToolResult):
            call, envelope = calls[result.call_id], result.envelope
            assert envelope.durability == default_durability(call.name, call.input)
            is_text = all(isinstance(part, TextPart) for part in result.parts) and text_of(result)
            can_verify = envelope.durability == "replayable" and envelope.outcome == "success"
            assert bool(envelope.determinism.content_hash) == bool(can_verify and is_text)
            assert 0 <= envelope.started_at <= envelope.ended_at


@for_every_session
def test_envelopes_weigh_next_to_nothing(recorded: Path, file: str) -> None:
    session = read(recorded / file)
    results = [
        block for item in session.items for block in item.blocks if isinstance(block, ToolResult)
    ]
    assert all(len(msgspec.json.encode(result.envelope)) < ENVELOPE_BYTES for result in results)


def test_a_file_of_many_conversations_is_read_one_by_one(recorded: Path) -> None:
    path = str(recorded / "tau-01.json.gz")
    third = read_session(f"{path}#3")
    assert third.name == "tau-01#3"
    assert third.items != read_session(path).items
    with pytest.raises(SessionFormatError, match="no conversation #9999; the file has"):
        read_session(f"{path}#9999")


@cache
def manifest(folder: Path) -> dict[str, Any]:
    data = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))
    return {file["file"]: file for file in data["files"]}
