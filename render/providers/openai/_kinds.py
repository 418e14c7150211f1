"""What encoders and validators both know of the two APIs: kinds of content, and limits in numbers.

Sources: the types of the `openai` package, 3.54, and the provider's guides of November 2026.
"""

from typing import Final

MARK: Final = "prompt_cache_breakpoint"
"""The field of a content part that makes it the end of a prefix to be cached."""
MARKS_WRITTEN_MAX: Final = 4
"""Of one request; older marks are only looked up."""
CACHE_TOKENS_MIN: Final = 1_024

IMAGE_MEDIA_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
PICTURES_MAX: Final = 500
PICTURE_BYTES_MAX: Final = 45_000_000
"""Of base64: the provider takes 50 MB for the whole request."""

CALL_ID_LENGTH_MAX: Final = 64
"""Of Responses."""
CHAT_ID_LENGTH_MAX: Final = 40
NAME: Final = r"[a-zA-Z0-9_-]{1,64}"
"""Of a tool, in both."""

TAG_PREFIX: Final = "provider.openai."
"""Of the blocks that hold what only this provider reads."""
CUSTOM: Final = "custom"
"""What `ToolCall.provider` says in `type` of a call whose input is free text."""
CUSTOM_INPUT: Final = "input"
"""Under which name that text stands in `ToolCall.input`."""
