"""Kinds of content and numeric limits of the API, shared by encoder and rules.

Sources: the provider's documentation of October 2026, and the types of the `anthropic` package, 2.11.
"""

from typing import Final

from blocks.formats import SHAPES

THINKING_TYPES: Final = SHAPES["anthropic"].thinking

# Content of tools that the server runs.
SERVER_TOOL_TYPES: Final = frozenset(
    {
        "advisor_tool_result",
        "bash_code_execution_tool_result",
        "code_execution_tool_result",
        "mcp_tool_listing",
        "mcp_tool_result",
        "mcp_tool_use",
        "server_tool_use",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "web_fetch_tool_result",
        "web_search_tool_result",
    }
)

RESUMABLE: Final = SERVER_TOOL_TYPES | {"compaction"}
"""A message that ends in one of these was paused by the server, and will be continued."""

IMAGE_MEDIA_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")

MESSAGES_MAX: Final = 100_000
MARKS_MAX: Final = 4
IMAGES_MAX: Final = 600
IMAGES_MAX_SMALL_WINDOW: Final = 100
SMALL_WINDOW_TOKENS: Final = 200_000
IMAGE_BYTES_MAX: Final = 10 * 1024 * 1024
REQUEST_BYTES_MAX: Final = 32 * 1024 * 1024
