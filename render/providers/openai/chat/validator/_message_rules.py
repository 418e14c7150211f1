"""Rules for messages: one function for each role."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from render.providers._facts import fields, scanned
from render.providers.openai._checks import scan_call, scan_mark
from render.providers.openai._kinds import CHAT_ID_LENGTH_MAX, MARK
from render.providers.openai._media import MediaFacts, scan_file, scan_image
from render.providers.openai.chat.validator._rules import Rule

Json: TypeAlias = Mapping[str, Any]
MessageRule: TypeAlias = Callable[[Json, "MessageFacts"], None]


@attrs.define(eq=False)
class MessageFacts(MediaFacts):
    """Facts about one message."""

    role: str = ""
    """Empty if the role is unknown."""
    asked: tuple[str, ...] = ()
    """Ids of the calls in an assistant message."""
    answered: str = ""
    """For a tool message, the id of its call."""
    noted: bool = True
    """Whether a check of the whole request must look at this message by itself."""

    # Derived values, read for every request, so they are computed once.
    letter: str = "?"
    """First letter of the role."""
    begins: str = "?"
    """The first letter of the role, and a `t` for each tool message that must follow; empty for a tool
    message."""


def message_facts(message: object) -> MessageFacts:
    """Check one message by itself."""
    return scanned(MessageFacts(source=message), Rule.SHAPE, _scan_message)


def _scan_message(message: Json, facts: MessageFacts) -> None:
    role: object = message.get("role")
    rule = _ROLE_RULES.get(role) if isinstance(role, str) else None
    if rule is None:
        facts.fault(Rule.ROLE, "", role, field="role")
        return
    facts.role = str(role)
    rule(message, facts)
    facts.letter = facts.role[0]
    facts.begins = "" if facts.role == "tool" else facts.letter + "t" * len(facts.asked)
    facts.noted = bool(facts.faults or facts.marks or facts.images)


def _scan_user(message: Json, facts: MessageFacts) -> None:
    _scan_content(message, facts, _USER_PARTS)


def _scan_system(message: Json, facts: MessageFacts) -> None:
    _scan_content(message, facts, ("text",))


def _scan_tool(message: Json, facts: MessageFacts) -> None:
    found: object = message.get("tool_call_id")
    if isinstance(found, str) and 0 < len(found) <= CHAT_ID_LENGTH_MAX:
        facts.answered = found
    else:
        facts.fault(Rule.CALL_ID, "", field="tool_call_id")
    _scan_content(message, facts, ("text",))


def _scan_assistant(message: Json, facts: MessageFacts) -> None:
    calls: object = message.get("tool_calls")
    if message.get("content") is not None:
        _scan_content(message, facts, ("text", "refusal"))
    elif not calls and not isinstance(message.get("refusal"), str):
        facts.fault(Rule.CONTENT_NULL, "", field="content")
    if calls is None:
        return
    if not isinstance(calls, list):
        facts.fault(Rule.SHAPE, "", "an array", field="tool_calls")
        return
    listed = cast("Sequence[object]", calls)
    if not listed:
        facts.fault(Rule.CALLS_EMPTY, "", field="tool_calls")
    facts.asked = tuple(
        filter(None, (_scan_call(call, f"tool_calls.{n}", facts) for n, call in enumerate(listed)))
    )


def _scan_call(call: object, at: str, facts: MessageFacts) -> str:
    """Check a call; returns its id, empty if that is invalid."""
    if not isinstance(call, dict):
        facts.fault(Rule.SHAPE, at, "an object")
        return ""
    known = cast("Json", call)
    kind: object = known.get("type")
    found: object = known.get(kind) if kind in ("function", "custom") else None
    inner = fields(found)
    if not inner:
        facts.fault(Rule.CALL_TYPE, at, kind, field="type")
    else:
        scan_call(inner, "arguments" if kind == "function" else "input", at, facts, Rule)
    identity: object = known.get("id")
    if isinstance(identity, str) and 0 < len(identity) <= CHAT_ID_LENGTH_MAX:
        return identity
    facts.fault(Rule.CALL_ID, at, field="id")
    return ""


# Contents.


def _scan_content(message: Json, facts: MessageFacts, kinds: Sequence[str]) -> None:
    content: object = message.get("content")
    if isinstance(content, str):
        facts.size += len(content)
    elif content is None:
        facts.fault(Rule.CONTENT_NULL, "", field="content")
    elif not isinstance(content, list):
        facts.fault(Rule.SHAPE, "", "a string or an array", field="content")
    elif not content:
        facts.fault(Rule.CONTENT_EMPTY, "", field="content")
    else:
        for index, part in enumerate(cast("Sequence[object]", content)):
            _scan_part(part, f"content.{index}", facts, kinds)


def _scan_part(part: object, at: str, facts: MessageFacts, kinds: Sequence[str]) -> None:
    if not isinstance(part, dict):
        facts.fault(Rule.SHAPE, at, "an object")
        return
    known = cast("Json", part)
    kind: object = known.get("type")
    if MARK in known:
        scan_mark(known[MARK], at, facts, Rule)
        if facts.role == "assistant":
            facts.fault(Rule.MARK_PLACE, at, field=MARK)
    if kind not in kinds:
        facts.fault(Rule.UNKNOWN_PART, at, kind, field="type")
    elif kind in ("text", "refusal"):
        text: object = known.get(kind)
        facts.size += len(text) if isinstance(text, str) else 0
        if not isinstance(text, str):
            facts.fault(Rule.SHAPE, at, "a string", field=str(kind))
    elif kind == "image_url":
        scan_image({}, fields(known.get("image_url")).get("url"), at, facts, Rule)
    elif kind == "file":
        scan_file(fields(known.get("file")), at, facts, Rule)


_USER_PARTS: Final = ("text", "image_url", "input_audio", "file")
_ROLE_RULES: Final[Mapping[str, MessageRule]] = {
    "assistant": _scan_assistant,
    "developer": _scan_system,
    "system": _scan_system,
    "tool": _scan_tool,
    "user": _scan_user,
}
