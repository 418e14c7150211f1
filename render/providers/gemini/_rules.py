"""The rules of the Gemini API, and the check of a request against them; the input may be any data.

`PARTS` says what each kind of part must have, `ALLOWED` which content may hold it. The rules between contents use only
the role, the calls and the responses of each (`_Content`).

A request is what the client is called with: `contents` and `config`, with the field names of the REST API.
"""

import re
from base64 import b64decode
from binascii import Error
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum, unique
from itertools import pairwise
from typing import Any, Final, cast

import attrs

from blocks import is_web_url
from blocks.formats import obj, string
from render.policy._context import Model, Violation
from render.providers._rules import (
    Check,
    Findings,
    Json,
    check_names,
    is_number,
    matches,
    placed,
)
from render.providers.gemini._constants import (
    DATA,
    IMAGE_MEDIA_TYPES,
    NAME,
    PICTURES_MAX,
    SIGNATURE,
)

REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
_UNSIGNED: Final = re.compile(r"(?:models/)?gemini-[12]\b")
"""Models that accept calls without a signature."""


def check_request(request: Mapping[str, Any], model: Model | None = None) -> tuple[Violation, ...]:
    """Every reason why the provider would refuse `request`; never raises, whatever it is.

    Without a model, the strictest rules apply.
    """
    findings = Findings()
    if not _is_readable(request, findings):
        return tuple(findings.violations)
    config = obj(request.get("config"))
    tools = findings.objects_in(config.get("tools"), "tools", Rule.SHAPE)
    names = [(at, name) for tool, at in tools for name in _check_tool(tool, at, findings)]
    listed = placed(request.get("contents"), "contents")
    contents = [_read_content(content, place, findings) for content, place in listed]
    check_names(names, Rule.TOOL_NAME_DUPLICATE, findings)
    _check_ends(contents, findings)
    for before, after in pairwise([_NOTHING, *contents]):
        _check_answers(before, after, findings)
    if model is None or not _UNSIGNED.match(model.name):
        _check_signatures(contents, findings)
    _check_limits(config.get("maxOutputTokens"), model, findings)
    return tuple(findings.violations)


def refusal_of(part: object) -> str:
    """Why a part of a user's message would be refused; empty: it is valid, or only has fields that are not known here."""
    findings = Findings()
    _check_part(part, "user", "", findings)
    return findings.refusal


@unique
class Rule(Enum):
    """One rule per member, with its reason, its source and its error text.

    Sources: [docs] the provider's guides of October 2026; [sdk] the types of the `google-genai` package, 3.4;
    [seen] an error text that users quoted in public.
    """

    # Checked only where a later rule depends on the shape; this is not a type checker. [sdk]
    SHAPE = "Invalid value: expected %s"
    EXTRA_FIELD = 'Invalid JSON payload received. Unknown name "%s": Cannot find field.'  # [seen]
    NO_CONTENTS = "GenerateContentRequest.contents: contents is not specified"  # [seen]
    ROLE = "Please use a valid role: user, model."  # [seen]
    PARTS_EMPTY = "GenerateContentRequest.contents: contents.parts must not be empty."  # [seen]
    # A part has one field with data: a text, a call, a response, a file, ... [sdk, seen]
    PART_DATA = "GenerateContentRequest.contents.parts: required oneof field 'data' must have one initialized field"
    # Empty text is valid if the part has a signature. [docs]
    TEXT_EMPTY = "Unable to submit request because it must have a text parameter."
    # Only the model may call; only the user may respond. [seen]
    PART_ROLE = "Part of type '%s' is not allowed in a content of role '%s'."
    # A conversation begins and ends with the user. [seen]
    FIRST_ROLE = "Please ensure that multiturn requests start with a user role."
    LAST_ROLE = "Please ensure that multiturn requests end with a user role or a function response."

    CALL_PLACE = (
        "Please ensure that function call turn comes immediately after a user turn or after a "
        "function response turn."
    )
    # As many responses as calls, in the very next content. [seen]
    CALL_UNANSWERED = (
        "Please ensure that the number of function response parts is equal to the number of "
        "function call parts of the function call turn."
    )
    RESPONSE_UNEXPECTED = (
        "Please ensure that function response turn comes immediately after a function call turn."
    )
    # A response is matched by its id, if it has one, and repeats the name. [docs]
    RESPONSE_ID = "Function response with id '%s' answers no function call."
    RESPONSE_NAME = "Function response name '%s' does not match the function call."
    CALL_NAME = (
        "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric, "
        "underscores, dots, colons or dashes, with a maximum length of 64."
    )
    CALL_ARGS = "Invalid value at 'args' (type.googleapis.com/google.protobuf.Struct)"
    RESPONSE_FORM = "Invalid value at 'response' (type.googleapis.com/google.protobuf.Struct)"
    # Since Gemini 3, required for the first call of each step of the current turn. [docs, seen]
    SIGNATURE_MISSING = (
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly, and missing thought_signature may lead to degraded model "
        "performance. Additional data, function call `%s`, position %s."
    )
    SIGNATURE_FORM = "Invalid value at 'thought_signature' (TYPE_BYTES), Base64 decoding failed"

    TOOL_NAME = (
        "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric "
        "(a-z, A-Z, 0-9), underscores, dots, colons or dashes, with a maximum length of 64."
    )
    TOOL_NAME_DUPLICATE = "Duplicate function declaration found: %s"  # [seen]
    # Only one of the two fields, and of type object. [sdk]
    TOOL_SCHEMA = (
        "Invalid function declaration '%s': parameters schema should be of type OBJECT, given once."
    )

    IMAGES_MAX = "too many images in the request: %s > %s"  # [docs]
    MEDIA_TYPE = "Unsupported MIME type: %s"  # [seen]
    BASE64 = "Invalid value at 'inline_data.data' (TYPE_BYTES), Base64 decoding failed"  # [seen]
    URL = "Unsupported file uri: %s"  # [seen]
    REQUEST_BYTES = "Request payload size exceeds the limit: %s > 104857600 bytes."  # [docs]
    MAX_TOKENS = (
        "Unable to submit request because it has a maxOutputTokens value of %s but the supported "
        "range is from 1 (inclusive) to %s (inclusive)."  # [seen]
    )


def _is_readable(request: object, findings: Findings) -> bool:
    """Check the shapes without which the server cannot read the request."""
    if not isinstance(request, Mapping):
        findings.add(Rule.SHAPE, "request", "an object")
        return False
    fields = cast("Json", request)
    if not isinstance(fields.get("contents", []), list | tuple):
        findings.add(Rule.SHAPE, "contents", "an array")
    config = findings.object_at(fields.get("config", {}), "config", Rule.SHAPE)
    if config is None:
        return False
    if not isinstance(config.get("tools", []), list | tuple):
        findings.add(Rule.SHAPE, "tools", "an array")
    parts: object = obj(config.get("systemInstruction", {"parts": []})).get("parts")
    for part, place in placed(parts, "systemInstruction.parts"):
        if not isinstance(obj(part).get("text"), str):
            findings.add(Rule.SHAPE, place, "a text")
    if not isinstance(parts, list | tuple):
        findings.add(Rule.SHAPE, "systemInstruction", "a content with parts")
    return not findings.violations


# Tools.

_is_name: Final = matches(NAME)


def _check_tool(tool: Json, place: str, findings: Findings) -> list[str]:
    """Check an entry of `tools`; returns its functions' names. Tools that the provider runs itself have no rules."""
    functions: object = tool.get("functionDeclarations", [])
    if not isinstance(functions, list):
        findings.add(Rule.SHAPE, place, "an array", field="functionDeclarations")
        return []
    names: list[str] = []
    for declaration, at in placed(cast("object", functions), f"{place}.functionDeclarations"):
        function = obj(declaration)
        name: object = function.get("name")
        if _is_name(name):
            names.append(string(name))
        else:
            findings.add(Rule.TOOL_NAME, at, field="name")
        schemas = [function[s] for s in ("parameters", "parametersJsonSchema") if s in function]
        kinds = [str(obj(schema).get("type")).lower() for schema in schemas]
        if len(schemas) > 1 or any(kind != "object" for kind in kinds):
            findings.add(Rule.TOOL_SCHEMA, at, name)
    return names


# Contents and their parts.


@attrs.frozen
class _CallPart:
    """One call, or one response to a call."""

    id: str
    name: str
    is_signed: bool = False

    @classmethod
    def of(cls, part: Json, kind: str) -> "_CallPart":
        """The call or response in a part."""
        call = obj(part[kind])
        return cls(string(call.get("id")), string(call.get("name")), SIGNATURE in part)


@attrs.frozen(eq=False)
class _Content:
    """What the rules between contents use of one of them."""

    place: str
    role: str = ""
    """Empty if it is unknown."""
    calls: Sequence[_CallPart] = ()
    responses: Sequence[_CallPart] = ()
    speaks: bool = False
    """Whether it has parts other than responses."""


_NOTHING: Final = _Content("")


def _read_content(content: object, place: str, findings: Findings) -> _Content:
    """Check one content by itself."""
    fields = findings.object_at(content, place, Rule.SHAPE)
    if fields is None:
        return _Content(place)
    _check_fields(fields, "content", place, findings)
    role = fields.get("role", "user")
    if not isinstance(role, str) or role not in ALLOWED:
        findings.add(Rule.ROLE, place, field="role")
        return _Content(place)
    parts: object = fields.get("parts")
    if not isinstance(parts, list):
        findings.add(Rule.SHAPE, place, "an array", field="parts")
    elif not parts:
        findings.add(Rule.PARTS_EMPTY, place, field="parts")
    listed = placed(cast("object", parts), f"{place}.parts")
    kinds = [(_check_part(part, role, at, findings), obj(part)) for part, at in listed]
    return _Content(
        place=place,
        role=role,
        calls=[_CallPart.of(part, kind) for kind, part in kinds if kind == "functionCall"],
        responses=[_CallPart.of(part, kind) for kind, part in kinds if kind == "functionResponse"],
        speaks=any(kind not in ("", "functionResponse") for kind, _ in kinds),
    )


def _check_part(part: object, role: str, place: str, findings: Findings) -> str:
    """Check one part; returns its kind, "" if it has none or may not be there."""
    fields = findings.object_at(part, place, Rule.SHAPE)
    if fields is None:
        return ""
    kinds = [name for name in DATA if name in fields]
    if len(kinds) != 1:
        findings.add(Rule.PART_DATA, place)
        return ""
    (kind,) = kinds
    _check_fields(fields, "part", place, findings)
    _check_fields(obj(fields[kind]), kind, place, findings)
    if SIGNATURE in fields and not _is_bytes(fields[SIGNATURE]):
        findings.add(Rule.SIGNATURE_FORM, place, field=SIGNATURE)
    if kind not in ALLOWED[role]:
        findings.add(Rule.PART_ROLE, place, kind, role)
        return ""
    if check := PARTS.get(kind):
        check(fields, place, findings)
    return kind


def _check_fields(fields: Json, kind: str, place: str, findings: Findings) -> None:
    """Check that an object has no fields that the API does not know."""
    for name in sorted(fields.keys() - KNOWN_FIELDS[kind]) if kind in KNOWN_FIELDS else ():
        findings.add(Rule.EXTRA_FIELD, place, name, field=name)


def _text(part: Json, place: str, findings: Findings) -> None:
    text: object = part["text"]
    if not isinstance(text, str):
        findings.add(Rule.SHAPE, place, "a string", field="text")
    elif not text and SIGNATURE not in part:
        findings.add(Rule.TEXT_EMPTY, place)
    else:
        findings.size += len(text)


def _call(part: Json, place: str, findings: Findings) -> None:
    call = obj(part["functionCall"])
    if not isinstance(call.get("args", {}), dict):
        findings.add(Rule.CALL_ARGS, place, field="args")
    _check_name(call, place, findings)


def _response(part: Json, place: str, findings: Findings) -> None:
    returned = obj(part["functionResponse"])
    response: object = returned.get("response")
    if isinstance(response, dict):
        findings.size += sum(len(string(value)) for value in cast("Json", response).values())
    else:
        findings.add(Rule.RESPONSE_FORM, place, field="response")
    _check_name(returned, place, findings)


def _check_name(call: Json, place: str, findings: Findings) -> None:
    if not _is_name(call.get("name")):
        findings.add(Rule.CALL_NAME, place, field="name")
    if not isinstance(call.get("id"), str | None):
        findings.add(Rule.SHAPE, place, "a string", field="id")


def _inline(part: Json, place: str, findings: Findings) -> None:
    findings.images += 1
    inner = obj(part["inlineData"])
    _check_media_type(inner.get("mimeType"), place, findings)
    data = string(inner.get("data"))
    if not data or not _is_bytes(data):
        findings.add(Rule.BASE64, place)
    else:
        findings.size += len(data)


def _file(part: Json, place: str, findings: Findings) -> None:
    findings.images += 1
    inner = obj(part["fileData"])
    url: object = inner.get("fileUri")
    if not isinstance(url, str) or not (is_web_url(url) or url.startswith("gs://")):
        findings.add(Rule.URL, place, url)
    if "mimeType" in inner:
        _check_media_type(inner["mimeType"], place, findings)


def _check_media_type(kind: object, place: str, findings: Findings) -> None:
    readable = ("application/", "audio/", "text/", "video/")
    if kind not in IMAGE_MEDIA_TYPES and not string(kind).startswith(readable):
        findings.add(Rule.MEDIA_TYPE, place, kind)


def _is_bytes(value: object) -> bool:
    """Whether the value is base64 in either alphabet; padding may be missing."""
    if not isinstance(value, str):
        return False
    plain = value.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (Error, ValueError):
        return False
    return True


PARTS: Final[Mapping[str, Check]] = {
    "text": _text,
    "functionCall": _call,
    "functionResponse": _response,
    "inlineData": _inline,
    "fileData": _file,
}
"""What each kind of part must have; the others have no rules here."""
KNOWN_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "content": frozenset({"parts", "role"}),
    "part": frozenset(
        {*DATA, SIGNATURE, "mediaResolution", "partMetadata", "thought", "videoMetadata"}
    ),
    "functionCall": frozenset({"args", "id", "name", "partialArgs", "willContinue"}),
    "functionResponse": frozenset(
        {"id", "name", "parts", "response", "scheduling", "willContinue"}
    ),
}
"""The fields of contents, parts, calls and responses. [sdk]"""
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "user": frozenset({"text", "functionResponse", "inlineData", "fileData"}),
    "model": frozenset(DATA) - {"functionResponse"},
}
"""The parts that a content may have, by its role."""


# Rules between contents.


def _check_ends(contents: Sequence[_Content], findings: Findings) -> None:
    if not contents:
        findings.add(Rule.NO_CONTENTS, "contents")
        return
    if contents[0].role == "model":
        findings.add(Rule.FIRST_ROLE, contents[0].place)
    if contents[-1].role == "model":
        findings.add(Rule.LAST_ROLE, contents[-1].place)


def _check_answers(before: _Content, after: _Content, findings: Findings) -> None:
    """Check that calls follow a user content, and that the next content has their responses."""
    if after.calls and before.role == "model":
        findings.add(Rule.CALL_PLACE, after.place)
    if after.responses and not before.calls:
        findings.add(Rule.RESPONSE_UNEXPECTED, after.place)
        return
    if len(after.responses) != len(before.calls):
        findings.add(Rule.CALL_UNANSWERED, before.place)
        return
    unanswered = Counter(call.id for call in before.calls)
    names = {call.id: call.name for call in before.calls}
    for response in after.responses:
        if not response.id:  # matched by position instead
            continue
        unanswered[response.id] -= 1
        if unanswered[response.id] < 0:
            findings.add(Rule.RESPONSE_ID, after.place, response.id)
        elif names[response.id] != response.name:
            findings.add(Rule.RESPONSE_NAME, after.place, response.name)


def _check_signatures(contents: Sequence[_Content], findings: Findings) -> None:
    """Check the signatures of the current turn, which begins with the user's last text."""
    begin = 0
    for n, content in enumerate(contents):
        if content.role == "user" and content.speaks and not content.responses:
            begin = n
    for n, content in enumerate(contents[begin:], start=begin + 1):
        if content.calls and not content.calls[0].is_signed:
            findings.add(Rule.SIGNATURE_MISSING, content.place, content.calls[0].name, n)


# Rules for the whole request.


def _check_limits(tokens_max: Any, model: Model | None, findings: Findings) -> None:
    if findings.images > PICTURES_MAX:
        findings.add(Rule.IMAGES_MAX, "contents", findings.images, PICTURES_MAX)
    if findings.size > REQUEST_BYTES_MAX:
        findings.add(Rule.REQUEST_BYTES, "request", findings.size)
    if tokens_max is None:
        return
    if not is_number(tokens_max):
        findings.add(Rule.SHAPE, "maxOutputTokens", "an integer")
    elif tokens_max < 1 or (model is not None and tokens_max > model.output_tokens_max):
        most = model.output_tokens_max if model else "the model's maximum"
        findings.add(Rule.MAX_TOKENS, "maxOutputTokens", tokens_max, most)
