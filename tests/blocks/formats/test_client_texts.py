"""Texts of clients: which are standing instructions, what replaces what, and what stays the user's."""

from blocks.formats import appended_texts, client_text, command_in, operator_text
from tests._table import for_each

AGENTS = "# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>\nNever edit vendor/.\n</INSTRUCTIONS>"
CLAUDE = (
    "<system-reminder>\nAs you answer the user's questions, you can use the following context:\n# claudeMd\n"
    "Contents of /app/CLAUDE.md (project instructions, checked into the codebase):\n\nNever.\n</system-reminder>\n"
)
STANDING = {
    "Codex: AGENTS.md": (AGENTS, "rules:AGENTS.md:/app"),
    "Codex: user instructions": ("<user_instructions>\n\nNever.\n\n</user_instructions>", "rules:user_instructions"),
    "Codex: permissions": ("<permissions instructions>\nA.\n</permissions instructions>", "rules:permissions"),
    "Codex: skills": ("<skills_instructions>\n## Skills\n</skills_instructions>", "list:skills_instructions"),
    "Claude Code: CLAUDE.md": (CLAUDE, "rules:CLAUDE.md"),
    "Claude Code: a nested CLAUDE.md": (
        "<system-reminder>\nContents of /app/web/CLAUDE.md:\n\nUse tabs.\n</system-reminder>",
        "rules:CLAUDE.md:/app/web/CLAUDE.md",
    ),
    "Claude Code 2.1.330: CLAUDE.md": (
        "<system-reminder>\nCodebase and user instructions are shown below.\n\nNever.\n</system-reminder>",
        "rules:CLAUDE.md",
    ),
    "Claude Code 2.1.330: folder": (
        "<system-reminder>\n# Environment\n - Primary working directory: /app\n</system-reminder>",
        "state:environment",
    ),
    "Claude Code: skills": (
        "<system-reminder>\nThe following skills are available for use with the Skill tool:\n- a\n</system-reminder>",
        "list:skills",
    ),
    "Gemini CLI": (
        "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n</session_context>",
        "rules:session_context",
    ),
    "Qwen Code": ("This is the Qwen Code. We are setting up the context for our chat.", "rules:session_context"),
    "Grok CLI": ("<user_info>\nOS Version: macos\n</user_info>", "state:user_info"),
}  # fmt: skip
EVENTS = (
    "<command-name>/ide</command-name>\n<command-message>ide</command-message>",
    "<local-command-stdout>Catch you later!</local-command-stdout>",
    "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
    "[Request interrupted by user]",
    "Base directory for this skill: /a/b\n\n# Review",
    "<system-reminder>\nNote: /app/a.py was modified by a linter.\n</system-reminder>",
    "<system-reminder>\n<total_tokens>900 tokens left</total_tokens>\n</system-reminder>",
)
"""Texts of clients that happened once."""


@for_each("client", STANDING)
def test_what_a_client_lays_down_stands(client: str) -> None:
    text, key = STANDING[client]
    for written in (text, f"\n{text}\n"):
        found = client_text(written)
        assert found
        assert found.standing == key


@for_each("text", EVENTS)
def test_what_happened_once_does_not_stand(text: str) -> None:
    found = client_text(text)
    assert found
    assert found.name
    assert not found.standing


def test_an_unknown_reminder_stands_if_it_comes_before_the_models_first_answer() -> None:
    """The next version of a client words its instructions in another way."""
    text = (
        "<system-reminder>\nWhat this house wants of you:\nNever edit vendor/.\n</system-reminder>"
    )
    later, opening = client_text(text), client_text(text, is_opening=True)
    assert later
    assert opening
    assert not later.standing
    assert opening.standing.startswith("rules:reminder:")
    for event in EVENTS:
        if "linter" not in event:
            assert client_text(event, is_opening=True) == client_text(event)


def test_what_a_client_appends_to_a_result_stands_only_if_it_lays_something_down() -> None:
    rules = "<system-reminder>\nContents of /app/web/CLAUDE.md:\n\nUse tabs.\n</system-reminder>"
    left = "<system-reminder>\n<total_tokens>900 tokens left</total_tokens>\n</system-reminder>"
    todo = "<system-reminder>\nThe task tools haven't been used recently.\n</system-reminder>"
    found = [text for _, text in appended_texts(f"1\tx = 1\n\n{rules}\n\n{left}\n{todo}\n")]
    assert found == [rules]
    assert [*appended_texts(f"{rules}\nx = 1")] == [], "the tool goes on"
    assert [*appended_texts("</system-reminder>")] == []


@for_each(
    "text",
    [
        "Please fix the build.",
        "# AGENTS.md\nPlease improve this file.",
        "<div>why is this red?</div>",
        "Contents of the box: nothing.",
        "The following skills are what I look for.",
        f"{CLAUDE}Please fix the failing build.",
        "<user_info>\nOS: linux\n</user_info>\nPlease fix the failing build.",
        "",
    ],
)
def test_what_the_user_may_have_written_is_the_users(text: str) -> None:
    assert client_text(text) is None


COMMANDS = {
    "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>all of it</command-args>": "/review all of it",
    "<command-message>brainstorm</command-message>\n<command-name>/brainstorm</command-name>": "/brainstorm",
    "<command-name>/plan</command-name>\n    <command-message>plan</command-message>\n    <command-args>I'm confused.\nWhy <b>?</command-args>": "/plan I'm confused.\nWhy <b>?",
}  # fmt: skip


@for_each("text", COMMANDS)
def test_a_command_that_asks_for_something_is_the_users(text: str) -> None:
    assert client_text(text) is None
    assert command_in(f"\n{text}\n") == COMMANDS[text]


def test_a_command_that_the_client_carries_out_itself_is_not() -> None:
    text = "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
    assert client_text(text)
    assert [command_in(each) for each in (text, "/clear", "<command-x>", "")] == [""] * 4


def test_a_list_that_adds_to_an_earlier_one_does_not_replace_it() -> None:
    first = operator_text("Available agent types for the Agent tool:\n- a")
    more = operator_text("New agent types are now available for the Agent tool:\n- b")
    assert first.standing.startswith("list:agents:")
    assert first.standing != more.standing


def test_every_message_of_the_operator_stands() -> None:
    lion, zebra = operator_text("Operator: LION is in force."), operator_text("Operator: ZEBRA.")
    assert lion.standing.startswith("rules:operator:")
    assert lion.standing != zebra.standing
    assert operator_text("3 calls left").standing == operator_text("12 calls left").standing


def test_a_reminder_counts_in_its_newest_form() -> None:
    short = operator_text("The task tools haven't been used recently. Consider them.")
    full = operator_text("The task tools haven't been used recently.\n#1. [completed] Build")
    assert short.standing == full.standing == "state:todo list"
