"""Typed output: the model ends a run by calling one more tool with its result.

A tool, because every provider has tools, without limits on the schema, beside other tools and thinking; and because the log
then shows each try, and why it was refused.
"""

from typing import Any, Final

import attrs

from blocks import DataError, ToolCall, ToolResult
from render import Json, Place, View
from timeline.react._schemas import Signature
from timeline.react._tools import Tool

FINAL_RESULT: Final = "final_result"
MISSING: Final = "You ended your turn without a result. Call final_result with it."
_NOTHING: Final = "the model gave no result"


class OutputError(DataError):
    """The model gave no valid result, however often it was asked; the log shows its tries, and `resume` asks again."""

    def __init__(self, fault: str, tries: int) -> None:
        super().__init__(f"no valid {FINAL_RESULT} in {tries} tries; the last one: {fault}")
        self.fault = fault
        self.tries = tries


def output_tool(kind: Any) -> Tool | None:
    """The tool that takes a run's result of this type; None: the type is None.

    Raises:
        MisuseError: the type has no JSON form.
    """
    if kind is None:
        return None

    def final_result(result: Any) -> str:  # noqa: ARG001 -- the agent reads it from the log
        return "Accepted."

    final_result.__annotations__["result"] = kind
    signature = Signature.of(final_result)
    return Tool(
        name=FINAL_RESULT,
        description="End the task with its result. Call this once, when all is done.",
        input_schema=signature.schema,
        call=final_result,
        check=signature.arguments,
        durability="ephemeral",
        idempotent=True,
    )


@attrs.frozen
class OutputValue:
    """A value that the model gave and the agent accepted."""

    value: Any


def result_in(view: View, tool: Tool) -> OutputValue | None:
    """The result that the newest answer gave, unless the user has said something since."""
    for arguments, result in _tries(view):
        if not result.is_error:
            return OutputValue(tool.check(arguments)["result"])
    return None


def fault_in(view: View) -> str:
    """Why the newest answer's result was refused."""
    refused = (result for _, result in _tries(view) if result.is_error)
    last = next(refused, None)
    return "\n".join(getattr(part, "text", "") for part in last.parts) if last else _NOTHING


def has_tried(view: View) -> bool:
    """Whether the newest answer gave a result, valid or not."""
    return bool(_tries(view))


def _tries(view: View) -> list[tuple[Json, ToolResult]]:
    """The input and the result of each call of the tool in the newest round."""
    if not view.groups:
        return []
    group = view.groups[-1]
    answers = {entry.pair: entry for entry in group.placed[Place.RESULT]}
    since = max((entry.version for entry in group.placed[Place.USER]), default=0)
    tries: list[tuple[Json, ToolResult]] = []
    for entry in group.placed[Place.RESPONSE]:
        call = entry.block
        answer = answers.get(entry.pair) if entry.pair else None
        if not (isinstance(call, ToolCall) and call.name == FINAL_RESULT and answer):
            continue
        if answer.version >= since and isinstance(answer.block, ToolResult):
            tries.append((call.input, answer.block))
    return tries
