"""The provider's own blocks in an answer: its tools' traffic, and its compaction.

They go back exactly as they came, in the place where they came, as long as the provider will take
them: a result needs its call before it, and a call without a result may only be the last word (the
provider has paused and goes on when asked again).  What is left out is told in a notice.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from blocks import OpaqueBlock
from render.providers.anthropic._kinds import SERVER_TOOL_TYPES
from render.providers.anthropic._parts import Refuses
from render.view._provider_blocks import Json

_RESUMABLE: Final = SERVER_TOOL_TYPES | {"compaction"}
REPLAYED: Final = _RESUMABLE | {"container_upload"}
"""Kinds of content in a response, besides text, thinking and tool calls, that are sent back."""
_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})

Numbered: TypeAlias = tuple[int, Json]
"""A content block, with the version of the block that it shows."""


def is_own(block: OpaqueBlock, content: Json) -> bool:
    """Whether it is a block of this provider's, and not of another's of the same type."""
    return block.tag == f"provider.{content.get('type')}"


def is_replayed(content: Json, refuses: Refuses) -> bool:
    """Whether the provider takes this block back."""
    return content.get("type") in REPLAYED and not refuses("assistant", content)


def is_resumable(contents: Sequence[Numbered]) -> bool:
    """Whether an answer ends in the provider's own work, which it will go on with."""
    return bool(contents) and contents[-1][1].get("type") in _RESUMABLE


def paired(
    contents: Sequence[Numbered], notices: list[str], *, is_last: bool
) -> Iterator[Numbered]:
    """The contents without calls and results of the provider's that have lost each other.

    `is_last`: nobody has said anything after this answer.
    """
    called: set[object] = set()
    answered = _answered_later(contents)
    finished = len(contents) - _paused(contents) if is_last else len(contents)
    for index, (version, content) in enumerate(contents):
        if content.get("type") in _CALLS:
            if index not in answered and index < finished:
                notices.append(f"a call of the provider's without a result: version {version}")
                continue
            called.add(content.get("id"))
        elif content.get("type") in SERVER_TOOL_TYPES and _answered(content) - called:
            notices.append(f"a result of the provider's without a call: version {version}")
            continue
        yield version, content


def _answered_later(contents: Sequence[Numbered]) -> set[int]:
    """Indices of the provider's calls whose results come after them."""
    found: set[int] = set()
    results: set[object] = set()
    for index in reversed(range(len(contents))):
        content = contents[index][1]
        results |= _answered(content)
        if content.get("type") in _CALLS and content.get("id") in results:
            found.add(index)
    return found


def _answered(content: Json) -> set[object]:
    """The call that a result of the provider's answers."""
    return {content["tool_use_id"]} if "tool_use_id" in content else set()


def _paused(contents: Sequence[Numbered]) -> int:
    """How many blocks at the end are all the provider's own."""
    run = 0
    for _, content in reversed(contents):
        if content.get("type") not in SERVER_TOOL_TYPES:
            break
        run += 1
    return run
