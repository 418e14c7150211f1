"""Externalize: a large result goes to the artifact store; a pointer with excerpts stays.

Its content is in the log anyway.  What the store adds is a short name that can be passed to a tool,
access rules, an expiry, and content that other machines can read.
"""

from collections.abc import Mapping
from typing import Final

from blocks import artifact_id, text_of, tool_target
from render.compaction.rungs._placeholder import excerpts_of, sensitivity_of
from render.compaction.rungs._plan import Externalize
from render.compaction.rungs._scope import Found, RungScope
from render.policy._context import Context

POINTER: Final = "[moved to the artifact store: {tokens} tokens of {about}; {way_back}]"
"""Version 1 of the pointer's first line; the excerpts follow on lines of their own."""
READ: Final = 'read_artifact("{}")'
NAME: Final = 'name "{}" and it is shown again'
"""The way back for an agent without that tool; see `render.stages._rehydrate`."""
ABOUT_CHARACTERS: Final = 120
ENCRYPTED: Final = frozenset({"confidential", "restricted"})
"""What an artifact store takes only with a key."""


class ExternalizeRung:
    """Proposes every result before the tail that is large enough, all in one batch."""

    name = "externalize"

    def propose(self, scope: RungScope) -> list[Externalize]:
        """A pointer for each."""
        results = list(scope.results()) if scope.context.can_externalize else []
        if not results:
            return []
        used = scope.used()
        found = (_proposal(found, used, scope) for found in results)
        return [proposal for proposal in found if proposal is not None]


def _proposal(found: Found, used: Mapping[str, int], scope: RungScope) -> Externalize | None:
    context = scope.context
    policy, own = context.policy, found.policy.externalize_tokens
    if found.tokens < (policy.externalize_tokens if own is None else own):
        return None
    if found.durability == "ephemeral":  # may be cleared: not worth keeping
        return None
    sensitivity = sensitivity_of(found.result, found.policy)
    if sensitivity in ENCRYPTED and not context.can_encrypt:
        return None
    text = text_of(found.result)
    artifact = artifact_id(text.encode(errors="surrogatepass"))
    target = tool_target(found.call.input, found.result.envelope)
    about = f"{found.call.name} {target}".strip()[:ABOUT_CHARACTERS]
    way_back = (READ if _can_read(context) else NAME).format(artifact)
    line = POINTER.format(tokens=context.counter.count(text), about=about, way_back=way_back)
    around = excerpts_of(found.entry, used, policy.pointer_tokens, context.counter.count)
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


def _can_read(context: Context) -> bool:
    return any(tool.get("name") == "read_artifact" for tool in context.tools)
