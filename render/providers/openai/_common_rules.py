"""The rules that both of OpenAI's APIs have, of tools, calls, files, cache marks and limits."""

from enum import Enum, unique
from typing import Final

from blocks import is_web_url
from blocks.formats import obj, string
from render.policy._context import Model
from render.providers._encoding import is_base64, is_object
from render.providers._rules import (
    Findings,
    Json,
    matches,
)
from render.providers.openai._constants import IMAGE_MEDIA_TYPES, MARK, NAME, PICTURES_MAX

REQUEST_BYTES_MAX: Final = 50 * 1024 * 1024
CACHE_KEY_LENGTH_MAX: Final = 64
_is_name: Final = matches(NAME)


@unique
class CommonRule(Enum):
    """Rules with the same text in both APIs, each with its reason, its source and its error text.

    Sources: [docs] the provider's guides of November 2026; [sdk] the types of the `openai` package, 3.54; [seen] an
    error text that users quoted in public; [servers] refused by vLLM, llama.cpp or the templates of open models, though
    not by OpenAI.
    """

    # Checked only where a later rule depends on the shape; this is not a type checker. [sdk]
    SHAPE = "Invalid type: expected %s"
    EXTRA_FIELD = (
        "Unknown parameter: '%s'."  # of a message, a call, an output or a part [sdk, seen]
    )
    UNKNOWN_PART = "Invalid value: '%s'. Supported values are the types of the content parts."

    CALL_NAME = (
        "Invalid 'name': string does not match pattern '^[a-zA-Z0-9_-]+$', up to 64."  # [seen]
    )
    # OpenAI accepts any text; compatible servers parse it, and fail if it is not an object. [servers]
    ARGUMENTS = "Invalid 'arguments': expected a JSON object as a string."
    TOOL_NAME_DUPLICATE = "Duplicate tool name: '%s'."
    TOOL_SCHEMA = (
        "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'."
    )

    # Cache marks. They are allowed only on what the user, an operator or a tool says, not on the model's own content,
    # tools or `instructions`. More than four are accepted; the latest four are written. [docs]

    MARK_PLACE = "Unknown parameter: 'prompt_cache_breakpoint'."
    MARK_FORM = "Invalid 'prompt_cache_breakpoint': expected {'mode': 'explicit'}, with a ttl of '30m' or '12h'."
    # Models before GPT-5.6 and other servers support neither marks nor options. [docs, seen]
    MARK_MODEL = "prompt_cache_breakpoint is not supported with this model."
    CACHE_OPTIONS = "Invalid 'prompt_cache_options': mode is 'implicit' or 'explicit'."
    CACHE_KEY = (
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64."
    )

    IMAGES_MAX = "too many images in the request: %s > %s"  # [docs]
    URL = "Invalid 'image_url': expected an http(s) url, or a data url with base64."  # [seen]
    MEDIA_TYPE = (
        "You uploaded an unsupported image. Please make sure your image is one of: %s."  # [seen]
    )
    BASE64 = "Invalid base64 data."
    REQUEST_BYTES = "Request exceeds the maximum size: %s > 52428800"  # [docs]


def check_limits(request: Json, place: str, model: Model | None, findings: Findings) -> None:
    """Check cache options, and the number of images, at `place`, and the size in bytes."""
    options: object = request.get("prompt_cache_options")
    has_marks = model is None or model.cache_kind == "marks"
    if findings.marks and not has_marks:
        first, _ = findings.marks[0]
        findings.add(CommonRule.MARK_MODEL, ".".join(first.split(".")[:2]))
    if options is not None:
        if obj(options).get("mode", "implicit") not in ("implicit", "explicit"):
            findings.add(CommonRule.CACHE_OPTIONS, "prompt_cache_options")
        if not has_marks:
            findings.add(CommonRule.MARK_MODEL, "prompt_cache_options")
    key: object = request.get("prompt_cache_key")
    if not isinstance(key, str | None):
        findings.add(CommonRule.SHAPE, "prompt_cache_key", "a string")
    elif len(key or "") > CACHE_KEY_LENGTH_MAX:
        findings.add(CommonRule.CACHE_KEY, "prompt_cache_key")
    if findings.images > PICTURES_MAX:
        findings.add(CommonRule.IMAGES_MAX, place, findings.images, PICTURES_MAX)
    if findings.size > REQUEST_BYTES_MAX:
        findings.add(CommonRule.REQUEST_BYTES, "request", findings.size)


def check_definition(
    tool: Json, place: str, rule: Enum, findings: Findings, *, has_schema: bool = True
) -> str:
    """Check a tool's definition; returns its name, empty if it has none. `rule` says how a name is written."""
    name, schema = tool.get("name"), tool.get("parameters")
    if not _is_name(name):
        findings.add(rule, place)
    if has_schema and schema is not None and obj(schema).get("type") != "object":
        findings.add(CommonRule.TOOL_SCHEMA, place, string(name), field="parameters")
    return string(name)


def check_call(call: Json, place: str, findings: Findings, *, is_free: bool) -> None:
    """Check the name of a call and its input: if it is free, any text in `input`, else a JSON object as text in
    `arguments`."""
    if not _is_name(call.get("name")):
        findings.add(CommonRule.CALL_NAME, place, field="name")
    text: object = call.get("input" if is_free else "arguments")
    findings.size += len(string(text))
    if not isinstance(text, str) or not (is_free or is_object(text)):
        findings.add(CommonRule.ARGUMENTS, place, field="arguments")


def check_fields(fields: Json, allowed: frozenset[str], place: str, findings: Findings) -> None:
    """Check that an object has no other fields than these; marks are checked by `check_mark`."""
    for name in sorted(fields.keys() - allowed - {MARK}):
        findings.add(CommonRule.EXTRA_FIELD, place, name, field=name)


def check_mark(part: Json, place: str, findings: Findings, *, is_allowed: bool) -> None:
    """Check the cache mark on a part, if it has one."""
    if MARK not in part:
        return
    mark = obj(part[MARK])
    findings.marks.append((place, str(mark.get("ttl"))))
    if mark.get("mode") != "explicit" or mark.get("ttl") not in (None, "30m", "12h"):
        findings.add(CommonRule.MARK_FORM, place, field=MARK)
    if not is_allowed:
        findings.add(CommonRule.MARK_PLACE, place, field=MARK)


def check_image(part: Json, url: object, place: str, findings: Findings) -> None:
    """Check an image: an uploaded file, a URL, or a `data:` URL."""
    findings.images += 1
    if string(url).startswith("data:"):
        media_type = _check_data(string(url), place, findings)
        if media_type not in IMAGE_MEDIA_TYPES:
            kinds = ", ".join(IMAGE_MEDIA_TYPES)
            findings.add(CommonRule.MEDIA_TYPE, place, kinds, field="image_url")
    elif not is_web_url(string(url)) and not part.get("file_id"):
        findings.add(CommonRule.URL, place, field="image_url")


def check_file(part: Json, place: str, rule: Enum, findings: Findings) -> None:
    """Check a file: an uploaded file, a URL, or a `data:` URL. `rule` says which fields it must have."""
    findings.images += 1
    data: object = part.get("file_data")
    if isinstance(data, str):
        _check_data(data, place, findings)
        if not isinstance(part.get("filename"), str):
            findings.add(rule, place, field="filename")
    elif not part.get("file_id") and not is_web_url(str(part.get("file_url", ""))):
        findings.add(rule, place)


def _check_data(url: str, place: str, findings: Findings) -> str:
    """Check a `data:` URL; returns its media type."""
    findings.size += len(url)
    head, comma, data = url.partition(";base64,")
    if not (comma and is_base64(data)):
        findings.add(CommonRule.BASE64, place)
    return head.removeprefix("data:")


def call_id(thing: Json, name: str, length_max: int) -> str:
    """The id of a call in the field `name`; empty if it is not valid."""
    value = string(thing.get(name))
    return value if len(value) <= length_max else ""
