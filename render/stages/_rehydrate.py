"""Rehydration: an artifact that the agent names comes back into the prompt for the current turn.

It helps an agent that refers to moved content without reading it. Five rules prevent cycles (an artifact is
named, shown, removed again, and named again):

* returned content follows the last cache point, and is never appended to the log;
* it uses only free room, up to a limit, and never causes a compaction;
* a turn has a limited number of artifacts, each and all together of limited size;
* returned content stays until the turn ends, and then may not return for some turns;
* in a turn into which something came back, the rungs `externalize` and `drop` are disabled.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from blocks import ArtifactId, AssistantCompletion, ToolCall, artifact_ids_in, leaves
from blocks.formats import obj, objs, string
from render.policy._context import Context
from render.policy._policy import Policy
from render.summary._quote import quoted
from render.view._group import Group
from render.view._provider_blocks import Json
from render.view._view import View

READERS: Final = ("read_artifact", "read_timeline")
"""Tools that return the content of artifacts, which then need not come back."""
TOKENS_MIN: Final = 50
"""With fewer tokens, an artifact is not shown, because so little is of no use."""


@attrs.frozen(kw_only=True)
class Returned:
    """An artifact in the form in which it is shown."""

    artifact: ArtifactId
    text: str = attrs.field(repr=False)
    """The text for the model, including its label."""
    tokens: int


def wanted(view: View, policy: Policy) -> tuple[ArtifactId, ...]:
    """The artifacts to show now: those that already came back in this turn, and those that the newest round names and
    whose cool-down is over; no more than a turn may have, and none that is hidden on request."""
    turn, before = view.state.turns, view.state.rehydrated
    withheld = set(view.state.withheld.values())
    stay = [artifact for artifact, last in before.items() if last == turn]
    new = [
        artifact
        for artifact in _named(view)
        if artifact not in before or turn - before[artifact] >= max(policy.rehydration_cooldown, 1)
    ]
    shown = (artifact for artifact in (*stay, *new) if artifact not in withheld)
    return tuple(shown)[: policy.rehydration_artifacts]


def is_named(name: str, reader: str) -> bool:
    """Whether a tool of this name is `read_artifact`, also as `mcp__foldline__read_artifact`."""
    return name.endswith(reader) and name[: -len(reader)][-1:] in ("", "_", ".", "/", "-", ":")


def offered(reader: str, context: Context) -> str:
    """The name of the tool in the request that reads artifacts; empty: there is none."""
    return next((name for name in _names(context.tools) if is_named(name, reader)), "")


def _names(tools: Iterable[Json]) -> Iterator[str]:
    """The names of tools, including those in a namespace, such as Codex's for an MCP server."""
    for tool in tools:
        if inner := objs(tool.get("tools")):
            yield from (f"{string(tool.get('name'))}.{name}" for name in _names(inner))
        else:
            yield string(tool.get("name")) or string(obj(tool.get("function")).get("name"))


def _named(view: View) -> tuple[ArtifactId, ...]:
    group = view.groups[-1] if view.groups else None
    if group is None or group.entries[-1].block.turn != view.turn:
        return ()
    return group.memo("artifacts", lambda: artifact_ids_in("\n".join(_said(group))))


def _said(group: Group) -> Iterator[str]:
    """What the agent wrote in a round, except calls that read artifacts."""
    for entry in group.entries:
        match entry.block:
            case AssistantCompletion(text=text):
                yield text
            case ToolCall(name=name, input=given) if not any(
                is_named(name, reader) for reader in READERS
            ):
                yield leaves(given)
            case _:
                pass


def returned(
    contents: Sequence[tuple[ArtifactId, str, int]], context: Context, free: int
) -> tuple[Returned, ...]:
    """The artifacts that fit: (id, text or its beginning, characters in all)."""
    policy = context.policy
    room = min(policy.rehydration_tokens_max, free)
    shown: list[Returned] = []
    for artifact, text, size in contents:
        one = _shown(artifact, text, size, min(policy.rehydration_tokens_each, room), context)
        if one is not None:
            shown.append(one)
            room -= one.tokens
    return tuple(shown)


def _shown(
    artifact: ArtifactId, text: str, size: int, tokens_max: int, context: Context
) -> Returned | None:
    """One artifact within its tokens; None if there is no room for it."""
    if tokens_max < TOKENS_MIN:
        return None
    count, reader = context.counter.count, offered("read_artifact", context)
    cut = f"\n[… cut here: {size} characters in all{f'; {reader} reads on' * bool(reader)} …]"
    keep = len(text)
    while keep > 0:
        shown = text[:keep] + (cut if keep < size else "")
        label = quoted("artifact", shown, id=artifact)
        tokens = count(label)
        if tokens <= tokens_max:
            return Returned(artifact=artifact, text=label, tokens=tokens)
        keep = min(keep * 9 // 10, keep * tokens_max // tokens)
    return None
