"""Recognizes text that a program added to a user's prompt."""

import re

_PREFIXES = (
    "<command-",
    "<local-command",
    "<bash-",
    "<task-notification",
    "<environment_",
    "<user_instructions",
    "<user_info",
    "<recommended_plugins",
    "<system-reminder",
    "<system_reminder",
    "<turn_aborted",
    "<permissions",
    "<collaboration_mode",
    "<skill",
    "<app-context",
    "<apps_instructions",
    "<plugins_instructions",
    "<subagent",
    "<ide_",
    "# AGENTS.md",
    "Base directory for this skill: ",
    "Caveat:",
    "[Request interrupted",
)
_TAG = re.compile(r"<([A-Za-z][\w-]*)")
INTERRUPTION = "interruption"
_NAMES = {"#": "AGENTS.md", "B": "skill", "C": "caveat", "[": INTERRUPTION}


def context_name(text: str) -> str:
    """A name for a text that a program added to a prompt; empty if a user may have written it."""
    text = text.lstrip()
    if not text.startswith(_PREFIXES):
        return ""
    tag = _TAG.match(text)
    return tag[1] if tag else _NAMES[text[0]]
