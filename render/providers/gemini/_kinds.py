"""What the encoder and the validator both know of the Gemini API.

Sources: the types of the `google-genai` package, 3.4, and the provider's guides of October 2026.
"""

from typing import Final

from render.view._provider_blocks import Json

SIGNATURE: Final = "thoughtSignature"
UNSIGNED: Final = "skip_thought_signature_validator"
"""In place of the signature of a call that the model did not make itself.  (Guide to thought signatures,
questions and answers: histories of other models.)"""

IMAGE_MEDIA_TYPES: Final = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
PICTURES_MAX: Final = 900
"""The smallest of the numbers that are documented, of images in a request."""
PICTURE_BYTES_MAX: Final = 45_000_000
"""Of base64: PDFs may have 50 MB, a whole request 100 MB."""

NAME: Final = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"
"""Of a function; newer versions take 128 characters."""

TAG_PREFIX: Final = "provider.gemini."
"""Of the blocks that hold what only this provider reads."""
DATA: Final = (
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
"""Fields of a part of which it has one; its kind."""
REPLAYED: Final = frozenset(
    {"codeExecutionResult", "executableCode", "fileData", "inlineData", "toolCall", "toolResponse"}
)
"""Parts that the model or the server made, and that are sent back as they came."""


def kind_of(part: Json) -> str:
    """Which of `DATA` a part has; empty: none."""
    return next((name for name in DATA if name in part), "")
