"""Rules for input items: one function for each kind of item."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from render.providers._facts import fields, items, joined, scanned
from render.providers.openai._checks import scan_call, scan_mark
from render.providers.openai._kinds import CALL_ID_LENGTH_MAX, CALLS, MARK, REPLAYED
from render.providers.openai._media import MediaFacts, scan_file, scan_image
from render.providers.openai.responses.validator._rules import Rule
from render.providers.openai.responses.validator._tool_rules import tool_facts

Json: TypeAlias = Mapping[str, Any]
ItemRule: TypeAlias = Callable[[Json, "ItemFacts"], None]

_ROLES: Final = frozenset({"assistant", "developer", "system", "user"})
_SAID: Final = frozenset({"output_text", "refusal"})
_PHASES: Final = (None, "commentary", "final_answer")


@attrs.define(eq=False)
class ItemFacts(MediaFacts):
    """Facts about one item."""

    by_model: bool = False
    """Whether the model made it."""
    asked: tuple[str, str] = ("", "")
    """For a call: its id, and the type of its output item."""
    answered: tuple[str, str] = ("", "")
    """For an output: the id of its call, and its own type."""
    reasoning: str | None = None
    """For reasoning: its id; None for other items."""
    is_trigger: bool = False
    """Whether it requests a compaction."""
    noted: bool = True
    """Whether a check of the whole request must look at this item by itself."""


def item_facts(item: object) -> ItemFacts:
    """Check one item by itself."""
    return scanned(ItemFacts(source=item), Rule.SHAPE, _scan_item)


def _scan_item(item: Json, facts: ItemFacts) -> None:
    kind: object = item.get("type", "message")
    rule = _ITEM_RULES.get(kind) if isinstance(kind, str) else None
    if rule is None:
        facts.fault(Rule.UNKNOWN_ITEM, "", kind, field="type")
        return
    if MARK in item:
        facts.fault(Rule.MARK_PLACE, "", field=MARK)
    rule(item, facts)
    facts.noted = bool(facts.faults or facts.marks or facts.images)


# Messages.


def _scan_message(item: Json, facts: ItemFacts) -> None:
    role: object = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        facts.fault(Rule.ROLE, "", role, field="role")
        return
    facts.by_model = role == "assistant"
    if item.get("phase") not in _PHASES:
        facts.fault(Rule.PHASE, "", item.get("phase"), field="phase")
    content: object = item.get("content")
    if isinstance(content, str):
        facts.size += len(content)
    else:
        _scan_parts(content, "content", facts)


def _scan_agent_message(item: Json, facts: ItemFacts) -> None:
    """Check a message between agents of a team, which the server may have encrypted."""
    for field in ("author", "recipient"):
        if not isinstance(item.get(field), str):
            facts.fault(Rule.SHAPE, "", "a string", field=field)
    content: object = item.get("content")
    parts = items(content)
    open_parts = [part for part in parts if fields(part).get("type") != "encrypted_content"]
    if open_parts:
        _scan_parts(open_parts, "content", facts)
    elif not parts:
        _scan_parts(content, "content", facts)


def _scan_parts(content: object, field: str, facts: ItemFacts) -> None:
    if not isinstance(content, list):
        facts.fault(Rule.SHAPE, "", "a string or an array", field=field)
        return
    if not content:
        facts.fault(Rule.CONTENT_EMPTY, "", field, field=field)
    for index, part in enumerate(cast("Sequence[object]", content)):
        at = f"{field}.{index}"
        if isinstance(part, dict):
            _scan_part(cast("Json", part), at, facts)
        else:
            facts.fault(Rule.SHAPE, at, "an object")


def _scan_part(part: Json, at: str, facts: ItemFacts) -> None:
    kind = part.get("type")
    kind = kind if isinstance(kind, str) else ""
    if MARK in part:
        scan_mark(part[MARK], at, facts, Rule)
        if facts.by_model:
            facts.fault(Rule.MARK_PLACE, at, field=MARK)
    if facts.by_model == (kind in _SAID) and kind in ("input_text", *_SAID):
        text: object = part.get("refusal" if kind == "refusal" else "text")
        if isinstance(text, str):
            facts.size += len(text)
        else:
            facts.fault(Rule.SHAPE, at, "a string", field="text")
    elif kind == "input_image" and not facts.by_model:
        scan_image(part, part.get("image_url"), at, facts, Rule)
    elif kind == "input_file" and not facts.by_model:
        scan_file(part, at, facts, Rule)
    else:
        facts.fault(Rule.UNKNOWN_PART, at, kind, field="type")


# Calls.


def _scan_call(item: Json, facts: ItemFacts) -> None:
    facts.by_model = True
    kind: str = item["type"]
    facts.asked = (_call_id(item, facts), CALLS[kind])
    scan_call(item, "arguments" if kind == "function_call" else "input", "", facts, Rule)


def _scan_output(item: Json, facts: ItemFacts) -> None:
    facts.answered = (_call_id(item, facts), item["type"])
    output: object = item.get("output")
    if isinstance(output, str):
        facts.size += len(output)
    else:
        _scan_parts(output, "output", facts)


def _call_id(item: Json, facts: ItemFacts) -> str:
    found: object = item.get("call_id")
    if isinstance(found, str) and 0 < len(found) <= CALL_ID_LENGTH_MAX:
        return found
    facts.fault(Rule.CALL_ID, "", field="call_id")
    return ""


# Items that only the server reads.


def _scan_reasoning(item: Json, facts: ItemFacts) -> None:
    facts.by_model = True
    identity: object = item.get("id")
    facts.reasoning = identity if isinstance(identity, str) else ""
    sealed: object = item.get("encrypted_content")
    if not isinstance(sealed, str) or not sealed:
        facts.fault(Rule.REASONING_SEALED, "", identity)
    if not isinstance(item.get("summary"), list):
        facts.fault(Rule.SHAPE, "", "an array", field="summary")


def _scan_compaction(item: Json, facts: ItemFacts) -> None:
    facts.by_model = True
    if not isinstance(item.get("encrypted_content"), str):
        facts.fault(Rule.COMPACTION_SEALED, "")


def _scan_more_tools(item: Json, facts: ItemFacts) -> None:
    """Check an item that offers more tools from here on."""
    if item.get("role") != "developer":
        facts.fault(Rule.TOOLS_ROLE, "", item.get("role"), field="role")
    tools: object = item.get("tools")
    if not isinstance(tools, list):
        facts.fault(Rule.SHAPE, "", "an array", field="tools")
        return
    for index, tool in enumerate(cast("Sequence[object]", tools)):
        facts.faults += [
            attrs.evolve(fault, at=joined(f"tools.{index}", fault.at))
            for fault in tool_facts(tool).faults
        ]


def _scan_trigger(item: Json, facts: ItemFacts) -> None:
    """Record that the item requests a compaction."""
    del item
    facts.is_trigger = True


def _scan_own(item: Json, facts: ItemFacts) -> None:
    """Accept a known item that has no rules here."""
    del item
    facts.by_model = True


_ITEM_RULES: Final[Mapping[str, ItemRule]] = {
    **dict.fromkeys(REPLAYED, _scan_own),
    **dict.fromkeys(CALLS, _scan_call),
    **dict.fromkeys(CALLS.values(), _scan_output),
    "additional_tools": _scan_more_tools,
    "agent_message": _scan_agent_message,
    "compaction": _scan_compaction,
    "compaction_trigger": _scan_trigger,
    "message": _scan_message,
    "reasoning": _scan_reasoning,
}
