"""Sessions written by hand, one line a call: what was returned before it, and what it then said."""

from blocks import (
    AssistantCompletion,
    Block,
    BlockId,
    CallId,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    UserPrompt,
)
from persistence.sessions import Arrived, Item, Responded, Session

TURN = TurnId("t1")


def talk(*rounds: tuple[str, str], prompt: str = "Please begin.") -> Session:
    """A prompt, then for each round what the agent wrote and what its tool returned."""
    items: list[Item] = [Arrived(at=0.0, blocks=(asked("p0", prompt),))]
    for number, (said, returned) in enumerate(rounds):
        at = float(number + 1)
        items += [
            Responded(at=at, id=f"r{number}", blocks=_answer(number, said)),
            Arrived(at=at, blocks=(_result(number, returned),)),
        ]
    return Session(name="talk", format="invention", items=tuple(items))


def asked(name: str, text: str) -> UserPrompt:
    return UserPrompt(id=BlockId(name), turn=TURN, text=text)


def _answer(number: int, said: str) -> tuple[Block, ...]:
    call = ToolCall(
        id=BlockId(f"c{number}"),
        turn=TURN,
        response=f"r{number}",
        call_id=CallId(f"call{number}"),
        name="run_command",
        input={"command": "next"},
    )
    text = AssistantCompletion(
        id=BlockId(f"s{number}"), turn=TURN, response=f"r{number}", text=said
    )
    return (text, call) if said else (call,)


def _result(number: int, text: str) -> ToolResult:
    return ToolResult(
        id=BlockId(f"o{number}"),
        turn=TURN,
        call_id=CallId(f"call{number}"),
        parts=(TextPart(text=text),),
    )
