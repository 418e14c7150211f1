"""Externalize: a large result is moved to the artifact store, and a pointer with excerpts stays.

The content also remains in the log. The store adds a short name that can be passed to a tool, access rules,
an expiry, and access from other machines.
"""

from collections.abc import Mapping
from typing import Final

from blocks import ENCRYPTED, ArtifactId, ToolResult, artifact_id, text_of, tool_target
from render.compaction.rungs._plan import Externalize
from render.compaction.rungs._scope import Found, RungScope, excerpts_of, sensitivity_of
from render.policy._context import Context
from render.stages._visibility import offered

POINTER: Final = "[moved to the artifact store: {tokens} tokens of {about}; {way_back}]"
"""Version 1 of the pointer's first line; the excerpts follow on separate lines."""
READ: Final = '{tool}("{artifact}")'
"""How an agent with a tool that reads artifacts gets the content back."""
NAME: Final = 'name "{artifact}" and it is shown again'
"""How an agent without that tool gets it back; see `render.stages._visibility`."""
AT: Final = "read back at {}"
"""How confidential or expiring content is read back: it never comes back into the prompt by itself."""
ABOUT_CHARACTERS: Final = 120
BRIEF_SHARE: Final = 0.5
"""If the excerpts take at most this share of a result's tokens, the pointer certainly saves tokens."""


class ExternalizeRung:
    """Proposes to move every large enough result before the tail, in one batch."""

    name = "externalize"

    def propose(self, scope: RungScope) -> list[Externalize]:
        """One `Externalize` for each; without excerpts if the next rung will fold the pointer anyway."""
        results = scope.results() if scope.context.can_externalize else ()
        moved = [found for found in results if _may_move(found, scope.context)]
        if not moved:
            return []
        kept = scope.kept_from(moved)
        is_quoted = any(not _is_brief(found, kept, scope) for found in moved)
        used = scope.used() if is_quoted else dict[str, int]()
        made = (_proposal(found, used, scope, kept) for found in moved)
        return [proposal for proposal in made if proposal is not None]


def _may_move(found: Found, context: Context) -> bool:
    own = found.policy.externalize_tokens
    if found.tokens < (context.policy.externalize_tokens if own is None else own):
        return False
    if found.durability == "ephemeral":  # may be cleared instead, so not worth storing
        return False
    sensitivity = sensitivity_of(found.result, found.policy)
    is_kept = bool(found.result.artifact) or sensitivity not in ENCRYPTED
    return is_kept or context.can_encrypt


def _is_brief(found: Found, kept: int, scope: RungScope) -> bool:
    """Whether the pointer needs no excerpts: the next rung folds it, and it saves tokens in any case."""
    most = BRIEF_SHARE * found.tokens
    return found.entry.version < kept and scope.context.policy.pointer_tokens <= most


def _proposal(
    found: Found, used: Mapping[str, int], scope: RungScope, kept: int
) -> Externalize | None:
    context, policy = scope.context, scope.context.policy
    text, artifact = text_of(found.entry.opened or found.result), artifact_of(found.result)
    target = tool_target(found.call.input, found.result.envelope)
    about = f"{found.call.name} {target}".strip()[:ABOUT_CHARACTERS]
    sensitivity = sensitivity_of(found.result, found.policy)
    if sensitivity in ENCRYPTED or policy.artifact_seconds:
        way_back = AT.format(found.entry.path)
    else:
        tool = offered("read_artifact", context)
        way_back = (READ if tool else NAME).format(tool=tool, artifact=artifact)
    line = POINTER.format(tokens=context.counter.count(text), about=about, way_back=way_back)
    around = ""
    if sensitivity not in ENCRYPTED and not _is_brief(found, kept, scope):
        around = excerpts_of(found.entry, used, policy.pointer_tokens, scope.reader)
    pointer = f"{line}\n{around}" if around else line
    freed = scope.freed_by(found, pointer)
    if freed <= 0:
        return None
    return Externalize(
        blocks=(found.entry.block.id,),
        first=found.entry.version,
        last=found.entry.version,
        turns=(found.result.turn,),
        tokens_freed=freed,
        reason=f"{found.tokens} tokens",
        artifact=artifact,
        replacement=pointer,
        path=found.entry.path,
        sensitivity=sensitivity,
    )


def artifact_of(result: ToolResult) -> ArtifactId:
    """The id of the artifact that holds the result's content, or would hold it."""
    return result.artifact or artifact_id(text_of(result).encode(errors="surrogatepass"))
