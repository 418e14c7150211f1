"""What the provider accepts and caches for one model."""

from typing import Final

from render.policy._provider import Limits, Model
from render.providers.openai._count import RESULT_TOKENS
from render.providers.openai._kinds import (
    MARKS_WRITTEN_MAX,
    PICTURE_BYTES_MAX,
    PICTURES_MAX,
)

UNMARKABLE: Final = frozenset(
    f"said {kind}"
    for kind in (
        "code_interpreter_call",
        "compaction",
        "custom",
        "custom_tool_call",
        "file_search_call",
        "function",
        "function_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "message",
        "reasoning",
        "text",
        "web_search_call",
    )
)
"""The model's own content cannot carry a mark."""


def limits_of(model: Model) -> Limits:
    """With marks, a cache entry is found if the next request has a mark at the same position, however far
    back. Without marks, every prefix is cached for a while."""
    marks = model.cache_kind == "marks"
    return Limits(
        result_tokens=RESULT_TOKENS,
        pictures_max=PICTURES_MAX,
        picture_bytes_max=PICTURE_BYTES_MAX,
        marks_max=min(model.cache_marks, MARKS_WRITTEN_MAX) - 1 if marks else 0,
        cache_tokens_min=model.cache_tokens_min,
        lookback=1,
        unmarkable=UNMARKABLE,
        ttl_seconds=min(model.cache_ttls),
        automatic=not marks,
    )
