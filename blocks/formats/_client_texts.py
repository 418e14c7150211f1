"""The texts that a client writes into a conversation: which they are, and which of them are standing instructions.

A *standing instruction* is what a client, a harness or a project file lays down: rules, permissions, the working
folder, lists of tools. It applies until it is replaced, so no compaction folds it. Everything else that a client
writes (the output of a command, a notification) happened once and is folded like the rest of the conversation.

    kind     what it is                                            when there is too little room for all
    rules    rules, permissions, ways of working                   shortened last
    state    where the agent works: folder, date, plan mode        shortened last; short anyway
    list     tools, skills, agents that can be looked up again     shortened first

A later text *replaces* an earlier one of the same kind, name and source, except for texts that add to earlier ones
(`adds`): a client that has told the list of agents tells only the new ones later.

Texts by `system` or `developer` are the operator's: they are standing even if no row names them. So are a client's
reminders before the model's first answer, because the next version of a client words them in another way.

Sources of the rows: Claude Code 2.1 (the texts in its program, as installed from npm; the requests of 2.1.330), opencode
1.18 (the same), Codex 0.169
(the requests of its program, and its session files), Gemini CLI 0.61 and Qwen Code 0.15 (`environmentContext.js` in
their packages), Grok CLI (its session files). pi, opencode and Copilot CLI have project instructions in the system
prompt, which no compaction touches.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import attrs

from blocks._block import Block, ToolResult, standing_key, text_of

StandingKind: TypeAlias = Literal["rules", "state", "list"]
INTERRUPTION: Final = "interruption"


@attrs.frozen(kw_only=True)
class ClientText:
    """A text that a client wrote."""

    name: str
    """The kind of text, for people, such as `AGENTS.md` or `system-reminder`."""
    standing: str = ""
    """What a standing instruction replaces and is replaced by: kind, name and source; empty: it is not standing."""


@attrs.frozen
class _Row:
    """Texts that begin alike."""

    begin: str
    """A regular expression for the beginning; a group `source` is a part of what is replaced."""
    name: str
    kind: StandingKind | None = None
    """The kind of standing instruction; None: it is not one."""
    adds: bool = False
    """Whether it adds to earlier ones of its kind."""

    def standing(self, match: re.Match[str], text: str) -> str:
        if self.kind is None:
            return ""
        return standing_key(
            self.kind, self.name, match.groupdict().get("source") or "", text * self.adds
        )


# What Claude Code wraps in <system-reminder>, or sends in messages of the role `system`.
_REMINDERS: Final = (
    _Row(r"As you answer the user's questions, you can use the following context:", "CLAUDE.md", "rules"),
    _Row(r"Codebase and user instructions are shown below", "CLAUDE.md", "rules"),
    _Row(r"Contents of (?P<source>[^\n]{1,500}?)(?: \([^\n]*\))?:\n", "CLAUDE.md", "rules"),
    _Row(r"# MCP Server Instructions", "mcp", "rules", adds=True),
    _Row(r"The following MCP servers have disconnected", "mcp", "rules", adds=True),
    _Row(r"SessionStart\S* hook additional context:", "hook", "rules", adds=True),
    _Row(r"You are a teammate in this session's agent team", "team", "rules"),
    _Row(r"The following skills were invoked", "skills in use", "rules"),
    _Row(r"Attribution for git commits", "attribution", "rules"),
    _Row(r"# Environment\b", "environment", "state"),
    _Row(r"Plan mode is active|## (?:Exited|Re-entering) Plan Mode", "plan mode", "state"),
    _Row(r"The (?:TodoWrite tool has|task tools have)n't been used recently|Your todo list", "todo list", "state"),
    _Row(r"The date has changed|Today's date", "date", "state"),
    _Row(r"The model for this session has been changed|You are powered by", "model", "state"),
    _Row(r"<total_tokens>", "tokens left"),
    _Row(r"(?:Note: )?The user opened the file", "open file", "state"),
    _Row(r"The user has changed the current working directory", "folder", "state"),
    _Row(r"(?:Available agent types for|New agent types are now available|The following agent types)", "agents",
         "list", adds=True),
    _Row(r"The following skills are available", "skills", "list"),
    _Row(r"(?:The following|\d+) deferred tools?", "deferred tools", "list", adds=True),
)  # fmt: skip
_CODEX: Final = (
    _Row(r"# AGENTS\.md instructions(?: for (?P<source>[^\n]+))?", "AGENTS.md", "rules"),
    _Row(r"<user_instructions", "user_instructions", "rules"),
    _Row(r"<permissions", "permissions", "rules"),
    _Row(r"<collaboration_mode", "collaboration_mode", "rules"),
    _Row(r"<app-context", "app-context", "rules"),
    _Row(r"<environment_", "environment_context", "state", adds=True),  # later ones say only what changed
    _Row(r"<skills_instructions", "skills_instructions", "list"),
    _Row(r"<apps_instructions", "apps_instructions", "list"),
    _Row(r"<plugins_instructions", "plugins_instructions", "list"),
    _Row(r"<recommended_plugins", "recommended_plugins", "list"),
    _Row(r"<tools>", "tools", "list", adds=True),
)  # fmt: skip
_OTHERS: Final = (
    _Row(r"(?:<session_context>\s*)?This is the (?:Gemini CLI|Qwen Code)\. We are setting up the context",
         "session_context", "rules"),
    _Row(r"<session_context>", "session_context", "rules"),
    _Row(r"<hook_context>", "hook_context", "rules", adds=True),
    _Row(r"<user_info", "user_info", "state"),
)  # fmt: skip
# What happened once.
_EVENTS: Final = (
    *(
        _Row(f"<(?={name})", "")
        for name in (
            "command-", "local-command", "bash-", "task-notification", "turn_aborted", "skill", "subagent", "ide_",
        )
    ),
    # What other agents of a team say (session files of Claude Code 2.1); its lead gives a teammate its task, as a user does.
    _Row(r'<(?=teammate-message\b)(?!teammate-message teammate_id="team-lead")', ""),
    _Row(r"Read the output file to retrieve the result: |Full transcript available at: ", "task-notification"),
    _Row(r"Base directory for this skill: ", "skill"),
    _Row(r"Caveat:", "caveat"),
    _Row(r"\[Request interrupted", INTERRUPTION),
)  # fmt: skip
_COMMAND: Final = re.compile(
    r"(?P<asks><command-message>[^<]*</command-message>\s*)?<command-name>(?P<name>[^<]*)</command-name>\s*"
    r"(?:<command-message>[^<]*</command-message>\s*)?(?:<command-args>(?P<words>.*)</command-args>)?",
    re.DOTALL,
)
"""A command that the user typed, as Claude Code 2.1 writes it; one that it carries out itself (`/clear`) begins with the
name."""
_REMINDER: Final = re.compile(r"<(system[-_]reminder)>\s*")
_TAG: Final = re.compile(r"<([A-Za-z][\w-]*)")
_ROWS: Final = tuple((re.compile(row.begin), row) for row in (*_CODEX, *_OTHERS, *_EVENTS))
_REMINDER_ROWS: Final = tuple((re.compile(row.begin), row) for row in _REMINDERS)
_BEGIN, _END = "<system-reminder>", "</system-reminder>"
_MARKS: Final = ("<", "#", "[", "B", "C", "F", "R", "T")
"""How a text of a client can begin; checked first, because nearly no text does."""


def client_text(text: str, *, is_opening: bool = False) -> ClientText | None:
    """What a client wrote in the user's message; None: the user may have written it. `is_opening`: the model has not
    answered yet.

    A text in which something follows the client's own element is the user's, and so is a command with which the user asks
    for something (see `command_in`).
    """
    text = text.strip()
    if not text.startswith(_MARKS) or command_in(text):
        return None
    if reminder := _REMINDER.match(text):
        if _goes_on(text, reminder[1]):
            return None
        row = _matched(_REMINDER_ROWS, text, reminder.end())
        unknown = standing_key("rules", "reminder", "", _uncounted(text)) if is_opening else ""
        return ClientText(name=reminder[1], standing=row.standing if row else unknown)
    row = _matched(_ROWS, text, 0)
    return None if row and text[0] == "<" and _goes_on(text, row.name) else row


def command_in(text: str) -> str:
    """The command that the user typed, with the user's words behind it (`/review all of it`), if the text is one that a
    client has written down; empty for other texts, and for a command without words that the client carries out itself."""
    match = _COMMAND.fullmatch(text.strip()) if text.lstrip().startswith("<command-") else None
    words = (match["words"] or "").strip() if match else ""
    return f"{match['name'].strip()} {words}".strip() if match and (words or match["asks"]) else ""


def operator_text(text: str) -> ClientText:
    """What stands in a message of the role `system` or `developer`: always standing."""
    text = text.strip()
    reminder = _REMINDER.match(text)
    begin = reminder.end() if reminder else 0
    row = _matched(_REMINDER_ROWS, text, begin) or _matched(_ROWS, text, begin)
    if row and row.standing:
        return row
    return ClientText(
        name="operator", standing=standing_key("rules", "operator", "", _uncounted(text))
    )


def appended_texts(result: str) -> Iterator[tuple[ClientText, str]]:
    """The standing instructions that a client appended to a tool's result, the newest first, each with its text.

    Claude Code appends reminders, such as the `CLAUDE.md` of a folder that the agent has begun to work in, to the
    result that they follow. A tool's output can look the same, so such a text never replaces another one. What only says
    how things stand is not yielded: it may come with every result.
    """
    for element, _ in _reminders(result):
        client = client_text(element)
        if client and client.standing and not client.standing.startswith("state:"):
            kind, name, *_ = client.standing.split(":")
            yield attrs.evolve(client, standing=standing_key(kind, name, "", element)), element


def without_reminders(result: str) -> str:
    """A tool's result without the reminders that a client appended to it."""
    return min((rest for _, rest in _reminders(result)), key=len, default=result)


def _reminders(result: str) -> Iterator[tuple[str, str]]:
    """The reminders at the end of a result, the newest first, each with what stands before it."""
    text = result.rstrip()
    while text.endswith(_END) and (begin := text.rfind(_BEGIN)) >= 0:
        element, text = text[begin:], text[:begin].rstrip()
        yield element, text


def lays_down(block: Block) -> bool:
    """Whether a client appended a standing instruction to this result."""
    return isinstance(block, ToolResult) and any(True for _ in appended_texts(text_of(block)))


def _uncounted(text: str) -> str:
    """The text without its numbers: equal texts are one, also if they only count differently ("3 calls left")."""
    return re.sub(r"\d+", "0", text)


def _matched(
    rows: tuple[tuple[re.Pattern[str], _Row], ...], text: str, begin: int
) -> ClientText | None:
    for pattern, row in rows:
        if match := pattern.match(text, begin):
            tag = _TAG.match(text, begin)
            return ClientText(
                name=row.name or (tag[1] if tag else ""), standing=row.standing(match, text)
            )
    return None


def _goes_on(text: str, tag: str) -> bool:
    """Whether something that is no client's text follows the element at the beginning of the text."""
    _, closing, rest = text.partition(f"</{tag}>")
    rest = rest.strip()
    return bool(closing and rest) and client_text(rest) is None
