"""Kinds of items of the Responses API that encoder and rules share."""

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
"""Items of the server's own work that are sent back unchanged."""
CALLS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""The type of the output item, by the type of the call."""
