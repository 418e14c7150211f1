"""Invented sessions: an agent that reads files and runs commands, turn after turn."""

from pathlib import Path
from typing import Any

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    CallId,
    EventId,
    TextPart,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UserPrompt,
)
from persistence.sessions import Arrived, Item, Responded, Session, export_lines

START = 1_770_000_000.0
PAUSE_SECONDS = 1_000
"""Between turns: longer than any cache lives for five minutes."""


def invented(turns: int = 4, rounds: int = 5, words: int = 300, **fields: Any) -> Session:
    """A session of so many turns and rounds; each result has so many words."""
    items: list[Item] = []
    for turn in range(1, turns + 1):
        items += _turn(turn, rounds, words)
    return Session(name="invented", format="invention", items=tuple(items), **fields)


def _turn(number: int, rounds: int, words: int) -> list[Item]:
    turn, at = TurnId(f"t{number}"), START + number * PAUSE_SECONDS
    asked = f"Please look into module_{number}.py and never touch settings_{number}.toml."
    items: list[Item] = [
        Arrived(
            at=at,
            blocks=(
                TurnHeader(id=BlockId(f"{turn}.head"), turn=turn, started_at=at),
                UserPrompt(id=BlockId(f"{turn}.prompt"), turn=turn, text=asked),
            ),
        )
    ]
    for index in range(rounds):
        items += _round(turn, index, at + 20 * index + 1, words)
    final = _said(turn, f"{turn}.final", f"Done with module_{number}.py.")
    items.append(Responded(at=at + 20 * rounds + 5, id=f"{turn}.final", blocks=(final,)))
    return items


def _round(turn: TurnId, index: int, at: float, words: int) -> list[Item]:
    stem = f"{turn}.{index}"
    thought = {"type": "thinking", "thinking": f"Look at part {stem}.", "signature": "c2ln"}
    said: tuple[Block, ...] = (
        AssistantThinking(id=BlockId(f"{stem}.think"), turn=turn, response=stem, provider=thought),
        _said(turn, stem, f"Reading part {stem}."),
        ToolCall(
            id=BlockId(f"{stem}.call"),
            turn=turn,
            response=stem,
            call_id=CallId(f"call_{stem}"),
            name="read file" if index % 2 else "bash",
            input={"path": f"src/part_{stem}.py"},
        ),
    )
    text = " ".join(f"line_{stem}_{n}" if n % 50 == 0 else "word" for n in range(words))
    result = ToolResult(
        id=BlockId(f"{stem}.result"),
        turn=turn,
        call_id=CallId(f"call_{stem}"),
        parts=(TextPart(text=text),),
    )
    return [Responded(at=at, id=stem, blocks=said), Arrived(at=at + 9, blocks=(result,))]


def _said(turn: TurnId, stem: str, text: str) -> AssistantCompletion:
    return AssistantCompletion(id=BlockId(f"{stem}.text"), turn=turn, response=stem, text=text)


def session_file(path: Path, session: Session) -> Path:
    """The session in our own export format."""
    events = [
        BlockAppended(id=EventId(f"e{block.id}"), at=item.at, block=block)
        for item in session.items
        for block in item.blocks
    ]
    lines = export_lines(session.name, list(enumerate(events, 1)))  # type: ignore[arg-type]
    path.write_text("".join(lines), encoding="utf-8")
    return path
