"""Rules for contents: one function for each kind of part."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import is_web_url
from render.providers._facts import PartFacts, fields, scanned
from render.providers.gemini._kinds import DATA, IMAGE_MEDIA_TYPES, NAME, SIGNATURE
from render.providers.gemini.validator._rules import Rule

Json: TypeAlias = Mapping[str, Any]

_ROLES: Final = frozenset({"user", "model"})
_OF_MODEL: Final = frozenset(
    {"functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}
)
_NAME: Final = re.compile(NAME)
_URLSAFE: Final = str.maketrans("-_", "+/")
_READ: Final = ("application/", "audio/", "text/", "video/")
_STORES: Final = ("gs://",)


@attrs.frozen
class Asked:
    """One call, or one response to a call."""

    id: str
    name: str
    signed: bool = False


@attrs.define(eq=False)
class ContentFacts(PartFacts):
    """Facts about one content."""

    role: str = ""
    """Empty if the role is unknown."""
    calls: tuple[Asked, ...] = ()
    responses: tuple[Asked, ...] = ()
    speaks: bool = False
    """Whether a user content has parts other than responses."""
    images: int = 0
    size: int = 0
    """Characters of text and attachments; never more than the bytes that are sent."""
    noted: bool = True
    """Whether a check of the whole request must look at this content by itself."""


def content_facts(content: object) -> ContentFacts:
    """Check one content by itself."""
    return scanned(ContentFacts(source=content), Rule.SHAPE, _scan_content)


def _scan_content(content: Json, facts: ContentFacts) -> None:
    role: object = content.get("role", "user")
    if not isinstance(role, str) or role not in _ROLES:
        facts.fault(Rule.ROLE, "", field="role")
        return
    facts.role = role
    parts: object = content.get("parts")
    if not isinstance(parts, list):
        facts.fault(Rule.SHAPE, "", "an array", field="parts")
    elif not parts:
        facts.fault(Rule.PARTS_EMPTY, "", field="parts")
    else:
        for index, part in enumerate(cast("Sequence[object]", parts)):
            _scan_part(part, f"parts.{index}", facts)
    facts.noted = bool(facts.faults or facts.images)


def _scan_part(part: object, at: str, facts: ContentFacts) -> None:
    if not isinstance(part, dict):
        facts.fault(Rule.SHAPE, at, "an object")
        return
    known = cast("Json", part)
    kinds = [name for name in DATA if name in known]
    if len(kinds) != 1:
        facts.fault(Rule.PART_DATA, at)
        return
    kind = kinds[0]
    if SIGNATURE in known and not _is_bytes(known[SIGNATURE]):
        facts.fault(Rule.SIGNATURE_FORM, at, field=SIGNATURE)
    wrong = _OF_MODEL if facts.role == "user" else {"functionResponse"}
    if kind in wrong:
        facts.fault(Rule.PART_ROLE, at, kind, facts.role)
        return
    facts.speaks = facts.speaks or kind != "functionResponse"
    if (rule := _PART_RULES.get(kind)) is not None:
        rule(known, at, facts)


def _scan_text(part: Json, at: str, facts: ContentFacts) -> None:
    text: object = part["text"]
    if not isinstance(text, str):
        facts.fault(Rule.SHAPE, at, "a string", field="text")
    elif not text and SIGNATURE not in part:
        facts.fault(Rule.TEXT_EMPTY, at)
    else:
        facts.size += len(text)


def _scan_call(part: Json, at: str, facts: ContentFacts) -> None:
    call = fields(part["functionCall"])
    if not isinstance(call.get("args", {}), dict):
        facts.fault(Rule.CALL_ARGS, at, field="args")
    asked = attrs.evolve(_asked(call, at, facts), signed=SIGNATURE in part)
    facts.calls = (*facts.calls, asked)


def _scan_response(part: Json, at: str, facts: ContentFacts) -> None:
    returned = fields(part["functionResponse"])
    response: object = returned.get("response")
    if isinstance(response, dict):
        values = cast("Json", response).values()
        facts.size += sum(len(value) for value in values if isinstance(value, str))
    else:
        facts.fault(Rule.RESPONSE_FORM, at, field="response")
    facts.responses = (*facts.responses, _asked(returned, at, facts))


def _asked(call: Json, at: str, facts: ContentFacts) -> Asked:
    name, own = call.get("name"), call.get("id")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        facts.fault(Rule.CALL_NAME, at, field="name")
    if own is not None and not isinstance(own, str):
        facts.fault(Rule.SHAPE, at, "a string", field="id")
    return Asked(own if isinstance(own, str) else "", name if isinstance(name, str) else "")


def _scan_inline(part: Json, at: str, facts: ContentFacts) -> None:
    facts.images += 1
    inner = fields(part["inlineData"])
    _scan_media_type(inner.get("mimeType"), at, facts)
    data: object = inner.get("data")
    if not isinstance(data, str) or not data or not _is_bytes(data):
        facts.fault(Rule.BASE64, at)
    else:
        facts.size += len(data)


def _scan_file(part: Json, at: str, facts: ContentFacts) -> None:
    facts.images += 1
    inner = fields(part["fileData"])
    url: object = inner.get("fileUri")
    if not isinstance(url, str) or not (is_web_url(url) or url.startswith(_STORES)):
        facts.fault(Rule.URL, at, url)
    if "mimeType" in inner:
        _scan_media_type(inner["mimeType"], at, facts)


def _scan_media_type(found: object, at: str, facts: ContentFacts) -> None:
    known = isinstance(found, str) and (found in IMAGE_MEDIA_TYPES or found.startswith(_READ))
    if not known:
        facts.fault(Rule.MEDIA_TYPE, at, found)


def _is_bytes(found: object) -> bool:
    """Whether the value is base64 in either alphabet; padding may be missing."""
    if not isinstance(found, str):
        return False
    plain = found.translate(_URLSAFE).rstrip("=")
    try:
        b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (Error, ValueError):
        return False
    return True


_PART_RULES: Final[Mapping[str, Callable[[Json, str, ContentFacts], None]]] = {
    "text": _scan_text,
    "functionCall": _scan_call,
    "functionResponse": _scan_response,
    "inlineData": _scan_inline,
    "fileData": _scan_file,
}
