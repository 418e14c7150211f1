"""Samples written on the spot, and the recorded sessions where they are at hand."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import Block
from persistence.sessions import Session

ROOT = Path(__file__).parents[3]
ENDINGS = frozenset({".jsonl", ".json", ".gz"})
RECORDED = Path(os.environ.get("FOLDLINE_SESSIONS", ROOT.parent / "shared/data/sessions"))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write JSON lines; text and bytes go in as they are."""

    def write(*lines: Any) -> Path:
        path = tmp_path / "sample.jsonl"
        path.write_bytes(b"\n".join(_line(line) for line in lines))
        return path

    return write


@pytest.fixture
def document(tmp_path: Path) -> Callable[[Any], Path]:
    """Write one JSON document."""

    def document(value: Any) -> Path:
        path = tmp_path / "sample.json"
        path.write_text(json.dumps(value, indent=1), encoding="utf-8")
        return path

    return document


@pytest.fixture
def kinds() -> Callable[[Session], list[str]]:
    """One word an item: the kinds of its blocks; a response stands in brackets."""

    def kinds(session: Session) -> list[str]:
        words: list[str] = []
        for item in session.items:
            names = " ".join(_kind(block) for block in item.blocks)
            words.append(f"[{names}]" if item in session.calls else names)
        return words

    return kinds


@pytest.fixture
def recorded() -> Path:
    """The folder of recorded sessions."""
    if not RECORDED.is_dir():
        pytest.skip(f"no recorded sessions in {RECORDED}")
    return RECORDED


def recorded_files() -> list[str]:
    """Each recorded session, and each sample of a format that nobody has published one of."""
    found = [*RECORDED.glob("*"), *RECORDED.glob("fixtures/*")]
    files = [str(path.relative_to(RECORDED)) for path in found if path.suffix in ENDINGS]
    return sorted(file for file in files if file != "MANIFEST.json")


def _line(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def _kind(block: Block) -> str:
    return {
        "TurnHeader": "turn",
        "UserPrompt": "prompt",
        "UserSteer": "steer",
        "UserAttachment": "attachment",
        "SystemMessage": "instruction",
        "AssistantThinking": "thinking",
        "AssistantCompletion": "text",
        "ToolCall": "call",
        "ToolResult": "result",
    }[type(block).__name__]
