"""Kinds of content and numeric limits of the two APIs, shared by encoders and rules.

Sources: the types of the `openai` package, 3.54, and the provider's guides of November 2026.
"""

from typing import Final

from blocks.formats import CLIENT_TOOLS, SHAPES

MARK: Final = SHAPES["openai.chat"].mark
"""The field of a content part that ends a prefix to be cached."""
MARKS_WRITTEN_MAX: Final = 4
"""Marks of one request at which the cache is written; older marks are only looked up."""

IMAGE_MEDIA_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
PICTURES_MAX: Final = 500
PICTURE_BYTES_MAX: Final = 45_000_000
"""Bytes of base64; the provider accepts 50 MB for the whole request."""

CALL_ID_LENGTH_MAX: Final = 64
"""Characters of a call id in Responses."""
CHAT_ID_LENGTH_MAX: Final = 40
"""Characters of a call id in Chat Completions."""
NAME: Final = r"[a-zA-Z0-9_-]{1,64}"
"""Pattern of a tool name in both APIs."""

TAG_PREFIX: Final = "provider.openai."
"""Tag prefix of blocks that only this provider understands."""
CUSTOM: Final = "custom"
"""The `type` in `ToolCall.provider` of a call whose input is free text."""
CUSTOM_INPUT: Final = "input"
"""The name of that text in `ToolCall.input`."""
OPERATORS: Final = frozenset({"developer", "system"})
"""Roles of an operator's messages, which may stand anywhere in a conversation."""

REPLAYED: Final = frozenset(
    {
        "code_interpreter_call",
        "compaction",
        "file_search_call",
        "image_generation_call",
        "mcp_approval_request",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
"""Items of Responses: the server's own work that are sent back unchanged."""
EXTRA: Final = frozenset(
    {"additional_tools", "agent_message", "configuration_update", "mcp_approval_response"}
)
"""Items of Responses that a client gives besides messages and results; sent again unchanged."""
CALLS: Final = SHAPES["openai.responses"].calls
"""In Responses, the type of the output item, by the type of the call."""
RUN: Final = frozenset({*CLIENT_TOOLS, *(CALLS[kind] for kind in CLIENT_TOOLS)})
"""Calls of tools that the provider defines, and their results: the client runs them, or the server has run them."""
