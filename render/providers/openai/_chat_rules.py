"""The rules of Chat Completions, and the check of a request against them; the input may be any data.

`PARTS` says what each kind of part must have, `ALLOWED` which message may hold it. The rules between messages use only
the role and the ids of the calls of each (`_Extract`). The rules are those of the strictest reader among OpenAI,
compatible servers, and the templates that convert messages to a model's own format.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, unique
from itertools import pairwise
from typing import Any, Final, cast

import attrs

from blocks.formats import REASONING, obj
from render.policy._context import Model, Violation
from render.providers._rules import (
    LISTS,
    Check,
    Findings,
    Json,
    Shapes,
    check_names,
    is_number,
    is_readable,
    placed,
    text,
)
from render.providers.openai._common_rules import (
    CommonRule,
    call_id,
    check_call,
    check_definition,
    check_fields,
    check_file,
    check_image,
    check_limits,
    check_mark,
)
from render.providers.openai._constants import CHAT_ID_LENGTH_MAX

_SHAPES: Final[Shapes] = {"messages": (LISTS, "an array"), "tools": (LISTS, "an array")}


def check_request(request: Mapping[str, Any], model: Model | None = None) -> tuple[Violation, ...]:
    """Every reason why the provider would refuse `request`; never raises, whatever it is.

    Without a model, the strictest rules apply.
    """
    findings = Findings()
    if not is_readable(request, _SHAPES, CommonRule.SHAPE, findings):
        return tuple(findings.violations)
    tools = findings.objects_in(request.get("tools"), "tools", CommonRule.SHAPE)
    names = [(place, _check_tool(tool, place, findings)) for tool, place in tools]
    listed = placed(request.get("messages"), "messages")
    messages = [_read_message(message, place, findings) for message, place in listed]
    if not messages:
        findings.add(Rule.NO_MESSAGES, "messages")
    check_names(names, CommonRule.TOOL_NAME_DUPLICATE, findings)
    for before, after in pairwise(messages):
        if before.role == after.role and after.role in ("user", "assistant"):
            findings.add(Rule.NOT_ALTERNATING, after.place)
    _check_pairs(messages, findings)
    check_limits(request, "messages", model, findings)
    for name in ("max_completion_tokens", "max_tokens"):
        most: Any = request.get(name)
        if most is not None and (not is_number(most) or most < 1):
            findings.add(CommonRule.SHAPE, name, "a positive integer")
        elif most is not None and model is not None and most > model.output_tokens_max:
            findings.add(Rule.MAX_TOKENS, name, most, model.output_tokens_max)
    return tuple(findings.violations)


def refusal_of(part: Json) -> str:
    """Why a part of a user's message would be refused; empty: it is valid, or only has fields that are not known here."""
    findings = Findings()
    _check_part(part, "user", "", findings)
    return findings.refusal


@unique
class Rule(Enum):
    """The rules that the other API has not, or in other words; see `CommonRule`."""

    NO_MESSAGES = (
        "Invalid 'messages': empty array. Expected an array with minimum length 1."  # [seen]
    )
    ROLE = "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'."
    # Only an assistant message with calls may have no content. [seen]
    CONTENT_NULL = "Invalid value for 'content': expected a string, got null."
    CONTENT_EMPTY = (
        "Invalid 'content': empty array. Expected an array with minimum length 1."  # [seen]
    )
    # Many templates refuse two user messages in a row. (Some refuse a system message between others, too; one that an
    # operator put there was accepted there.) [servers]
    NOT_ALTERNATING = "Conversation roles must alternate user/assistant/user/assistant/..."

    # The results must follow their calls directly. [seen]
    CALL_UNANSWERED = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: %s"
    )
    RESULT_UNEXPECTED = (
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
        "'tool_calls'."
    )
    RESULT_DUPLICATE = "Duplicate value for 'tool_call_id' of '%s' in message."
    CALL_ID_DUPLICATE = "Duplicate value for 'tool_calls.id' of '%s'."
    CALLS_EMPTY = (
        "Invalid 'tool_calls': empty array. Expected an array with minimum length 1."  # [seen]
    )
    CALL_ID = "Invalid 'tool_calls.id': expected a string of 1 to 40 characters."  # [seen]
    CALL_TYPE = "Invalid value: '%s'. Supported values are: 'function' and 'custom'."

    TOOL_TYPE = "Invalid value: '%s'. Supported types of tools are: 'function' and 'custom'."
    TOOL_NAME = (
        "Invalid 'tools.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$', up to 64."
    )

    FILE = "Invalid file: one of file_data or file_id must be provided."  # [sdk]
    MAX_TOKENS = (
        "max_tokens is too large: %s. This model supports at most %s completion tokens."  # [seen]
    )


def _check_tool(tool: Json, place: str, findings: Findings) -> str:
    """Check one entry of `tools`; returns its name, empty if it has none."""
    kind = tool.get("type")
    definition: Any = tool.get(kind) if kind in ("function", "custom") else None
    if not isinstance(definition, dict):
        findings.add(Rule.TOOL_TYPE, place, kind, field="type")
        return ""
    return check_definition(cast("Json", definition), place, Rule.TOOL_NAME, findings)


# Messages and their parts.


@attrs.frozen(eq=False)
class _Extract:
    """What the rules between messages use of one of them."""

    place: str
    role: str = ""
    """Empty if it is unknown."""
    calls: Sequence[str] = ()
    """The ids of an assistant message's calls."""
    answered: str = ""
    """The id of the call that a tool message answers."""


def _read_message(message: object, place: str, findings: Findings) -> _Extract:
    """Check one message by itself."""
    fields = findings.object_at(message, place, CommonRule.SHAPE)
    if fields is None:
        return _Extract(place)
    role = fields.get("role")
    if not isinstance(role, str) or role not in ALLOWED:
        findings.add(Rule.ROLE, place, role, field="role")
        return _Extract(place)
    check_fields(fields, KNOWN_FIELDS[role], place, findings)
    answered = call_id(fields, "tool_call_id", CHAT_ID_LENGTH_MAX) if role == "tool" else ""
    if role == "tool" and not answered:
        findings.add(Rule.CALL_ID, place, field="tool_call_id")
    if role != "assistant" or fields.get("content") is not None:
        _check_content(fields.get("content"), role, place, findings)
    elif not fields.get("tool_calls") and not isinstance(fields.get("refusal"), str):
        findings.add(Rule.CONTENT_NULL, place, field="content")
    calls = _read_calls(fields.get("tool_calls"), place, findings) if role == "assistant" else ()
    return _Extract(place, role, calls, answered)


def _read_calls(calls: object, place: str, findings: Findings) -> Sequence[str]:
    """Check the calls of a message; returns their ids."""
    if not isinstance(calls, list | None):
        findings.add(CommonRule.SHAPE, place, "an array", field="tool_calls")
    elif calls == []:
        findings.add(Rule.CALLS_EMPTY, place, field="tool_calls")
    listed = findings.objects_in(cast("object", calls), f"{place}.tool_calls", CommonRule.SHAPE)
    return [each for call, at in listed if (each := _read_call(call, at, findings))]


def _read_call(call: Json, place: str, findings: Findings) -> str:
    """Check a call; returns its id, empty if that is not valid."""
    check_fields(call, KNOWN_FIELDS["call"], place, findings)
    kind = call.get("type")
    inner = obj(call.get(kind) if kind in ("function", "custom") else None)
    if inner:
        check_call(inner, place, findings, is_free=kind == "custom")
    else:
        findings.add(Rule.CALL_TYPE, place, kind, field="type")
    identity = call_id(call, "id", CHAT_ID_LENGTH_MAX)
    if not identity:
        findings.add(Rule.CALL_ID, place, field="id")
    return identity


def _check_content(content: object, role: str, place: str, findings: Findings) -> None:
    if isinstance(content, str):
        findings.size += len(content)
    elif content is None:
        findings.add(Rule.CONTENT_NULL, place, field="content")
    elif not isinstance(content, list):
        findings.add(CommonRule.SHAPE, place, "a string or an array", field="content")
    elif not content:
        findings.add(Rule.CONTENT_EMPTY, place, field="content")
    else:
        for part, at in findings.objects_in(
            cast("object", content), f"{place}.content", CommonRule.SHAPE
        ):
            _check_part(part, role, at, findings)


def _check_part(part: Json, role: str, place: str, findings: Findings) -> None:
    kind: Any = part.get("type")
    check_mark(part, place, findings, is_allowed=role != "assistant")
    if kind not in ALLOWED[role]:
        findings.add(CommonRule.UNKNOWN_PART, place, kind, field="type")
    else:
        check_fields(part, KNOWN_FIELDS["part"] | {kind}, place, findings)
        if check := PARTS.get(kind):
            check(part, place, findings)


def _image(part: Json, place: str, findings: Findings) -> None:
    check_image({}, obj(part.get("image_url")).get("url"), place, findings)


def _file(part: Json, place: str, findings: Findings) -> None:
    check_file(obj(part.get("file")), place, Rule.FILE, findings)


KNOWN_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("developer", "system", "user"), frozenset({"content", "name", "role"})),
    "assistant": frozenset(
        {"audio", "content", "function_call", "name", "refusal", "role", "tool_calls", *REASONING}
    ),
    "tool": frozenset({"content", "role", "tool_call_id"}),
    "call": frozenset({"custom", "function", "id", "type"}),
    "part": frozenset({"type"}),
}
"""The fields of messages by role, of calls, and of parts besides the one that has the name of their type; by the SDK. The
model's own report of its reasoning is a field of other servers."""
PARTS: Final[Mapping[str, Check]] = {
    "text": text("text", CommonRule.SHAPE, "a string"),
    "refusal": text("refusal", CommonRule.SHAPE, "a string"),
    "image_url": _image,
    "file": _file,
}
"""What each kind of part must have; the others have no rules here."""
ALLOWED: Final[Mapping[str, Sequence[str]]] = {
    "assistant": ("text", "refusal"),
    "developer": ("text",),
    "system": ("text",),
    "tool": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
}
"""The parts that a message may have, by its role."""


# Rules between messages.


def _check_pairs(messages: Sequence[_Extract], findings: Findings) -> None:
    """Check that results directly follow their calls, each once, and that no two calls have the same id."""
    seen: set[str] = set()
    calling, answered = _Extract("messages.0"), set[str]()
    for message in (*messages, _Extract("")):
        if message.role == "tool":
            if message.answered and message.answered not in calling.calls:
                findings.add(Rule.RESULT_UNEXPECTED, message.place)
            elif message.answered in answered:
                findings.add(Rule.RESULT_DUPLICATE, message.place, message.answered)
            answered.add(message.answered)
            continue
        if missing := [call for call in calling.calls if call not in answered]:
            findings.add(Rule.CALL_UNANSWERED, calling.place, ", ".join(missing))
        for call in message.calls:
            if call in seen:
                findings.add(Rule.CALL_ID_DUPLICATE, message.place, call)
            seen.add(call)
        calling, answered = message, set[str]()
