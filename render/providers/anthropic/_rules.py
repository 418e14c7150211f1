"""The rules of the Messages API, and the check of a request against them; the input may be any data.

`BLOCKS` says what each kind of block must have, `ALLOWED` which message may hold it. The rules between messages use
only the role, and the kinds and ids of the blocks (`_Extract`), of messages that are joined as the server joins them.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, unique
from itertools import dropwhile, groupby, pairwise
from typing import Any, Final, cast

import attrs

from blocks import is_web_url
from blocks.formats import obj, string
from render.policy._context import Model, Violation
from render.providers._rules import (
    LISTS,
    Checks,
    Findings,
    Json,
    Shapes,
    check_names,
    field,
    is_filled,
    is_number,
    is_readable,
    joined,
    matches,
    placed,
    text,
)
from render.providers.anthropic._constants import (
    IMAGE_BYTES_MAX,
    IMAGE_MEDIA_TYPES,
    IMAGES_MAX,
    IMAGES_MAX_SMALL_WINDOW,
    MARKS_MAX,
    MESSAGES_MAX,
    REQUEST_BYTES_MAX,
    RESUMABLE,
    SERVER_TOOL_TYPES,
    SMALL_WINDOW_TOKENS,
    THINKING_TYPES,
)

_INTEGER_MAX: Final = 2**63 - 1
_SHAPES: Final[Shapes] = {
    "tools": (LISTS, "list"),
    "system": ((str, *LISTS), "list"),
    "messages": (LISTS, "list"),
}


def validate_request(
    request: Mapping[str, Any], model: Model | None = None
) -> tuple[Violation, ...]:
    """Every reason why the provider would refuse `request`; never raises, whatever it is.

    Without a model, the strictest rules apply.
    """
    findings = Findings()
    if is_readable(request, _SHAPES, Rule.SHAPE, findings, "dictionary"):
        tools = findings.objects_in(request.get("tools"), "tools", Rule.SHAPE, "dictionary")
        names = [(place, _check_tool(tool, place, findings)) for tool, place in tools]
        _check_prompt(request.get("system"), findings)
        listed = placed(request.get("messages"), "messages")
        messages = [_read_message(message, place, findings) for message, place in listed]
        check_names(names, Rule.TOOL_NAME_DUPLICATE, findings)
        offered = {name for _, name in names}
        for place, name in findings.references:
            if name not in offered:
                findings.add(Rule.TOOL_REFERENCE, place, name)
        _check_dialogue(messages, request.get("thinking"), model, findings)
        _check_marks(request, messages, findings)
        _check_limits(request.get("max_tokens"), model, findings)
    return tuple(findings.violations)


def refusal_of(role: str, content: object) -> str:
    """Why a message of `role` with only this block would be refused; empty: the block is valid, or only has fields that
    are not known here."""
    findings = Findings()
    _read_message({"role": role, "content": [content]}, "", findings)
    return findings.refusal


@unique
class Rule(Enum):
    """One rule per member, with its reason, its source and its error text.

    Sources: [docs] the provider's documentation of October 2026; [sdk] the types of the `anthropic` package, 2.11;
    [seen] an error text that users quoted in public.
    """

    # The server parses a request into a tagged union first. Shapes are checked here only where a later rule depends on
    # them; this is not a type checker. [sdk]
    SHAPE = "Input should be a valid %s"
    # The types of the stable and the beta union are known here. A newer type needs a newer table; until then, an error
    # from this check is better than one from the server. [sdk]
    # Of a common block; thinking may have no mark. See `Violation.may_be_new`. [sdk, seen]
    EXTRA_FIELD = "Extra inputs are not permitted"
    UNKNOWN_BLOCK = "Input tag '%s' found using 'type' does not match any of the expected tags"

    # The server joins consecutive messages of one role, so two in a row are no error; the rules below apply to the
    # joined messages. [sdk]
    NO_MESSAGES = "at least one message is required"
    MESSAGES_MAX = "at most 100000 messages are allowed, found %s"
    ROLE = "Input should be 'user' or 'assistant'"  # [sdk]
    # Newer models accept `role: "system"` between other messages: after a user message (or the result of a server
    # tool), and before an assistant message or at the end. So never first, and never between calls and results. Several
    # in a row count as one. [docs]
    SYSTEM_REFUSED = (
        'Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
        'not "system" as an input message role.'
    )
    SYSTEM_PLACE = "a `system` message must follow a user turn and precede an assistant turn or end"
    # One exception: an assistant message that begins with a `compaction` block replaces everything before it. Whether
    # the rule is still enforced is unverified; obeying it costs nothing. [seen]
    FIRST_NOT_USER = 'first message must use the "user" role'
    # A last assistant message is a prefill, which every model after the 4.5 generation refuses. One exception: a turn
    # that the server paused (it ends in a block of a server tool, or in a compaction) is sent back as it is. [docs]
    LAST_NOT_USER = (
        "This model does not support assistant message prefill. "
        "The conversation must end with a user message."
    )
    PREFILL_TRAILING_SPACE = "final assistant content cannot end with trailing whitespace"  # [seen]
    CONTENT_EMPTY = (  # [seen]
        "all messages must have non-empty content except for the optional final assistant message"
    )

    # These rules apply to all text blocks: in a message, in `system`, in a tool result, a search result or a document.
    # Servers sometimes accept blank text next to other text, but not reliably, so it is never sent. Two plain strings
    # may be empty: `system`, and the content of a tool result, which may also be blank, because many commands have no
    # output. [seen]
    TEXT_EMPTY = "text content blocks must be non-empty"
    TEXT_BLANK = "text content blocks must contain non-whitespace text"
    # Only the model may cite. Refused since version 2026-10-21, also in a search result. [docs]
    CITATIONS_IN_USER = "citations are not allowed on text blocks in user messages"

    DOCUMENT_IN_ASSISTANT = "document blocks are not allowed in assistant messages"  # [docs]
    WRONG_ROLE = "`%s` blocks can only be in `%s` messages"  # [seen]

    TOOL_USE_ID = "String should match pattern '^[a-zA-Z0-9_-]+$'"  # [seen]
    SERVER_TOOL_USE_ID = "String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"  # [seen]
    TOOL_USE_ID_DUPLICATE = "`tool_use` ids must be unique"  # in the whole request [seen]
    TOOL_INPUT = "Input should be a valid dictionary"  # never a string, list or null [seen]
    # The documentation says 64; servers were seen to quote 128. 64 satisfies both. [docs, seen]
    TOOL_NAME = "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
    TOOL_NAME_DUPLICATE = "Tool names must be unique."  # [seen]
    # JSON Schema 2020-12 whose outermost type is an object. Only user-defined tools have one; a server tool has its
    # own. [sdk]
    TOOL_SCHEMA = "JSON schema is invalid: input_schema must be an object of type 'object'"

    # A reference, with which a search of the client's loads a deferred tool, names a tool of the request. [docs, seen]
    TOOL_REFERENCE = "Tool reference '%s' not found in available tools"

    # The message right after a call answers all calls of the message before it: each exactly once, results first, other
    # content after them. A call in the last message counts as unanswered. [docs]
    TOOL_USE_UNANSWERED = (
        "`tool_use` ids were found without `tool_result` blocks immediately after: %s. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
    TOOL_RESULT_UNEXPECTED = (
        "unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block "
        "must have a corresponding `tool_use` block in the previous message."
    )
    TOOL_RESULT_DUPLICATE = (
        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s"
    )
    TOOL_RESULT_LATE = (
        "`tool_use` ids were found without `tool_result` blocks immediately after: %s. "
        "All `tool_result` blocks must come before any other content of the message."
    )

    # The signature identifies the server's own thinking. Thinking of another provider, or of an interrupted stream, has
    # none; a signed block with an empty text is valid. [seen, sdk]
    #
    # Whether a signature still matches the content before it (models with `thinking_bound`) cannot be checked in a
    # single request; the encoder is responsible for that.
    THINKING_UNSIGNED = "each thinking block must contain thinking and its `signature`"
    THINKING_LAST = "The final block in an assistant message cannot be `thinking`."  # [seen]
    # Only under `thinking: {"type": "enabled"}`, the manual mode of older models, and only for the assistant message
    # whose tool results the request delivers. [seen]
    THINKING_FIRST = (
        "Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, "
        "a final `assistant` message must start with a thinking block"
    )

    MARK_FORM = "Input should be {'type': 'ephemeral'} with an optional ttl"  # [sdk]
    MARK_TTL = "Input should be '5m' or '1h'"  # [sdk]
    # Tools, system and messages together. An automatic mark (`cache_control` of the request itself) counts as one of
    # the four, unless the last block already has the same. [docs, seen]
    MARKS_MAX = "A maximum of 4 blocks with cache_control may be provided. Found %s."
    MARK_ON_EMPTY_TEXT = "cache_control cannot be set for empty text blocks"  # [seen]
    # Marks must be ordered from the longest to the shortest time to live. [docs, seen]
    MARK_ORDER = (
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note "
        "that blocks are processed in the following order: tools, system, messages."
    )
    MARK_CONFLICT = "automatic cache_control conflicts with the ttl of the last block"  # [docs]

    # 600 images, or 100 with a window of 200,000 tokens; 10 MB of base64 each. The rule about image sides (2,000 pixels
    # with more than 20 images) is not checked, because the images are not decoded. [docs]
    IMAGES_MAX = "too many images in the request: %s > %s"
    IMAGE_BYTES = "image exceeds 10 MB maximum: %s bytes > 10485760 bytes"
    MEDIA_TYPE = "Input should be one of: %s"  # [sdk]
    SOURCE = "Input should be a source of one of the types: %s"  # [sdk]
    # The server fetches the URL, so a path, a `data:` URL or a bare name is refused. [docs]
    URL = "Only HTTP and HTTPS URLs are supported"
    # Redacted logs have placeholders instead of images; their first characters are not base64.
    BASE64 = "Invalid base64 data"
    # 32 MB, refused before the server parses anything (413). Only the characters of texts and attachments are counted,
    # which is less than the bytes sent, so a refusal here is certain. [docs]
    REQUEST_BYTES = "Request exceeds the maximum size: %s > 33554432"
    MAX_TOKENS = "%s > %s, which is the maximum allowed number of output tokens for this model"


# Tools and the system prompt.

_NAMELESS: Final = frozenset(
    {"browser_toolset_20260801", "computer_toolset_20260801", "mcp_toolset"}
)
"""Entries for a family of tools, which have no name."""
_is_name: Final = matches(r"[a-zA-Z0-9_-]{1,64}")


def _check_tool(definition: Json, place: str, findings: Findings) -> str:
    """Check one entry of `tools`; returns its name, empty if it has none."""
    _check_mark(definition, place, findings)
    kind, name = definition.get("type"), definition.get("name")
    if kind is None or kind == "custom":
        if obj(definition.get("input_schema")).get("type") != "object":
            findings.add(Rule.TOOL_SCHEMA, place, field="custom.input_schema")
    elif not isinstance(kind, str):
        findings.add(Rule.SHAPE, place, "string", field="type")
    elif kind in _NAMELESS:
        return ""
    if not _is_name(name):
        findings.add(Rule.TOOL_NAME, place, field="custom.name")
    return string(name)


def _check_prompt(system: object, findings: Findings) -> None:
    texts = [(system, "system")] if isinstance(system, str) else placed(system, "system")
    for block, place in texts:
        if not isinstance(block, str):
            _check_block(block, _TEXT_ONLY, place, findings)
        elif block:
            _check_words(block, place, findings)


# Messages and their blocks.


@attrs.frozen(eq=False)
class _Block:
    """What the rules between messages use of one block."""

    kind: str
    """Its type; empty if that is unknown."""
    place: str
    id: str = ""
    """For a tool use or a tool result: the id of the call."""
    text: str = ""


@attrs.frozen(eq=False)
class _Extract:
    """What the rules between messages use of one message, or of several that the server joins."""

    place: str
    role: str
    """Empty if it is unknown."""
    blocks: Sequence[_Block] = ()

    @property
    def uses(self) -> list[_Block]:
        """The tool uses of an assistant message; in other messages they are a violation."""
        blocks = self.blocks if self.role == "assistant" else ()
        return [block for block in blocks if block.kind == "tool_use" and block.id]

    @property
    def first(self) -> str:
        """The kind of the first block."""
        return self.blocks[0].kind if self.blocks else ""

    @property
    def last(self) -> str:
        """The kind of the last block."""
        return self.blocks[-1].kind if self.blocks else ""


def _read_message(message: object, place: str, findings: Findings) -> _Extract:
    """Check one message by itself."""
    unreadable = [_Block("", place)]
    fields = findings.object_at(message, place, Rule.SHAPE, "dictionary")
    if fields is None:
        return _Extract(place, "", unreadable)
    role = string(fields.get("role"))
    if role not in ALLOWED:
        findings.add(Rule.ROLE, place, field="role")
        role = ""
    content: object = fields.get("content")
    if isinstance(content, str):  # short for one text block
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list | tuple):
        findings.add(Rule.SHAPE, place, "list", field="content")
        return _Extract(place, role, unreadable)
    blocks = placed(cast("object", content), joined(place, "content"))
    return _Extract(place, role, [_read_block(b, role, at, findings) for b, at in blocks])


def _read_block(block: object, role: str, place: str, findings: Findings) -> _Block:
    kind = _check_block(block, BLOCKS if role == "assistant" else _SENT_BLOCKS, place, findings)
    if kind == "document" and role == "assistant":
        findings.add(Rule.DOCUMENT_IN_ASSISTANT, place)
    elif kind and role and kind not in ALLOWED[role]:
        findings.add(Rule.WRONG_ROLE, place, kind, "assistant" if role == "user" else "user")
    key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(kind, "")
    body = obj(block)
    text = string(body.get("text")) if kind == "text" else ""
    return _Block(kind, place, string(body.get(key)), text)


def _check_block(block: object, kinds: Checks, place: str, findings: Findings) -> str:
    """Check a block that must be one of `kinds`; returns its type, "" if it is none of them."""
    fields = findings.object_at(block, place, Rule.SHAPE, "dictionary")
    if fields is None:
        return ""
    kind = string(fields.get("type"))
    if fields.get("cache_control") is not None:
        _check_mark(fields, place, findings)
        if kind in THINKING_TYPES:
            findings.add(Rule.EXTRA_FIELD, place, field=f"{kind}.cache_control")
        elif kind == "text" and not string(fields.get("text")).strip():
            findings.add(Rule.MARK_ON_EMPTY_TEXT, place, field="text")
    if kind not in kinds:
        findings.add(Rule.UNKNOWN_BLOCK, place, kind)
        return ""
    for name in sorted(fields.keys() - KNOWN_FIELDS.get(kind, fields.keys())):
        findings.add(Rule.EXTRA_FIELD, place, field=f"{kind}.{name}")
    for check in kinds[kind]:
        check(fields, place, findings)
    return kind


def _check_mark(thing: Json, place: str, findings: Findings) -> None:
    """Check and record the cache mark on a block, a tool or the request."""
    mark = thing.get("cache_control")
    if mark is None:
        return
    ttl = obj(mark).get("ttl", "5m")
    if obj(mark).get("type") != "ephemeral":
        findings.add(Rule.MARK_FORM, place, field="cache_control")
    elif ttl in ("5m", "1h"):
        findings.marks.append((place, ttl))
    else:
        findings.add(Rule.MARK_TTL, place, field="cache_control.ttl")


def _check_words(text: str, place: str, findings: Findings) -> None:
    """Check a text that the model will read."""
    findings.size += len(text)
    if not text:
        findings.add(Rule.TEXT_EMPTY, place)
    elif text.isspace():
        findings.add(Rule.TEXT_BLANK, place)


def _check_parts(content: object, kinds: Checks, place: str, findings: Findings) -> None:
    if not isinstance(content, list | tuple):
        findings.add(Rule.SHAPE, place, "list")
        return
    for part, at in placed(cast("object", content), place):
        _check_block(part, kinds, at, findings)


# Checks of single kinds of blocks.


def _text(block: Json, place: str, findings: Findings) -> None:
    text = block.get("text")
    if isinstance(text, str):
        _check_words(text, place, findings)
    else:
        findings.add(Rule.SHAPE, place, "string", field="text.text")


def _result(block: Json, place: str, findings: Findings) -> None:
    content = block.get("content")
    if isinstance(content, str):
        findings.size += len(content)
    elif content is not None:
        _check_parts(content, _RESULT_PARTS, f"{place}.content", findings)


def _reference(block: Json, place: str, findings: Findings) -> None:
    findings.references.append((place, string(block.get("tool_name"))))


def _search_result(block: Json, place: str, findings: Findings) -> None:
    _check_parts(block.get("content"), _SENT_TEXT, f"{place}.content", findings)


def _compaction(block: Json, place: str, findings: Findings) -> None:
    """Check a summary that the server wrote; null means one that failed and is skipped."""
    content = block.get("content")
    if isinstance(content, str):
        _check_words(content, place, findings)
    elif content is not None:
        findings.add(Rule.SHAPE, place, "string", field="compaction.content")


def _image(block: Json, place: str, findings: Findings) -> None:
    findings.images += 1
    source = _source_of(block, ("base64", "url", "file"), place, findings)
    if source.get("type") == "base64":
        length = _check_base64(source, IMAGE_MEDIA_TYPES, place, findings)
        if length > IMAGE_BYTES_MAX:
            findings.add(Rule.IMAGE_BYTES, place, length, field="image.source.base64")


def _document(block: Json, place: str, findings: Findings) -> None:
    kinds = ("base64", "text", "content", "url", "file")
    source = _source_of(block, kinds, place, findings)
    kind = source.get("type")
    if kind == "base64":
        _check_base64(source, ("application/pdf",), place, findings)
    elif kind in ("text", "content"):  # other types are fetched by the server
        text = source.get("data" if kind == "text" else "content")
        if isinstance(text, str):
            _check_words(text, f"{place}.source", findings)
        else:
            _check_parts(text, _SOURCE_PARTS, f"{place}.source.content", findings)


def _source_of(block: Json, kinds: Sequence[str], place: str, findings: Findings) -> Json:
    """The source of an image or document, empty if it is none of `kinds` or its reference is not valid."""
    source, name = obj(block.get("source")), f"{block['type']}.source"
    kind = source.get("type")
    if kind not in kinds:
        findings.add(Rule.SOURCE, place, ", ".join(kinds), field=name)
        return {}
    reference = {"url": "url", "file": "file_id"}.get(string(kind))
    if reference and not is_filled(source.get(reference)):
        findings.add(Rule.SHAPE, place, "string", field=f"{name}.{kind}.{reference}")
        return {}
    if kind == "url" and not is_web_url(source["url"]):
        findings.add(Rule.URL, place, field=f"{name}.url.url")
        return {}
    return source


_is_base64_head: Final = matches(r"[A-Za-z0-9+/=\s]+")
_HEAD_LENGTH: Final = 256


def _check_base64(source: Json, types: Sequence[str], place: str, findings: Findings) -> int:
    """Check inline bytes of one of the media types; returns their length in base64."""
    if source.get("media_type") not in types:
        findings.add(Rule.MEDIA_TYPE, place, ", ".join(types), field="source.base64.media_type")
    data = string(source.get("data"))
    if not _is_base64_head(data[:_HEAD_LENGTH]):
        findings.add(Rule.BASE64, place, field="source.base64.data")
        return 0
    findings.size += len(data)
    return len(data)


def _is_citing(citations: object) -> bool:
    """Whether `citations` is as documents and search results have it, unlike the list in a text block."""
    return citations is None or isinstance(obj(citations).get("enabled"), bool)


# What each kind of block must have.

_TEXT_ONLY: Final[Checks] = {"text": (_text,)}
_SENT_TEXT: Final[Checks] = {
    "text": (_text, field("text.citations", lambda cited: not cited, Rule.CITATIONS_IN_USER))
}
_SOURCE_PARTS: Final[Checks] = {**_SENT_TEXT, "image": (_image,)}
_SENT_PARTS: Final[Checks] = {
    **_SOURCE_PARTS,
    "document": (
        *(
            field(path, lambda text: text is None or is_filled(text), Rule.SHAPE, "string")
            for path in ("document.title", "document.context")
        ),
        field("document.citations", _is_citing, Rule.SHAPE, "dictionary"),
        _document,
    ),
    "search_result": (
        field("search_result.source", str, Rule.SHAPE, "string"),
        field("search_result.title", str, Rule.SHAPE, "string"),
        field("search_result.content", lambda texts: texts != [], Rule.TEXT_EMPTY),
        field("search_result.citations", _is_citing, Rule.SHAPE, "dictionary"),
        _search_result,
    ),
}
_RESULT_PARTS: Final[Checks] = {**_SENT_PARTS, "tool_reference": (_reference,), "browser_state": ()}

BLOCKS: Final[Checks] = {
    **_SENT_PARTS,
    **dict.fromkeys(SERVER_TOOL_TYPES, ()),
    "compaction": (_compaction,),
    "container_upload": (field("container_upload.file_id", is_filled, Rule.SHAPE, "string"),),
    "fallback": (),
    "redacted_thinking": (
        field("data", is_filled, Rule.THINKING_UNSIGNED, label="redacted_thinking"),
    ),
    "server_tool_use": (
        field("server_tool_use.id", matches(r"srvtoolu_[a-zA-Z0-9_]+"), Rule.SERVER_TOOL_USE_ID),
        field("server_tool_use.input", dict, Rule.TOOL_INPUT),
    ),
    "text": (_text,),
    "thinking": (
        text("thinking.thinking", Rule.SHAPE, "string"),
        field("signature", is_filled, Rule.THINKING_UNSIGNED, label="thinking"),
    ),
    "tool_addition": (),
    "tool_removal": (),
    "tool_result": (field("tool_result.tool_use_id", is_filled, Rule.SHAPE, "string"), _result),
    "tool_use": (
        field("tool_use.id", matches(r"[a-zA-Z0-9_-]+"), Rule.TOOL_USE_ID),
        field("tool_use.name", _is_name, Rule.TOOL_NAME),
        field("tool_use.input", dict, Rule.TOOL_INPUT),
    ),
}
"""The content types of the SDK, stable and beta, as the model may send them back."""
_SENT_BLOCKS: Final[Checks] = {**BLOCKS, **_SENT_TEXT}
KNOWN_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(names.split())
    for kind, names in {
        "document": "cache_control citations context source title type",
        "image": "cache_control source transformations type",
        "text": "cache_control citations text type",
        "tool_result": "cache_control content is_error tool_use_id toolset_name type",
        "tool_use": "cache_control caller id input name toolset_name type",
    }.items()
}
"""The fields of the common blocks, by the SDK. Thinking and blocks of the server's tools are sent back as they came, and are
not checked; nor are messages, to which Claude Code adds fields of its own (`output_config`). [seen]"""

ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "user": frozenset(BLOCKS) - THINKING_TYPES - {"tool_use", "server_tool_use", "mcp_tool_use"},
    "assistant": frozenset(BLOCKS) - {"tool_result", "document"},
    "system": frozenset({"text", "tool_addition", "tool_removal"}),
}
"""The blocks that a message may hold, by its role."""


# Rules between messages.

_NOTHING: Final = _Extract("", "")


def _check_dialogue(
    messages: Sequence[_Extract], thinking: object, model: Model | None, findings: Findings
) -> None:
    """Check all messages together; the server joins those of one role."""
    if not messages:
        findings.add(Rule.NO_MESSAGES, "messages")
        return
    runs = (list(run) for _, run in groupby(messages, lambda message: message.role))
    turns = [
        _Extract(run[0].place, run[0].role, [b for message in run for b in message.blocks])
        for run in runs
    ]
    _check_ends(messages, turns, model, findings)
    _check_system(messages, turns, model, findings)
    seen: set[str] = set()
    for use in (use for message in messages for use in message.uses):
        if use.id in seen:
            findings.add(Rule.TOOL_USE_ID_DUPLICATE, use.place)
        seen.add(use.id)
    for before, after in pairwise([_NOTHING, *turns, _NOTHING]):
        _check_answers(before, after, findings)
    # In manual thinking mode, check that the message whose calls are answered begins with thinking.
    calling = next((turn for turn in turns[:-3:-1] if turn.role == "assistant"), _NOTHING)
    is_manual = obj(thinking).get("type") == "enabled"
    if is_manual and calling.uses and calling.first not in THINKING_TYPES:
        place = f"{calling.place}.content.0"
        findings.add(Rule.THINKING_FIRST, place, calling.first, field="type")


def _check_ends(
    messages: Sequence[_Extract], turns: Sequence[_Extract], model: Model | None, findings: Findings
) -> None:
    """Check the number of messages, the roles of the first and the last, and that none is empty."""
    if len(messages) > MESSAGES_MAX:
        findings.add(Rule.MESSAGES_MAX, "messages", len(messages))
    if turns[0].role == "assistant" and turns[0].first != "compaction":
        findings.add(Rule.FIRST_NOT_USER, "messages.0")
    end = messages[-1]
    is_prefill = end.role == "assistant"
    if is_prefill and end.last not in RESUMABLE:
        text = end.blocks[-1].text if end.blocks else ""
        if model is None or not model.prefill:
            findings.add(Rule.LAST_NOT_USER, end.place)
        elif text.strip() and text[-1].isspace():
            findings.add(Rule.PREFILL_TRAILING_SPACE, end.place)
    for message in messages:
        may_be_empty = message.role == "system" or (message is end and is_prefill)
        if not message.blocks and not may_be_empty:
            findings.add(Rule.CONTENT_EMPTY, message.place)


def _check_system(
    messages: Sequence[_Extract], turns: Sequence[_Extract], model: Model | None, findings: Findings
) -> None:
    """Check system messages between the others; one without content only sets options, so it is ignored."""
    if model is None or not model.system_messages:
        for message in messages:
            if message.role == "system":
                findings.add(Rule.SYSTEM_REFUSED, message.place)
        return
    for before, turn, after in zip([_NOTHING, *turns], turns, [*turns[1:], _NOTHING], strict=False):
        if turn.role == "system" and turn.blocks:
            follows = before.role == "user" or before.last in SERVER_TOOL_TYPES
            if not follows or after.role not in {"assistant", ""}:
                findings.add(Rule.SYSTEM_PLACE, turn.place)


def _check_answers(before: _Extract, after: _Extract, findings: Findings) -> None:
    """Check that a turn answers the calls of the one before, and that its last block is allowed."""
    call_ids = {use.id for use in before.uses}
    answered: set[str] = set()
    is_late = False
    for block in after.blocks if after.role == "user" else ():
        is_late = is_late or block.kind != "tool_result"
        if block.kind != "tool_result" or not block.id:
            continue
        if block.id in answered:
            findings.add(Rule.TOOL_RESULT_DUPLICATE, block.place, block.id)
        elif block.id not in call_ids:
            findings.add(Rule.TOOL_RESULT_UNEXPECTED, block.place, block.id)
        elif is_late:
            findings.add(Rule.TOOL_RESULT_LATE, block.place, block.id)
        answered.add(block.id)
    for use in before.uses:
        if use.id not in answered:
            findings.add(Rule.TOOL_USE_UNANSWERED, use.place, use.id)
    if after.role == "assistant" and after.last in THINKING_TYPES:
        findings.add(Rule.THINKING_LAST, after.place)


# Rules for the whole request.


def _check_marks(request: Json, messages: Sequence[_Extract], findings: Findings) -> None:
    """Check the number and the order of all cache marks, with the automatic one of the request itself."""
    marks, findings.marks = findings.marks, []
    _check_mark(request, "", findings)
    for _, ttl in findings.marks:
        explicit = dict(marks[::-1]).get(last := _last_block_of(messages))
        if explicit is None:
            marks.append((last, ttl))
        elif explicit != ttl:
            findings.add(Rule.MARK_CONFLICT, last, field="cache_control.ttl")
    if len(marks) > MARKS_MAX:
        findings.add(Rule.MARKS_MAX, marks[MARKS_MAX][0], len(marks))
    for place, ttl in dropwhile(lambda mark: mark[1] == "1h", marks):
        if ttl == "1h":
            findings.add(Rule.MARK_ORDER, place, field="cache_control.ttl")


def _last_block_of(messages: Sequence[_Extract]) -> str:
    """Place of the block to which an automatic cache mark applies."""
    if not messages:
        return "messages"
    return f"{messages[-1].place}.content.{max(len(messages[-1].blocks) - 1, 0)}"


def _check_limits(max_tokens: Any, model: Model | None, findings: Findings) -> None:
    """Check images, size, and `max_tokens`, for which 0 is valid, and only warms the cache."""
    is_small = model is not None and model.tokens_window <= SMALL_WINDOW_TOKENS
    images_max = IMAGES_MAX_SMALL_WINDOW if is_small else IMAGES_MAX
    if findings.images > images_max:
        findings.add(Rule.IMAGES_MAX, "messages", findings.images, images_max)
    if findings.size > REQUEST_BYTES_MAX:
        findings.add(Rule.REQUEST_BYTES, "request", findings.size)
    if max_tokens is None:
        return
    if not is_number(max_tokens) or not 0 <= max_tokens <= _INTEGER_MAX:
        findings.add(Rule.SHAPE, "max_tokens", "integer")
    elif model is not None and max_tokens > model.output_tokens_max:
        findings.add(Rule.MAX_TOKENS, "max_tokens", max_tokens, model.output_tokens_max)
