"""What well-known tools do, so that a digest can say which files were read and which written."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

ToolKind: TypeAlias = Literal["read", "write", "command", "search", "other"]

KINDS: Final[Mapping[str, ToolKind]] = {
    **dict.fromkeys(("read", "read_file", "view", "cat", "open_file", "notebookread"), "read"),
    **dict.fromkeys(
        (
            "edit", "write", "multiedit", "notebookedit", "write_file", "create_file", "edit_file",
            "apply_patch", "str_replace_editor", "str_replace_based_edit_tool",
        ),
        "write",
    ),
    **dict.fromkeys(
        ("bash", "shell", "exec", "exec_command", "run", "execute_bash", "run_command", "terminal"),
        "command",
    ),
    **dict.fromkeys(
        (
            "grep", "glob", "search", "websearch", "web_search", "webfetch", "web_fetch", "find",
            "ls", "toolsearch", "search_files",
        ),
        "search",
    ),
}  # fmt: skip
_TARGETS: Final = (
    "file_path", "path", "filename", "notebook_path", "cmd", "command", "pattern", "query", "url",
    "input",
)  # fmt: skip


def tool_kind(name: str) -> ToolKind:
    """What a tool of this name does, as far as its name tells."""
    return KINDS.get(name.lower(), "other")


def tool_target(arguments: Mapping[str, Any]) -> str:
    """The file, command or query that a call is about, on one line; empty when nothing says so."""
    for key in _TARGETS:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
        if isinstance(value, list) and value:  # an argument vector
            return " ".join(str(word) for word in cast("list[Any]", value))
    return ""
