"""Rules for content blocks: one function for each kind of block.

Nothing recurses: a block contains parts only where a table says so, and parts contain only texts and
images, so any input can be checked, however deeply it is nested.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from render.providers.anthropic._kinds import SERVER_TOOL_TYPES, THINKING_TYPES
from render.providers.anthropic.validator._facts import Facts, Json, Mark
from render.providers.anthropic.validator._media_rules import (
    DOCUMENT_SOURCES,
    scan_image,
    scan_pdf,
    source_of,
)
from render.providers.anthropic.validator._rules import Rule

BlockRule: TypeAlias = Callable[[Json, str, Facts], None]

_SYSTEM_TYPES: Final = frozenset({"text", "tool_addition", "tool_removal"})
"""Types that a system message between other messages may contain."""
_ONLY_ASSISTANT: Final = THINKING_TYPES | {"tool_use", "server_tool_use", "mcp_tool_use"}

_TOOL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_TOOL_ID: Final = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def scan_blocks(blocks: Sequence[object], role: str, facts: Facts) -> tuple[str, ...]:
    """Check the blocks of a message; returns the type of each, "" if it is unknown."""
    rules = _BLOCK_RULES if role == "assistant" else _SENT_RULES
    kinds: list[str] = []
    for index, block in enumerate(blocks):
        at = f"content.{index}"
        kind = _scan_known(block, rules, at, facts)
        _scan_place(kind, role, at, facts)
        kinds.append(kind)
    return tuple(kinds)


def _scan_place(kind: str, role: str, at: str, facts: Facts) -> None:
    if role == "user":
        if kind in _ONLY_ASSISTANT:
            facts.fault(Rule.WRONG_ROLE, at, kind, "assistant")
    elif role == "assistant":
        if kind == "tool_result":
            facts.fault(Rule.WRONG_ROLE, at, kind, "user")
        elif kind == "document":
            facts.fault(Rule.DOCUMENT_IN_ASSISTANT, at)
    elif role == "system" and kind and kind not in _SYSTEM_TYPES:
        facts.fault(Rule.WRONG_ROLE, at, kind, "user")


def scan_system_text(block: object, at: str, facts: Facts) -> None:
    """Check one block of the system prompt."""
    _scan_known(block, _TEXT_ONLY, at, facts)


def scan_name(name: object, at: str, field: str, facts: Facts) -> None:
    """Check the name of a tool."""
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        facts.fault(Rule.TOOL_NAME, at, field=field)


def scan_mark(thing: Json, at: str, facts: Facts) -> None:
    """Check and record the cache mark on a block, a tool or the request."""
    control = thing.get("cache_control")
    if control is None:
        return
    known = cast("Json", control if isinstance(control, dict) else {})
    if known.get("type") != "ephemeral":
        facts.fault(Rule.MARK_FORM, at, field="cache_control")
        return
    match known.get("ttl", "5m"):
        case "5m":
            facts.marks.append(Mark(at, "5m"))
        case "1h":
            facts.marks.append(Mark(at, "1h"))
        case _:
            facts.fault(Rule.MARK_TTL, at, field="cache_control.ttl")


def scan_string(text: str, at: str, facts: Facts) -> None:
    """Check a text that the model will read."""
    facts.size += len(text)
    if not text:
        facts.fault(Rule.TEXT_EMPTY, at)
    elif text.isspace():
        facts.fault(Rule.TEXT_BLANK, at)


def _scan_known(block: object, rules: Mapping[str, BlockRule], at: str, facts: Facts) -> str:
    if not isinstance(block, dict):
        facts.fault(Rule.SHAPE, at, "dictionary")
        return ""
    known = cast("Json", block)
    kind = _string(known, "type")
    rule = rules.get(kind)
    if "cache_control" in known:
        _scan_block_mark(known, kind, at, facts)
    if rule is None:
        facts.fault(Rule.UNKNOWN_BLOCK, at, kind)
        return ""
    rule(known, at, facts)
    return kind


def _scan_block_mark(block: Json, kind: str, at: str, facts: Facts) -> None:
    scan_mark(block, at, facts)
    if block["cache_control"] is None:
        return
    if kind in THINKING_TYPES:
        facts.fault(Rule.MARK_ON_THINKING, at, field=f"{kind}.cache_control")
    elif kind == "text" and not _string(block, "text").strip():
        facts.fault(Rule.MARK_ON_EMPTY_TEXT, at, field="text")


def _scan_text(block: Json, at: str, facts: Facts) -> None:
    text = block.get("text")
    if isinstance(text, str):
        scan_string(text, at, facts)
    else:
        facts.fault(Rule.SHAPE, at, "string", field="text.text")


def _scan_sent_text(block: Json, at: str, facts: Facts) -> None:
    """Check a text of the user's."""
    _scan_text(block, at, facts)
    if block.get("citations"):
        facts.fault(Rule.CITATIONS_IN_USER, at, field="text.citations")


def _scan_parts(content: object, rules: Mapping[str, BlockRule], at: str, facts: Facts) -> None:
    if not isinstance(content, list | tuple):
        facts.fault(Rule.SHAPE, at, "list")
        return
    for index, part in enumerate(cast("Sequence[object]", content)):
        _scan_known(part, rules, f"{at}.{index}", facts)


def _scan_tool_use(block: Json, at: str, facts: Facts) -> None:
    if not _TOOL_ID.fullmatch(_string(block, "id")):
        facts.fault(Rule.TOOL_USE_ID, at, field="tool_use.id")
    scan_name(block.get("name"), at, "tool_use.name", facts)
    _scan_input(block, at, facts)


def _scan_server_tool_use(block: Json, at: str, facts: Facts) -> None:
    if not _SERVER_TOOL_ID.fullmatch(_string(block, "id")):
        facts.fault(Rule.SERVER_TOOL_USE_ID, at, field="server_tool_use.id")
    _scan_input(block, at, facts)


def _scan_input(block: Json, at: str, facts: Facts) -> None:
    if not isinstance(block.get("input"), dict):
        facts.fault(Rule.TOOL_INPUT, at, field=f"{block['type']}.input")


def _scan_tool_result(block: Json, at: str, facts: Facts) -> None:
    if not _string(block, "tool_use_id"):
        facts.fault(Rule.SHAPE, at, "string", field="tool_result.tool_use_id")
    content = block.get("content")
    if isinstance(content, str):
        facts.size += len(content)
    elif content is not None:
        _scan_parts(content, _RESULT_PARTS, f"{at}.content", facts)


def _scan_search_result(block: Json, at: str, facts: Facts) -> None:
    """Check source, title and texts; unlike in other blocks, `source` is a string."""
    for name in ("source", "title"):
        if not isinstance(block.get(name), str):
            facts.fault(Rule.SHAPE, at, "string", field=f"search_result.{name}")
    if block.get("content") == []:
        facts.fault(Rule.TEXT_EMPTY, at, field="search_result.content")
    _scan_citing(block, at, facts)
    _scan_parts(block.get("content"), _SENT_TEXT_ONLY, f"{at}.content", facts)


def _scan_citing(block: Json, at: str, facts: Facts) -> None:
    """Check `citations`: `{"enabled": true}`, unlike the list in a text block."""
    citations = block.get("citations")
    known = cast("Json", citations if isinstance(citations, dict) else {})
    if citations is not None and not isinstance(known.get("enabled"), bool):
        facts.fault(Rule.SHAPE, at, "dictionary", field=f"{block['type']}.citations")


def _scan_file(block: Json, at: str, facts: Facts) -> None:
    """Check a file for the server's code container."""
    if not _string(block, "file_id"):
        facts.fault(Rule.SHAPE, at, "string", field="container_upload.file_id")


def _scan_document(block: Json, at: str, facts: Facts) -> None:
    for name in ("title", "context"):
        if block.get(name) is not None and not _string(block, name):
            facts.fault(Rule.SHAPE, at, "string", field=f"document.{name}")
    _scan_citing(block, at, facts)
    source = source_of(block, DOCUMENT_SOURCES, at, facts)
    if source is None:
        return
    kind = source["type"]
    if kind == "base64":
        scan_pdf(source, at, facts)
    elif kind in ("text", "content"):  # other types are fetched by the server
        text = source.get("data" if kind == "text" else "content")
        if isinstance(text, str):
            scan_string(text, f"{at}.source", facts)
        else:
            _scan_parts(text, _SOURCE_PARTS, f"{at}.source.content", facts)


def _scan_thinking(block: Json, at: str, facts: Facts) -> None:
    text = block.get("thinking")
    if isinstance(text, str):
        facts.size += len(text)
    else:
        facts.fault(Rule.SHAPE, at, "string", field="thinking.thinking")
    if not _string(block, "signature"):
        facts.fault(Rule.THINKING_UNSIGNED, at, field="thinking")


def _scan_redacted(block: Json, at: str, facts: Facts) -> None:
    if not _string(block, "data"):
        facts.fault(Rule.THINKING_UNSIGNED, at, field="redacted_thinking")


def _scan_compaction(block: Json, at: str, facts: Facts) -> None:
    """Check a summary that the server wrote; null means one that failed and is skipped."""
    content = block.get("content")
    if isinstance(content, str):
        scan_string(content, at, facts)
    elif content is not None:
        facts.fault(Rule.SHAPE, at, "string", field="compaction.content")


def _string(block: Json, key: str) -> str:
    """The value under `key` if it is a string; otherwise ""."""
    value = block.get(key)
    return value if isinstance(value, str) else ""


def _accept(_block: Json, _at: str, _facts: Facts) -> None:
    """Accept a known type that has no rules here."""


_TEXT_ONLY: Final[Mapping[str, BlockRule]] = {"text": _scan_text}
_SENT_TEXT_ONLY: Final[Mapping[str, BlockRule]] = {"text": _scan_sent_text}
_SOURCE_PARTS: Final[Mapping[str, BlockRule]] = {**_SENT_TEXT_ONLY, "image": scan_image}
_RESULT_PARTS: Final[Mapping[str, BlockRule]] = {
    **_SOURCE_PARTS,
    "document": _scan_document,
    "search_result": _scan_search_result,
    "tool_reference": _accept,
    "browser_state": _accept,
}

# Content types of the SDK, stable and beta.
_BLOCK_RULES: Final[Mapping[str, BlockRule]] = {
    **dict.fromkeys(SERVER_TOOL_TYPES, _accept),
    "compaction": _scan_compaction,
    "container_upload": _scan_file,
    "document": _scan_document,
    "fallback": _accept,
    "image": scan_image,
    "redacted_thinking": _scan_redacted,
    "search_result": _scan_search_result,
    "server_tool_use": _scan_server_tool_use,
    "text": _scan_text,
    "thinking": _scan_thinking,
    "tool_addition": _accept,
    "tool_removal": _accept,
    "tool_result": _scan_tool_result,
    "tool_use": _scan_tool_use,
}
_SENT_RULES: Final[Mapping[str, BlockRule]] = {**_BLOCK_RULES, **_SENT_TEXT_ONLY}
