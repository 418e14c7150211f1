"""Content blocks: one small function for each kind of block that has rules of its own.

Nothing recurses: a block holds parts only where a table says so, and a part holds nothing but
texts and images, so that no input is nested too deeply to be checked.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from render.providers.anthropic._kinds import SERVER_TOOL_TYPES, THINKING_TYPES
from render.providers.anthropic.validator._facts import Json, Scan, as_array, as_object, as_string
from render.providers.anthropic.validator._media_rules import (
    DOCUMENT_SOURCES,
    scan_image,
    scan_pdf,
    source_of,
)
from render.providers.anthropic.validator._request_rules import scan_mark
from render.providers.anthropic.validator._rules import Rule

BlockRule: TypeAlias = Callable[[Json, str, Scan], None]

_SYSTEM_TYPES: Final = frozenset({"text", "tool_addition", "tool_removal"})
"""What an instruction between the messages may hold."""
_ONLY_ASSISTANT: Final = THINKING_TYPES | {"tool_use", "server_tool_use", "mcp_tool_use"}

_TOOL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_TOOL_ID: Final = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def scan_block(block: object, role: str, at: str, scan: Scan) -> str:
    """Check one block of a message; give its type, or "" when it has no known one."""
    kind = _scan_known(block, _BLOCK_RULES if role == "assistant" else _SENT_RULES, at, scan)
    if role == "user":
        if kind in _ONLY_ASSISTANT:
            scan.fault(Rule.WRONG_ROLE, at, kind, "assistant")
    elif role == "assistant":
        if kind == "tool_result":
            scan.fault(Rule.WRONG_ROLE, at, kind, "user")
        elif kind == "document":
            scan.fault(Rule.DOCUMENT_IN_ASSISTANT, at)
    elif role == "system" and kind and kind not in _SYSTEM_TYPES:
        scan.fault(Rule.WRONG_ROLE, at, kind, "user")
    return kind


def scan_system_text(block: object, at: str, scan: Scan) -> None:
    """Check one block of the system prompt."""
    _scan_known(block, _TEXT_ONLY, at, scan)


def scan_name(name: object, at: str, field: str, scan: Scan) -> None:
    """Check the name of a tool."""
    if not _TOOL_NAME.fullmatch(as_string(name)):
        scan.fault(Rule.TOOL_NAME, at, field=field)


def scan_string(text: str, at: str, scan: Scan) -> None:
    """Check a text that the model will read."""
    scan.size += len(text)
    if not text:
        scan.fault(Rule.TEXT_EMPTY, at)
    elif text.isspace():
        scan.fault(Rule.TEXT_BLANK, at)


def _scan_known(block: object, rules: Mapping[str, BlockRule], at: str, scan: Scan) -> str:
    known = as_object(block)
    if known is None:
        scan.fault(Rule.SHAPE, at, "dictionary")
        return ""
    kind = as_string(known.get("type"))
    rule = rules.get(kind)
    if "cache_control" in known:
        _scan_block_mark(known, kind, at, scan)
    if rule is None:
        scan.fault(Rule.UNKNOWN_BLOCK, at, kind)
        return ""
    rule(known, at, scan)
    return kind


def _scan_block_mark(block: Json, kind: str, at: str, scan: Scan) -> None:
    scan_mark(block, at, scan)
    if block["cache_control"] is None:
        return
    if kind in THINKING_TYPES:
        scan.fault(Rule.MARK_ON_THINKING, at, field=f"{kind}.cache_control")
    elif kind == "text" and not as_string(block.get("text")).strip():
        scan.fault(Rule.MARK_ON_EMPTY_TEXT, at, field="text")


def _scan_text(block: Json, at: str, scan: Scan) -> None:
    text = block.get("text")
    if isinstance(text, str):
        scan_string(text, at, scan)
    else:
        scan.fault(Rule.SHAPE, at, "string", field="text.text")


def _scan_sent_text(block: Json, at: str, scan: Scan) -> None:
    """Check a text that is not the model's."""
    _scan_text(block, at, scan)
    if block.get("citations"):
        scan.fault(Rule.CITATIONS_IN_USER, at, field="text.citations")


def _scan_parts(content: object, rules: Mapping[str, BlockRule], at: str, scan: Scan) -> None:
    parts = as_array(content)
    if parts is None:
        scan.fault(Rule.SHAPE, at, "list")
        return
    for index, part in enumerate(parts):
        _scan_known(part, rules, f"{at}.{index}", scan)


def _scan_tool_use(block: Json, at: str, scan: Scan) -> None:
    if not _TOOL_ID.fullmatch(as_string(block.get("id"))):
        scan.fault(Rule.TOOL_USE_ID, at, field="tool_use.id")
    scan_name(block.get("name"), at, "tool_use.name", scan)
    _scan_input(block, at, scan)


def _scan_server_tool_use(block: Json, at: str, scan: Scan) -> None:
    if not _SERVER_TOOL_ID.fullmatch(as_string(block.get("id"))):
        scan.fault(Rule.SERVER_TOOL_USE_ID, at, field="server_tool_use.id")
    _scan_input(block, at, scan)


def _scan_input(block: Json, at: str, scan: Scan) -> None:
    if as_object(block.get("input")) is None:
        scan.fault(Rule.TOOL_INPUT, at, field=f"{block['type']}.input")


def _scan_tool_result(block: Json, at: str, scan: Scan) -> None:
    if not as_string(block.get("tool_use_id")):
        scan.fault(Rule.SHAPE, at, "string", field="tool_result.tool_use_id")
    content = block.get("content")
    if isinstance(content, str):
        scan.size += len(content)
    elif content is not None:
        _scan_parts(content, _RESULT_PARTS, f"{at}.content", scan)


def _scan_search_result(block: Json, at: str, scan: Scan) -> None:
    """Where it was found, its title and its texts; `source` is a string, as of no other block."""
    for name in ("source", "title"):
        if not isinstance(block.get(name), str):
            scan.fault(Rule.SHAPE, at, "string", field=f"search_result.{name}")
    if as_array(block.get("content")) == []:
        scan.fault(Rule.TEXT_EMPTY, at, field="search_result.content")
    _scan_citing(block, at, scan)
    _scan_parts(block.get("content"), _SENT_TEXT_ONLY, f"{at}.content", scan)


def _scan_citing(block: Json, at: str, scan: Scan) -> None:
    """Whether the model may cite it: `{"enabled": true}`, not the list that a text has."""
    citations = block.get("citations")
    known = as_object(citations)
    if citations is not None and (known is None or not isinstance(known.get("enabled"), bool)):
        scan.fault(Rule.SHAPE, at, "dictionary", field=f"{block['type']}.citations")


def _scan_file(block: Json, at: str, scan: Scan) -> None:
    """A file for the container of the code that the server runs."""
    if not as_string(block.get("file_id")):
        scan.fault(Rule.SHAPE, at, "string", field="container_upload.file_id")


def _scan_document(block: Json, at: str, scan: Scan) -> None:
    for name in ("title", "context"):
        if block.get(name) is not None and not as_string(block[name]):
            scan.fault(Rule.SHAPE, at, "string", field=f"document.{name}")
    _scan_citing(block, at, scan)
    source = source_of(block, DOCUMENT_SOURCES, at, scan)
    if source is None:
        return
    kind = source["type"]
    if kind == "base64":
        scan_pdf(source, at, scan)
    elif kind in ("text", "content"):  # all others are references: the server fetches them
        text = source.get("data" if kind == "text" else "content")
        if isinstance(text, str):
            scan_string(text, f"{at}.source", scan)
        else:
            _scan_parts(text, _SOURCE_PARTS, f"{at}.source.content", scan)


def _scan_thinking(block: Json, at: str, scan: Scan) -> None:
    text = block.get("thinking")
    if isinstance(text, str):
        scan.size += len(text)
    else:
        scan.fault(Rule.SHAPE, at, "string", field="thinking.thinking")
    if not as_string(block.get("signature")):
        scan.fault(Rule.THINKING_UNSIGNED, at, field="thinking")


def _scan_redacted(block: Json, at: str, scan: Scan) -> None:
    if not as_string(block.get("data")):
        scan.fault(Rule.THINKING_UNSIGNED, at, field="redacted_thinking")


def _scan_compaction(block: Json, at: str, scan: Scan) -> None:
    """A summary the server wrote; null stands for one that failed and is skipped."""
    content = block.get("content")
    if isinstance(content, str):
        scan_string(content, at, scan)
    elif content is not None:
        scan.fault(Rule.SHAPE, at, "string", field="compaction.content")


def _accept(_block: Json, _at: str, _scan: Scan) -> None:
    """Known, and without rules of its own here."""


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

# The content unions of the SDK, stable and beta.
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
