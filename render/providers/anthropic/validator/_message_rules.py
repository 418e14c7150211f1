"""One message: its role, its blocks, and the facts that decide whether it fits its neighbours."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from render.providers.anthropic._kinds import SERVER_TOOL_TYPES, THINKING_TYPES
from render.providers.anthropic.validator._block_rules import scan_block
from render.providers.anthropic.validator._facts import (
    Facts,
    Ref,
    Scan,
    as_array,
    as_object,
    as_string,
)
from render.providers.anthropic.validator._rules import Rule

_ROLES: Final = frozenset({"user", "assistant", "system"})
_RESUMABLE: Final = SERVER_TOOL_TYPES | {"compaction"}


def _derived(work_out: Callable[["MessageFacts"], Any]) -> Any:
    """Declare a field that follows from the fields above it."""
    return attrs.field(init=False, default=attrs.Factory(work_out, takes_self=True))


def _ids(refs: Sequence[Ref]) -> tuple[str, ...]:
    return tuple([ref.id for ref in refs])


@attrs.frozen(eq=False, kw_only=True)
class MessageFacts(Facts):
    """Facts about one message, or about a run of messages that the server joins."""

    role: str = ""
    """Empty when it is none that any model knows."""
    kinds: tuple[str, ...] = ()
    """Types of the blocks, empty for a block of no known type."""
    last_text: str = ""
    """The text the message ends in, if it ends in one."""
    uses: tuple[Ref, ...] = ()
    """Tool uses of an assistant; elsewhere they are a fault by themselves."""
    results: tuple[Ref, ...] = ()
    """Tool results of a user."""

    # What follows from the above, worked out once: these are read for every request.
    asked: tuple[str, ...] = _derived(lambda facts: _ids(facts.uses))
    answered: tuple[str, ...] = _derived(lambda facts: _ids(facts.results))
    orderly: bool = _derived(lambda facts: facts.is_orderly())
    """Results stand first, each once, and the last block is no thinking."""
    noted: bool = _derived(lambda facts: facts.is_noted())
    """Whether a check of the whole request must look at this message by itself."""

    @property
    def first_kind(self) -> str:
        """Type of the first block."""
        return self.kinds[0] if self.kinds else ""

    @property
    def ends_in_thinking(self) -> bool:
        """Whether an assistant stopped before it said anything."""
        return self.role == "assistant" and bool(self.kinds) and self.kinds[-1] in THINKING_TYPES

    @property
    def ends_in_server_tool(self) -> bool:
        """Whether the server's own tools have the last word."""
        return bool(self.kinds) and self.kinds[-1] in SERVER_TOOL_TYPES

    @property
    def resumable(self) -> bool:
        """Whether this is a turn that the server paused and will go on with."""
        return bool(self.kinds) and self.kinds[-1] in _RESUMABLE

    def is_orderly(self) -> bool:
        """Work out `orderly`."""
        if self.ends_in_thinking:
            return False
        once = len(set(self.answered)) == len(self.answered)
        return once and not any(ref.late for ref in self.results)

    def is_noted(self) -> bool:
        """Work out `noted`."""
        strange = not self.kinds or self.role == "system"
        return bool(strange or self.faults or self.marks or self.images)


def message_facts(message: object) -> MessageFacts:
    """Check one message by itself."""
    scan = Scan()
    known = as_object(message)
    if known is None:
        scan.fault(Rule.SHAPE, "", "dictionary")
        return MessageFacts(source=message, kinds=("",), **scan.collected())
    role = _scan_role(known.get("role"), scan)
    blocks = _blocks(known.get("content"))
    if blocks is None:
        scan.fault(Rule.SHAPE, "", "list", field="content")
        return MessageFacts(source=message, role=role, kinds=("",), **scan.collected())
    kinds = tuple([scan_block(block, role, f"content.{n}", scan) for n, block in enumerate(blocks)])
    return MessageFacts(
        source=message,
        role=role,
        kinds=kinds,
        last_text=_string_in(blocks[-1], "text") if kinds[-1:] == ("text",) else "",
        uses=_refs(kinds, blocks, "tool_use", "id") if role == "assistant" else (),
        results=_refs(kinds, blocks, "tool_result", "tool_use_id") if role == "user" else (),
        **scan.collected(),
    )


def joined_facts(run: Sequence[MessageFacts]) -> MessageFacts:
    """A run of messages of one role, as the one message that the server makes of it."""
    uses: list[Ref] = []
    results: list[Ref] = []
    kinds: list[str] = []
    late = False
    for offset, facts in enumerate(run):
        uses += [Ref(ref.id, ref.at, ref.late, offset) for ref in facts.uses]
        results += [Ref(ref.id, ref.at, late or ref.late, offset) for ref in facts.results]
        kinds += facts.kinds
        late = late or any(kind != "tool_result" for kind in facts.kinds)
    return MessageFacts(
        source=None,
        role=run[-1].role,
        kinds=tuple(kinds),
        last_text=run[-1].last_text,
        uses=tuple(uses),
        results=tuple(results),
    )


def _scan_role(role: object, scan: Scan) -> str:
    if isinstance(role, str) and role in _ROLES:
        return role
    scan.fault(Rule.ROLE, "", field="role")
    return ""


def _blocks(content: object) -> Sequence[object] | None:
    """Content as blocks; a string is short for one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return as_array(content)


def _refs(kinds: Sequence[str], blocks: Sequence[object], kind: str, key: str) -> tuple[Ref, ...]:
    """Ids under `key` of all blocks of one `kind`; a broken id is a fault by itself."""
    refs: list[Ref] = []
    late = False
    for index, found in enumerate(kinds):
        if found != kind:
            late = True
        elif identity := _string_in(blocks[index], key):
            refs.append(Ref(identity, f"content.{index}", late))
    return tuple(refs)


def _string_in(block: object, key: str) -> str:
    known = as_object(block)
    return as_string(known.get(key)) if known else ""
