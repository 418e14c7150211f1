"""The rules of the Responses API, and the check of a request against them; the input may be any data.

`ITEMS` says what each kind of item must have, `PARTS` the same of parts, and `ALLOWED` which message may hold which
part. The rules between items use only the kind and the id of each (`_Item`). Of the request's other fields, only those
that the renderer writes are checked.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, unique
from itertools import pairwise
from types import NoneType
from typing import Any, Final, cast

import attrs

from blocks.formats import obj, string
from render.policy._context import Model, Violation
from render.providers._rules import (
    LISTS,
    Check,
    Checks,
    Findings,
    Json,
    Shapes,
    check_names,
    field,
    is_filled,
    is_number,
    is_readable,
    items,
    placed,
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
from render.providers.openai._constants import CALL_ID_LENGTH_MAX, CALLS, EXTRA, MARK, REPLAYED, RUN

OUTPUT_TOKENS_MIN: Final = 16
_SHAPES: Final[Shapes] = {
    "input": ((str, *LISTS), "a string or an array"),
    "tools": (LISTS, "an array"),
    "instructions": ((str, NoneType), "a string"),
}


def check_request(request: Mapping[str, Any], model: Model | None = None) -> tuple[Violation, ...]:
    """Every reason why the provider would refuse `request`; never raises, whatever it is.

    Without a model, the strictest rules apply.
    """
    findings = Findings()
    if not is_readable(request, _SHAPES, CommonRule.SHAPE, findings):
        return tuple(findings.violations)
    tools = findings.objects_in(request.get("tools"), "tools", CommonRule.SHAPE)
    names = [(place, _check_tool(tool, place, findings)) for tool, place in tools]
    content: object = request.get("input")
    if isinstance(content, str):
        content = [{"role": "user", "content": content}]
    entries = [_read_item(item, place, findings) for item, place in placed(content, "input")]
    if not entries:
        findings.add(Rule.NO_INPUT, "input")
    check_names(names, CommonRule.TOOL_NAME_DUPLICATE, findings)
    _check_pairs(entries, findings)
    _check_neighbours(entries, findings)
    check_limits(request, "input", model, findings)
    _check_output(request.get("max_output_tokens"), model, findings)
    return tuple(findings.violations)


def refusal_of(part: object) -> str:
    """Why a part of a user's message would be refused; empty: it is valid, or only has fields that are not known here."""
    findings = Findings()
    _check_parts([part], "user", "", "content", findings)
    return findings.refusal


@unique
class Rule(Enum):
    """The rules that the other API has not, or in other words; see `CommonRule`."""

    NO_INPUT = (
        "One of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided."
    )
    UNKNOWN_ITEM = "Invalid value: '%s'. Supported values are the types of the input items."
    ROLE = (
        "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
    )
    CONTENT_EMPTY = "Invalid '%s': empty array. Expected an array with minimum length 1."  # [seen]
    PHASE = "Invalid value: '%s'. Supported values are: 'commentary' and 'final_answer'."  # [sdk]

    # Every call has one output anywhere after it, and every output a call before it. [seen]
    CALL_UNANSWERED = "No tool output found for function call %s."
    OUTPUT_UNEXPECTED = "No tool call found for function call output with call_id %s."
    # A function is answered by `function_call_output`, a custom tool by `custom_tool_call_output`. [sdk]
    OUTPUT_KIND = "No tool call found for %s"
    OUTPUT_DUPLICATE = "Duplicate item found with call_id %s."
    CALL_ID_DUPLICATE = "Duplicate function call with call_id %s."
    CALL_ID = "Invalid 'call_id': expected a string of 1 to 64 characters."  # [seen]

    # Nothing is stored (`store` is false), so an item must include its content. [docs]
    REASONING_SEALED = (
        "Item with id '%s' not found. Items are not persisted when `store` is set to false."
    )
    # The item that the reasoning led to must come next. [seen]
    REASONING_ALONE = (
        "Item '%s' of type 'reasoning' was provided without its required following item."
    )
    TRIGGER_LAST = "Invalid 'compaction_trigger': it must be the final input item."  # [sdk]
    COMPACTION_SEALED = "Missing required parameter: 'encrypted_content'."  # [sdk]

    TOOL_TYPE = "Invalid value: '%s'. Supported values are the types of the tools."
    TOOLS_ROLE = "Invalid value: '%s'. Supported values are: 'developer'."  # [sdk]
    TOOL_NAME = "Invalid 'tools.name': string does not match pattern '^[a-zA-Z0-9_-]+$', up to 64."

    FILE = "Invalid file: one of file_data, file_id or file_url must be provided."  # [sdk]
    MAX_TOKENS = "Invalid 'max_output_tokens': expected 16 to %s, found %s."  # [seen]


def _check_tool(tool: Json, place: str, findings: Findings) -> str:
    """Check one entry of `tools`; returns its name, empty if it has none."""
    kind, is_function = tool.get("type"), tool.get("type") == "function"
    if kind in ("function", "custom"):
        return check_definition(tool, place, Rule.TOOL_NAME, findings, has_schema=is_function)
    if not isinstance(kind, str) or kind not in _HOSTED:
        findings.add(Rule.TOOL_TYPE, place, kind, field="type")
    return ""


# Items.


@attrs.frozen(eq=False)
class _Item:
    """What the rules between items use of one of them."""

    place: str = ""
    kind: str = ""
    """Its type; empty if that is unknown."""
    id: str = ""
    """For a call or an output, the id of the call; for reasoning, its own."""
    by_model: bool = False
    """Whether the model made it."""


_NOTHING: Final = _Item()
_OUTPUTS: Final = frozenset(CALLS.values())


def _read_item(item: object, place: str, findings: Findings) -> _Item:
    """Check one item by itself."""
    fields = findings.object_at(item, place, CommonRule.SHAPE)
    if fields is None:
        return _Item(place)
    kind = fields.get("type", "message")
    if not isinstance(kind, str) or kind not in ITEMS:
        findings.add(Rule.UNKNOWN_ITEM, place, kind, field="type")
        return _Item(place)
    if MARK in fields:
        findings.add(CommonRule.MARK_PLACE, place, field=MARK)
    if kind in KNOWN_FIELDS:
        check_fields(fields, KNOWN_FIELDS[kind], place, findings)
    for check in ITEMS[kind]:
        check(fields, place, findings)
    identity = fields.get("id")
    if kind in CALLS or kind in _OUTPUTS:
        id_field = "id" if kind == _LOCAL_OUTPUT else "call_id"
        identity = call_id(fields, id_field, CALL_ID_LENGTH_MAX)
    by_model = fields.get("role") == "assistant" if kind == "message" else kind in _BY_MODEL
    return _Item(place, kind, string(identity), by_model)


def _message(item: Json, place: str, findings: Findings) -> None:
    role = item.get("role")
    if not isinstance(role, str) or role not in ALLOWED:
        findings.add(Rule.ROLE, place, role, field="role")
        return
    if item.get("phase") not in (None, "commentary", "final_answer"):
        findings.add(Rule.PHASE, place, item.get("phase"), field="phase")
    content: object = item.get("content")
    if isinstance(content, str):
        findings.size += len(content)
    else:
        _check_parts(content, role, place, "content", findings)


def _agent_message(item: Json, place: str, findings: Findings) -> None:
    """Check the content of a message between agents of a team, which the server may have encrypted."""
    content: object = item.get("content")
    parts = items(content)
    readable = [part for part in parts if obj(part).get("type") != "encrypted_content"]
    if readable or not parts:
        _check_parts(readable or content, "user", place, "content", findings)


def _check_parts(content: object, role: str, place: str, name: str, findings: Findings) -> None:
    """Check the parts that a message of this role has in the field `name`."""
    if not isinstance(content, list):
        findings.add(CommonRule.SHAPE, place, "a string or an array", field=name)
        return
    if not content:
        findings.add(Rule.CONTENT_EMPTY, place, name, field=name)
    for part, at in findings.objects_in(
        cast("object", content), f"{place}.{name}", CommonRule.SHAPE
    ):
        kind = string(part.get("type"))
        check_mark(part, at, findings, is_allowed=role != "assistant")
        if kind in ALLOWED[role]:
            if kind in KNOWN_FIELDS:
                check_fields(part, KNOWN_FIELDS[kind], at, findings)
            PARTS[kind](part, at, findings)
        else:
            findings.add(CommonRule.UNKNOWN_PART, at, kind, field="type")


def _text(part: Json, place: str, findings: Findings) -> None:
    name = "refusal" if part["type"] == "refusal" else "text"
    findings.size += len(string(part.get(name)))
    if not isinstance(part.get(name), str):
        findings.add(CommonRule.SHAPE, place, "a string", field="text")


def _image(part: Json, place: str, findings: Findings) -> None:
    check_image(part, part.get("image_url"), place, findings)


def _file(part: Json, place: str, findings: Findings) -> None:
    check_file(part, place, Rule.FILE, findings)


def _call(item: Json, place: str, findings: Findings) -> None:
    check_call(item, place, findings, is_free=item["type"] == "custom_tool_call")


def _output(item: Json, place: str, findings: Findings) -> None:
    output: object = item.get("output")
    if isinstance(output, str):
        findings.size += len(output)
    else:
        _check_parts(output, "user", place, "output", findings)


def _reasoning(item: Json, place: str, findings: Findings) -> None:
    if not is_filled(item.get("encrypted_content")):
        findings.add(Rule.REASONING_SEALED, place, item.get("id"))
    if not isinstance(item.get("summary"), list):
        findings.add(CommonRule.SHAPE, place, "an array", field="summary")


def _more_tools(item: Json, place: str, findings: Findings) -> None:
    """Check an item that offers more tools from here on."""
    if item.get("role") != "developer":
        findings.add(Rule.TOOLS_ROLE, place, item.get("role"), field="role")
    tools: object = item.get("tools")
    if not isinstance(tools, list):
        findings.add(CommonRule.SHAPE, place, "an array", field="tools")
        return
    for tool, at in findings.objects_in(cast("object", tools), f"{place}.tools", CommonRule.SHAPE):
        _check_tool(tool, at, findings)


_call_has_id: Final = field(
    "call_id", lambda value: is_filled(value) and len(value) <= CALL_ID_LENGTH_MAX, Rule.CALL_ID
)


def _has_object(name: str) -> Check:
    return field(name, dict, CommonRule.SHAPE, "an object")


_LOCAL_OUTPUT: Final = "local_shell_call_output"
"""The result that has the id of its call in another field."""
ITEMS: Final[Checks] = {
    **dict.fromkeys(REPLAYED | EXTRA, ()),
    **dict.fromkeys(CALLS, (_call_has_id, _call)),
    **dict.fromkeys(_OUTPUTS, (_call_has_id, _output)),
    **dict.fromkeys(RUN, (_call_has_id,)),
    "apply_patch_call": (_call_has_id, _has_object("operation")),
    "apply_patch_call_output": (_call_has_id, field("status", str, CommonRule.SHAPE, "a string")),
    "computer_call_output": (_call_has_id, _has_object("output")),
    "local_shell_call": (_call_has_id, _has_object("action")),
    _LOCAL_OUTPUT: (field("output", str, CommonRule.SHAPE, "a string"),),
    "shell_call": (_call_has_id, _has_object("action")),
    "shell_call_output": (_call_has_id, field("output", list, CommonRule.SHAPE, "an array")),
    "additional_tools": (_more_tools,),
    "agent_message": (
        field("author", str, CommonRule.SHAPE, "a string"),
        field("recipient", str, CommonRule.SHAPE, "a string"),
        _agent_message,
    ),
    "compaction": (field("encrypted_content", str, Rule.COMPACTION_SEALED, label=""),),
    "compaction_trigger": (),
    "message": (_message,),
    "reasoning": (_reasoning,),
}
"""What each kind of item must have."""
_BY_MODEL: Final = frozenset({*REPLAYED, *CALLS, "compaction", "reasoning"})
PARTS: Final[Mapping[str, Check]] = {
    "input_text": _text,
    "input_image": _image,
    "input_file": _file,
    "output_text": _text,
    "refusal": _text,
}
"""What each kind of part must have."""
_INPUT_PARTS: Final = ("input_text", "input_image", "input_file")
TURN: Final = "internal_chat_message_metadata_passthrough"  # of Codex, to OpenAI's servers alone
KNOWN_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(names.split())
    for kind, names in {
        "message": f"content id phase role status type {TURN}",
        "function_call": f"arguments async call_id caller id name namespace status type {TURN}",
        "function_call_output": f"call_id caller id name namespace output status type {TURN}",
        "input_text": "text type",
        "input_image": "detail file_id image_url type",
        "input_file": "detail file_data file_id file_url filename type",
    }.items()
}
"""The fields of common items and parts, by the SDK and Codex. What the server made is sent back as it came, unchecked."""
ALLOWED: Final[Mapping[str, Sequence[str]]] = {
    "assistant": ("output_text", "refusal"),
    "developer": _INPUT_PARTS,
    "system": _INPUT_PARTS,
    "user": _INPUT_PARTS,
}
"""The parts that a message may have, by its role."""
_HOSTED: Final = frozenset(
    [
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "local_shell",
        "mcp",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    ]
)
"""Tools that the server runs or defines. [sdk]"""


# Rules between items.


def _check_pairs(entries: Sequence[_Item], findings: Findings) -> None:
    """Check that each call has one output of its kind, anywhere after it."""
    waiting: dict[str, _Item] = {}
    answered: set[str] = set()
    for item in entries:
        if not item.id:
            continue
        if item.kind in CALLS:
            if item.id in waiting or item.id in answered:
                findings.add(Rule.CALL_ID_DUPLICATE, item.place, item.id)
            waiting[item.id] = item
        elif item.kind in _OUTPUTS:
            call = waiting.pop(item.id, None)
            if call is None:
                is_second = item.id in answered
                rule = Rule.OUTPUT_DUPLICATE if is_second else Rule.OUTPUT_UNEXPECTED
                findings.add(rule, item.place, item.id)
            elif CALLS[call.kind] != item.kind:
                findings.add(Rule.OUTPUT_KIND, item.place, item.kind)
            answered.add(item.id)
    for call in waiting.values():
        findings.add(Rule.CALL_UNANSWERED, call.place, call.id)


def _check_neighbours(entries: Sequence[_Item], findings: Findings) -> None:
    for item, after in pairwise([*entries, _NOTHING]):
        if item.kind == "reasoning" and not after.by_model:
            findings.add(Rule.REASONING_ALONE, item.place, item.id)
    for item in entries[:-1]:
        if item.kind == "compaction_trigger":
            findings.add(Rule.TRIGGER_LAST, item.place)


def _check_output(tokens_max: Any, model: Model | None, findings: Findings) -> None:
    if tokens_max is None:
        return
    if not is_number(tokens_max):
        findings.add(CommonRule.SHAPE, "max_output_tokens", "an integer")
    elif tokens_max < OUTPUT_TOKENS_MIN or (model and tokens_max > model.output_tokens_max):
        limit = model.output_tokens_max if model else "the model's maximum"
        findings.add(Rule.MAX_TOKENS, "max_output_tokens", limit, tokens_max)
