"""Rules for one message, and the facts that decide whether it fits its neighbours."""

from collections.abc import Sequence
from typing import Final, cast

import attrs

from render.providers.anthropic._kinds import SERVER_TOOL_TYPES, THINKING_TYPES
from render.providers.anthropic.validator._block_rules import scan_blocks
from render.providers.anthropic.validator._facts import Facts, Json, Ref
from render.providers.anthropic.validator._rules import Rule

_ROLES: Final = frozenset({"user", "assistant", "system"})
_RESUMABLE: Final = SERVER_TOOL_TYPES | {"compaction"}


@attrs.define(eq=False, kw_only=True)
class MessageFacts(Facts):
    """Facts about one message, or about consecutive messages that the server joins."""

    role: str = ""
    """Empty if the role is unknown."""
    kinds: tuple[str, ...] = ()
    """Types of the blocks; empty text for an unknown type."""
    last_text: str = ""
    """The text of the last block; empty if that is not a text."""
    uses: tuple[Ref, ...] = ()
    """Tool uses in an assistant message; in other messages they are a fault."""
    results: tuple[Ref, ...] = ()
    """Tool results in a user message."""

    # Derived values, read for every request, so `settled` computes them once.
    asked: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    orderly: bool = True
    """Whether results come first, each once, and the last block is not thinking."""
    noted: bool = True
    """Whether a check of the whole request must look at this message by itself."""

    @property
    def first_kind(self) -> str:
        """Type of the first block."""
        return self.kinds[0] if self.kinds else ""

    @property
    def ends_in_thinking(self) -> bool:
        """Whether an assistant message ends in thinking."""
        return self.role == "assistant" and bool(self.kinds) and self.kinds[-1] in THINKING_TYPES

    @property
    def ends_in_server_tool(self) -> bool:
        """Whether the message ends in a block of the server's own tools."""
        return bool(self.kinds) and self.kinds[-1] in SERVER_TOOL_TYPES

    @property
    def resumable(self) -> bool:
        """Whether the message is a turn that the server paused and will continue."""
        return bool(self.kinds) and self.kinds[-1] in _RESUMABLE

    def settled(self) -> "MessageFacts":
        """These facts, after the derived values are computed."""
        self.asked = tuple([ref.id for ref in self.uses])
        self.answered = tuple([ref.id for ref in self.results])
        once = len(set(self.answered)) == len(self.answered)
        late = any(ref.late for ref in self.results)
        self.orderly = once and not late and not self.ends_in_thinking
        strange = not self.kinds or self.role == "system"
        self.noted = bool(strange or self.faults or self.marks or self.images)
        return self


def message_facts(message: object) -> MessageFacts:
    """Check one message by itself."""
    facts = MessageFacts(source=message, kinds=("",))
    if isinstance(message, dict):
        _scan_message(cast("Json", message), facts)
    else:
        facts.fault(Rule.SHAPE, "", "dictionary")
    return facts.settled()


def _scan_message(message: Json, facts: MessageFacts) -> None:
    role, content = message.get("role"), message.get("content")
    if isinstance(role, str) and role in _ROLES:
        facts.role = role
    else:
        facts.fault(Rule.ROLE, "", field="role")
    if isinstance(content, str):  # short for one text block
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list | tuple):
        facts.fault(Rule.SHAPE, "", "list", field="content")
        return
    facts.kinds = scan_blocks(cast("Sequence[object]", content), facts.role, facts)
    blocks = cast("Sequence[Json]", content)  # blocks with a known type are objects
    if facts.kinds[-1:] == ("text",):
        text = blocks[-1].get("text")
        facts.last_text = text if isinstance(text, str) else ""
    if role == "assistant":
        facts.uses = _refs(facts.kinds, blocks, "tool_use", "id")
    elif role == "user":
        facts.results = _refs(facts.kinds, blocks, "tool_result", "tool_use_id")


def joined_facts(run: Sequence[MessageFacts]) -> MessageFacts:
    """The facts of consecutive messages of one role, as of the one message that the server makes of them."""
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
    ).settled()


def _refs(kinds: Sequence[str], blocks: Sequence[Json], kind: str, key: str) -> tuple[Ref, ...]:
    """The ids under `key` in all blocks of this `kind`; missing ids are reported elsewhere."""
    refs: list[Ref] = []
    late = False
    for index, found in enumerate(kinds):
        identity = blocks[index].get(key) if found == kind else None
        late = late or found != kind
        if isinstance(identity, str) and identity:
            refs.append(Ref(identity, f"content.{index}", late))
    return tuple(refs)
