"""What tools do: as they declare, else as the names of well-known tools suggest.

| kind | durability of its results | because |
|---|---|---|
| read | replayable | the file can be read again while it is unchanged |
| write | anchoring | it stays known what was written |
| command | anchoring | the exit code stays known |
| search | ephemeral | cheap, and usually repeated with other words anyway |
| web | non-replayable | it costs money, is limited, and changes |
| other | anchoring | the default |

Codex also has its model write programs: the tool `exec` takes JavaScript that calls the other tools. A program that calls one
of them, with arguments that stand in it, counts as that call; one that calls several counts as its patches, if it has any, or
as one command, if it only runs some; any other program is of the kind `other`:

    const r = await tools.exec_command({cmd:"go test ./...", workdir:"/work"}); text(r.output)
    const patch = "*** Begin Patch\\n..."; text(await tools.apply_patch(patch))
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final, cast

from blocks._block import Durability, Envelope, ToolKind
from blocks._codec import clean_json

TOOL_KINDS: Final[Mapping[str, ToolKind]] = {
    name: kind
    for kind, names in cast(
        "dict[ToolKind, str]",
        {
            "read": "cat notebookread open open_file read read_file read_text_file readfile view view_file",
            "write": (
                "apply_diff apply_patch applypatch create create_file edit edit_file edit_notebook_file"
                " insert_edit_into_file multiedit notebookedit replace replace_in_file"
                " replace_string_in_file search_replace str_replace_based_edit_tool str_replace_editor"
                " strreplace strreplacefile write write_file write_to_file writefile"
            ),
            "command": (
                "bash exec exec_command execute execute_bash execute_command local_shell powershell run"
                " run_command run_in_terminal run_shell_command run_terminal_cmd run_terminal_command shell"
                " shell_command terminal"
            ),
            "search": (
                "code_search codebase_search file_search find find_file glob glob_file_search grep"
                " grep_search list list_dir list_directory list_files ls search search_dir search_file"
                " search_file_content search_files semantic_search toolsearch"
            ),
            "web": "codesearch fetch fetch_url fetch_webpage fetchurl google_web_search searchweb webfetch websearch",
        },
    ).items()
    for name in names.split()
}
"""The kinds of the tools of well-known coding agents, by their names in lower case: Claude Code, Codex, Gemini CLI, Qwen Code,
opencode, pi, OpenHands, SWE-agent, mini-swe-agent; Copilot (`run_in_terminal`, `replace_string_in_file`), Cursor
(`run_terminal_cmd`, `search_replace`), Cline and Roo Code (`execute_command`, `write_to_file`), Kimi (`StrReplaceFile`),
Droid (`Execute`, `Create`), Grok (`view_file`), MCP's file server (`read_text_file`)."""
WEB_TOOLS: Final = ("web_", "browser_")
"""Prefixes of the names of other web tools."""
_DURABILITIES: Final[Mapping[ToolKind, Durability]] = {
    "read": "replayable",
    "write": "anchoring",
    "command": "anchoring",
    "search": "ephemeral",
    "web": "non-replayable",
    "other": "anchoring",
}
ASKING_TOOLS: Final = frozenset(
    {
        "askuserquestion",
        "ask_user",
        "ask_user_question",
        "ask_followup_question",
        "question",
        "request_user_input",
    }
)
"""Tools with which an agent asks its user, by their names in lower case: Claude Code, Copilot and Gemini CLI, Qwen
Code, Cline and Roo Code, opencode, Codex."""
EDITOR_TOOLS: Final = frozenset({"str_replace_editor", "str_replace_based_edit_tool"})
"""Tools with several functions: the argument `command` says which one."""
_FILES: Final = (
    "file_path", "path", "filename", "notebook_path", "filePath", "target_file", "absolute_path",
)  # fmt: skip
"""Claude Code, Gemini CLI; pi, OpenHands, Kimi; SWE-agent; Claude Code; opencode, Copilot; Cursor, Grok; Qwen Code."""
TARGET_MAX: Final = 100_000
"""Characters of a target; of a longer one it is the beginning."""
_TARGETS: Final = (*_FILES, "cmd", "command", "pattern", "query", "url", "input")
_PATCHED: Final = re.compile(
    r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.*\S)", re.MULTILINE
)


def asks_user(name: str) -> bool:
    """Whether the results of a tool with this name are the user's own words."""
    return name.lower() in ASKING_TOOLS


def tool_kind(
    name: str, arguments: Mapping[str, Any] | None = None, envelope: Envelope | None = None
) -> ToolKind:
    """What a call of a tool with this name does; a declaration in its result's envelope takes precedence."""
    if envelope and envelope.kind:
        return envelope.kind
    name, arguments = inner_call(name, arguments or {})
    if name == _PROGRAM and isinstance(arguments.get("input"), str):
        return "other"
    name = name.lower()
    if name in EDITOR_TOOLS and arguments and arguments.get("command") == "view":
        return "read"
    return TOOL_KINDS.get(name, "web" if name.startswith(WEB_TOOLS) else "other")


def default_durability(name: str, arguments: Mapping[str, Any] | None = None) -> Durability:
    """The durability of the result of such a call, if nothing declares it."""
    return _DURABILITIES[tool_kind(name, arguments)]


def tool_target(arguments: Mapping[str, Any], envelope: Envelope | None = None) -> str:
    """The file, command or query that a call is about, on one line; empty if its arguments name none.

    An argument that the result's envelope declares comes first.
    """
    _, arguments = inner_call(_PROGRAM, arguments)
    for key in ((envelope.target,) if envelope and envelope.target else ()) + _TARGETS:
        match arguments.get(key):
            case str(value) if value.strip():
                return " ".join(value[:TARGET_MAX].split())
            case [_, *_] as words:  # an argument vector
                return " ".join(str(word) for word in cast("list[Any]", words))
            case int() | float() as value if key not in _TARGETS:
                return str(value)
            case _:
                pass
    return ""


def written_paths(
    name: str, arguments: Mapping[str, Any], envelope: Envelope | None = None
) -> tuple[str, ...]:
    """The files that a call writes, if it is a write and names them; a patch may name several.

    What the result's envelope declares comes first: its target, or its key fields `path`, `paths`.
    """
    if tool_kind(name, arguments, envelope) != "write":
        return ()
    if declared := _declared_paths(arguments, envelope):
        return declared
    name, arguments = inner_call(name, arguments)
    for key in _FILES:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return (value.strip(),)
    texts = (arguments.get(key) for key in ("input", "patch", "patchText"))
    paths = (path for text in texts if isinstance(text, str) for path in _PATCHED.findall(text))
    return tuple(dict.fromkeys(paths))


def _declared_paths(arguments: Mapping[str, Any], envelope: Envelope | None) -> tuple[str, ...]:
    if envelope is None:
        return ()
    if envelope.target and (
        target := tool_target({envelope.target: arguments.get(envelope.target)}, envelope)
    ):
        return (target,)
    fields = envelope.key_fields
    return tuple(dict.fromkeys(texts_in(fields.get("paths")) or texts_in(fields.get("path"))))


def texts_in(value: object) -> tuple[str, ...]:
    """The strings in a field that holds one, or a list of them; other values are ignored."""
    items = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())


# Programs that call tools.


_PROGRAM: Final = "exec"
_PATCH: Final = "apply_patch"
CALLS_MAX: Final = 16
"""The calls of a program that are read: each may name a variable, which is looked for."""
_TEXT: Final = r"""(?P<quote>["'`])(?P<text>(?:(?!(?P=quote))[^\\]|\\.)*)(?:(?P=quote)|\Z)"""
_TEXTS: Final = re.compile(_TEXT, re.DOTALL)
"""The texts in a program; one without an end goes on to the program's."""
_TOOL: Final = re.compile(r"\btools\.(\w+)\s*\(\s*(?P<variable>[A-Za-z_$][\w$]*)?")
_TOKEN: Final = re.compile(
    rf"{_TEXT}|(?P<key>[A-Za-z_$][\w$]*)(?=\s*:)|(?P<other>true|false|null|-?\d[\d.]*|[][{{}}:,])|\s+",
    re.DOTALL,
)
_COMPUTED: Final = re.compile(r"(?<!\\)\$\{")
_ESCAPE: Final = re.compile(r'\\x(?P<hex>[\da-fA-F]{2})|\\["\\/bfnrtu]|\\(?P<plain>.)|"', re.DOTALL)
"""What JavaScript writes otherwise in a text than JSON does."""


def inner_call(name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name and the arguments of the call that a program makes, or of its patches; of any other call, its own."""
    source = arguments.get("input") if name == _PROGRAM else None
    return (_call_in(source) if isinstance(source, str) else None) or (name, arguments)


@lru_cache(maxsize=256)
def _call_in(source: str) -> tuple[str, Mapping[str, Any]] | None:
    outside = _TEXTS.sub(lambda text: "\0" * len(text[0]), source)
    first = islice(_TOOL.finditer(outside), CALLS_MAX)
    calls = [(call[1], _argument(source, outside, call)) for call in first]
    if patches := [value for name, value in calls if name == _PATCH and isinstance(value, str)]:
        return _PATCH, {"input": "\n".join(patches)}
    values = [cast("dict[str, Any]", value) for _, value in calls if isinstance(value, dict)]
    if len(values) == len(calls) == 1:
        return calls[0][0], values[0]
    texts = [str(value.get("cmd", "cd ")) for value in values]
    is_one = len(values) == len(calls) and {name for name, _ in calls} == {"exec_command"}
    is_one = is_one and not re.search(r"\b(?:if|for|while)\b", outside)  # not all may run
    if not is_one or any("cd " in text for text in texts):  # which would move the others, too
        return None
    same = {key: v for key, v in values[0].items() if all(o.get(key) == v for o in values)}
    return "exec_command", {**same, "cmd": "\n".join(texts)}


def _argument(source: str, outside: str, call: re.Match[str]) -> Any:
    """The argument of a call in a program, which may be a variable; `outside` is the program without its texts."""
    if not (variable := call["variable"]):
        return _literal(source, call.end())
    definition = re.search(rf"\b(?:const|let|var)\s+{re.escape(variable)}\s*=\s*", outside)
    return _literal(source, definition.end()) if definition else None


def _literal(source: str, start: int) -> Any:
    """The value that is written at this place of a program; None: it is computed."""
    parts, depth = list[str](), 0
    while token := _TOKEN.match(source, start):
        start = token.end()
        if token["text"] is not None:
            if token["quote"] == "`" and _COMPUTED.search(token["text"]):
                return None
            parts.append(f'"{_ESCAPE.sub(_as_json, token["text"])}"')
        elif token["key"]:
            parts.append(f'"{token["key"]}"')
        elif token["other"]:
            parts.append(token["other"])
            depth += (token["other"] in "[{") - (token["other"] in "]}")
        if parts and depth <= 0:
            break
    try:
        return clean_json(json.loads("".join(parts), strict=False))
    except (ValueError, RecursionError):
        return None


def _as_json(escape: re.Match[str]) -> str:
    if escape[0] == '"':
        return '\\"'
    return f"\\u00{escape['hex']}" if escape["hex"] else escape["plain"] or escape[0]
