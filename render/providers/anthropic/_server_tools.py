"""The provider's own blocks in an answer: those of its tools, and its compaction.

They are sent back unchanged and in place, as long as the provider accepts them: a result needs its call
before it, and a call without a result may only be last (the provider has paused and continues when asked
again). A notice names each block that is left out.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from blocks import PROVIDER_TAG, OpaqueBlock
from render.providers.anthropic._kinds import SERVER_TOOL_TYPES
from render.providers.anthropic._parts import Refuses
from render.view._provider_blocks import Json

_RESUMABLE: Final = SERVER_TOOL_TYPES | {"compaction"}
REPLAYED: Final = _RESUMABLE | {"container_upload"}
"""Types of content in a response that are sent back, besides text, thinking and tool calls."""
_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})

Numbered: TypeAlias = tuple[int, Json]
"""A content block, with the version of the block that it shows."""


def is_own(block: OpaqueBlock, content: Json) -> bool:
    """Whether the block is this provider's, and not another provider's of the same type."""
    return block.tag == f"{PROVIDER_TAG}{content.get('type')}"


def is_replayed(content: Json, refuses: Refuses) -> bool:
    """Whether the provider accepts this block again."""
    return content.get("type") in REPLAYED and not refuses("assistant", content)


def is_resumable(contents: Sequence[Numbered]) -> bool:
    """Whether an answer ends in the provider's own work, which it will continue."""
    return bool(contents) and contents[-1][1].get("type") in _RESUMABLE


def paired(
    contents: Sequence[Numbered], notices: list[str], *, is_last: bool
) -> Iterator[Numbered]:
    """The contents without the provider's calls and results that lack their counterpart.

    `is_last` says that nothing follows this answer.
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
    """Indices of the provider's calls whose results come later."""
    found: set[int] = set()
    results: set[object] = set()
    for index in reversed(range(len(contents))):
        content = contents[index][1]
        results |= _answered(content)
        if content.get("type") in _CALLS and content.get("id") in results:
            found.add(index)
    return found


def _answered(content: Json) -> set[object]:
    """The id of the call that a provider's result answers, as a set; empty for other content."""
    return {content["tool_use_id"]} if "tool_use_id" in content else set()


def _paused(contents: Sequence[Numbered]) -> int:
    """Number of blocks at the end that are all the provider's own."""
    run = 0
    for _, content in reversed(contents):
        if content.get("type") not in SERVER_TOOL_TYPES:
            break
        run += 1
    return run
