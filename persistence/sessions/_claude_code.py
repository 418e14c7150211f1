"""Claude Code's session log, and what `claude -p --output-format stream-json` prints: JSON lines, one content block of a
response per line.

It is read in the order of the file, not along `parentUuid`, because parallel calls make side branches, which a walk
from the leaf would miss.  Lines with the same `message.id` are one response.
"""

from collections.abc import Sequence
from typing import Any, Final

import attrs
from msgspec.structs import replace

from blocks import UsageRecorded
from blocks.formats import (
    Content,
    Json,
    count,
    items,
    messages_in,
    obj,
    parts_in,
    parts_of,
    string,
    tier_of,
)
from persistence.sessions._builder import Builder, Importer, LogStretch
from persistence.sessions._messages import add_content, add_results
from persistence.sessions._source import Record, Source, seconds

_SPOKEN = ("user", "assistant")
_QUEUED: Final = "queued_command"
_SESSION_FIELDS: Final = frozenset({"uuid", "sessionId", "session_id"})


def _looks(source: Source) -> bool:
    return any(
        line.get("type") in _SPOKEN
        and "content" in obj(line.get("message"))
        and not _SESSION_FIELDS.isdisjoint(line)
        for _, line in source.records
    )


def _read(builder: Builder) -> None:
    records = builder.source.records
    has_queued = any(obj(line.get("attachment")).get("type") == _QUEUED for _, line in records)
    reader, main = _Reader(builder, has_queued=has_queued), _main(records)
    for number, line in main:
        reader.about(line)
        match line.get("type"):
            case "user":
                reader.user(number, line)
            case "assistant":
                reader.assistant(line)
            case "attachment":
                reader.attachment(line)
            case "queue-operation":
                reader.queue(line)
            case "system":  # the prompts up to which the agent compacts by itself
                cut = obj(line.get("compactMetadata"))
                most = count(cut.get("preTokens")) if cut.get("trigger") == "auto" else 0
                builder.window = max(builder.window, most)
            case _:
                pass  # lines that no model saw
    for _, line in records if len(main) < len(records) else ():
        if _is_aside(line):
            reader.aside(obj(line.get("message")), seconds(line.get("timestamp")))


CLAUDE_CODE = Importer("claude-code", _looks, _read)


def _main(records: Sequence[Record]) -> Sequence[Record]:
    """The lines of the main agent; the file of a subagent has only sidechain lines, so these are its own."""
    main = [record for record in records if not _is_aside(record[1])]
    return main if any(line.get("type") in _SPOKEN for _, line in main) else records


def _is_aside(line: Json) -> bool:
    """Whether it is a sub-agent's: the second field is that of the stream."""
    return bool(line.get("isSidechain") or line.get("parent_tool_use_id"))


def _content(line: Json, role: str) -> list[Content]:
    fields = {"role": role, "content": obj(line.get("message")).get("content")}
    return [piece for message in messages_in(fields, "anthropic") for piece in message.content]


@attrs.define
class _Reader:
    builder: Builder
    has_queued: bool
    """Whether what the user typed while the agent was running is in the log by itself, as of versions since the spring of 2026."""
    _queue: list[str] = attrs.field(factory=list[str], init=False)
    _user_title: str = attrs.field(default="", init=False)
    _agent_title: str = attrs.field(default="", init=False)

    def about(self, line: Json) -> None:
        """Note what the line says of the session: the user's title takes precedence over the agent's own."""
        builder = self.builder
        builder.id = builder.id or string(line.get("sessionId") or line.get("session_id"))
        builder.folder = builder.folder or string(line.get("cwd"))
        match line.get("type"):
            case "custom-title":
                self._user_title = string(line.get("customTitle"))
            case "ai-title":
                self._agent_title = string(line.get("aiTitle")) or self._agent_title
            case "summary":
                self._agent_title = self._agent_title or string(line.get("summary"))
            case _:
                return
        builder.title = self._user_title or self._agent_title

    def user(self, number: int, line: Json) -> None:
        if line.get("isCompactSummary"):
            return  # a compaction; the session keeps the whole history
        at = seconds(line.get("timestamp"))
        content = _content(line, "user")
        parts, has_results = parts_in(content), add_results(self.builder, content, number, at)
        if has_results and not parts:
            return
        if line.get("isMeta"):
            self.builder.attach(parts, at, "meta")
        else:
            self.builder.user(parts, at, steers=has_results)

    def assistant(self, line: Json) -> None:
        message = obj(line.get("message"))
        if message.get("model") == "<synthetic>" or line.get("isApiErrorMessage"):
            return  # a message of Claude Code itself, not of the model
        response = self.builder.response(string(message.get("id")) or string(line.get("uuid")))
        add_content(self.builder, response, _content(line, "assistant"))
        response.model = response.model or string(message.get("model"))
        response.usage = _usage(response, obj(message.get("usage"))) or response.usage
        self.builder.tick(seconds(line.get("timestamp")))

    def aside(self, message: Json, at: float | None) -> None:
        """Keep the usage of a sub-agent's response, whose lines are not in the conversation."""
        name, model = string(message.get("id")), string(message.get("model"))
        response = LogStretch(id=name, model=model)
        if usage := _usage(response, obj(message.get("usage"))):
            self.builder.aside[name] = replace(usage, at=at or 0.0)

    def attachment(self, line: Json) -> None:
        """Add what the user typed while the agent was running, or what Claude Code laid down; others are reminders."""
        attachment, at = obj(line.get("attachment")), seconds(line.get("timestamp"))
        if attachment.get("type") == _QUEUED:
            self.builder.user(parts_of(attachment.get("prompt")), at, steers=True)
        elif text := _instruction(attachment):
            self.builder.attach(parts_of(f"<system-reminder>\n{text}\n</system-reminder>"), at)

    def queue(self, line: Json) -> None:
        """Follow the queue of what the user typed while the agent was running, as far as that is only there: `remove` sends
        all of it with the next results, `dequeue` the first as a prompt, and `popAll` gives it back to the user."""
        text, at = string(line.get("content")), seconds(line.get("timestamp"))
        match line.get("operation"):
            case "enqueue" if not self.has_queued and not text.startswith("{"):  # what has ended
                self._queue.append(text)
            case "remove":
                for words in self._queue:
                    self.builder.user(parts_of(words), at, steers=True)
                self._queue.clear()
            case "dequeue":
                del self._queue[:1]
            case "popAll":
                self._queue.clear()
            case _:
                pass


_ADDED: Final = {
    "agent_listing_delta": ("Available agent types for the Agent tool:", "addedLines"),
    "deferred_tools_delta": (
        "The following deferred tools are now available via ToolSearch:",
        "addedLines",
    ),
    "mcp_instructions_delta": ("# MCP Server Instructions\n", "addedBlocks"),
}
"""Attachments of Claude Code that add to a list: the line before it in the request, and the field that has it."""


def _instruction(attachment: Json) -> str:
    """The text that Claude Code sends for an attachment that lays something down; empty for any other."""
    match kind := string(attachment.get("type")):
        case "nested_memory":  # the CLAUDE.md of a folder that the agent has begun to work in
            content = string(obj(attachment.get("content")).get("content"))
            return content and f"Contents of {string(attachment.get('path'))}:\n\n{content}"
        case "skill_listing":
            content = string(attachment.get("content"))
            return (
                content
                and f"The following skills are available for use with the Skill tool:\n\n{content}"
            )
        case _:
            heading, field = _ADDED.get(kind, ("", ""))
            lines = [text for text in map(string, items(attachment.get(field))) if text]
            return "\n".join((heading, *lines)) if lines else ""


def _usage(response: LogStretch, usage: dict[str, Any]) -> UsageRecorded | None:
    """The usage in a line of a response. Each line repeats it, and only the output grows while the response streams."""
    if not usage:
        return None
    output = count(usage.get("output_tokens"))
    cached = count(usage.get("cache_read_input_tokens"))
    spent = response.spent(
        count(usage.get("input_tokens")) + cached,
        cached,
        max(output, response.usage.output if response.usage else 0),
        count(usage.get("cache_creation_input_tokens")),
    )
    hour = count(obj(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"))
    return replace(spent, cache_write_long=min(hour, spent.cache_write), tier=tier_of(usage))
