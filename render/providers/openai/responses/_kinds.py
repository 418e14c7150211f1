"""What the encoder and the validator both know of the Responses API."""

from typing import Final

REPLAYED: Final = frozenset(
    {
        "code_interpreter_call",
        "compaction",
        "file_search_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "web_search_call",
    }
)
"""Items that the server made for itself, and that are sent back as they came."""
CALLS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""By the type of a call: the type of what answers it."""
